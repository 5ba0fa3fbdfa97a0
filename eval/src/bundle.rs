//! A revision to hand on: whole, or with everything that somebody wrote withheld, so that every figure can still be made
//! again. Spec: §10.4.
//!
//! Withheld are packets, answers, items, prompts, the steps' targets and parameters, and reasons in words. Kept are the freeze,
//! the accounts with their links, the digest of every artifact, what each step was worth, and the figures. Whoever has the
//! whole revision makes the same bundle from it, byte by byte, and so shows that nothing else was changed.

use crate::accounts::{Accounts, PairRecord, World};
use crate::artifacts::Artifacts;
use crate::file::{self, Misfit};
use crate::item::{Conclusion, StudyItem};
use crate::participant::{Floor, Participant};
use crate::plan::Plan;
use crate::report::{self, Material, NotReported};
use crate::runner::ACCOUNTS;
use crate::score::{PairRow, Scores, WorldRow};
use crate::statistics::repeats;
use crate::step::Step;
use crate::truth::Truth;
use closer_contracts::Digest;
use closer_contracts::id::Key;
use closer_contracts::refs::{Parameters, Plain, Target};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The file by which a redacted bundle is known; it holds what the figures are made from.
pub const KEPT: &str = "redacted.json";
/// The digest of every artifact that was withheld, one a line.
const DIGESTS: &str = "digests.jsonl";
/// What stands in the place of what was withheld.
const WITHHELD: &str = "withheld";

/// A stage of a procedure in which an operation was proposed that nothing justifies: pair, world and repeat.
pub type OnTheWay = BTreeSet<(Key, World, u32)>;

/// What the figures of a redacted bundle are made from.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// The plan, without who was asked and what they were asked.
    plan: Plan,
    /// The items, without what they say.
    items: Vec<StudyItem>,
    /// Every run that counts, its step without target and parameters.
    worlds: Vec<WorldRow>,
    /// What steps are worth, without their targets and parameters.
    truths: BTreeMap<Key, Truth>,
    /// Where something unjustified was proposed on the way.
    on_the_way: OnTheWay,
}

/// One artifact that was withheld.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Withheld {
    digest: Digest,
    bytes: u64,
}

/// Writes a bundle of a revision into a new folder, and its report; gives the files of the report.
///
/// # Errors
/// [`NotReported`] where the revision itself cannot be reported, or the folder is there already.
pub fn bundle(revision: &Path, to: &Path, redact: bool) -> Result<usize, NotReported> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| NotReported::Misfit(Misfit::Unreadable { path, source })
    };
    std::fs::create_dir(to).map_err(io(to))?;
    match redact {
        true => redacted(revision, to)?,
        false => {
            for name in [ACCOUNTS, "freeze.json", "interpretations.jsonl", "effort.jsonl", "artifacts", "sources"] {
                let from = revision.join(name);
                if from.exists() {
                    copy(&from, &to.join(name)).map_err(io(&from))?;
                }
            }
        }
    }
    report::write(to)?;
    report::verify(to)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return std::fs::copy(from, to).map(|_| ());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn redacted(revision: &Path, to: &Path) -> Result<(), NotReported> {
    let written = |name: &str, bytes: Vec<u8>| {
        let path = to.join(name);
        std::fs::write(&path, bytes).map_err(|source| Misfit::Unreadable { path, source })
    };
    for (name, bytes) in withheld(revision)? {
        written(&name, bytes)?;
    }
    Ok(())
}

