//! One pair: committed, both packets made and compared, both worlds asked one right after the other.

use super::{Planned, RunError, Study, arm_of, procedure};
use crate::accounts::{Attempt, AttemptEnd, Cause, Entry, World};
use crate::item::Conclusion;
use crate::packet::Difference;
use crate::participant::{self, Answered, Asked, NoAnswer};
use crate::plan::PairKind;
use crate::statistics::bootstrap::Random;
use crate::step::Step;
use crate::store::{self, StoreFault};
use crate::world::{self, Committed, NotCommitted, OneWorld};
use closer_contracts::canonical::hash_parts;
use closer_contracts::id::ArtifactId;
use closer_contracts::work::{Work, WorkResult};
use closer_contracts::{Digest, RefusalCode};
use std::path::PathBuf;

/// Why a pair is invalid: a cause from the closed list, and words.
pub(super) type Invalid = (Cause, String);

/// Brings an enrolled pair to its fate.
pub(super) fn carry_out(study: &Study<'_>, planned: &Planned<'_>) -> Result<Result<(), Invalid>, RunError> {
    let committed = match committed(study, planned)? {
        Ok(committed) => committed,
        Err(invalid) => return Ok(Err(invalid)),
    };
    let withheld = match planned.kind {
        PairKind::Same | PairKind::Procedure => None,
        PairKind::Inheritance | PairKind::Placebo | PairKind::Stale => {
            Some(ArtifactId::new(committed.claim.claim_id.as_str()))
        }
    };
    if let Err(invalid) = compared(study, planned, &committed, withheld.as_ref())? {
        return Ok(Err(invalid));
    }
    let mut fate = Ok(());
    for repeat in 1..=study.plan.repeats {
        for world in order(study, planned, repeat) {
            // The other world is asked even so: half of a pair narrows the bounds.
            if let Err(invalid) = asked(study, planned, &committed, withheld.as_ref(), world, repeat)? {
                fate = fate.and(Err(invalid));
            }
        }
    }
    Ok(fate)
}

/// Which world is asked first, by chance that the plan's seed decides.
fn order(study: &Study<'_>, planned: &Planned<'_>, repeat: u32) -> [World; 2] {
    match Random::seeded(seed(study, planned, "order", repeat)).below(2) {
        0 => [World::A, World::B],
        _ => [World::B, World::A],
    }
}

/// A number of its own for everything that is drawn.
pub(super) fn seed(study: &Study<'_>, planned: &Planned<'_>, what: &str, repeat: u32) -> u64 {
    let parts: [&[u8]; 4] =
        [&study.plan.seed.to_be_bytes(), planned.pair.as_str().as_bytes(), what.as_bytes(), &repeat.to_be_bytes()];
    let digest = hash_parts("closer.eval.seed.v1", &parts);
    digest.raw().iter().take(8).fold(0, |seed, byte| (seed << 8) | u64::from(*byte))
}

fn conclusion<'a>(planned: &Planned<'a>) -> Option<&'a Conclusion> {
    match planned.kind {
        PairKind::Inheritance | PairKind::Same | PairKind::Procedure => Some(&planned.item.claim),
        PairKind::Placebo => planned.item.placebo.as_ref(),
        PairKind::Stale => planned.item.stale.as_ref(),
    }
}

fn folder(study: &Study<'_>, planned: &Planned<'_>) -> PathBuf {
    study.folder.join("stores").join(planned.pair.as_str())
}

