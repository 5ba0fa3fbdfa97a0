//! Types that are no contracts: enums with content, and objects with defaults.

use super::{Example, Extent};
use crate::audit::{Delegability, Reconsideration, RestrictiveAction};
use crate::auth::{AuthRecord, Proof};
use crate::briefcase::RequestedAuthorization;
use crate::conference::Subject;
use crate::delta::Change;
use crate::id::Key;
use crate::item::{AffectedScope, Item, ItemKind, PolicyBody, RuleBody};
use crate::obligation::{ObligationStatus, Origin, Watch};
use crate::profile::{DisclosureRule, Profile, RestrictiveEvent, SigningPolicy};
use crate::reentry::{All, Any, TypedPredicate};
use crate::refs::{Amounts, Scope, TargetPattern};
use crate::refusal::{Refusal, RefusalCode};
use crate::work::TargetVersion;

/// A fixed key. Its private half is public: for tests alone.
#[must_use]
pub fn signing_key() -> ed25519_dalek::SigningKey {
    ed25519_dalek::SigningKey::from_bytes(&[7; 32])
}

macro_rules! examples {
    ($($ty:ty, $extent:ident => $value:expr;)+) => {$(
        impl Example for $ty {
            fn example($extent: Extent) -> Self {
                $value
            }
        }
    )+};
}

/// `$minimal` for the least, `$full` otherwise.
macro_rules! either {
    ($extent:ident, $minimal:expr, $full:expr) => {
        match $extent {
            Extent::Minimal => $minimal,
            Extent::Full | Extent::Bound => $full,
        }
    };
}

examples! {
    TargetVersion, extent => Option::<Key>::example(extent).into();
    Scope, extent => Scope(Example::example(extent));
    TargetPattern, extent => TargetPattern {
        r#type: Example::example(extent),
        account: Example::example(extent),
        address: either!(extent, "*".into(), Example::example(extent)),
    };
    Amounts, extent => Amounts {
        calls: Example::example(extent),
        tokens: Example::example(extent),
        cost_micros: Example::example(extent),
        currency: Example::example(extent),
        time_ms: Example::example(extent),
        concurrency: Example::example(extent),
    };
    Origin, extent => either!(
        extent,
        Origin::Declaration(Example::example(extent)),
        Origin::Commit(Example::example(extent))
    );
    Watch, extent => either!(extent, Watch::Item { id: Example::example(extent) }, Watch::Entity {
        entity_ref: Example::example(extent),
        scope: Example::example(extent),
        change_kinds: Example::example(extent),
        evidence_ids: Example::example(extent),
    });
    TypedPredicate, extent => either!(extent, TypedPredicate::TimeReached(Example::example(extent)), {
        let any = vec![
            TypedPredicate::DependencyVersionChanged(Example::example(extent)),
            TypedPredicate::UserDecisionReceived(Example::example(extent)),
            TypedPredicate::CapabilityVerified(Example::example(extent)),
            TypedPredicate::HandoffAccepted(Example::example(extent)),
            TypedPredicate::TimeReached(Example::example(extent)),
        ];
        let all = vec![
            TypedPredicate::EvidenceAdded(Example::example(extent)),
            TypedPredicate::Any(Any { items: any }),
        ];
        TypedPredicate::All(All { items: all })
    });
    RequestedAuthorization, extent => either!(
        extent,
        RequestedAuthorization::Grant(Example::example(extent)),
        RequestedAuthorization::Action { proposal: Example::example(extent), grant: Example::example(extent) }
    );
    Delegability, extent => either!(extent, Delegability::None, Delegability::Named {
        delegates: vec![Example::example(extent)],
        depth: Example::example(extent),
    });
    Reconsideration, extent => either!(
        extent,
        Reconsideration::When(Example::example(extent)),
        Reconsideration::Gap(Example::example(extent))
    );
    RestrictiveAction, extent => either!(
        extent,
        RestrictiveAction::RevokeGrant(Example::example(extent)),
        RestrictiveAction::SuspendEligibility(Example::example(extent))
    );
    AffectedScope, extent => either!(extent, AffectedScope::Space {}, AffectedScope::Target {
        operation: Example::example(extent),
        targets: Example::example(extent),
    });
    RuleBody, extent => either!(extent, RuleBody::Matching { facets: Example::example(extent) }, RuleBody::Sufficiency {
        distinct_sources_min: Example::example(extent),
        age_ms_max: Example::example(extent),
        accepts_unknown_target_version: true,
        observation_types: Example::example(extent),
        shown: Example::example(extent),
    });
    Subject, extent => either!(
        extent,
        Subject::Proposition(Example::example(extent)),
        Subject::Proposal(Example::example(extent))
    );
    PolicyBody, extent => either!(extent, PolicyBody::Deadline { escalate_to: Example::example(extent) }, PolicyBody::Expiry {
        replace_for_ms: Example::example(extent),
        review_within_ms: Example::example(extent),
    });
    RestrictiveEvent, extent => RestrictiveEvent {
        change_kind: Example::example(extent),
        source: Example::example(extent),
        entity_ref: Example::example(extent),
        issuer: Example::example(extent),
        action: Example::example(extent),
        reason: Example::example(extent),
    };
    DisclosureRule, extent => DisclosureRule {
        purpose: Example::example(extent),
        recipient: Example::example(extent),
        categories: Example::example(extent),
        permitted_use: Example::example(extent),
    };
    SigningPolicy, extent => SigningPolicy {
        rotation: Example::example(extent),
        revocation: Example::example(extent),
        scope: Example::example(extent),
    };
    Profile, extent => Profile {
        profile_id: Example::example(extent),
        version: Example::example(extent),
        user: Example::example(extent),
        scope: Example::example(extent),
        answers: (1..=10).map(|number| (Key::from(format!("q{number}")), Example::example(extent))).collect(),
        mechanisms: Example::example(extent),
        signing_policy: Example::example(extent),
        restrictive_events: Example::example(extent),
        disclosure_rules: Example::example(extent),
        restrictive_authority: Example::example(extent),
        people: Default::default(),
        deadline_policy: Example::example(extent),
        budget: Example::example(extent),
        obligation_budget: Example::example(extent),
        reserved_budget: Example::example(extent),
        limits: Default::default(),
        standing: Example::example(Extent::Minimal),
    };
    Item, extent => either!(extent, Item::Goal(Example::example(extent)), Item::Grant(Example::example(extent)));
    Change, extent => Change::Add { item: Example::example(extent) };
    Proof, extent => either!(extent, Proof::Session { session_id: Example::example(extent) }, Proof::Ed25519 {
        key_id: crate::auth::key_id(&signing_key().verifying_key()),
        signature: "00".repeat(64).into(),
    });
    AuthRecord, extent => AuthRecord {
        subject_id: Example::example(extent),
        content_digest: Example::example(extent),
        scope: Example::example(extent),
        identity: Example::example(extent),
        proof: Example::example(extent),
        received_at: Example::example(extent),
    };
    RefusalCode, extent => super::one_of(RefusalCode::ALL, extent);
    Refusal, extent => Refusal {
        code: Example::example(extent),
        check: Example::example(extent),
        subject: Example::example(extent),
        subject_digest: Example::example(extent),
        offending: Example::example(extent),
        reason: Example::example(extent),
        state_basis: Example::example(extent),
        refused_at: Example::example(extent),
    };
}

