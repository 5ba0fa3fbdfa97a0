//! Bytes from outside: each defect gets its code, nothing is half applied, nothing panics.

use crate::support::{Called, Place, counting};
use closer::space::{Resting, Space};
use closer_contracts::event::{Certainty, Event};
use closer_contracts::refs::{ActorRef, ProducerRole, SourceRef};
use closer_protocol::services::{self, Lineage};
use serde_json::Value;

/// A founded space that nobody runs.
fn founded() -> Place {
    let place = Place::with(&counting("conditional"));
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    place
}

/// A well-formed event of `source.people`, as `producer` would write it.
fn event(place: &Place, producer: &str, source: &str, id: &str) -> String {
    let space = Resting::open(&place.store()).unwrap();
    let (view, now) = (space.view(), space.moment().now);
    let event = Event {
        event_id: id.into(),
        source: SourceRef { source_id: source.into() },
        observed_at: now.clone(),
        received_at: now.clone(),
        entity_ref: "word".into(),
        change_kind: "word_given".into(),
        evidence_refs: Vec::new(),
        deduplication_key: id.into(),
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
    let producer = ActorRef { actor_id: producer.into(), role: ProducerRole::Observer };
    let disclosure = view.disclosure(&services::intake_disclosure("source.people")).unwrap().clone();
    let payload =
        services::write(&view, format!("pl.{id}").into(), producer, lineage, disclosure, event, &now).unwrap();
    String::from_utf8(payload.bytes().to_vec()).unwrap()
}

fn send(place: &Place, payload: &str) -> Called {
    let file = place.path().join("payload.json");
    std::fs::write(&file, payload).unwrap();
    place.call(&["--json", "event", "send", "--file", file.to_str().unwrap()])
}

#[track_caller]
fn refused(place: &Place, payload: &str, code: &str) {
    let called = send(place, payload);
    let told: Value = called.expect(3).json();
    assert_eq!(told["code"], code, "{told}");
}

#[test]
fn each_defect_of_a_payload_has_its_code() {
    let place = founded();
    let good = event(&place, "issuer.security", "source.people", "event.1");
    let state = place.call(&["--json", "verify"]).expect(0).json()["state"].clone();
    refused(&place, &good[..good.len() / 2], "schema_invalid");
    refused(&place, "", "schema_invalid");
    refused(&place, &good.replacen('{', "{\"body\":1,", 1), "schema_invalid");
    refused(&place, &good.replace("closer-draft-4", "closer-draft-9"), "unknown_version");
    refused(&place, &good.replace("word_given", "word_broken"), "digest_mismatch");
    refused(&place, &good.replace("\"type\":\"EVENT\"", "\"type\":\"WORK\""), "schema_invalid");
    let digest = serde_json::from_str::<Value>(&good).unwrap()["content_digest"].as_str().unwrap().to_owned();
    refused(&place, &good.replace(&digest, &format!("sha256:{}", "0".repeat(64))), "digest_mismatch");
    refused(&place, &format!("{}{}", good, " ".repeat(2 << 20)), "oversize");
    assert_eq!(place.call(&["--json", "verify"]).expect(0).json()["state"], state);
    send(&place, &good).expect(0);
    refused(&place, &good, "duplicate");
}

#[test]
fn nobody_speaks_in_anothers_name() {
    let place = founded();
    refused(&place, &event(&place, "closer.observer", "source.files", "event.service"), "unauthenticated");
    refused(&place, &event(&place, "agent.worker", "source.people", "event.participant"), "unauthenticated");
    refused(&place, &event(&place, "user.owner", "source.people", "event.role"), "unauthenticated");
    refused(&place, &event(&place, "issuer.security", "source.files", "event.source"), "unauthenticated");
    refused(&place, &event(&place, "nobody", "source.people", "event.nobody"), "unauthenticated");
    // A signature by a key that is not registered proves nothing.
    let payload = event(&place, "issuer.security", "source.people", "event.forged");
    let (key, file) = (place.path().join("own.key"), place.path().join("forged.json"));
    std::fs::write(&file, &payload).unwrap();
    let key_id = place.call(&["--json", "keys", "new", key.to_str().unwrap()]).expect(0).json()["key_id"].clone();
    let signed =
        place.call(&["--json", "keys", "sign", key.to_str().unwrap(), file.to_str().unwrap()]).expect(0).json();
    let arguments = [
        "--json",
        "event",
        "send",
        "--file",
        file.to_str().unwrap(),
        "--key-id",
        key_id.as_str().unwrap(),
        "--signature",
        signed["signature"].as_str().unwrap(),
    ];
    assert_eq!(place.call(&arguments).expect(3).json()["code"], "unauthenticated");
}

#[test]
fn a_target_outside_its_folder_is_never_touched() {
    let outside = counting("conditional").replace(
        "target = { type = \"file\", account = \"local\", address = \"target\" }\nparameters",
        "target = { type = \"file\", account = \"local\", address = \"../escaped\" }\nparameters",
    );
    let place = Place::with(&outside);
    let run = place.run(&["--json"]);
    assert_eq!(run.code, Some(8), "{run:?}");
    assert!(!place.path().join("var/escaped").exists() && !place.path().join("var/world/runs").exists());
}

/// What nobody authenticated is counted on record; one process after the other that delivers it adds nothing to the log.
#[test]
fn a_flood_of_garbage_grows_the_log_in_no_number_of_processes() {
    let place = founded();
    let size = || place.call(&["--json", "verify"]).expect(0).json()["bytes"].as_u64().unwrap();
    refused(&place, "garbage", "schema_invalid");
    refused(&place, "garbage", "schema_invalid");
    let before = size();
    for number in 0..8 {
        refused(&place, &format!("garbage {number}"), "schema_invalid");
    }
    assert_eq!(size(), before);
}
