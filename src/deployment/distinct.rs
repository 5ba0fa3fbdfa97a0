//! Ids that stand for one thing each: a second table of the same id is told before anything is made of the file.

use super::paths;
use super::source::{Misfit, Source};
use closer_protocol::services;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Where ids are given, and among which they are distinct.
const IDS: [(&str, Within); 22] = [
    ("identity.*.actor_id", Within::Space),
    ("source.*.source_id", Within::Space),
    ("readback_method.*.method", Within::Space),
    ("operation.*.operation", Within::Space),
    ("rule.*.rule_id", Within::Space),
    ("policy.*.policy_id", Within::Space),
    ("goal.*.goal_id", Within::Space),
    ("constraint.*.constraint_id", Within::Space),
    ("grant.*.grant_id", Within::Space),
    ("claim.*.claim_id", Within::Space),
    ("method.*.method_id", Within::Space),
    ("dependency.*.dependency_id", Within::Space),
    ("obligation.*.obligation_id", Within::Space),
    ("reentry.*.reentry_id", Within::Space),
    ("declaration.*.declaration_id", Within::Section),
    ("appointment.*.issuer", Within::Section),
    ("participant.*.identity", Within::Section),
    ("identity.*.keys.*.public_key", Within::Section),
    ("identity.*.keys.*.key_id", Within::Section),
    ("obligation.*.resolution_conditions.*.id", Within::Section),
    ("obligation.*.dependencies.*.dependency_id", Within::List),
    ("operation.*.parameters.*.name", Within::List),
];

/// Among which an id is distinct.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// All items of the space, of whatever kind, and what the runtime itself founds.
    Space,
    /// Those that stand in the same place of any table.
    Section,
    /// Those of one list.
    List,
}

/// Refuses a file in which two things have one id.
pub(super) fn check(source: &Source, file: &Map<String, Value>) -> Result<(), Misfit> {
    let file = Value::Object(file.clone());
    let mut taken = BTreeMap::new();
    for (pattern, within) in IDS {
        for (field, id) in paths::find(&file, pattern) {
            let Some(id) = id.as_str() else { continue };
            if within == Within::Space && services::ROLES.iter().any(|role| services::actor(*role).as_str() == id) {
                return Err(source.misfit(field, format!("`{id}` is the runtime's own; choose another id")));
            }
            let among = match within {
                Within::Space => "",
                Within::Section => pattern,
                Within::List => paths::outer(paths::outer(&field)),
            };
            if let Some(earlier) = taken.insert((among.to_owned(), id.to_owned()), field.clone()) {
                let line = source.misfit(earlier, "").line;
                return Err(source.misfit(field, format!("`{id}` is taken: line {line} gives it to another")));
            }
        }
    }
    Ok(())
}
