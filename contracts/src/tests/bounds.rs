//! What the types alone cannot say: forms, bounds, the least and the most that is valid. Spec: Appendix B.

use super::support::{json_of, read, read_canonical, refused, resealed, round_trips};
use crate::canonical::PAYLOAD_BYTES_MAX;
use crate::contract::{Check, Contract, INTEGER_MAX, LIST_ITEMS_MAX};
use crate::digest::Digest;
use crate::envelope::Payload;
use crate::example::{self, Example, Extent};
use crate::id::{ID_BYTES_MAX, KEY_BYTES_MAX, Key, ObligationId, TEXT_BYTES_MAX, Text};
use crate::obligation::{Obligation, ObligationStatus};
use crate::payload_type::PayloadType;
use crate::reentry::TypedPredicate;
use crate::refs::{Amounts, ArtifactRef, PLAIN_BYTES_MAX, Plain, StateRef, VersionedRef};
use crate::refusal::RefusalCode;
use crate::shows;
use crate::time::Timestamp;
use crate::work::WorkResult;
use serde_json::{Value, json};

#[test]
fn a_digest_names_its_algorithm() {
    shows!("CP-B-02"; by "digest.malformed");
    let digest = Digest::of(b"");
    assert_eq!(Digest::parse(&digest.to_string()).expect("its own form"), digest);
    let hex = hex::encode(digest.raw());
    for wrong in [
        hex.clone(),
        format!("sha512:{hex}"),
        format!("sha-256:{hex}"),
        format!("SHA256:{hex}"),
        format!("sha256:{}", hex.to_uppercase()),
        format!("sha256:{hex}00"),
        format!("sha256: {}", &hex[1..]),
    ] {
        refused(Digest::parse(&wrong), RefusalCode::SchemaInvalid);
    }
}

#[test]
fn a_timestamp_is_utc() {
    shows!("CP-B-03"; by "time.malformed");
    for right in [
        "2026-01-01T12:00:00Z",
        "2026-01-01T12:00:00.2Z",
        "2026-01-01T12:00:00.250Z",
        "2024-02-29T23:59:59Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999Z",
    ] {
        assert_eq!(Timestamp::parse(right).expect("UTC").as_str(), right);
    }
    for wrong in [
        "2026-01-01T12:00:00",
        "2026-01-01T12:00:00+00:00",
        "2026-01-01T12:00:00+01:00",
        "2026-01-01T12:00:00z",
        "2026-01-01 12:00:00Z",
        "2026-01-01T12:00Z",
        "2026-01-01T12:00:00.2500Z",
        "2026-01-01T12:00:00.Z",
        "2026-02-30T12:00:00Z",
        "2026-01-01T25:00:00Z",
        "",
        "２026-01-01T12:00:0Z",
    ] {
        refused(Timestamp::parse(wrong), RefusalCode::SchemaInvalid);
    }
    let second = Timestamp::parse("2026-01-01T12:00:00Z").expect("UTC");
    let milliseconds = Timestamp::parse("2026-01-01T12:00:00.000Z").expect("UTC");
    assert_eq!(second, milliseconds, "compared as instants");
    assert_ne!(second.as_str(), milliseconds.as_str(), "kept byte for byte");
    assert!(second < second.plus_ms(1));
    assert_eq!(second.plus_ms(1).as_str(), "2026-01-01T12:00:00.001Z");
}

#[test]
fn an_artifact_is_named_by_id_and_digest() {
    shows!("CP-B-04"; by "refs.artifact_digest_differs");
    let reference = json_of(&ArtifactRef::example(Extent::Full));
    for part in ["id", "digest"] {
        let mut without = reference.clone();
        without.as_object_mut().expect("an object").remove(part);
        refused(read::<ArtifactRef>(without), RefusalCode::SchemaInvalid);
    }
    let reference: ArtifactRef = read(reference).expect("whole");
    assert!(reference.check_digest(reference.digest).is_ok());
    refused(reference.check_digest(Digest::of(b"other bytes")), RefusalCode::DigestMismatch);
}

#[test]
fn a_state_is_named_by_version_and_digest() {
    shows!("CP-B-06"; by "refs.state_digest_differs");
    round_trips::<StateRef>();
    let held = StateRef::example(Extent::Full);
    assert!(held.check_digest(&held).is_ok());
    let other = StateRef { digest: Digest::of(b"another"), ..held };
    refused(other.check_digest(&held), RefusalCode::DigestMismatch);
    let later = StateRef { version: held.version + 1, ..other };
    assert!(later.check_digest(&held).is_ok(), "another version is another state, and not a damaged one");
}

