//! Canonical bytes: one module owns them (RFC 8785, DEC-02).
//!
//! Out: guard, then `serde_jcs`, then SHA-256. In: a strict I-JSON reader, canonicalize, accept only bytes equal to those
//! received. After that the bytes and their digest stay together and nothing is serialized again.

use crate::digest::Digest;
use crate::fault::Fault;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;

mod guard;
mod strict;

pub use strict::read_value;

/// The deepest nesting of arrays and objects.
pub const DEPTH_MAX: usize = 128;
/// The largest payload, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

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
        let value = read_canonical(bytes)?;
        let value = from_value(value)?;
        Ok(Self { value, bytes: bytes.into(), digest: Digest::of(bytes) })
    }
}

/// The canonical bytes of a value.
///
/// # Errors
/// As [`Canonical::of`].
pub fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Fault> {
    guard::check(value)?;
    written(value)
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
    guard::check(value)?;
    serde_json::to_value(value).map_err(|error| Fault::schema(format!("not JSON: {error}")))
}

/// Reads bytes strictly and accepts them only if they are their own canonical form.
///
/// # Errors
/// As [`Canonical::read`].
pub fn read_canonical(bytes: &[u8]) -> Result<Value, Fault> {
    let value = read_bounded(bytes)?;
    check_form(bytes, &written(&value)?)?;
    Ok(value)
}

/// Reads bytes strictly as an object in canonical form, with its members as they stand there.
///
/// # Errors
/// As [`Canonical::read`].
pub(crate) fn read_object(bytes: &[u8]) -> Result<(Map<String, Value>, Members), Fault> {
    let Value::Object(object) = read_bounded(bytes)? else {
        return Err(Fault::schema("a contract is an object"));
    };
    let members = Members::of(&object)?;
    check_form(bytes, &members.whole())?;
    Ok((object, members))
}

fn read_bounded(bytes: &[u8]) -> Result<Value, Fault> {
    check_size(bytes)?;
    read_value(bytes)
}

/// Holds a payload to its bound.
///
/// # Errors
/// `oversize`.
pub(crate) fn check_size(bytes: &[u8]) -> Result<(), Fault> {
    match crate::branch!("canonical.payload_beyond_bound", bytes.len() > PAYLOAD_BYTES_MAX) {
        true => Err(Fault::oversize(format!("a payload has at most {PAYLOAD_BYTES_MAX} bytes"))),
        false => Ok(()),
    }
}

fn check_form(bytes: &[u8], canonical: &[u8]) -> Result<(), Fault> {
    match crate::branch!("canonical.bytes_are_canonical", canonical == bytes) {
        true => Ok(()),
        false => Err(Fault::schema("the bytes are not the canonical form (RFC 8785) of their content")),
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
    let typed = shape(value.clone())?;
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

/// The members of an object in canonical order, each written once, so that the whole and the whole without one member
/// come from the same bytes.
pub(crate) struct Members(Vec<(String, Vec<u8>)>);

impl Members {
    /// The members of a guarded or strictly read object.
    ///
    /// # Errors
    /// `schema_invalid` when a member has no canonical form.
    pub(crate) fn of(object: &Map<String, Value>) -> Result<Self, Fault> {
        let mut members = object
            .iter()
            .map(|(key, value)| Ok((key.clone(), Self::written(key, value)?)))
            .collect::<Result<Vec<_>, Fault>>()?;
        members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        Ok(Self(members))
    }

    fn written(key: &str, value: &Value) -> Result<Vec<u8>, Fault> {
        let mut member = written(key)?;
        member.push(b':');
        member.extend(written(value)?);
        Ok(member)
    }

    /// Adds a member or replaces the one of this name.
    ///
    /// # Errors
    /// As [`Members::of`].
    pub(crate) fn set(&mut self, key: &str, value: &Value) -> Result<(), Fault> {
        let member = (key.to_owned(), Self::written(key, value)?);
        self.0.retain(|(known, _)| known != key);
        let place = self.0.partition_point(|(known, _)| known.encode_utf16().lt(key.encode_utf16()));
        self.0.insert(place, member);
        Ok(())
    }

    /// The canonical bytes of the object.
    pub(crate) fn whole(&self) -> Vec<u8> {
        Self::object(self.0.iter())
    }

    /// The canonical bytes of the object without one member.
    pub(crate) fn without(&self, key: &str) -> Vec<u8> {
        Self::object(self.0.iter().filter(|(known, _)| known != key))
    }

    fn object<'a>(members: impl Iterator<Item = &'a (String, Vec<u8>)>) -> Vec<u8> {
        let mut bytes = vec![b'{'];
        for (index, (_, member)) in members.enumerate() {
            if index > 0 {
                bytes.push(b',');
            }
            bytes.extend_from_slice(member);
        }
        bytes.push(b'}');
        bytes
    }
}

fn written<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Fault> {
    serde_jcs::to_vec(value).map_err(|error| Fault::schema(format!("not canonical JSON: {error}")))
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
