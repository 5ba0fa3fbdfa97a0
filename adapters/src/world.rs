//! The world as one deployment meets it.

use crate::operations::{HttpClient, OperationRegistry};
use crate::participants::ParticipantConfig;
use crate::process::ProcessLedger;
use crate::readback::ReadbackObserver;
use closer_contracts::id::ActorId;
use closer_protocol::port::{Clock, Observer, Operations, Participant};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What the world is made from. Operations and readback methods need nothing here: their contracts are registry entries.
pub struct WorldConfig {
    /// The runtime's clock.
    pub clock: Arc<dyn Clock>,
    /// Where task-owned processes are put on record.
    pub processes: Arc<dyn ProcessLedger>,
    /// The participants, by identity.
    pub participants: BTreeMap<ActorId, ParticipantConfig>,
}

impl fmt::Debug for WorldConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorldConfig")
            .field("participants", &self.participants)
            .finish_non_exhaustive()
    }
}

/// The ports of [`closer_protocol::port`] that lead outside.
#[derive(Clone)]
pub struct World {
    /// Carries out operations.
    pub operations: Arc<dyn Operations>,
    /// Looks at targets.
    pub observer: Arc<dyn Observer>,
    /// Does bounded work, by identity.
    pub participants: BTreeMap<ActorId, Arc<dyn Participant>>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("participants", &self.participants.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl World {
    /// Puts the world together. Nothing is touched yet.
    #[must_use]
    pub fn new(config: WorldConfig) -> Self {
        let WorldConfig {
            clock,
            processes,
            participants,
        } = config;
        let client = HttpClient;
        Self {
            operations: Arc::new(OperationRegistry::new(
                Arc::clone(&clock),
                Arc::clone(&processes),
                client.clone(),
            )),
            observer: Arc::new(ReadbackObserver::new(clock, processes, client)),
            participants: participants
                .into_iter()
                .map(|(identity, participant)| (identity, participant.build()))
                .collect(),
        }
    }
}
