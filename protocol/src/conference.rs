//! The conference: several participants on one subject, without anybody's vote. Spec: §4.1, DEC-37 to DEC-43.
//!
//! ```text
//! open ──► work to every seat ──► positions ──► seal ──► release ──► moves ──► conclude
//!          same subject, same      sealed as     all, or   to every     turn by   the declared rule,
//!          evidence                they come     time over  seat        turn      over the evidence
//! ```
//!
//! A position is an ordinary RESULT to ordinary WORK; a conference is the frame that makes sure that everybody was asked
//! the same, that nobody saw another's position before all were fixed, and that whatever was seen is on record. Each step
//! is refused while the one before it is missing. What a context has seen it has seen for good: it stays with whatever is
//! derived from it, in every later round on the same subjects, under whichever name.
//!
//! Deliberately absent: a count of voices. What a conference comes to is a [`Report`], which accepts nothing; its evidence
//! goes the way of all evidence through distillation, adjudication and commit, and its end closes no obligation.

mod asked;
mod draft;
mod moves;
mod proceeding;
mod report;
mod steps;
mod table;
mod turns;

pub(crate) use asked::{answer_denials, evidence_shared, packet_denials};
pub use draft::{draft, draft_move, read_move};
pub(crate) use moves::make;
pub use proceeding::{
    Access, Attendance, Claim, Ending, Finding, Independence, Label, Proceeding, Reach, Release, Released, Report,
    Seal, Sealed, What, sealed_digest,
};
pub use report::{Objecting, independence, label, objections, positions, relations, report, withdrawn};
pub(crate) use steps::proceed;
pub use table::{Placed, Position, Round, Table, Turned};
pub use turns::{Turn, turn};
pub(crate) use turns::{ending, is_due, next_mover, open_turn, used_up};

use crate::entry::ArtifactBody;
use crate::input::{Reply, Submission};
use crate::sequence::Deciding;
use crate::streams;
use crate::view::{Episode, View};
use closer_contracts::branch;
use closer_contracts::conference::Conference;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ConferenceId, ContextId, EvidenceId, Id, Key};
use closer_contracts::item::{RuleBody, Standing};
use closer_contracts::record::{CustodyClass, StreamId};
use closer_contracts::refs::{ArtifactRef, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::work::WorkResult;

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

/// Who may read a RESULT below the full record: a position nobody, until it is released.
pub(crate) fn custody_of(view: &View, result: &WorkResult) -> CustodyClass {
    let sealed = view.conferences.of_work(&result.work_id).is_some_and(|(round, _)| round.release.is_none());
    match branch!("conference.recorded_sealed", sealed) {
        true => CustodyClass::Sealed,
        false => CustodyClass::Open,
    }
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
