//! A small deployment for scenarios: one user, one participant, one service to change, one obligation to keep.

use closer_contracts::audit::{Declaration, DeclaredGoal, Delegability, EffectivePeriod, Grant, Revocation};
use closer_contracts::canonical::digest_of;
use closer_contracts::digest::Digest;
use closer_contracts::event::Facet;
use closer_contracts::id::{ActorId, ArtifactId, Key, ObligationId, OperationId, Text};
use closer_contracts::item::{
    Appointment, EffectClass, Identity, IdentityKind, Item, Mechanism, OperationEntry, ParameterBound, ParameterRule,
    ParameterType, Policy, PolicyBody, ReadbackMethod, RepeatSafety, Rule, RuleBody, Shown, Source, Standing,
    Verification,
};
use closer_contracts::obligation::{
    AssessmentStatus, Condition, Gap, Obligation, ObligationDependency, ObligationStatus, Origin, Watch,
};
use closer_contracts::people::People;
use closer_contracts::profile::{DisclosureRule, Limits, Profile};
use closer_contracts::reentry::{Reentry, TimeReached, TypedPredicate};
use closer_contracts::refs::{
    Amounts, ArtifactRef, AuthenticatedIssuer, Plain, ProducerRole, Scope, Target, TargetPattern, VersionedRef,
};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{Comparison, Expectation, Proposition};
use closer_protocol::genesis::Founding;
use serde_json::json;

/// The moment at which scenarios begin.
pub const BEGINNING: &str = "2026-01-01T12:00:00Z";

/// The three participants of the reference configuration, each named after its role (§4.1).
pub const INQUIRY: [&str; 3] = ["remainder", "investigator", "regulator"];

/// A deployment under construction; every part can be changed before it is founded.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// What is founded.
    pub founding: Founding,
}

fn instant(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_else(|_| Timestamp::from_unix_ms(0))
}

/// The whole space's scope.
#[must_use]
pub fn scope() -> Scope {
    Scope(vec!["space".into()])
}

