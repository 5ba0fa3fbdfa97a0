//! Scores sealed outputs against the truth, which is opened here and nowhere else. Spec: §10.2, §10.3.

use crate::accounts::{Accounts, AttemptEnd, Cause, Fate, PairRecord, World};
use crate::artifacts::Artifacts;
use crate::file::Misfit;
use crate::item::StudyItem;
use crate::plan::{PairKind, Plan};
use crate::statistics::lost::Scored;
use crate::statistics::repeats;
use crate::step::Step;
use crate::truth::{self, Truth};
use crate::world::Outcome;
use closer_contracts::id::Key;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Why outputs could not be scored.
#[derive(Debug, thiserror::Error)]
pub enum NotScored {
    /// Outputs may still come in.
    #[error("the outputs are not sealed yet; the truth stays closed until they are")]
    NotSealed,
    /// A file does not fit.
    #[error(transparent)]
    Misfit(#[from] Misfit),
}

/// One run of one world.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorldRow {
    /// The pair.
    pub pair: Key,
    /// The world.
    pub world: World,
    /// Which repeat.
    pub repeat: u32,
    /// Whether it had the item.
    pub had_item: bool,
    /// The step's score in percent.
    pub score: u8,
    /// Whether it was right without what justifies it.
    pub guessed: bool,
    /// Whether it was about another target than the item's.
    pub wrong_target: bool,
    /// Whether it looked for what was inherited already.
    pub unnecessary_probe: bool,
    /// Whether the participant said what it took.
    pub usage_told: bool,
    /// What became of it.
    pub outcome: Outcome,
}

/// One enrolled pair.
#[derive(Debug, Clone)]
pub struct PairRow {
    /// Its name.
    pub pair: Key,
    /// The account of it.
    pub record: PairRecord,
    /// The first world's score, 0 to 1, its repeats averaged; none where it was lost.
    pub a: Option<f64>,
    /// The second world's.
    pub b: Option<f64>,
}

impl PairRow {
    /// Why it is invalid.
    #[must_use]
    pub const fn cause(&self) -> Option<Cause> {
        match self.record.fate {
            Fate::Invalid(cause) => Some(cause),
            Fate::Pending | Fate::Valid => None,
        }
    }
}

/// A study, scored.
#[derive(Debug, Clone)]
pub struct Scores {
    /// Every enrolled pair, in order of their names.
    pub pairs: Vec<PairRow>,
    /// Every run of a world that counts.
    pub worlds: Vec<WorldRow>,
    /// What is held out.
    pub truths: BTreeMap<Key, Truth>,
}

/// Whether a world of a pair has the item that the truth is about. A placebo is none, and neither is what was superseded.
const fn has_item(kind: PairKind, world: World) -> bool {
    match (kind, world) {
        (PairKind::Inheritance, World::A) | (PairKind::Same | PairKind::Procedure, World::A | World::B) => true,
        (PairKind::Inheritance, World::B) | (PairKind::Placebo | PairKind::Stale, World::A | World::B) => false,
    }
}

/// Scores a study.
///
/// # Errors
/// [`NotScored`].
pub fn score(
    plan: &Plan,
    items: &[StudyItem],
    truth: &Path,
    accounts: &Accounts,
    artifacts: &Artifacts,
) -> Result<Scores, NotScored> {
    if !accounts.is_sealed() {
        return Err(NotScored::NotSealed);
    }
    let truths = truth::read(truth, items)?;
    let items: BTreeMap<&Key, &StudyItem> = items.iter().map(|item| (&item.item, item)).collect();
    let mut scores = Scores { pairs: Vec::new(), worlds: Vec::new(), truths };
    for (pair, record) in accounts.pairs() {
        let known = items.get(&record.item).zip(scores.truths.get(&record.item));
        let mut means = [None, None];
        for (world, mean) in World::ALL.iter().zip(&mut means) {
            let Some((item, truth)) = known else { continue };
            let mut of_repeats = Vec::new();
            for repeat in 1..=plan.repeats {
                if let Some((_, end)) = record.counted(*world, repeat)
                    && let Some(row) = row(pair, record.kind, *world, repeat, end, item, truth, artifacts)?
                {
                    of_repeats.push(f64::from(row.score) / 100.0);
                    scores.worlds.push(row);
                }
            }
            // A world of which a repeat was lost is not averaged over the rest: what was lost may not be like it.
            *mean = repeats::mean(&of_repeats).filter(|_| of_repeats.len() == plan.repeats as usize);
        }
        let [a, b] = means;
        scores.pairs.push(PairRow { pair: pair.clone(), record: record.clone(), a, b });
    }
    Ok(scores)
}

#[expect(clippy::too_many_arguments, reason = "one row is told by all of these, and each of them is another thing")]
fn row(
    pair: &Key,
    kind: PairKind,
    world: World,
    repeat: u32,
    end: &AttemptEnd,
    item: &StudyItem,
    truth: &Truth,
    artifacts: &Artifacts,
) -> Result<Option<WorldRow>, Misfit> {
    let Some(outcome) = end.outcome else { return Ok(None) };
    let outcome: Outcome = artifacts.get(outcome)?;
    let had_item = has_item(kind, world);
    let verdict = truth.judge(&outcome.step, had_item);
    let (wrong_target, probe) = match &outcome.step {
        Step::Operation { operation, target, .. } => {
            let allowed = item.operations.iter().find(|allowed| allowed.operation.as_str() == operation.as_str());
            (*target != item.target, allowed.is_some_and(|allowed| allowed.probe))
        }
        Step::Ask {} | Step::Gap {} | Step::Object {} | Step::Nothing {} => (false, false),
    };
    Ok(Some(WorldRow {
        pair: pair.clone(),
        world,
        repeat,
        had_item,
        score: verdict.score,
        guessed: verdict.guessed,
        wrong_target,
        unnecessary_probe: probe && had_item && verdict.score == 0,
        usage_told: end.usage.is_some(),
        outcome,
    }))
}

impl Scores {
    /// The pairs of a kind as the statistics take them; an invalid pair has lost what its fate says.
    #[must_use]
    pub fn scored(&self, kind: PairKind, family: Option<&Key>) -> Vec<Scored> {
        let of_kind = self.pairs.iter().filter(|row| row.record.kind == kind);
        let of_family = of_kind.filter(|row| family.is_none_or(|family| row.record.family == *family));
        let mut clusters: BTreeMap<&Key, usize> = BTreeMap::new();
        of_family
            .map(|row| {
                let next = clusters.len();
                let cluster = *clusters.entry(&row.record.cluster).or_insert(next);
                Scored { first: row.a, second: row.b, cluster }
            })
            .collect()
    }
}
