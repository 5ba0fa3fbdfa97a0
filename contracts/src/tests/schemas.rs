//! Published schemas: generated from the types and committed. Spec: §6, Appendix B.

use super::support::{committed, names_in};
use crate::contract::{Contract, INTEGER_MAX, LIST_ITEMS_MAX};
use crate::envelope::{Envelope, PROTOCOL_VERSION};
use crate::payload_type::PayloadType;
use crate::{
    action, adjudication, audit, auth, briefcase, conference, delta, event, evidence, handoff, item, obligation,
    profile, reentry, refs, refusal, review, route, shows, work,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, transform::RecursiveTransform};
use serde_json::{Map, Value, json};

/// Bounds that hold for every list, map and integer, and closed objects.
fn bounds(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let types = match object.get("type") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(several)) => several.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    };
    let is = |name: &str| types.iter().any(|one| one == name);
    if is("array") {
        object.entry("maxItems").or_insert(json!(LIST_ITEMS_MAX));
    }
    if is("integer") {
        let most = if object.get("format") == Some(&json!("uint32")) { u64::from(u32::MAX) } else { INTEGER_MAX };
        object.entry("maximum").or_insert(json!(most));
        object.entry("minimum").or_insert(json!(-i64::try_from(INTEGER_MAX).expect("it fits")));
        object.remove("format");
    }
    if is("object") {
        match object.contains_key("properties") {
            true => {
                object.entry("additionalProperties").or_insert(json!(false));
            }
            false => {
                object.entry("maxProperties").or_insert(json!(LIST_ITEMS_MAX));
            }
        }
    }
}

fn schema<T: JsonSchema>(name: &str) -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let generator = settings.with_transform(RecursiveTransform(bounds)).into_generator();
    let Value::Object(mut schema) = generator.into_root_schema_for::<T>().to_value() else {
        panic!("the schema of {name} is an object")
    };
    schema.insert("$id".into(), json!(format!("{PROTOCOL_VERSION}/{name}.json")));
    schema.insert("title".into(), json!(name));
    schema.insert("x-contract".into(), json!(name));
    schema.insert("x-protocol-version".into(), json!(PROTOCOL_VERSION));
    schema
}

fn contract<T: JsonSchema + Contract>() -> (String, Map<String, Value>) {
    let schema = schema::<T>(T::NAME);
    let mut required: Vec<&str> =
        schema["required"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let mut fields: Vec<&str> = T::FIELDS.iter().map(|field| field.name).collect();
    required.sort_unstable();
    fields.sort_unstable();
    assert_eq!(required, fields, "{} requires its fields and nothing else", T::NAME);
    assert_eq!(schema["additionalProperties"], json!(false), "{} is closed", T::NAME);
    (T::NAME.to_owned(), schema)
}

/// The envelope, whose `type` names the contract of its body.
fn envelope() -> (String, Map<String, Value>) {
    let (name, mut schema) = contract::<Envelope<Value>>();
    let branches: Vec<Value> = PayloadType::ALL
        .iter()
        .map(|payload_type| {
            let lineage = payload_type.lineage();
            let mut properties = json!({ "body": { "$ref": format!("{payload_type}.json") } });
            if !lineage.obligations_optional {
                properties["obligation_ids"] = json!({ "minItems": 1 });
            }
            for (field, optional) in [
                ("episode_id", lineage.episode_optional),
                ("semantic_basis", lineage.basis_optional),
                ("budget_ref", lineage.budget_optional),
            ] {
                if !optional {
                    properties[field] = json!({ "not": { "type": "null" } });
                }
            }
            json!({
                "if": { "properties": { "type": { "const": payload_type } } },
                "then": { "properties": properties },
            })
        })
        .collect();
    schema["properties"]["body"] = json!({ "type": "object" });
    schema["properties"]["protocol_version"] = json!({ "const": PROTOCOL_VERSION });
    schema.insert("allOf".into(), json!(branches));
    (name, schema)
}

macro_rules! contracts {
    ($($ty:ty),+ $(,)?) => { vec![$(contract::<$ty>()),+] };
}

fn all() -> Vec<(String, Map<String, Value>)> {
    let mut all = contracts![
        event::Event,
        obligation::Obligation,
        route::Route,
        work::Work,
        work::WorkResult,
        action::Action,
        evidence::Evidence,
        adjudication::Adjudication,
        delta::Delta,
        reentry::Reentry,
        handoff::Handoff,
        briefcase::Briefcase,
        event::MatchReceipt,
        work::EvidenceRelation,
        evidence::Readback,
        obligation::Condition,
        obligation::TriggerGap,
        reentry::EvaluationRecord,
        handoff::HandoffConsent,
        handoff::ResponsibilityContract,
        handoff::AcceptanceReceipt,
        audit::DisclosureReceipt,
        audit::Declaration,
        audit::UserDecision,
        audit::Grant,
        audit::CommitReceipt,
        audit::UrgentDetails,
        audit::ReconciliationReceipt,
        audit::Confession,
        audit::DisclosureIncident,
        audit::RestrictionStatement,
        conference::Conference,
        conference::ConferenceMove,
        review::ReviewReceipt,
        refs::StateRef,
        refs::ArtifactRef,
        crate::envelope::DisclosureRef,
    ];
    all.push(envelope());
    all.push(("Item".into(), schema::<item::Item>("Item")));
    all.push(("Profile".into(), schema::<profile::Profile>("Profile")));
    all.push(("TypedPredicate".into(), schema::<reentry::TypedPredicate>("TypedPredicate")));
    all.push(("AuthRecord".into(), schema::<auth::AuthRecord>("AuthRecord")));
    all.push(("Refusal".into(), schema::<refusal::Refusal>("Refusal")));
    all
}

#[test]
fn published_schemas_are_those_of_the_types() {
    shows!("CP-6-04");
    let all = all();
    for (name, schema) in &all {
        assert_eq!((&schema["x-contract"], &schema["x-protocol-version"]), (&json!(name), &json!(PROTOCOL_VERSION)));
        committed(&format!("schemas/{name}.json"), &super::vectors::text(&Value::Object(schema.clone())));
    }
    let mut names: Vec<String> = all.into_iter().map(|(name, _)| format!("{name}.json")).collect();
    names.sort();
    assert_eq!(names_in("schemas"), names, "no schema without its contract");
}
