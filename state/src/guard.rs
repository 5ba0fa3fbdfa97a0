//! The guards of admission: whether a delta as a whole and each of its changes may be folded. Spec: §5, C10, DEC-95.

use crate::accepted::{Accepted, is_invalidated, only, standing};
use crate::commit::Derivation;
use crate::denied::{Denied, demand};
use crate::guard_obligation as obligations;
use crate::state::State;
use closer_contracts::delta::{AdmissionPath, AuthorityRef, Change, ChangeClass, Delta};
use closer_contracts::id::{ActorId, Id, ObligationId};
use closer_contracts::item::{AffectedScope, Claim, Dependency, Item, ItemKind, Restriction, Standing};
use closer_contracts::work::{EvidenceRelation, ReferenceStatus, Relation, ScopeMatch};
use closer_contracts::{Check, Digest, RefusalCode, branch};

/// What the guards of one delta know beside the state: the delta and what the protocol has verified.
pub(crate) struct Admission<'a> {
    pub(crate) delta: &'a Delta,
    pub(crate) derivation: &'a Derivation,
}

impl Admission<'_> {
    /// Whether the delta reopens this obligation (DEC-29).
    pub(crate) fn reopens(&self, id: &ObligationId) -> bool {
        self.delta.changes.iter().any(|change| {
            matches!(change, Change::SetStatus { obligation_id, status, .. } if obligation_id == id && status.is_open())
        })
    }
}

/// The delta's own integrity and its parent, on either path (CP-C10-06, CP-C10-10).
pub(crate) fn integrity(state: &State, delta: &Delta) -> Result<(), Denied> {
    delta.check()?;
    let (parent, now) = (delta.parent_state, state.reference());
    let forged = parent.version == now.version && parent.digest != now.digest;
    demand(!branch!("state.parent_forged", forged), || {
        let reason = "the parent has the accepted version and another digest";
        Denied::new(RefusalCode::DigestMismatch, parent.digest, reason)
    })?;
    demand(branch!("state.parent_is_current", parent == now), || {
        Denied::new(RefusalCode::StaleParent, parent.version, "the delta names a parent that is not the accepted state")
    })
}

/// What is demanded of the delta as a whole: its path and its authority.
pub(crate) fn whole(state: &State, admission: &Admission<'_>) -> Vec<Denied> {
    let mut denials = match admission.delta.admission_path {
        AdmissionPath::Ordinary => Vec::new(),
        AdmissionPath::UrgentRestrictive => urgent(state, admission),
    };
    denials.extend(authority(state, admission).err());
    denials
}

/// A change to what is wanted, required or permitted needs its own authority, whatever supports it (invariant 2).
fn authority(state: &State, admission: &Admission<'_>) -> Result<(), Denied> {
    let Some(change) = admission.delta.changes.iter().find(|change| needs_authority(state, change)) else {
        return match admission.delta.dependency_updates.iter().find(|update| carries_delegation(state, update)) {
            Some(update) => verified(admission, &(&update.dependency_id).into()),
            None => Ok(()),
        };
    };
    verified(admission, &change.subject().1)
}

fn verified(admission: &Admission<'_>, subject: &Id) -> Result<(), Denied> {
    let cited = &admission.delta.required_authority_refs;
    demand(branch!("state.authority_cited", !cited.is_empty()), || {
        Denied::new(RefusalCode::MissingAuthority, subject, "the change names no authority of its own")
    })?;
    let known = |cited: &&AuthorityRef| !admission.derivation.authorities.contains(&cited.reference);
    let unknown = cited.iter().find(known);
    demand(branch!("state.authority_verified", unknown.is_none()), || {
        let offending = unknown.map_or("", |cited| cited.reference.id.as_str());
        Denied::new(RefusalCode::MissingAuthority, offending, "an authority that the change names was not verified")
    })
}