/// Commits the item into a store of its own; what worlds begin from is read back from there.
fn committed(study: &Study<'_>, planned: &Planned<'_>) -> Result<Result<Committed, Invalid>, RunError> {
    let broken = |error: StoreFault| (Cause::SpaceBroken, error.to_string());
    let Some(conclusion) = conclusion(planned) else {
        return Ok(Err((Cause::SpaceBroken, "the item has no such conclusion".to_owned())));
    };
    let committed = match world::commit(planned.item, conclusion) {
        Ok(committed) => committed,
        Err(error @ NotCommitted::PromotionFailed(_)) => {
            return Ok(Err((Cause::PromotionFailed, error.to_string())));
        }
        Err(error @ NotCommitted::Broken(_)) => return Ok(Err((Cause::SpaceBroken, error.to_string()))),
    };
    let folder = folder(study, planned);
    let known = study.accounts().pairs().get(&planned.pair).and_then(|record| record.store);
    let store = match known {
        Some(store) => store,
        None => {
            // Left over from a run that was killed before it was entered.
            let _ = std::fs::remove_dir_all(&folder);
            if let Err(error) = store::write(&folder, &committed.records) {
                return Ok(Err(broken(error)));
            }
            let store = store::digest(&committed.records);
            study.accounts().enter(Entry::Committed { pair: planned.pair.clone(), store })?;
            store
        }
    };
    Ok(match store::read(&folder) {
        Ok(records) if store::digest(&records) == store => Ok(Committed { records, ..committed }),
        Ok(_) => Err((Cause::FixtureTampered, "the store does not hold what was committed".to_owned())),
        Err(error) => Err((Cause::FixtureTampered, format!("the store cannot be read: {error}"))),
    })
}

/// Makes both packets and compares them before anything is dispatched.
fn compared(
    study: &Study<'_>,
    planned: &Planned<'_>,
    committed: &Committed,
    withheld: Option<&ArtifactId>,
) -> Result<Result<(), Invalid>, RunError> {
    let begun = OneWorld::begin(planned.item, committed, None)
        .and_then(|a| Ok((a, OneWorld::begin(planned.item, committed, withheld)?)));
    let (a, b) = match begun {
        Ok(worlds) => worlds,
        Err(error) => return Ok(Err((Cause::SpaceBroken, error.to_string()))),
    };
    let claim = withheld.map(|_| &committed.claim);
    let difference = Difference::between(a.work(), b.work(), claim);
    let state = a.state_root();
    let known = study.accounts().pairs().get(&planned.pair).and_then(|record| record.compared);
    let packets = [study.artifacts.keep(a.work())?, study.artifacts.keep(b.work())?];
    let digest = study.artifacts.keep(&difference)?;
    let now = [packets[0], packets[1], digest, state];
    match known {
        Some(known) if known == now => {}
        Some(_) => return Ok(Err((Cause::FixtureTampered, "the packets are not those of before".to_owned()))),
        None => study.accounts().enter(Entry::Compared {
            pair: planned.pair.clone(),
            a: packets[0],
            b: packets[1],
            difference: digest,
            state,
        })?,
    }
    if state != b.state_root() {
        return Ok(Err((Cause::Leakage, "the worlds would be judged on two states".to_owned())));
    }
    Ok(match difference.is_only(withheld) {
        true => Ok(()),
        false => Err((Cause::Leakage, told(&difference))),
    })
}

fn told(difference: &Difference) -> String {
    let refs = |refs: &[closer_contracts::refs::ArtifactRef]| {
        refs.iter().map(|reference| reference.id.to_string()).collect::<Vec<_>>().join(" ")
    };
    format!(
        "removed: {}; added: {}; changed: {}; told in B: {}",
        refs(&difference.removed),
        refs(&difference.added),
        difference.changed.join(" "),
        difference.restated.join(" ")
    )
}