/// The files of a redacted bundle, its report aside.
fn withheld(revision: &Path) -> Result<BTreeMap<String, Vec<u8>>, NotReported> {
    let unwritable = |error: serde_json::Error| NotReported::Unwritable(error.to_string());
    let material = report::material(revision)?;
    let kept = Kept {
        plan: plan(material.plan),
        items: material.items.into_iter().map(item).collect(),
        worlds: material.scores.worlds.into_iter().map(row).collect(),
        truths: material.scores.truths.into_iter().map(|(name, told)| (name, truth(told))).collect(),
        on_the_way: material.on_the_way,
    };
    let mut files = BTreeMap::new();
    files.insert(KEPT.to_owned(), serde_json::to_vec_pretty(&kept).map_err(unwritable)?);
    files.insert("freeze.json".to_owned(), file::bytes(&revision.join("freeze.json"))?);
    files.insert(ACCOUNTS.to_owned(), Accounts::without_words(&revision.join(ACCOUNTS))?);
    let mut digests = Vec::new();
    for (digest, bytes) in artifacts(&revision.join("artifacts"))? {
        digests.extend(serde_json::to_vec(&Withheld { digest, bytes }).map_err(unwritable)?);
        digests.push(b'\n');
    }
    files.insert(DIGESTS.to_owned(), digests);
    let effort = revision.join("effort.jsonl");
    if effort.exists() {
        files.insert("effort.jsonl".to_owned(), file::bytes(&effort)?);
    }
    Ok(files)
}

/// Every artifact of a folder with the size it has, in order.
fn artifacts(folder: &Path) -> Result<BTreeMap<Digest, u64>, Misfit> {
    let io = |source| Misfit::Unreadable { path: folder.to_owned(), source };
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let bytes = file::bytes(&path)?;
            found.insert(Digest::of(&bytes), bytes.len() as u64);
        }
    }
    Ok(found)
}

/// What the figures of a redacted bundle are made from, checked against its accounts.
///
/// # Errors
/// [`NotReported`].
pub(crate) fn material(folder: &Path) -> Result<Material, NotReported> {
    let path = folder.join(KEPT);
    let read = |path: &Path, bytes: &[u8]| -> Result<Kept, Misfit> {
        serde_json::from_slice(bytes).map_err(|error| Misfit::at(path, error.line(), "kept", error.to_string()))
    };
    let kept = read(&path, &file::bytes(&path)?)?;
    let accounts = Accounts::read_redacted(&folder.join(ACCOUNTS))?;
    let path = folder.join(DIGESTS);
    let mut known = BTreeSet::new();
    for (index, line) in
        file::bytes(&path)?.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty())
    {
        let withheld: Withheld =
            serde_json::from_slice(line).map_err(|error| Misfit::at(&path, index + 1, "digest", error.to_string()))?;
        known.insert(withheld.digest);
    }
    if let Some(missing) = accounts.pairs().values().flat_map(cited).find(|digest| !known.contains(digest)) {
        let reason = format!("the accounts name {missing}, which is not listed");
        return Err(Misfit::at(&path, known.len(), "digest", reason).into());
    }
    let scores = scores(&kept.plan, &accounts, kept.worlds, kept.truths);
    let (freeze, digest) = report::freeze_of(folder, &accounts)?;
    Ok(Material {
        plan: kept.plan,
        freeze,
        digest,
        items: kept.items,
        accounts,
        scores,
        on_the_way: kept.on_the_way,
        artifacts: None,
    })
}

fn cited(record: &PairRecord) -> Vec<Digest> {
    let mut cited: Vec<Digest> =
        record.compared.iter().flat_map(|[a, b, difference, _]| [*a, *b, *difference]).collect();
    let ends =
        record.attempts.iter().filter_map(|(_, end)| end.as_ref()).chain(record.calls.iter().map(|call| &call.end));
    cited.extend(ends.flat_map(|end| [end.answer, end.outcome]).flatten());
    cited.extend(record.calls.iter().map(|call| call.packet));
    cited
}

