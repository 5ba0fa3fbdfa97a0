//! Webhooks: payloads in the JSON that existing tools emit, signed with a secret per source, mapped to events as the
//! deployment says.
//!
//! A signature says who sent it. Where the scheme signs a time, a payload outside the window is refused; where it signs the
//! body alone, a repeat is the same event, and changes nothing.

use super::door::{Call, Door};
use super::problem::Problem;
use crate::deployment::{Mapping, Scheme, Webhook};
use crate::error::Error;
use crate::request::{EventDraft, Outcome, Request};
use crate::space::Space;
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use closer_contracts::Check;
use closer_contracts::envelope::Extensions;
use closer_contracts::id::{ChangeKindId, EntityId, EvidenceId, Key};
use closer_contracts::refs::Plain;
use closer_contracts::refusal::RefusalCode;
use closer_contracts::time::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Under which name the kept fields of a payload stand in the event.
const KEPT_AS: &str = "org.closer.webhook";
/// The shortest secret, in bytes.
const SECRET_BYTES_MIN: usize = 16;

/// A webhook with its secret.
pub(super) struct Hook {
    declared: Webhook,
    secret: Vec<u8>,
}

impl Hook {
    /// Reads the secret's file.
    pub(super) fn open(declared: &Webhook) -> Result<Self, Error> {
        let path = &declared.secret_file;
        let text = crate::access::secret_file(path)?;
        if text.len() < SECRET_BYTES_MIN {
            return Err(Error::World(format!("{}: a secret has at least {SECRET_BYTES_MIN} bytes", path.display())));
        }
        let standard = text.strip_prefix("whsec_").filter(|_| declared.scheme == Scheme::Standard);
        let secret = standard.and_then(|text| STANDARD.decode(text).ok()).unwrap_or_else(|| text.as_bytes().to_vec());
        Ok(Self { declared: declared.clone(), secret })
    }

    /// Whether these are the bytes that whoever has the secret signed, within the time they may be used.
    fn is_signed(&self, call: &Call, now: &Timestamp) -> bool {
        match self.declared.scheme {
            Scheme::Body => {
                let header = self.declared.header.as_deref().unwrap_or_default();
                let offered = call.header(header).unwrap_or_default();
                let offered = offered.strip_prefix("sha256=").unwrap_or(offered);
                hex::decode(offered).is_ok_and(|offered| self.fits(&[&call.body], &offered))
            }
            Scheme::Standard => {
                let text = |name: &str| call.header(name).unwrap_or_default();
                let (id, at) = (text("webhook-id"), text("webhook-timestamp"));
                let in_time = at
                    .parse::<i64>()
                    .is_ok_and(|at| at.saturating_mul(1_000).abs_diff(now.unix_ms()) <= self.declared.replay_window_ms);
                let mut offered = text("webhook-signature").split(' ').filter_map(|one| one.strip_prefix("v1,"));
                let signed: [&[u8]; 5] = [id.as_bytes(), b".", at.as_bytes(), b".", &call.body];
                let fits = |one: &str| STANDARD.decode(one).is_ok_and(|one| self.fits(&signed, &one));
                !id.is_empty() && in_time && offered.any(fits)
            }
        }
    }

    fn fits(&self, parts: &[&[u8]], offered: &[u8]) -> bool {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return false };
        parts.iter().for_each(|part| mac.update(part));
        mac.verify_slice(offered).is_ok()
    }
}

/// Takes one payload of a webhook.
pub(super) async fn receive(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let name = call.place("name");
    let Some(hook) = door.hooks.iter().find(|hook| hook.declared.name == name) else {
        return Err(Problem::not_found("no webhook has this name"));
    };
    if !hook.is_signed(&call, &door.now()) {
        if !door.failures.admits(&format!("hook {name}"), Instant::now()) {
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", "too many failed attempts"));
        }
        return Err(Problem::unauthenticated("the signature does not fit, or its time is over"));
    }
    let payload: Value = call.json()?;
    let draft = draft(&hook.declared, &payload, &call.body)
        .map_err(|reason| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unmapped", reason))?;
    let Some(draft) = draft else {
        return super::api::told(&json!({ "status": "ignored" }));
    };
    let request = Request::EventSend(draft);
    if call.crowded && !request.is_urgent(&door.space.view()) {
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "busy",
            "as many connections are open as are served",
        ));
    }
    let answer = door.answer(&hook.declared.identity, request).await?;
    match (answer.outcome, answer.code) {
        (Outcome::Done, _) => super::api::told(&json!({ "status": "recorded" })),
        (_, Some(RefusalCode::Duplicate)) => super::api::told(&json!({ "status": "duplicate" })),
        (Outcome::Refused | Outcome::NotFound | Outcome::Corruption | Outcome::Failed, _) => Err(Problem::of(&answer)),
    }
}

