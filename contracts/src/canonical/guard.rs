//! The guard before serialization: refuses what `serde_jcs` would write silently as something else.
//!
//! Non-finite and fractional numbers, integers beyond 2^53 - 1, keys that are not strings, duplicate keys (a flattened
//! map) and nesting beyond 128. It walks the value as a serializer and writes nothing.

use super::DEPTH_MAX;
use crate::contract::INTEGER_MAX;
use crate::fault::Fault;
use serde::Serialize;
use serde::ser;
use std::collections::BTreeSet;
use std::fmt;

/// Walks a value and finds the first thing that canonical JSON cannot carry.
pub(super) fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), Fault> {
    value.serialize(Guard { depth: 0 }).map_err(|defect| Fault::schema(defect.0))
}

#[derive(Debug)]
struct Defect(String);

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Defect {}

impl ser::Error for Defect {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

#[derive(Clone, Copy)]
struct Guard {
    depth: usize,
}

struct Inside {
    guard: Guard,
    keys: BTreeSet<String>,
}

impl Guard {
    fn inside(self) -> Result<Inside, Defect> {
        match self.depth < DEPTH_MAX {
            true => Ok(Inside { guard: Self { depth: self.depth + 1 }, keys: BTreeSet::new() }),
            false => Err(Defect("arrays and objects nest at most 128 deep".into())),
        }
    }
}

impl Inside {
    fn key(&mut self, key: &str) -> Result<(), Defect> {
        match self.keys.insert(key.to_owned()) {
            true => Ok(()),
            false => Err(Defect(format!("the key `{key}` stands twice"))),
        }
    }
}

fn integer(magnitude: u128) -> Result<(), Defect> {
    match magnitude <= u128::from(INTEGER_MAX) {
        true => Ok(()),
        false => Err(Defect("an integer beyond 2^53 - 1 is carried as a decimal string".into())),
    }
}

fn fraction() -> Result<(), Defect> {
    Err(Defect("a floating-point number has no place in a payload".into()))
}

impl ser::Serializer for Guard {
    type Ok = ();
    type Error = Defect;
    type SerializeSeq = Inside;
    type SerializeTuple = Inside;
    type SerializeTupleStruct = Inside;
    type SerializeTupleVariant = Inside;
    type SerializeMap = Inside;
    type SerializeStruct = Inside;
    type SerializeStructVariant = Inside;

    fn serialize_bool(self, _: bool) -> Result<(), Defect> {
        Ok(())
    }

    fn serialize_i8(self, v: i8) -> Result<(), Defect> {
        integer(u128::from(v.unsigned_abs()))
    }

    fn serialize_i16(self, v: i16) -> Result<(), Defect> {
        integer(u128::from(v.unsigned_abs()))
    }

    fn serialize_i32(self, v: i32) -> Result<(), Defect> {
        integer(u128::from(v.unsigned_abs()))
    }

    fn serialize_i64(self, v: i64) -> Result<(), Defect> {
        integer(u128::from(v.unsigned_abs()))
    }

    fn serialize_i128(self, v: i128) -> Result<(), Defect> {
        integer(v.unsigned_abs())
    }

    fn serialize_u8(self, v: u8) -> Result<(), Defect> {
        integer(u128::from(v))
    }

    fn serialize_u16(self, v: u16) -> Result<(), Defect> {
        integer(u128::from(v))
    }

    fn serialize_u32(self, v: u32) -> Result<(), Defect> {
        integer(u128::from(v))
    }

    fn serialize_u64(self, v: u64) -> Result<(), Defect> {
        integer(u128::from(v))
    }

    fn serialize_u128(self, v: u128) -> Result<(), Defect> {
        integer(v)
    }

    fn serialize_f32(self, _: f32) -> Result<(), Defect> {
        fraction()
    }

    fn serialize_f64(self, _: f64) -> Result<(), Defect> {
        fraction()
    }

    fn serialize_char(self, _: char) -> Result<(), Defect> {
        Ok(())
    }

    fn serialize_str(self, _: &str) -> Result<(), Defect> {
        Ok(())
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<(), Defect> {
        ser::Serializer::collect_seq(self, v)
    }

    fn serialize_none(self) -> Result<(), Defect> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Defect> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Defect> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Defect> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Defect> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Defect> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Defect> {
        value.serialize(self.inside()?.guard)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside, Defect> {
        self.inside()
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside, Defect> {
        self.inside()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside, Defect> {
        self.inside()
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Inside, Defect> {
        self.inside()?.guard.inside()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside, Defect> {
        self.inside()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside, Defect> {
        self.inside()
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Inside, Defect> {
        self.inside()?.guard.inside()
    }
}

macro_rules! items {
    ($($trait:ident $method:ident),+) => {$(
        impl ser::$trait for Inside {
            type Ok = ();
            type Error = Defect;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Defect> {
                value.serialize(self.guard)
            }

            fn end(self) -> Result<(), Defect> {
                Ok(())
            }
        }
    )+};
}

items!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

macro_rules! fields {
    ($($trait:ident),+) => {$(
        impl ser::$trait for Inside {
            type Ok = ();
            type Error = Defect;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Defect> {
                self.key(name)?;
                value.serialize(self.guard)
            }

            fn end(self) -> Result<(), Defect> {
                Ok(())
            }
        }
    )+};
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Inside {
    type Ok = ();
    type Error = Defect;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Defect> {
        let value = serde_json::to_value(key).map_err(|error| Defect(error.to_string()))?;
        match value {
            serde_json::Value::String(key) => self.key(&key),
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::Array(_)
            | serde_json::Value::Object(_) => Err(Defect("an object's keys are strings".into())),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Defect> {
        value.serialize(self.guard)
    }

    fn end(self) -> Result<(), Defect> {
        Ok(())
    }
}
