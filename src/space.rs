//! One space as the faces see it: what is on record, and the one way to have something decided.
//!
//! A space is either running, behind the actors of this process, or resting: then this process holds the store just long
//! enough to answer one request, and nothing outside is touched. What a resting space records, the next run takes up.

mod resting;

pub use resting::Resting;

use crate::error::Error;
use closer_contracts::auth::{Authenticated, SigningScope};
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, Id, Key, KeyId};
use closer_contracts::refs::ProducerRole;
use closer_protocol::port::Pending;
use closer_protocol::{Input, Moment, Reply, View};
use closer_store::Log;
use std::sync::Arc;

/// What is to be authenticated, and by what.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The id of what is submitted.
    pub id: Id,
    /// Its content digest.
    pub content_digest: Digest,
    /// What it is.
    pub scope: SigningScope,
    /// The identity it claims.
    pub identity: ActorId,
    /// The role it claims, where it is a payload.
    pub role: Option<ProducerRole>,
    /// Its signature; without one, the session that the face bound to the identity.
    pub signature: Option<(KeyId, Key)>,
}

/// A space that can be asked.
pub trait Space: Send + Sync {
    /// The log.
    fn log(&self) -> &Arc<Log>;
    /// What is durable, folded.
    fn view(&self) -> Arc<View>;
    /// The runtime's time.
    fn moment(&self) -> Moment;
    /// An id that was never given before.
    fn fresh(&self, prefix: &str) -> String;
    /// Judges whether an identity is established.
    ///
    /// # Errors
    /// `unauthenticated`, with the reason.
    fn authenticate(&self, claimed: &Claimed) -> Result<Authenticated, Fault>;
    /// Has an input decided, and answers once its records are durable.
    ///
    /// # Errors
    /// What kept it from being decided or recorded; a refusal is a [`Reply`].
    fn submit(&self, input: Input) -> Pending<'_, Result<Reply, Error>>;
}
