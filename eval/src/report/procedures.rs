//! Two procedures side by side: what they may be called, what each came to, what it took, and who stopped what. Spec: §10.1, §11.

use super::figures::{self, Measures};
use super::tables::{both, usage_fields};
use super::{Material, NotReported};
use crate::accounts::{Accounts, Call, Cause, Fate, PairRecord, World};
use crate::bundle::OnTheWay;
use crate::comparison::{self, Comparison, NotComparable, Protection, StoppedBy};
use crate::effort::{self, ArmEffort, Touch};
use crate::file;
use crate::offering::{Measured, Observed};
use crate::plan::PairKind;
use crate::procedure::{DeclaredArm, Procedures};
use crate::resource::{Dimension, Taken, Usage};
use crate::score::{Scores, WorldRow};
use crate::step::Step;
use crate::truth::Truth;
use crate::world::Readback;
use closer_contracts::id::{Key, ObligationId};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What people were needed for, one [`Touch`] a line; beside the report, where somebody recorded it.
const EFFORT: &str = "effort.jsonl";

/// Every figure of a comparison that depends on the answers alone.
#[derive(Debug, Clone, Serialize)]
pub struct ProcedureFigures {
    /// The arms' names, world A's first.
    pub arms: [Key; 2],
    /// What the comparison may be called, or every reason why none is made.
    pub comparison: Result<Comparison, Vec<NotComparable>>,
    /// Valid pairs of the mechanism test that came before it; none where it was not completed.
    pub mechanism_valid: Option<usize>,
    /// What each arm's runs came to: justified continuation, and what they ask of the user.
    pub measures: [Measures; 2],
    /// Who stopped what should not take effect.
    pub protection: [Protection; 2],
    /// What the user had to do; unknown where nobody recorded it.
    pub effort: Option<[ArmEffort; 2]>,
    /// Cases in which the user got a step or question worth having that they did not have already.
    pub gained: [usize; 2],
    /// The measures of the offering that the plan names.
    pub offering: Vec<Measured>,
}

/// What an arm took, and for what.
#[derive(Debug, Clone)]
pub struct Charged {
    /// The arm.
    pub arm: Key,
    /// To whom it is charged: `roles`, `coordination`, `all`.
    pub charge: &'static str,
    /// What was taken.
    pub taken: Taken,
    /// What the arm may take, by dimension; of the whole alone.
    pub planned: BTreeMap<Dimension, u64>,
}

/// One case of one arm.
#[derive(Debug, Clone)]
struct Case<'a> {
    row: &'a WorldRow,
    record: &'a PairRecord,
    truth: &'a Truth,
    stopped_by: Option<StoppedBy>,
}

/// What a report has of a comparison.
pub(super) struct Told {
    pub(super) figures: ProcedureFigures,
    pub(super) charged: Vec<Charged>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

/// Everything there is to tell where the plan compares procedures.
pub(super) fn told(material: &Material, revision: &Path) -> Result<Option<Told>, NotReported> {
    let Material { plan, items, accounts, scores, .. } = material;
    let Some(procedures) = &plan.procedures else { return Ok(None) };
    let unwritable = |error: &dyn std::fmt::Display| NotReported::Unwritable(error.to_string());
    let tested = accounts.tested();
    // The build that ran it is the one that entered the test: another one would not have gone on.
    let build = tested.as_ref().map_or_else(|| closer_contracts::Digest::of(b""), |test| test.build);
    let comparison = procedures.compared(plan, items, build, tested.as_ref()).map_err(|fault| unwritable(&fault))?;
    let cases = cases(scores, &material.on_the_way);
    let touches = touches(revision)?;
    let effort = touches.map(|touches| efforts(procedures, &cases, accounts, &touches));
    let by = |world: World| cases.iter().filter(move |case| case.row.world == world);
    let worlds = [World::A, World::B];
    let minutes = |index: usize| effort.as_ref().and_then(|arms| arms.get(index)).and_then(ArmEffort::minutes);
    let observed = [
        observed(by(World::A), minutes(0), &procedures.arms[0]),
        observed(by(World::B), minutes(1), &procedures.arms[1]),
    ];
    let [a, b] = &observed;
    let figures = ProcedureFigures {
        arms: [procedures.arms[0].arm.clone(), procedures.arms[1].arm.clone()],
        comparison,
        mechanism_valid: tested.map(|test| test.valid),
        measures: worlds.map(|world| figures::measures(scores, PairKind::Procedure, world)),
        protection: worlds.map(|world| {
            let stopped: Vec<StoppedBy> = by(world).filter_map(|case| case.stopped_by).collect();
            Protection::of(&stopped)
        }),
        gained: worlds.map(|world| by(world).filter(|case| gained(case)).count()),
        offering: procedures.offering.map(|offering| offering.measured([a, b])).unwrap_or_default(),
        effort,
    };
    let json = serde_json::to_vec_pretty(&figures).map_err(|error| unwritable(&error))?;
    let charged = charged(procedures, accounts);
    let files = [("procedures.json".to_owned(), json)];
    let mut files: BTreeMap<String, Vec<u8>> = files.into();
    files.extend(both("cases", cases.iter().map(|case| case_fields(case, procedures)))?);
    files.extend(both("calls", calls(accounts).map(call_fields))?);
    files.extend(both("charges", charged.iter().flat_map(charge_fields))?);
    Ok(Some(Told { figures, charged, files }))
}

fn of_procedures(accounts: &Accounts) -> impl Iterator<Item = &PairRecord> {
    accounts.pairs().values().filter(|record| record.kind == PairKind::Procedure)
}

fn calls(accounts: &Accounts) -> impl Iterator<Item = &Call> {
    of_procedures(accounts).flat_map(|record| &record.calls)
}

fn cases<'a>(scores: &'a Scores, on_the_way: &OnTheWay) -> Vec<Case<'a>> {
    let of_procedures = scores.pairs.iter().filter(|row| row.record.kind == PairKind::Procedure);
    let records: BTreeMap<&Key, &PairRecord> = of_procedures.map(|row| (&row.pair, &row.record)).collect();
    let case = |row: &'a WorldRow| {
        let record = *records.get(&row.pair)?;
        let truth = scores.truths.get(&record.item)?;
        let thought_of = on_the_way.contains(&(row.pair.clone(), row.world, row.repeat));
        Some(Case { row, record, truth, stopped_by: stopped_by(row, truth, thought_of) })
    };
    scores.worlds.iter().filter_map(case).collect()
}

