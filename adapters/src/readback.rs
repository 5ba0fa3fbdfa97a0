//! Readback: looking at a target anew, by means other than the call that changed it (SR14).
//!
//! A method's `contract` says how; its member `kind` chooses one of the observers below. Nothing here knows of any call's
//! response, and every look opens, asks or runs anew. What was seen is reported with the target as it names itself, so
//! that the account looked at can be told from the account meant.

mod command;
mod file;
mod http_get;
mod mcp;
mod x509;

pub use command::CommandOutput;
pub use file::FileState;
pub use http_get::HttpGet;
pub use mcp::McpRead;
pub use x509::X509File;

use crate::declared::{Names, Reach, absolute, positive};
use crate::mcp::McpServers;
use crate::operations::{HttpClient, reason};
use crate::process::ProcessLedger;
use closer_contracts::Check;
use closer_contracts::fault::Fault;
use closer_contracts::id::{Key, Text};
use closer_contracts::refs::{Plain, Target, TypedValue};
use closer_contracts::work::TargetVersion;
use closer_protocol::port::{Clock, Observed, Observer, Pending, ReadbackOrder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

crate::declared::by_kind! {
    /// How a target is looked at: the `contract` of a readback method.
    pub enum ReadbackContract: "a readback method's contract" {
        /// See [`FileState`].
        "file" => File(FileState),
        /// See [`X509File`].
        "x509_file" => X509File(X509File),
        /// See [`HttpGet`].
        "http_get" => HttpGet(HttpGet),
        /// See [`CommandOutput`].
        "command" => Command(CommandOutput),
        /// See [`McpRead`].
        "mcp_read" => McpRead(McpRead),
        /// A person must look and confirm; the runtime itself sees nothing.
        "person" => Person(Person),
    }
}

/// Contract `person`: someone has to look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// What they are to look at, in words.
    pub instructions: String,
}

impl ReadbackContract {
    /// Whether everything it names is there and everything it bounds can be, as far as that is told without looking.
    ///
    /// # Errors
    /// `schema_invalid` with the path of what does not fit.
    pub fn check(&self) -> Result<(), Fault> {
        match self {
            Self::File(contract) => absolute(&contract.root, "root"),
            Self::X509File(contract) => {
                absolute(&contract.root, "root")?;
                absolute(&contract.openssl, "openssl")?;
                positive(contract.deadline_ms, "deadline_ms")
            }
            Self::HttpGet(contract) => contract.check(),
            Self::Command(contract) => contract.run.check(Names(&[])).map_err(|fault| fault.within("run")),
            Self::McpRead(contract) => contract.check(),
            Self::Person(_) => Ok(()),
        }
    }

    /// Which targets it can look at.
    #[must_use]
    pub fn reach(&self) -> Reach<'_> {
        match self {
            Self::File(FileState { root, account, .. }) | Self::X509File(X509File { root, account, .. }) => {
                Reach { account: Some(account), within: Some(root) }
            }
            Self::HttpGet(contract) => Reach { account: None, within: contract.endpoint.root() },
            Self::Command(contract) => Reach { account: None, within: contract.run.target_root.as_deref() },
            Self::McpRead(contract) => Reach { account: Some(&contract.account), within: None },
            Self::Person(_) => Reach { account: None, within: None },
        }
    }
}

/// What one look showed.
#[derive(Debug)]
struct Seen {
    /// Whose it is, as the target itself or the contract says.
    account: Key,
    version: TargetVersion,
    fields: Map<String, Value>,
    limitations: Vec<Text>,
}

/// Looks at targets by the kind of the method's contract.
pub struct ReadbackObserver {
    clock: Arc<dyn Clock>,
    ledger: Arc<dyn ProcessLedger>,
    client: HttpClient,
    servers: McpServers,
}

impl std::fmt::Debug for ReadbackObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadbackObserver").finish_non_exhaustive()
    }
}

impl ReadbackObserver {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        ledger: Arc<dyn ProcessLedger>,
        client: HttpClient,
        servers: McpServers,
    ) -> Self {
        Self { clock, ledger, client, servers }
    }

    async fn look(&self, order: &ReadbackOrder) -> Result<Seen, String> {
        if order.method.target_type != order.target.r#type {
            return Err(format!(
                "the method looks at targets of type `{}`, not `{}`",
                order.method.target_type, order.target.r#type
            ));
        }
        let target = order.target.clone();
        let contract = ReadbackContract::read(&order.method.contract.0);
        let contract = contract.map_err(|fault| format!("the readback method's contract cannot be read: {fault}"))?;
        match contract {
            ReadbackContract::HttpGet(contract) => http_get::look(&contract, &target, &self.client).await,
            ReadbackContract::McpRead(contract) => mcp::look(&contract, &target, &self.servers).await,
            ReadbackContract::File(contract) => blocking(move || file::look(&contract, &target)).await,
            ReadbackContract::X509File(contract) => {
                let ledger = Arc::clone(&self.ledger);
                blocking(move || x509::look(&contract, &target, ledger.as_ref())).await
            }
            ReadbackContract::Command(contract) => {
                let ledger = Arc::clone(&self.ledger);
                blocking(move || command::look(&contract, &target, ledger.as_ref())).await
            }
            ReadbackContract::Person(person) => Err(format!("a person must look and confirm: {}", person.instructions)),
        }
    }
}

async fn blocking(look: impl FnOnce() -> Result<Seen, String> + Send + 'static) -> Result<Seen, String> {
    match tokio::task::spawn_blocking(look).await {
        Ok(seen) => seen,
        Err(error) => Err(format!("the look broke off: {error}")),
    }
}

impl Observer for ReadbackObserver {
    /// Looks once. The time is that from before the look: what is seen is at least that new.
    fn observe<'a>(&'a self, order: &'a ReadbackOrder) -> Pending<'a, Observed> {
        Box::pin(async move {
            let observed_at = self.clock.now().0;
            let observed = self.look(order).await.and_then(|seen| {
                let target = Target { account: seen.account, ..order.target.clone() };
                let observation =
                    TypedValue { r#type: order.method.target_type.clone(), value: Plain(Value::Object(seen.fields)) };
                // What no record can carry was not observed: a part of it would be another observation.
                let fits = target.check().and(seen.version.check()).and(observation.check());
                fits.map_err(|fault| format!("what was seen does not fit a record: {fault}"))?;
                Ok(Observed::Seen {
                    target,
                    observed_at: observed_at.clone(),
                    target_version: seen.version,
                    observation,
                    limitations: seen.limitations,
                })
            });
            observed.unwrap_or_else(|why| Observed::Unavailable { observed_at, reason: reason(why) })
        })
    }
}

#[cfg(test)]
#[path = "readback/readback_tests.rs"]
mod tests;
