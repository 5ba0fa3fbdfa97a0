//! The two worlds' packets, compared before anything is dispatched. Spec: §10.1.
//!
//! The difference is the proof of the manipulation: it is the item and nothing else, or the pair is invalid.

use closer_contracts::id::ArtifactId;
use closer_contracts::item::Claim;
use closer_contracts::refs::ArtifactRef;
use closer_contracts::work::{ContextItem, Work};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How the second packet differs from the first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Items of the first that the second lacks.
    pub removed: Vec<ArtifactRef>,
    /// Items of the second that the first lacks.
    pub added: Vec<ArtifactRef>,
    /// Other members that are not equal.
    pub changed: Vec<String>,
    /// Places of the second packet that tell what was withheld.
    pub restated: Vec<String>,
}

impl Difference {
    /// Between two packets of which the second should lack `withheld`.
    #[must_use]
    pub fn between(first: &Work, second: &Work, withheld: Option<&Claim>) -> Self {
        let lacks = |items: &[ContextItem], item: &ContextItem| !items.contains(item);
        let missing = |of: &Work, other: &Work| {
            of.context_items
                .iter()
                .filter(|item| lacks(&other.context_items, item))
                .map(|item| item.reference.clone())
                .collect()
        };
        let mut difference = Self {
            removed: missing(first, second),
            added: missing(second, first),
            changed: changed(first, second),
            restated: Vec::new(),
        };
        if let Some(claim) = withheld {
            for item in &second.context_items {
                told(claim, item.reference.id.as_str(), &item.content.0, &mut difference.restated);
            }
            told(claim, "question", &Value::String(second.question.text.to_string()), &mut difference.restated);
        }
        difference
    }

    /// Whether it is exactly the item that should be withheld, or nothing where nothing should.
    #[must_use]
    pub fn is_only(&self, withheld: Option<&ArtifactId>) -> bool {
        let removed = self.removed.iter().map(|reference| &reference.id);
        removed.eq(withheld) && self.added.is_empty() && self.changed.is_empty() && self.restated.is_empty()
    }
}

/// Every other member of the packet, and the order of what both hold.
fn changed(first: &Work, second: &Work) -> Vec<String> {
    let common = |of: &Work, other: &Work| -> Vec<ArtifactRef> {
        let items = of.context_items.iter().filter(|item| other.context_items.contains(item));
        items.map(|item| item.reference.clone()).collect()
    };
    let mut changed = Vec::new();
    if common(first, second) != common(second, first) {
        changed.push("order of context_items".to_owned());
    }
    let bare = |work: &Work| serde_json::to_value(Work { context_items: Vec::new(), ..work.clone() });
    let (Ok(Value::Object(first)), Ok(Value::Object(second))) = (bare(first), bare(second)) else {
        changed.push("a packet that is no object".to_owned());
        return changed;
    };
    let names: std::collections::BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    changed.extend(names.into_iter().filter(|name| first.get(*name) != second.get(*name)).cloned());
    changed
}

/// Places that name the claim or what it rests on, or say the same.
fn told(claim: &Claim, place: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let place = format!("{place}.{name}");
                if name == claim.proposition.predicate.as_str() && *value == claim.proposition.object.0 {
                    found.push(place.clone());
                }
                told(claim, &place, value, found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                told(claim, &format!("{place}.{index}"), value, found);
            }
        }
        Value::String(text) if tells(claim, text) => found.push(place.to_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn tells(claim: &Claim, text: &str) -> bool {
    let proposition = &claim.proposition;
    let object = proposition.object.as_text().map_or_else(|| proposition.object.0.to_string(), str::to_owned);
    let says_it = text.contains(proposition.predicate.as_str()) && text.contains(&object);
    let names_it = text == claim.claim_id.as_str();
    let rests_on_it = claim.relations.iter().any(|relation| text == relation.evidence_id.as_str());
    says_it || names_it || rests_on_it
}

/// The packet without an item.
#[must_use]
pub fn without(work: &Work, withheld: &ArtifactId) -> Work {
    let mut work = work.clone();
    work.context_items.retain(|item| item.reference.id != *withheld);
    work
}
