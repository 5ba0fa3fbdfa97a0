//! Whether parameters fit the registry's rules, and whether an action lies in a scope.

use closer_contracts::action::Action;
use closer_contracts::digest::Digest;
use closer_contracts::id::ObligationId;
use closer_contracts::item::{AffectedScope, Constraint, OperationEntry, ParameterRule, ParameterType};
use closer_contracts::refs::Plain;
use closer_contracts::time::Timestamp;

/// The first parameter that does not fit the operation's rules, and why.
pub(crate) fn misfit(entry: &OperationEntry, action: &Action) -> Option<(String, &'static str)> {
    let unknown = action.parameters.keys().find(|name| !entry.parameters.iter().any(|rule| rule.name == **name));
    if let Some(name) = unknown {
        return Some((name.to_string(), "the operation has no such parameter"));
    }
    entry.parameters.iter().find_map(|rule| {
        let complaint = match action.parameters.get(&rule.name) {
            None if rule.optional => return None,
            None => "the operation needs this parameter",
            Some(value) if fits(rule, value) => return None,
            Some(_) => "the parameter is not of the operation's type",
        };
        Some((rule.name.to_string(), complaint))
    })
}

fn fits(rule: &ParameterRule, value: &Plain) -> bool {
    match rule.r#type {
        ParameterType::Text => value.as_text().is_some(),
        ParameterType::Integer => value.as_integer().is_some(),
        ParameterType::Boolean => value.0.is_boolean(),
        ParameterType::Digest => value.as_text().is_some_and(|text| Digest::parse(text).is_ok()),
        ParameterType::Timestamp => value.as_text().is_some_and(|text| Timestamp::parse(text).is_ok()),
        ParameterType::Any => true,
    }
}

/// Whether a restriction's scope covers the action for this obligation (DEC-101).
#[must_use]
pub fn covers(scope: &AffectedScope, action: &Action, obligation_id: &ObligationId) -> bool {
    match scope {
        AffectedScope::Space {} => true,
        AffectedScope::Operation { operation } => *operation == action.operation,
        AffectedScope::Target { operation, targets } => {
            operation.as_ref().is_none_or(|operation| *operation == action.operation) && targets.covers(&action.target)
        }
        AffectedScope::Grant { grant_id } => *grant_id == action.authority_ref,
        AffectedScope::Obligation { obligation_id: restricted } => restricted == obligation_id,
    }
}

/// Whether a constraint is about the action and the action leaves it.
#[must_use]
pub fn violates(constraint: &Constraint, action: &Action) -> bool {
    let about = (constraint.operations.is_empty() || constraint.operations.contains(&action.operation))
        && (constraint.targets.is_empty() || constraint.targets.iter().any(|targets| targets.covers(&action.target)));
    let mut bounds = constraint.bounds.iter().filter(|bound| bound.operation == action.operation).peekable();
    about && (bounds.peek().is_none() || bounds.any(|bound| !bound.admits(action.parameters.get(&bound.parameter))))
}