/// Pairs are scored again from their runs, as they were first.
fn scores(plan: &Plan, accounts: &Accounts, worlds: Vec<WorldRow>, truths: BTreeMap<Key, Truth>) -> Scores {
    let mut scored: BTreeMap<(&Key, World), Vec<f64>> = BTreeMap::new();
    for row in &worlds {
        scored.entry((&row.pair, row.world)).or_default().push(f64::from(row.score) / 100.0);
    }
    let mean = |pair: &Key, world: World| {
        let of_repeats = scored.get(&(pair, world)).filter(|scores| scores.len() == plan.repeats as usize)?;
        repeats::mean(of_repeats)
    };
    let pairs = accounts.pairs().iter().map(|(pair, record)| PairRow {
        pair: pair.clone(),
        record: record.clone(),
        a: mean(pair, World::A),
        b: mean(pair, World::B),
    });
    Scores { pairs: pairs.collect(), worlds, truths }
}

/// The files in which a bundle is not what its revision gives: redacted anew, and compared byte by byte.
///
/// # Errors
/// [`NotReported`].
pub fn differs(revision: &Path, bundle: &Path) -> Result<Vec<String>, NotReported> {
    let made = withheld(revision)?;
    let differs = made.iter().filter(|(name, bytes)| std::fs::read(bundle.join(name)).ok().as_ref() != Some(bytes));
    Ok(differs.map(|(name, _)| name.clone()).collect())
}

fn target() -> Target {
    Target { r#type: WITHHELD.into(), account: WITHHELD.into(), address: WITHHELD.into() }
}

fn step(step: Step) -> Step {
    match step {
        Step::Operation { .. } => {
            Step::Operation { operation: WITHHELD.into(), target: target(), parameters: Parameters::new() }
        }
        Step::Ask {} | Step::Gap {} | Step::Object {} | Step::Nothing {} => step,
    }
}

fn row(mut row: WorldRow) -> WorldRow {
    row.outcome.step = step(row.outcome.step);
    row
}

fn truth(truth: Truth) -> Truth {
    let steps = truth.steps.into_iter().map(|worth| crate::truth::Worth { step: step(worth.step), ..worth });
    Truth { steps: steps.collect(), ..truth }
}

fn conclusion(_: Conclusion) -> Conclusion {
    Conclusion { predicate: WITHHELD.into(), object: Plain(serde_json::Value::Null), evidence: Vec::new() }
}

fn item(item: StudyItem) -> StudyItem {
    StudyItem {
        claim: conclusion(item.claim),
        question: WITHHELD.into(),
        target: target(),
        inputs: Parameters::new(),
        operations: Vec::new(),
        placebo: item.placebo.map(conclusion),
        stale: item.stale.map(conclusion),
        ..item
    }
}

fn plan(mut plan: Plan) -> Plan {
    plan.participant = Participant::Floor { floor: Floor::DoNothing };
    (plan.items, plan.truth) = (PathBuf::from(WITHHELD), PathBuf::from(WITHHELD));
    for arm in plan.procedures.iter_mut().flat_map(|procedures| &mut procedures.arms) {
        arm.participant = None;
        arm.stages.iter_mut().for_each(|stage| stage.asks = None);
    }
    plan
}

/// Whether a folder is a redacted bundle.
#[must_use]
pub fn is_redacted(folder: &Path) -> bool {
    folder.join(KEPT).exists()
}

/// Where a procedure's stages proposed an operation that nothing justifies.
///
/// # Errors
/// [`Misfit`] where an answer is not what it was.
pub(crate) fn on_the_way(scores: &Scores, artifacts: &Artifacts) -> Result<OnTheWay, Misfit> {
    let mut found = OnTheWay::new();
    for row in &scores.pairs {
        let Some(truth) = scores.truths.get(&row.record.item) else { continue };
        for call in row.record.calls.iter().filter(|call| call.end.cause.is_none()) {
            let Some(answer) = call.end.answer else { continue };
            let answered: crate::participant::Answered = artifacts.get(answer)?;
            let step = Step::of(&answered.result).ok();
            let unjustified =
                |step: &Step| matches!(step, Step::Operation { .. }) && truth.judge(step, true).score == 0;
            if step.as_ref().is_some_and(unjustified) {
                found.insert((row.pair.clone(), call.attempt.world, call.attempt.repeat));
            }
        }
    }
    Ok(found)
}
