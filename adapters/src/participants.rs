//! Participants: they answer one unit of WORK with a RESULT and touch nothing.
//!
//! [`Policy`] and [`Validator`] are deterministic: the answer is a function of the packet alone. [`Scripted`] answers with
//! what it was given, after a while. [`Model`] asks a language model and holds its answer to a contract. All of them are
//! handed their packet and nothing else.

mod model;
mod pattern;
mod policy;
mod scripted;
mod validator;

pub use model::{List, Model, OutputContract};
pub use pattern::{Pattern, Test};
pub use policy::{Assessment, Policy, PolicyRule};
pub use scripted::{Answer, Move, Scripted};
pub use validator::{Validator, ValidatorRule};

use closer_contracts::Check;
use closer_contracts::canonical;
use closer_contracts::fault::Fault;
use closer_contracts::id::Text;
use closer_contracts::refusal::RefusalCode;
use closer_protocol::incident::Answer as Withdrawn;
use closer_protocol::port::{NoAnswer, Participant, Said};
use serde::Serialize;
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
        /// See [`Model`].
        "model" => Model(Model),
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
            Self::Model(model) => model.check(),
        }
    }

    /// The participant.
    #[must_use]
    pub fn build(self) -> Arc<dyn Participant> {
        match self {
            Self::Policy(policy) => Arc::new(policy),
            Self::Validator(validator) => Arc::new(validator),
            Self::Scripted(scripted) => Arc::new(scripted),
            Self::Model(model) => Arc::new(model),
        }
    }
}

fn no_answer(why: impl AsRef<str>) -> NoAnswer {
    NoAnswer::new(RefusalCode::NoAnswer, crate::operations::reason(why))
}

/// What a participant says of its copies that answers from the packet alone.
fn keeps_nothing() -> (Withdrawn, Text) {
    (Withdrawn::Acknowledged, Text::from("it keeps nothing of a packet once it has answered"))
}

/// The canonical bytes of a well-formed answer.
fn answer<T: Check + Serialize>(answer: &T) -> Result<Said, NoAnswer> {
    let bytes = answer.check().and_then(|()| canonical::to_bytes(answer));
    bytes.map(Said::from).map_err(|fault| malformed(&fault))
}

/// An answer that does not meet its contract.
fn malformed(fault: &Fault) -> NoAnswer {
    NoAnswer::new(fault.code, crate::operations::reason(format!("the answer is not well-formed: {fault}")))
}
