//! No text inside any contract escapes its bound, however deep it stands. Spec: Appendix B.

use super::support::{json_of, read, refused};
use crate::contract::Check;
use crate::delta::Change;
use crate::example::{self, Example, Extent};
use crate::id::{ID_BYTES_MAX, KEY_BYTES_MAX, TEXT_BYTES_MAX};
use crate::item::Item;
use crate::profile::Profile;
use crate::refs::PLAIN_BYTES_MAX;
use crate::refusal::RefusalCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt::Debug;

/// Every variant of a value in which one text or key at its bound is one byte longer.
fn lengthened(value: &Value) -> Vec<Value> {
    let at_bound = |text: &str| [ID_BYTES_MAX, KEY_BYTES_MAX, TEXT_BYTES_MAX, PLAIN_BYTES_MAX].contains(&text.len());
    match value {
        Value::String(text) if at_bound(text) => vec![Value::String(format!("{text}x"))],
        Value::Array(items) => {
            let inside = items
                .iter()
                .enumerate()
                .flat_map(|(index, item)| lengthened(item).into_iter().map(move |longer| (index, longer)));
            let replaced = inside.map(|(index, longer)| {
                let mut items = items.clone();
                items[index] = longer;
                Value::Array(items)
            });
            replaced.collect()
        }
        Value::Object(members) => {
            let mut all = Vec::new();
            for (key, member) in members {
                let with = |key: &str, member: Value| {
                    let mut rest: Map<String, Value> = members.clone();
                    rest.insert(key.to_owned(), member);
                    rest
                };
                all.extend(lengthened(member).into_iter().map(|longer| Value::Object(with(key, longer))));
                if at_bound(key) {
                    let mut longer = with(&format!("{key}x"), member.clone());
                    longer.remove(key);
                    all.push(Value::Object(longer));
                }
            }
            all
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Reads every lengthened variant; returns how many there were.
fn bounded<T: Check + Serialize + DeserializeOwned + Debug>(value: &T) -> usize {
    let variants = lengthened(&json_of(value));
    let count = variants.len();
    for variant in variants {
        refused(read::<T>(variant), RefusalCode::Oversize);
    }
    count
}

fn bounded_contract<T: Example + Check + Serialize + DeserializeOwned + Debug>() {
    assert!(bounded(&T::example(Extent::Bound)) > 0);
}

#[test]
fn in_every_contract() {
    super::bounds::each_contract!(bounded_contract);
}

#[test]
fn in_every_item_and_change() {
    for item in example::items(Extent::Bound) {
        assert!(bounded::<Item>(&item) > 0, "{}", item.kind());
    }
    for change in example::changes(Extent::Bound) {
        assert!(bounded::<Change>(&change) > 0, "{:?}", change.subject());
    }
    assert!(bounded::<Profile>(&Profile::example(Extent::Bound)) > 0);
}
