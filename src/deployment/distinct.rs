//! Ids that stand for one thing each: a second table of the same id is told before anything is made of the file.

use super::source::{Misfit, Source};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Where ids are given: the lists that a path of sections leads to, and the member of each table that is its id. Ids are
/// distinct in the innermost list that [`Within::Each`] names, or in all lists of the path together.
const IDS: [(&[&str], &str, Within); 21] = [
    (&["identity"], "actor_id", Within::All),
    (&["identity", "keys"], "public_key", Within::All),
    (&["identity", "keys"], "key_id", Within::All),
    (&["source"], "source_id", Within::All),
    (&["readback_method"], "method", Within::All),
    (&["operation"], "operation", Within::All),
    (&["operation", "parameters"], "name", Within::Each),
    (&["rule"], "rule_id", Within::All),
    (&["policy"], "policy_id", Within::All),
    (&["appointment"], "issuer", Within::All),
    (&["goal"], "goal_id", Within::All),
    (&["constraint"], "constraint_id", Within::All),
    (&["grant"], "grant_id", Within::All),
    (&["claim"], "claim_id", Within::All),
    (&["method"], "method_id", Within::All),
    (&["dependency"], "dependency_id", Within::All),
    (&["declaration"], "declaration_id", Within::All),
    (&["obligation"], "obligation_id", Within::All),
    (&["obligation", "resolution_conditions"], "id", Within::All),
    (&["reentry"], "reentry_id", Within::All),
    (&["participant"], "identity", Within::All),
];

/// Among which tables an id is distinct.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// All of the deployment.
    All,
    /// Those of one list.
    Each,
}

/// Refuses a file in which two things have one id.
pub(super) fn check(source: &Source, file: &Map<String, Value>) -> Result<(), Misfit> {
    for (sections, member, within) in IDS {
        let mut first = BTreeMap::new();
        let (Some((inner, outer)), file) = (sections.split_last(), Value::Object(file.clone())) else { continue };
        let mut lists = vec![(String::new(), file)];
        for section in outer {
            lists = lists.iter().flat_map(|(path, table)| tables(path, table, section)).collect();
        }
        for (path, table) in &lists {
            if within == Within::Each {
                first.clear();
            }
            for (path, table) in tables(path, table, inner) {
                let Some(id) = table.get(member).and_then(Value::as_str) else { continue };
                let field = format!("{path}.{member}");
                if let Some(earlier) = first.insert(id.to_owned(), field.clone()) {
                    let line = source.misfit(earlier, "").line;
                    return Err(source.misfit(field, format!("`{id}` is taken: line {line} gives it to another")));
                }
            }
        }
    }
    Ok(())
}

/// The tables of a list, each with its path.
fn tables(path: &str, table: &Value, section: &str) -> Vec<(String, Value)> {
    let Some(Value::Array(tables)) = table.get(section) else { return Vec::new() };
    let path = if path.is_empty() { section.to_owned() } else { format!("{path}.{section}") };
    tables.iter().enumerate().map(|(index, table)| (format!("{path}.{index}"), table.clone())).collect()
}
