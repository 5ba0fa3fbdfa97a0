//! What a record's body holds, by its kind: the typed form that the fold reads and the builder writes.

use crate::advice::Advice;
use crate::call::Call;
use crate::conference::Proceeding;
use crate::incident::IncidentStep;
use crate::observe::{Observing, UngovernedCall};
use crate::work::WorkTaken;
use closer_contracts::audit::{
    CommitReceipt, Confession, Declaration, DisclosureIncident, DisclosureReceipt, ReconciliationReceipt,
    RestrictionStatement, UserDecision,
};
use closer_contracts::auth::{AuthRecord, SigningScope, Subject};
use closer_contracts::canonical::{self, Canonical};
use closer_contracts::conference::{Conference, ConferenceMove};
use closer_contracts::contract::Check;
use closer_contracts::digest::Digest;
use closer_contracts::event::MatchReceipt;
use closer_contracts::fault::Fault;
use closer_contracts::handoff::{AcceptanceReceipt, HandoffConsent, ResponsibilityContract};
use closer_contracts::id::{
    ActionId, ActorId, AdjudicationId, ArtifactId, AttemptId, BudgetId, EpisodeId, EventId, Id, Key, ObligationId,
    PayloadId, ReentryId, Text,
};
use closer_contracts::record::{Record, RecordKind, StreamId};
use closer_contracts::refs::{ActorRef, Amounts, ArtifactRef, Plain, VersionedRef};
use closer_contracts::refusal::{Refusal, RefusalCode};
use closer_contracts::review::ReviewReceipt;
use closer_contracts::time::Timestamp;
use closer_contracts::{Payload, word_enum};
use closer_state::{Commit, Genesis};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

