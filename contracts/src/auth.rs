//! How a payload or artifact is authenticated: a detached record beside it, never an actor's name or a bare digest.
//!
//! Spec: §6.1, DEC-12, DEC-13.

use crate::digest::Digest;
use crate::id::{ActorId, Id, Key, KeyId, SessionId};
use crate::item::Mechanism;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What proves the identity, by mechanism.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "mechanism", rename_all = "snake_case", deny_unknown_fields)]
pub enum Proof {
    /// An in-process session that the runtime bound to the identity.
    Session {
        /// The session.
        session_id: SessionId,
    },
    /// An Ed25519 signature over `content_digest` and the signing scope.
    Ed25519 {
        /// The signing key.
        key_id: KeyId,
        /// 64 bytes in lowercase hexadecimal.
        signature: Key,
    },
}

impl Proof {
    /// The mechanism.
    #[must_use]
    pub const fn mechanism(&self) -> Mechanism {
        match self {
            Self::Session { .. } => Mechanism::Session,
            Self::Ed25519 { .. } => Mechanism::Ed25519,
        }
    }
}

/// The detached authentication of one payload or artifact (DEC-12).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthRecord {
    /// What is authenticated.
    pub subject_id: Id,
    /// Its content digest.
    pub content_digest: Digest,
    /// The identity that is established.
    pub identity: ActorId,
    /// How.
    pub proof: Proof,
    /// When the runtime received it; key status is judged at this time (DEC-13).
    pub received_at: Timestamp,
}
