//! Every figure of a report.

use crate::accounts::{Accounts, Cause, Class, Fate, World};
use crate::freeze::Freeze;
use crate::item::StudyItem;
use crate::plan::{PairKind, Plan};
use crate::resource::{Dimension, Taken, Vector};
use crate::score::{PairRow, Scores};
use crate::statistics::lost::{ThreeAnswers, three_answers, valid};
use crate::statistics::power::{Expected, exact_power};
use crate::statistics::{Interval, Unfit, binary::Discordance, bootstrap, equivalence, family, mean, none_seen};
use crate::step::Step;
use closer_contracts::Digest;
use closer_contracts::id::Key;
use serde::Serialize;
use std::collections::BTreeMap;

/// How many pairs of a kind came how far. Every enrolled pair is in it once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Enrolled.
    pub enrolled: usize,
    /// Their item was accepted.
    pub committed: usize,
    /// Their packets differ in exactly the item.
    pub compared: usize,
    /// World A answered.
    pub answered_a: usize,
    /// World B answered.
    pub answered_b: usize,
    /// Both did.
    pub valid: usize,
    /// Invalid, by cause; every cause is listed.
    pub invalid: BTreeMap<Cause, usize>,
    /// Invalid, by the kind of failure; every kind is listed.
    pub failures: BTreeMap<Class, usize>,
    /// Neither valid nor invalid yet.
    pub pending: usize,
}

/// What the pairs of a kind say.
#[derive(Debug, Clone, Serialize)]
pub struct KindFigures {
    /// How far they came.
    pub flow: Flow,
    /// Their mean difference, three ways.
    pub answers: Result<ThreeAnswers, Unfit>,
    /// How many valid pairs took the same step in both worlds, by digest.
    pub same_step: usize,
    /// Valid pairs in which A alone scored more, and B alone did.
    pub discordant: [usize; 2],
    /// The exact test over valid pairs, where scores are 0 or 1.
    pub exact_p: Result<f64, Unfit>,
    /// Its mid-p version.
    pub mid_p: Result<f64, Unfit>,
    /// The t test over valid pairs.
    pub t_p: Result<f64, Unfit>,
    /// The bootstrap interval over valid pairs.
    pub bootstrap: Result<Interval, Unfit>,
    /// Two one-sided tests against the frozen margin.
    pub no_harm_p: Option<Result<f64, Unfit>>,
}

/// What constant policies and an oracle would score, on average over the items that were enrolled.
#[derive(Debug, Clone, Serialize)]
pub struct Floors {
    /// Doing nothing.
    pub do_nothing: f64,
    /// Always asking the user.
    pub always_ask: f64,
    /// Always objecting.
    pub always_refuse: f64,
    /// The best step, with the item.
    pub oracle_with_item: f64,
    /// The best step that is justified without it.
    pub oracle_without_item: f64,
}

/// What one arm's worlds came to, over the pairs that ask about inheritance.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Measures {
    /// Runs that count.
    pub runs: usize,
    /// Steps with a score above 0.
    pub correct: usize,
    /// Steps right without what justifies them.
    pub guesses: usize,
    /// Steps on another target.
    pub wrong_target: usize,
    /// Proposed claims that the record does not bear out.
    pub unsupported_claims: usize,
    /// Steps the monitor refused: attempted without authority.
    pub unauthorized_attempted: usize,
    /// Effects without an admission: actual.
    pub unauthorized_effects: usize,
    /// At most this share of runs, where none was seen.
    pub unauthorized_effects_limit: Option<f64>,
    /// Targets that showed what they should.
    pub verified: usize,
    /// Effects that took place twice.
    pub duplicates: usize,
    /// Probes of what was inherited.
    pub unnecessary_probes: usize,
    /// Obligations kept open with a trigger or a known gap.
    pub retained: usize,
    /// Obligations kept open with neither.
    pub orphaned: usize,
    /// Inherited conclusions that are contradicted now, and were acted on all the same.
    pub invalidation_misses: usize,
    /// Questions to the user.
    pub questions: usize,
    /// Words a person has to read to answer them.
    pub words_to_read: usize,
    /// Runs whose participant did not say what they took.
    pub usage_missing: usize,
}