/// Asks one world, again where nothing came back and the plan allows it; an answer that is in is not asked for again.
fn asked(
    study: &Study<'_>,
    planned: &Planned<'_>,
    committed: &Committed,
    withheld: Option<&ArtifactId>,
    world: World,
    repeat: u32,
) -> Result<Result<(), Invalid>, RunError> {
    let (mut made, mut counting) = (0, 0);
    let mut last = (Cause::NoAnswer, "no attempt was made".to_owned());
    {
        let accounts = study.accounts();
        let record = accounts.pairs().get(&planned.pair);
        if record.is_some_and(|record| record.counted(world, repeat).is_some()) {
            return Ok(Ok(()));
        }
        let attempts = record.into_iter().flat_map(|record| &record.attempts);
        for (_, end) in attempts.filter(|(attempt, _)| attempt.world == world && attempt.repeat == repeat) {
            made += 1;
            let cause = end.as_ref().and_then(|end| end.cause).unwrap_or(Cause::Interrupted);
            // An attempt that nobody saw the end of is none of the participant's.
            counting += u32::from(cause != Cause::Interrupted);
            if cause != Cause::Interrupted {
                let reason = end.as_ref().and_then(|end| end.reason.clone()).unwrap_or_default();
                last = (cause, reason);
            }
        }
    }
    while counting < study.plan.retry.attempts_max && (counting == 0 || last.0.is_retryable()) {
        if used_up(study, planned.kind, world) {
            return Ok(Err((Cause::ResourcesUsedUp, "the arm has taken what its vector allows".to_owned())));
        }
        (made, counting) = (made + 1, counting + 1);
        let attempt = Attempt { pair: planned.pair.clone(), world, repeat, attempt: made };
        match once(study, planned, committed, withheld, attempt)? {
            Ok(()) => return Ok(Ok(())),
            Err(invalid) => last = invalid,
        }
    }
    Ok(Err(last))
}

/// Whether an arm has taken what its vector allows.
pub(super) fn used_up(study: &Study<'_>, kind: PairKind, world: World) -> bool {
    let vector = match kind {
        PairKind::Procedure => procedure::declared(study.plan, world).and_then(|arm| arm.resources.as_ref()),
        PairKind::Inheritance | PairKind::Same | PairKind::Placebo | PairKind::Stale => Some(&study.plan.resources),
    };
    let taken = study.taken();
    let taken = taken.get(&arm_of(kind, world));
    vector.zip(taken).is_some_and(|(vector, taken)| vector.is_used_up(taken))
}

fn once(
    study: &Study<'_>,
    planned: &Planned<'_>,
    committed: &Committed,
    withheld: Option<&ArtifactId>,
    attempt: Attempt,
) -> Result<Result<(), Invalid>, RunError> {
    let (world, repeat) = (attempt.world, attempt.repeat);
    study.accounts().enter(Entry::Began(attempt.clone()))?;
    let begun = own_copy(study, planned, committed, world, withheld);
    let (end, became) = match begun {
        Err(invalid) => (AttemptEnd { wall_ms: Some(0), ..ended(&invalid) }, Err(invalid)),
        Ok(begun) if planned.kind == PairKind::Procedure => procedure::carry_out(study, planned, begun, &attempt)?,
        Ok(begun) => {
            let drawn = seed(study, planned, world.as_str(), repeat);
            let asked = participant::ask(&study.plan.participant, &study.launch, begun.work(), drawn);
            took(study, begun, &asked)?
        }
    };
    // What a procedure took was added call by call.
    if planned.kind != PairKind::Procedure {
        let mut taken = study.taken();
        taken.entry(arm_of(planned.kind, world)).or_default().add(end.usage.as_ref(), end.wall_ms);
    }
    study.accounts().enter(Entry::Ended { attempt, end })?;
    Ok(became)
}

pub(super) fn ended((cause, reason): &Invalid) -> AttemptEnd {
    AttemptEnd { cause: Some(*cause), reason: Some(reason.clone()), ..AttemptEnd::interrupted() }
}

