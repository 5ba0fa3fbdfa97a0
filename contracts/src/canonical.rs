//! Canonical bytes: one module owns them (RFC 8785, DEC-02).
//!
//! Out: a strict writer, held to `serde_jcs` in every debug build, then SHA-256. In: a strict I-JSON reader, the contract,
//! and only bytes equal to those that the contract writes. After that the bytes and their digest stay together and nothing
//! is serialized again.

use crate::digest::Digest;
use crate::fault::Fault;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use write::Member;

mod strict;
mod write;

pub use strict::read_value;

/// The deepest nesting of arrays and objects.
pub const DEPTH_MAX: usize = 128;
/// The largest payload, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// What is said of a number beyond the integers that every reader holds exactly.
pub(crate) const OUTSIDE: &str =
    "an integer outside the safe range, beyond 2^53 - 1 in either direction, is carried as a decimal string";

/// Whether a number is larger than any safe integer. One of so many digits that it was read as a float is one too.
pub(crate) fn is_outside(number: f64) -> bool {
    const LAST_SAFE: f64 = 9_007_199_254_740_991.0;
    number.is_finite() && number.abs() > LAST_SAFE
}

/// A value with its canonical bytes and their digest, which are never made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonical<T> {
    value: T,
    bytes: Arc<[u8]>,
    digest: Digest,
}

impl<T> Canonical<T> {
    /// The value.
    #[must_use]
    pub const fn value(&self) -> &T {
        &self.value
    }

    /// The canonical bytes.
    #[must_use]
    pub const fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// SHA-256 of the canonical bytes.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Gives the value up.
    #[must_use]
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T: Serialize> Canonical<T> {
    /// Makes the canonical bytes of a value.
    ///
    /// # Errors
    /// `schema_invalid` for what I-JSON does not carry: non-finite numbers, integers beyond 2^53 - 1, duplicate or
    /// non-string keys, nesting beyond 128.
    pub fn of(value: T) -> Result<Self, Fault> {
        let bytes: Arc<[u8]> = to_bytes(&value)?.into();
        let digest = Digest::of(&bytes);
        Ok(Self { value, bytes, digest })
    }
}

impl<T: Serialize + DeserializeOwned> Canonical<T> {
    /// Reads bytes that must already be canonical.
    ///
    /// # Errors
    /// `oversize` beyond [`PAYLOAD_BYTES_MAX`]; `schema_invalid` for anything but the canonical form of the contract.
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        check_size(bytes)?;
        Ok(Self { value: read(bytes)?, bytes: bytes.into(), digest: Digest::of(bytes) })
    }
}

/// The canonical bytes of a value.
///
/// # Errors
/// As [`Canonical::of`].
pub fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Fault> {
    Ok(write::written(value)?.0)
}

/// The digest of a value's canonical bytes.
///
/// # Errors
/// As [`Canonical::of`].
pub fn digest_of<T: Serialize + ?Sized>(value: &T) -> Result<Digest, Fault> {
    Ok(Digest::of(&to_bytes(value)?))
}

/// A value as JSON, guarded first: the conversion itself would drop duplicate keys and turn a NaN into `null`.
///
/// # Errors
/// As [`Canonical::of`].
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, Fault> {
    to_bytes(value)?;
    serde_json::to_value(value).map_err(|error| Fault::schema(format!("not JSON: {error}")))
}

/// Reads bytes of any size that must be just what the contract writes: a record's body, or bytes already held to a bound.
///
/// # Errors
/// `schema_invalid` for anything else, naming the field that does not fit.
pub fn read<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let value = read_value(bytes)?;
    if let Ok(typed) = T::deserialize(&value)
        && is_form(bytes, &to_bytes(&typed)?)
    {
        return Ok(typed);
    }
    Err(misfit(bytes, value, |value| from_value::<T>(value).err()))
}

/// Whether the bytes are those that their content is written as.
pub(crate) fn is_form(bytes: &[u8], written: &[u8]) -> bool {
    crate::branch!("canonical.bytes_are_canonical", written == bytes)
}

/// Why strictly read bytes are not what a contract writes: their form, or what `explain` finds in their value.
pub(crate) fn misfit(bytes: &[u8], value: Value, explain: impl FnOnce(Value) -> Option<Fault>) -> Fault {
    let is_form = to_bytes(&value).is_ok_and(|written| written == bytes);
    let explained = is_form.then(|| explain(value)).flatten();
    explained.unwrap_or_else(|| Fault::schema("the bytes are not the canonical form (RFC 8785) of their content"))
}

/// Holds a payload to its bound.
///
/// # Errors
/// `oversize`.
pub fn check_size(bytes: &[u8]) -> Result<(), Fault> {
    match crate::branch!("canonical.payload_beyond_bound", bytes.len() > PAYLOAD_BYTES_MAX) {
        true => Err(Fault::oversize(format!("a payload has at most {PAYLOAD_BYTES_MAX} bytes"))),
        false => Ok(()),
    }
}

