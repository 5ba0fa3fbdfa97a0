//! Events from outside: CloudEvents 1.0 over HTTP in its three modes, and payloads written and signed elsewhere.
//!
//! `source` is the registered source, `type` the kind of change, `subject` the entity, `time` when it was observed; `id` with
//! `source` makes a repeat the same event. What else comes with an event is kept with it and read by no decision.

use super::told;
use crate::http::door::{Call, Door};
use crate::http::problem::Problem;
use crate::request::{self, EventDraft, Outcome, Request};
use crate::space::Space;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use closer_contracts::Check;
use closer_contracts::envelope::Extensions;
use closer_contracts::id::{ChangeKindId, EntityId, EvidenceId, Key, SourceId};
use closer_contracts::refs::Plain;
use closer_contracts::refusal::RefusalCode;
use closer_contracts::time::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most events of one batch.
const BATCH_MAX: usize = 1_000;
/// Under which name what came with an event is kept.
const KEPT_AS: &str = "io.cloudevents.event";
/// The longest `data` that is kept with an event, in bytes as JSON.
const DATA_BYTES_MAX: usize = 16 * 1024;

/// Takes one event or a batch; of a batch, each event is told apart.
pub(crate) async fn send(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let content_type = call.header(header::CONTENT_TYPE.as_str()).unwrap_or_default().to_ascii_lowercase();
    let media = content_type.split(';').next().unwrap_or_default().trim();
    match media {
        "application/cloudevents-batch+json" => {
            let events: Vec<Map<String, Value>> = call.json()?;
            if events.len() > BATCH_MAX {
                let detail = format!("a batch has at most {BATCH_MAX} events");
                return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "oversize", detail));
            }
            let mut results = Vec::with_capacity(events.len());
            for event in events {
                let sent = match draft(event) {
                    Ok(draft) => one(door, &call, draft).await,
                    Err(reason) => Err(Problem::unreadable(reason)),
                };
                results.push(sent.unwrap_or_else(|problem| json!({ "status": "refused", "problem": problem.json() })));
            }
            told(&json!({ "results": results }))
        }
        "application/cloudevents+json" => {
            let event: Map<String, Value> = call.json()?;
            told(&one(door, &call, draft(event).map_err(Problem::unreadable)?).await?)
        }
        _ if call.header("ce-specversion").is_some() => {
            told(&one(door, &call, draft(binary(&call)?).map_err(Problem::unreadable)?).await?)
        }
        _ => {
            let detail = "an event comes as application/cloudevents+json, as application/cloudevents-batch+json, or with ce- headers";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", detail))
        }
    }
}

/// Sends one event; one that was sent before is told as a duplicate, and no error.
async fn one(door: &Arc<Door>, call: &Call, draft: EventDraft) -> Result<Value, Problem> {
    let request = Request::EventSend(draft);
    if call.crowded && !request.is_urgent(&door.space.view()) {
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "busy",
            "as many connections are open as are served",
        ));
    }
    let answer = door.answer(call.identity()?, request).await?;
    match (answer.outcome, answer.code) {
        (Outcome::Done, _) => {
            Ok(json!({ "status": "recorded", "recorded": answer.data.get("recorded").cloned().unwrap_or_default() }))
        }
        (_, Some(RefusalCode::Duplicate)) => Ok(json!({ "status": "duplicate" })),
        (Outcome::Refused | Outcome::NotFound | Outcome::Corruption | Outcome::Failed, _) => Err(Problem::of(&answer)),
    }
}

/// An event whose attributes are headers and whose data is the body.
fn binary(call: &Call) -> Result<Map<String, Value>, Problem> {
    let mut event = Map::new();
    for name in call.headers.keys().filter_map(|name| name.as_str().strip_prefix("ce-")) {
        let text = call.header(&format!("ce-{name}"));
        let text = text.ok_or_else(|| Problem::unreadable(format!("ce-{name}: one header of text")))?;
        event.insert(name.to_owned(), Value::String(percent_decoded(text)));
    }
    if let Some(content_type) = call.header(header::CONTENT_TYPE.as_str()) {
        event.insert("datacontenttype".to_owned(), Value::String(content_type.to_owned()));
    }
    if !call.body.is_empty() {
        let data = serde_json::from_slice(&call.body);
        let data = data.unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&call.body).into_owned()));
        event.insert("data".to_owned(), data);
    }
    Ok(event)
}