/// Who stopped it, where something could take effect that should not: the arm took such a step, or thought of one on the
/// way, or no operation at all was right.
fn stopped_by(row: &WorldRow, truth: &Truth, on_the_way: bool) -> Option<StoppedBy> {
    let none_right = !truth.steps.iter().any(|worth| matches!(worth.step, Step::Operation { .. }) && worth.score > 0);
    let is_unjustified = matches!(row.outcome.step, Step::Operation { .. }) && row.score == 0;
    match (is_unjustified, row.outcome.effects > 0) {
        (true, true) => Some(StoppedBy::Nobody),
        (true, false) => Some(StoppedBy::Finalizer),
        (false, _) if on_the_way || none_right => Some(StoppedBy::Arm),
        (false, _) => None,
    }
}

/// A step or question that is worth having, and that the user did not have already.
fn gained(case: &Case<'_>) -> bool {
    case.row.score > 0 && case.truth.user_has_it == Some(false)
}

fn observed<'a>(cases: impl Iterator<Item = &'a Case<'a>>, minutes: Option<u64>, arm: &DeclaredArm) -> Observed {
    let mut observed = Observed { minutes, setup_micros: arm.setup_micros, ..Observed::default() };
    for case in cases {
        let (row, outcome) = (case.row, &case.row.outcome);
        let acted = matches!(outcome.step, Step::Operation { .. });
        let asking_was_right = case.truth.judge(&Step::Ask {}, true).score == case.truth.best(true);
        observed.cases += 1;
        observed.lost += outcome.orphaned;
        observed.misbound += usize::from(row.wrong_target);
        observed.right += usize::from(row.score > 0);
        observed.reused += usize::from(row.score > 0 && acted && !row.unnecessary_probe);
        observed.searched_again += usize::from(row.unnecessary_probe);
        observed.assumed_silently += usize::from(acted && asking_was_right && outcome.questions.is_empty());
        observed.words_to_read += outcome.questions.iter().map(|question| question.words).sum::<usize>();
        observed.unsupported += outcome.unsupported_claims;
        observed.unreconciled += usize::from(outcome.effects > 0 && outcome.readback != Readback::Matched);
    }
    observed
}

fn touches(revision: &Path) -> Result<Option<Vec<Touch>>, NotReported> {
    let path = revision.join(EFFORT);
    match path.exists() {
        true => Ok(Some(file::lines(&path)?)),
        false => Ok(None),
    }
}

