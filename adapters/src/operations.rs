//! Operations: the only way from here to an effect, and it takes a permit. What observing forwards is no effect of this runtime
//! (see [`crate::mcp::forward`]).
//!
//! A registry entry's `contract` says how an operation is carried out; its member `kind` chooses one of the adapters
//! below. A permit that does not cover exactly this action under exactly this contract changes nothing, and neither does
//! a contract that cannot be read. What a call answered is reported for the record and establishes nothing.

mod command;
mod file_write;
mod http;
mod mcp;
mod permitted;
mod report;

pub use command::Command;
pub use file_write::{ABSENT, FileWrite, repeat_safety};
pub use http::{Http, Method};
pub use mcp::{Expected, McpTool};

pub(crate) use file_write::{OPEN_SUFFIX, aside_prefix};
pub(crate) use http::{Body, HttpClient, Location, SendError, require_private};
pub(crate) use permitted::Permitted;
pub(crate) use report::reason;

use crate::declared::{Names, Reach};
use crate::mcp::McpServers;
use crate::process::{ProcessLedger, terminate_attempt};
use closer_contracts::fault::Fault;
use closer_contracts::id::AttemptId;
use closer_contracts::item::OperationEntry;
use closer_monitor::Permit;
use closer_protocol::port::{Clock, Operations, Order, Pending, Performed};
use report::{not_sent, unknown};
use std::sync::Arc;

crate::declared::by_kind! {
    /// How an operation is carried out: the `contract` of a registry entry.
    pub enum OperationContract: "an operation's contract" {
        /// See [`FileWrite`].
        "file_write" => FileWrite(FileWrite),
        /// See [`Command`].
        "command" => Command(Command),
        /// See [`Http`].
        "http" => Http(Http),
        /// See [`McpTool`].
        "mcp_tool" => McpTool(McpTool),
    }
}

impl OperationContract {
    /// Whether everything it names is there and everything it bounds can be, as far as that is told without acting.
    ///
    /// # Errors
    /// `schema_invalid` with the path of what does not fit.
    pub fn check(&self, entry: &OperationEntry) -> Result<(), Fault> {
        let names = Names(&entry.parameters);
        match self {
            Self::FileWrite(contract) => contract.check(names),
            Self::Command(contract) => contract.run.check(names).map_err(|fault| fault.within("run")),
            Self::Http(contract) => contract.check(entry.effect_class, names),
            Self::McpTool(contract) => contract.check(names),
        }
    }

    /// Which targets it can act on.
    #[must_use]
    pub fn reach(&self) -> Reach<'_> {
        match self {
            Self::FileWrite(contract) => Reach { account: Some(&contract.account), within: Some(&contract.root) },
            Self::Command(contract) => {
                Reach { account: Some(&contract.account), within: contract.run.target_root.as_deref() }
            }
            Self::Http(contract) => Reach { account: None, within: contract.endpoint.root() },
            Self::McpTool(contract) => Reach { account: Some(&contract.account), within: contract.root.as_deref() },
        }
    }
}

/// Carries out operations by the kind of their contract.
pub struct OperationRegistry {
    clock: Arc<dyn Clock>,
    ledger: Arc<dyn ProcessLedger>,
    client: HttpClient,
    servers: McpServers,
}

impl std::fmt::Debug for OperationRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperationRegistry").finish_non_exhaustive()
    }
}

impl OperationRegistry {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        ledger: Arc<dyn ProcessLedger>,
        client: HttpClient,
        servers: McpServers,
    ) -> Self {
        Self { clock, ledger, client, servers }
    }

    async fn carry_out(&self, permit: Permit, order: &Order) -> Performed {
        let permitted = match Permitted::under(permit, order) {
            Ok(permitted) => permitted,
            Err(reason) => return not_sent(reason),
        };
        match OperationContract::read(&order.entry.contract.0) {
            Err(fault) => not_sent(format!("the operation's contract cannot be read: {fault}")),
            Ok(OperationContract::Http(contract)) => {
                http::perform(&permitted, &contract, &self.client, self.clock.as_ref()).await
            }
            Ok(OperationContract::McpTool(contract)) => {
                mcp::perform(&permitted, &contract, &self.servers, self.clock.as_ref()).await
            }
            Ok(OperationContract::FileWrite(contract)) => {
                let clock = Arc::clone(&self.clock);
                self.blocking(permitted, move |permitted| file_write::perform(permitted, &contract, clock.as_ref()))
                    .await
            }
            Ok(OperationContract::Command(contract)) => {
                let (clock, ledger) = (Arc::clone(&self.clock), Arc::clone(&self.ledger));
                self.blocking(permitted, move |permitted| {
                    command::perform(permitted, &contract, clock.as_ref(), ledger.as_ref())
                })
                .await
            }
        }
    }

    /// Runs what waits for disk or process away from the runtime's own threads.
    async fn blocking(
        &self,
        permitted: Permitted,
        work: impl FnOnce(&Permitted) -> Performed + Send + 'static,
    ) -> Performed {
        let begun_at = self.clock.now().0;
        match tokio::task::spawn_blocking(move || work(&permitted)).await {
            Ok(performed) => performed,
            // It may have got anywhere before it broke off.
            Err(error) => unknown(begun_at, format!("the operation broke off: {error}")),
        }
    }
}

impl Operations for OperationRegistry {
    fn perform<'a>(&'a self, permit: Permit, order: &'a Order) -> Pending<'a, Performed> {
        Box::pin(self.carry_out(permit, order))
    }

    /// A command is ended with its descendants; a file write is over at once; a request already sent is not called back,
    /// because only the provider knows how.
    fn cancel<'a>(&'a self, attempt_id: &'a AttemptId, order: &'a Order) -> Pending<'a, ()> {
        Box::pin(async move {
            if !matches!(OperationContract::read(&order.entry.contract.0), Ok(OperationContract::Command(_))) {
                return;
            }
            let (ledger, attempt_id) = (Arc::clone(&self.ledger), attempt_id.clone());
            let ended = tokio::task::spawn_blocking(move || terminate_attempt(ledger.as_ref(), &attempt_id)).await;
            if let Err(error) = ended {
                tracing::warn!(%error, "a cancellation broke off");
            }
        })
    }
}

#[cfg(test)]
#[path = "operations/operations_tests.rs"]
mod tests;
