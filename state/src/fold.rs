//! The fold: what each change does to accepted state. It judges nothing; [`crate::guard`] has judged before, once.

use crate::accepted::with_standing;
use crate::state::State;
use closer_contracts::delta::{Change, Delta};
use closer_contracts::id::{ArtifactId, GrantId, Id, ObligationId, ReentryId};
use closer_contracts::item::{Item, ItemKind, Standing};
use closer_contracts::obligation::Obligation;
use closer_contracts::reentry::Reentry;
use closer_contracts::refs::ArtifactRef;
use closer_contracts::{Fault, RefusalCode};

/// What a fold is part of: the version it makes and the delta it carries out.
#[derive(Debug, Clone)]
pub(crate) struct Cause {
    pub(crate) version: u64,
    pub(crate) delta: ArtifactRef,
}

impl Cause {
    pub(crate) fn of(delta: &Delta, version: u64) -> Self {
        let id = ArtifactId::new(delta.delta_id.as_str());
        Self { version, delta: ArtifactRef { id, digest: delta.proposal_digest } }
    }
}

fn absent(kind: ItemKind, id: &Id) -> Fault {
    Fault::new(RefusalCode::UnresolvedRef, format!("no {kind} has this id")).within(id)
}

/// Folds one change into the state.
///
/// # Errors
/// `unresolved_ref` when its subject is absent, `schema_invalid` when an item has no canonical form.
pub(crate) fn fold(state: &mut State, change: &Change, cause: &Cause) -> Result<(), Fault> {
    let version = cause.version;
    match change {
        Change::Add { item } | Change::Revise { item, .. } => state.put((**item).clone(), version),
        Change::Suspend { kind, id, .. } => set_standing(state, *kind, id, Standing::Suspended, version),
        Change::Retract { kind, id, .. } => set_standing(state, *kind, id, Standing::Retracted, version),
        Change::RevokeGrant { grant_id, .. } => revoke(state, grant_id, cause),
        Change::AdmitObligation { obligation, reentries } => {
            state.put(Item::Obligation((**obligation).clone()), version)?;
            arm(state, reentries, version)
        }
        Change::SetStatus { obligation_id, status, .. } => {
            // A settled obligation is not reconsidered by a trigger; reopening installs its own (DEC-29).
            if !status.is_open() {
                disarm(state, obligation_id, &[])?;
            }
            amend(state, obligation_id, version, |obligation| {
                obligation.status = *status;
                if !status.is_open() {
                    obligation.reentry_refs.clear();
                    obligation.trigger_gap = None;
                }
            })
        }
        Change::SetConditions { obligation_id, conditions } => amend(state, obligation_id, version, |obligation| {
            obligation.resolution_conditions.clone_from(conditions);
        }),
        Change::SetTriggers { obligation_id, reentries, trigger_gap } => {
            let kept: Vec<ReentryId> = reentries.iter().map(|reentry| reentry.reentry_id.clone()).collect();
            disarm(state, obligation_id, &kept)?;
            arm(state, reentries, version)?;
            amend(state, obligation_id, version, |obligation| {
                obligation.reentry_refs = kept;
                obligation.trigger_gap.clone_from(trigger_gap);
            })
        }
        Change::SetOwner { obligation_id, responsible_owner } => amend(state, obligation_id, version, |obligation| {
            obligation.responsible_owner = responsible_owner.clone();
        }),
        Change::AddDependency { dependency } => state.put(Item::Dependency(dependency.clone()), version),
        Change::RemoveDependency { dependency_id } => {
            state.remove(ItemKind::Dependency, &dependency_id.into());
            Ok(())
        }
        Change::SuspendEligibility { restriction } => state.put(Item::Restriction(restriction.clone()), version),
        Change::LiftRestriction { restriction_id, .. } => {
            set_standing(state, ItemKind::Restriction, &restriction_id.into(), Standing::Retracted, version)
        }
    }
}

pub(crate) fn set_standing(
    state: &mut State,
    kind: ItemKind,
    id: &Id,
    standing: Standing,
    version: u64,
) -> Result<(), Fault> {
    let item = state.item(kind, id).ok_or_else(|| absent(kind, id))?.item.clone();
    state.put(with_standing(item, standing), version)
}

pub(crate) fn revoke(state: &mut State, grant_id: &GrantId, cause: &Cause) -> Result<(), Fault> {
    let mut grant = state.grant(grant_id).ok_or_else(|| absent(ItemKind::Grant, &grant_id.into()))?.clone();
    grant.revocation.revoked_by = Some(cause.delta.clone());
    state.put(Item::Grant(grant), cause.version)
}

pub(crate) fn arm(state: &mut State, reentries: &[Reentry], version: u64) -> Result<(), Fault> {
    reentries.iter().try_for_each(|reentry| state.put(Item::Reentry(reentry.clone()), version))
}

fn disarm(state: &mut State, obligation_id: &ObligationId, kept: &[ReentryId]) -> Result<(), Fault> {
    let obligation = find(state, obligation_id)?;
    let gone: Vec<ReentryId> = obligation.reentry_refs.iter().filter(|id| !kept.contains(id)).cloned().collect();
    gone.iter().for_each(|id| state.remove(ItemKind::Reentry, &id.into()));
    Ok(())
}

fn find<'a>(state: &'a State, id: &ObligationId) -> Result<&'a Obligation, Fault> {
    state.obligation(id).ok_or_else(|| absent(ItemKind::Obligation, &id.into()))
}

fn amend(
    state: &mut State,
    id: &ObligationId,
    version: u64,
    amendment: impl FnOnce(&mut Obligation),
) -> Result<(), Fault> {
    let mut obligation = find(state, id)?.clone();
    amendment(&mut obligation);
    state.put(Item::Obligation(obligation), version)
}
