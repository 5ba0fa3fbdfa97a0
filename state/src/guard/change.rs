//! The guards of single changes: each item exists, is of its kind, is fresh, is supported, and may stand so. Spec: §5, DEC-95.

use crate::accepted::{Accepted, is_invalidated, only, standing};
use crate::denied::{Denied, demand};
use crate::guard::{Admission, obligation};
use crate::state::State;
use closer_contracts::delta::Change;
use closer_contracts::id::Id;
use closer_contracts::item::{
    AffectedScope, Appointment, Claim, Dependency, Identity, Item, ItemKind, Restriction, SigningKeyEntry, Standing,
};
use closer_contracts::work::{EvidenceRelation, ReferenceStatus, Relation, ScopeMatch};
use closer_contracts::{Digest, RefusalCode, branch};

/// Whether one change can be folded into the state as it stands after the changes before it.
pub(crate) fn check(state: &State, change: &Change, admission: &Admission<'_>) -> Result<(), Denied> {
    match change {
        Change::Add { item } => {
            is_fresh(state, item.kind(), &item.id())?;
            demand(standing(item).is_none_or(|standing| standing == Standing::Current), || {
                Denied::schema(&item.id(), "a new item is current")
            })?;
            content(state, item)
        }
        Change::Revise { item, replaces } => revise(state, item, *replaces),
        Change::Suspend { kind, id, .. } => may_stand_elsewhere(state, *kind, id, Standing::Suspended),
        Change::Retract { kind, id, .. } => may_stand_elsewhere(state, *kind, id, Standing::Retracted),
        Change::RevokeGrant { grant_id, .. } => {
            let accepted = resolve(state, ItemKind::Grant, &grant_id.into())?;
            demand(!is_invalidated(&accepted.item), || {
                Denied::new(RefusalCode::Duplicate, grant_id, "the grant is revoked already")
            })
        }
        Change::AdmitObligation { obligation, reentries } => obligation::admit(state, obligation, reentries, admission),
        Change::SetStatus { obligation_id, status, successor, .. } => {
            obligation::set_status(state, obligation_id, *status, successor.as_ref(), admission)
        }
        Change::SetConditions { obligation_id, conditions } => {
            obligation::set_conditions(state, obligation_id, conditions, admission)
        }
        Change::SetTriggers { obligation_id, reentries, trigger_gap } => {
            obligation::set_triggers(state, obligation_id, reentries, trigger_gap.as_ref(), admission)
        }
        Change::SetOwner { obligation_id, responsible_owner } => {
            obligation::changeable(state, obligation_id, admission)?;
            obligation::identity(state, responsible_owner)
        }
        Change::AddDependency { dependency } => add_dependency(state, dependency),
        Change::RemoveDependency { dependency_id } => {
            resolve(state, ItemKind::Dependency, &dependency_id.into()).map(drop)
        }
        Change::SuspendEligibility { restriction } => restrict(state, restriction),
        Change::LiftRestriction { restriction_id, .. } => {
            let id = restriction_id.into();
            let accepted = resolve(state, ItemKind::Restriction, &id)?;
            demand(accepted.is_current(), || {
                Denied::new(RefusalCode::Duplicate, &id, "the restriction is lifted already")
            })
        }
    }
}

/// The item of this kind, or why there is none: unknown, or of another kind.
pub(crate) fn resolve<'a>(state: &'a State, kind: ItemKind, id: &Id) -> Result<&'a Accepted, Denied> {
    let other = state.locate(id).any(|accepted| accepted.item.kind() != kind);
    state.item(kind, id).ok_or_else(|| match branch!("state.kind_differs", other) {
        true => Denied::schema(id, &format!("what has this id is no {kind}")),
        false => Denied::unresolved(id, &format!("no {kind} has this id")),
    })
}

/// An id names one thing for ever, across kinds (DEC-07). An appointment shares its issuer's.
pub(crate) fn is_fresh(state: &State, kind: ItemKind, id: &Id) -> Result<(), Denied> {
    let shares = |other: ItemKind| {
        matches!(
            (kind, other),
            (ItemKind::Identity, ItemKind::Appointment) | (ItemKind::Appointment, ItemKind::Identity)
        )
    };
    let taken = state.locate(id).any(|accepted| !shares(accepted.item.kind()));
    demand(!branch!("state.id_is_taken", taken), || {
        Denied::new(RefusalCode::KeyConflict, id, "the id stands for another item already")
    })
}

