//! One attack: how it is written down, and how it becomes a line on the socket.

use closer::space::{Resting, Space};
use closer_contracts::canonical::{read_value, to_bytes};
use closer_contracts::envelope::DisclosureRef;
use closer_contracts::event::{Certainty, Event};
use closer_contracts::example::{self, Extent};
use closer_contracts::payload_type::PayloadType;
use closer_contracts::refs::{ActorRef, ProducerRole, SourceRef};
use closer_contracts::{Digest, Timestamp};
use closer_protocol::View;
use closer_protocol::services::{self, Lineage};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// A file of attacks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) attack: Vec<Attack>,
}

/// What is tried, and what must come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attack {
    pub(crate) name: String,
    /// The rows that the expectation is derived from.
    pub(crate) rows: Vec<String>,
    /// The code that it is refused with.
    pub(crate) code: Option<String>,
    /// Where no code is due: `failed` for what is no request, `not_found` for what is not on record.
    pub(crate) outcome: Option<String>,
    /// A request as it stands.
    #[serde(default)]
    request: Option<Value>,
    /// In whose name the request is made.
    #[serde(default)]
    identity: Option<String>,
    /// Bytes that are no request.
    #[serde(default)]
    line: Option<String>,
    /// The line's one character is repeated so often.
    #[serde(default)]
    repeated: Option<usize>,
    /// A well-formed event of a source, in the name of a producer.
    #[serde(default)]
    event: Option<Claimed>,
    /// A well-formed payload of a type, in the name of a producer.
    #[serde(default)]
    payload: Option<Claimed>,
    /// What is done to the payload: `remove`, `null`, `set` or `add` at a pointer.
    #[serde(default)]
    edits: Vec<Edit>,
    /// What is done to its text at last.
    #[serde(default)]
    replace: Option<(String, String)>,
    /// Whether the content digest is made to fit after the edits.
    #[serde(default)]
    unsealed: bool,
    /// With this signature of this key.
    #[serde(default)]
    signed: Option<(String, String)>,
}

/// Who a payload claims to be from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claimed {
    #[serde(default)]
    r#type: Option<PayloadType>,
    producer: String,
    #[serde(default)]
    role: Option<ProducerRole>,
    #[serde(default)]
    source: Option<String>,
}

/// One change of a payload's text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    #[serde(default)]
    remove: Option<String>,
    #[serde(default)]
    null: Option<String>,
    #[serde(default)]
    set: Option<String>,
    #[serde(default)]
    to: Option<Value>,
}

/// What well-formed payloads need to know of the space they are sent to.
pub(crate) struct Known {
    view: Arc<View>,
    disclosure: DisclosureRef,
    now: Timestamp,
}

impl Known {
    /// Reads a founded space that nobody runs.
    pub(crate) fn of(store: &std::path::Path) -> Self {
        let space = Resting::open(store).unwrap();
        let view = space.view();
        let disclosure = view.disclosure(&services::intake_disclosure("source.people")).unwrap().clone();
        Self { view, disclosure, now: space.moment().now }
    }
}

impl Attack {
    /// The bytes to send, with the line break.
    pub(crate) fn bytes(&self, known: &Known, number: usize) -> Vec<u8> {
        if let Some(line) = &self.line {
            let line = self.repeated.map_or_else(|| line.clone(), |times| line.repeat(times));
            return format!("{line}\n").into_bytes();
        }
        let request = match &self.request {
            Some(request) => request.clone(),
            None => {
                let (key_id, signature) = self.signed.clone().unzip();
                json!({
                    "verb": "payload_send", "payload": self.text(known, number), "key_id": key_id, "signature": signature,
                })
            }
        };
        let mut line = serde_json::to_vec(&json!({ "identity": self.identity, "request": request })).unwrap();
        line.push(b'\n');
        line
    }

    fn text(&self, known: &Known, number: usize) -> String {
        let mut value = match (&self.event, &self.payload) {
            (Some(claimed), None) => event(known, claimed, number),
            (None, Some(claimed)) => payload(claimed, number),
            _ => panic!("{}: an attack has a request, a line, an event or a payload", self.name),
        };
        for edit in &self.edits {
            edit.apply(&mut value);
        }
        if !self.unsealed {
            let mut without = value.clone();
            without.as_object_mut().unwrap().remove("content_digest");
            let digest = Digest::of(&to_bytes(&without).unwrap_or_default());
            if let Some(sealed) = value.get_mut("content_digest") {
                *sealed = json!(digest);
            }
        }
        // What has no canonical form is sent as JSON all the same.
        let text = to_bytes(&value).unwrap_or_else(|_| serde_json::to_vec(&value).unwrap());
        let text = String::from_utf8(text).unwrap();
        match &self.replace {
            Some((from, to)) => {
                assert!(text.contains(from), "{}: `{from}` is not in {text}", self.name);
                text.replace(from, to)
            }
            None => text,
        }
    }
}

fn event(known: &Known, claimed: &Claimed, number: usize) -> Value {
    let id = format!("event.hostile.{number}");
    let event = Event {
        event_id: id.as_str().into(),
        source: SourceRef { source_id: claimed.source.as_deref().unwrap_or("source.people").into() },
        observed_at: known.now.clone(),
        received_at: known.now.clone(),
        entity_ref: "entity.unwatched".into(),
        change_kind: "word_given".into(),
        evidence_refs: Vec::new(),
        deduplication_key: id.as_str().into(),
        certainty: Certainty::Observed,
        extensions: None,
    };
    let lineage = Lineage {
        parents: Vec::new(),
        obligation_ids: Vec::new(),
        episode_id: None,
        causation_event_id: None,
        budget_ref: None,
    };
    let role = claimed.role.unwrap_or(ProducerRole::Observer);
    let producer = ActorRef { actor_id: claimed.producer.as_str().into(), role };
    let id = format!("pl.{id}").into();
    let disclosure = known.disclosure.clone();
    let payload = services::write(&known.view, id, producer, lineage, disclosure, event, &known.now).unwrap();
    read_value(payload.bytes()).unwrap()
}

fn payload(claimed: &Claimed, number: usize) -> Value {
    let payload_type = claimed.r#type.expect("a payload has a type");
    let example = example::payload(payload_type, Extent::Full);
    let mut value = read_value(example.bytes()).unwrap();
    value["payload_id"] = json!(format!("pl.hostile.{number}"));
    value["producer"]["actor_id"] = json!(claimed.producer);
    if let Some(role) = claimed.role {
        value["producer"]["role"] = json!(role);
    }
    value
}

impl Edit {
    fn apply(&self, value: &mut Value) {
        match (&self.remove, &self.null, &self.set) {
            (Some(at), None, None) => {
                let (parent, name) = at.rsplit_once('/').unwrap();
                let removed = value.pointer_mut(parent).and_then(Value::as_object_mut).and_then(|map| map.remove(name));
                assert!(removed.is_some(), "there is no `{at}`");
            }
            (None, Some(at), None) => {
                *value.pointer_mut(at).unwrap_or_else(|| panic!("there is no `{at}`")) = Value::Null
            }
            (None, None, Some(at)) => {
                let (parent, name) = at.rsplit_once('/').unwrap();
                let to = self.to.clone().expect("`set` says `to` what");
                value.pointer_mut(parent).unwrap_or_else(|| panic!("there is no `{parent}`"))[name] = to;
            }
            _ => panic!("an edit removes, nulls or sets"),
        }
    }
}
