//! The guards of admission: whether a delta as a whole and each of its changes may be folded. Spec: §5, C10, DEC-95.
//!
//! This file judges the delta as a whole, [`change`] one change, [`obligation`] what concerns obligations, [`root`] where
//! authority comes from, [`urgent`] the urgent path.

pub(crate) mod change;
pub(crate) mod obligation;
pub(crate) mod root;
mod urgent;

use crate::accepted::is_invalidated;
use crate::commit::Derivation;
use crate::denied::{Denied, demand};
use crate::state::State;
use closer_contracts::delta::{AdmissionPath, AuthorityRef, Change, ChangeClass, Delta};
use closer_contracts::id::{Id, ObligationId};
use closer_contracts::item::{Dependency, Item, ItemKind};
use closer_contracts::{Check, RefusalCode, branch};

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
        AdmissionPath::UrgentRestrictive => urgent::whole(state, admission),
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

/// What must hold of the state after all changes: every touched open obligation can be reconsidered, and no conclusion
/// is promoted on a premise that does not hold.
pub(crate) fn outcome(state: &State, admission: &Admission<'_>) -> Vec<Denied> {
    let check = |change: &Change| match change {
        Change::AdmitObligation { obligation, .. } => reconsiderable(state, &obligation.obligation_id, admission),
        Change::SetStatus { obligation_id, .. } | Change::SetTriggers { obligation_id, .. } => {
            reconsiderable(state, obligation_id, admission)
        }
        Change::Add { item } | Change::Revise { item, .. } => {
            stands(state, item).and_then(|()| root::reaches_user(state, item))
        }
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