/// Turns a strictly read value into a contract, naming the field that does not fit.
///
/// The contract's own form is the only one accepted: what would be written differently (a list in place of an object, a
/// member left out that is written as `null`) is refused.
///
/// # Errors
/// `schema_invalid` with the path of the field.
pub fn from_value<T: Serialize + DeserializeOwned>(value: Value) -> Result<T, Fault> {
    let typed = T::deserialize(&value).or_else(|_| shape(value.clone()))?;
    match first_difference(&value, &to_value(&typed)?) {
        None => Ok(typed),
        Some(path) => {
            let fault = Fault::schema("this is not the form in which the contract is written");
            match path.is_empty() {
                true => Err(fault),
                false => Err(fault.within(path)),
            }
        }
    }
}

/// Turns a value into a type by whatever forms its reader takes; for parts of a value that [`from_value`] reads whole.
pub(crate) fn shape<T: DeserializeOwned>(value: Value) -> Result<T, Fault> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let fault = Fault::schema(error.into_inner().to_string());
        match path.as_str() {
            "." => fault,
            path => fault.within(path),
        }
    })
}

/// The path of the first member in which two values differ; empty for the values themselves.
fn first_difference(read: &Value, written: &Value) -> Option<String> {
    if read == written {
        return None;
    }
    let inside = |name: String, deeper: String| match deeper.is_empty() {
        true => name,
        false => format!("{name}.{deeper}"),
    };
    let deeper = match (read, written) {
        (Value::Object(read), Value::Object(written)) => {
            let names = written.keys().chain(read.keys());
            names.into_iter().find_map(|name| match (read.get(name), written.get(name)) {
                (Some(read), Some(written)) => Some(inside(name.clone(), first_difference(read, written)?)),
                (Some(_), None) | (None, Some(_)) => Some(name.clone()),
                (None, None) => None,
            })
        }
        (Value::Array(read), Value::Array(written)) if read.len() == written.len() => {
            let mut pairs = read.iter().zip(written).enumerate();
            pairs.find_map(|(i, (read, written))| Some(inside(i.to_string(), first_difference(read, written)?)))
        }
        _ => None,
    };
    Some(deeper.unwrap_or_default())
}

/// An object's canonical bytes with its members at hand, so that the whole and the whole without one member come from one
/// writing.
pub(crate) struct Members {
    bytes: Vec<u8>,
    members: Vec<Member>,
}

impl Members {
    /// The members of an object.
    ///
    /// # Errors
    /// `schema_invalid` when it has no canonical form or is no object.
    pub(crate) fn of<T: Serialize + ?Sized>(object: &T) -> Result<Self, Fault> {
        let (bytes, members) = write::written(object)?;
        match bytes.first() {
            Some(b'{') => Ok(Self { bytes, members }),
            _ => Err(Fault::schema("a contract is an object")),
        }
    }

    /// The canonical bytes of the object.
    pub(crate) fn whole(&self) -> &[u8] {
        &self.bytes
    }

    /// The canonical bytes of the object without one member.
    pub(crate) fn without(&self, key: &str) -> Vec<u8> {
        self.joined(|member| (member.key != key).then(|| self.written(member).into()))
    }

    /// The canonical bytes of the object with another value for one of its members.
    ///
    /// # Errors
    /// As [`Members::of`].
    pub(crate) fn with<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<Vec<u8>, Fault> {
        let replaced = [to_bytes(key)?, to_bytes(value)?].join(&b':');
        Ok(self.joined(|member| {
            Some(if member.key == key { replaced.as_slice().into() } else { self.written(member).into() })
        }))
    }

    fn written(&self, member: &Member) -> &[u8] {
        self.bytes.get(member.place.clone()).unwrap_or_default()
    }

    fn joined<'a>(&'a self, write: impl Fn(&'a Member) -> Option<Cow<'a, [u8]>>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes.len() + 80);
        for member in self.members.iter().filter_map(write) {
            bytes.push(if bytes.is_empty() { b'{' } else { b',' });
            bytes.extend_from_slice(&member);
        }
        if bytes.is_empty() {
            bytes.push(b'{');
        }
        bytes.push(b'}');
        bytes
    }
}

/// A digest of length-prefixed parts under a domain name, for structures that are not JSON (links, Merkle nodes).
#[must_use]
pub fn hash_parts(domain: &'static str, parts: &[&[u8]]) -> Digest {
    use sha2::{Digest as _, Sha256};
    let mut hasher = Sha256::new();
    for part in std::iter::once(domain.as_bytes()).chain(parts.iter().copied()) {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    Digest::from_raw(hasher.finalize().into())
}
