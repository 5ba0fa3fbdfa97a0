//! The strict writer: canonical bytes in one pass (RFC 8785), refusing what they cannot carry.
//!
//! Refused are fractions and non-finite numbers, integers beyond 2^53 - 1, keys that are not strings, duplicate keys (a
//! flattened map) and nesting beyond 128: `serde_jcs` would write each of them silently as something else. For everything
//! else the bytes are those of `serde_jcs`, to which every debug build holds each writing.

use super::{DEPTH_MAX, OUTSIDE, is_outside};
use crate::contract::INTEGER_MAX;
use crate::fault::Fault;
use serde::{Serialize, ser};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::io::Write;
use std::ops::Range;

/// The canonical bytes of a value, and where the members of the outermost object stand in them.
pub(super) fn written<T: Serialize + ?Sized>(value: &T) -> Result<(Vec<u8>, Vec<Member>), Fault> {
    let mut writer = Writer { bytes: Vec::with_capacity(512), depth: 0, outermost: Vec::new() };
    value.serialize(&mut writer).map_err(|defect| Fault::schema(defect.0))?;
    debug_assert!(
        serde_jcs::to_vec(value).is_ok_and(|expected| expected == writer.bytes),
        "the writer and serde_jcs agree"
    );
    Ok((writer.bytes, writer.outermost))
}

/// Members of an object stand in the order of their keys' UTF-16 code units.
pub(super) fn key_order(a: &str, b: &str) -> Ordering {
    match a.is_ascii() && b.is_ascii() {
        true => a.cmp(b),
        false => a.encode_utf16().cmp(b.encode_utf16()),
    }
}

/// A member of an object: its key, and where `"key":value` stands.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: Cow<'static, str>,
    pub(super) place: Range<usize>,
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

fn float(value: f64) -> Defect {
    match is_outside(value) {
        true => Defect(OUTSIDE.into()),
        false => Defect("a floating-point number has no place in a payload".into()),
    }
}

struct Writer {
    bytes: Vec<u8>,
    depth: usize,
    outermost: Vec<Member>,
}

impl Writer {
    fn raw(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn integer(&mut self, value: i128) -> Result<(), Defect> {
        if value.unsigned_abs() > u128::from(INTEGER_MAX) {
            return Err(Defect(OUTSIDE.into()));
        }
        write!(self.bytes, "{value}").map_err(|error| Defect(error.to_string()))
    }

    fn string(&mut self, text: &str) {
        self.bytes.push(b'"');
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
            let (plain, special) = rest.split_at(at);
            self.raw(plain);
            self.escape(special.as_bytes().first().copied().unwrap_or_default());
            rest = special.get(1..).unwrap_or_default();
        }
        self.raw(rest);
        self.bytes.push(b'"');
    }

    fn escape(&mut self, byte: u8) {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            _ => {
                let digit = |nibble: u8| b"0123456789abcdef".get(usize::from(nibble)).copied().unwrap_or_default();
                self.raw("\\u00");
                return self.bytes.extend([digit(byte >> 4), digit(byte & 15)]);
            }
        };
        self.bytes.extend([b'\\', short]);
    }

    fn deeper(&mut self) -> Result<(), Defect> {
        self.depth += 1;
        match self.depth <= DEPTH_MAX {
            true => Ok(()),
            false => Err(Defect("arrays and objects nest at most 128 deep".into())),
        }
    }

    fn array(&mut self) -> Result<Array<'_>, Defect> {
        self.deeper()?;
        self.bytes.push(b'[');
        Ok(Array { writer: self, is_first: true, in_variant: false })
    }

    fn object(&mut self, count: usize) -> Result<Object<'_>, Defect> {
        self.deeper()?;
        self.bytes.push(b'{');
        let begun = self.bytes.len();
        Ok(Object { writer: self, begun, members: Vec::with_capacity(count), in_variant: false })
    }

    /// Begins the object with one member that stands for an enum's variant with content.
    fn variant(&mut self, variant: &str) -> Result<(), Defect> {
        self.deeper()?;
        self.bytes.push(b'{');
        self.string(variant);
        self.bytes.push(b':');
        Ok(())
    }

    fn close(&mut self, bracket: u8, in_variant: bool) {
        self.bytes.push(bracket);
        self.depth -= 1;
        if in_variant {
            self.close(b'}', false);
        }
    }
}

struct Array<'a> {
    writer: &'a mut Writer,
    is_first: bool,
    in_variant: bool,
}

impl Array<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Defect> {
        if !std::mem::take(&mut self.is_first) {
            self.writer.bytes.push(b',');
        }
        value.serialize(&mut *self.writer)
    }
}

struct Object<'a> {
    writer: &'a mut Writer,
    begun: usize,
    members: Vec<Member>,
    in_variant: bool,
}

