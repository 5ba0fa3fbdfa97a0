//! Time as data: UTC timestamps kept byte for byte and compared as instants (DEC-04).

use crate::contract::Check;
use crate::fault::Fault;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

const EPOCH: jiff::civil::DateTime = jiff::civil::DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// A UTC instant, RFC 3339 with `Z` and at most millisecond precision. Equality and order are the instant's.
#[derive(Clone)]
pub struct Timestamp {
    text: Arc<str>,
    unix_ms: i64,
}

impl Timestamp {
    /// Reads `2026-01-01T12:00:00Z` or `2026-01-01T12:00:00.250Z`.
    ///
    /// # Errors
    /// `schema_invalid` for an offset other than `Z`, none at all, finer precision, or no such day.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = || Fault::schema("a timestamp is UTC: YYYY-MM-DDTHH:MM:SS[.mmm]Z");
        let shape = match text.len() {
            20 => "dddd-dd-ddTdd:dd:ddZ",
            22..=24 => "dddd-dd-ddTdd:dd:dd.ddd",
            _ => return Err(invalid()),
        };
        let fits = |(i, b): (usize, u8)| match shape.as_bytes().get(i) {
            Some(b'd') => b.is_ascii_digit() || (i + 1 == text.len() && b == b'Z'),
            Some(&expected) => b == expected,
            None => b == b'Z',
        };
        let fitting = text.ends_with('Z') && text.bytes().enumerate().all(fits);
        if crate::branch!("time.malformed", !fitting) {
            return Err(invalid());
        }
        let civil: jiff::civil::DateTime = text.trim_end_matches('Z').parse().map_err(|_| invalid())?;
        let since_epoch = civil.duration_since(EPOCH);
        Ok(Self { text: text.into(), unix_ms: i64::try_from(since_epoch.as_millis()).map_err(|_| invalid())? })
    }

    /// The instant `unix_ms` milliseconds after 1970-01-01T00:00:00Z, written with milliseconds.
    /// Instants beyond the years 0000 to 9999 are held at the nearest of them.
    #[must_use]
    pub fn from_unix_ms(unix_ms: i64) -> Self {
        let unix_ms = unix_ms.clamp(-62_167_219_200_000, 253_402_300_799_999);
        let civil = EPOCH.saturating_add(jiff::SignedDuration::from_millis(unix_ms));
        Self { text: format!("{civil:.3}Z").into(), unix_ms }
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn unix_ms(&self) -> i64 {
        self.unix_ms
    }

    /// The instant `duration_ms` milliseconds later.
    #[must_use]
    pub fn plus_ms(&self, duration_ms: u64) -> Self {
        Self::from_unix_ms(self.unix_ms.saturating_add(i64::try_from(duration_ms).unwrap_or(i64::MAX)))
    }

    /// The text exactly as received.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.unix_ms == other.unix_ms
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        self.unix_ms.cmp(&other.unix_ms)
    }
}

impl Hash for Timestamp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.unix_ms.hash(state);
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(|fault| serde::de::Error::custom(fault.reason))
    }
}

impl Check for Timestamp {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,3})?Z$"
        })
    }
}
