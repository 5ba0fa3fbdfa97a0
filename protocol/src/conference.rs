//! The conference: several participants on one subject, without anybody's vote. Spec: §4.1, DEC-37 to DEC-43.
//!
//! ```text
//! open ──► work to every seat ──► positions ──► seal ──► release ──► moves ──► conclude
//!          same subject, same      sealed as     all, or   to every     nine      the declared rule,
//!          evidence                they come     time over  seat        kinds     over the evidence
//! ```
//!
//! A position is an ordinary RESULT to ordinary WORK; a conference is the frame that makes sure that everybody was asked
//! the same, that nobody saw another's position before all were fixed, and that whatever was seen is on record. Each step
//! is refused while the one before it is missing. What a context has seen it has seen for good: it stays with whatever is
//! derived from it, in every later round on the same subjects, under whichever name.
//!
//! Deliberately absent: a count of voices. What a conference comes to is a [`Report`], which accepts nothing; its evidence
//! goes the way of all evidence through distillation, adjudication and commit, and its end closes no obligation.

mod moves;
mod proceeding;
mod report;
mod table;

pub(crate) use moves::make;
pub use proceeding::{
    Access, Attendance, Claim, Ending, Finding, Independence, Label, Proceeding, Reach, Release, Released, Report,
    Seal, Sealed, What, sealed_digest,
};
pub use report::{Objecting, independence, label, objections, positions, relations, report, withdrawn};
pub use table::{Placed, Position, Round, Table};

use crate::entry::ArtifactBody;
use crate::input::{Moment, Reply, Submission};
use crate::sequence::Deciding;
use crate::streams;
use crate::view::{Episode, View};
use closer_contracts::branch;
use closer_contracts::conference::{Conference, Seat};
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ArtifactId, ConferenceId, ContextId, EvidenceId, Id, Key, WorkId};
use closer_contracts::item::{RuleBody, Standing};
use closer_contracts::record::{CustodyClass, StreamId};
use closer_contracts::refs::{ArtifactRef, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::work::{Work, WorkResult};
use closer_monitor::ClockStanding;
use std::sync::Arc;

/// How many hexadecimal digits a nonce has at least: 128 bits (DEC-40).
pub const NONCE_DIGITS_MIN: usize = 32;

/// What the runtime does in a conference. Opening it and moving in it come as authenticated artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proceed {
    /// Seal the positions that are there: all of them, or after the declared time those that came.
    Seal {
        /// The conference.
        conference_id: ConferenceId,
        /// Fresh random bits in hexadecimal, at least 128.
        nonce: Key,
    },
    /// Release what was sealed to every seat.
    Release {
        /// The conference.
        conference_id: ConferenceId,
    },
    /// Somebody asks to read a position.
    Read {
        /// The conference.
        conference_id: ConferenceId,
        /// Who asks.
        reader: ActorId,
        /// In which context.
        context: ContextId,
        /// What for.
        item: ArtifactRef,
    },
    /// Somebody saw a position past the access control, or it is not certain that nobody did.
    Leak {
        /// The conference.
        conference_id: ConferenceId,
        /// Who saw it.
        reader: ActorId,
        /// In which context.
        context: ContextId,
        /// What.
        item: ArtifactRef,
    },
    /// Apply the declared rule: the conference is over.
    Conclude {
        /// The conference.
        conference_id: ConferenceId,
    },
}

impl Proceed {
    /// The conference that it is about.
    #[must_use]
    pub const fn conference_id(&self) -> &ConferenceId {
        match self {
            Self::Seal { conference_id, .. }
            | Self::Release { conference_id }
            | Self::Read { conference_id, .. }
            | Self::Leak { conference_id, .. }
            | Self::Conclude { conference_id } => conference_id,
        }
    }
}

/// What a conference waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Ask this participant.
    Work(Box<Seat>),
    /// Get the answer of this participant, or wait until the time for sealing is over.
    Answer {
        /// The work.
        work_id: WorkId,
        /// The participant.
        participant: ActorId,
    },
    /// Seal.
    Seal,
    /// Release.
    Release,
    /// Let the participants move, then conclude.
    Conclude,
    /// It is over.
    Over,
}

