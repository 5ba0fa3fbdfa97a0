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
use closer_contracts::fault::Fault;
use closer_contracts::work::WorkResult;
use closer_protocol::port::{NoAnswer, Participant};
use std::sync::Arc;

crate::declared::by_kind! {
    /// A participant as a deployment writes it down.
    pub enum ParticipantConfig: "a participant" {
        /// See [`Policy`].
        "policy" => Policy(Policy),
        /// See [`Validator`].
        "validator" => Validator(Validator),
        /// See [`Scripted`].
        "scripted" => Scripted(Scripted),
    }
}

impl ParticipantConfig {
    /// Whether its rules can be followed: every field is a JSON pointer or a place, every placeholder names a bound item.
    ///
    /// # Errors
    /// `schema_invalid` with the path of what does not fit.
    pub fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Policy(policy) => policy.check(),
            Self::Validator(validator) => validator.check(),
            Self::Scripted(_) => Ok(()),
        }
    }

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
