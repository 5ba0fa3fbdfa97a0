//! The guards of obligations: how they are admitted, kept, settled and reopened. Spec: §5, C3, DEC-26, DEC-28, DEC-29.

use crate::denied::{Denied, demand};
use crate::guard::Admission;
use crate::guard::change::{is_fresh, resolve};
use crate::state::State;
use closer_contracts::id::{ActorId, Id, ObligationId};
use closer_contracts::item::ItemKind;
use closer_contracts::obligation::{
    AssessmentStatus, Condition, Obligation, ObligationStatus, Origin, TriggerGap, Watch,
};
use closer_contracts::reentry::Reentry;
use closer_contracts::{RefusalCode, branch};
use std::collections::BTreeSet;

/// Whether the obligation may be accepted: fresh, open, from a resolved origin, and citing only what exists.
pub(crate) fn admit(
    state: &State,
    obligation: &Obligation,
    reentries: &[Reentry],
    admission: &Admission<'_>,
) -> Result<(), Denied> {
    let id = &obligation.obligation_id;
    is_fresh(state, ItemKind::Obligation, &id.into())?;
    demand(branch!("state.admitted_open", obligation.status.is_open()), || {
        Denied::new(RefusalCode::NotClosable, id, "an obligation is admitted open")
    })?;
    let (Origin::Declaration(origin) | Origin::Commit(origin)) = &obligation.origin;
    demand(branch!("state.origin_resolves", admission.derivation.origins.contains(origin)), || {
        let reason = "the origin is neither a declaration in effect nor an accepted requirement";
        Denied::new(RefusalCode::NoOrigin, &origin.id, reason)
    })?;
    let listed = reentries.iter().map(|reentry| &reentry.reentry_id).eq(&obligation.reentry_refs);
    demand(listed, || Denied::schema(&id.into(), "the triggers listed are the triggers given, in this order"))?;
    triggers(state, id, reentries)?;
    cited(state, obligation)
}

fn cited(state: &State, obligation: &Obligation) -> Result<(), Denied> {
    for condition in &obligation.resolution_conditions {
        demand(state.rule(&condition.evidence_rule_ref).is_some(), || {
            Denied::unresolved(&condition.evidence_rule_ref.id, "no rule is registered at this version")
        })?;
    }
    let watched = obligation.dependencies.iter().filter_map(|dependency| match &dependency.watch {
        Watch::Item { id } => Some(id),
        Watch::Entity { .. } => None,
    });
    for id in watched.chain(&obligation.authority_boundary) {
        demand(state.locate(id).next().is_some(), || Denied::unresolved(id, "no accepted item has this id"))?;
    }
    identity(state, &obligation.responsible_owner)?;
    identity(state, &obligation.closure_authority)?;
    gap_owner(state, obligation.trigger_gap.as_ref())
}

/// Whether somebody registered has this id.
pub(crate) fn identity(state: &State, id: &ActorId) -> Result<(), Denied> {
    resolve(state, ItemKind::Identity, &id.into()).map(drop)
}

fn gap_owner(state: &State, gap: Option<&TriggerGap>) -> Result<(), Denied> {
    gap.map_or(Ok(()), |gap| identity(state, &gap.responsible_owner))
}

/// A trigger belongs to one obligation and never changes: a replacement has its own id.
fn triggers(state: &State, obligation_id: &ObligationId, reentries: &[Reentry]) -> Result<(), Denied> {
    let mut seen = BTreeSet::new();
    for reentry in reentries {
        let id = Id::from(&reentry.reentry_id);
        demand(reentry.obligation_id == *obligation_id, || {
            Denied::schema(&id, "the trigger names another obligation")
        })?;
        demand(seen.insert(&reentry.reentry_id), || Denied::schema(&id, "a trigger is listed once"))?;
        match state.reentry(&reentry.reentry_id) {
            Some(installed) if installed == reentry => {}
            Some(_) | None => is_fresh(state, ItemKind::Reentry, &id)?,
        }
    }
    Ok(())
}