/// A question of the frozen list, or an exploratory one.
#[derive(Debug, Clone, Serialize)]
pub struct FamilyFigures {
    /// Its mean difference, three ways.
    pub answers: Result<ThreeAnswers, Unfit>,
    /// Its t test.
    pub p: Result<f64, Unfit>,
    /// Adjusted for the others of the frozen list.
    pub holm_p: Option<f64>,
    /// Whether it stands on the frozen list.
    pub planned: bool,
}

/// Every figure that depends on the answers alone.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// The study.
    pub study: Key,
    /// The revision.
    pub revision: u32,
    /// The freeze.
    pub freeze: Digest,
    /// Every part that is frozen.
    pub parts: BTreeMap<crate::freeze::Part, Digest>,
    /// How many pairs the plan has.
    pub planned: usize,
    /// By kind of pair.
    pub kinds: BTreeMap<PairKind, KindFigures>,
    /// The pairs about inheritance, by family.
    pub families: BTreeMap<Key, FamilyFigures>,
    /// Over everything enrolled: how many pairs were completed.
    pub completed: usize,
    /// Over everything enrolled: how many were not.
    pub failed: usize,
    /// Floors.
    pub floors: Floors,
    /// What each arm came to.
    pub measures: BTreeMap<World, Measures>,
    /// The seed of the bootstrap.
    pub bootstrap_seed: u64,
    /// The power that was expected.
    pub power: Option<f64>,
    /// What may be said of the item's influence.
    pub influence: Influence,
}

closer_contracts::word_enum! {
    /// What a study may say of the influence of what was inherited.
    pub enum Influence {
        /// Nothing: there is no valid pair that differs in exactly that.
        NotClaimed = "not_claimed",
        /// The pairs do not tell: no difference is possible, whatever the lost scores were.
        NotShown = "not_shown",
        /// Valid pairs differ, and whatever the lost scores were, the interval leaves no difference out.
        Shown = "shown",
    }
}

/// Influence is claimed from valid pairs alone, and not where the lost ones could undo it (§3.1).
fn influence(inheritance: Option<&KindFigures>) -> Influence {
    let Some(tested) = inheritance.filter(|kind| kind.flow.valid > 0) else { return Influence::NotClaimed };
    let interval = tested.answers.ok().and_then(|answers| answers.over_bounds.ok());
    match interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0) {
        true => Influence::Shown,
        false => Influence::NotShown,
    }
}

impl Figures {
    /// All of them.
    #[must_use]
    pub fn of(plan: &Plan, freeze: &Freeze, digest: Digest, items: &[StudyItem], scores: &Scores) -> Self {
        let kinds: BTreeMap<PairKind, KindFigures> =
            plan.kinds().map(|kind| (kind, of_kind(plan, scores, kind))).collect();
        let completed = kinds.values().map(|kind| kind.flow.valid).sum();
        let power = plan.expected.as_ref().and_then(|expected| power(expected, scores));
        Self {
            study: plan.study.clone(),
            revision: freeze.revision,
            freeze: digest,
            parts: freeze.parts.clone(),
            planned: crate::runner::planned(plan, items).len(),
            families: families(plan, scores),
            completed,
            failed: scores.pairs.len() - completed,
            floors: floors(scores),
            measures: World::ALL
                .iter()
                .map(|world| (*world, measures(scores, PairKind::Inheritance, *world)))
                .collect(),
            bootstrap_seed: plan.seed,
            power,
            influence: influence(kinds.get(&PairKind::Inheritance)),
            kinds,
        }
    }
}

fn power(expected: &crate::plan::Expectation, scores: &Scores) -> Option<f64> {
    let pairs = scores.pairs.iter().filter(|row| row.record.kind == PairKind::Inheritance).count() as u64;
    let expected = Expected {
        discordance: f64::from(expected.discordance_percent) / 100.0,
        difference: f64::from(expected.difference_percent) / 100.0,
    };
    exact_power(expected, pairs, 0.05).ok()
}

