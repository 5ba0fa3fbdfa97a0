//! What a page shows of a record: text that can be no markup and controls nothing, and times with their zone.

use crate::visible::visible;
use closer_contracts::time::Timestamp;
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Text as a page may show it. There is no other way to make one, so that whatever a record holds passes here.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shown(String);

impl Shown {
    pub(super) fn new(text: &str) -> Self {
        Self(visible(text, true))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Shown {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Shown {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl PartialEq<str> for Shown {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl<'de> Deserialize<'de> for Shown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::new(&text))
    }
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A moment for people: its date and time with the zone, and how far off it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct When {
    pub(super) iso: Shown,
    pub(super) words: Shown,
    pub(super) relative: Shown,
}

impl When {
    pub(super) fn new(at: &Timestamp, now: &Timestamp) -> Self {
        let iso = Timestamp::from_unix_ms(at.unix_ms());
        let part = |range: std::ops::Range<usize>| iso.as_str().get(range).unwrap_or_default();
        let month = part(5..7).parse::<usize>().ok().and_then(|month| MONTHS.get(month.checked_sub(1)?)).copied();
        let day = part(8..10).trim_start_matches('0');
        let words = format!("{day} {} {}, {} UTC", month.unwrap_or_default(), part(0..4), part(11..16));
        let relative = relative(at.unix_ms().saturating_sub(now.unix_ms()));
        Self { iso: Shown::new(iso.as_str()), words: words.into(), relative: relative.into() }
    }

    /// Of a record's text; nothing where that is no time.
    pub(super) fn of(text: Option<&str>, now: &Timestamp) -> Option<Self> {
        text.and_then(|text| Timestamp::parse(text).ok()).map(|at| Self::new(&at, now))
    }
}

/// A line with every time in it as people read it.
pub(super) fn with_times(line: &str) -> Shown {
    let word = |word: &str| {
        let plain = word.trim_end_matches([':', ';', ',', '.']);
        let rest = word.get(plain.len()..).unwrap_or_default();
        match Timestamp::parse(plain) {
            Ok(at) => format!("{}{rest}", When::new(&at, &at).words),
            Err(_) => word.to_owned(),
        }
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ").into()
}

/// How far off something is, in the largest unit of which there are two.
fn relative(ms: i64) -> String {
    let seconds = ms.unsigned_abs() / 1_000;
    let (count, unit) = match seconds {
        0..=119 => (seconds, "second"),
        120..=7_199 => (seconds / 60, "minute"),
        7_200..=172_799 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    match ms >= 0 {
        true => format!("in {count} {unit}{plural}"),
        false => format!("{count} {unit}{plural} ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_its_zone_and_its_distance() {
        let now = Timestamp::parse("2026-12-01T12:00:00Z").unwrap();
        let when = |text: &str| When::of(Some(text), &now).unwrap();
        assert_eq!(when("2026-12-02T09:05:00Z").words.as_str(), "2 Dec 2026, 09:05 UTC");
        assert_eq!(when("2026-12-02T11:05:00Z").relative.as_str(), "in 23 hours");
        assert_eq!(when("2026-12-01T11:58:00Z").relative.as_str(), "2 minutes ago");
        assert_eq!(when("2026-12-01T12:00:01Z").relative.as_str(), "in 1 second");
        assert_eq!(when("2027-01-01T12:00:00Z").relative.as_str(), "in 31 days");
        assert_eq!(When::of(Some("tomorrow"), &now), None);
    }

    #[test]
    fn times_in_a_line_are_told_as_people_read_them() {
        let told = with_times("it is 2026-12-31T01:59:31.689Z: does not hold yet since 2026-12-01T00:00:00Z.");
        assert_eq!(told.as_str(), "it is 31 Dec 2026, 01:59 UTC: does not hold yet since 1 Dec 2026, 00:00 UTC.");
    }

    #[test]
    fn whatever_is_read_from_a_record_is_made_visible() {
        let shown: Shown = serde_json::from_str("\"allow\\u202ewolla\\u0007\"").unwrap();
        assert_eq!(shown.as_str(), "allow\\u{202e}wolla\\u{7}");
    }
}