impl Object<'_> {
    fn key(&mut self, key: Cow<'static, str>) {
        if !self.members.is_empty() {
            self.writer.bytes.push(b',');
        }
        let begun = self.writer.bytes.len();
        self.writer.string(&key);
        self.writer.bytes.push(b':');
        self.members.push(Member { key, place: begun..begun });
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Defect> {
        value.serialize(&mut *self.writer)?;
        if let Some(member) = self.members.last_mut() {
            member.place.end = self.writer.bytes.len();
        }
        Ok(())
    }

    /// Puts the members in order and closes the object.
    fn finish(mut self) -> Result<(), Defect> {
        if !self.members.is_sorted_by(|a, b| key_order(&a.key, &b.key) == Ordering::Less) {
            self.members.sort_by(|a, b| key_order(&a.key, &b.key));
            if let Some(twice) = self.members.windows(2).find_map(|pair| match pair {
                [a, b] if a.key == b.key => Some(&a.key),
                _ => None,
            }) {
                return Err(Defect(format!("the key `{twice}` stands twice")));
            }
            self.reorder();
        }
        self.writer.close(b'}', self.in_variant);
        if self.writer.depth == 0 && !self.in_variant {
            self.writer.outermost = self.members;
        }
        Ok(())
    }

    fn reorder(&mut self) {
        let unordered = self.writer.bytes.split_off(self.begun);
        for (index, member) in self.members.iter_mut().enumerate() {
            if index > 0 {
                self.writer.bytes.push(b',');
            }
            let begun = self.writer.bytes.len();
            let place = member.place.start - self.begun..member.place.end - self.begun;
            self.writer.bytes.extend_from_slice(unordered.get(place).unwrap_or_default());
            member.place = begun..self.writer.bytes.len();
        }
    }
}

impl<'a> ser::Serializer for &'a mut Writer {
    type Ok = ();
    type Error = Defect;
    type SerializeSeq = Array<'a>;
    type SerializeTuple = Array<'a>;
    type SerializeTupleStruct = Array<'a>;
    type SerializeTupleVariant = Array<'a>;
    type SerializeMap = Object<'a>;
    type SerializeStruct = Object<'a>;
    type SerializeStructVariant = Object<'a>;

    fn serialize_bool(self, v: bool) -> Result<(), Defect> {
        self.raw(if v { "true" } else { "false" });
        Ok(())
    }

    fn serialize_i8(self, v: i8) -> Result<(), Defect> {
        self.integer(v.into())
    }

    fn serialize_i16(self, v: i16) -> Result<(), Defect> {
        self.integer(v.into())
    }

    fn serialize_i32(self, v: i32) -> Result<(), Defect> {
        self.integer(v.into())
    }

    fn serialize_i64(self, v: i64) -> Result<(), Defect> {
        self.integer(v.into())
    }

    fn serialize_u8(self, v: u8) -> Result<(), Defect> {
        self.integer(v.into())
    }

    fn serialize_u16(self, v: u16) -> Result<(), Defect> {
        self.integer(v.into())
    }

    fn serialize_u32(self, v: u32) -> Result<(), Defect> {
        self.integer(v.into())
    }

    fn serialize_u64(self, v: u64) -> Result<(), Defect> {
        self.integer(v.into())
    }

    fn serialize_f32(self, v: f32) -> Result<(), Defect> {
        Err(float(v.into()))
    }

    fn serialize_f64(self, v: f64) -> Result<(), Defect> {
        Err(float(v))
    }

    fn serialize_char(self, v: char) -> Result<(), Defect> {
        self.string(v.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, v: &str) -> Result<(), Defect> {
        self.string(v);
        Ok(())
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<(), Defect> {
        self.collect_seq(v)
    }

    fn serialize_none(self) -> Result<(), Defect> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Defect> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Defect> {
        self.raw("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Defect> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Defect> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Defect> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Defect> {
        self.variant(variant)?;
        value.serialize(&mut *self)?;
        self.close(b'}', false);
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Array<'a>, Defect> {
        self.array()
    }

    fn serialize_tuple(self, _: usize) -> Result<Array<'a>, Defect> {
        self.array()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Array<'a>, Defect> {
        self.array()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Array<'a>, Defect> {
        self.variant(variant)?;
        Ok(Array { in_variant: true, ..self.array()? })
    }

    fn serialize_map(self, count: Option<usize>) -> Result<Object<'a>, Defect> {
        self.object(count.unwrap_or_default())
    }

    fn serialize_struct(self, _: &'static str, count: usize) -> Result<Object<'a>, Defect> {
        self.object(count)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        count: usize,
    ) -> Result<Object<'a>, Defect> {
        self.variant(variant)?;
        Ok(Object { in_variant: true, ..self.object(count)? })
    }
}

macro_rules! items {
    ($($trait:ident $method:ident),+) => {$(
        impl ser::$trait for Array<'_> {
            type Ok = ();
            type Error = Defect;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Defect> {
                self.item(value)
            }

            fn end(self) -> Result<(), Defect> {
                self.writer.close(b']', self.in_variant);
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
        impl ser::$trait for Object<'_> {
            type Ok = ();
            type Error = Defect;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Defect> {
                self.key(name.into());
                self.value(value)
            }

            fn end(self) -> Result<(), Defect> {
                self.finish()
            }
        }
    )+};
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Object<'_> {
    type Ok = ();
    type Error = Defect;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Defect> {
        match serde_json::to_value(key).map_err(|error| Defect(error.to_string()))? {
            serde_json::Value::String(key) => self.key(key.into()),
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::Array(_)
            | serde_json::Value::Object(_) => return Err(Defect("an object's keys are strings".into())),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Defect> {
        self.value(value)
    }

    fn end(self) -> Result<(), Defect> {
        self.finish()
    }
}
