//! The envelope: version, lineage, digest. Spec: §6.1, C1.

use super::support::{altered, refused, reject_whole, resealed, round_trips};
use crate::audit::DisclosureReceipt;
use crate::canonical;
use crate::digest::Digest;
use crate::envelope::{Body, DisclosureRef, Envelope, PROTOCOL_VERSION, Payload};
use crate::example::{self, Example, Extent};
use crate::payload_type::PayloadType;
use crate::refs::StateRef;
use crate::refusal::RefusalCode;
use crate::shows;
use serde_json::{Value, json};

fn value(payload: &Payload) -> Value {
    canonical::read_value(payload.bytes()).expect("a payload is strict JSON")
}

#[test]
fn envelope_and_shared_references_are_whole() {
    shows!("CP-C1-01");
    for payload_type in PayloadType::ALL {
        for extent in Extent::ALL {
            let payload = example::payload(*payload_type, extent);
            assert_eq!(Payload::read(payload.bytes()).expect("its own bytes are read"), payload);
        }
    }
    round_trips::<StateRef>();
    round_trips::<DisclosureRef>();
    round_trips::<DisclosureReceipt>();
}

#[test]
fn an_event_at_intake_needs_no_lineage() {
    shows!("CP-C1-02"; by "envelope.lineage_missing");
    let event = example::payload(PayloadType::Event, Extent::Minimal);
    let envelope = event.envelope();
    assert!(envelope.obligation_ids.is_empty());
    assert_eq!((&envelope.episode_id, &envelope.semantic_basis), (&None, &None));
    assert!(Payload::read(event.bytes()).is_ok());
}

#[test]
fn work_and_what_follows_it_lack_no_lineage() {
    shows!("CP-C1-03"; by "envelope.lineage_missing");
    use PayloadType as T;
    for payload_type in [T::Work, T::Route, T::Result, T::Action, T::Adjudication] {
        let whole = example::payload(payload_type, Extent::Full);
        for (field, missing) in
            [("obligation_ids", json!([])), ("episode_id", Value::Null), ("semantic_basis", Value::Null)]
        {
            let bytes = resealed(altered(value(&whole), field, missing));
            refused(Payload::read(&bytes), RefusalCode::SchemaInvalid);
        }
    }
    // The endorsement of a routine delta belongs to no episode; it has an obligation and a basis all the same.
    let mut endorsement = value(&example::payload(T::Adjudication, Extent::Full));
    endorsement["body"]["phase"] = json!("semantic_commit");
    endorsement["body"]["subject"]["type"] = json!("delta");
    endorsement["body"]["disposition"] = json!("endorsed");
    let without_episode = altered(endorsement, "episode_id", Value::Null);
    assert!(Payload::read(&resealed(without_episode.clone())).is_ok());
    let without_basis = resealed(altered(without_episode, "semantic_basis", Value::Null));
    refused(Payload::read(&without_basis), RefusalCode::SchemaInvalid);
    // Outside an episode, these need an obligation and a basis as well.
    for payload_type in [T::Obligation, T::Delta, T::Reentry, T::Handoff, T::Briefcase] {
        let whole = value(&example::payload(payload_type, Extent::Full));
        assert!(Payload::read(&resealed(altered(whole.clone(), "episode_id", Value::Null))).is_ok());
        let bytes = resealed(altered(whole, "semantic_basis", Value::Null));
        refused(Payload::read(&bytes), RefusalCode::SchemaInvalid);
    }
}

#[test]
fn missing_lineage_is_null_and_never_the_payload_itself() {
    shows!("CP-C1-04"; by "envelope.names_itself_as_parent");
    let whole = value(&example::payload(PayloadType::Work, Extent::Full));
    assert!(Payload::read(&resealed(altered(whole.clone(), "causation_event_id", Value::Null))).is_ok());
    let own_id = whole["payload_id"].clone();
    let bytes = resealed(altered(whole, "parents", json!(["payload-0", own_id])));
    refused(Payload::read(&bytes), RefusalCode::UnresolvedRef);
}