fn needs_authority(state: &State, change: &Change) -> bool {
    let delegation = match change {
        Change::AddDependency { dependency } => Some(dependency),
        Change::RemoveDependency { dependency_id } => state.dependency(dependency_id),
        Change::Add { .. }
        | Change::Revise { .. }
        | Change::Suspend { .. }
        | Change::Retract { .. }
        | Change::RevokeGrant { .. }
        | Change::AdmitObligation { .. }
        | Change::SetStatus { .. }
        | Change::SetConditions { .. }
        | Change::SetTriggers { .. }
        | Change::SetOwner { .. }
        | Change::SuspendEligibility { .. }
        | Change::LiftRestriction { .. } => None,
    };
    delegation.is_some_and(|dependency| carries_delegation(state, dependency))
        || matches!(change.class(), ChangeClass::Normative | ChangeClass::Restrictive)
}

/// Whether the dependency ties a delegate's grant to the one it came from, and so carries its revocation (DEC-66).
fn carries_delegation(state: &State, dependency: &Dependency) -> bool {
    [&dependency.premise, &dependency.dependent].into_iter().all(|id| state.item(ItemKind::Grant, id).is_some())
}

/// The urgent path carries restrictions and nothing else, and is refused whole (§7.2).
fn urgent(state: &State, admission: &Admission<'_>) -> Vec<Denied> {
    let (delta, derivation) = (admission.delta, admission.derivation);
    let mut denials = Vec::new();
    let issuer = derivation.urgent.as_ref().map(|duty| &duty.issuer);
    for change in &delta.changes {
        let subject = change.subject();
        let own = issuer.is_some_and(|issuer| is_own_privilege(issuer, &subject));
        let restricts = matches!(change, Change::RevokeGrant { .. } | Change::SuspendEligibility { .. });
        if branch!("state.urgent_alters_own_privilege", own) {
            let reason = "an issuer may not alter its own emergency privileges";
            denials.push(Denied::new(RefusalCode::SelfPrivilege, &subject.1, reason));
        } else if branch!("state.urgent_beyond_restriction", !restricts) {
            let reason = "the urgent path revokes a grant or suspends eligibility, and nothing else";
            denials.push(Denied::new(RefusalCode::NotRestrictive, &subject.1, reason));
        }
    }
    if let Some(update) = delta.dependency_updates.first() {
        let reason = "the urgent path updates no dependencies";
        denials.push(Denied::new(RefusalCode::NotRestrictive, &update.dependency_id, reason));
    }
    denials.extend(duty(state, admission).err());
    denials
}

fn is_own_privilege(issuer: &ActorId, (kind, id): &(ItemKind, Id)) -> bool {
    match kind {
        ItemKind::Appointment | ItemKind::Identity => *id == Id::from(issuer),
        // It holds the limits and the standing requirements that every issuer is under.
        ItemKind::Profile => true,
        ItemKind::Goal
        | ItemKind::Constraint
        | ItemKind::Grant
        | ItemKind::Claim
        | ItemKind::Method
        | ItemKind::Obligation
        | ItemKind::Dependency
        | ItemKind::Reentry
        | ItemKind::Restriction
        | ItemKind::Operation
        | ItemKind::ReadbackMethod
        | ItemKind::Source
        | ItemKind::Rule
        | ItemKind::Policy => false,
    }
}

/// The duty to reconcile comes with the commit: a deadline to come, and an owner who is not the issuer.
fn duty(state: &State, admission: &Admission<'_>) -> Result<(), Denied> {
    let duty = admission.derivation.urgent.as_ref();
    let duty = duty.filter(|duty| branch!("state.duty_is_due_later", duty.due_at > admission.derivation.now));
    let duty = duty.ok_or_else(|| {
        let reason = "an urgent commit comes with the duty to reconcile it by a deadline to come";
        Denied::new(RefusalCode::MissingDeadline, "", reason)
    })?;
    demand(!branch!("state.issuer_owns_its_review", duty.independent_owner == duty.issuer), || {
        Denied::new(RefusalCode::SelfPrivilege, &duty.issuer, "an issuer does not review its own restriction")
    })?;
    match duty.oblige() {
        crate::derive::DerivedChange::Oblige { obligation, reentries } => {
            obligations::admit(state, &obligation, &reentries, admission)
        }
        crate::derive::DerivedChange::Suspend { .. }
        | crate::derive::DerivedChange::RevokeDelegate { .. }
        | crate::derive::DerivedChange::Reconsider { .. } => Ok(()),
    }
}

