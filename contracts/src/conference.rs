//! A conference: several participants on the same subject, and the nine moves between them. Spec: §4.1, DEC-39 to DEC-43.
//!
//! The contract fixes in advance what is talked about, on which evidence, by whom, how long and with which moves. Positions
//! are ordinary results (C6); what is new here is the frame around them and the moves that follow their release.

use crate::contract::{Check, nonempty};
use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{
    ActorId, ArtifactId, ConferenceId, ContextId, EpisodeId, Id, Key, ObligationId, ObservationStreamId, Text, WorkId,
};
use crate::refs::{ArtifactRef, EvidenceSnapshot, StateRef, VersionedRef};
use crate::work::{ActionProposal, EvidenceRelation, Proposition, ReasonClass, StopCondition};
use serde::{Deserialize, Serialize};

crate::words! {
    /// The nine moves; there are no others (§4.1).
    pub enum MoveKind {
        /// States the subject.
        Assert = "assert",
        /// Brings evidence for it.
        Support = "support",
        /// Objects to it.
        Challenge = "challenge",
        /// Restricts it to less.
        Narrow = "narrow",
        /// Takes back what this participant said of it.
        Retract = "retract",
        /// Asks for evidence.
        RequestEvidence = "request_evidence",
        /// Keeps to it, and says why.
        RetainWithReason = "retain_with_reason",
        /// Agrees. Nobody does so for another.
        Assent = "assent",
        /// Says nothing for now.
        Defer = "defer",
    }
}

/// What is talked about: one proposition or one exact proposed action. Nothing else can be agreed or disagreed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Subject {
    /// See [`Proposition`].
    Proposition(Proposition),
    /// See [`ActionProposal`].
    Proposal(ActionProposal),
}

impl Subject {
    /// Its id: the proposition's, or that of the postcondition that the action would bring about.
    #[must_use]
    pub fn id(&self) -> Id {
        match self {
            Self::Proposition(proposition) => (&proposition.proposition_id).into(),
            Self::Proposal(proposal) => proposal.expected_postcondition.id.clone(),
        }
    }

    /// The digest that moves and objections are bound to: that of the proposition or proposal itself.
    ///
    /// # Errors
    /// `schema_invalid` when it has no canonical form.
    pub fn digest(&self) -> Result<Digest, Fault> {
        match self {
            Self::Proposition(proposition) => crate::canonical::digest_of(proposition),
            Self::Proposal(proposal) => crate::canonical::digest_of(proposal),
        }
    }
}

impl Check for Subject {
    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Proposition(proposition) => proposition.check(),
            Self::Proposal(proposal) => proposal.check(),
        }
    }
}

crate::contract! {
    /// The evidence that everybody starts from, and the observation streams that more may be brought from. Spec: §4.1.
    pub struct EvidenceScope = "EvidenceScope" {
        "CP-4.1-08" snapshot: EvidenceSnapshot,
        "CP-4.1-08" streams: Vec<ObservationStreamId>,
    }
}

crate::contract! {
    /// One participant: who, in which role, in which context, with which model and tools. Spec: §4.1, DEC-42.
    pub struct Seat = "Seat" {
        "CP-4.1-36" actor: ActorId,
        "CP-4.1-36" role: Key,
        /// What this participant knows it knows by this context; exposure belongs to it.
        "CP-4.1-36" context: ContextId,
        /// The contexts that this one derives from; their exposure is its own.
        "CP-4.1-36" derives_from: Vec<ContextId>,
        "CP-4.1-36" model: Key,
        "CP-4.1-36" tools: Vec<Key>,
    }
}

crate::words! {
    /// How a conference follows an earlier one.
    pub enum FollowKind {
        /// The same round on a new basis: history, and whatever exposure there was, goes with it.
        Rebase = "rebase",
        /// A new round, because the independence of the earlier one is lost.
        Restart = "restart",
    }
}

crate::contract! {
    /// Which conference this one follows, and how. Spec: §4.1.
    pub struct Follows = "Follows" {
        "CP-4.1-19" kind: FollowKind,
        "CP-4.1-19" conference_id: ConferenceId,
    }
}

crate::contract! {
    /// The contract of a conference. Spec: §4.1.
    pub struct Conference = "CONFERENCE" checked by Conference::check_frame {
        "CP-4.1-23" conference_id: ConferenceId,
        "CP-4.1-23" obligation_id: ObligationId,
        "CP-4.1-23" episode_id: EpisodeId,
        "CP-4.1-20" basis: StateRef,
        #[schemars(length(min = 1))]
        "CP-4.1-23" subjects: Vec<Subject>,
        "CP-4.1-23" evidence_scope: EvidenceScope,
        #[schemars(length(min = 1))]
        "CP-4.1-11" seats: Vec<Seat>,
        /// How many rounds each may move, how many positions and moves there may be, and how long it may take.
        "CP-4.1-23" stop: StopCondition,
        /// Within which time positions are sealed; who has said nothing by then is absent.
        "CP-4.1-13" seal_within_ms: u64,
        #[schemars(length(min = 1))]
        "CP-4.1-23" allowed_moves: Vec<MoveKind>,
        "CP-4.1-09" decision_rule_ref: VersionedRef,
        /// Whether the experiment depends on independence: then no exposed context takes part.
        "CP-4.1-18" independence_required: bool,
        /// Whether a position that came after sealing and before release counts as independent (DEC-41).
        "CP-4.1-14" late_counts: bool,
        "CP-4.1-19" follows: Option<Follows>,
    }
}