/// What a payload becomes; nothing where no mapping fits.
///
/// # Errors
/// What the mapping that fits cannot make of it.
pub(crate) fn draft(hook: &Webhook, payload: &Value, bytes: &[u8]) -> Result<Option<EventDraft>, String> {
    let Some(map) = hook.map.iter().find(|map| fits(map, payload)) else { return Ok(None) };
    let entity_ref = EntityId::new(filled(&map.entity, payload)?);
    let change_kind = ChangeKindId::new(filled(&map.change_kind, payload)?);
    let checks = [("entity", entity_ref.check()), ("change_kind", change_kind.check())];
    for (name, check) in checks {
        check.map_err(|fault| format!("{name}: {}", fault.reason))?;
    }
    let id = match &map.id {
        Some(id) => filled(id, payload)?.into_bytes(),
        None => bytes.to_vec(),
    };
    let observed_at = map.observed_at.as_ref().map(|field| observed_at(field, payload)).transpose()?;
    let mut evidence = Vec::new();
    for cited in &map.evidence {
        evidence.push(EvidenceId::new(filled(cited, payload)?));
    }
    let kept: Map<String, Value> =
        map.keep.iter().filter_map(|field| Some((field.clone(), payload.pointer(field)?.clone()))).collect();
    let kept = (!kept.is_empty()).then(|| Extensions(BTreeMap::from([(Key::from(KEPT_AS), Plain(kept.into()))])));
    if let Some(kept) = &kept {
        kept.check().map_err(|fault| format!("keep: {}", fault.reason))?;
    }
    let digest = crate::access::digest(&String::from_utf8_lossy(&id));
    Ok(Some(EventDraft {
        source_id: hook.source_id.clone(),
        entity_ref,
        change_kind,
        evidence,
        deduplication_key: Some(Key::new(format!("hook:{digest}"))),
        observed_at,
        extensions: kept,
    }))
}

fn fits(map: &Mapping, payload: &Value) -> bool {
    map.when.iter().all(|when| {
        let field = payload.pointer(&when.field);
        let equals = when.equals.as_ref().is_none_or(|wanted| field == Some(wanted));
        let one_of = when.one_of.as_ref().is_none_or(|wanted| field.is_some_and(|field| wanted.contains(field)));
        equals && one_of
    })
}

/// A text with `{/pointer}` replaced by the payload's fields, which are texts, numbers or truth values.
fn filled(text: &str, payload: &Value) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        let Some((pointer, behind)) = after.split_once('}') else {
            return Err(format!("`{text}`: a brace is left open"));
        };
        filled.push_str(before);
        match payload.pointer(pointer) {
            Some(Value::String(field)) => filled.push_str(field),
            Some(field @ (Value::Number(_) | Value::Bool(_))) => filled.push_str(&field.to_string()),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => {
                return Err(format!("the payload has no text or number at {pointer}"));
            }
        }
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The time that a field says: RFC 3339 text, or seconds since 1970.
fn observed_at(field: &str, payload: &Value) -> Result<Timestamp, String> {
    let value = payload.pointer(field).ok_or_else(|| format!("the payload has no time at {field}"))?;
    let told = match value.as_i64() {
        Some(seconds) => Some(Timestamp::from_unix_ms(seconds.saturating_mul(1_000))),
        None => value.as_str().and_then(|text| {
            let read: jiff::Timestamp = text.parse().ok()?;
            Some(Timestamp::from_unix_ms(read.as_millisecond()))
        }),
    };
    told.ok_or_else(|| format!("{field} is no time"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn hook(map: Value) -> Webhook {
        Webhook {
            name: "alerts".to_owned(),
            source_id: "source.security".into(),
            identity: "issuer.security".into(),
            scheme: Scheme::Body,
            secret_file: PathBuf::new(),
            header: Some("x-signature".to_owned()),
            replay_window_ms: 1_000,
            map: serde_json::from_value(map).unwrap(),
        }
    }

    #[test]
    fn the_first_mapping_whose_conditions_hold_makes_the_event() {
        let hook = hook(json!([
            { "when": [{ "field": "/action", "equals": "opened" }], "entity": "other", "change_kind": "other" },
            {
                "when": [{ "field": "/action", "equals": "revoked" }, { "field": "/level", "one_of": [1, 2] }],
                "entity": "key.{/key/name}", "change_kind": "key_{/action}", "id": "{/id}", "observed_at": "/at",
                "keep": ["/by"],
            },
        ]));
        let payload = json!({
            "action": "revoked", "level": 2, "id": 7, "at": "2026-01-01T01:00:00+01:00", "key": { "name": "web" }, "by": "ops",
        });
        let made = draft(&hook, &payload, b"one").unwrap().unwrap();
        assert_eq!((made.entity_ref.as_str(), made.change_kind.as_str()), ("key.web", "key_revoked"));
        assert_eq!(made.observed_at.unwrap().as_str(), "2026-01-01T00:00:00.000Z");
        assert_eq!(made.extensions.unwrap().0[&Key::from(KEPT_AS)].0, json!({ "/by": "ops" }));
        let again = draft(&hook, &payload, b"other bytes").unwrap().unwrap();
        assert_eq!(made.deduplication_key, again.deduplication_key, "its id makes it the same event");
        assert!(draft(&hook, &json!({ "action": "revoked", "level": 3 }), b"").unwrap().is_none());
    }

    #[test]
    fn what_a_payload_holds_makes_no_id_of_its_own_shape() {
        let hook = hook(json!([{ "entity": "key.{/name}", "change_kind": "key_revoked" }]));
        for name in [json!("a b"), json!({}), json!(null), json!("x".repeat(200)), json!("\u{202e}")] {
            assert!(draft(&hook, &json!({ "name": name }), b"").is_err(), "{name}");
        }
    }
}