#[test]
fn an_unknown_version_is_refused_before_the_body_is_read() {
    shows!("CP-6.1-01"; by "envelope.version_unknown");
    let whole = value(&example::payload(PayloadType::Event, Extent::Full));
    assert!(Payload::read(&resealed(whole.clone())).is_ok());
    for version in [json!("closer-draft-5"), json!(""), json!("closer-draft"), json!(4), Value::Null] {
        let mut other = altered(whole.clone(), "protocol_version", version);
        other["body"] = json!("of no contract");
        refused(Payload::read(&resealed(other)), RefusalCode::UnknownVersion);
    }
    let mut unnamed = whole;
    unnamed.as_object_mut().expect("an object").remove("protocol_version");
    refused(Payload::read(&resealed(unnamed)), RefusalCode::UnknownVersion);
}

#[test]
fn placeholders_are_no_values() {
    shows!("CP-6.1-02"; by "digest.malformed");
    assert!(Digest::parse(&Digest::of(b"").to_string()).is_ok());
    let truncated = Digest::of(b"").to_string()[..70].to_owned();
    for placeholder in ["sha256:...", "sha256:", truncated.as_str()] {
        refused(Digest::parse(placeholder), RefusalCode::SchemaInvalid);
    }
    let illustration = json!({
        "protocol_version": PROTOCOL_VERSION,
        "payload_id": "pl-work-1",
        "type": "WORK",
        "created_at": "2026-01-01T12:00:00Z",
        "producer": { "actor_id": "coordinator-1", "role": "coordinator" },
        "parents": ["route-1"],
        "obligation_ids": ["o-12"],
        "episode_id": "ep-3",
        "semantic_basis": { "version": 14, "digest": Digest::of(b"state") },
        "disclosure": { "id": "disclosure-3", "digest": Digest::of(b"disclosure") },
        "budget_ref": "budget-5",
        "causation_event_id": "ev-9",
        "body": { "work_id": "work-1", "role": "investigator" },
    });
    refused(Payload::read(&resealed(illustration)), RefusalCode::SchemaInvalid);
}

#[test]
fn disclosure_is_a_reference_to_a_receipt() {
    shows!("CP-6.1-04"; by "envelope.disclosure_digest_differs");
    let whole = value(&example::payload(PayloadType::Work, Extent::Full));
    let receipt = DisclosureReceipt::example(Extent::Full);
    let inline = resealed(altered(whole, "disclosure", canonical::to_value(&receipt).expect("a value")));
    refused(Payload::read(&inline), RefusalCode::SchemaInvalid);

    let digest = canonical::digest_of(&receipt).expect("a digest");
    let reference = DisclosureRef { id: receipt.disclosure_id.clone(), digest };
    assert!(reference.check_digest(digest).is_ok());
    let later = DisclosureReceipt { permitted_use: vec!["another-use".into()], ..receipt };
    let later = canonical::digest_of(&later).expect("a digest");
    refused(reference.check_digest(later), RefusalCode::DigestMismatch);
}

#[test]
fn the_content_digest_covers_every_other_field() {
    shows!("CP-6.1-05", "CP-C1-07"; by "envelope.content_digest_agrees");
    let payload = example::payload(PayloadType::Work, Extent::Full);
    assert!(Payload::read(payload.bytes()).is_ok());
    let other = value(&example::payload(PayloadType::Work, Extent::Bound));
    let mut fields = 0;
    for (field, changed) in other.as_object().expect("an object") {
        if matches!(field.as_str(), "protocol_version" | "type" | "content_digest") {
            continue; // These have one value in a valid WORK; their change is refused before the digest is compared.
        }
        let changed = match field.as_str() {
            "disclosure" => json!({ "id": "another", "digest": Digest::of(b"another") }),
            "producer" => json!({ "actor_id": "another", "role": "coordinator" }),
            "parents" => json!([]),
            "extensions" => json!({ "org.example.note": "another" }),
            _ => changed.clone(),
        };
        let bytes = canonical::to_bytes(&altered(value(&payload), field, changed)).expect("canonical bytes");
        refused(Payload::read(&bytes), RefusalCode::DigestMismatch);
        fields += 1;
    }
    assert_eq!(fields, 12);
    for nullable in ["budget_ref", "causation_event_id"] {
        let event = value(&example::payload(PayloadType::Event, Extent::Full));
        let bytes = canonical::to_bytes(&altered(event, nullable, Value::Null)).expect("canonical bytes");
        refused(Payload::read(&bytes), RefusalCode::DigestMismatch);
    }
}