/// A world on its own copy of the store; the copy is gone when its records are read.
fn own_copy(
    study: &Study<'_>,
    planned: &Planned<'_>,
    committed: &Committed,
    world: World,
    withheld: Option<&ArtifactId>,
) -> Result<OneWorld, Invalid> {
    let copy = study.folder.join("worlds").join(format!("{}.{world}", planned.pair));
    let read = store::copy(&folder(study, planned), &copy).and_then(|()| store::read(&copy));
    // What stays of it costs space and nothing else.
    let _ = std::fs::remove_dir_all(&copy);
    let records = read.map_err(|error| (Cause::SpaceBroken, error.to_string()))?;
    if store::digest(&records) != store::digest(&committed.records) {
        return Err((Cause::FixtureTampered, "the world's copy is not what was committed".to_owned()));
    }
    let withheld = match world {
        World::A => None,
        World::B => withheld,
    };
    let committed = Committed { records, ..committed.clone() };
    OneWorld::begin(planned.item, &committed, withheld).map_err(|error| (Cause::SpaceBroken, error.to_string()))
}

/// An answer and the digest it is kept under, or why it is none and the digest of what came instead.
pub(super) type KeptAnswer = Result<(Answered, Digest), (Invalid, Option<Digest>)>;

/// What a participant wrote, kept, with the digest it is kept under; or why it is no answer.
pub(super) fn answered(study: &Study<'_>, asked: &Asked, work: &Work) -> Result<KeptAnswer, RunError> {
    let bytes = match &asked.answer {
        Ok(bytes) => bytes,
        Err((why, reason)) => {
            let cause = match why {
                NoAnswer::Failed => Cause::NoAnswer,
                NoAnswer::TimedOut => Cause::TimedOut,
                NoAnswer::TooLong => Cause::Malformed,
            };
            return Ok(Err(((cause, reason.clone()), None)));
        }
    };
    match participant::read(bytes, work) {
        Ok(answered) => {
            let kept = study.artifacts.keep(&answered)?;
            Ok(Ok((answered, kept)))
        }
        Err(fault) => {
            let text = String::from_utf8_lossy(bytes).chars().take(4_096).collect::<String>();
            let kept = study.artifacts.keep(&text)?;
            let cause = match (fault.code == RefusalCode::DigestMismatch, fault.code == RefusalCode::Cardinality) {
                (true, _) => Cause::ContextTruncated,
                (_, true) => Cause::Cardinality,
                (false, false) => Cause::Malformed,
            };
            Ok(Err(((cause, fault.to_string()), Some(kept))))
        }
    }
}

/// What became of a final answer in its world: the step's outcome, or why it does not count.
pub(super) fn finalized(
    study: &Study<'_>,
    world: OneWorld,
    result: WorkResult,
) -> Result<Result<Digest, Invalid>, RunError> {
    let step = match Step::of(&result) {
        Ok(step) => step,
        Err(fault) => {
            let cause = if fault.code == RefusalCode::Cardinality { Cause::Cardinality } else { Cause::Malformed };
            return Ok(Err((cause, fault.to_string())));
        }
    };
    Ok(match world.answer(result, &step) {
        Ok(Ok(outcome)) => Ok(study.artifacts.keep(&outcome)?),
        Ok(Err(codes)) => Err((Cause::AnswerRefused, format!("the record did not take the answer: {codes}"))),
        Err(error) => Err((Cause::SpaceBroken, error.to_string())),
    })
}

/// What a participant wrote, and what became of it in its world.
fn took(study: &Study<'_>, world: OneWorld, asked: &Asked) -> Result<(AttemptEnd, Result<(), Invalid>), RunError> {
    let measured = |end: AttemptEnd| AttemptEnd { wall_ms: Some(asked.wall_ms), process: asked.process, ..end };
    let (answered, kept) = match answered(study, asked, world.work())? {
        Ok(answered) => answered,
        Err((invalid, answer)) => return Ok((measured(AttemptEnd { answer, ..ended(&invalid) }), Err(invalid))),
    };
    let told = |end| measured(AttemptEnd { answer: Some(kept), usage: answered.usage, ..end });
    match finalized(study, world, answered.result)? {
        Ok(outcome) => {
            let end = AttemptEnd { cause: None, outcome: Some(outcome), ..AttemptEnd::interrupted() };
            Ok((told(end), Ok(())))
        }
        Err(invalid) => Ok((told(ended(&invalid)), Err(invalid))),
    }
}
