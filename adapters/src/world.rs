//! The world as one deployment meets it.

use crate::mcp::McpServers;
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
    /// The MCP servers whose tools are operations or readbacks.
    pub servers: McpServers,
}

impl fmt::Debug for WorldConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorldConfig").field("participants", &self.participants).finish_non_exhaustive()
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
        let WorldConfig { clock, processes, participants, servers } = config;
        let client = HttpClient::default();
        Self {
            operations: Arc::new(OperationRegistry::new(
                Arc::clone(&clock),
                Arc::clone(&processes),
                client.clone(),
                servers.clone(),
            )),
            observer: Arc::new(ReadbackObserver::new(clock, processes, client, servers)),
            participants: participants
                .into_iter()
                .map(|(identity, participant)| (identity, participant.build()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::OperationContract;
    use crate::readback::ReadbackContract;
    use closer_contracts::refs::Plain;
    use serde_json::Value;

    /// The blocks of one language in the page that documents the contracts.
    fn documented(language: &str) -> Vec<String> {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/adapters.md")).unwrap();
        let opening = format!("```{language}\n");
        let blocks = page.split(&opening).skip(1);
        blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_documented_contract_can_be_read() {
        let mut kinds = Vec::new();
        for block in documented("json") {
            for contract in serde_json::Deserializer::from_str(&block).into_iter::<Value>() {
                let contract = Plain(contract.unwrap());
                let operation = OperationContract::read(&contract.0).map(drop);
                let readback = ReadbackContract::read(&contract.0).map(drop);
                assert!(operation.is_ok() || readback.is_ok(), "{contract:?}: {operation:?} {readback:?}");
                kinds.push(contract.0["kind"].as_str().unwrap().to_owned());
            }
        }
        kinds.sort_unstable();
        assert_eq!(
            kinds,
            [
                "command",
                "command",
                "file",
                "file_write",
                "http",
                "http_get",
                "mcp_read",
                "mcp_tool",
                "person",
                "x509_file"
            ]
        );
    }

    #[test]
    fn every_documented_participant_can_be_built() {
        let participants = documented("toml").into_iter().enumerate().map(|(number, block)| {
            let config: ParticipantConfig = toml::from_str(&block).unwrap_or_else(|error| panic!("{block}: {error}"));
            (ActorId::from(format!("participant-{number}")), config)
        });
        let world = World::new(WorldConfig {
            clock: Arc::new(crate::clock::ManualClock::at(closer_contracts::Timestamp::from_unix_ms(0))),
            processes: Arc::new(crate::MemoryLedger::default()),
            participants: participants.collect(),
            servers: McpServers::default(),
        });
        assert_eq!(world.participants.len(), 5);
    }
}
