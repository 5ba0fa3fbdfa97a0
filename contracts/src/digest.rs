//! Digests: `sha256:` and 64 lowercase hexadecimal digits, naming their algorithm (DEC-03, Appendix B).

use crate::contract::Check;
use crate::fault::Fault;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// A SHA-256 digest of canonical bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

const PREFIX: &str = "sha256:";

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A digest from its raw 32 bytes, as a frame header carries it.
    #[must_use]
    pub const fn from_raw(raw: [u8; 32]) -> Self {
        Self(raw)
    }

    /// The raw 32 bytes.
    #[must_use]
    pub const fn raw(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// `schema_invalid` for a bare hexadecimal string, another algorithm, a placeholder or a truncated digest.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let hex = text.strip_prefix(PREFIX).ok_or_else(|| Fault::schema("a digest names its algorithm: `sha256:`"))?;
        let lowercase = hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let mut raw = [0u8; 32];
        let decoded = lowercase && hex::decode_to_slice(hex, &mut raw).is_ok();
        if crate::branch!("digest.malformed", !decoded) {
            return Err(Fault::schema("a sha256 digest has 64 lowercase hexadecimal digits"));
        }
        Ok(Self(raw))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(|fault| serde::de::Error::custom(fault.reason))
    }
}

impl Check for Digest {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

impl schemars::JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" })
    }
}
