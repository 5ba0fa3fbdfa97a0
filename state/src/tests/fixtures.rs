//! One small space and the changes that tests make to it.

use crate::{Commit, Denied, Derivation, Duty, State, genesis, propose};
use closer_contracts::audit::{Delegability, Grant, Revocation};
use closer_contracts::delta::{AdmissionPath, AuthorityKind, AuthorityRef, Change, Delta};
use closer_contracts::id::*;
use closer_contracts::item::*;
use closer_contracts::obligation::*;
use closer_contracts::profile::{Limits, Profile, SigningPolicy};
use closer_contracts::reentry::{Reentry, TimeReached, TypedPredicate};
use closer_contracts::refs::*;
use closer_contracts::work::*;
use closer_contracts::{Digest, RefusalCode, Timestamp};
use serde_json::json;

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

pub(crate) fn now() -> Timestamp {
    at("2026-01-01T00:00:00Z")
}

pub(crate) fn artifact(id: &str) -> ArtifactRef {
    ArtifactRef { id: id.into(), digest: Digest::of(id.as_bytes()) }
}

pub(crate) fn rule_ref() -> VersionedRef {
    VersionedRef { id: "rule-1".into(), version: 1 }
}

pub(crate) fn profile() -> Profile {
    Profile {
        profile_id: "profile-1".into(),
        version: 1,
        user: "user".into(),
        scope: Scope(vec!["space".into()]),
        answers: (1..=10).map(|n| (Key::from(format!("q{n}")), Text::from("yes"))).collect(),
        mechanisms: vec![Mechanism::Session],
        signing_policy: SigningPolicy::default(),
        restrictive_events: Vec::new(),
        disclosure_rules: Vec::new(),
        restrictive_authority: "independent".into(),
        people: Default::default(),
        deadline_policy: "policy-1".into(),
        budget: Amounts::default(),
        obligation_budget: Amounts::default(),
        reserved_budget: Amounts::default(),
        limits: Limits::default(),
        standing: Standing::Current,
    }
}

pub(crate) fn identity(id: &str) -> Item {
    Item::Identity(Identity {
        actor_id: id.into(),
        kind: IdentityKind::Service,
        roles: vec![ProducerRole::Planner],
        capabilities: Vec::new(),
        mechanisms: vec![Mechanism::Session],
        keys: Vec::new(),
        appointed_by: "user".into(),
        revoked_at: None,
        standing: Standing::Current,
        worst_case: None,
    })
}

pub(crate) fn rule(version: u32) -> Item {
    Item::Rule(Rule {
        rule_id: "rule-1".into(),
        version,
        body: RuleBody::Sufficiency {
            distinct_sources_min: 1,
            age_ms_max: None,
            accepts_unknown_target_version: true,
            observation_types: Vec::new(),
            shown: None,
        },
        standing: Standing::Current,
    })
}

pub(crate) fn source(standing: Standing) -> Item {
    Item::Source(Source {
        source_id: "source-1".into(),
        emitters: vec!["user".into()],
        scope: Scope(vec!["space".into()]),
        change_kinds: Vec::new(),
        standing,
    })
}

pub(crate) fn appointment(issuer: &str) -> Item {
    Item::Appointment(Appointment {
        issuer: issuer.into(),
        operations: Vec::new(),
        targets: Vec::new(),
        broad: false,
        reconcile_within_ms: 3_600_000,
        outstanding_max: 4,
        outstanding_per_target_max: 2,
        independent_owner: "independent".into(),
        escalation_policy_ref: "policy-1".into(),
        expires_at: at("2027-01-01T00:00:00Z"),
        broad_suspended: false,
        standing: Standing::Current,
    })
}

/// Version 0: a profile, four identities, a rule, a source, an appointed issuer, a constraint and the grant `g-0`.
pub(crate) fn founded() -> State {
    genesis(profile(), founding_items()).unwrap().1
}

pub(crate) fn founding_items() -> Vec<Item> {
    let mut items: Vec<Item> = ["user", "owner", "issuer", "independent"].map(identity).into();
    items.extend([rule(1), source(Standing::Current), appointment("issuer"), constraint("c-0"), grant("g-0")]);
    items
}

pub(crate) fn constraint(id: &str) -> Item {
    Item::Constraint(Constraint {
        constraint_id: id.into(),
        statement: "stay below the limit".into(),
        scope: Scope(vec!["space".into()]),
        operations: Vec::new(),
        targets: Vec::new(),
        bounds: Vec::new(),
        standing: Standing::Current,
    })
}

pub(crate) fn goal(id: &str) -> Item {
    Item::Goal(Goal {
        goal_id: id.into(),
        declaration: artifact("declaration-1"),
        text: "keep it valid".into(),
        scope: Scope(vec!["space".into()]),
        standing: Standing::Current,
    })
}