macro_rules! artifacts {
    ($($(#[$doc:meta])* $variant:ident($ty:ty) = $slug:literal by $id:ident),+ $(,)?) => {
        /// An immutable artifact beside the twelve payloads (DEC-17).
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum ArtifactBody { $($(#[$doc])* $variant(Box<$ty>)),+ }

        impl ArtifactBody {
            /// The kind's word, as in record ids and claims.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $slug),+ }
            }

            /// The artifact's id.
            #[must_use]
            pub fn id(&self) -> ArtifactId {
                match self { $(Self::$variant(body) => ArtifactId::new(body.$id.as_str())),+ }
            }

            fn bytes(&self) -> Result<Vec<u8>, Fault> {
                match self { $(Self::$variant(body) => canonical::to_bytes(body)),+ }
            }

            /// The artifact's digest: that of its canonical bytes.
            ///
            /// # Errors
            /// `schema_invalid` when it has no canonical form.
            pub fn digest(&self) -> Result<Digest, Fault> {
                Ok(Digest::of(&self.bytes()?))
            }

            /// Reads the canonical bytes of an artifact of this kind.
            ///
            /// # Errors
            /// `schema_invalid`, `oversize`, `digest_mismatch`, as the artifact's contract says.
            pub fn read(kind: &str, bytes: &[u8]) -> Result<Self, Fault> {
                match kind {
                    $($slug => {
                        let body = Canonical::<$ty>::read(bytes)?.into_value();
                        body.check()?;
                        Ok(Self::$variant(Box::new(body)))
                    })+
                    _ => Err(Fault::schema(format!("there is no artifact kind `{kind}`"))),
                }
            }

            /// Checks the artifact by its contract.
            ///
            /// # Errors
            /// As [`ArtifactBody::read`].
            pub fn check(&self) -> Result<(), Fault> {
                match self { $(Self::$variant(body) => body.check()),+ }
            }
        }

        $(impl From<$ty> for ArtifactBody {
            fn from(body: $ty) -> Self {
                Self::$variant(Box::new(body))
            }
        })+
    };
}

artifacts! {
    /// What matching an event came to.
    MatchReceipt(MatchReceipt) = "match_receipt" by receipt_id,
    /// A release of items to a recipient.
    DisclosureReceipt(DisclosureReceipt) = "disclosure_receipt" by disclosure_id,
    /// A declaration of the user.
    Declaration(Declaration) = "declaration" by declaration_id,
    /// An answer of the user.
    UserDecision(UserDecision) = "user_decision" by decision_id,
    /// The receipt of a commit.
    CommitReceipt(CommitReceipt) = "commit_receipt" by receipt_id,
    /// An issuer's restriction.
    RestrictionStatement(RestrictionStatement) = "restriction_statement" by statement_id,
    /// The review of an urgent commit.
    ReconciliationReceipt(ReconciliationReceipt) = "reconciliation_receipt" by receipt_id,
    /// What a responsibility takes of whoever holds it.
    ResponsibilityContract(ResponsibilityContract) = "responsibility_contract" by contract_id,
    /// A recipient's consent to a handoff.
    HandoffConsent(HandoffConsent) = "handoff_consent" by handoff_ref,
    /// An accepted handoff.
    AcceptanceReceipt(AcceptanceReceipt) = "acceptance_receipt" by receipt_id,
    /// A discrepancy.
    Confession(Confession) = "confession" by confession_id,
    /// An over-disclosure.
    Incident(DisclosureIncident) = "incident" by incident_id,
    /// What is done about an over-disclosure.
    IncidentStep(IncidentStep) = "incident_step" by step_id,
    /// What an assessment read.
    ReadSet(ReadSet) = "read_set" by read_set_id,
    /// The contract of a conference.
    Conference(Conference) = "conference" by conference_id,
    /// A participant's move in one.
    ConferenceMove(ConferenceMove) = "conference_move" by move_id,
    /// What the runtime records of one.
    Proceeding(Proceeding) = "proceeding" by proceeding_id,
    /// A person's review of one exact artifact.
    ReviewReceipt(ReviewReceipt) = "review_receipt" by receipt_id,
    /// One exact action that somebody outside asks for.
    Call(Call) = "call" by call_id,
    /// An agent outside has taken up a unit of work.
    WorkTaken(WorkTaken) = "work_taken" by taken_id,
    /// What was said to an agent about something that it would do itself.
    Advice(Advice) = "advice" by advice_id,
    /// The user has calls observed for a time.
    Observing(Observing) = "observing" by observing_id,
    /// A call that is forwarded without being governed.
    UngovernedCall(UngovernedCall) = "ungoverned_call" by ungoverned_id,
}

impl ArtifactBody {
    /// What a signature over it covers; `None` for what only the runtime writes into its own record.
    #[must_use]
    pub const fn scope(&self) -> Option<SigningScope> {
        match self {
            Self::MatchReceipt(_) => Some(SigningScope::MatchReceipt),
            Self::DisclosureReceipt(_) => Some(SigningScope::DisclosureReceipt),
            Self::Declaration(_) => Some(SigningScope::Declaration),
            Self::UserDecision(_) => Some(SigningScope::UserDecision),
            Self::CommitReceipt(_) => Some(SigningScope::CommitReceipt),
            Self::RestrictionStatement(_) => Some(SigningScope::RestrictionStatement),
            Self::ReconciliationReceipt(_) => Some(SigningScope::ReconciliationReceipt),
            Self::ResponsibilityContract(_) => Some(SigningScope::ResponsibilityContract),
            Self::HandoffConsent(_) => Some(SigningScope::HandoffConsent),
            Self::AcceptanceReceipt(_) => Some(SigningScope::AcceptanceReceipt),
            Self::Confession(_) => Some(SigningScope::Confession),
            Self::Incident(_) | Self::IncidentStep(_) => Some(SigningScope::DisclosureIncident),
            Self::Conference(_) => Some(SigningScope::Conference),
            Self::ConferenceMove(_) => Some(SigningScope::ConferenceMove),
            Self::ReviewReceipt(_) => Some(SigningScope::ReviewReceipt),
            // What a participant says in a call is what it would have answered work with.
            Self::Call(_) => Some(SigningScope::Result),
            Self::WorkTaken(_) => Some(SigningScope::Result),
            Self::Advice(_) => Some(SigningScope::Action),
            Self::Observing(_) => Some(SigningScope::Declaration),
            Self::UngovernedCall(_) => Some(SigningScope::Result),
            Self::ReadSet(_) | Self::Proceeding(_) => None,
        }
    }

    /// The artifact as something to be authenticated: its kind, id and digest, and who is said to have produced it.
    ///
    /// # Errors
    /// `schema_invalid` when it has no canonical form; `missing_authority` for what nobody submits.
    pub fn subject(&self, producer: &ActorRef) -> Result<Subject, Fault> {
        let unsubmitted = || Fault::new(RefusalCode::MissingAuthority, "this artifact is written by the runtime alone");
        Ok(Subject {
            id: Id::new(self.id().as_str()),
            content_digest: self.digest()?,
            scope: self.scope().ok_or_else(unsubmitted)?,
            producer: producer.actor_id.clone(),
            role: Some(producer.role),
        })
    }
}

/// The heads an assessment read: what must not have moved when its action is admitted (DEC-46).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadSet {
    /// Its id.
    pub read_set_id: ArtifactId,
    /// The adjudication that read them.
    pub adjudication_id: AdjudicationId,
    /// Each stream and its head's link digest; `None` where it was empty.
    pub heads: Vec<(StreamId, Option<Digest>)>,
}

impl Check for ReadSet {
    fn check(&self) -> Result<(), Fault> {
        self.read_set_id.check().map_err(|fault| fault.within("read_set_id"))
    }
}

/// What made an obligation eligible: an event that matched, a trigger that fired, a premise that went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The event, where one did.
    pub event_id: Option<EventId>,
    /// The match receipt, where there is one.
    pub match_receipt: Option<ArtifactRef>,
    /// The trigger, where one fired.
    pub reentry_id: Option<ReentryId>,
    /// Where the trigger fired from: its predicate's version and input cursor, in one digest (DEC-55).
    pub activation_key: Option<Digest>,
    /// For people.
    pub reason: Text,
}

/// An episode begins: bounded work on one obligation (SR5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activation {
    /// The episode.
    pub episode_id: EpisodeId,
    /// The obligation it works on.
    pub obligation_id: ObligationId,
    /// Everything that made it eligible since the last episode.
    pub causes: Vec<Cause>,
    /// The bound: when it stops at the latest.
    pub stops_at: Timestamp,
    /// Why it came before others: an order of work, and no estimate of what it is worth (§8.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<crate::priority::Priority>,
}

word_enum! {
    /// Why an episode ended. Ending never closes the obligation (§7.1).
    pub enum EpisodeEnd {
        /// Its work led to a commit.
        Committed = "committed",
        /// There was nothing to do or to decide.
        NothingToDo = "nothing_to_do",
        /// A judgment of the user is awaited.
        AwaitingUser = "awaiting_user",
        /// Something was refused; the refusal says why.
        Refused = "refused",
        /// The participant gave no answer that counts.
        NoAnswer = "no_answer",
        /// Its bound was reached.
        BoundReached = "bound_reached",
        /// Its effect is unknown and stays to be reconciled.
        EffectUnknown = "effect_unknown",
    }
}

/// An episode ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpisodeEnded {
    /// The episode.
    pub episode_id: EpisodeId,
    /// Its obligation.
    pub obligation_id: ObligationId,
    /// Why.
    pub end: EpisodeEnd,
    /// For people.
    pub reason: Text,
}

