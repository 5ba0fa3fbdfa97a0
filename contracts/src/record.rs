//! The record log's nouns: one body with N stream links, and the fenced append that writes it.
//!
//! `record_digest` covers kind, id, body digest and admission time and excludes links, log sequence and batch, so a body
//! can be carried by any log and removed under a custody decision without breaking a chain. Spec: design §3, §6.5.

use crate::canonical;
use crate::digest::Digest;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

crate::words! {
    /// What a record's body is.
    pub enum RecordKind {
        /// The first record of a space: its profile and the state it founds.
        Genesis = "genesis",
        /// One of the twelve payloads, as its canonical envelope bytes.
        Payload = "payload",
        /// The detached authentication of a payload or artifact.
        Auth = "auth",
        /// An immutable artifact beside the twelve payloads: receipt, declaration, decision, consent.
        Artifact = "artifact",
        /// A committed delta with what the service derived, linked to `state`.
        Commit = "commit",
        /// An admission: the durable intent of one attempt, before its effect.
        Intent = "intent",
        /// What became of an attempt: sent, not sent, responded, unknown, settled.
        Outcome = "outcome",
        /// A refusal with its code.
        Refusal = "refusal",
        /// A movement in the budget ledger.
        Ledger = "ledger",
        /// A change of ownership: acceptance, fence, lease.
        Ownership = "ownership",
        /// A trigger that was activated, consumed or expired.
        Activation = "activation",
        /// A note for operators: incident, violation, escalation, aggregated refusals.
        Notice = "notice",
        /// A snapshot of the fold, from which a rebuild may start.
        Snapshot = "snapshot",
        /// The removal of a body under a custody decision.
        Custody = "custody",
    }
}

crate::words! {
    /// Who may read a body below the full record (store §readers).
    pub enum CustodyClass {
        /// Readable by any reader of the space.
        Open = "open",
        /// Readable with the user's authority or by the services.
        Restricted = "restricted",
        /// Unreadable until released, to all but the services.
        Sealed = "sealed",
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident),+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a name.
            #[must_use]
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// The name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

names! {
    /// The history of one governed thing, such as `grant:g-1`. At most 512 bytes.
    StreamId,
    /// A key that is claimed at most once with one digest, such as `payload:pl-1`. At most 512 bytes.
    ClaimKey
}

/// The epoch of the sequencer's lease. Every append carries it; a stale one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// A place in the whole log: the sequence number of a record, from 1 in a space. Zero is before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub u64);

/// A place in one stream, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(pub u64);

/// The current revision of a stream: its last position and that link's digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Head {
    /// The last position.
    pub position: Position,
    /// The digest of the link at that position.
    pub link: Digest,
}

/// One record's membership in one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The stream.
    pub stream: StreamId,
    /// The record's position in it.
    pub position: Position,
    /// The link digest before this one, absent at position 1.
    pub previous: Option<Digest>,
}

impl Link {
    /// The link that continues `stream` after `head`.
    #[must_use]
    pub fn after(stream: StreamId, head: Option<Head>) -> Self {
        let position = Position(head.map_or(0, |head| head.position.0) + 1);
        Self { stream, position, previous: head.map(|head| head.link) }
    }

    /// `H({stream, position, previous_link_digest, record_digest})`: the stream's head after this record.
    #[must_use]
    pub fn head(&self, record: Digest) -> Head {
        let link = canonical::hash_parts(
            "closer.link.v1",
            &[
                self.stream.as_str().as_bytes(),
                &self.position.0.to_be_bytes(),
                self.previous.as_ref().map_or(&[][..], |digest| digest.raw()),
                record.raw(),
            ],
        );
        Head { position: self.position, link }
    }
}

/// A claim that a record makes: this key stands for this digest, for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The key.
    pub key: ClaimKey,
    /// What it stands for.
    pub digest: Digest,
}

/// One record: a header and its body. The body is absent once removed under a custody decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What the body is.
    pub kind: RecordKind,
    /// The id of what the body holds, unique with its kind.
    pub id: String,
    /// When the sequence admitted it.
    pub admitted_at: Timestamp,
    /// Who may read the body.
    pub custody: CustodyClass,
    /// The streams it continues, in the order they were linked.
    pub links: Vec<Link>,
    /// The claims it makes.
    pub claims: Vec<Claim>,
    /// The digest of the body's bytes.
    pub body_digest: Digest,
    /// The body.
    pub body: Option<Arc<[u8]>>,
}

impl Record {
    /// The digest that links cite: kind, id, body digest and admission time.
    #[must_use]
    pub fn digest(&self) -> Digest {
        canonical::hash_parts(
            "closer.record.v1",
            &[
                self.kind.as_str().as_bytes(),
                self.id.as_bytes(),
                self.body_digest.raw(),
                self.admitted_at.as_str().as_bytes(),
            ],
        )
    }
}

/// What must hold for an append to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// The stream's head is exactly this link digest, or the stream is empty.
    Head {
        /// The stream.
        stream: StreamId,
        /// Its expected link digest.
        expected: Option<Digest>,
    },
    /// The key is unclaimed, or claimed with this digest.
    Claim {
        /// The key.
        key: ClaimKey,
        /// The digest it may already stand for.
        allowed: Option<Digest>,
    },
}

/// Which part of the log's space an append may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Urgent commits, effect outcomes and reconciliation: may use the reserved segment.
    Reserved,
    /// Everything else: gets `storage_full` while the reserved segment is still free.
    Ordinary,
}

/// The one write: all guards hold and all records land durably, or nothing does. The head of every stream that a record
/// continues is guarded by the record's own link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencedAppend {
    /// Which space it may use.
    pub lane: Lane,
    /// What must hold beyond the records' own links.
    pub guards: Vec<Guard>,
    /// The records, in order.
    pub records: Vec<Record>,
}

/// The receipt of an append that landed: the log has its records durably, at these cursors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The epoch it was written under.
    pub epoch: Epoch,
    /// The cursor of its first record.
    pub first: Cursor,
    /// The cursor of its last record.
    pub last: Cursor,
}

/// Why an append did not land: which guard failed and what stood there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conflict {
    /// A stream had another head.
    Head {
        /// The stream.
        stream: StreamId,
        /// Its actual head.
        actual: Option<Head>,
    },
    /// A key was claimed with another digest.
    Claim {
        /// The key.
        key: ClaimKey,
        /// What it stands for.
        actual: Digest,
    },
    /// The sequencer's lease has passed to another epoch.
    Epoch {
        /// The epoch that holds the lease.
        actual: Epoch,
    },
}

/// Reads that a decision may make: the newest heads and claims, pending appends included.
pub trait Reads {
    /// The current head of a stream.
    fn head(&self, stream: &StreamId) -> Option<Head>;
    /// What a key stands for, or `None` when it is proved unclaimed.
    fn claim(&self, key: &ClaimKey) -> Option<Digest>;
}