pub(crate) fn grant(id: &str) -> Item {
    Item::Grant(Grant {
        grant_id: id.into(),
        authenticated_issuer: AuthenticatedIssuer { identity: "user".into(), auth_ref: artifact("auth-1") },
        allowed_operations: vec!["operation-1".into()],
        targets: vec![TargetPattern { r#type: "file".into(), account: "local".into(), address: "/srv/*".into() }],
        parameter_bounds: Vec::new(),
        resource_bounds: Amounts::default(),
        expiry: at("2027-01-01T00:00:00Z"),
        delegability: Delegability::None,
        revocation: Revocation { may_revoke: vec!["user".into()], revoked_by: None },
    })
}

pub(crate) fn relation(proposition: &str) -> EvidenceRelation {
    EvidenceRelation {
        proposition_id: proposition.into(),
        evidence_id: "evidence-1".into(),
        reference_status: ReferenceStatus::Resolved,
        scope_match: ScopeMatch::Applicable,
        relation: Relation::Supports,
        valid_at: ValidAt {
            observed_at: now(),
            observation_sequence_ref: "stream-1".into(),
            observation_version: 1,
            target_version: TargetVersion::Unknown,
        },
        limitations: Vec::new(),
    }
}

pub(crate) fn bare_claim(id: &str) -> Claim {
    let proposition = format!("proposition-of-{id}");
    Claim {
        claim_id: id.into(),
        proposition: Proposition {
            proposition_id: proposition.as_str().into(),
            subject: "thing".into(),
            predicate: "is".into(),
            object: Plain(json!(true)),
            scope: Scope(vec!["space".into()]),
        },
        applicability: vec!["while the target is unchanged".into()],
        relations: vec![relation(&proposition)],
        limitations: Vec::new(),
        exceptions: Vec::new(),
        sufficiency_rule_ref: rule_ref(),
        standing: Standing::Current,
    }
}

pub(crate) fn claim(id: &str) -> Item {
    Item::Claim(bare_claim(id))
}

pub(crate) fn bare_method(id: &str, premises: &[&str]) -> Method {
    Method {
        method_id: id.into(),
        text: "do it".into(),
        preconditions: vec!["it is there".into()],
        success_criteria: vec!["it is done".into()],
        failure_criteria: vec!["it is not".into()],
        exceptions: vec!["never on a leap day".into()],
        dependencies: premises.iter().map(|&id| id.into()).collect(),
        standing: Standing::Current,
    }
}

pub(crate) fn method(id: &str, premises: &[&str]) -> Item {
    Item::Method(bare_method(id, premises))
}

pub(crate) fn reentry(id: &str, obligation: &str, predicate: TypedPredicate) -> Reentry {
    Reentry {
        reentry_id: id.into(),
        obligation_id: obligation.into(),
        predicate,
        event_sources: Vec::new(),
        eligible_work: Vec::new(),
        resource_posture: Amounts::default(),
        deduplication_key: id.into(),
        expires_at: None,
        refresh_policy_ref: "policy-1".into(),
        expiry_policy_ref: "policy-1".into(),
        extensions: None,
    }
}

pub(crate) fn time(text: &str) -> TypedPredicate {
    TypedPredicate::TimeReached(TimeReached { at: at(text) })
}

pub(crate) fn gap(review: TypedPredicate) -> TriggerGap {
    TriggerGap { reason: "nothing to wait for yet".into(), responsible_owner: "owner".into(), review_predicate: review }
}

pub(crate) fn condition(id: &str) -> Condition {
    Condition {
        id: id.into(),
        proposition: format!("proposition-of-{id}").into(),
        evidence_rule_ref: rule_ref(),
        assessment_status: AssessmentStatus::Unassessed,
    }
}

pub(crate) fn obligation(id: &str) -> Obligation {
    Obligation {
        obligation_id: id.into(),
        origin: Origin::Declaration(artifact("declaration-1")),
        scope: Scope(vec!["space".into()]),
        gap: Gap { text: "is it so?".into(), propositions: Vec::new() },
        resolution_conditions: vec![condition(&format!("condition-of-{id}"))],
        dependencies: Vec::new(),
        status: ObligationStatus::Active,
        responsible_owner: "owner".into(),
        authority_boundary: Vec::new(),
        closure_authority: "owner".into(),
        reentry_refs: vec![format!("reentry-of-{id}").into()],
        trigger_gap: None,
        extensions: None,
    }
}

pub(crate) fn watching(id: &str, item: &str) -> Obligation {
    let watch = Watch::Item { id: item.into() };
    let dependency = ObligationDependency { dependency_id: format!("watch-of-{id}").into(), watch };
    Obligation { dependencies: vec![dependency], ..obligation(id) }
}

pub(crate) fn add(item: Item) -> Change {
    Change::Add { item: Box::new(item) }
}

pub(crate) fn admit(obligation: Obligation) -> Change {
    let id = obligation.obligation_id.as_str();
    let trigger = reentry(&format!("reentry-of-{id}"), id, time("2026-02-01T00:00:00Z"));
    Change::AdmitObligation { reentries: vec![trigger], obligation: Box::new(obligation) }
}

pub(crate) fn depends(id: &str, premise: &str, dependent: &str) -> Change {
    let dependency = Dependency { dependency_id: id.into(), premise: premise.into(), dependent: dependent.into() };
    Change::AddDependency { dependency }
}

pub(crate) fn retract(kind: ItemKind, id: &str) -> Change {
    Change::Retract { kind, id: id.into(), reason: "it is not so".into() }
}

pub(crate) fn revoke(id: &str) -> Change {
    Change::RevokeGrant { grant_id: id.into(), reason: "no longer".into() }
}

pub(crate) fn revise(state: &State, item: Item) -> Change {
    let replaces = state.item(item.kind(), &item.id()).unwrap().digest;
    Change::Revise { item: Box::new(item), replaces }
}

pub(crate) fn restriction(id: &str, affected_scope: AffectedScope) -> Change {
    Change::SuspendEligibility {
        restriction: Restriction {
            restriction_id: id.into(),
            affected_scope,
            reason: "it is not safe".into(),
            issued_by: "issuer".into(),
            standing: Standing::Current,
        },
    }
}

pub(crate) fn set_status(id: &str, status: ObligationStatus) -> Change {
    Change::SetStatus { obligation_id: id.into(), status, successor: None, reason: "as assessed".into() }
}

pub(crate) fn set_triggers(id: &str, reentries: Vec<Reentry>, trigger_gap: Option<TriggerGap>) -> Change {
    Change::SetTriggers { obligation_id: id.into(), reentries, trigger_gap }
}

pub(crate) fn assessed(id: &str, status: AssessmentStatus) -> Change {
    let condition = Condition { assessment_status: status, ..condition(&format!("condition-of-{id}")) };
    Change::SetConditions { obligation_id: id.into(), conditions: vec![condition] }
}

/// A sealed ordinary delta on the current state, with the authority that [`verified`] knows.
pub(crate) fn delta(state: &State, id: &str, changes: Vec<Change>) -> Delta {
    Delta {
        delta_id: id.into(),
        parent_state: state.reference(),
        changes,
        support_relations: Vec::new(),
        dependency_updates: Vec::new(),
        required_authority_refs: vec![AuthorityRef {
            kind: AuthorityKind::Declaration,
            reference: artifact("declaration-1"),
        }],
        admission_path: AdmissionPath::Ordinary,
        proposal_digest: Digest::of(b""),
        extensions: None,
    }
    .sealed()
    .unwrap()
}

/// What the protocol verified: the declaration as origin and authority, and closing positions on these obligations.
pub(crate) fn verified(closing: &[&str]) -> Derivation {
    Derivation {
        origins: vec![artifact("declaration-1"), artifact("profile-commit")],
        authorities: vec![artifact("declaration-1")],
        closing: closing.iter().map(|&id| id.into()).collect(),
        ..Derivation::at(now())
    }
}

pub(crate) fn attempt(state: &State, changes: Vec<Change>) -> Result<(Commit, State), Vec<Denied>> {
    let id = format!("delta-{}", state.reference().version + 1);
    propose(state, delta(state, &id, changes), &verified(&[]))
}

/// The state after these changes, which must be admitted.
pub(crate) fn after(state: &State, changes: Vec<Change>) -> State {
    attempt(state, changes).unwrap().1
}

/// The codes that these changes are denied with; none if they are admitted.
pub(crate) fn codes(state: &State, changes: Vec<Change>) -> Vec<RefusalCode> {
    codes_of(attempt(state, changes))
}

pub(crate) fn codes_of<T>(result: Result<T, Vec<Denied>>) -> Vec<RefusalCode> {
    result.err().unwrap_or_default().into_iter().map(|denied| denied.code).collect()
}

pub(crate) fn duty() -> Duty {
    Duty {
        issuer: "issuer".into(),
        obligation_id: "duty-1".into(),
        reentry_id: "reentry-of-duty-1".into(),
        origin: artifact("profile-commit"),
        scope: Scope(vec!["space".into()]),
        text: "was the restriction right?".into(),
        condition: condition("condition-of-duty-1"),
        due_at: at("2026-01-01T01:00:00Z"),
        independent_owner: "independent".into(),
        refresh_policy_ref: "policy-1".into(),
        expiry_policy_ref: "policy-1".into(),
    }
}

pub(crate) fn urgent_delta(state: &State, changes: Vec<Change>) -> Delta {
    Delta { admission_path: AdmissionPath::UrgentRestrictive, ..delta(state, "urgent-1", changes) }.sealed().unwrap()
}

pub(crate) fn attempt_urgent(state: &State, changes: Vec<Change>) -> Result<(Commit, State), Vec<Denied>> {
    let derivation = Derivation { urgent: Some(duty()), ..verified(&[]) };
    propose(state, urgent_delta(state, changes), &derivation)
}