/// The service's plan, which `plan.change` changes.
#[must_use]
pub fn plan_target() -> Target {
    Target { r#type: "plan".into(), account: "account-1".into(), address: "service-a".into() }
}

fn version(id: &str) -> VersionedRef {
    VersionedRef { id: id.into(), version: 1 }
}

/// A registered operation of one parameter `plan`.
#[must_use]
pub fn operation(id: &str, effect_class: EffectClass, repeat_safety: RepeatSafety) -> OperationEntry {
    let contract = Plain(json!({ "kind": "simulated", "operation": id }));
    let contract_digest = digest_of(&contract).unwrap_or_else(|_| Digest::of(b""));
    OperationEntry {
        operation: OperationId::from(id),
        version: 1,
        text: Text::new(format!("Carries out {id}.")),
        capability: id.into(),
        effect_class,
        parameters: vec![ParameterRule { name: "plan".into(), r#type: ParameterType::Text, optional: false }],
        identifying_parameters: vec!["plan".into()],
        target_type: "plan".into(),
        readback_method: version("plan.read"),
        repeat_safety,
        settle_time_ms: 1_000,
        cancellable: false,
        worst_case: Amounts {
            calls: Some(2),
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
            verified_at: instant(BEGINNING),
            method: "pinned".into(),
            expires_at: instant("2026-06-01T00:00:00Z"),
        },
        contract,
        contract_digest,
        standing: Standing::Current,
        cancel_exposure: None,
    }
}

/// An identity that uses sessions.
#[must_use]
pub fn identity(id: &str, kind: IdentityKind, roles: &[ProducerRole], capabilities: &[&str]) -> Identity {
    Identity {
        actor_id: id.into(),
        kind,
        roles: roles.to_vec(),
        capabilities: capabilities.iter().map(|&capability| capability.into()).collect(),
        mechanisms: vec![Mechanism::Session],
        keys: Vec::new(),
        appointed_by: "user".into(),
        revoked_at: None,
        standing: Standing::Current,
        worst_case: None,
    }
}

/// A grant to change the plan to one of these.
#[must_use]
pub fn grant(id: &str, operation: &str, plans: &[&str]) -> Grant {
    Grant {
        grant_id: id.into(),
        authenticated_issuer: issuer(),
        allowed_operations: vec![operation.into()],
        targets: vec![TargetPattern::exactly(&plan_target())],
        parameter_bounds: vec![ParameterBound {
            operation: operation.into(),
            parameter: "plan".into(),
            at_least: None,
            at_most: None,
            one_of: Some(plans.iter().map(|&plan| Plain(json!(plan))).collect()),
        }],
        resource_bounds: Amounts::default(),
        expiry: instant("2026-12-31T00:00:00Z"),
        delegability: Delegability::None,
        revocation: Revocation { may_revoke: vec!["user".into()], revoked_by: None },
    }
}

/// The proposition of an obligation: that the service has this plan.
#[must_use]
pub fn proposition(obligation: &str, plan: &str) -> Proposition {
    Proposition {
        proposition_id: format!("p-{obligation}").into(),
        subject: "service-a".into(),
        predicate: "plan".into(),
        object: Plain(json!(plan)),
        scope: scope(),
    }
}

/// The user, as the issuer of what is founded.
#[must_use]
pub fn issuer() -> AuthenticatedIssuer {
    AuthenticatedIssuer {
        identity: "user".into(),
        auth_ref: ArtifactRef { id: ArtifactId::from("auth-founding"), digest: Digest::of(b"founding") },
    }
}

/// The declaration that obligations come from.
#[must_use]
pub fn declaration() -> Declaration {
    Declaration {
        declaration_id: "declaration-1".into(),
        authenticated_issuer: issuer(),
        goal: DeclaredGoal { goal_id: "goal-1".into(), text: "A cheaper plan that keeps the export.".into() },
        scope: scope(),
        constraints: Vec::new(),
        success_criteria: vec!["The plan is changed and read back.".into()],
        existing_grants: Vec::new(),
        effective_period: EffectivePeriod { from: instant("2025-12-31T00:00:00Z"), to: None },
    }
}

/// An obligation to have the plan changed, woken by changes of `entity` and at the end of the year.
#[must_use]
pub fn obligation(id: &str, entity: &str) -> (Obligation, Vec<Reentry>) {
    let declaration = declaration();
    let digest = digest_of(&declaration).unwrap_or_else(|_| Digest::of(b""));
    let proposition = format!("p-{id}");
    let reentry = Reentry {
        reentry_id: format!("reentry-{id}").into(),
        obligation_id: id.into(),
        predicate: TypedPredicate::TimeReached(TimeReached { at: instant("2026-12-31T00:00:00Z") }),
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
        origin: Origin::Declaration(ArtifactRef { id: ArtifactId::new(declaration.declaration_id.as_str()), digest }),
        scope: scope(),
        gap: Gap { text: "Is the plan changed?".into(), propositions: vec![proposition.clone().into()] },
        resolution_conditions: vec![Condition {
            id: format!("condition-{id}").into(),
            proposition: proposition.into(),
            evidence_rule_ref: version("rule.sufficiency"),
            assessment_status: AssessmentStatus::Unassessed,
        }],
        dependencies: vec![ObligationDependency {
            dependency_id: format!("dependency-{id}").into(),
            watch: Watch::Entity {
                entity_ref: entity.into(),
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

/// A rule that releases these categories to a recipient for a purpose.
#[must_use]
pub fn releases(purpose: &str, recipient: &str, categories: &[&str]) -> DisclosureRule {
    DisclosureRule {
        purpose: purpose.into(),
        recipient: recipient.into(),
        categories: categories.iter().map(|&category| category.into()).collect(),
        permitted_use: vec!["answer this work".into()],
    }
}

/// One source suffices, of any age and kind.
const fn one_source() -> RuleBody {
    RuleBody::Sufficiency {
        distinct_sources_min: 1,
        age_ms_max: None,
        accepts_unknown_target_version: true,
        observation_types: Vec::new(),
        shown: None,
    }
}

impl Default for Deployment {
    fn default() -> Self {
        let profile = Profile {
            profile_id: "profile-1".into(),
            version: 1,
            user: "user".into(),
            scope: scope(),
            answers: (1..=10).map(|number| (Key::new(format!("q{number}")), Text::from("Answered."))).collect(),
            mechanisms: vec![Mechanism::Session],
            signing_policy: Default::default(),
            restrictive_events: Vec::new(),
            disclosure_rules: vec![
                releases("work", "worker", &["obligation", "claim", "constraint", "grant", "evidence"]),
                releases("plan.change", "provider", &["input"]),
            ],
            restrictive_authority: "user".into(),
            people: People::default(),
            deadline_policy: "policy.deadline".into(),
            budget: Amounts::default(),
            obligation_budget: Amounts::default(),
            reserved_budget: Amounts::default(),
            limits: Limits::default(),
            standing: Standing::Current,
        };
        let policy = |id: &str, body| {
            Item::Policy(Policy { policy_id: id.into(), version: 1, body, standing: Standing::Current })
        };
        let rule =
            |id: &str, body| Item::Rule(Rule { rule_id: id.into(), version: 1, body, standing: Standing::Current });
        let source = |id: &str, emitters: &[&str]| {
            Item::Source(Source {
                source_id: id.into(),
                emitters: emitters.iter().map(|&emitter| emitter.into()).collect(),
                scope: scope(),
                change_kinds: vec!["price".into(), "key_revoked".into()],
                standing: Standing::Current,
            })
        };
        let items = vec![
            Item::Identity(identity("user", IdentityKind::User, &[ProducerRole::User], &[])),
            Item::Identity(identity("worker", IdentityKind::Producer, &[ProducerRole::Participant], &["plan.change"])),
            Item::Identity(identity("observer-1", IdentityKind::Producer, &[ProducerRole::Observer], &[])),
            Item::Identity(identity("issuer-1", IdentityKind::Issuer, &[ProducerRole::Issuer], &[])),
            Item::Identity(identity("provider", IdentityKind::Endpoint, &[], &[])),
            source("feed", &["observer-1"]),
            source("service-a", &["closer.observer", "observer-1"]),
            Item::Operation(operation("plan.change", EffectClass::ExternalReversible, RepeatSafety::RepeatSafe)),
            Item::ReadbackMethod(ReadbackMethod {
                method: "plan.read".into(),
                version: 1,
                source: "service-a".into(),
                target_type: "plan".into(),
                contract: Plain(json!({ "kind": "simulated" })),
                standing: Standing::Current,
            }),
            Item::Grant(grant("grant-1", "plan.change", &["basic", "small"])),
            rule("rule.matching", RuleBody::Matching { facets: vec![Facet::Entity, Facet::Scope, Facet::ChangeKind] }),
            rule("rule.sufficiency", one_source()),
            policy("policy.refresh", PolicyBody::Refresh { rearm: false, after_ms: None }),
            policy("policy.expiry", PolicyBody::Expiry { replace_for_ms: None, review_within_ms: 3_600_000 }),
            policy("policy.deadline", PolicyBody::Deadline { escalate_to: ActorId::from("user") }),
            policy("policy.escalation", PolicyBody::Escalation { escalate_to: ActorId::from("user") }),
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
                expires_at: instant("2026-12-31T00:00:00Z"),
                broad_suspended: false,
                standing: Standing::Current,
            }),
        ];
        let founding = Founding {
            profile,
            items,
            declarations: vec![declaration()],
            obligations: vec![obligation("o-1", "service-a")],
        };
        Self { founding }
    }
}

impl Deployment {
    /// Leaves out an item.
    #[must_use]
    pub fn without(mut self, id: &str) -> Self {
        self.founding.items.retain(|item| item.id().as_str() != id);
        self
    }

    /// Adds an item, in place of the one with its id.
    #[must_use]
    pub fn with(mut self, item: Item) -> Self {
        self.founding.items.retain(|known| known.kind() != item.kind() || known.id() != item.id());
        self.founding.items.push(item);
        self
    }

    /// Adds an obligation.
    #[must_use]
    pub fn with_obligation(mut self, id: &str, entity: &str) -> Self {
        self.founding.obligations.retain(|(obligation, _)| obligation.obligation_id != ObligationId::from(id));
        self.founding.obligations.push(obligation(id, entity));
        self
    }

    /// Changes the profile.
    #[must_use]
    pub fn with_profile(mut self, change: impl FnOnce(&mut Profile)) -> Self {
        change(&mut self.founding.profile);
        self
    }

    /// Adds the three participants of the reference configuration, each with a packet of its own (§4.1).
    #[must_use]
    pub fn with_inquiry(mut self) -> Self {
        for role in INQUIRY {
            let participant = identity(role, IdentityKind::Producer, &[ProducerRole::Participant], &["plan.change"]);
            self = self.with(Item::Identity(participant));
            let released = self.founding.profile.disclosure_rules.first().cloned();
            let released = released.map(|rule| DisclosureRule { recipient: role.into(), ..rule });
            self.founding.profile.disclosure_rules.extend(released);
        }
        self
    }

    /// Demands that the observation itself shows the plan: then nobody's reading of it counts.
    #[must_use]
    pub fn shown(mut self, plan: &str) -> Self {
        for item in &mut self.founding.items {
            if let Item::Rule(rule) = item
                && let RuleBody::Sufficiency { shown, .. } = &mut rule.body
            {
                *shown = Some(Shown {
                    targets: TargetPattern::exactly(&plan_target()),
                    expectations: vec![Expectation {
                        field: "plan".into(),
                        comparison: Comparison::Equals,
                        value: Plain(json!(plan)),
                    }],
                });
            }
        }
        self
    }
}