/// One item of every kind.
#[must_use]
pub fn items(extent: Extent) -> Vec<Item> {
    let item = |kind: ItemKind| match kind {
        ItemKind::Goal => Item::Goal(Example::example(extent)),
        ItemKind::Constraint => Item::Constraint(Example::example(extent)),
        ItemKind::Grant => Item::Grant(Example::example(extent)),
        ItemKind::Claim => Item::Claim(Example::example(extent)),
        ItemKind::Method => Item::Method(Example::example(extent)),
        ItemKind::Obligation => Item::Obligation(Example::example(extent)),
        ItemKind::Dependency => Item::Dependency(Example::example(extent)),
        ItemKind::Reentry => Item::Reentry(Example::example(extent)),
        ItemKind::Restriction => Item::Restriction(Example::example(extent)),
        ItemKind::Operation => Item::Operation(Example::example(extent)),
        ItemKind::ReadbackMethod => Item::ReadbackMethod(Example::example(extent)),
        ItemKind::Identity => Item::Identity(Example::example(extent)),
        ItemKind::Source => Item::Source(Example::example(extent)),
        ItemKind::Rule => Item::Rule(Example::example(extent)),
        ItemKind::Policy => Item::Policy(Example::example(extent)),
        ItemKind::Appointment => Item::Appointment(Example::example(extent)),
        ItemKind::Coalition => Item::Coalition(Example::example(extent)),
        ItemKind::Capability => Item::Capability(Example::example(extent)),
        ItemKind::Workflow => Item::Workflow(Example::example(extent)),
        ItemKind::Skill => Item::Skill(Example::example(extent)),
        ItemKind::Profile => Item::Profile(Example::example(extent)),
    };
    ItemKind::ALL.iter().copied().map(item).collect()
}

/// One change of every kind.
#[must_use]
pub fn changes(extent: Extent) -> Vec<Change> {
    let obligation_id: crate::id::ObligationId = Example::example(extent);
    let reason: crate::id::Text = Example::example(extent);
    vec![
        Change::Add { item: Example::example(extent) },
        Change::Revise { item: Box::new(Item::Claim(Example::example(extent))), replaces: Example::example(extent) },
        Change::Suspend { kind: ItemKind::Claim, id: Example::example(extent), reason: reason.clone() },
        Change::Retract { kind: ItemKind::Claim, id: Example::example(extent), reason: reason.clone() },
        Change::RevokeGrant { grant_id: Example::example(extent), reason: reason.clone() },
        Change::AdmitObligation { obligation: Example::example(extent), reentries: Example::example(extent) },
        Change::SetStatus {
            obligation_id: obligation_id.clone(),
            status: ObligationStatus::AwaitingEvent,
            successor: Example::example(extent),
            reason: reason.clone(),
        },
        Change::SetConditions { obligation_id: obligation_id.clone(), conditions: vec![Example::example(extent)] },
        Change::SetTriggers {
            obligation_id: obligation_id.clone(),
            reentries: Example::example(extent),
            trigger_gap: Example::example(extent),
        },
        Change::SetOwner { obligation_id, responsible_owner: Example::example(extent) },
        Change::AddDependency { dependency: Example::example(extent) },
        Change::RemoveDependency { dependency_id: Example::example(extent) },
        Change::SuspendEligibility { restriction: Example::example(extent) },
        Change::LiftRestriction {
            restriction_id: Example::example(extent),
            urgent_receipt: Example::example(extent),
            reason,
        },
    ]
}