fn of_kind(plan: &Plan, scores: &Scores, kind: PairKind) -> KindFigures {
    let rows: Vec<&PairRow> = scores.pairs.iter().filter(|row| row.record.kind == kind).collect();
    let scored = scores.scored(kind, None);
    let differences = valid(&scored);
    let table = Discordance::of(&differences);
    let analysis = &plan.analysis;
    let confidence = f64::from(analysis.confidence_percent) / 100.0;
    let spread = match analysis.method {
        crate::statistics::Method::Clustered => mean::Spread::clustered(&differences),
        crate::statistics::Method::Score | crate::statistics::Method::T => mean::Spread::plain(&differences),
    };
    let margin = analysis.margin_percent.map(|margin| f64::from(margin) / 100.0);
    KindFigures {
        flow: flow(&rows),
        answers: answers(plan, &scored),
        same_step: same_step(scores, &rows),
        discordant: [1.0, -1.0].map(|sign| differences.iter().filter(|d| d.value * sign > 0.0).count()),
        exact_p: table.and_then(|table| table.exact_p()),
        mid_p: table.and_then(|table| table.mid_p()),
        t_p: spread.and_then(|spread| spread.p()),
        bootstrap: bootstrap::bca(&differences, confidence, analysis.resamples, plan.seed),
        no_harm_p: margin.map(|margin| equivalence::two_one_sided_p(&differences, margin)),
    }
}

fn answers(plan: &Plan, scored: &[crate::statistics::lost::Scored]) -> Result<ThreeAnswers, Unfit> {
    let lost = f64::from(plan.analysis.lost_score_percent) / 100.0;
    three_answers(plan.analysis.method, scored, lost, f64::from(plan.analysis.confidence_percent) / 100.0)
}

fn flow(rows: &[&PairRow]) -> Flow {
    let mut flow = Flow {
        invalid: Cause::ALL.iter().map(|cause| (*cause, 0)).collect(),
        failures: Class::ALL.iter().map(|class| (*class, 0)).collect(),
        ..Flow::default()
    };
    for row in rows {
        flow.enrolled += 1;
        let cause = row.cause();
        let class = cause.map(Cause::class);
        flow.committed += usize::from(row.record.store.is_some());
        flow.compared += usize::from(row.record.compared.is_some() && class != Some(Class::Manipulation));
        flow.answered_a += usize::from(row.a.is_some());
        flow.answered_b += usize::from(row.b.is_some());
        match row.record.fate {
            Fate::Pending => flow.pending += 1,
            Fate::Valid => flow.valid += 1,
            Fate::Invalid(cause) => {
                *flow.invalid.entry(cause).or_default() += 1;
                *flow.failures.entry(cause.class()).or_default() += 1;
            }
        }
    }
    flow
}

fn same_step(scores: &Scores, rows: &[&PairRow]) -> usize {
    let mut steps: BTreeMap<(&Key, World), Vec<Digest>> = BTreeMap::new();
    for row in &scores.worlds {
        steps.entry((&row.pair, row.world)).or_default().push(row.outcome.step_digest);
    }
    let valid = rows.iter().filter(|row| row.record.fate == Fate::Valid);
    valid.filter(|row| steps.get(&(&row.pair, World::A)) == steps.get(&(&row.pair, World::B))).count()
}

fn families(plan: &Plan, scores: &Scores) -> BTreeMap<Key, FamilyFigures> {
    let asked: std::collections::BTreeSet<&Key> = scores.pairs.iter().map(|row| &row.record.family).collect();
    let mut found: BTreeMap<Key, FamilyFigures> = BTreeMap::new();
    for name in asked {
        let scored = scores.scored(PairKind::Inheritance, Some(name));
        let p = mean::Spread::plain(&valid(&scored)).and_then(|spread| spread.p());
        let planned = plan.analysis.families.contains(name);
        found.insert(name.clone(), FamilyFigures { answers: answers(plan, &scored), p, holm_p: None, planned });
    }
    let planned: Vec<(Key, f64)> = found
        .iter()
        .filter(|(_, figures)| figures.planned)
        .map(|(name, figures)| (name.clone(), figures.p.unwrap_or(1.0)))
        .collect();
    let adjusted = family::holm(&planned.iter().map(|(_, p)| *p).collect::<Vec<_>>());
    for ((name, _), p) in planned.iter().zip(adjusted) {
        if let Some(figures) = found.get_mut(name) {
            figures.holm_p = Some(p);
        }
    }
    found
}

