//! What a call came to, in the port's words.

use closer_contracts::Check;
use closer_contracts::id::{TEXT_BYTES_MAX, Text};
use closer_contracts::refs::Plain;
use closer_contracts::time::Timestamp;
use closer_protocol::port::{Clock, Performed};
use serde_json::{Value, json};

/// A reason as text for people: cut to size, never empty.
pub(crate) fn reason(text: impl AsRef<str>) -> Text {
    let text = text.as_ref();
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    match text.get(..end) {
        Some("") | None => Text::from("no reason was given"),
        Some(text) => Text::from(text),
    }
}

pub(crate) fn not_sent(why: impl AsRef<str>) -> Performed {
    Performed::NotSent { reason: reason(why) }
}

pub(crate) fn unknown(sent_at: Timestamp, why: impl AsRef<str>) -> Performed {
    Performed::Unknown { sent_at, reason: reason(why) }
}

/// The call returned. A response that no record can carry is replaced by the statement that it was left out.
pub(crate) fn responded(clock: &dyn Clock, sent_at: Timestamp, response: Value) -> Performed {
    let response = Plain(response);
    let response = match response.check() {
        Ok(()) => response,
        Err(fault) => Plain(json!({ "left_out": fault.to_string() })),
    };
    Performed::Responded { sent_at, responded_at: clock.now().0, response }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn reasons_are_cut_between_characters_and_never_empty() {
        assert_eq!(reason("").as_str(), "no reason was given");
        let long = "é".repeat(TEXT_BYTES_MAX);
        let cut = reason(&long);
        assert!(cut.check().is_ok());
        assert_eq!(cut.as_str().len(), TEXT_BYTES_MAX);
        let odd = format!("x{long}");
        assert_eq!(reason(odd).as_str().len(), TEXT_BYTES_MAX - 1);
    }

    #[test]
    fn a_response_that_no_record_carries_is_left_out() {
        let now = Timestamp::from_unix_ms(0);
        let clock = ManualClock::at(now.clone());
        for bad in [json!(1.5), json!({ "x": u64::MAX }), json!("x".repeat(70_000))] {
            let Performed::Responded { response, .. } = responded(&clock, now.clone(), bad) else {
                panic!("it responded");
            };
            assert!(response.0.get("left_out").is_some());
            response.check().unwrap();
        }
    }
}
