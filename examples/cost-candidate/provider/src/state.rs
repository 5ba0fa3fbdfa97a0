//! What the provider keeps: accounts and the answers it has given to idempotency keys, in one file.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// One plan that is offered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) price_minor: u64,
    pub(crate) has_export: bool,
    pub(crate) latency_ms: u64,
}

/// The plans. The list that is published does not say which of them can export.
pub(crate) const PLANS: [Plan; 3] = [
    Plan { name: "standard", price_minor: 2_400, has_export: true, latency_ms: 40 },
    Plan { name: "economy", price_minor: 1_500, has_export: true, latency_ms: 180 },
    Plan { name: "basic", price_minor: 900, has_export: false, latency_ms: 400 },
];

/// The currency of all prices.
pub(crate) const CURRENCY: &str = "EUR";

/// The version of the service that features are observed at.
pub(crate) const SERVICE_VERSION: &str = "2026.3";

pub(crate) fn plan(name: &str) -> Option<&'static Plan> {
    PLANS.iter().find(|plan| plan.name == name)
}

/// One customer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) plan: String,
    /// Rises by one with each change.
    pub(crate) version: u64,
}

/// What was asked under an idempotency key, and the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) account: String,
    pub(crate) plan: String,
    pub(crate) status: u16,
    pub(crate) version: u64,
}

/// Everything that survives a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) accounts: BTreeMap<String, Account>,
    pub(crate) answered: BTreeMap<String, Answered>,
    /// How many changes took effect, over all accounts.
    pub(crate) changes: u64,
}

impl Default for State {
    fn default() -> Self {
        let account = Account { plan: "standard".to_owned(), version: 1 };
        Self {
            accounts: ["acme", "other"].map(|name| (name.to_owned(), account.clone())).into(),
            answered: BTreeMap::new(),
            changes: 0,
        }
    }
}

impl State {
    /// Reads the file, or begins anew where there is none.
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| format!("the state file {} cannot be read: {error}", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(format!("the state file {} cannot be read: {error}", path.display())),
        }
    }

    /// Replaces the file, durably.
    pub(crate) fn store(&self, path: &Path) -> std::io::Result<()> {
        let fresh = path.with_extension("new");
        let mut file = File::create(&fresh)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)?;
        match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}