fn revise(state: &State, item: &Item, replaces: Digest) -> Result<(), Denied> {
    let id = item.id();
    let accepted = resolve(state, item.kind(), &id)?;
    demand(branch!("state.revises_what_is_accepted", accepted.digest == replaces), || {
        Denied::new(RefusalCode::StaleVersion, &id, "the item is no longer what the revision replaces")
    })?;
    demand(standing(&accepted.item) != Some(Standing::Retracted), || {
        Denied::new(RefusalCode::StaleVersion, &id, "a retracted item is history; what replaces it has its own id")
    })?;
    let revoked = matches!(accepted.item, Item::Grant(_)) && is_invalidated(&accepted.item);
    demand(!branch!("state.revises_revoked_grant", revoked), || {
        Denied::new(RefusalCode::GrantRevoked, &id, "a revoked grant stays revoked; what replaces it has its own id")
    })?;
    let rises = version(item) > version(&accepted.item) || version(item).is_none();
    demand(rises, || Denied::new(RefusalCode::KeyConflict, &id, "new content has a higher version"))?;
    content(state, item)
}

/// The version of a kind that is cited by version.
const fn version(item: &Item) -> Option<u32> {
    match item {
        Item::Operation(item) => Some(item.version),
        Item::ReadbackMethod(item) => Some(item.version),
        Item::Rule(item) => Some(item.version),
        Item::Policy(item) => Some(item.version),
        Item::Coalition(item) => Some(item.version),
        Item::Capability(item) => Some(item.version),
        Item::Profile(item) => Some(item.version),
        Item::Goal(_)
        | Item::Constraint(_)
        | Item::Grant(_)
        | Item::Claim(_)
        | Item::Method(_)
        | Item::Obligation(_)
        | Item::Dependency(_)
        | Item::Reentry(_)
        | Item::Restriction(_)
        | Item::Identity(_)
        | Item::Source(_)
        | Item::Workflow(_)
        | Item::Skill(_)
        | Item::Appointment(_) => None,
    }
}

/// What new content must have, by kind.
pub(crate) fn content(state: &State, item: &Item) -> Result<(), Denied> {
    match item {
        Item::Claim(claim) => supported(state, claim),
        Item::Method(method) => method.dependencies.iter().try_for_each(|id| premise(state, id)),
        Item::Grant(grant) => demand(grant.revocation.revoked_by.is_none(), || {
            Denied::schema(&item.id(), "a grant is revoked by a change of its own")
        }),
        Item::Profile(profile) => {
            let other = state.profile().is_some_and(|other| other.profile_id != profile.profile_id);
            demand(!other, || Denied::new(RefusalCode::KeyConflict, item.id(), "a space has one profile"))
        }
        Item::Identity(identity) => keys_stay_revoked(state, identity),
        Item::Goal(_)
        | Item::Constraint(_)
        | Item::Obligation(_)
        | Item::Dependency(_)
        | Item::Reentry(_)
        | Item::Restriction(_)
        | Item::Operation(_)
        | Item::ReadbackMethod(_)
        | Item::Source(_)
        | Item::Rule(_)
        | Item::Policy(_)
        | Item::Coalition(_)
        | Item::Capability(_)
        | Item::Workflow(_)
        | Item::Skill(_) => Ok(()),
        Item::Appointment(appointment) => overseen(state, appointment),
    }
}

/// A key that was revoked is revoked for everybody and for good: no later entry makes it current again (DEC-13).
fn keys_stay_revoked(state: &State, identity: &Identity) -> Result<(), Denied> {
    let accepted: Vec<&SigningKeyEntry> = state
        .items(ItemKind::Identity)
        .filter_map(|accepted| only!(&accepted.item, Identity))
        .flat_map(|identity| &identity.keys)
        .filter(|key| key.revoked_at.is_some())
        .collect();
    let revived = identity.keys.iter().find(|key| {
        let mut known = accepted.iter().filter(|known| known.key_id == key.key_id);
        known.any(|known| key.revoked_at.is_none() || (known.compromised && !key.compromised))
    });
    demand(!branch!("state.key_is_revived", revived.is_some()), || {
        Denied::new(RefusalCode::KeyConflict, &identity.actor_id, "a key that was revoked is not registered again")
    })
}

/// Whoever answers for an issuer's restrictions is somebody else, and nobody whom the issuer has appointed (§7.2, Appendix A).
fn overseen(state: &State, appointment: &Appointment) -> Result<(), Denied> {
    let owner = &appointment.independent_owner;
    let appointed = state.identity(owner).is_some_and(|identity| identity.appointed_by == appointment.issuer);
    demand(!branch!("state.owner_depends_on_issuer", *owner == appointment.issuer || appointed), || {
        let reason =
            "the owner of an issuer's cases is neither the issuer nor appointed by it; name another (question 2)";
        Denied::new(RefusalCode::ProfileIncomplete, &appointment.issuer, reason)
    })
}