impl Conference {
    fn check_frame(&self) -> Result<(), Fault> {
        nonempty(&self.subjects, "subjects")?;
        nonempty(&self.seats, "seats")?;
        nonempty(&self.allowed_moves, "allowed_moves")?;
        let stop = &self.stop;
        if stop.rounds_max == 0 || stop.calls_max == 0 || stop.time_ms_max == 0 {
            return Err(
                Fault::schema("a conference is bounded in rounds, calls and time, each at least 1").within("stop")
            );
        }
        let twice = self.seats.iter().enumerate().any(|(at, seat)| {
            self.seats.iter().skip(at + 1).any(|other| other.actor == seat.actor || other.context == seat.context)
        });
        match crate::branch!("conference.seat_taken_twice", twice) {
            true => Err(Fault::schema("a participant has one seat, and a context sits on one").within("seats")),
            false => Ok(()),
        }
    }

    /// The seat of a participant.
    #[must_use]
    pub fn seat(&self, actor: &ActorId) -> Option<&Seat> {
        self.seats.iter().find(|seat| seat.actor == *actor)
    }
}

crate::contract! {
    /// One move, bound to the eight things that say who said what about what, on which ground. Spec: §4.1.
    pub struct ConferenceMove = "CONFERENCE_MOVE" checked by ConferenceMove::check_verb {
        "CP-4.1-27" move_id: ArtifactId,
        "CP-4.1-27" conference_id: ConferenceId,
        "CP-4.1-25" r#move: MoveKind,
        "CP-4.1-27" actor: ActorId,
        "CP-4.1-27" role: Key,
        /// The mover's own sealed record.
        "CP-4.1-27" local_receipt: ArtifactRef,
        /// The release that everybody speaks on.
        "CP-4.1-27" shared_snapshot: ArtifactRef,
        "CP-4.1-27" subject: Digest,
        "CP-4.1-27" governing_basis: StateRef,
        /// The move that it answers; `null` says that it answers none.
        "CP-4.1-27" reply_to: Option<ArtifactRef>,
        "CP-4.1-27" evidence: Vec<EvidenceRelation>,
        /// Why; a challenge and a retention always say so.
        "CP-4.1-28" reason: Option<Text>,
        /// The class of a challenge.
        "CP-4.1-33" reason_class: Option<ReasonClass>,
        /// What a narrowing leaves of a declared proposition.
        "CP-4.1-29" narrowed: Option<Proposition>,
    }
}

impl ConferenceMove {
    fn check_verb(&self) -> Result<(), Fault> {
        Verb {
            r#move: self.r#move,
            subject: self.subject,
            reason: self.reason.as_ref(),
            reason_class: self.reason_class,
            narrowed: self.narrowed.as_ref(),
        }
        .check()
    }
}

crate::contract! {
    /// A participant's answer to one turn of a conference: one move, without what the records already say of who makes it on
    /// which release. Whoever has nothing to say defers. Spec: §4.1, C6.
    pub struct MoveAnswer = "MOVE_ANSWER" checked by MoveAnswer::check_verb {
        "CP-4.1-27" work_id: WorkId,
        "CP-4.1-25" r#move: MoveKind,
        "CP-4.1-27" subject: Digest,
        /// The move that it answers; `null` says that it answers none.
        "CP-4.1-27" reply_to: Option<ArtifactRef>,
        "CP-4.1-27" evidence: Vec<EvidenceRelation>,
        /// Why; a challenge and a retention always say so.
        "CP-4.1-28" reason: Option<Text>,
        /// The class of a challenge.
        "CP-4.1-33" reason_class: Option<ReasonClass>,
        /// What a narrowing leaves of a declared proposition.
        "CP-4.1-29" narrowed: Option<Proposition>,
    }
}

impl MoveAnswer {
    /// Nothing to say for now.
    #[must_use]
    pub const fn deferring(work_id: WorkId, subject: Digest) -> Self {
        Self {
            work_id,
            r#move: MoveKind::Defer,
            subject,
            reply_to: None,
            evidence: Vec::new(),
            reason: None,
            reason_class: None,
            narrowed: None,
        }
    }

    fn check_verb(&self) -> Result<(), Fault> {
        Verb {
            r#move: self.r#move,
            subject: self.subject,
            reason: self.reason.as_ref(),
            reason_class: self.reason_class,
            narrowed: self.narrowed.as_ref(),
        }
        .check()
    }
}

/// What each kind of move demands of the rest of it.
struct Verb<'a> {
    r#move: MoveKind,
    subject: Digest,
    reason: Option<&'a Text>,
    reason_class: Option<ReasonClass>,
    narrowed: Option<&'a Proposition>,
}

impl Verb<'_> {
    fn check(&self) -> Result<(), Fault> {
        let reasons = matches!(self.r#move, MoveKind::RetainWithReason | MoveKind::Challenge);
        if crate::branch!("conference.reason_missing", reasons && self.reason.is_none()) {
            return Err(Fault::schema("a challenge and a retention say why").within("reason"));
        }
        if (self.r#move == MoveKind::Challenge) != self.reason_class.is_some() {
            return Err(Fault::schema("a challenge, and nothing else, has a class").within("reason_class"));
        }
        let narrowed = self.narrowed.map(crate::canonical::digest_of).transpose()?;
        match (self.r#move, narrowed) {
            (MoveKind::Narrow, Some(digest)) if digest == self.subject => Ok(()),
            (MoveKind::Narrow, _) => {
                Err(Fault::schema("a narrowing names what it leaves, and is about that").within("narrowed"))
            }
            (_, None) => Ok(()),
            (_, Some(_)) => Err(Fault::schema("only a narrowing names what it leaves").within("narrowed")),
        }
    }
}