#[test]
fn unknown_core_versions_are_refused_or_unknown() {
    shows!("CP-B-09"; by "envelope.version_unknown");
    let whole = json_of(example::payload(PayloadType::Event, Extent::Full).envelope());
    assert!(Payload::read(&resealed(whole.clone())).is_ok());
    let mut newer = whole;
    newer["protocol_version"] = json!("closer-draft-5");
    refused(Payload::read(&resealed(newer)), RefusalCode::UnknownVersion);
    let newer = json!({ "operator": "AllButOne", "items": [] });
    assert!(matches!(read::<TypedPredicate>(newer), Ok(TypedPredicate::Unsupported(_))));
    // A version is one exact number: no range, prefix or name.
    for loose in [json!(">=1"), json!("1"), json!(1.0), json!("latest"), json!(-1)] {
        let reference = json!({ "id": "rule-1", "version": loose });
        refused(read::<VersionedRef>(reference), RefusalCode::SchemaInvalid);
    }
}

#[test]
fn texts_are_bounded() {
    shows!("CP-B-11"; by "id.beyond_bound", "text.beyond_bound");
    let of = |bytes: usize| "x".repeat(bytes);
    assert!(ObligationId::from(of(ID_BYTES_MAX)).check().is_ok());
    refused(ObligationId::from(of(ID_BYTES_MAX + 1)).check(), RefusalCode::Oversize);
    assert!(Key::from(of(KEY_BYTES_MAX)).check().is_ok());
    refused(Key::from(of(KEY_BYTES_MAX + 1)).check(), RefusalCode::Oversize);
    assert!(Text::from(of(TEXT_BYTES_MAX)).check().is_ok());
    refused(Text::from(of(TEXT_BYTES_MAX + 1)).check(), RefusalCode::Oversize);
    assert!(Plain(json!(of(PLAIN_BYTES_MAX))).check().is_ok());
    refused(Plain(json!([of(PLAIN_BYTES_MAX + 1)])).check(), RefusalCode::Oversize);
    assert!(Plain(json!({ of(KEY_BYTES_MAX): 1 })).check().is_ok());
    refused(Plain(json!({ of(KEY_BYTES_MAX + 1): 1 })).check(), RefusalCode::Oversize);
}

#[test]
fn lists_are_bounded() {
    shows!("CP-B-11"; by "contract.list_beyond_bound");
    let result = |items: usize| WorkResult {
        unresolved: vec![Example::example(Extent::Minimal); items],
        ..WorkResult::example(Extent::Minimal)
    };
    assert!(result(LIST_ITEMS_MAX).check().is_ok());
    refused(result(LIST_ITEMS_MAX + 1).check(), RefusalCode::Oversize);
    assert!(Plain(json!(vec![1; LIST_ITEMS_MAX])).check().is_ok());
    refused(Plain(json!(vec![1; LIST_ITEMS_MAX + 1])).check(), RefusalCode::Oversize);
}

#[test]
fn payloads_are_bounded() {
    shows!("CP-B-11"; by "canonical.payload_beyond_bound");
    let filled = |bytes: usize| format!("[{}1]", "1,".repeat((bytes - 3) / 2)).into_bytes();
    let most = filled(PAYLOAD_BYTES_MAX - 1);
    assert!(read_canonical(&most).is_ok());
    refused(read_canonical(&filled(PAYLOAD_BYTES_MAX + 1)), RefusalCode::Oversize);
    // What could not be read back is not sealed either.
    let mut event = example::envelope(example::body(PayloadType::Event, Extent::Full), Extent::Full);
    let note = |number| (Key::from(format!("org.example.note-{number}")), Plain(json!("x".repeat(PLAIN_BYTES_MAX))));
    event.extensions = Some(crate::envelope::Extensions((0..20).map(note).collect()));
    refused(Payload::seal(event), RefusalCode::Oversize);
}

#[test]
fn integers_are_those_of_i_json() {
    assert!(INTEGER_MAX.check().is_ok());
    refused((INTEGER_MAX + 1).check(), RefusalCode::SchemaInvalid);
    refused(Amounts { calls: Some(u64::MAX), ..Amounts::default() }.check(), RefusalCode::SchemaInvalid);
    refused(Amounts { cost_micros: Some(1), ..Amounts::default() }.check(), RefusalCode::SchemaInvalid);
}

/// Removes each field of a contract in turn, and each member of its nullable ones.
fn fields_are_mandatory<T>()
where
    T: Contract + Example + Check + serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug,
{
    for extent in Extent::ALL {
        let whole = json_of(&T::example(extent));
        for field in T::FIELDS {
            let mut without = whole.clone();
            without.as_object_mut().expect("an object").remove(field.name);
            refused(read::<T>(without), RefusalCode::SchemaInvalid);
        }
        let unknown = super::support::altered(whole, "unheard_of", Value::Null);
        refused(read::<T>(unknown), RefusalCode::SchemaInvalid);
    }
}

/// Empties each list of a full instance; it is valid unless the specification says `List[1..]`.
fn empty_lists_are_valid<T>(filled: &[&str])
where
    T: Contract + Example + Check + serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let whole = json_of(&T::example(Extent::Full));
    for (field, value) in whole.as_object().expect("an object") {
        if value.is_array() {
            let emptied = super::support::altered(whole.clone(), field, json!([]));
            // A digest over the list or an outcome that depends on it changes with it; the shape is what is asked here.
            let read = read::<T>(emptied).map_or_else(|fault| fault.code, |_| RefusalCode::Duplicate);
            match filled.contains(&field.as_str()) {
                true => assert_eq!(read, RefusalCode::SchemaInvalid, "{} {field}", T::NAME),
                false => assert_ne!(read, RefusalCode::SchemaInvalid, "{} {field}", T::NAME),
            }
        }
    }
}