/// An accepted conclusion names the evidence assessed and the conditions under which it applies (invariant 1).
fn supported(state: &State, claim: &Claim) -> Result<(), Denied> {
    let refused = |reason| Denied::new(RefusalCode::UnsupportedPromotion, &claim.claim_id, reason);
    demand(branch!("state.claim_has_applicability", !claim.applicability.is_empty()), || {
        refused("a conclusion states the conditions under which it applies")
    })?;
    let supports = |relation: &EvidenceRelation| {
        relation.proposition_id == claim.proposition.proposition_id
            && relation.reference_status == ReferenceStatus::Resolved
            && relation.scope_match == ScopeMatch::Applicable
            && relation.relation == Relation::Supports
    };
    demand(branch!("state.claim_has_support", claim.relations.iter().any(supports)), || {
        refused("no resolved, applicable evidence supports this very proposition")
    })?;
    demand(state.rule(&claim.sufficiency_rule_ref).is_some(), || {
        Denied::unresolved(&claim.sufficiency_rule_ref.id, "no rule is registered at this version")
    })
}

/// A premise that is named anew must hold now.
fn premise(state: &State, id: &Id) -> Result<(), Denied> {
    let mut found = state.locate(id).peekable();
    demand(found.peek().is_some(), || Denied::unresolved(id, "no accepted item has this id"))?;
    demand(found.all(|accepted| !is_invalidated(&accepted.item)), || {
        Denied::new(RefusalCode::StaleVersion, id, "a premise is suspended, retracted or revoked")
    })
}

fn may_stand_elsewhere(state: &State, kind: ItemKind, id: &Id, wanted: Standing) -> Result<(), Denied> {
    let has_own_changes = match kind {
        ItemKind::Grant
        | ItemKind::Obligation
        | ItemKind::Dependency
        | ItemKind::Reentry
        | ItemKind::Restriction
        | ItemKind::Profile => true,
        ItemKind::Goal
        | ItemKind::Constraint
        | ItemKind::Claim
        | ItemKind::Method
        | ItemKind::Operation
        | ItemKind::ReadbackMethod
        | ItemKind::Identity
        | ItemKind::Source
        | ItemKind::Rule
        | ItemKind::Policy
        | ItemKind::Coalition
        | ItemKind::Capability
        | ItemKind::Workflow
        | ItemKind::Skill
        | ItemKind::Appointment => false,
    };
    demand(!branch!("state.kind_has_own_changes", has_own_changes), || {
        Denied::schema(id, &format!("a {kind} has changes of its own"))
    })?;
    let accepted = resolve(state, kind, id)?;
    match standing(&accepted.item) {
        Some(now) if now == wanted => {
            Err(Denied::new(RefusalCode::Duplicate, id, &format!("the {kind} is {now} already")))
        }
        Some(Standing::Retracted) => {
            Err(Denied::new(RefusalCode::StaleVersion, id, &format!("a retracted {kind} is history")))
        }
        Some(Standing::Current | Standing::Suspended) | None => Ok(()),
    }
}

fn add_dependency(state: &State, dependency: &Dependency) -> Result<(), Denied> {
    is_fresh(state, ItemKind::Dependency, &(&dependency.dependency_id).into())?;
    tied(state, dependency)
}

/// What a founded dependency ties together, as [`add_dependency`] demands it of an added one.
pub(crate) fn ends(state: &State, item: &Item) -> Result<(), Denied> {
    only!(item, Dependency).map_or(Ok(()), |dependency| tied(state, dependency))
}

fn tied(state: &State, dependency: &Dependency) -> Result<(), Denied> {
    demand(dependency.premise != dependency.dependent, || {
        Denied::schema(&dependency.premise, "nothing rests on itself")
    })?;
    premise(state, &dependency.premise)?;
    demand(state.locate(&dependency.dependent).next().is_some(), || {
        Denied::unresolved(&dependency.dependent, "no accepted item has this id")
    })
}

fn restrict(state: &State, restriction: &Restriction) -> Result<(), Denied> {
    let id = (&restriction.restriction_id).into();
    is_fresh(state, ItemKind::Restriction, &id)?;
    demand(restriction.standing == Standing::Current, || Denied::schema(&id, "a new restriction is in force"))?;
    match &restriction.affected_scope {
        AffectedScope::Grant { grant_id } => resolve(state, ItemKind::Grant, &grant_id.into()).map(drop),
        AffectedScope::Obligation { obligation_id } => {
            resolve(state, ItemKind::Obligation, &obligation_id.into()).map(drop)
        }
        // What is not registered yet can be restricted all the same.
        AffectedScope::Space {} | AffectedScope::Operation { .. } | AffectedScope::Target { .. } => Ok(()),
    }
}
