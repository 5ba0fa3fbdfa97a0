//! Canonical bytes: one module owns them (RFC 8785, DEC-02).
//!
//! Out: guard, then `serde_jcs`, then SHA-256. In: a strict I-JSON reader, canonicalize, accept only bytes equal to those
//! received. After that the bytes and their digest stay together and nothing is serialized again.

use crate::digest::Digest;
use crate::fault::Fault;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
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
        Ok(Self {
            value,
            bytes: bytes.into(),
            digest: Digest::of(bytes),
        })
    }
}

/// The canonical bytes of a value.
///
/// # Errors
/// As [`Canonical::of`].
pub fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Fault> {
    guard::check(value)?;
    serde_jcs::to_vec(value).map_err(|error| Fault::schema(format!("not canonical JSON: {error}")))
}

/// The digest of a value's canonical bytes.
///
/// # Errors
/// As [`Canonical::of`].
pub fn digest_of<T: Serialize + ?Sized>(value: &T) -> Result<Digest, Fault> {
    Ok(Digest::of(&to_bytes(value)?))
}

/// Reads bytes strictly and accepts them only if they are their own canonical form.
///
/// # Errors
/// As [`Canonical::read`].
pub fn read_canonical(bytes: &[u8]) -> Result<Value, Fault> {
    if bytes.len() > PAYLOAD_BYTES_MAX {
        return Err(Fault::oversize(format!(
            "a payload has at most {PAYLOAD_BYTES_MAX} bytes"
        )));
    }
    let value = read_value(bytes)?;
    let canonical = serde_jcs::to_vec(&value).map_err(|error| Fault::schema(format!("not canonical JSON: {error}")))?;
    match canonical == bytes {
        true => Ok(value),
        false => Err(Fault::schema(
            "the bytes are not the canonical form (RFC 8785) of their content",
        )),
    }
}

/// Turns a strictly read value into a contract, naming the field that does not fit.
///
/// # Errors
/// `schema_invalid` with the path of the field.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Fault> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let fault = Fault::schema(error.into_inner().to_string());
        match path.as_str() {
            "." => fault,
            path => fault.within(path),
        }
    })
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