/// `%41` as `A`; what is no such thing stays as it is.
fn percent_decoded(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let byte = after.get(..2).filter(|_| *first == b'%').and_then(|digits| {
            let digits = std::str::from_utf8(digits)
                .ok()
                .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            u8::from_str_radix(digits, 16).ok()
        });
        match byte {
            Some(byte) => {
                decoded.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// A CloudEvent as the event it announces.
pub(crate) fn draft(mut event: Map<String, Value>) -> Result<EventDraft, String> {
    let mut taken = |name: &str| match event.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
        Some(_) => Err(format!("{name}: a text that is not empty")),
    };
    let required = |name: &str, text: Option<String>| text.ok_or_else(|| format!("{name}: missing"));
    let version = required("specversion", taken("specversion")?)?;
    if version != "1.0" {
        return Err("specversion: 1.0".to_owned());
    }
    let id = required("id", taken("id")?)?;
    let source_id = SourceId::new(required("source", taken("source")?)?);
    let change_kind = ChangeKindId::new(required("type", taken("type")?)?);
    let entity_ref = EntityId::new(required("subject", taken("subject")?)?);
    let observed_at = taken("time")?.map(|time| moment(&time)).transpose()?;
    let evidence = taken("closerevidence")?.unwrap_or_default();
    let evidence: Vec<EvidenceId> =
        evidence.split(',').map(str::trim).filter(|id| !id.is_empty()).map(EvidenceId::from).collect();
    let checks = [source_id.check(), change_kind.check(), entity_ref.check(), evidence.check()];
    for (name, check) in ["source", "type", "subject", "closerevidence"].iter().zip(checks) {
        check.map_err(|fault| format!("{name}: {}", fault.reason))?;
    }
    let deduplication_key = Key::new(format!("ce:{}", crate::access::digest(&id)));
    event.insert("id".to_owned(), Value::String(id));
    let kept = Value::Object(event);
    if kept.to_string().len() > DATA_BYTES_MAX {
        return Err(format!("data: with its other attributes, at most {DATA_BYTES_MAX} bytes are kept with an event"));
    }
    let extensions = Extensions(BTreeMap::from([(Key::from(KEPT_AS), Plain(kept))]));
    extensions.check().map_err(|fault| format!("data: {}", fault.reason))?;
    Ok(EventDraft {
        source_id,
        entity_ref,
        change_kind,
        evidence,
        deduplication_key: Some(deduplication_key),
        observed_at,
        extensions: Some(extensions),
    })
}

/// A time of RFC 3339 with any offset, as the same instant in UTC.
fn moment(text: &str) -> Result<Timestamp, String> {
    let read: Result<jiff::Timestamp, _> = text.parse();
    read.map(|moment| Timestamp::from_unix_ms(moment.as_millisecond()))
        .map_err(|_| "time: a time such as 2026-01-01T12:00:00Z".to_owned())
}

/// Hands in a payload as it came: signed by a registered key, or the caller's own.
pub(crate) async fn hand_in(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let payload = std::str::from_utf8(&call.body).map_err(|error| Problem::unreadable(error.to_string()))?.to_owned();
    let key_id = call.header("closer-key-id").map(Into::into);
    let signature = call.header("closer-signature").map(Into::into);
    let identity = call.identity()?;
    let signed = key_id.is_some() && signature.is_some();
    let own = request::producer_of(&payload).is_none_or(|producer| producer == *identity);
    if !signed && !own {
        let detail = "the payload is another identity's; only a signature by one of its keys speaks for it";
        return Err(Problem::new(StatusCode::FORBIDDEN, "not_own", detail));
    }
    let request = Request::PayloadSend { payload, key_id, signature };
    if call.crowded && !request.is_urgent(&door.space.view()) {
        return Ok(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "as many connections are open as are served")
            .into_response());
    }
    told(&door.ask(identity, request).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(change: impl Fn(&mut Map<String, Value>)) -> Result<EventDraft, String> {
        let event = json!({
            "specversion": "1.0", "id": "A234-1234-1234", "source": "source.files", "type": "file_changed",
            "subject": "file.target", "time": "2018-04-05T17:31:00+02:00", "data": { "size": 3 },
        });
        let Value::Object(mut event) = event else { panic!("an object") };
        change(&mut event);
        draft(event)
    }

    #[test]
    fn the_attributes_become_the_event_and_the_rest_is_kept() {
        let draft = event(|_| {}).unwrap();
        assert_eq!(draft.source_id.as_str(), "source.files");
        assert_eq!(draft.change_kind.as_str(), "file_changed");
        assert_eq!(draft.entity_ref.as_str(), "file.target");
        assert_eq!(draft.observed_at.unwrap().as_str(), "2018-04-05T15:31:00.000Z");
        let kept = &draft.extensions.unwrap().0[&Key::from(KEPT_AS)];
        assert_eq!(kept.0, json!({ "id": "A234-1234-1234", "data": { "size": 3 } }));
    }

    #[test]
    fn what_is_no_cloud_event_of_this_version_is_told_by_its_attribute() {
        let changes: [(&str, Value); 7] = [
            ("specversion", json!("0.3")),
            ("id", json!("")),
            ("id", json!(7)),
            ("subject", Value::Null),
            ("source", json!("https://example.com/two words")),
            ("time", json!("yesterday")),
            ("data", json!("x".repeat(20_000))),
        ];
        for (name, value) in changes {
            let refused = event(|event| {
                event.insert(name.to_owned(), value.clone());
            });
            let reason = refused.expect_err(name);
            assert!(reason.starts_with(name), "{reason}");
        }
    }

    #[test]
    fn header_values_are_percent_decoded() {
        assert_eq!(percent_decoded("Euro%20%E2%82%AC%20%F0%9F%98%80"), "Euro € 😀");
        assert_eq!(percent_decoded("100%, %zz %4"), "100%, %zz %4");
    }
}
