//! Observations, their targets and what they say about propositions. Spec: §6.3, C2, C8.

use super::support::{altered, json_of, read, refused, round_trips, words};
use crate::event::{Event, MatchReceipt, Rationale};
use crate::evidence::{Evidence, Readback, TargetBinding};
use crate::example::{Example, Extent};
use crate::obligation::Obligation;
use crate::refusal::RefusalCode;
use crate::shows;
use crate::work::{EvidenceRelation, Relation, TargetVersion};
use serde_json::{Value, json};

#[test]
fn event_and_match_receipt_are_whole() {
    shows!("CP-C2-01");
    round_trips::<Event>();
    round_trips::<MatchReceipt>();
    round_trips::<Rationale>();
}

#[test]
fn evidence_and_readback_are_whole() {
    shows!("CP-C8-01"; by "evidence.readback_names_action");
    round_trips::<Evidence>();
    round_trips::<Readback>();
    round_trips::<TargetBinding>();
    let readback = json_of(&Evidence::example(Extent::Full));
    for addition in ["attempt_id", "expected_postcondition_ref", "readback_method_ref", "outcome"] {
        let mut without = readback.clone();
        without["readback"].as_object_mut().expect("an object").remove(addition);
        refused(read::<Evidence>(without), RefusalCode::SchemaInvalid);
    }
    let of_no_action = altered(readback, "action_ref", Value::Null);
    refused(read::<Evidence>(of_no_action), RefusalCode::SchemaInvalid);
}

#[test]
fn an_obligation_names_its_closure_authority() {
    shows!("CP-6.3-01");
    let mut obligation = json_of(&Obligation::example(Extent::Full));
    assert!(read::<Obligation>(obligation.clone()).is_ok());
    obligation.as_object_mut().expect("an object").remove("closure_authority");
    refused(read::<Obligation>(obligation), RefusalCode::SchemaInvalid);
}

#[test]
fn a_relation_holds_all_that_the_protocol_shows() {
    shows!("CP-6.3-04");
    let shown = json!({
        "proposition_id": "required-export-preserved",
        "evidence_id": "export-probe-3",
        "reference_status": "resolved",
        "scope_match": "applicable",
        "relation": "supports",
        "valid_at": {
            "observed_at": "2026-01-01T12:01:00Z",
            "observation_sequence_ref": "service-A/candidate/export-probes",
            "observation_version": 3,
            "target_version": "release-7",
        },
        "limitations": ["Observation does not guarantee future contractual availability"],
    });
    let relation: EvidenceRelation = read(shown.clone()).expect("the relation the protocol shows");
    assert_eq!(json_of(&relation), shown);
    for field in shown.as_object().expect("an object").keys() {
        let mut without = shown.clone();
        without.as_object_mut().expect("an object").remove(field);
        refused(read::<EvidenceRelation>(without), RefusalCode::SchemaInvalid);
    }
    for field in shown["valid_at"].as_object().expect("an object").keys() {
        let mut without = shown.clone();
        without["valid_at"].as_object_mut().expect("an object").remove(field);
        refused(read::<EvidenceRelation>(without), RefusalCode::SchemaInvalid);
    }
}

#[test]
fn a_target_without_versions_says_so() {
    shows!("CP-6.3-07");
    let unknown = json_of(&TargetVersion::Unknown);
    assert_eq!(unknown, Value::Null);
    assert_eq!(read::<TargetVersion>(unknown).expect("explicit"), TargetVersion::Unknown);
    let known = TargetVersion::Known("unknown".into());
    assert_eq!(read::<TargetVersion>(json!("unknown")).expect("a version"), known);
    assert_ne!(known, TargetVersion::Unknown);
    for made_up in [json!(7), json!(""), json!({ "known": "7" })] {
        refused(read::<TargetVersion>(made_up), RefusalCode::SchemaInvalid);
    }
    let mut unstated = json_of(&TargetBinding::example(Extent::Full));
    unstated.as_object_mut().expect("an object").remove("target_version");
    refused(read::<TargetBinding>(unstated), RefusalCode::SchemaInvalid);
}

#[test]
fn a_relation_is_one_of_four() {
    shows!("CP-6.3-08");
    words(Relation::ALL, &["supports", "contradicts", "irrelevant", "unresolved"]);
}

#[test]
fn a_match_receipt_agrees_with_itself() {
    let receipt = json_of(&MatchReceipt::example(Extent::Full));
    for (outcome, matched, agrees) in [
        ("matched", json!(["obligation-1"]), true),
        ("matched", json!([]), false),
        ("unmatched", json!([]), true),
        ("unmatched", json!(["obligation-1"]), false),
        ("ambiguous", json!([]), true),
        ("ambiguous", json!(["obligation-1"]), true),
    ] {
        let one = altered(altered(receipt.clone(), "outcome", json!(outcome)), "matched_obligation_ids", matched);
        match agrees {
            true => assert!(read::<MatchReceipt>(one).is_ok(), "{outcome}"),
            false => refused(read::<MatchReceipt>(one), RefusalCode::SchemaInvalid),
        }
    }
}
