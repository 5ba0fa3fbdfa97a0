//! Which items of a packet a rule is about, and how it takes values out of them.
//!
//! A *place* is the name of a bound item and a JSON pointer: `cert/observation/value/not_after`. A text that is exactly
//! `{{place}}` stands for the value at that place, whatever its type; inside other text it stands for the value as text.
//! `{{place + 30d}}` and `{{place - 12h}}` move a timestamp (`ms`, `s`, `m`, `h`, `d`).

use crate::declared::pointer;
use closer_contracts::fault::Fault;
use closer_contracts::time::Timestamp;
use closer_contracts::work::{Comparison, ContextItem};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One comparison of a value with an expected one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// The value: in a pattern a JSON pointer into the item's content, elsewhere a place.
    pub field: String,
    /// How it is compared.
    pub comparison: Comparison,
    /// The expected value; texts in it may hold `{{place}}`.
    pub value: Value,
}

/// The items whose content passes every test. An empty pattern fits every item.
pub type Pattern = Vec<Test>;

/// Items of the packet by the names that a rule gives them.
pub(super) type Bound<'a> = BTreeMap<&'a str, &'a ContextItem>;

/// Whether an item's content fits a pattern, given the items bound so far.
pub(super) fn fits(item: &ContextItem, pattern: &[Test], bound: &Bound<'_>) -> Result<bool, String> {
    for test in pattern {
        let expected = fill(&test.value, bound)?;
        let actual = item.content.0.pointer(&test.field);
        if !actual.is_some_and(|actual| holds(actual, test.comparison, &expected)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a test on bound items holds. A place where nothing stands fails it.
pub(super) fn passes(test: &Test, bound: &Bound<'_>) -> Result<bool, String> {
    let expected = fill(&test.value, bound)?;
    Ok(at(&test.field, bound)?.is_some_and(|actual| holds(actual, test.comparison, &expected)))
}

/// Whether the comparison holds. Values that cannot be compared so do not.
pub(super) fn holds(actual: &Value, comparison: Comparison, expected: &Value) -> bool {
    let integers = || Some((actual.as_i64()?, expected.as_i64()?));
    let times = || {
        let [actual, expected] = [actual, expected].map(|value| Timestamp::parse(value.as_str()?).ok());
        Some((actual?, expected?))
    };
    match comparison {
        Comparison::Equals => actual == expected,
        Comparison::AtLeast => integers().is_some_and(|(actual, expected)| actual >= expected),
        Comparison::AtMost => integers().is_some_and(|(actual, expected)| actual <= expected),
        Comparison::NotBefore => times().is_some_and(|(actual, expected)| actual >= expected),
        Comparison::NotAfter => times().is_some_and(|(actual, expected)| actual <= expected),
    }
}

/// The name of an item and a JSON pointer into its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place<'t> {
    name: &'t str,
    pointer: &'t str,
}

impl<'t> Place<'t> {
    fn read(text: &'t str) -> Self {
        let (name, pointer) = match text.find('/') {
            Some(slash) => text.split_at(slash),
            None => (text, ""),
        };
        Self { name, pointer }
    }

    /// The value there; `None` where the item has nothing there.
    fn value<'a>(self, bound: &Bound<'a>) -> Result<Option<&'a Value>, String> {
        let item = bound.get(self.name).ok_or_else(|| unbound(self.name))?;
        Ok(item.content.0.pointer(self.pointer))
    }
}

fn unbound(name: &str) -> String {
    format!("no item is bound to `{name}`")
}

/// The value at a place; `None` where the item has nothing there.
fn at<'a>(place: &str, bound: &Bound<'a>) -> Result<Option<&'a Value>, String> {
    Place::read(place).value(bound)
}

/// What stands between `{{` and `}}`: a place, and by how much a timestamp there is moved.
struct Expression<'t> {
    text: &'t str,
    place: Place<'t>,
    moved_ms: Option<i64>,
}