/// A trigger fired: its obligation is eligible for work (§1.1, C11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fired {
    /// The obligation.
    pub obligation_id: ObligationId,
    /// Which trigger, from which inputs.
    pub cause: Cause,
}

/// What an activation record holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "activation", rename_all = "snake_case")]
pub enum ActivationEntry {
    /// A trigger fired.
    Fired(Fired),
    /// An episode began.
    Began(Activation),
    /// An episode ended.
    Ended(EpisodeEnded),
}

/// The durable intent of one attempt: written before the effect, never after (§8.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The logical action.
    pub action_id: ActionId,
    /// The ACTION payload that was admitted.
    pub action_ref: ArtifactRef,
    /// The pre-action adjudication it rests on.
    pub adjudication_ref: ArtifactRef,
    /// The logical digest that was assessed, authorized, dispatched and is read back (invariant 3).
    pub logical_digest: Digest,
    /// The obligation.
    pub obligation_id: ObligationId,
    /// The episode.
    pub episode_id: EpisodeId,
    /// When it was authorized here.
    pub authorized_at: Timestamp,
    /// Until when it may be sent.
    pub valid_until: Timestamp,
    /// What is reserved with it.
    pub reserved: Amounts,
    /// The budget it is reserved in.
    pub budget_id: BudgetId,
    /// The newest restriction that was decided (DEC-48).
    pub restriction_cursor: u64,
    /// The profile in force.
    pub profile_ref: VersionedRef,
}

word_enum! {
    /// Where an attempt stands (DEC-49).
    pub enum AttemptStatus {
        /// Its intent is durable.
        Intended = "intended",
        /// It was sent.
        Dispatched = "dispatched",
        /// The call returned.
        Responded = "responded",
        /// It may or may not have taken effect.
        OutcomeUnknown = "outcome_unknown",
        /// An authoritative readback shows the effect.
        EffectConfirmed = "effect_confirmed",
        /// An authoritative readback, or the certainty that nothing was sent, shows that there is none.
        NoEffectConfirmed = "no_effect_confirmed",
    }
}

