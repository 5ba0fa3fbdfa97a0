//! Triggers, handoffs and decision packets. Spec: C11 to C13.

use super::support::{altered, json_of, read, refused, round_trips};
use crate::briefcase::Briefcase;
use crate::example::{Example, Extent};
use crate::handoff::{AcceptanceReceipt, Handoff, HandoffConsent, ResponsibilityContract};
use crate::reentry::{
    All, Any, CapabilityVerified, DependencyVersionChanged, EvaluationRecord, EvidenceAdded, HandoffAccepted,
    PREDICATE_DEPTH_MAX, PREDICATE_NODES_MAX, Reentry, TimeReached, TypedPredicate, UserDecisionReceived,
};
use crate::refusal::RefusalCode;
use crate::shows;
use serde_json::{Value, json};

#[test]
fn reentry_operators_and_record_are_whole() {
    shows!("CP-C11-01");
    round_trips::<Reentry>();
    round_trips::<EvaluationRecord>();
    round_trips::<TypedPredicate>();
    round_trips::<EvidenceAdded>();
    round_trips::<DependencyVersionChanged>();
    round_trips::<UserDecisionReceived>();
    round_trips::<CapabilityVerified>();
    round_trips::<HandoffAccepted>();
    round_trips::<TimeReached>();
    round_trips::<All>();
    round_trips::<Any>();
}

#[test]
fn arguments_are_identifiers_and_times() {
    shows!("CP-C11-02"; by "id.malformed");
    let leaves = [
        (json_of(&EvidenceAdded::example(Extent::Full)), "EvidenceAdded"),
        (json_of(&DependencyVersionChanged::example(Extent::Full)), "DependencyVersionChanged"),
        (json_of(&UserDecisionReceived::example(Extent::Full)), "UserDecisionReceived"),
        (json_of(&CapabilityVerified::example(Extent::Full)), "CapabilityVerified"),
        (json_of(&HandoffAccepted::example(Extent::Full)), "HandoffAccepted"),
        (json_of(&TimeReached::example(Extent::Full)), "TimeReached"),
    ];
    for (leaf, operator) in leaves {
        let named = altered(leaf.clone(), "operator", json!(operator));
        assert!(read::<TypedPredicate>(named.clone()).is_ok(), "{operator}");
        for argument in leaf.as_object().expect("an object").keys() {
            for script in ["price < 10 && now()", "SELECT * FROM grants", "${run}", "=A1+1"] {
                for value in [json!(script), json!([script]), json!({ script: 1 })] {
                    refused(
                        read::<TypedPredicate>(altered(named.clone(), argument, value)),
                        RefusalCode::SchemaInvalid,
                    );
                }
            }
        }
    }
}

#[test]
fn empty_all_and_any_are_invalid() {
    shows!("CP-C11-16"; by "contract.list_is_empty");
    let leaf = json!({ "operator": "TimeReached", "at": "2026-01-01T12:00:00Z" });
    for operator in ["All", "Any"] {
        let with = |items: Value| json!({ "operator": operator, "items": items });
        assert!(read::<TypedPredicate>(with(json!([leaf]))).is_ok());
        refused(read::<TypedPredicate>(with(json!([]))), RefusalCode::SchemaInvalid);
        refused(read::<TypedPredicate>(with(json!([leaf, with(json!([]))]))), RefusalCode::SchemaInvalid);
    }
}

#[test]
fn an_operator_of_a_newer_version_is_kept_as_it_came() {
    let newer = json!({ "operator": "MoonPhase", "phase": "full" });
    let kept: TypedPredicate = read(newer.clone()).expect("well-formed");
    assert!(matches!(kept, TypedPredicate::Unsupported(_)));
    assert_eq!(json_of(&kept), newer);
    for malformed in
        [json!({ "operator": "moon phase" }), json!({ "operator": 7 }), json!({ "phase": "full" }), json!([])]
    {
        refused(read::<TypedPredicate>(malformed), RefusalCode::SchemaInvalid);
    }
}

#[test]
fn predicates_are_bounded_in_depth_and_nodes() {
    let leaf = || json!({ "operator": "TimeReached", "at": "2026-01-01T12:00:00Z" });
    let deep = |levels: usize| (1..levels).fold(leaf(), |inner, _| json!({ "operator": "All", "items": [inner] }));
    assert!(read::<TypedPredicate>(deep(PREDICATE_DEPTH_MAX)).is_ok());
    refused(read::<TypedPredicate>(deep(PREDICATE_DEPTH_MAX + 1)), RefusalCode::SchemaInvalid);
    let wide = |nodes: usize| json!({ "operator": "Any", "items": vec![leaf(); nodes - 1] });
    assert!(read::<TypedPredicate>(wide(PREDICATE_NODES_MAX)).is_ok());
    refused(read::<TypedPredicate>(wide(PREDICATE_NODES_MAX + 1)), RefusalCode::SchemaInvalid);
}

#[test]
fn handoff_is_whole() {
    shows!("CP-C12-01");
    round_trips::<Handoff>();
    round_trips::<HandoffConsent>();
    round_trips::<ResponsibilityContract>();
    round_trips::<AcceptanceReceipt>();
}

#[test]
fn briefcase_is_whole() {
    shows!("CP-C13-01");
    round_trips::<Briefcase>();
}

#[test]
fn a_packet_without_recommendation_says_why() {
    shows!("CP-C13-02"; by "briefcase.null_recommendation_has_reason");
    let packet = json_of(&Briefcase::example(Extent::Full));
    let with = |recommendation: Value, reason: Value| {
        let packet = altered(packet.clone(), "recommendation", recommendation);
        read::<Briefcase>(altered(packet, "recommendation_reason", reason))
    };
    let recommendation = packet["recommendation"].clone();
    assert!(with(Value::Null, json!("nothing supports one over the other")).is_ok());
    assert!(with(recommendation, Value::Null).is_ok());
    refused(with(Value::Null, Value::Null), RefusalCode::SchemaInvalid);
    refused(with(Value::Null, json!("")), RefusalCode::SchemaInvalid);
}
