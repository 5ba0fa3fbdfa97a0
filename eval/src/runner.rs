//! Runs a study: enrols pairs in the plan's order, brings each to its fate, seals the outputs. Spec: §10.1.
//!
//! Whatever is done is in the accounts before anything follows from it. A run that was killed goes on where the accounts
//! end: an answer that is in is not asked for again. Nothing here opens the truth.

mod pair;
mod procedure;

use crate::accounts::{AccountError, Accounts, Cause, Entry, Fate, World};
use crate::artifacts::Artifacts;
use crate::comparison::{MechanismTest, NotComparable};
use crate::file::Misfit;
use crate::freeze::{self, NotFrozen};
use crate::item::{self, StudyItem};
use crate::participant::Launch;
use crate::plan::{PairKind, Plan};
use crate::resource::Taken;
use crate::statistics::bootstrap::Random;
use closer_contracts::Digest;
use closer_contracts::canonical::digest_of;
use closer_contracts::fault::Fault;
use closer_contracts::id::Key;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why a study could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no freeze that holds.
    #[error(transparent)]
    NotFrozen(#[from] NotFrozen),
    /// A file does not fit.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// The accounts could not be kept.
    #[error(transparent)]
    Accounts(#[from] AccountError),
    /// The plan's procedures may not be compared.
    #[error("the procedures may not be compared: {}", .0.iter().map(|reason| reason.as_str()).collect::<Vec<_>>().join(", "))]
    NotComparable(Vec<NotComparable>),
    /// Something has no canonical form.
    #[error("{0}")]
    Fault(#[from] Fault),
    /// A folder could not be made or removed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// How a run is made; nothing of it changes what comes out.
#[derive(Debug, Clone)]
pub struct Options {
    /// What starts a participant of our own.
    pub own: Vec<OsString>,
    /// The build that runs it: procedures are compared by the build that the mechanism was tested with.
    pub build: Digest,
    /// The most money, in millionths: no pair is enrolled beyond it.
    pub cost_micros_max: Option<u64>,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Pairs that have their fate.
    pub settled: usize,
    /// Pairs that the plan has.
    pub planned: usize,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The revision's folder.
    pub folder: PathBuf,
    /// Pairs of the plan.
    pub planned: usize,
    /// Pairs that were enrolled.
    pub enrolled: usize,
    /// Pairs of the plan that a cap, or a mechanism that was not shown, kept from being enrolled.
    pub not_enrolled: usize,
}

/// One pair of the plan.
#[derive(Debug, Clone)]
pub struct Planned<'a> {
    /// Its name.
    pub pair: Key,
    /// Its item.
    pub item: &'a StudyItem,
    /// What its worlds differ in.
    pub kind: PairKind,
}

/// Every pair of a plan, in the order in which they are enrolled: random, by the plan's seed; those that compare procedures
/// come after all others, because the mechanism is tested first.
#[must_use]
pub fn planned<'a>(plan: &Plan, items: &'a [StudyItem]) -> Vec<Planned<'a>> {
    let mut pairs = Vec::new();
    for item in items {
        for kind in plan.kinds() {
            let has_it = match kind {
                PairKind::Inheritance | PairKind::Same | PairKind::Procedure => true,
                PairKind::Placebo => item.placebo.is_some(),
                PairKind::Stale => item.stale.is_some(),
            };
            if has_it {
                pairs.push(Planned { pair: Key::new(format!("{}.{kind}", item.item)), item, kind });
            }
        }
    }
    Random::seeded(plan.seed).shuffle(&mut pairs);
    pairs.sort_by_key(|planned| planned.kind == PairKind::Procedure);
    pairs
}

/// What the threads of a run share.
struct Study<'a> {
    plan: &'a Plan,
    folder: &'a Path,
    artifacts: Artifacts,
    launch: Launch,
    /// How each arm's participant is started where procedures are compared.
    arms: [Launch; 2],
    accounts: Mutex<Accounts>,
    taken: Mutex<BTreeMap<ArmOf, Taken>>,
}

/// An arm: of the worlds that test the mechanism, or of the procedures.
type ArmOf = (bool, World);