/// What each arm cost the user, over the items it was enrolled for and those it did right. A call that timed out is a
/// deadline missed.
fn efforts(procedures: &Procedures, cases: &[Case<'_>], accounts: &Accounts, touches: &[Touch]) -> [ArmEffort; 2] {
    let id = |item: &Key| ObligationId::new(item.as_str());
    let enrolled: BTreeSet<ObligationId> = of_procedures(accounts).map(|record| id(&record.item)).collect();
    let [a, b] = &procedures.arms;
    [(World::A, a), (World::B, b)].map(|(world, arm)| {
        let own: Vec<&Case<'_>> = cases.iter().filter(|case| case.row.world == world).collect();
        let right = own.iter().filter(|case| case.row.score > 0);
        let resolved: BTreeSet<ObligationId> = right.map(|case| id(&case.record.item)).collect();
        let late = calls(accounts)
            .filter(|call| call.attempt.world == world && call.end.cause == Some(Cause::TimedOut))
            .count() as u64;
        let scores: u64 = own.iter().map(|case| u64::from(case.row.score)).sum();
        let quality = u8::try_from(scores / (own.len().max(1) as u64)).unwrap_or(100);
        effort::of_arm(&arm.arm, touches, &enrolled, &resolved, late, quality)
    })
}

/// What each arm took: its roles, what handed on between them, and both together. Handing on by this program takes no call
/// and no token, which is known, and time, which is unknown where nobody saw the end of the attempt.
fn charged(procedures: &Procedures, accounts: &Accounts) -> Vec<Charged> {
    let [a, b] = &procedures.arms;
    let nothing = Usage {
        calls: Some(0),
        input_tokens: Some(0),
        output_tokens: Some(0),
        reasoning_tokens: Some(0),
        ..Usage::default()
    };
    let nothing = Usage { cached_tokens: Some(0), cost_micros: Some(0), ..nothing };
    let mut charged = Vec::new();
    for (world, arm) in [(World::A, a), (World::B, b)] {
        let taken = |call: &Call| (call.end.usage.clone(), call.end.wall_ms);
        let own = || calls(accounts).filter(|call| call.attempt.world == world);
        let roles: Vec<_> = own().filter(|call| !call.coordinates).map(taken).collect();
        let mut coordination: Vec<_> = own().filter(|call| call.coordinates).map(taken).collect();
        for record in of_procedures(accounts) {
            for (attempt, end) in record.attempts.iter().filter(|(attempt, _)| attempt.world == world) {
                let asking = record.calls.iter().filter(|call| call.attempt == *attempt);
                let asking: u64 = asking.filter_map(|call| call.end.wall_ms).sum();
                let whole = end.as_ref().and_then(|end| end.wall_ms);
                coordination.push((Some(nothing.clone()), whole.map(|whole| whole.saturating_sub(asking))));
            }
        }
        let planned = arm.resources.as_ref().map(figures::planned).unwrap_or_default();
        for (charge, taken, planned) in [
            ("roles", comparison::with_coordination(&roles, &[]), BTreeMap::new()),
            ("coordination", comparison::with_coordination(&[], &coordination), BTreeMap::new()),
            ("all", comparison::with_coordination(&roles, &coordination), planned),
        ] {
            charged.push(Charged { arm: arm.arm.clone(), charge, taken, planned });
        }
    }
    charged
}

fn case_fields(case: &Case<'_>, procedures: &Procedures) -> Vec<String> {
    let (row, [a, b]) = (case.row, &procedures.arms);
    let arm = match row.world {
        World::A => &a.arm,
        World::B => &b.arm,
    };
    let own =
        case.record.calls.iter().filter(|call| (call.attempt.world, call.attempt.repeat) == (row.world, row.repeat));
    let mut coordination = Taken::default();
    let mut roles = 0;
    for call in own.filter(|call| call.end.cause.is_none()) {
        match call.coordinates {
            true => coordination.add(call.end.usage.as_ref(), None),
            false => roles += 1,
        }
    }
    let spent = |dimension| match coordination.of(dimension) {
        total if total.told + total.unknown == 0 => "0".to_owned(),
        total => total.shown(),
    };
    let valid = case.record.fate == Fate::Valid;
    vec![
        row.pair.to_string(),
        row.world.to_string(),
        arm.to_string(),
        row.repeat.to_string(),
        valid.to_string(),
        row.outcome.step.shown(),
        row.score.to_string(),
        case.truth.user_has_it.map_or_else(|| "unknown".to_owned(), |has| has.to_string()),
        gained(case).to_string(),
        roles.to_string(),
        spent(Dimension::Calls),
        spent(Dimension::InputTokens),
        spent(Dimension::OutputTokens),
        case.stopped_by.map_or_else(String::new, |by| by.to_string()),
    ]
}

fn call_fields(call: &Call) -> Vec<String> {
    let attempt = &call.attempt;
    let mut fields = vec![
        attempt.pair.to_string(),
        attempt.world.to_string(),
        attempt.repeat.to_string(),
        attempt.attempt.to_string(),
        call.stage.to_string(),
        call.role.to_string(),
        call.coordinates.to_string(),
        call.packet.to_string(),
        call.end.cause.map_or_else(|| "counted".to_owned(), |cause| cause.to_string()),
        call.end.reason.clone().unwrap_or_default(),
        call.end.answer.map_or_else(String::new, |answer| answer.to_string()),
    ];
    fields.extend(usage_fields(&call.end));
    fields
}

fn charge_fields(charged: &Charged) -> impl Iterator<Item = Vec<String>> {
    Dimension::ALL.iter().map(|dimension| {
        let taken = charged.taken.of(*dimension);
        vec![
            charged.arm.to_string(),
            charged.charge.to_owned(),
            dimension.to_string(),
            charged.planned.get(dimension).map_or_else(String::new, ToString::to_string),
            taken.shown(),
            taken.unknown.to_string(),
        ]
    })
}
