//! Everything the monitor looks at, gathered by the sequence before it judges.

use closer_contracts::action::Action;
use closer_contracts::adjudication::Adjudication;
use closer_contracts::digest::Digest;
use closer_contracts::id::{ActorId, AttemptId, ObligationId};
use closer_contracts::refs::ActorRef;
use closer_contracts::time::Timestamp;
use closer_state::State;

/// Whether the runtime's clock can be trusted (DEC-59).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockStanding {
    /// It has not run backwards and is not in doubt.
    Reliable,
    /// Nothing that depends on time is permitted.
    Unreliable,
}

/// The adjudication that is offered for the action.
#[derive(Debug, Clone, Copy)]
pub struct Offered<'a> {
    /// The adjudication.
    pub adjudication: &'a Adjudication,
    /// The action it assessed, where its subject is one on record.
    pub assessed: Option<&'a Action>,
}

/// A fact of the action's read set that is no longer as it was when the action was assessed (DEC-46).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedFact {
    /// What moved, in the protocol's words: `proposition:p-export`, `grant:g-1`.
    pub fact: String,
    /// How it moved.
    pub change: String,
}

/// Who owns the obligation, and until when (C12, DEC-51).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// The current epoch.
    pub epoch: u64,
    /// The owner under that epoch.
    pub owner: ActorId,
    /// When its lease ends; `None` for no limit.
    pub lease_expiry: Option<Timestamp>,
    /// Whether the owner accepted it.
    pub standing: OwnershipStanding,
}

/// How somebody came to answer for an obligation (DEC-53).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnershipStanding {
    /// It was accepted, or has been its owner's from the beginning.
    Held,
    /// A lease ended and nobody has accepted since: what is in flight is reconciled, nothing is dispatched.
    Fenced,
}

/// What the idempotency key stands for so far (§6.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyStanding {
    /// Nothing yet.
    Unused,
    /// A logical digest: the action's own, or another.
    StandsFor(Digest),
}

/// What is known of attempts on the action's operation and target (§8.2, DEC-47).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptStanding {
    /// Nothing is unsettled, and this logical action has had no attempt.
    First,
    /// Nothing is unsettled; this logical action was attempted before, and its effect was not confirmed.
    Again,
    /// This logical action's effect is confirmed.
    Done(AttemptId),
    /// An attempt on the operation and target is not settled.
    Unsettled(AttemptId),
    /// This very attempt id is on record.
    Reused,
}

/// Whether the action's inputs may be released to where the effect takes place (§6.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisclosureStanding {
    /// They may.
    Released,
    /// They may not: which, and to whom.
    Denied(String),
    /// They derive from something that was released wrongly: which incident must be reconciled first (§4.3).
    Suspended(String),
}

/// Whether the worst case of the whole unit fits every budget above it (§8.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reservation {
    /// It fits.
    Fits,
    /// It does not: which budget and dimension.
    Exceeds(String),
    /// The operation states no worst case in a dimension that is capped.
    Uncapped(String),
}

/// Everything the monitor looks at.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    /// The runtime's time.
    pub now: &'a Timestamp,
    /// Whether it can be trusted.
    pub clock: ClockStanding,
    /// The newest accepted state, appends under way included.
    pub state: &'a State,
    /// Who asks, as authenticated.
    pub producer: &'a ActorRef,
    /// Who proposed it: the participant or planner whose capabilities count.
    pub proposer: &'a ActorId,
    /// The obligation it serves.
    pub obligation_id: &'a ObligationId,
    /// The attempt.
    pub action: &'a Action,
    /// The adjudication offered for it; `None` when there is none on record.
    pub offered: Option<Offered<'a>>,
    /// What has moved since.
    pub moved: &'a [MovedFact],
    /// Who owns the obligation.
    pub ownership: &'a Ownership,
    /// How many calls its grant has been used for: attempts under it that had, or may have had, an effect.
    pub grant_calls: u64,
    /// Its key.
    pub key: KeyStanding,
    /// Its attempts.
    pub attempt: AttemptStanding,
    /// Its inputs.
    pub disclosure: DisclosureStanding,
    /// Its worst case.
    pub reservation: Reservation,
}
