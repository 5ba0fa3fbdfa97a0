//! The runtime's steps in a conference: seal, release, who reads what, and the end. Spec: §4.1, DEC-40 to DEC-42.

use super::proceeding::{Access, Ending, Reach, Release, Released, Seal, Sealed, What, sealed_digest};
use super::report::{label, report};
use super::table::{Position, Round};
use super::{NONCE_DIGITS_MIN, Proceed, Proceeding, early, is_due, streams_of, unknown};
use crate::input::Reply;
use crate::sequence::Deciding;
use closer_contracts::branch;
use closer_contracts::conference::Seat;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ArtifactId, ContextId, Id, Key};
use closer_contracts::record::CustodyClass;
use closer_contracts::refs::ArtifactRef;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use std::sync::Arc;

/// Takes a conference one step further, or refuses the step.
pub(crate) fn proceed(deciding: &mut Deciding<'_>, proceed: &Proceed) -> Result<Reply, Fault> {
    let id = proceed.conference_id();
    let Some(round) = deciding.view.conferences.round(id) else {
        return deciding.refuse(Id::new(id.as_str()), None, vec![unknown(id)]);
    };
    let reaches = matches!(proceed, Proceed::Read { .. } | Proceed::Leak { .. });
    if branch!("conference.replaced", round.replaced && !reaches) {
        let reason = "another conference has taken the place of this one";
        let denial = Denial::new(Code::RoundLimit, CheckKind::Runtime, reason).of(id);
        return deciding.refuse(Id::new(id.as_str()), None, vec![denial]);
    }
    match proceed {
        Proceed::Seal { nonce, .. } => seal(deciding, round, nonce),
        Proceed::Release { .. } => release(deciding, round),
        Proceed::Read { reader, context, item, .. } => read(deciding, round, reader, context, item),
        Proceed::Leak { reader, context, item, .. } => {
            if !round.positions.values().any(|position| position.reference() == *item) {
                let denial = Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "no such position is on record");
                return deciding.refuse(Id::new(id.as_str()), None, vec![denial.of(&item.id)]);
            }
            accessed(deciding, round, (reader, context, item), Reach::Leaked)
        }
        Proceed::Conclude { .. } => {
            if branch!("conference.concluded_before_release", round.release.is_none()) {
                let denial = early(id, "the declared rule is applied to what has been released");
                return deciding.refuse(Id::new(id.as_str()), None, vec![denial]);
            }
            if round.report.is_some() {
                let denial = Denial::new(Code::Duplicate, CheckKind::Resolution, "the conference is over").of(id);
                return deciding.refuse(Id::new(id.as_str()), None, vec![denial]);
            }
            conclude_as(deciding, round, super::ending(round, deciding.at))
        }
    }
}

/// Records a proceeding on the conference's streams.
fn record(deciding: &mut Deciding<'_>, round: &Round, what: What, custody: CustodyClass) -> Result<Reply, Fault> {
    let word = match &what {
        What::Sealed(_) => "sealed".to_owned(),
        What::Released(_) => "released".to_owned(),
        What::Concluded(_) => "report".to_owned(),
        What::Accessed(access) => {
            let seed = format!("{}.{}.{}", access.context, access.item.id, deciding.view.conferences.placed());
            format!("{}.{seed}", access.reach)
        }
    };
    let proceeding = Proceeding {
        proceeding_id: ArtifactId::new(crate::derived_id(&word, round.contract.conference_id.as_str())),
        conference_id: round.contract.conference_id.clone(),
        what,
        at: deciding.at.now.clone(),
    };
    let reference = deciding.batch.artifact_in(custody, proceeding, streams_of(round))?;
    let advanced = crate::input::Effect::Advance(round.contract.episode_id.clone());
    deciding.effects.push(advanced);
    Ok(Reply::Recorded(vec![reference]))
}

/// Seals what is there. The digests cannot be guessed from contents, and nobody reads them before the release (DEC-40).
fn seal(deciding: &mut Deciding<'_>, round: &Arc<Round>, nonce: &Key) -> Result<Reply, Fault> {
    let id = &round.contract.conference_id;
    let refuse = |deciding: &mut Deciding<'_>, denial| deciding.refuse(Id::new(id.as_str()), None, vec![denial]);
    if branch!("conference.sealed_before_start", !round.has_started()) {
        return refuse(deciding, early(id, "not everybody has been asked"));
    }
    if round.seal.is_some() {
        let denial = Denial::new(Code::Duplicate, CheckKind::Resolution, "the positions are sealed").of(id);
        return refuse(deciding, denial);
    }
    let absent: Vec<ActorId> = round
        .contract
        .seats
        .iter()
        .filter(|seat| !round.positions.contains_key(&seat.actor))
        .map(|seat| seat.actor.clone())
        .collect();
    let awaited = |actor: &ActorId| !round.asked.get(actor).is_some_and(|work_id| round.failed.contains(work_id));
    let too_early = absent.iter().any(awaited) && !is_due(round, deciding.at);
    if branch!("conference.sealed_too_early", too_early) {
        return refuse(deciding, early(id, "a position is missing, and its time is not over"));
    }
    let hexadecimal = nonce.as_str().bytes().all(|digit| digit.is_ascii_hexdigit());
    if branch!("conference.nonce_too_short", !hexadecimal || nonce.as_str().len() < NONCE_DIGITS_MIN) {
        return refuse(deciding, Fault::schema("a seal has a nonce of at least 128 bits").within("nonce").into());
    }
    let sealed = round.contract.seats.iter().filter_map(|seat| {
        let position = round.positions.get(&seat.actor)?;
        let digest = sealed_digest(nonce, &seat.actor, position.digest);
        Some(Sealed { actor: seat.actor.clone(), role: seat.role.clone(), digest })
    });
    let seal = Seal { basis: round.contract.basis, sealed: sealed.collect(), absent, nonce: nonce.clone() };
    record(deciding, round, What::Sealed(seal), CustodyClass::Sealed)
}