impl AttemptStatus {
    /// Whether the attempt blocks others on its operation and target (§8.2).
    #[must_use]
    pub const fn is_settled(self) -> bool {
        match self {
            Self::EffectConfirmed | Self::NoEffectConfirmed => true,
            Self::Intended | Self::Dispatched | Self::Responded | Self::OutcomeUnknown => false,
        }
    }
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Its intent.
    pub intent_ref: ArtifactRef,
    /// Its new status.
    pub status: AttemptStatus,
    /// When it was sent, where it was: with the intent's time, the residual interval (§8.1).
    pub sent_at: Option<Timestamp>,
    /// When the call returned, where it did.
    pub responded_at: Option<Timestamp>,
    /// What the call said; it establishes nothing.
    pub response: Option<Plain>,
    /// The readback that settled it, where one did.
    pub readback_ref: Option<ArtifactRef>,
    /// For people.
    pub reason: Text,
}

word_enum! {
    /// What moved in the ledger.
    pub enum LedgerMovement {
        /// A worst case was set aside.
        Reserved = "reserved",
        /// A reservation was settled with what was used.
        Settled = "settled",
        /// An undispatched reservation was given back.
        Released = "released",
    }
}

/// One movement in the budget ledger (§8.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerEntry {
    /// The reservation: an attempt's or a work's id.
    pub reservation: Key,
    /// The budgets that are debited, from the narrowest outwards.
    pub budgets: Vec<BudgetId>,
    /// What moved.
    pub movement: LedgerMovement,
    /// How much.
    pub amounts: Amounts,
}

/// Who owns an obligation from now on (C12, DEC-51).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnershipEntry {
    /// The obligation.
    pub obligation_id: ObligationId,
    /// The epoch, one above the last.
    pub epoch: u64,
    /// The owner.
    pub owner: ActorId,
    /// When the lease ends; `None` for no limit.
    pub lease_expiry: Option<Timestamp>,
    /// Why.
    pub reason: Text,
}

word_enum! {
    /// What a notice is about.
    pub enum NoticeKind {
        /// Someone is told of something overdue or beyond a limit, once (§7.2, §7.3).
        Escalation = "escalation",
        /// A key was revoked as compromised: what it authenticated is to be reassessed (DEC-13).
        KeyCompromise = "key_compromise",
        /// An incident in the ledger (§8.3).
        BudgetIncident = "budget_incident",
        /// Refusals that were too many to record one by one (design §5).
        AggregatedRefusals = "aggregated_refusals",
        /// The residual interval of an effect, or another limit of what is known.
        ResidualInterval = "residual_interval",
        /// A packet's deadline or a review passed.
        Overdue = "overdue",
        /// A repeat of a restriction already in force (§7.2).
        RestrictionRepeated = "restriction_repeated",
        /// Something was released that should not have been, and somebody answers for it (§4.3).
        DisclosureIncident = "disclosure_incident",
        /// What a recipient was given is withdrawn (§4.3).
        DisclosureWithdrawn = "disclosure_withdrawn",
        /// A packet was taken back: what it rests on has changed (§7.3).
        PacketWithdrawn = "packet_withdrawn",
        /// A newer packet asks the same in a packet's place (§7.3).
        PacketRefreshed = "packet_refreshed",
        /// What a handoff's acceptance takes has been seen to hold (C12).
        AcceptanceVerified = "acceptance_verified",
    }
}

/// A note for operators and owners. It decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// What it is about.
    pub kind: NoticeKind,
    /// Its key: one notice per key.
    pub key: Key,
    /// Whom it is for, where it is for one identity.
    pub owner: Option<ActorId>,
    /// What it concerns.
    pub subjects: Vec<Key>,
    /// For people.
    pub text: Text,
}

/// One record's body, typed.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// The first record.
    Genesis(Arc<Genesis>),
    /// A payload.
    Payload(Arc<Payload>),
    /// The authentication of the payload or artifact recorded beside it.
    Auth(AuthRecord),
    /// An artifact.
    Artifact(Arc<ArtifactBody>),
    /// A commit.
    Commit(Arc<Commit>),
    /// An intent.
    Intent(Arc<Intent>),
    /// An outcome.
    Outcome(Arc<Outcome>),
    /// A refusal.
    Refusal(Refusal),
    /// A ledger movement.
    Ledger(LedgerEntry),
    /// A change of ownership.
    Ownership(OwnershipEntry),
    /// The begin or end of an episode.
    Activation(ActivationEntry),
    /// A notice.
    Notice(Notice),
    /// A record that the fold passes over: a snapshot or a custody decision.
    Passed,
}

