//! Operations: the only way from here to an effect, and it takes a permit.
//!
//! A registry entry's `contract` says how an operation is carried out; its member `kind` chooses one of the adapters
//! below. A permit that does not cover exactly this action under exactly this contract changes nothing, and neither does
//! a contract that cannot be read. What a call answered is reported for the record and establishes nothing.

mod command;
mod file_write;
mod http;
mod permitted;
mod report;

pub use command::Command;
pub use file_write::{ABSENT, FileWrite, repeat_safety};
pub use http::{Http, Method};

pub(crate) use file_write::{OPEN_SUFFIX, aside_prefix};
pub(crate) use http::{Body, HttpClient, Location, SendError};
pub(crate) use permitted::Permitted;
pub(crate) use report::reason;

use crate::process::{ProcessLedger, terminate_attempt};
use closer_contracts::id::AttemptId;
use closer_contracts::refs::Plain;
use closer_monitor::Permit;
use closer_protocol::port::{Clock, Operations, Order, Pending, Performed};
use report::{not_sent, unknown};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How an operation is carried out: the `contract` of a registry entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OperationContract {
    /// See [`FileWrite`].
    FileWrite(FileWrite),
    /// See [`Command`].
    Command(Command),
    /// See [`Http`].
    Http(Http),
}

impl OperationContract {
    /// Reads the `contract` of a registry entry.
    ///
    /// # Errors
    /// What does not fit, and where; also an unknown `kind`.
    pub fn read(contract: &Plain) -> Result<Self, String> {
        serde_path_to_error::deserialize(&contract.0)
            .map_err(|error| format!("the operation's contract cannot be read: {error}"))
    }
}

/// Carries out operations by the kind of their contract.
pub struct OperationRegistry {
    clock: Arc<dyn Clock>,
    ledger: Arc<dyn ProcessLedger>,
    client: HttpClient,
}

impl std::fmt::Debug for OperationRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperationRegistry").finish_non_exhaustive()
    }
}

impl OperationRegistry {
    pub(crate) fn new(clock: Arc<dyn Clock>, ledger: Arc<dyn ProcessLedger>, client: HttpClient) -> Self {
        Self { clock, ledger, client }
    }

    async fn carry_out(&self, permit: Permit, order: &Order) -> Performed {
        let permitted = match Permitted::under(permit, order) {
            Ok(permitted) => permitted,
            Err(reason) => return not_sent(reason),
        };
        match OperationContract::read(&order.entry.contract) {
            Err(reason) => not_sent(reason),
            Ok(OperationContract::Http(contract)) => {
                http::perform(&permitted, &contract, &self.client, self.clock.as_ref()).await
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
            if !matches!(OperationContract::read(&order.entry.contract), Ok(OperationContract::Command(_))) {
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
