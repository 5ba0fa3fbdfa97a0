//! Review receipts: six parts, five kinds of decision. Spec: Appendix D.

use super::support::{altered, json_of, read, refused, round_trips, words};
use crate::example::{Example, Extent};
use crate::refusal::RefusalCode;
use crate::review::{ReviewDecision, ReviewReceipt};
use crate::shows;
use serde_json::Value;

fn receipt() -> Value {
    json_of(&ReviewReceipt::example(Extent::Full))
}

#[test]
fn a_review_receipt_has_its_six_parts() {
    shows!("CP-D-01");
    round_trips::<ReviewReceipt>();
    for part in ["artifact_digest", "subject", "decision", "reviewer", "issued_at", "supporting_message"] {
        let mut without = receipt();
        without.as_object_mut().expect("an object").remove(part);
        refused(read::<ReviewReceipt>(without), RefusalCode::SchemaInvalid);
        refused(read::<ReviewReceipt>(altered(receipt(), part, Value::Null)), RefusalCode::SchemaInvalid);
    }
    let mut unsure = receipt();
    unsure["reviewer"].as_object_mut().expect("an object").remove("assurance");
    refused(read::<ReviewReceipt>(unsure), RefusalCode::SchemaInvalid);
}

#[test]
fn there_are_five_kinds_of_decision() {
    shows!("CP-D-02");
    let kinds = ["concept_endorsement", "wording_approval", "revision", "rejection", "effect_authorization"];
    words(ReviewDecision::ALL, &kinds);
}

#[test]
fn a_message_says_with_what_assurance_it_supports() {
    shows!("CP-D-08");
    let mut unsure = receipt();
    unsure["supporting_message"].as_object_mut().expect("an object").remove("assurance");
    refused(read::<ReviewReceipt>(unsure), RefusalCode::SchemaInvalid);
    let mut relayed = receipt();
    relayed["supporting_message"]["assurance"] = "relayed".into();
    refused(read::<ReviewReceipt>(relayed), RefusalCode::SchemaInvalid);
}