impl Entry {
    /// The record kind.
    #[must_use]
    pub const fn kind(&self) -> RecordKind {
        match self {
            Self::Genesis(_) => RecordKind::Genesis,
            Self::Payload(_) => RecordKind::Payload,
            Self::Auth(_) => RecordKind::Auth,
            Self::Artifact(_) => RecordKind::Artifact,
            Self::Commit(_) => RecordKind::Commit,
            Self::Intent(_) => RecordKind::Intent,
            Self::Outcome(_) => RecordKind::Outcome,
            Self::Refusal(_) => RecordKind::Refusal,
            Self::Ledger(_) => RecordKind::Ledger,
            Self::Ownership(_) => RecordKind::Ownership,
            Self::Activation(_) => RecordKind::Activation,
            Self::Notice(_) => RecordKind::Notice,
            Self::Passed => RecordKind::Snapshot,
        }
    }

    /// The canonical bytes of the body.
    ///
    /// # Errors
    /// `schema_invalid` when it has no canonical form.
    pub(crate) fn bytes(&self) -> Result<Arc<[u8]>, Fault> {
        Ok(match self {
            Self::Payload(payload) => return Ok(payload.bytes().clone()),
            Self::Genesis(body) => canonical::to_bytes(&**body)?.into(),
            Self::Auth(body) => canonical::to_bytes(body)?.into(),
            Self::Artifact(body) => body.bytes()?.into(),
            Self::Commit(body) => canonical::to_bytes(&**body)?.into(),
            Self::Intent(body) => canonical::to_bytes(&**body)?.into(),
            Self::Outcome(body) => canonical::to_bytes(&**body)?.into(),
            Self::Refusal(body) => canonical::to_bytes(body)?.into(),
            Self::Ledger(body) => canonical::to_bytes(body)?.into(),
            Self::Ownership(body) => canonical::to_bytes(body)?.into(),
            Self::Activation(body) => canonical::to_bytes(body)?.into(),
            Self::Notice(body) => canonical::to_bytes(body)?.into(),
            Self::Passed => Vec::new().into(),
        })
    }

    /// Reads a record's body. A body removed under a custody decision reads as passed over.
    ///
    /// # Errors
    /// `schema_invalid` and the codes of the body's contract: the log holds what this version cannot read.
    pub fn read(record: &Record) -> Result<Self, Fault> {
        use canonical::read as typed;
        let Some(bytes) = record.body.as_deref() else {
            return Ok(Self::Passed);
        };
        Ok(match record.kind {
            RecordKind::Genesis => Self::Genesis(Arc::new(typed(bytes)?)),
            RecordKind::Payload => Self::Payload(Arc::new(Payload::read(bytes)?)),
            RecordKind::Auth => Self::Auth(typed(bytes)?),
            RecordKind::Artifact => {
                let (kind, _) = record.id.split_once('/').unwrap_or((&record.id, ""));
                Self::Artifact(Arc::new(ArtifactBody::read(kind, bytes)?))
            }
            RecordKind::Commit => Self::Commit(Arc::new(typed(bytes)?)),
            RecordKind::Intent => Self::Intent(Arc::new(typed(bytes)?)),
            RecordKind::Outcome => Self::Outcome(Arc::new(typed(bytes)?)),
            RecordKind::Refusal => Self::Refusal(typed(bytes)?),
            RecordKind::Ledger => Self::Ledger(typed(bytes)?),
            RecordKind::Ownership => Self::Ownership(typed(bytes)?),
            RecordKind::Activation => Self::Activation(typed(bytes)?),
            RecordKind::Notice => Self::Notice(typed(bytes)?),
            RecordKind::Snapshot | RecordKind::Custody => Self::Passed,
        })
    }
}

/// The reference to a payload: its id and content digest.
#[must_use]
pub fn payload_ref(payload: &Payload) -> ArtifactRef {
    reference(payload.id(), payload.content_digest())
}

/// A reference by payload id and digest.
#[must_use]
pub fn reference(id: &PayloadId, digest: Digest) -> ArtifactRef {
    ArtifactRef { id: ArtifactId::new(id.as_str()), digest }
}