/// Releases every position that came, sealed or late, to every seat. What was sealed must be what is there.
fn release(deciding: &mut Deciding<'_>, round: &Arc<Round>) -> Result<Reply, Fault> {
    let id = &round.contract.conference_id;
    let refuse = |deciding: &mut Deciding<'_>, denial| deciding.refuse(Id::new(id.as_str()), None, vec![denial]);
    let Some(seal) = &round.seal else {
        return refuse(deciding, early(id, "the positions are not sealed"));
    };
    if round.release.is_some() {
        let denial = Denial::new(Code::Duplicate, CheckKind::Resolution, "the positions are released").of(id);
        return refuse(deciding, denial);
    }
    let as_sealed = |sealed: &Sealed| {
        let position = round.positions.get(&sealed.actor).map(|position| position.digest);
        position.is_some_and(|digest| sealed_digest(&seal.body.nonce, &sealed.actor, digest) == sealed.digest)
    };
    if let Some(other) = seal.body.sealed.iter().find(|sealed| branch!("conference.not_as_sealed", !as_sealed(sealed)))
    {
        let reason = "a position is not the one that was sealed";
        let denial = Denial::new(Code::DigestMismatch, CheckKind::Schema, reason).of(&other.actor);
        return refuse(deciding, denial);
    }
    let view = deciding.view;
    let mut seats: Vec<(&Seat, &Position)> =
        round.contract.seats.iter().filter_map(|seat| Some((seat, round.positions.get(&seat.actor)?))).collect();
    seats.sort_by_key(|(_, position)| position.place);
    let positions = seats.into_iter().map(|(seat, position)| Released {
        actor: seat.actor.clone(),
        role: seat.role.clone(),
        label: label(view, round, seat),
        position: position.reference(),
        content: (*position.body).clone(),
    });
    let release = Release {
        seal: seal.reference.clone(),
        nonce: seal.body.nonce.clone(),
        positions: positions.collect(),
        contexts: round.contract.seats.iter().map(|seat| seat.context.clone()).collect(),
    };
    record(deciding, round, What::Released(release), CustodyClass::Open)
}

/// Somebody asks to read a position: before its release nobody but its own author does, and the attempt is on record.
fn read(
    deciding: &mut Deciding<'_>,
    round: &Arc<Round>,
    reader: &ActorId,
    context: &ContextId,
    item: &ArtifactRef,
) -> Result<Reply, Fault> {
    let id = Id::new(round.contract.conference_id.as_str());
    let author = round.positions.iter().find(|(_, position)| position.reference() == *item).map(|(actor, _)| actor);
    let Some(author) = author else {
        let denial = Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "no such position is on record");
        return deciding.refuse(id, None, vec![denial.of(&item.id)]);
    };
    let others = author != reader;
    if branch!("conference.read_before_release", others && round.release.is_none()) {
        accessed(deciding, round, (reader, context, item), Reach::Refused)?;
        let reason = format!("`{reader}` asks for a position that is sealed");
        let denial = Denial::new(Code::NotReleased, CheckKind::Authority, reason).of(&item.id);
        return deciding.refuse(id, Some(item.digest), vec![denial]);
    }
    let seated = round.contract.seat(reader).is_some_and(|seat| seat.context == *context);
    if branch!("conference.reader_not_seated", others && !seated) {
        let reason = "the position was released to the seats of its conference";
        let denial = Denial::new(Code::DisclosureDenied, CheckKind::Authority, reason).of(context);
        return deciding.refuse(id, Some(item.digest), vec![denial]);
    }
    match others {
        true => accessed(deciding, round, (reader, context, item), Reach::Seen),
        false => Ok(Reply::Recorded(vec![item.clone()])),
    }
}

fn accessed(
    deciding: &mut Deciding<'_>,
    round: &Arc<Round>,
    (reader, context, item): (&ActorId, &ContextId, &ArtifactRef),
    reach: Reach,
) -> Result<Reply, Fault> {
    let access = Access { reader: reader.clone(), context: context.clone(), item: item.clone(), reach };
    record(deciding, round, What::Accessed(access), CustodyClass::Open)
}

/// Ends a conference and records what it came to.
pub(super) fn conclude_as(deciding: &mut Deciding<'_>, round: &Arc<Round>, ending: Ending) -> Result<Reply, Fault> {
    let report = report(deciding.view, round, ending, deciding.at)?;
    record(deciding, round, What::Concluded(report), CustodyClass::Open)
}
