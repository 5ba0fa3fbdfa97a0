//! Times relative to the moment the space is founded: `now`, `now+40d`, `now-1h`.

use super::source::{Misfit, Source};
use closer_contracts::time::Timestamp;
use serde_json::{Map, Value};

/// Sections whose texts are somebody else's: `now` in them is a word.
const VERBATIM: [&str; 3] = ["participant", "prepare", "companion"];

/// Replaces every text that is exactly a relative time.
pub(super) fn resolve(source: &Source, file: &mut Map<String, Value>, now: &Timestamp) -> Result<(), Misfit> {
    for (name, value) in file.iter_mut().filter(|(name, _)| !VERBATIM.contains(&name.as_str())) {
        walk(source, name, value, now)?;
    }
    Ok(())
}

fn walk(source: &Source, path: &str, value: &mut Value, now: &Timestamp) -> Result<(), Misfit> {
    match value {
        Value::String(text) => {
            if let Some(moment) = moment(text, now).map_err(|reason| source.misfit(path, reason))? {
                *text = moment.as_str().to_owned();
            }
            Ok(())
        }
        Value::Array(items) => {
            let mut numbered = items.iter_mut().enumerate();
            numbered.try_for_each(|(index, item)| walk(source, &format!("{path}.{index}"), item, now))
        }
        Value::Object(members) => {
            let mut members = members.iter_mut();
            members.try_for_each(|(name, member)| walk(source, &format!("{path}.{name}"), member, now))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// The time that a text stands for; `None` for a text that is no relative time.
pub(super) fn moment(text: &str, now: &Timestamp) -> Result<Option<Timestamp>, String> {
    let Some(rest) = text.strip_prefix("now") else {
        return Ok(None);
    };
    let (sign, duration) = match rest.strip_prefix('+') {
        Some(duration) => (1, duration),
        None => match rest.strip_prefix('-') {
            Some(duration) => (-1, duration),
            None if rest.is_empty() => return Ok(Some(now.clone())),
            None => return Ok(None),
        },
    };
    let digits = duration.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = match duration.get(digits.len()..) {
        Some("ms") => 1,
        Some("s") => 1_000,
        Some("m") => 60_000,
        Some("h") => 3_600_000,
        Some("d") => 86_400_000,
        Some(_) | None => {
            return Err(format!("`{text}` is no time: write a number and ms, s, m, h or d, as in `now+40d`"));
        }
    };
    let count: u32 =
        digits.parse().map_err(|_| format!("`{text}` is no time: `{digits}` is no number up to {}", u32::MAX))?;
    let moved = i64::from(count).saturating_mul(unit_ms).saturating_mul(sign);
    Ok(Some(Timestamp::from_unix_ms(now.unix_ms().saturating_add(moved))))
}