/// Whether one change can be folded into the state as it stands after the changes before it.
pub(crate) fn change(state: &State, change: &Change, admission: &Admission<'_>) -> Result<(), Denied> {
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
        Change::AdmitObligation { obligation, reentries } => {
            obligations::admit(state, obligation, reentries, admission)
        }
        Change::SetStatus { obligation_id, status, successor, .. } => {
            obligations::set_status(state, obligation_id, *status, successor.as_ref(), admission)
        }
        Change::SetConditions { obligation_id, conditions } => {
            obligations::set_conditions(state, obligation_id, conditions, admission)
        }
        Change::SetTriggers { obligation_id, reentries, trigger_gap } => {
            obligations::set_triggers(state, obligation_id, reentries, trigger_gap.as_ref(), admission)
        }
        Change::SetOwner { obligation_id, responsible_owner } => {
            obligations::changeable(state, obligation_id, admission)?;
            obligations::identity(state, responsible_owner)
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
        Item::Goal(_)
        | Item::Constraint(_)
        | Item::Obligation(_)
        | Item::Dependency(_)
        | Item::Reentry(_)
        | Item::Restriction(_)
        | Item::Operation(_)
        | Item::ReadbackMethod(_)
        | Item::Identity(_)
        | Item::Source(_)
        | Item::Rule(_)
        | Item::Policy(_)
        | Item::Appointment(_) => Ok(()),
    }
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

/// What must hold of the state after all changes: every touched open obligation can be reconsidered, and no conclusion
/// is promoted on a premise that does not hold.
pub(crate) fn outcome(state: &State, admission: &Admission<'_>) -> Vec<Denied> {
    let check = |change: &Change| match change {
        Change::AdmitObligation { obligation, .. } => reconsiderable(state, &obligation.obligation_id, admission),
        Change::SetStatus { obligation_id, .. } | Change::SetTriggers { obligation_id, .. } => {
            reconsiderable(state, obligation_id, admission)
        }
        Change::Add { item } | Change::Revise { item, .. } => stands(state, item),
        Change::Suspend { .. }
        | Change::Retract { .. }
        | Change::RevokeGrant { .. }
        | Change::SetConditions { .. }
        | Change::SetOwner { .. }
        | Change::AddDependency { .. }
        | Change::RemoveDependency { .. }
        | Change::SuspendEligibility { .. }
        | Change::LiftRestriction { .. } => Ok(()),
    };
    admission.delta.changes.iter().filter_map(|change| check(change).err()).collect()
}

fn reconsiderable(state: &State, id: &ObligationId, admission: &Admission<'_>) -> Result<(), Denied> {
    let obligation = state.obligation(id).filter(|obligation| obligation.status.is_open());
    let now = &admission.derivation.now;
    demand(obligation.is_none_or(|obligation| crate::trigger::is_reconsiderable(state, obligation, now)), || {
        let reason = "an open obligation keeps a live trigger, or a gap that is reviewed within the profile's limit";
        Denied::new(RefusalCode::NoTrigger, id, reason)
    })
}

fn stands(state: &State, item: &Item) -> Result<(), Denied> {
    let id = item.id();
    let promoted = matches!(item, Item::Claim(_) | Item::Method(_)) && !is_invalidated(item);
    let gone = state.premises_of(&id).find(|premise| state.locate(premise).any(|a| is_invalidated(&a.item)));
    demand(!branch!("state.promoted_on_lost_premise", promoted && gone.is_some()), || {
        let offending = gone.map_or("", Id::as_str);
        Denied::new(RefusalCode::UnsupportedPromotion, offending, "a premise of the item is suspended or retracted")
    })
}