/// The next turn that the records of a conference show. The same for a live coordinator and for one that was restarted.
#[must_use]
pub fn turn(round: &Round, at: &Moment) -> Turn {
    let seats = &round.contract.seats;
    if round.report.is_some() {
        return Turn::Over;
    }
    if let Some(seat) = seats.iter().find(|seat| !round.asked.contains_key(&seat.actor)) {
        return Turn::Work(Box::new(seat.clone()));
    }
    match (&round.seal, &round.release) {
        (Some(_), Some(_)) => Turn::Conclude,
        (Some(_), None) => Turn::Release,
        (None, _) => {
            let silent = seats.iter().find(|seat| !round.positions.contains_key(&seat.actor));
            let silent = silent.filter(|_| !is_due(round, at)).and_then(|seat| round.asked.get_key_value(&seat.actor));
            match silent {
                Some((participant, work_id)) => {
                    Turn::Answer { work_id: work_id.clone(), participant: participant.clone() }
                }
                None => Turn::Seal,
            }
        }
    }
}

/// Whether the declared time for positions is over, by a clock that can be trusted.
fn is_due(round: &Round, at: &Moment) -> bool {
    let over = round.opened_at.plus_ms(round.contract.seal_within_ms) <= at.now;
    at.clock == ClockStanding::Reliable && branch!("conference.seal_due", over)
}

fn unknown(id: &ConferenceId) -> Denial {
    Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "no such conference is on record").of(id)
}

fn early(id: &ConferenceId, reason: &str) -> Denial {
    Denial::new(Code::NotReleased, CheckKind::Runtime, reason).of(id)
}

fn streams_of(round: &Round) -> Vec<StreamId> {
    vec![streams::episode(&round.contract.episode_id), streams::history(&round.contract.obligation_id)]
}

/// Opens a conference under its contract.
pub(crate) fn open(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    contract: &Conference,
) -> Result<Reply, Fault> {
    let denials = inadmissible(deciding.view, contract, submission.producer.role)?;
    if !denials.is_empty() {
        let id = Id::new(contract.conference_id.as_str());
        return deciding.refuse(id, Some(submission.content.digest()?), denials);
    }
    let streams = vec![streams::episode(&contract.episode_id), streams::history(&contract.obligation_id)];
    let reference = deciding.batch.artifact((*submission.content).clone(), streams)?;
    deciding.batch.auth(submission.auth.record())?;
    Ok(Reply::Recorded(vec![reference]))
}

