//! What can go wrong in the store, told in the operator's words.

use closer_contracts::record::{Conflict, Cursor};
use std::fmt;
use std::sync::Arc;

/// An operation of the store failed, or was declined for lack of room.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The undurable suffix or the derived state's lag is at its bound; try again shortly.
    #[error("the log is busy: {0}")]
    Busy(&'static str),
    /// Only the reserved segment is left, and the append may not use it; or not even that is left.
    #[error("the store is full")]
    StoreFull,
    /// A write or sync failed earlier. Nothing is accepted until the log is opened again from disk.
    #[error("the log stopped accepting after a failed write: {0}")]
    Poisoned(Arc<str>),
    /// The log was closed.
    #[error("the log is closed")]
    Closed,
    /// The log was opened for reading alone.
    #[error("the store cannot be written to: it was opened for reading alone")]
    ReadOnly,
    /// The derived state could not be built.
    #[error("the derived state could not be built: {0}")]
    Derived(Arc<str>),
    /// Another process holds the directory.
    #[error("another process holds the store")]
    Locked,
    /// The directory was written by a newer version of this program, and was left untouched.
    #[error("the store has format version {found}, this program knows up to {known}; nothing was changed")]
    NewerVersion {
        /// The version found in the store.
        found: u32,
        /// The newest version this program knows.
        known: u32,
    },
    /// Bytes on disk are not what was written.
    #[error(transparent)]
    Corruption(#[from] Corruption),
    /// The append cannot be written as given.
    #[error("malformed append: {0}")]
    Malformed(String),
    /// The cursor lies beyond the durable end of the log.
    #[error("no record at cursor {0}")]
    NoRecord(u64),
    /// The destination of a restore or backup is not empty.
    #[error("the destination `{0}` is not empty")]
    NotEmpty(String),
    /// The destination of a restore or backup has too little room; nothing is left of it there.
    #[error("there is too little room at `{0}`; nothing was left behind there")]
    NoRoom(String),
    /// A backup does not agree with its manifest.
    #[error("the backup does not agree with its manifest: {0}")]
    Manifest(String),
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's error.
        source: Arc<std::io::Error>,
    },
}

impl StoreError {
    /// Wraps a system error with what was being done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { what: what.into(), source: Arc::new(source) }
    }
}

/// Damage found on disk: where, and in which record if that is known. Never repaired silently.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Corruption {
    /// The segment's number.
    pub segment: u64,
    /// The byte offset in the segment of the batch, frame or body that is damaged.
    pub offset: u64,
    /// The record that is damaged, or the first that is lost.
    pub record: Option<Cursor>,
    /// What does not fit.
    pub what: &'static str,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "corruption in segment {} at offset {}", self.segment, self.offset)?;
        if let Some(record) = self.record {
            write!(f, ", record {}", record.0)?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Why an append was not taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Declined {
    /// A guard did not hold; nothing of the append lands.
    #[error("a guard failed: {0:?}")]
    Conflict(Conflict),
    /// The store could not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}