fn arm_of(kind: PairKind, world: World) -> ArmOf {
    (kind == PairKind::Procedure, world)
}

impl Study<'_> {
    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<ArmOf, Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most calls that one pair takes where nothing is asked again.
    fn calls_of_a_pair(&self) -> u64 {
        let stages = self
            .plan
            .procedures
            .as_ref()
            .map_or(0, |procedures| procedures.arms.iter().map(|arm| arm.stages.len() as u64).sum::<u64>());
        stages.max(2).saturating_mul(u64::from(self.plan.repeats))
    }

    /// Whether another pair may take more money than the cap leaves, going by what pairs have taken so far.
    fn is_at_cap(&self, cap: Option<u64>) -> bool {
        let Some(cap) = cap else { return false };
        let taken = self.taken();
        let spent: Vec<_> = taken.values().map(|taken| taken.of(crate::resource::Dimension::CostMicros)).collect();
        let known = spent.iter().map(|total| total.known).sum::<u64>();
        let calls = spent.iter().map(|total| total.told).sum::<u64>().max(1);
        let a_pair = known.div_ceil(calls).saturating_mul(self.calls_of_a_pair());
        known.saturating_add(a_pair.saturating_mul(self.plan.resources.concurrency)) > cap
    }
}

/// The file of the accounts in a revision's folder.
pub const ACCOUNTS: &str = "accounts.jsonl";

/// Runs a plan, or goes on with it, until every pair has its fate; then seals it.
///
/// # Errors
/// [`RunError`]; what was done until then is in the accounts.
pub fn run(plan_path: &Path, options: &Options, progress: &(dyn Fn(Progress) + Sync)) -> Result<Ran, RunError> {
    let plan = Plan::read(plan_path)?;
    let folder = plan_path.parent().unwrap_or(Path::new("."));
    let (freeze, of_revision) = freeze::held(&plan, folder)?;
    let items = item::read(&folder.join(&plan.items))?;
    let pairs = planned(&plan, &items);
    let mut accounts = Accounts::open(&of_revision.join(ACCOUNTS))?;
    if accounts.opened().is_none() {
        let (study, freeze_digest) = (plan.study.clone(), digest_of(&freeze)?);
        accounts.enter(Entry::Opened { study, revision: freeze.revision, freeze: freeze_digest })?;
    }
    comparable(&plan, &items, options.build)?;
    let launched = |name: &str, participant| -> Result<Launch, RunError> {
        let declaration = of_revision.join(name);
        std::fs::write(&declaration, serde_json::to_vec(participant).unwrap_or_default())?;
        let declaration = std::path::absolute(declaration)?;
        Ok(Launch { own: options.own.clone(), folder: folder.to_owned(), declaration })
    };
    let of_arm = |world| procedure::participant(&plan, world).unwrap_or(&plan.participant);
    let study = Study {
        taken: Mutex::new(taken(&accounts)),
        plan: &plan,
        folder: &of_revision,
        artifacts: Artifacts::at(&of_revision.join("artifacts")),
        launch: launched("participant.json", &plan.participant)?,
        arms: [launched("participant-a.json", of_arm(World::A))?, launched("participant-b.json", of_arm(World::B))?],
        accounts: Mutex::new(accounts),
    };
    if !study.accounts().is_sealed() {
        let first = pairs.iter().position(|planned| planned.kind == PairKind::Procedure).unwrap_or(pairs.len());
        let (mechanism, procedures) = pairs.split_at(first);
        carry_out(&study, mechanism, options, progress, pairs.len())?;
        if !procedures.is_empty() && tested(&study, &items, options.build)? {
            carry_out(&study, procedures, options, progress, pairs.len())?;
        }
        let enrolled = study.accounts().pairs().len();
        study.accounts().enter(Entry::Sealed { enrolled })?;
    }
    let enrolled = study.accounts().pairs().len();
    Ok(Ran { folder: of_revision.clone(), planned: pairs.len(), enrolled, not_enrolled: pairs.len() - enrolled })
}

