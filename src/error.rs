//! What can fail in the composition root, told in the operator's words.

use crate::deployment::Misfit;
use closer_contracts::fault::Fault;
use closer_protocol::view::Divergence;
use closer_store::StoreError;

/// An operation of the program failed. What the protocol declines is no error but an a refusal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The deployment file does not fit.
    #[error(transparent)]
    Deployment(#[from] Misfit),
    /// The store could not be opened, read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The runtime failed.
    #[error(transparent)]
    Actors(#[from] closer_actors::Error),
    /// The log holds what this version cannot fold.
    #[error(transparent)]
    Divergence(#[from] Divergence),
    /// Something that was to be recorded does not have the shape of its contract.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// Another process holds the store and does not answer on its socket.
    #[error("another process holds the store and does not answer on {socket}: {reason}")]
    Unreachable {
        /// The socket.
        socket: String,
        /// Why.
        reason: String,
    },
    /// A declared command, companion or key file could not be used.
    #[error("{0}")]
    World(String),
    /// The runtime could not go on.
    #[error("{0}")]
    Runtime(String),
}

impl Error {
    /// What went wrong with its causes, each said once.
    #[must_use]
    pub fn told(&self) -> String {
        let mut line = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(inner) = cause {
            let inner_text = inner.to_string();
            if !line.contains(&inner_text) {
                line.push_str(&format!(": {inner_text}"));
            }
            cause = inner.source();
        }
        line
    }

    /// Wraps a system error with what was being done.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { what: what.into(), source }
    }
}
