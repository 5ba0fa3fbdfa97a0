//! Participants: they answer one unit of WORK with a RESULT and touch nothing.
//!
//! [`Policy`] and [`Validator`] are deterministic: the answer is a function of the packet alone. [`Scripted`] answers with
//! what it was given, after a while. All of them are handed their packet and nothing else.

mod pattern;
mod policy;
mod scripted;
mod validator;

pub use pattern::{Pattern, Test};
pub use policy::{Assessment, Policy, PolicyRule};
pub use scripted::{Answer, Scripted};
pub use validator::{Validator, ValidatorRule};

use closer_contracts::Check;
use closer_contracts::canonical;
use closer_contracts::work::WorkResult;
use closer_protocol::port::{NoAnswer, Participant};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A participant as a deployment writes it down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ParticipantConfig {
    /// See [`Policy`].
    Policy(Policy),
    /// See [`Validator`].
    Validator(Validator),
    /// See [`Scripted`].
    Scripted(Scripted),
}

impl ParticipantConfig {
    /// The participant.
    #[must_use]
    pub fn build(self) -> Arc<dyn Participant> {
        match self {
            Self::Policy(policy) => Arc::new(policy),
            Self::Validator(validator) => Arc::new(validator),
            Self::Scripted(scripted) => Arc::new(scripted),
        }
    }
}

fn no_answer(why: impl AsRef<str>) -> NoAnswer {
    NoAnswer { reason: crate::operations::reason(why) }
}

/// The canonical bytes of a well-formed result.
fn answer(result: &WorkResult) -> Result<Vec<u8>, NoAnswer> {
    result
        .check()
        .and_then(|()| canonical::to_bytes(result))
        .map_err(|fault| no_answer(format!("the answer is not well-formed: {fault}")))
}
