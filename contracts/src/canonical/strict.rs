//! The strict I-JSON reader: refuses duplicate keys, integers beyond 2^53 - 1, fractions, and nesting beyond 128.
//!
//! Payloads carry no fractions at all (DEC-04), so a number with a fraction or exponent is refused here.

use super::{DEPTH_MAX, OUTSIDE, is_outside};
use crate::contract::INTEGER_MAX;
use crate::fault::Fault;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Reads one JSON value strictly.
///
/// # Errors
/// `schema_invalid`, saying what is not I-JSON.
pub fn read_value(bytes: &[u8]) -> Result<Value, Fault> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    deserializer.disable_recursion_limit(); // Its own limit is one short of ours, which `Strict` keeps.
    let value = Strict { depth: 0 }.deserialize(&mut deserializer).map_err(malformed)?;
    deserializer.end().map_err(malformed)?;
    Ok(value)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err takes")]
fn malformed(error: serde_json::Error) -> Fault {
    Fault::schema(format!("not strict JSON: {error}"))
}

struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: Error>(&self) -> Result<Self, E> {
        match self.depth < DEPTH_MAX {
            true => Ok(Self { depth: self.depth + 1 }),
            false => Err(E::custom("arrays and objects nest at most 128 deep")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an I-JSON value without fractions")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        match value <= INTEGER_MAX {
            true => Ok(Value::from(value)),
            false => Err(E::custom(OUTSIDE)),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        match value.unsigned_abs() <= INTEGER_MAX {
            true => Ok(Value::from(value)),
            false => Err(E::custom(OUTSIDE)),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        // An integer that 64 bits do not hold arrives here too.
        match is_outside(value) {
            true => Err(E::custom(OUTSIDE)),
            false => Err(E::custom("a number with a fraction or exponent has no place in a payload")),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.deeper()?)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self.deeper()?)?;
            if map.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format!("the key `{key}` stands twice")));
            }
        }
        Ok(Value::Object(map))
    }
}
