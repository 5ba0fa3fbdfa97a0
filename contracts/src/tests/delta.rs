//! Proposed changes and the items they are about. Spec: §5, C10.

use super::support::{altered, json_of, read, refused, round_trips};
use crate::contract::Check;
use crate::delta::{Change, ChangeClass, Delta};
use crate::digest::Digest;
use crate::example::{self, Example, Extent};
use crate::item::{Item, ItemKind, Method};
use crate::refusal::RefusalCode;
use crate::shows;
use serde_json::{Value, json};

#[test]
fn delta_is_whole() {
    shows!("CP-C10-01");
    round_trips::<Delta>();
    assert_eq!(Delta::example(Extent::Full).changes.len(), 14);
    for extent in Extent::ALL {
        for change in example::changes(extent) {
            assert_eq!(read::<Change>(json_of(&change)).expect("a change"), change);
        }
    }
    let empty = altered(json_of(&Delta::example(Extent::Full)), "changes", json!([]));
    refused(read::<Delta>(empty), RefusalCode::SchemaInvalid);
}

#[test]
fn the_proposal_digest_covers_the_body() {
    shows!("CP-C10-02", "CP-C1-07"; by "delta.proposal_digest_agrees");
    let delta = json_of(&Delta::example(Extent::Full));
    assert!(read::<Delta>(delta.clone()).is_ok());
    let other = json_of(&Delta::example(Extent::Bound));
    let mut fields = 0;
    for (field, changed) in other.as_object().expect("an object") {
        let changed = match field.as_str() {
            "admission_path" => json!("ordinary"),
            "proposal_digest" => json!(Digest::of(b"another")),
            _ => changed.clone(),
        };
        let altered = altered(delta.clone(), field, changed);
        refused(read::<Delta>(altered), RefusalCode::DigestMismatch);
        fields += 1;
    }
    assert_eq!(fields, 9, "eight fields and the extensions");
}

#[test]
fn endorsements_stay_outside() {
    shows!("CP-C10-03", "CP-C10-13");
    let delta = json_of(&Delta::example(Extent::Full));
    for outside in ["endorsements", "adjudication_refs", "after_state", "receipt"] {
        refused(read::<Delta>(altered(delta.clone(), outside, json!([]))), RefusalCode::SchemaInvalid);
    }
    let receipt = json_of(&crate::audit::CommitReceipt::example(Extent::Full));
    assert!(receipt["after_state"].is_object());
    assert!(receipt["adjudication_refs"].is_array());
}

#[test]
fn a_delta_states_the_version_it_starts_from() {
    shows!("CP-2-12");
    let mut delta = json_of(&Delta::example(Extent::Full));
    assert!(read::<Delta>(delta.clone()).is_ok());
    refused(read::<Delta>(altered(delta.clone(), "parent_state", Value::Null)), RefusalCode::SchemaInvalid);
    delta.as_object_mut().expect("an object").remove("parent_state");
    refused(read::<Delta>(delta), RefusalCode::SchemaInvalid);
}

#[test]
fn each_kind_of_item_has_its_own_slot() {
    shows!("CP-5-02");
    for extent in Extent::ALL {
        for item in example::items(extent) {
            item.check().expect("an example is valid");
            let value = json_of(&item);
            assert_eq!(value["item"], json!(item.kind()));
            assert_eq!(read::<Item>(value.clone()).expect("its own form"), item);
            for other in ItemKind::ALL.iter().filter(|other| **other != item.kind()) {
                refused(read::<Item>(altered(value.clone(), "item", json!(other))), RefusalCode::SchemaInvalid);
            }
        }
    }
}

#[test]
fn a_norm_does_not_enter_as_knowledge() {
    shows!("CP-2-03");
    for item in example::items(Extent::Full) {
        if matches!(item.kind(), ItemKind::Constraint | ItemKind::Grant) {
            assert_eq!(Change::Add { item: Box::new(item.clone()) }.class(), ChangeClass::Normative);
            let disguised = altered(json_of(&item), "item", json!("claim"));
            refused(read::<Change>(json!({ "change": "add", "item": disguised })), RefusalCode::SchemaInvalid);
        }
    }
}

#[test]
fn obligations_triggers_and_restrictions_have_changes_of_their_own() {
    for item in example::items(Extent::Full) {
        let kind = item.kind();
        let added = Change::Add { item: Box::new(item) };
        let own = [ItemKind::Obligation, ItemKind::Reentry, ItemKind::Dependency, ItemKind::Restriction];
        match own.contains(&kind) {
            true => refused(added.check(), RefusalCode::SchemaInvalid),
            false => assert!(added.check().is_ok(), "{kind}"),
        }
    }
}

#[test]
fn a_method_is_kept_whole() {
    shows!("CP-5-08"; by "contract.list_is_empty");
    round_trips::<Method>();
    let method = json_of(&Method::example(Extent::Full));
    for part in ["preconditions", "success_criteria", "failure_criteria"] {
        refused(read::<Method>(altered(method.clone(), part, json!([]))), RefusalCode::SchemaInvalid);
    }
    for part in ["preconditions", "success_criteria", "failure_criteria", "exceptions", "dependencies"] {
        let mut without = method.clone();
        without.as_object_mut().expect("an object").remove(part);
        refused(read::<Method>(without), RefusalCode::SchemaInvalid);
    }
    let kept: Method = read(method.clone()).expect("whole");
    assert_eq!(json_of(&kept)["exceptions"], method["exceptions"]);
}

#[test]
fn an_absent_member_of_a_change_is_not_null() {
    for (change, nullable) in [("set_status", "successor"), ("set_triggers", "trigger_gap")] {
        let whole = example::changes(Extent::Minimal)
            .iter()
            .map(json_of)
            .find(|value| value["change"] == change)
            .expect("a change of this kind");
        assert_eq!(whole[nullable], Value::Null);
        let mut without = whole;
        without.as_object_mut().expect("an object").remove(nullable);
        refused(read::<Change>(without), RefusalCode::SchemaInvalid);
    }
}