/// Why a contract cannot be opened.
fn inadmissible(view: &View, contract: &Conference, role: ProducerRole) -> Result<Vec<Denial>, Fault> {
    let mut denials = Vec::new();
    let mut no =
        |code, check, reason: &str, of: &dyn std::fmt::Display| denials.push(Denial::new(code, check, reason).of(of));
    if branch!("conference.not_the_coordinators", role != ProducerRole::Coordinator) {
        no(Code::MissingAuthority, CheckKind::Authority, "a conference is opened by the coordinator", &role);
    }
    let episode = view.episodes.get(&contract.episode_id).filter(|episode| episode.end.is_none());
    if episode.is_none_or(|episode| episode.obligation_id != contract.obligation_id) {
        let reason = "no such episode of the obligation is under way";
        no(Code::UnresolvedRef, CheckKind::Resolution, reason, &contract.episode_id);
    }
    let under_way = view.conferences.of_episode(&contract.episode_id).filter(|round| round.report.is_none());
    let followed = contract.follows.as_ref().map(|follows| &follows.conference_id);
    if let Some(other) = under_way
        && branch!("conference.another_under_way", followed != Some(&other.contract.conference_id))
    {
        let reason = "another conference of the episode is under way";
        no(Code::Duplicate, CheckKind::Runtime, reason, &other.contract.conference_id);
    }
    if let Some(followed) = followed.filter(|id| view.conferences.round(id).is_none()) {
        no(Code::UnresolvedRef, CheckKind::Resolution, "the conference that it follows is not on record", followed);
    }
    if branch!("conference.basis_not_current", contract.basis != view.state.reference()) {
        let reason = "the basis is not the accepted state";
        no(Code::StaleVersion, CheckKind::Resolution, reason, &contract.basis.version);
    }
    for cited in &contract.evidence_scope.snapshot.refs {
        let known = view.evidence.get(&EvidenceId::new(cited.id.as_str()));
        if branch!("conference.scope_unresolved", known.is_none_or(|e| e.payload.content_digest() != cited.digest)) {
            let reason = "the evidence scope cites what is not on record";
            no(Code::UnresolvedRef, CheckKind::Resolution, reason, &cited.id);
        }
    }
    let rule = view.state.rule(&contract.decision_rule_ref).filter(|rule| rule.standing == Standing::Current);
    if branch!("conference.rule_unregistered", !rule.is_some_and(|rule| matches!(rule.body, RuleBody::Decision { .. })))
    {
        let reason = "the decision rule is not registered";
        no(Code::UnresolvedRef, CheckKind::Resolution, reason, &contract.decision_rule_ref.id);
    }
    let subjects = contract.subjects.iter().map(closer_contracts::conference::Subject::id).collect();
    for seat in &contract.seats {
        let identity = view.state.identity(&seat.actor).filter(|identity| identity.standing == Standing::Current);
        if !identity.is_some_and(|identity| identity.roles.contains(&ProducerRole::Participant)) {
            no(Code::UnresolvedRef, CheckKind::Resolution, "no such participant is registered", &seat.actor);
        }
        let contexts = std::iter::once(&seat.context).chain(&seat.derives_from);
        let exposed = contexts.into_iter().any(|context| !view.conferences.seen_on(context, &subjects).is_empty());
        if branch!("conference.exposed_context_seated", contract.independence_required && exposed) {
            let reason = "the context has seen a position on these subjects, and independence is required";
            no(Code::DisclosureDenied, CheckKind::Authority, reason, &seat.context);
        }
    }
    Ok(denials)
}

/// Everybody is asked the same: work of a conference goes to a seat, about the declared subjects, on the declared evidence,
/// and before the release no packet holds anybody's position.
pub(crate) fn packet_denials(view: &View, work: &Work, recipient: &ActorId) -> Result<Vec<Denial>, Fault> {
    let mut denials = sealed_in_packet(view, work)?;
    let Some(round) = view.conferences.of_coalition(&work.coalition_ref) else {
        return Ok(denials);
    };
    let seat = round.contract.seat(recipient).filter(|seat| seat.role == work.role);
    if branch!("conference.work_for_nobody_seated", seat.is_none()) {
        let reason = "the recipient has no seat in this role";
        denials.push(Denial::new(Code::MembershipStale, CheckKind::Resolution, reason).of(recipient));
    }
    if branch!("conference.asked_twice", round.asked.contains_key(recipient)) {
        let reason = "the participant has been asked";
        denials.push(Denial::new(Code::Duplicate, CheckKind::Resolution, reason).of(recipient));
    }
    let mismatch = |reason: &str| {
        Denial::new(Code::SubjectMismatch, CheckKind::Resolution, reason).of(&round.contract.conference_id)
    };
    let mut digests = Vec::new();
    for subject in &round.contract.subjects {
        digests.push((subject.id(), subject.digest()?));
    }
    let ids: Vec<&Id> = digests.iter().map(|(id, _)| id).collect();
    let same = work.question.subject_refs.iter().eq(ids.iter().copied())
        && digests.iter().all(|(_, digest)| work.context_items.iter().any(|item| item.reference.digest == *digest));
    if branch!("conference.other_subject_asked", !same) {
        denials.push(mismatch("the packet does not hold exactly the declared subjects"));
    }
    let declared: Vec<&str> =
        round.contract.evidence_scope.snapshot.refs.iter().map(|cited| cited.id.as_str()).collect();
    let held = work.context_items.iter().map(|item| item.reference.id.as_str());
    let held: Vec<&str> = held.filter(|id| view.evidence.contains_key(&EvidenceId::from(*id))).collect();
    let agrees = declared.iter().all(|id| held.contains(id)) && held.iter().all(|id| declared.contains(id));
    if branch!("conference.other_evidence_given", !agrees) {
        denials.push(mismatch("the packet does not hold exactly the declared evidence"));
    }
    Ok(denials)
}

