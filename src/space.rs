//! One space as the faces see it: what is on record, and the one way to have something decided.
//!
//! A space is either running, behind the actors of this process, or resting: then this process holds the store just long
//! enough to answer one request, and nothing outside is touched. What a resting space records, the next run takes up.

mod resting;
mod running;

pub use resting::Resting;
pub use running::Running;

use crate::error::Error;
use closer_adapters::McpServers;
use closer_contracts::envelope::Payload;
use closer_contracts::fault::Fault;
use closer_contracts::id::{Key, KeyId};
use closer_contracts::refs::ActorRef;
use closer_protocol::disclose::Request;
use closer_protocol::entry::ArtifactBody;
use closer_protocol::port::Pending;
use closer_protocol::{Input, Moment, Reply, Submission, View};
use closer_store::Log;
use std::sync::Arc;

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
    /// Judges whether a payload's producer is established: by its signature, or by the session that this face holds.
    ///
    /// # Errors
    /// `unauthenticated`, with the reason.
    fn payload(&self, payload: Payload, signature: Option<&(KeyId, Key)>) -> Result<Submission<Payload>, Fault>;
    /// Judges whether an artifact's producer is established: by its signature, or by the session that this face holds.
    ///
    /// # Errors
    /// `unauthenticated`, with the reason; `missing_authority` for what only the runtime writes.
    fn artifact(
        &self,
        artifact: ArtifactBody,
        producer: ActorRef,
        signature: Option<&(KeyId, Key)>,
    ) -> Result<Submission<ArtifactBody>, Fault>;
    /// Judges whether whoever asks for a part of the record is established, by the session that this face holds.
    ///
    /// # Errors
    /// `unauthenticated`, with the reason.
    fn request(&self, request: Request, producer: ActorRef) -> Result<Submission<Request>, Fault>;
    /// Has an input decided, and answers once its records are durable.
    ///
    /// # Errors
    /// What kept it from being decided or recorded; a refusal is a [`Reply`].
    fn submit(&self, input: Input) -> Pending<'_, Result<Reply, Error>>;
    /// The MCP servers behind it; none where it rests, because then nothing outside is touched.
    fn servers(&self) -> Option<&McpServers>;
    /// Resolves when what is durable is no longer this.
    fn changed<'a>(&'a self, than: &'a Arc<View>) -> Pending<'a, ()>;
}
