//! Ports: what the core asks of the world. Adapters implement them; actors call them; nothing here decides.
//!
//! Futures are plain `std` futures, so the core names no runtime.

use crate::incident::{Answer as Withdrawn, ScopedNotice};
use closer_contracts::action::Action;
use closer_contracts::canonical;
use closer_contracts::conference::MoveAnswer;
use closer_contracts::id::{ActionId, AttemptId, Text};
use closer_contracts::item::{OperationEntry, ReadbackMethod};
use closer_contracts::refs::{Amounts, Plain, Target, TypedValue};
use closer_contracts::refusal::RefusalCode;
use closer_contracts::time::Timestamp;
use closer_contracts::work::{TargetVersion, Work};
use closer_monitor::{ClockStanding, Permit};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A boxed future that any runtime can drive.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The runtime's one clock (DEC-59): UTC, guarded never to run backwards across restarts.
pub trait Clock: Send + Sync {
    /// The time now, and whether it can be trusted.
    fn now(&self) -> (Timestamp, ClockStanding);
}

/// Fresh ids. They enter the core inside inputs and are recorded.
pub trait Ids: Send + Sync {
    /// An id that was never given before, beginning with `prefix` and a hyphen.
    fn fresh(&self, prefix: &str) -> String;

    /// At least 128 random bits in hexadecimal, which nobody can guess (DEC-40).
    fn nonce(&self) -> String;
}

/// One admitted effect: the exact action and the registry entry it was admitted under.
#[derive(Debug, Clone)]
pub struct Order {
    /// The action.
    pub action: Arc<Action>,
    /// The entry; its `contract` tells the adapter how.
    pub entry: Arc<OperationEntry>,
}

/// What the call itself came to. It never establishes the effect (invariant 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Performed {
    /// The call returned.
    Responded {
        /// When it was sent.
        sent_at: Timestamp,
        /// When it returned.
        responded_at: Timestamp,
        /// What it said, for the record only.
        response: Plain,
    },
    /// It may or may not have taken effect: timed out, connection lost, killed.
    Unknown {
        /// When it was sent.
        sent_at: Timestamp,
        /// Why it is not known.
        reason: Text,
    },
    /// It certainly did not leave: refused before sending.
    NotSent {
        /// Why.
        reason: Text,
    },
}

/// Carries out operations. The only way to an effect, and it takes a permit.
pub trait Operations: Send + Sync {
    /// Performs one admitted effect once. The permit is used up.
    fn perform<'a>(&'a self, permit: Permit, order: &'a Order) -> Pending<'a, Performed>;

    /// Asks the provider to cancel a running effect, where the operation supports it. Not proof of anything (§8.3).
    fn cancel<'a>(&'a self, attempt_id: &'a AttemptId, order: &'a Order) -> Pending<'a, ()>;
}

/// One observation to make.
#[derive(Debug, Clone)]
pub struct ReadbackOrder {
    /// How.
    pub method: Arc<ReadbackMethod>,
    /// Of what.
    pub target: Target,
    /// The action it reads back, where it reads one back.
    pub action_id: Option<ActionId>,
    /// The attempt it reads back, where it reads one back.
    pub attempt_id: Option<AttemptId>,
}

/// What was observed of a target, apart from any call's own response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed {
    /// The target showed this.
    Seen {
        /// The target as it named itself; another account than asked for establishes nothing.
        target: Target,
        /// When it was looked at.
        observed_at: Timestamp,
        /// Its own version, where it states one.
        target_version: TargetVersion,
        /// What it showed, by field.
        observation: TypedValue,
        /// What the observation cannot tell.
        limitations: Vec<Text>,
    },
    /// It could not be looked at.
    Unavailable {
        /// When it was tried.
        observed_at: Timestamp,
        /// Why.
        reason: Text,
    },
}

/// Observes targets by registered methods.
pub trait Observer: Send + Sync {
    /// Looks once.
    fn observe<'a>(&'a self, order: &'a ReadbackOrder) -> Pending<'a, Observed>;
}

/// What a participant said, and what that took as far as anybody measured it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The canonical bytes of what it said.
    pub bytes: Vec<u8>,
    /// What it used; a figure that nobody measured stays unknown.
    pub used: Amounts,
}

impl From<Vec<u8>> for Said {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, used: Amounts::default() }
    }
}

/// Why a participant gave no answer that counts. It is a counted failure: nothing repairs it, nobody asks again (C6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoAnswer {
    /// What was wrong: `no_answer` where there was none, else what its answer is refused as.
    pub code: RefusalCode,
    /// Why.
    pub reason: Text,
    /// What it used all the same; a figure that nobody measured stays unknown.
    pub used: Amounts,
}

impl NoAnswer {
    /// A failure that used nothing that anybody measured.
    #[must_use]
    pub fn new(code: RefusalCode, reason: impl Into<Text>) -> Self {
        Self { code, reason: reason.into(), used: Amounts::default() }
    }
}

/// Does bounded work. It is handed its packet and nothing else, and its answer is untrusted bytes.
pub trait Participant: Send + Sync {
    /// Answers one unit of work with the canonical bytes of a RESULT body.
    fn work<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Said, NoAnswer>>;

    /// Answers one turn of a conference with the canonical bytes of a [`MoveAnswer`]. Who has no way to make moves defers.
    fn turn<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Said, NoAnswer>> {
        Box::pin(async move { deferring(work) })
    }

    /// Is told that something it was given is withdrawn; says what became of its copies, or says nothing (§4.3).
    fn withdraw<'a>(&'a self, _: &'a ScopedNotice) -> Pending<'a, Option<(Withdrawn, Text)>> {
        Box::pin(std::future::ready(None))
    }
}

/// Nothing to say for now, on the first subject of the work.
///
/// # Errors
/// [`NoAnswer`] when the packet does not hold its subject.
pub fn deferring(work: &Work) -> Result<Said, NoAnswer> {
    let subject = work.question.subject_refs.first();
    let held =
        work.context_items.iter().find(|item| subject.is_some_and(|id| id.as_str() == item.reference.id.as_str()));
    let missing = || NoAnswer::new(RefusalCode::CoverageMissing, "the packet does not hold its subject");
    let answer = MoveAnswer::deferring(work.work_id.clone(), held.ok_or_else(missing)?.reference.digest);
    let bytes = canonical::to_bytes(&answer).map_err(|fault| NoAnswer::new(fault.code, fault.reason.into_owned()))?;
    Ok(bytes.into())
}
