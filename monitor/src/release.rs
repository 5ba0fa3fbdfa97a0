//! From admission to permit, and the last look before sending.

use crate::judge::Admission;
use closer_contracts::branch;
use closer_contracts::digest::Digest;
use closer_contracts::id::{ActionId, AttemptId};
use closer_contracts::record::{Cursor, Epoch};
use closer_contracts::time::Timestamp;

/// The proof that a record is durable: where it stands and under which epoch it was written.
///
/// Made by the shell from the log's acknowledgment of the append that carried the intent, and only from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The intent's record.
    pub record: Cursor,
    /// The sequencer's epoch.
    pub epoch: Epoch,
    /// The newest decided restriction when the intent was decided.
    pub restriction_cursor: u64,
}

/// The only thing that lets an adapter act: one attempt, once. It cannot be copied, stored or made again after a crash.
#[derive(Debug)]
pub struct Permit {
    admission: Admission,
    appended: Appended,
}

/// Turns an admission whose record is durable into its permit.
#[must_use]
pub const fn release(admission: Admission, appended: Appended) -> Permit {
    Permit { admission, appended }
}

/// What the dispatcher sees right before sending.
#[derive(Debug, Clone, Copy)]
pub struct LastCheck<'a> {
    /// The guarded clock.
    pub now: &'a Timestamp,
    /// The newest decided restriction.
    pub restriction_cursor: u64,
    /// The epoch that holds the lease now.
    pub epoch: Epoch,
}

/// Why a permitted effect was not sent after all. It is recorded; the attempt is settled as not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSent {
    /// The permit's time is over.
    Expired,
    /// A restriction was decided after the intent.
    Restricted,
    /// Another sequencer holds the lease.
    Fenced,
}

impl NotSent {
    /// The reason in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "the permit's time was over before sending",
            Self::Restricted => "a restriction was decided before sending",
            Self::Fenced => "the sequencer's lease passed to another process before sending",
        }
    }
}

impl Permit {
    /// The action.
    #[must_use]
    pub const fn action_id(&self) -> &ActionId {
        &self.admission.action_id
    }

    /// The attempt.
    #[must_use]
    pub const fn attempt_id(&self) -> &AttemptId {
        &self.admission.attempt_id
    }

    /// The logical digest that was admitted.
    #[must_use]
    pub const fn logical_digest(&self) -> Digest {
        self.admission.logical_digest
    }

    /// The contract that the operation is pinned to.
    #[must_use]
    pub const fn contract_digest(&self) -> Digest {
        self.admission.contract_digest
    }

    /// Until when it may be used.
    #[must_use]
    pub const fn valid_until(&self) -> &Timestamp {
        &self.admission.valid_until
    }

    /// The intent's record.
    #[must_use]
    pub const fn record(&self) -> Cursor {
        self.appended.record
    }

    /// The last look before sending: time, restrictions and lease are as they were, or the effect is not sent (DEC-48).
    ///
    /// # Errors
    /// [`NotSent`], to be recorded as the attempt's outcome.
    pub fn check(self, last: LastCheck<'_>) -> Result<Self, NotSent> {
        if branch!("monitor.permit_expired", self.admission.valid_until <= *last.now) {
            return Err(NotSent::Expired);
        }
        if branch!("monitor.restricted_since", self.appended.restriction_cursor < last.restriction_cursor) {
            return Err(NotSent::Restricted);
        }
        if branch!("monitor.permit_fenced", self.appended.epoch != last.epoch) {
            return Err(NotSent::Fenced);
        }
        Ok(self)
    }
}