/// Refuses procedures that do not match, before anything is dispatched. Whether the mechanism was tested shows later.
fn comparable(plan: &Plan, items: &[StudyItem], build: Digest) -> Result<(), RunError> {
    let Some(procedures) = &plan.procedures else { return Ok(()) };
    let to_come = MechanismTest { build, accounts: build, valid: 1 };
    match procedures.compared(plan, items, build, Some(&to_come))? {
        Ok(_) => Ok(()),
        Err(reasons) => Err(RunError::NotComparable(reasons)),
    }
}

/// Whether the mechanism was tested by this build; what is found is entered, once.
fn tested(study: &Study<'_>, items: &[StudyItem], build: Digest) -> Result<bool, RunError> {
    let Some(procedures) = &study.plan.procedures else { return Ok(false) };
    let mut accounts = study.accounts();
    if accounts.tested().is_none() {
        let asked = accounts.pairs().values().filter(|record| record.kind == PairKind::Inheritance);
        let valid = asked.filter(|record| record.fate == Fate::Valid).count();
        accounts.enter(Entry::Tested { build, valid })?;
    }
    Ok(procedures.compared(study.plan, items, build, accounts.tested().as_ref())?.is_ok())
}

/// What was taken so far, arm by arm. What a procedure took stands with its calls.
fn taken(accounts: &Accounts) -> BTreeMap<ArmOf, Taken> {
    let mut taken: BTreeMap<ArmOf, Taken> = BTreeMap::new();
    for record in accounts.pairs().values() {
        if record.kind == PairKind::Procedure {
            for call in &record.calls {
                let arm = taken.entry(arm_of(record.kind, call.attempt.world)).or_default();
                arm.add(call.end.usage.as_ref(), call.end.wall_ms);
            }
            continue;
        }
        for (attempt, end) in &record.attempts {
            if let Some(end) = end {
                let arm = taken.entry(arm_of(record.kind, attempt.world)).or_default();
                arm.add(end.usage.as_ref(), end.wall_ms);
            }
        }
    }
    taken
}

/// As many pairs at once as the plan allows; the first error ends the run once the pairs under way have ended.
fn carry_out(
    study: &Study<'_>,
    pairs: &[Planned<'_>],
    options: &Options,
    progress: &(dyn Fn(Progress) + Sync),
    planned_in_all: usize,
) -> Result<(), RunError> {
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failure: Mutex<Option<RunError>> = Mutex::new(None);
    let work = || {
        while !stopped.load(Ordering::Relaxed) {
            let Some(planned) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            match one(study, planned, options) {
                Ok(()) => progress(settled(study, planned_in_all)),
                Err(error) => {
                    stopped.store(true, Ordering::Relaxed);
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..study.plan.resources.concurrency {
            scope.spawn(work);
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

fn settled(study: &Study<'_>, planned: usize) -> Progress {
    let accounts = study.accounts();
    Progress { settled: accounts.pairs().values().filter(|record| record.fate != Fate::Pending).count(), planned }
}

/// Enrols a pair where a cap allows it, and brings it to its fate. What is enrolled is always brought to it.
fn one(study: &Study<'_>, planned: &Planned<'_>, options: &Options) -> Result<(), RunError> {
    let known = study.accounts().pairs().get(&planned.pair).map(|record| record.fate);
    match known {
        Some(Fate::Valid | Fate::Invalid(_)) => return Ok(()),
        Some(Fate::Pending) => {}
        None => {
            if study.is_at_cap(options.cost_micros_max) {
                return Ok(());
            }
            study.accounts().enter(Entry::Enrolled {
                pair: planned.pair.clone(),
                item: planned.item.item.clone(),
                kind: planned.kind,
                family: planned.item.family.clone(),
                cluster: planned.item.cluster.clone(),
            })?;
        }
    }
    let became = pair::carry_out(study, planned)?;
    let (cause, reason): (Option<Cause>, Option<String>) = match became {
        Ok(()) => (None, None),
        Err((cause, reason)) => (Some(cause), Some(reason)),
    };
    Ok(study.accounts().enter(Entry::Settled { pair: planned.pair.clone(), cause, reason })?)
}
