//! Declarations, decisions, grants and receipts. Spec: C14.

use super::support::{altered, json_of, read, refused, round_trips};
use crate::audit::{
    CommitReceipt, Confession, Declaration, DisclosureIncident, Grant, ReconciliationReceipt, RestrictionStatement,
    UrgentDetails, UserDecision,
};
use crate::example::{Example, Extent};
use crate::refs::ArtifactRef;
use crate::refusal::RefusalCode;
use crate::shows;
use serde_json::{Value, json};

#[test]
fn foundational_and_audit_objects_are_whole() {
    shows!("CP-C14-01");
    round_trips::<Declaration>();
    round_trips::<UserDecision>();
    round_trips::<Grant>();
    round_trips::<CommitReceipt>();
    round_trips::<UrgentDetails>();
    round_trips::<ReconciliationReceipt>();
    round_trips::<Confession>();
    round_trips::<DisclosureIncident>();
    round_trips::<RestrictionStatement>();
}

/// The least ordinary receipt, and a full urgent one.
fn ordinary() -> Value {
    json_of(&CommitReceipt::example(Extent::Minimal))
}

fn urgent() -> Value {
    json_of(&CommitReceipt::example(Extent::Full))
}

#[test]
fn an_ordinary_commit_is_endorsed() {
    shows!("CP-C14-02"; by "receipt.ordinary_unendorsed");
    assert_eq!(ordinary()["admission_path"], "ordinary");
    assert!(read::<CommitReceipt>(ordinary()).is_ok());
    let unendorsed = altered(ordinary(), "adjudication_refs", json!([]));
    refused(read::<CommitReceipt>(unendorsed), RefusalCode::MissingEndorsement);
}

#[test]
fn an_ordinary_commit_has_no_urgent_details() {
    shows!("CP-C14-03"; by "receipt.ordinary_has_urgent_details");
    assert_eq!(ordinary()["urgent_details"], Value::Null);
    assert!(read::<CommitReceipt>(ordinary()).is_ok());
    let details = json_of(&UrgentDetails::example(Extent::Full));
    refused(read::<CommitReceipt>(altered(ordinary(), "urgent_details", details)), RefusalCode::SchemaInvalid);
}

#[test]
fn an_urgent_commit_names_no_endorsement() {
    shows!("CP-C14-04"; by "receipt.urgent_has_filler");
    assert_eq!(urgent()["admission_path"], "urgent_restrictive");
    assert_eq!(urgent()["adjudication_refs"], json!([]));
    assert!(read::<CommitReceipt>(urgent()).is_ok());
    let filler = json!([ArtifactRef::example(Extent::Full)]);
    refused(read::<CommitReceipt>(altered(urgent(), "adjudication_refs", filler)), RefusalCode::SchemaInvalid);
    let mut absent = urgent();
    absent.as_object_mut().expect("an object").remove("adjudication_refs");
    refused(read::<CommitReceipt>(absent), RefusalCode::SchemaInvalid);
}

#[test]
fn an_urgent_commit_states_its_details() {
    shows!("CP-C14-05"; by "receipt.urgent_lacks_details");
    assert!(read::<CommitReceipt>(urgent()).is_ok());
    refused(read::<CommitReceipt>(altered(urgent(), "urgent_details", Value::Null)), RefusalCode::SchemaInvalid);
}