/// A settled obligation changes only by being reopened (DEC-29).
pub(crate) fn changeable<'a>(
    state: &'a State,
    id: &ObligationId,
    admission: &Admission<'_>,
) -> Result<&'a Obligation, Denied> {
    resolve(state, ItemKind::Obligation, &id.into())?;
    let obligation = state
        .obligation(id)
        .filter(|obligation| branch!("state.open_or_reopened", obligation.status.is_open() || admission.reopens(id)));
    obligation
        .ok_or_else(|| Denied::new(RefusalCode::NotClosable, id, "a settled obligation changes only by being reopened"))
}

/// Whether the obligation may stand there: open ones move freely, closing takes authority, reopening leads to active.
pub(crate) fn set_status(
    state: &State,
    id: &ObligationId,
    status: ObligationStatus,
    successor: Option<&ObligationId>,
    admission: &Admission<'_>,
) -> Result<(), Denied> {
    let obligation = changeable(state, id, admission)?;
    let refused = |reason| Denied::new(RefusalCode::NotClosable, id, reason);
    demand(successor.is_none() || status == ObligationStatus::Superseded, || {
        Denied::schema(&id.into(), "only a superseded obligation names a successor")
    })?;
    let was_open = obligation.status.is_open();
    let reopens_active = was_open || status == ObligationStatus::Active;
    demand(branch!("state.reopens_active", reopens_active), || refused("a settled obligation is reopened as active"))?;
    if status.is_open() {
        return Ok(());
    }
    demand(branch!("state.closing_authorized", admission.derivation.closing.contains(id)), || {
        refused("its closure authority has not taken a positive position on this delta")
    })?;
    let unresolved =
        || obligation.resolution_conditions.iter().filter(|c| c.assessment_status != AssessmentStatus::Met);
    match status {
        ObligationStatus::Resolved => {
            demand(branch!("state.conditions_met", unresolved().next().is_none()), || refused("a condition is not met"))
        }
        ObligationStatus::Superseded => {
            let successor = successor.filter(|successor| *successor != id).and_then(|id| state.obligation(id));
            let covers = |successor: &&Obligation| {
                successor.status.is_open() && unresolved().all(|condition| is_covered(condition, successor))
            };
            demand(branch!("state.successor_covers", successor.is_some_and(|successor| covers(&successor))), || {
                refused("no admitted successor covers every unresolved condition")
            })
        }
        ObligationStatus::Withdrawn
        | ObligationStatus::Active
        | ObligationStatus::AwaitingEvent
        | ObligationStatus::AwaitingUserJudgment => Ok(()),
    }
}

fn is_covered(condition: &Condition, successor: &Obligation) -> bool {
    successor.resolution_conditions.iter().any(|other| {
        other.proposition == condition.proposition && other.evidence_rule_ref == condition.evidence_rule_ref
    })
}

/// Only the assessment of the conditions changes, never what they demand; a rule may rise to its accepted version.
pub(crate) fn set_conditions(
    state: &State,
    id: &ObligationId,
    conditions: &[Condition],
    admission: &Admission<'_>,
) -> Result<(), Denied> {
    let accepted = &changeable(state, id, admission)?.resolution_conditions;
    demand(accepted.len() == conditions.len(), || {
        Denied::new(RefusalCode::Cardinality, id, "the obligation has another number of conditions")
    })?;
    for (old, new) in accepted.iter().zip(conditions) {
        let same = old.id == new.id
            && old.proposition == new.proposition
            && old.evidence_rule_ref.id == new.evidence_rule_ref.id;
        demand(branch!("state.condition_is_kept", same), || {
            Denied::new(RefusalCode::KeyConflict, &new.id, "an assessment does not change what a condition demands")
        })?;
        demand(state.rule(&new.evidence_rule_ref).is_some(), || {
            Denied::unresolved(&new.evidence_rule_ref.id, "no rule is registered at this version")
        })?;
    }
    Ok(())
}

/// Whether the triggers may be installed in place of those there are.
pub(crate) fn set_triggers(
    state: &State,
    id: &ObligationId,
    reentries: &[Reentry],
    gap: Option<&TriggerGap>,
    admission: &Admission<'_>,
) -> Result<(), Denied> {
    changeable(state, id, admission)?;
    triggers(state, id, reentries)?;
    gap_owner(state, gap)
}
