//! What a study is made of: items that are committed, what else stands in the packet, and what may be done. Spec: §10.1.
//!
//! Items come as JSON lines, one per item; the schema is `docs/schemas/eval-item.json`. What the right next step is stands
//! in a file of its own ([`crate::truth`]); an item carries no more of it than its digest.

use crate::file::{self, Misfit};
use closer_contracts::Digest;
use closer_contracts::contract::Check;
use closer_contracts::fault::Fault;
use closer_contracts::id::{Key, Text};
use closer_contracts::refs::{Parameters, Plain, Target};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A conclusion that is committed before the worlds part, with the observations it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conclusion {
    /// What is said of the subject.
    pub predicate: Key,
    /// What it is said to be.
    pub object: Plain,
    /// The observations that support it: the fields that each of them shows. Without any, nothing supports it, and its
    /// promotion fails.
    pub evidence: Vec<Parameters>,
}

/// An operation that the next step may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// Its name.
    pub operation: Key,
    /// Each parameter with the values it may take; all of one type.
    pub parameters: BTreeMap<Key, Vec<Plain>>,
    /// Whether a grant covers it. What no grant covers is asked on The Bench.
    #[serde(default = "yes")]
    pub granted: bool,
    /// Whether it only finds something out.
    #[serde(default)]
    pub probe: bool,
    /// Whether what is known of it has expired in the registry.
    #[serde(default)]
    pub expired: bool,
}

const fn yes() -> bool {
    true
}

/// One item of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyItem {
    /// Its name, from which the names of its pairs are made.
    pub item: Key,
    /// The family of cases it belongs to.
    pub family: Key,
    /// What it has in common with others that are therefore not independent of it: a scenario, a source, a policy.
    pub cluster: Key,
    /// What is inherited in one world and withheld in the other.
    pub claim: Conclusion,
    /// What the participant is asked.
    pub question: Text,
    /// What the next step is about.
    pub target: Target,
    /// What the target shows now, the same in both worlds.
    pub inputs: Parameters,
    /// What the next step may be.
    pub operations: Vec<Allowed>,
    /// An irrelevant conclusion of like size: an effect that it shows too is no inheritance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placebo: Option<Conclusion>,
    /// What the conclusion was before it was superseded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<Conclusion>,
    /// The digest of the item's line in the truth file.
    pub truth_digest: Digest,
}

impl Conclusion {
    fn check(&self) -> Result<(), Fault> {
        self.predicate.check().map_err(|fault| fault.within("predicate"))?;
        self.object.check().map_err(|fault| fault.within("object"))?;
        self.evidence.check().map_err(|fault| fault.within("evidence"))
    }
}

impl Check for StudyItem {
    fn check(&self) -> Result<(), Fault> {
        closer_contracts::id::Id::new(self.item.as_str()).check().map_err(|fault| fault.within("item"))?;
        if self.item.as_str().len() > ITEM_BYTES_MAX {
            return Err(Fault::oversize(format!("an item's name has at most {ITEM_BYTES_MAX} bytes")).within("item"));
        }
        self.family.check().map_err(|fault| fault.within("family"))?;
        self.cluster.check().map_err(|fault| fault.within("cluster"))?;
        self.claim.check().map_err(|fault| fault.within("claim"))?;
        self.question.check().map_err(|fault| fault.within("question"))?;
        self.target.check().map_err(|fault| fault.within("target"))?;
        self.inputs.check().map_err(|fault| fault.within("inputs"))?;
        for (name, conclusion) in [("placebo", &self.placebo), ("stale", &self.stale)] {
            conclusion.as_ref().map_or(Ok(()), Conclusion::check).map_err(|fault| fault.within(name))?;
        }
        for allowed in &self.operations {
            closer_contracts::id::Id::new(allowed.operation.as_str())
                .check()
                .map_err(|fault| fault.within("operation").within("operations"))?;
            if allowed.parameters.values().any(Vec::is_empty) {
                return Err(Fault::schema("a parameter has one value at least").within("operations"));
            }
        }
        match self.operations.is_empty() {
            true => Err(Fault::schema("something may be done").within("operations")),
            false => Ok(()),
        }
    }
}

/// The longest name of an item, in bytes; ids of records are made from it.
pub const ITEM_BYTES_MAX: usize = 60;

/// Reads items; the first that does not fit is told with its line and field.
///
/// # Errors
/// [`Misfit`].
pub fn read(path: &Path) -> Result<Vec<StudyItem>, Misfit> {
    let items: Vec<StudyItem> = file::lines(path)?;
    let mut names = std::collections::BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        if !names.insert(&item.item) {
            return Err(Misfit::at(path, index + 1, "item", format!("`{}` is there already", item.item)));
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misfit(lines: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("items.jsonl");
        std::fs::write(&path, lines).unwrap();
        read(&path).expect_err("it does not fit").to_string()
    }

    fn line(change: impl FnOnce(&mut serde_json::Value)) -> String {
        let mut value = serde_json::to_value(crate::suite::example_item()).unwrap();
        change(&mut value);
        value.to_string()
    }

    /// What people write against is committed; `CLOSER_BLESS=1` accepts a change.
    #[test]
    fn the_committed_schemas_are_those_of_the_types() {
        let schemas = [
            ("eval-item.json", schemars::schema_for!(StudyItem)),
            ("eval-truth.json", schemars::schema_for!(crate::truth::Truth)),
        ];
        for (name, schema) in schemas {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schemas").join(name);
            let text = serde_json::to_string_pretty(&schema.to_value()).unwrap() + "\n";
            if std::env::var("CLOSER_BLESS").is_ok_and(|bless| bless == "1") {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{name} is not current");
        }
    }

    #[test]
    fn an_error_names_line_and_field() {
        let good = line(|_| {});
        let wrong = line(|item| item["target"]["account"] = serde_json::json!(7));
        let told = misfit(&format!("{good}\n{wrong}\n"));
        assert!(told.contains("items.jsonl, line 2, target.account"), "{told}");
        let told = misfit(&line(|item| item["claim"]["objekt"] = serde_json::json!(1)));
        assert!(told.contains("line 1, claim") && told.contains("objekt"), "{told}");
        let told = misfit(&format!("{good}\n{good}\n"));
        assert!(told.contains("line 2, item"), "{told}");
        let told = misfit(&line(|item| item["operations"] = serde_json::json!([])));
        assert!(told.contains("line 1, operations"), "{told}");
    }
}
