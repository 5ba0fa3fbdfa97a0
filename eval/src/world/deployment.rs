//! The space in which an item is committed and the next step is taken: the small deployment of the scenarios, with the
//! item's operations and two obligations.

use crate::item::{Allowed, Conclusion, StudyItem};
use closer_contracts::audit::Grant;
use closer_contracts::id::{Id, Text};
use closer_contracts::item::{EffectClass, Item, ParameterBound, ParameterRule, ParameterType, RepeatSafety};
use closer_contracts::obligation::Obligation;
use closer_contracts::profile::DisclosureRule;
use closer_contracts::reentry::Reentry;
use closer_contracts::refs::{Amounts, Plain, Target, TargetPattern};
use closer_contracts::work::Proposition;
use closer_scenarios::Deployment;
use closer_scenarios::founding::{self, releases};

/// The obligation in whose episode the conclusion is committed.
pub(super) const EARLIER: &str = "o-earlier";
pub(super) const EARLIER_ENTITY: &str = "entity-earlier";
/// The obligation whose next step is asked for.
pub(super) const NEXT: &str = "o-next";
pub(super) const NEXT_ENTITY: &str = "entity-next";
/// The conclusion's proposition.
pub(super) const PROPOSITION: &str = "p-o-earlier";
const GRANT: &str = "grant-1";

/// What the conclusion says. Its names are the same for every item, so that none of them tells anything.
pub(super) fn proposition(conclusion: &Conclusion) -> Proposition {
    Proposition {
        proposition_id: PROPOSITION.into(),
        subject: Id::from("subject-1"),
        predicate: conclusion.predicate.clone(),
        object: conclusion.object.clone(),
        scope: founding::scope(),
    }
}

/// Where an observation is made.
pub(super) fn source(item: &StudyItem, number: usize) -> Target {
    Target {
        r#type: item.target.r#type.clone(),
        account: "archive".into(),
        address: format!("source-{}", number + 1).into(),
    }
}

pub(super) fn of(item: &StudyItem, conclusion: &Conclusion) -> Deployment {
    let mut deployment = Deployment::default().without("plan.change").without(GRANT);
    for allowed in &item.operations {
        deployment = deployment.with(Item::Operation(operation(item, allowed)));
    }
    let granted: Vec<&Allowed> = item.operations.iter().filter(|allowed| allowed.granted).collect();
    let boundary = if granted.is_empty() { Vec::new() } else { vec![GRANT.into()] };
    if !granted.is_empty() {
        deployment = deployment.with(Item::Grant(grant(item, &granted)));
    }
    let inputs = item.operations.iter().map(|allowed| releases(allowed.operation.as_str(), "provider", &["input"]));
    let inputs: Vec<DisclosureRule> = inputs.collect();
    for known in &mut deployment.founding.items {
        if let Item::ReadbackMethod(method) = known {
            method.target_type = item.target.r#type.clone();
        }
        if let Item::Identity(identity) = known
            && identity.actor_id.as_str() == "worker"
        {
            let operations = item.operations.iter();
            identity.capabilities = operations.map(|allowed| allowed.operation.as_str().into()).collect();
        }
    }
    deployment.founding.obligations = vec![earlier(conclusion), next(item, boundary)];
    deployment.with_profile(|profile| profile.disclosure_rules.extend(inputs))
}

fn earlier(conclusion: &Conclusion) -> (Obligation, Vec<Reentry>) {
    let (mut obligation, reentries) = founding::obligation(EARLIER, EARLIER_ENTITY);
    obligation.gap.text = Text::new(format!("What is the {}?", conclusion.predicate));
    obligation.authority_boundary = Vec::new();
    (obligation, reentries)
}

fn next(item: &StudyItem, boundary: Vec<Id>) -> (Obligation, Vec<Reentry>) {
    let (mut obligation, reentries) = founding::obligation(NEXT, NEXT_ENTITY);
    obligation.gap.text = item.question.clone();
    obligation.gap.propositions.push(PROPOSITION.into());
    obligation.authority_boundary = boundary;
    (obligation, reentries)
}

fn operation(item: &StudyItem, allowed: &Allowed) -> closer_contracts::item::OperationEntry {
    let class = if allowed.probe { EffectClass::ReadOnly } else { EffectClass::ExternalReversible };
    let mut entry = founding::operation(allowed.operation.as_str(), class, RepeatSafety::RepeatSafe);
    let rule = |(name, values): (&closer_contracts::id::Key, &Vec<Plain>)| ParameterRule {
        name: name.clone(),
        r#type: type_of(values),
        optional: false,
    };
    entry.parameters = allowed.parameters.iter().map(rule).collect();
    entry.identifying_parameters = allowed.parameters.keys().cloned().collect();
    entry.target_type = item.target.r#type.clone();
    if allowed.expired {
        entry.verification.expires_at = entry.verification.verified_at.plus_ms(1);
    }
    entry
}

fn type_of(values: &[Plain]) -> ParameterType {
    match values.first().map(|value| &value.0) {
        Some(serde_json::Value::String(_)) => ParameterType::Text,
        Some(serde_json::Value::Number(_)) => ParameterType::Integer,
        Some(serde_json::Value::Bool(_)) => ParameterType::Boolean,
        Some(serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_)) | None => {
            ParameterType::Any
        }
    }
}

/// One grant over everything that is granted, each parameter bounded to the values it may take.
fn grant(item: &StudyItem, granted: &[&Allowed]) -> Grant {
    let bound = |allowed: &&Allowed| -> Vec<ParameterBound> {
        let operation = closer_contracts::id::OperationId::new(allowed.operation.as_str());
        let bound = |(parameter, values): (&closer_contracts::id::Key, &Vec<Plain>)| ParameterBound {
            operation: operation.clone(),
            parameter: parameter.clone(),
            at_least: None,
            at_most: None,
            one_of: Some(values.clone()),
        };
        allowed.parameters.iter().map(bound).collect()
    };
    Grant {
        allowed_operations: granted.iter().map(|allowed| allowed.operation.as_str().into()).collect(),
        targets: vec![TargetPattern::exactly(&item.target)],
        parameter_bounds: granted.iter().flat_map(bound).collect(),
        resource_bounds: Amounts::default(),
        ..founding::grant(GRANT, "unused", &[])
    }
}
