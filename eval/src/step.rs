//! The next step of a world: an operation on a target with parameters, or what was done instead. Compared by digest, never
//! by text. Spec: §10.1.

use closer_contracts::canonical::digest_of;
use closer_contracts::fault::Fault;
use closer_contracts::id::OperationId;
use closer_contracts::refs::{Parameters, Target};
use closer_contracts::refusal::RefusalCode;
use closer_contracts::work::{Need, WorkResult};
use closer_contracts::{Check, Digest};
use serde::{Deserialize, Serialize};

/// What a participant would do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Carry out an operation.
    Operation {
        /// The operation.
        operation: OperationId,
        /// On what.
        target: Target,
        /// With what.
        parameters: Parameters,
    },
    /// Ask the user, whose preference, authority or tradeoff it takes.
    Ask {},
    /// Keep the gap open: evidence or a prerequisite is missing.
    Gap {},
    /// Object.
    Object {},
    /// Nothing.
    Nothing {},
}

impl Step {
    /// The step that a result takes.
    ///
    /// # Errors
    /// `cardinality` where it proposes more than the one that was asked for.
    pub fn of(result: &WorkResult) -> Result<Self, Fault> {
        let mut proposals = result.action_proposals.iter();
        match (proposals.next(), proposals.next()) {
            (Some(_), Some(_)) => {
                let reason = format!("one next step was asked for and {} came", result.action_proposals.len());
                Err(Fault::new(RefusalCode::Cardinality, reason).within("action_proposals"))
            }
            (Some(proposal), None) => Ok(Self::Operation {
                operation: proposal.operation.clone(),
                target: proposal.target.clone(),
                parameters: proposal.parameters.clone(),
            }),
            (None, _) => Ok(Self::instead(result)),
        }
    }

    fn instead(result: &WorkResult) -> Self {
        let is_the_users = |need: Need| match need {
            Need::Preference | Need::Authority | Need::Tradeoff => true,
            Need::Evidence | Need::Prerequisite => false,
        };
        let open = &result.unresolved;
        match (open.iter().any(|open| is_the_users(open.need)), open.is_empty(), result.objections.is_empty()) {
            (true, _, _) => Self::Ask {},
            (false, false, _) => Self::Gap {},
            (false, true, false) => Self::Object {},
            (false, true, true) => Self::Nothing {},
        }
    }

    /// What it is compared by.
    ///
    /// # Errors
    /// `schema_invalid` where a parameter has no canonical form.
    pub fn digest(&self) -> Result<Digest, Fault> {
        digest_of(self)
    }

    /// For people.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Operation { operation, target, parameters } => {
                let parameters: Vec<String> =
                    parameters.iter().map(|(name, value)| format!("{name}={}", value.0)).collect();
                format!("{operation}({}) on {}", parameters.join(", "), target.address)
            }
            Self::Ask {} => "ask the user".to_owned(),
            Self::Gap {} => "keep the gap open".to_owned(),
            Self::Object {} => "object".to_owned(),
            Self::Nothing {} => "nothing".to_owned(),
        }
    }
}

impl Check for Step {
    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Operation { operation, target, parameters } => {
                operation.check().map_err(|fault| fault.within("operation"))?;
                target.check().map_err(|fault| fault.within("target"))?;
                parameters.check().map_err(|fault| fault.within("parameters"))
            }
            Self::Ask {} | Self::Gap {} | Self::Object {} | Self::Nothing {} => Ok(()),
        }
    }
}
