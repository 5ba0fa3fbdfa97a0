//! The guards of the urgent path: restrictions and nothing else, with the duty to reconcile. Spec: §7.2, DEC-73 to DEC-75.

use crate::denied::{Denied, demand};
use crate::derive::DerivedChange;
use crate::guard::{Admission, obligation};
use crate::state::State;
use closer_contracts::delta::Change;
use closer_contracts::id::{ActorId, Id};
use closer_contracts::item::ItemKind;
use closer_contracts::{RefusalCode, branch};

/// The urgent path carries restrictions and nothing else, and is refused whole (§7.2).
pub(super) fn whole(state: &State, admission: &Admission<'_>) -> Vec<Denied> {
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
        | ItemKind::Policy
        | ItemKind::Coalition
        | ItemKind::Capability
        | ItemKind::Workflow
        | ItemKind::Skill => false,
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
        DerivedChange::Oblige { obligation, reentries } => obligation::admit(state, &obligation, &reentries, admission),
        DerivedChange::Suspend { .. } | DerivedChange::RevokeDelegate { .. } | DerivedChange::Reconsider { .. } => {
            Ok(())
        }
    }
}