impl<'t> Expression<'t> {
    fn read(expression: &'t str) -> Result<Self, String> {
        let (place, moved) = match (expression.split_once(" + "), expression.split_once(" - ")) {
            (Some((place, duration)), _) => (place, Some((1, duration))),
            (None, Some((place, duration))) => (place, Some((-1, duration))),
            (None, None) => (expression, None),
        };
        let moved = moved.map(|(sign, duration)| Ok::<i64, String>(duration_ms(duration.trim())?.saturating_mul(sign)));
        let text = place.trim();
        Ok(Self { text, place: Place::read(text), moved_ms: moved.transpose()? })
    }

    fn evaluate(&self, bound: &Bound<'_>) -> Result<Value, String> {
        let value = self.place.value(bound)?.ok_or_else(|| format!("nothing stands at `{}`", self.text))?;
        let Some(moved_ms) = self.moved_ms else {
            return Ok(value.clone());
        };
        let time = value
            .as_str()
            .and_then(|text| Timestamp::parse(text).ok())
            .ok_or_else(|| format!("no timestamp stands at `{}`", self.text))?;
        let moved = Timestamp::from_unix_ms(time.unix_ms().saturating_add(moved_ms));
        Ok(Value::String(moved.as_str().to_owned()))
    }
}

/// One piece of a text that may hold placeholders.
enum Piece<'t> {
    Text(&'t str),
    Filled(Expression<'t>),
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (expression, after) =
            after.split_once("}}").ok_or_else(|| format!("`{text}` has an opening without its end"))?;
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        pieces.push(Piece::Filled(Expression::read(expression.trim())?));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// A value with every `{{place}}` in its texts filled in.
pub(super) fn fill(value: &Value, bound: &Bound<'_>) -> Result<Value, String> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
        Value::String(text) => fill_text(text, bound),
        Value::Array(items) => items.iter().map(|item| fill(item, bound)).collect(),
        Value::Object(members) => {
            let filled: Result<Map<String, Value>, String> =
                members.iter().map(|(name, member)| Ok((name.clone(), fill(member, bound)?))).collect();
            filled.map(Value::Object)
        }
    }
}

fn fill_text(text: &str, bound: &Bound<'_>) -> Result<Value, String> {
    let pieces = pieces(text)?;
    if let [Piece::Filled(expression)] = pieces.as_slice() {
        return expression.evaluate(bound);
    }
    let mut filled = String::new();
    for piece in &pieces {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Filled(expression) => match expression.evaluate(bound)? {
                Value::String(value) => filled.push_str(&value),
                value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    filled.push_str(&value.to_string());
                }
            },
        }
    }
    Ok(Value::String(filled))
}

/// The names that stand for items where something is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bindings<'a>(pub(super) &'a [&'a str]);

impl Bindings<'_> {
    /// Whether an item is bound to a name here.
    pub(super) fn name(self, name: &str) -> Result<(), Fault> {
        match (self.0.contains(&name), self.0) {
            (true, _) => Ok(()),
            (false, []) => Err(Fault::schema(format!("{}; no name stands for an item here", unbound(name)))),
            (false, bound) => {
                let bound = bound.join("`, `");
                Err(Fault::schema(format!("{}; bound here: `{bound}`", unbound(name))))
            }
        }
    }

    /// Whether a place begins with a bound name.
    pub(super) fn place(self, place: &str) -> Result<(), Fault> {
        self.name(Place::read(place).name)
    }

    /// Whether every placeholder in the texts of a value is well-formed and begins with a bound name.
    pub(super) fn value(self, value: &Value) -> Result<(), Fault> {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
            Value::String(text) => {
                for piece in pieces(text).map_err(Fault::schema)? {
                    match piece {
                        Piece::Text(_) => {}
                        Piece::Filled(expression) => self.name(expression.place.name)?,
                    }
                }
                Ok(())
            }
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(index, item)| self.value(item).map_err(|fault| fault.within(index)))
            }
            Value::Object(members) => {
                let mut members = members.iter();
                members.try_for_each(|(name, member)| self.value(member).map_err(|fault| fault.within(name)))
            }
        }
    }

    /// Whether every test of a pattern points into an item and compares with what can be filled.
    pub(super) fn pattern(self, pattern: &[Test]) -> Result<(), Fault> {
        each(pattern, |test| {
            pointer(&test.field, "field")?;
            self.value(&test.value).map_err(|fault| fault.within("value"))
        })
    }
}