macro_rules! each_contract {
    ($check:ident) => {
        $crate::tests::bounds::each_contract!($check; event::Event, event::MatchReceipt, obligation::Obligation, obligation::Condition,
            obligation::TriggerGap, route::Route, work::Work, work::WorkResult, work::EvidenceRelation, action::Action,
            evidence::Evidence, adjudication::Adjudication, delta::Delta, reentry::Reentry, reentry::EvaluationRecord,
            handoff::Handoff, briefcase::Briefcase, audit::DisclosureReceipt, audit::Declaration, audit::UserDecision,
            audit::Grant, audit::CommitReceipt, audit::UrgentDetails, audit::ReconciliationReceipt, audit::Confession,
            audit::DisclosureIncident)
    };
    ($check:ident; $($module:ident::$contract:ident),+) => { $($check::<crate::$module::$contract>();)+ };
}

pub(super) use each_contract;

#[test]
fn fields_are_there_even_when_null() {
    shows!("CP-B-08");
    each_contract!(fields_are_mandatory);
}

#[test]
fn the_largest_legitimate_shape_is_accepted() {
    shows!("CP-B-15"; by "id.beyond_bound", "text.beyond_bound");
    for payload_type in PayloadType::ALL {
        let payload = example::payload(*payload_type, Extent::Bound);
        assert!(Payload::read(payload.bytes()).is_ok());
    }
    each_contract!(round_trips);
}

#[test]
fn empty_collections_are_accepted_where_they_mean_something() {
    shows!("CP-B-16"; by "contract.list_is_empty");
    use crate::{
        action, adjudication, audit, briefcase, delta, event, evidence, handoff, obligation, reentry, route, work,
    };
    empty_lists_are_valid::<event::Event>(&[]);
    empty_lists_are_valid::<event::MatchReceipt>(&["matched_obligation_ids"]); // its outcome is `matched`
    empty_lists_are_valid::<Obligation>(&["resolution_conditions"]);
    empty_lists_are_valid::<obligation::ObligationDependency>(&[]);
    empty_lists_are_valid::<route::Route>(&[]);
    empty_lists_are_valid::<work::Work>(&[]);
    empty_lists_are_valid::<work::WorkResult>(&[]);
    empty_lists_are_valid::<work::EvidenceRelation>(&[]);
    empty_lists_are_valid::<action::Action>(&[]);
    empty_lists_are_valid::<evidence::Evidence>(&[]);
    empty_lists_are_valid::<adjudication::Adjudication>(&["readback_refs"]); // its phase is `post_outcome`
    empty_lists_are_valid::<delta::Delta>(&["changes"]);
    empty_lists_are_valid::<reentry::Reentry>(&[]);
    empty_lists_are_valid::<reentry::EvaluationRecord>(&[]);
    empty_lists_are_valid::<handoff::Handoff>(&[]);
    empty_lists_are_valid::<briefcase::Briefcase>(&["obligation_ids"]);
    empty_lists_are_valid::<audit::DisclosureReceipt>(&[]);
    empty_lists_are_valid::<audit::Declaration>(&["success_criteria"]);
    empty_lists_are_valid::<audit::Grant>(&["allowed_operations", "targets"]);
    empty_lists_are_valid::<audit::CommitReceipt>(&[]);
    empty_lists_are_valid::<audit::UrgentDetails>(&[]);
    empty_lists_are_valid::<audit::ReconciliationReceipt>(&[]);
    empty_lists_are_valid::<audit::Confession>(&[]);
    empty_lists_are_valid::<audit::DisclosureIncident>(&["released_item_refs", "recipient_refs"]);
}

#[test]
fn one_form_on_the_wire() {
    // A list in an object's place, a variant in its long form, `null` for an extension: read by serde, refused here.
    let obligation = json_of(&Obligation::example(Extent::Full));
    let mut as_list = obligation.clone();
    as_list["gap"] = json!(["text", []]);
    refused(read::<Obligation>(as_list), RefusalCode::SchemaInvalid);
    let mut long = obligation.clone();
    long["status"] = json!({ "active": null });
    refused(read::<Obligation>(long), RefusalCode::SchemaInvalid);
    let mut no_extensions = obligation;
    no_extensions["extensions"] = Value::Null;
    refused(read::<Obligation>(no_extensions), RefusalCode::SchemaInvalid);
    refused(read::<Amounts>(json!({ "calls": 1 })), RefusalCode::SchemaInvalid);
    assert!(ObligationStatus::ALL.iter().all(|status| read::<ObligationStatus>(json!(status)).is_ok()));
}
