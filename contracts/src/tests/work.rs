//! Obligations, routes, work and results. Spec: C3 to C6.

use super::support::{altered, json_of, read, refused, round_trips};
use crate::example::{Example, Extent};
use crate::obligation::{Condition, Obligation, TriggerGap};
use crate::refusal::RefusalCode;
use crate::route::Route;
use crate::shows;
use crate::work::{ContextItem, EvidenceRelation, Objection, Work, WorkResult};
use serde_json::json;

#[test]
fn obligation_condition_and_gap_are_whole() {
    shows!("CP-C3-01"; by "contract.list_is_empty");
    round_trips::<Obligation>();
    round_trips::<Condition>();
    round_trips::<TriggerGap>();
    let without = altered(json_of(&Obligation::example(Extent::Full)), "resolution_conditions", json!([]));
    refused(read::<Obligation>(without), RefusalCode::SchemaInvalid);
}

#[test]
fn route_is_whole() {
    shows!("CP-C4-01");
    round_trips::<Route>();
}

#[test]
fn work_is_whole_and_bounded() {
    shows!("CP-C5-01");
    round_trips::<Work>();
    for bound in ["rounds_max", "calls_max", "time_ms_max"] {
        let mut unbounded = json_of(&Work::example(Extent::Full));
        unbounded["stop_condition"][bound] = json!(0);
        refused(read::<Work>(unbounded), RefusalCode::SchemaInvalid);
    }
}

#[test]
fn materialized_context_is_what_its_reference_names() {
    shows!("CP-C5-03"; by "work.context_digest_agrees");
    let item = json_of(&ContextItem::example(Extent::Full));
    assert!(read::<ContextItem>(item.clone()).is_ok());
    let changed = altered(item, "content", json!("something else"));
    refused(read::<ContextItem>(changed), RefusalCode::DigestMismatch);
}

#[test]
fn result_and_relation_are_whole() {
    shows!("CP-C6-01");
    round_trips::<WorkResult>();
    round_trips::<EvidenceRelation>();
}

#[test]
fn nothing_found_is_a_result() {
    shows!("CP-C6-02", "CP-C6-03");
    let nothing = json!({
        "work_id": "work-1",
        "claims": [],
        "action_proposals": [],
        "assessments": [],
        "objections": [],
        "unresolved": [],
        "skill_receipts": [],
    });
    assert!(read::<WorkResult>(nothing.clone()).is_ok());
    let confident = altered(nothing, "confidence", json!(1));
    refused(read::<WorkResult>(confident), RefusalCode::SchemaInvalid);
}

#[test]
fn an_objection_names_its_subject_and_reason() {
    shows!("CP-C6-04");
    let objection = json_of(&Objection::example(Extent::Full));
    assert!(read::<Objection>(objection.clone()).is_ok());
    for field in ["subject", "reason_class"] {
        let mut without = objection.clone();
        without.as_object_mut().expect("an object").remove(field);
        refused(read::<Objection>(without), RefusalCode::SchemaInvalid);
    }
    for (field, vague) in [("subject", "the last action"), ("reason_class", "a feeling")] {
        refused(read::<Objection>(altered(objection.clone(), field, json!(vague))), RefusalCode::SchemaInvalid);
    }
}
