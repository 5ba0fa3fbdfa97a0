//! What is wrong: a denial of a proposed delta, and a divergence of a replayed commit.

use closer_contracts::id::{Id, Text};
use closer_contracts::{Fault, RefusalCode};

/// Why a delta is not admitted. The caller records it as a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// The code.
    pub code: RefusalCode,
    /// The offending reference: the changed fact, the missing id, the field's path.
    pub offending: Option<Text>,
    /// Why, in the user's vocabulary.
    pub reason: Text,
}

impl Denied {
    pub(crate) fn new(code: RefusalCode, offending: impl std::fmt::Display, reason: &str) -> Self {
        let offending = offending.to_string();
        Self { code, offending: (!offending.is_empty()).then(|| offending.into()), reason: reason.into() }
    }

    pub(crate) fn schema(offending: &Id, reason: &str) -> Self {
        Self::new(RefusalCode::SchemaInvalid, offending, reason)
    }

    pub(crate) fn unresolved(offending: impl std::fmt::Display, reason: &str) -> Self {
        Self::new(RefusalCode::UnresolvedRef, offending, reason)
    }
}

impl From<Fault> for Denied {
    fn from(fault: Fault) -> Self {
        Self::new(fault.code, &fault.path, &fault.reason)
    }
}

/// `Ok` where the condition holds, else the denial.
pub(crate) fn demand(holds: bool, denied: impl FnOnce() -> Denied) -> Result<(), Denied> {
    match holds {
        true => Ok(()),
        false => Err(denied()),
    }
}

/// Why a recorded commit, receipt or snapshot does not continue the state it is applied to: damage, never a refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Divergence {
    /// The commit names another parent than the state it is applied to.
    #[error("commit {version} names a parent that is not the state before it")]
    Parent {
        /// The commit's version.
        version: u64,
    },
    /// The delta does not have the digest that names it.
    #[error("commit {version} carries a delta that is not what its proposal digest names")]
    Proposal {
        /// The commit's version.
        version: u64,
    },
    /// The derived changes do not have the digest that names them.
    #[error("commit {version} carries derived changes that are not what their digest names")]
    Derived {
        /// The commit's version.
        version: u64,
    },
    /// Folding the commit gives another state root.
    #[error("version {version} folds to another state root than the recorded one")]
    Root {
        /// The version.
        version: u64,
    },
    /// The reference of the state after the commit is not the one recorded.
    #[error("version {version} has another state digest than the recorded one")]
    After {
        /// The version.
        version: u64,
    },
    /// A receipt does not begin where the one before it ended.
    #[error("receipt {receipt} does not continue the state before it")]
    Chain {
        /// The receipt.
        receipt: String,
    },
    /// A change cannot be folded.
    #[error("version {version} cannot be folded: {fault}")]
    Fold {
        /// The version.
        version: u64,
        /// Why.
        fault: Fault,
    },
}