/// Positions that a packet holds although they are not released.
fn sealed_in_packet(view: &View, work: &Work) -> Result<Vec<Denial>, Fault> {
    let mut denials = Vec::new();
    for round in view.conferences.rounds().filter(|round| round.release.is_none()) {
        for position in round.positions.values() {
            let content = closer_contracts::canonical::digest_of(&*position.body)?;
            let held = work.context_items.iter().find(|item| {
                let digest = item.reference.digest;
                digest == content
                    || digest == position.digest
                    || item.reference.id.as_str() == position.payload_id.as_str()
            });
            if let Some(item) = held
                && branch!("conference.position_in_packet", true)
            {
                let reason = "the packet holds a position that is not released";
                denials.push(Denial::new(Code::NotReleased, CheckKind::Authority, reason).of(&item.reference.id));
            }
        }
    }
    Ok(denials)
}

/// Why an answer is no position: not everybody has been asked yet, or the conference is over.
pub(crate) fn answer_denials(view: &View, result: &WorkResult) -> Vec<Denial> {
    let Some((round, _)) = view.conferences.of_work(&result.work_id) else {
        return Vec::new();
    };
    let id = &round.contract.conference_id;
    if branch!("conference.not_started", !round.has_started()) {
        return vec![early(id, "the conference has not started: not everybody has been asked the same")];
    }
    match branch!("conference.answered_after_end", round.report.is_some()) {
        true => vec![Denial::new(Code::RoundLimit, CheckKind::Runtime, "the conference is over").of(id)],
        false => Vec::new(),
    }
}

/// Who may read a RESULT below the full record: a position nobody, until it is released.
pub(crate) fn custody_of(view: &View, result: &WorkResult) -> CustodyClass {
    let sealed = view.conferences.of_work(&result.work_id).is_some_and(|(round, _)| round.release.is_none());
    match branch!("conference.recorded_sealed", sealed) {
        true => CustodyClass::Sealed,
        false => CustodyClass::Open,
    }
}

/// Takes a conference one step further, or refuses the step.
pub(crate) fn proceed(deciding: &mut Deciding<'_>, proceed: &Proceed) -> Result<Reply, Fault> {
    let id = proceed.conference_id();
    let Some(round) = deciding.view.conferences.round(id) else {
        return deciding.refuse(Id::new(id.as_str()), None, vec![unknown(id)]);
    };
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
            conclude_as(deciding, round, Ending::RuleApplied)
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
    if branch!("conference.sealed_too_early", !absent.is_empty() && !is_due(round, deciding.at)) {
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
fn conclude_as(deciding: &mut Deciding<'_>, round: &Arc<Round>, ending: Ending) -> Result<Reply, Fault> {
    let report = report(deciding.view, round, ending, deciding.at)?;
    record(deciding, round, What::Concluded(report), CustodyClass::Open)
}

/// What the group shares of a conference: what was released, and the moves on it. Nothing else is in it (SR22).
#[must_use]
pub fn case_record(round: &Round) -> Vec<ArtifactRef> {
    let Some(release) = &round.release else {
        return Vec::new();
    };
    let positions = release.body.positions.iter().map(|released| released.position.clone());
    positions.chain(round.moves.iter().map(|made| made.reference.clone())).collect()
}

/// Everything that one participant said in a conference, its position first and every revision after it (SR21).
#[must_use]
pub fn participant_record(round: &Round, actor: &ActorId) -> Vec<ArtifactRef> {
    let position = round.positions.get(actor).map(Position::reference);
    let own = round.moves.iter().filter(|made| made.body.actor == *actor);
    position.into_iter().chain(own.map(|made| made.reference.clone())).collect()
}

/// Whether `actor` itself holds a subject, as far as conferences tell: `None` where it sat in none about it.
#[must_use]
pub fn is_held_by(view: &View, episode: &Episode, actor: &ActorId, subject: &[Digest], about: &[Id]) -> Option<bool> {
    let round = view.conferences.of_episode(&episode.episode_id)?;
    round.contract.seat(actor)?;
    Some(about.iter().any(|about| report::holds(round, actor, subject, about)))
}