/// Checks each of a list; a fault has the index of what it is in.
pub(super) fn each<T>(items: &[T], check: impl Fn(&T) -> Result<(), Fault>) -> Result<(), Fault> {
    let mut items = items.iter().enumerate();
    items.try_for_each(|(index, item)| check(item).map_err(|fault| fault.within(index)))
}

fn duration_ms(text: &str) -> Result<i64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let unit_ms = match text.get(digits.len()..) {
        Some("ms") => 1,
        Some("s") => 1_000,
        Some("m") => 60_000,
        Some("h") => 3_600_000,
        Some("d") => 86_400_000,
        Some(_) | None => return Err(format!("`{text}` is no duration")),
    };
    let count: u32 = digits.parse().map_err(|_| format!("`{text}` is no duration"))?;
    Ok(i64::from(count).saturating_mul(unit_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use closer_contracts::canonical;
    use closer_contracts::refs::{ArtifactRef, Plain};
    use proptest::prelude::*;
    use serde_json::json;

    fn item(content: Value) -> ContextItem {
        ContextItem {
            reference: ArtifactRef { id: "item".into(), digest: canonical::digest_of(&content).unwrap() },
            content: Plain(content),
        }
    }

    fn check(value: Value) -> Result<Value, String> {
        let item = item(json!({ "at": "2026-01-01T00:00:00Z", "n": 7, "deep": [{ "x": null }], "text": "a{{b}}" }));
        fill(&value, &BTreeMap::from([("it", &item)]))
    }

    #[test]
    fn whole_texts_keep_the_type_and_parts_become_text() {
        assert_eq!(check(json!("{{it/n}}")).unwrap(), json!(7));
        assert_eq!(check(json!(["n is {{ it/n }}.", 1])).unwrap(), json!(["n is 7.", 1]));
        assert_eq!(check(json!({ "k": "{{it/deep/0/x}}" })).unwrap(), json!({ "k": null }));
        assert_eq!(check(json!("{{it/n}}{{it/n}}")).unwrap(), json!("77"));
        // What was filled in is never read again.
        assert_eq!(check(json!("{{it/text}}")).unwrap(), json!("a{{b}}"));
        for wrong in ["{{it/none}}", "{{other/n}}", "{{it/n", "x{{", "{{}}"] {
            assert!(check(json!(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn timestamps_move() {
        assert_eq!(check(json!("{{it/at + 30d}}")).unwrap(), json!("2026-01-31T00:00:00.000Z"));
        assert_eq!(check(json!("{{it/at - 1ms}}")).unwrap(), json!("2025-12-31T23:59:59.999Z"));
        for wrong in ["{{it/n + 1d}}", "{{it/at + 1w}}", "{{it/at + d}}", "{{it/at + -1d}}", "{{it/at + 99999999999d}}"]
        {
            assert!(check(json!(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn comparisons_hold_between_values_of_their_kind_only() {
        use Comparison::{AtLeast, AtMost, Equals, NotAfter, NotBefore};
        let (early, late) = (json!("2026-01-01T00:00:00Z"), json!("2026-01-01T00:00:00.001Z"));
        assert!(holds(&json!(2), AtLeast, &json!(2)) && !holds(&json!(1), AtLeast, &json!(2)));
        assert!(holds(&json!(2), AtMost, &json!(2)) && !holds(&json!(3), AtMost, &json!(2)));
        assert!(holds(&late, NotBefore, &early) && !holds(&early, NotBefore, &late));
        assert!(holds(&early, NotAfter, &late) && !holds(&late, NotAfter, &early));
        assert!(holds(&json!("a"), Equals, &json!("a")) && !holds(&json!("1"), Equals, &json!(1)));
        for comparison in [AtLeast, AtMost, NotBefore, NotAfter] {
            assert!(!holds(&json!("a"), comparison, &json!("a")), "{comparison}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_filled_or_refused(text in "([{}]{1,2}|it|/n| [+-] |[0-9]d|.){0,12}") {
            if !text.contains("{{") {
                prop_assert_eq!(check(json!(text.clone())).unwrap(), json!(text));
            } else {
                let _: Result<Value, String> = check(json!(text));
            }
        }
    }
}
