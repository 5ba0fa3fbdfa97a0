//! Rules between the fields of registry items and the profile. Spec: Appendix A, DEC-09, DEC-14, DEC-44.

use super::support::{altered, json_of, read, refused};
use crate::audit::Delegability;
use crate::contract::Check;
use crate::envelope::Extensions;
use crate::example::{Example, Extent};
use crate::item::{AffectedScope, Appointment, OperationEntry, ParameterBound, RuleBody};
use crate::profile::Profile;
use crate::refs::{Plain, Scope, Target, TargetPattern};
use crate::refusal::RefusalCode;
use serde_json::{Value, json};

#[test]
fn an_operation_is_pinned_to_its_contract() {
    let entry = json_of(&OperationEntry::example(Extent::Full));
    assert!(read::<OperationEntry>(entry.clone()).is_ok());
    let changed = altered(entry, "contract", json!({ "url": "https://example.org/other" }));
    refused(read::<OperationEntry>(changed), RefusalCode::DigestMismatch);
}

#[test]
fn an_issuer_does_not_review_itself() {
    let appointment = Appointment::example(Extent::Full);
    assert!(appointment.check().is_ok());
    let own = Appointment { independent_owner: appointment.issuer.clone(), ..appointment };
    refused(own.check(), RefusalCode::SchemaInvalid);
}

#[test]
fn a_conclusion_needs_a_source_and_a_decision_a_role() {
    let rule = |sources: u32| RuleBody::Sufficiency {
        distinct_sources_min: sources,
        age_ms_max: None,
        accepts_unknown_target_version: false,
        observation_types: Vec::new(),
        shown: None,
    };
    assert!(rule(1).check().is_ok());
    refused(rule(0).check(), RefusalCode::SchemaInvalid);
    let decision = |required_roles: Vec<crate::id::Key>| RuleBody::Decision {
        required_roles,
        blocking_classes: Vec::new(),
        deterministic: true,
    };
    assert!(decision(vec!["validator".into()]).check().is_ok());
    refused(decision(Vec::new()).check(), RefusalCode::SchemaInvalid);
    let nobody = Delegability::Named { delegates: Vec::new(), depth: 1 };
    refused(nobody.check(), RefusalCode::SchemaInvalid);
}

#[test]
fn a_profile_answers_ten_questions_and_no_other() {
    let profile = Profile::example(Extent::Full);
    assert_eq!(profile.unanswered(), Vec::<u8>::new());
    let mut open = profile.clone();
    open.answers.remove(&"q7".into());
    assert_eq!(open.unanswered(), [7]);
    refused(open.check_complete(), RefusalCode::ProfileIncomplete);
    let mut eleventh = profile;
    eleventh.answers.insert("q11".into(), "an answer".into());
    refused(eleventh.check(), RefusalCode::SchemaInvalid);
}

#[test]
fn extensions_have_names_of_their_owners() {
    let named = |key: &str| Extensions([(key.into(), Plain(Value::Null))].into());
    assert!(named("org.example.note").check().is_ok());
    for key in ["note", "status", "note.", ".note"] {
        refused(named(key).check(), RefusalCode::SchemaInvalid);
    }
}

#[test]
fn patterns_cover_and_overlap_without_normalization() {
    let pattern = |address: &str| TargetPattern { r#type: "file".into(), account: "a".into(), address: address.into() };
    let target = |address: &str| Target { r#type: "file".into(), account: "a".into(), address: address.into() };
    assert!(pattern("/srv/*").covers(&target("/srv/a")));
    assert!(!pattern("/srv/*").covers(&target("/SRV/a")));
    assert!(!pattern("/srv/a").covers(&target("/srv/a/")));
    assert!(pattern("/srv/*").overlaps(&pattern("/srv/a/*")));
    assert!(pattern("/srv/a").overlaps(&pattern("/srv/*")));
    assert!(!pattern("/srv/a").overlaps(&pattern("/srv/b")));
    assert!(pattern("/srv/a").is_exact() && !pattern("/srv/*").is_exact());
    let narrow = |operation: Option<&str>, address: &str| {
        AffectedScope::Target { operation: operation.map(Into::into), targets: pattern(address) }.is_narrow()
    };
    assert!(narrow(Some("file.write"), "/srv/a"));
    assert!(!narrow(Some("file.write"), "/srv/*") && !narrow(None, "/srv/a"));
    let scope = |path: &[&str]| Scope(path.iter().map(|part| (*part).into()).collect());
    assert!(scope(&[]).contains(&scope(&["a"])) && scope(&["a"]).contains(&scope(&["a", "b"])));
    assert!(!scope(&["a", "b"]).contains(&scope(&["a"])) && !scope(&["a"]).contains(&scope(&["ab"])));
}

#[test]
fn a_bound_admits_what_it_can_compare() {
    let bound = ParameterBound {
        operation: "plan.change".into(),
        parameter: "seats".into(),
        at_least: Some(1),
        at_most: Some(25),
        one_of: None,
    };
    for (value, admitted) in
        [(json!(1), true), (json!(25), true), (json!(0), false), (json!(26), false), (json!("9"), false)]
    {
        assert_eq!(bound.admits(Some(&Plain(value.clone()))), admitted, "{value}");
    }
    assert!(!bound.admits(None), "an absent value is not within a bound");
    let listed = ParameterBound { at_least: None, at_most: None, one_of: Some(vec![Plain(json!("basic"))]), ..bound };
    assert!(listed.admits(Some(&Plain(json!("basic")))) && !listed.admits(Some(&Plain(json!("Basic")))));
}