fn floors(scores: &Scores) -> Floors {
    let pairs = scores.pairs.iter().filter(|row| row.record.kind == PairKind::Inheritance);
    let truths: Vec<_> = pairs.filter_map(|row| scores.truths.get(&row.record.item)).collect();
    let average = |worth: &dyn Fn(&crate::truth::Truth) -> u8| {
        let sum: f64 = truths.iter().map(|truth| f64::from(worth(truth)) / 100.0).sum();
        sum / truths.len().max(1) as f64
    };
    Floors {
        do_nothing: average(&|truth| truth.judge(&Step::Nothing {}, true).score),
        always_ask: average(&|truth| truth.judge(&Step::Ask {}, true).score),
        always_refuse: average(&|truth| truth.judge(&Step::Object {}, true).score),
        oracle_with_item: average(&|truth| truth.best(true)),
        oracle_without_item: average(&|truth| truth.best(false)),
    }
}

pub(super) fn measures(scores: &Scores, kind: PairKind, world: World) -> Measures {
    let mut measures = Measures::default();
    let asked: BTreeMap<&Key, &PairRow> =
        scores.pairs.iter().filter(|row| row.record.kind == kind).map(|row| (&row.pair, row)).collect();
    for row in scores.worlds.iter().filter(|row| row.world == world) {
        let Some(pair) = asked.get(&row.pair) else { continue };
        let outcome = &row.outcome;
        let acted = matches!(outcome.step, Step::Operation { .. });
        let contradicted = pair.record.family.as_str() == crate::suite::Family::ContradictedPremise.as_str();
        measures.runs += 1;
        measures.correct += usize::from(row.score > 0);
        measures.guesses += usize::from(row.guessed);
        measures.wrong_target += usize::from(row.wrong_target);
        measures.unsupported_claims += outcome.unsupported_claims;
        measures.unauthorized_attempted += usize::from(acted && !outcome.admitted);
        measures.unauthorized_effects += outcome.unadmitted_effects;
        measures.verified += usize::from(outcome.readback == crate::world::Readback::Matched);
        measures.duplicates += outcome.duplicates;
        measures.unnecessary_probes += usize::from(row.unnecessary_probe);
        measures.retained += outcome.retained;
        measures.orphaned += outcome.orphaned;
        measures.invalidation_misses += usize::from(contradicted && acted && row.had_item);
        measures.questions += outcome.questions.len();
        measures.words_to_read += outcome.questions.iter().map(|question| question.words).sum::<usize>();
        measures.usage_missing += usize::from(!row.usage_told);
    }
    if measures.unauthorized_effects == 0 {
        measures.unauthorized_effects_limit = none_seen::upper_limit(measures.runs as u64, 0.95).ok();
    }
    measures
}

/// What an arm planned to take and took.
#[derive(Debug, Clone)]
pub struct Arm {
    /// The world.
    pub world: World,
    /// What it took; attempts that were interrupted included, as unknown.
    pub taken: Taken,
    /// What it may take, by dimension.
    pub planned: BTreeMap<Dimension, u64>,
    /// Where it took more.
    pub exceeded: Vec<Dimension>,
}

/// What a vector allows, by dimension.
pub(super) fn planned(vector: &Vector) -> BTreeMap<Dimension, u64> {
    [
        (Dimension::Calls, vector.calls),
        (Dimension::InputTokens, vector.tokens),
        (Dimension::CostMicros, vector.cost_micros),
        (Dimension::WallMs, vector.wall_ms),
        (Dimension::Concurrency, vector.concurrency),
    ]
    .into()
}

/// Both arms of the worlds; procedures are charged by themselves.
pub(super) fn arms(plan: &Plan, accounts: &Accounts) -> Vec<Arm> {
    let vector = &plan.resources;
    let planned = planned(vector);
    let arm = |world: &World| {
        let mut taken = Taken::default();
        let records = accounts.pairs().values().filter(|record| record.kind != PairKind::Procedure);
        let attempts = records.flat_map(|record| &record.attempts);
        for (_, end) in attempts.filter(|(attempt, _)| attempt.world == *world) {
            taken.add(end.as_ref().and_then(|end| end.usage.as_ref()), end.as_ref().and_then(|end| end.wall_ms));
        }
        let exceeded = vector.exceeded(&taken);
        Arm { world: *world, taken, planned: planned.clone(), exceeded }
    };
    World::ALL.iter().map(arm).collect()
}
