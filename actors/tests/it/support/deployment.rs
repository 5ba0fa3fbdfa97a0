//! A deployment under construction: one user, one worker, one service whose plan is changed, obligations to keep.

use closer_contracts::Digest;
use closer_contracts::audit::{Declaration, DeclaredGoal, Delegability, EffectivePeriod, Grant, Revocation};
use closer_contracts::canonical::digest_of;
use closer_contracts::event::Facet;
use closer_contracts::id::{ActorId, Key, Text};
use closer_contracts::item::*;
use closer_contracts::obligation::*;
use closer_contracts::profile::{DisclosureRule, Limits, Profile};
use closer_contracts::reentry::{Reentry, TimeReached, TypedPredicate};
use closer_contracts::refs::*;
use closer_contracts::time::Timestamp;
use closer_protocol::genesis::Founding;
use serde_json::json;

pub(crate) fn instant(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn far() -> Timestamp {
    instant("2099-01-01T00:00:00Z")
}

pub(crate) fn scope() -> Scope {
    Scope(vec!["space".into()])
}

/// The service that an obligation is about.
pub(crate) fn target(service: &str) -> Target {
    Target { r#type: "plan".into(), account: "account-1".into(), address: service.into() }
}

fn version(id: &str) -> VersionedRef {
    VersionedRef { id: id.into(), version: 1 }
}

pub(crate) fn operation(settle_time_ms: u64) -> OperationEntry {
    let contract = Plain(json!({ "kind": "map" }));
    let contract_digest = digest_of(&contract).unwrap();
    OperationEntry {
        operation: "plan.change".into(),
        version: 1,
        text: "Changes the plan of a service.".into(),
        capability: "plan.change".into(),
        effect_class: EffectClass::ExternalReversible,
        parameters: vec![ParameterRule { name: "plan".into(), r#type: ParameterType::Text, optional: false }],
        identifying_parameters: vec!["plan".into()],
        target_type: "plan".into(),
        readback_method: version("plan.read"),
        repeat_safety: RepeatSafety::RepeatSafe,
        settle_time_ms,
        cancellable: false,
        worst_case: Amounts {
            calls: Some(1),
            tokens: Some(0),
            cost_micros: Some(0),
            currency: Some("EUR".into()),
            time_ms: Some(10_000),
            concurrency: Some(1),
        },
        verification: Verification {
            identity: "provider".into(),
            contract_digest,
            version: 1,
            verified_at: instant("2025-01-01T00:00:00Z"),
            method: "pinned".into(),
            expires_at: far(),
        },
        contract,
        contract_digest,
        standing: Standing::Current,
    }
}

fn identity(id: &str, kind: IdentityKind, roles: &[ProducerRole], capabilities: &[&str]) -> Item {
    Item::Identity(Identity {
        actor_id: id.into(),
        kind,
        roles: roles.to_vec(),
        capabilities: capabilities.iter().map(|&capability| capability.into()).collect(),
        mechanisms: vec![Mechanism::Session],
        keys: Vec::new(),
        appointed_by: "user".into(),
        revoked_at: None,
        standing: Standing::Current,
    })
}

pub(crate) fn issuer() -> AuthenticatedIssuer {
    AuthenticatedIssuer {
        identity: "user".into(),
        auth_ref: ArtifactRef { id: "auth-founding".into(), digest: Digest::of(b"founding") },
    }
}

/// A grant to change the plan of every service to `basic`.
pub(crate) fn grant() -> Item {
    Item::Grant(Grant {
        grant_id: "grant-1".into(),
        authenticated_issuer: issuer(),
        allowed_operations: vec!["plan.change".into()],
        targets: vec![TargetPattern { r#type: "plan".into(), account: "account-1".into(), address: "*".into() }],
        parameter_bounds: vec![ParameterBound {
            operation: "plan.change".into(),
            parameter: "plan".into(),
            at_least: None,
            at_most: None,
            one_of: Some(vec![Plain(json!("basic"))]),
        }],
        resource_bounds: Amounts::default(),
        expiry: far(),
        delegability: Delegability::None,
        revocation: Revocation { may_revoke: vec!["user".into()], revoked_by: None },
    })
}

fn declaration() -> Declaration {
    Declaration {
        declaration_id: "declaration-1".into(),
        authenticated_issuer: issuer(),
        goal: DeclaredGoal { goal_id: "goal-1".into(), text: "Cheaper plans.".into() },
        scope: scope(),
        constraints: Vec::new(),
        success_criteria: vec!["The plan is changed and read back.".into()],
        existing_grants: Vec::new(),
        effective_period: EffectivePeriod { from: instant("2025-01-01T00:00:00Z"), to: None },
    }
}

/// An obligation to have a service's plan changed, woken by price events about the service. `proposition` is what it asks.
pub(crate) fn obligation(id: &str, service: &str, proposition: &str) -> (Obligation, Vec<Reentry>) {
    let reentry = Reentry {
        reentry_id: format!("reentry-{id}").into(),
        obligation_id: id.into(),
        predicate: TypedPredicate::TimeReached(TimeReached { at: instant("2098-01-01T00:00:00Z") }),
        event_sources: Vec::new(),
        eligible_work: vec!["investigation".into()],
        resource_posture: Amounts::default(),
        deduplication_key: format!("reentry-{id}").into(),
        expires_at: None,
        refresh_policy_ref: "policy.refresh".into(),
        expiry_policy_ref: "policy.expiry".into(),
        extensions: None,
    };
    let obligation = Obligation {
        obligation_id: id.into(),
        origin: Origin::Declaration(ArtifactRef {
            id: "declaration-1".into(),
            digest: digest_of(&declaration()).unwrap(),
        }),
        scope: scope(),
        gap: Gap { text: "Is the plan changed?".into(), propositions: vec![proposition.into()] },
        resolution_conditions: vec![Condition {
            id: format!("condition-{id}").into(),
            proposition: proposition.into(),
            evidence_rule_ref: version("rule.sufficiency"),
            assessment_status: AssessmentStatus::Unassessed,
        }],
        dependencies: vec![ObligationDependency {
            dependency_id: format!("dependency-{id}").into(),
            watch: Watch::Entity {
                entity_ref: service.into(),
                scope: scope(),
                change_kinds: vec!["price".into()],
                evidence_ids: Vec::new(),
            },
        }],
        status: ObligationStatus::Active,
        responsible_owner: "closer.coordinator".into(),
        authority_boundary: vec!["grant-1".into()],
        closure_authority: "closer.assessor".into(),
        reentry_refs: vec![reentry.reentry_id.clone()],
        trigger_gap: None,
        extensions: None,
    };
    (obligation, vec![reentry])
}

fn profile() -> Profile {
    let categories = ["obligation", "claim", "constraint", "grant", "evidence"];
    Profile {
        profile_id: "profile-1".into(),
        version: 1,
        user: "user".into(),
        scope: scope(),
        answers: (1..=10).map(|number| (Key::new(format!("q{number}")), Text::from("Answered."))).collect(),
        mechanisms: vec![Mechanism::Session],
        signing_policy: Default::default(),
        restrictive_events: Vec::new(),
        disclosure_rules: vec![DisclosureRule {
            purpose: "work".into(),
            recipient: "worker".into(),
            categories: categories.iter().map(|&category| category.into()).collect(),
            permitted_use: vec!["answer this work".into()],
        }],
        restrictive_authority: "user".into(),
        deadline_policy: "policy.deadline".into(),
        budget: Amounts::default(),
        obligation_budget: Amounts::default(),
        reserved_budget: Amounts::default(),
        limits: Limits::default(),
        standing: Standing::Current,
    }
}

fn source(id: &str, emitters: &[&str]) -> Item {
    Item::Source(Source {
        source_id: id.into(),
        emitters: emitters.iter().map(|&emitter| emitter.into()).collect(),
        scope: scope(),
        change_kinds: vec!["price".into()],
        standing: Standing::Current,
    })
}

fn appointment() -> Item {
    Item::Appointment(Appointment {
        issuer: "issuer-1".into(),
        operations: Vec::new(),
        targets: Vec::new(),
        broad: true,
        reconcile_within_ms: 3_600_000,
        outstanding_max: 3,
        outstanding_per_target_max: 2,
        independent_owner: "user".into(),
        escalation_policy_ref: "policy.escalation".into(),
        expires_at: far(),
        broad_suspended: false,
        standing: Standing::Current,
    })
}

/// A deployment with these obligations: (id, service, proposition).
pub(crate) fn founding(obligations: &[(&str, &str, &str)]) -> Founding {
    let policy =
        |id: &str, body| Item::Policy(Policy { policy_id: id.into(), version: 1, body, standing: Standing::Current });
    let rule = |id: &str, body| Item::Rule(Rule { rule_id: id.into(), version: 1, body, standing: Standing::Current });
    let items = vec![
        identity("user", IdentityKind::User, &[ProducerRole::User], &[]),
        identity("worker", IdentityKind::Producer, &[ProducerRole::Participant], &["plan.change"]),
        identity("feeder", IdentityKind::Producer, &[ProducerRole::Observer], &[]),
        identity("issuer-1", IdentityKind::Issuer, &[ProducerRole::Issuer], &[]),
        identity("provider", IdentityKind::Endpoint, &[], &[]),
        source("feed", &["feeder"]),
        source("plans", &["closer.observer"]),
        Item::Operation(operation(20)),
        Item::ReadbackMethod(ReadbackMethod {
            method: "plan.read".into(),
            version: 1,
            source: "plans".into(),
            target_type: "plan".into(),
            contract: Plain(json!({ "kind": "map" })),
            standing: Standing::Current,
        }),
        grant(),
        rule("rule.matching", RuleBody::Matching { facets: vec![Facet::Entity, Facet::Scope, Facet::ChangeKind] }),
        rule(
            "rule.sufficiency",
            RuleBody::Sufficiency {
                distinct_sources_min: 1,
                age_ms_max: None,
                accepts_unknown_target_version: true,
                observation_types: Vec::new(),
            },
        ),
        policy("policy.refresh", PolicyBody::Refresh { rearm: false, after_ms: None }),
        policy("policy.expiry", PolicyBody::Expiry { replace_for_ms: None, review_within_ms: 3_600_000 }),
        policy("policy.deadline", PolicyBody::Deadline { escalate_to: ActorId::from("user") }),
        policy("policy.escalation", PolicyBody::Escalation { escalate_to: ActorId::from("user") }),
        appointment(),
    ];
    Founding {
        profile: profile(),
        items,
        declarations: vec![declaration()],
        obligations: obligations
            .iter()
            .map(|(id, service, proposition)| obligation(id, service, proposition))
            .collect(),
    }
}

/// The same deployment without one item.
pub(crate) fn without(mut founding: Founding, id: &str) -> Founding {
    founding.items.retain(|item| item.id().as_str() != id);
    for (obligation, _) in &mut founding.obligations {
        obligation.authority_boundary.retain(|within| within.as_str() != id);
    }
    founding
}