#[test]
fn the_digest_does_not_see_key_order_or_white_space() {
    shows!("CP-6.1-06"; by "canonical.bytes_are_canonical");
    let payload = example::payload(PayloadType::Event, Extent::Full);
    let pretty = serde_json::to_vec_pretty(&value(&payload)).expect("text");
    let reordered = {
        let members = value(&payload);
        let members: Vec<String> = members.as_object().expect("an object").iter().rev().map(member).collect();
        format!("{{{}}}", members.join(","))
    };
    for text in [pretty.as_slice(), reordered.as_bytes()] {
        let mut read = canonical::read_value(text).expect("strict JSON");
        read.as_object_mut().expect("an object").remove("content_digest");
        assert_eq!(canonical::digest_of(&read).expect("a digest"), payload.content_digest());
        // The digest is the same, but only one form of the bytes is a payload.
        refused(Payload::read(text), RefusalCode::SchemaInvalid);
    }
    assert!(Payload::read(payload.bytes()).is_ok());
}

fn member((key, value): (&String, &Value)) -> String {
    format!("{}:{value}", Value::from(key.as_str()))
}

#[test]
fn type_and_body_agree() {
    shows!("CP-6.2-13");
    assert_eq!(PayloadType::ALL.len(), 12);
    for payload_type in PayloadType::ALL {
        let whole = value(&example::payload(*payload_type, Extent::Full));
        assert!(Payload::read(&resealed(whole.clone())).is_ok());
        for other in PayloadType::ALL.iter().filter(|other| *other != payload_type) {
            let bytes = resealed(altered(whole.clone(), "type", json!(other)));
            refused(Payload::read(&bytes), RefusalCode::SchemaInvalid);
        }
        for unknown in ["RECEIPT", "event", ""] {
            let bytes = resealed(altered(whole.clone(), "type", json!(unknown)));
            refused(Payload::read(&bytes), RefusalCode::SchemaInvalid);
        }
    }
}

#[test]
fn a_body_alone_is_no_payload_and_carries_no_lineage() {
    shows!("CP-6-01");
    for payload_type in PayloadType::ALL {
        let body: Body = example::body(*payload_type, Extent::Full);
        let bytes = canonical::to_bytes(&body).expect("canonical bytes");
        reject_whole(&bytes);
        let whole = value(&example::payload(*payload_type, Extent::Full));
        let with_lineage = altered(whole["body"].clone(), "parents", json!(["payload-0"]));
        let bytes = resealed(altered(whole, "body", with_lineage));
        refused(Payload::read(&bytes), RefusalCode::SchemaInvalid);
    }
}

#[test]
fn sealing_fills_in_what_a_producer_cannot_choose() {
    let mut draft: Envelope = example::envelope(example::body(PayloadType::Event, Extent::Full), Extent::Full);
    draft.protocol_version = "something else".into();
    draft.r#type = PayloadType::Work;
    let payload = Payload::seal(draft).expect("a draft is sealed");
    assert_eq!(payload.envelope().protocol_version.as_str(), PROTOCOL_VERSION);
    assert_eq!(payload.envelope().r#type, PayloadType::Event);
    assert_eq!(Payload::read(payload.bytes()).expect("its own bytes are read"), payload);
}
