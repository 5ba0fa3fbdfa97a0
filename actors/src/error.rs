//! What can go wrong in the shells, told in the operator's words. A refusal is none of it: a refusal is a reply.

use closer_contracts::Fault;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode};
use closer_protocol::view::Divergence;
use closer_store::StoreError;

/// An operation of the runtime failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// As much work is admitted and not settled as the runtime takes; try again shortly. Never for the reserved lane.
    #[error("the runtime is busy: as much work is admitted as it takes")]
    Busy,
    /// The runtime is stopping or has stopped.
    #[error("the runtime has stopped")]
    Stopped,
    /// The actor that held the input died before it was settled. Whether it was recorded, the record says.
    #[error("the input was interrupted before it was settled; look at the record")]
    Interrupted,
    /// The identity was refused; the fault says why.
    #[error("{0}")]
    Refused(Fault),
    /// Another sequencer holds the space's lease.
    #[error("another process took the space's lease")]
    Fenced,
    /// The log failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record does not fold: the log and this version disagree.
    #[error(transparent)]
    Divergence(#[from] Divergence),
    /// A record's body cannot be read by this version.
    #[error("record {cursor} cannot be read: {fault}")]
    Unreadable {
        /// Its place in the log.
        cursor: u64,
        /// What does not fit.
        fault: Fault,
    },
    /// The log holds no genesis record.
    #[error("the log is empty: the space was never founded")]
    Unfounded,
    /// The log to be founded is not empty.
    #[error("the space is founded already")]
    Founded,
    /// What is to be founded does not fit its contracts.
    #[error("the space cannot be founded: {0}")]
    Founding(Fault),
    /// An actor could not be started.
    #[error("an actor could not be started: {0}")]
    Start(String),
}

/// What ordinary work is told while only the reserved space of the log is left.
#[must_use]
pub fn storage_full() -> Denial {
    Denial::new(RefusalCode::StorageFull, CheckKind::Runtime, "the disk is full; nothing but restrictions is recorded")
}
