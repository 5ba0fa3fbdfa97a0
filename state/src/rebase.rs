//! Staleness without starvation: a delta whose parent has moved is reissued mechanically where nothing it reads or writes
//! was touched. Spec: design §4, the registered rule `rebase@1`.

use crate::accepted::only;
use crate::commit::{Commit, changes, invalidates, propositions, touched};
use crate::denied::{Denied, demand};
use crate::derive::{DerivedChange, Reach, consequences, untied};
use crate::state::State;
use closer_contracts::delta::{Change, ChangeClass, Delta};
use closer_contracts::id::{DeltaId, Id};
use closer_contracts::item::{AffectedScope, Dependency, Item};
use closer_contracts::obligation::{Obligation, Watch};
use closer_contracts::reentry::{Reentry, TypedPredicate};
use closer_contracts::refs::TargetPattern;
use closer_contracts::{RefusalCode, branch};
use std::collections::BTreeSet;

/// What a delta relies on and what it changes: ids of items and propositions, which are unique in a space across kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sets {
    /// What must be as it was.
    pub reads: BTreeSet<Id>,
    /// What it changes, derived changes included.
    pub writes: BTreeSet<Id>,
}

impl Sets {
    /// The first id that the other's writes share with either set.
    #[must_use]
    pub fn touched_by<'a>(&self, writes: impl IntoIterator<Item = &'a Id>) -> Option<&'a Id> {
        writes.into_iter().find(|id| self.reads.contains(*id) || self.writes.contains(*id))
    }

    fn reads(&mut self, ids: impl IntoIterator<Item = impl Into<Id>>) {
        self.reads.extend(ids.into_iter().map(Into::into));
    }

    fn writes(&mut self, ids: impl IntoIterator<Item = impl Into<Id>>) {
        self.writes.extend(ids.into_iter().map(Into::into));
    }
}

/// The read and write set of a delta against a state.
#[must_use]
pub fn sets(delta: &Delta, state: &State) -> Sets {
    let mut sets = Sets::default();
    // The limits in force bound what may be admitted.
    sets.reads(state.profile().map(|profile| &profile.profile_id));
    sets.writes(propositions(delta));
    for change in changes(delta) {
        sets.writes([change.subject().1]);
        read_by(&change, state, &mut sets);
        sets.writes(untied(state, &change).iter().map(|derived| derived.subject().1));
    }
    let invalidated = delta.changes.iter().filter(|change| invalidates(change)).map(|change| change.subject().1);
    let derived = consequences(state, invalidated.collect(), Reach::Knowledge);
    sets.writes(derived.iter().map(|derived| derived.subject().1));
    sets
}

fn read_by(change: &Change, state: &State, sets: &mut Sets) {
    match change {
        Change::Add { item } | Change::Revise { item, .. } => {
            sets.reads(state.premises_of(&item.id()).cloned());
            item_reads(item, sets);
        }
        Change::AdmitObligation { obligation, reentries } => {
            obligation_reads(obligation, sets);
            reentries.iter().for_each(|reentry| trigger_reads(reentry, sets));
        }
        Change::SetStatus { obligation_id, successor, .. } => {
            sets.writes(state.reentries_of(obligation_id).map(|reentry| &reentry.reentry_id));
            sets.reads(successor);
        }
        Change::SetConditions { conditions, .. } => {
            sets.reads(conditions.iter().map(|condition| condition.evidence_rule_ref.id.clone()));
            sets.reads(conditions.iter().map(|condition| &condition.proposition));
        }
        Change::SetTriggers { obligation_id, reentries, trigger_gap } => {
            sets.writes(state.reentries_of(obligation_id).map(|reentry| &reentry.reentry_id));
            reentries.iter().for_each(|reentry| trigger_reads(reentry, sets));
            sets.reads(trigger_gap.as_ref().map(|gap| &gap.responsible_owner));
        }
        Change::SetOwner { responsible_owner, .. } => sets.reads([responsible_owner]),
        Change::AddDependency { dependency } => edge_writes(dependency, sets),
        Change::RemoveDependency { dependency_id } => {
            state.dependency(dependency_id).into_iter().for_each(|dependency| edge_writes(dependency, sets));
        }
        Change::SuspendEligibility { restriction } => scope_reads(&restriction.affected_scope, sets),
        Change::Suspend { .. }
        | Change::Retract { .. }
        | Change::RevokeGrant { .. }
        | Change::LiftRestriction { .. } => {}
    }
}

/// A dependency decides what becomes of both of its ends, so that it touches both.
fn edge_writes(dependency: &Dependency, sets: &mut Sets) {
    sets.writes([&dependency.premise, &dependency.dependent].map(Id::clone));
}

fn item_reads(item: &Item, sets: &mut Sets) {
    match item {
        Item::Claim(claim) => {
            sets.reads([claim.sufficiency_rule_ref.id.clone(), claim.proposition.subject.clone()]);
            sets.reads(claim.relations.iter().map(|relation| &relation.proposition_id));
        }
        Item::Method(method) => sets.writes(method.dependencies.iter().cloned()),
        Item::Grant(grant) => sets.reads(&grant.allowed_operations),
        Item::Constraint(constraint) => sets.reads(&constraint.operations),
        Item::Operation(operation) => sets.reads([operation.readback_method.id.clone()]),
        Item::ReadbackMethod(method) => sets.reads([&method.source]),
        Item::Source(source) => sets.reads(&source.emitters),
        Item::Appointment(appointment) => {
            sets.reads([&appointment.issuer, &appointment.independent_owner]);
            sets.reads(&appointment.operations);
            sets.reads([&appointment.escalation_policy_ref]);
        }
        Item::Identity(identity) => sets.reads([&identity.appointed_by]),
        Item::Coalition(coalition) => {
            sets.reads(coalition.members.iter().map(|member| &member.actor));
            sets.reads(&coalition.obligations);
        }
        Item::Capability(capability) => sets.reads(capability.endpoints.iter().map(|endpoint| &endpoint.identity)),
        Item::Skill(skill) => {
            sets.reads(&skill.workflows);
            sets.reads(&skill.methods);
        }
        Item::Goal(_)
        | Item::Workflow(_)
        | Item::Obligation(_)
        | Item::Dependency(_)
        | Item::Reentry(_)
        | Item::Restriction(_)
        | Item::Rule(_)
        | Item::Policy(_)
        | Item::Profile(_) => {}
    }
}

fn obligation_reads(obligation: &Obligation, sets: &mut Sets) {
    sets.reads([&obligation.responsible_owner, &obligation.closure_authority]);
    sets.reads(obligation.authority_boundary.iter().cloned());
    sets.reads(obligation.resolution_conditions.iter().map(|condition| condition.evidence_rule_ref.id.clone()));
    sets.reads(obligation.trigger_gap.as_ref().map(|gap| &gap.responsible_owner));
    for dependency in &obligation.dependencies {
        if let Watch::Item { id } = &dependency.watch {
            sets.reads([id.clone()]);
        }
    }
}

fn trigger_reads(reentry: &Reentry, sets: &mut Sets) {
    sets.writes([&reentry.reentry_id]);
    sets.reads(reentry.event_sources.iter().map(|source| &source.source_id));
    sets.reads([&reentry.refresh_policy_ref, &reentry.expiry_policy_ref]);
    predicate_reads(&reentry.predicate, sets);
}

fn predicate_reads(predicate: &TypedPredicate, sets: &mut Sets) {
    match predicate {
        TypedPredicate::EvidenceAdded(leaf) => sets.reads(&leaf.permitted_source_refs),
        TypedPredicate::DependencyVersionChanged(leaf) => sets.reads([leaf.dependency_ref.clone()]),
        TypedPredicate::All(_)
        | TypedPredicate::Any(_)
        | TypedPredicate::UserDecisionReceived(_)
        | TypedPredicate::CapabilityVerified(_)
        | TypedPredicate::HandoffAccepted(_)
        | TypedPredicate::TimeReached(_)
        | TypedPredicate::Unsupported(_) => {
            predicate.children().iter().for_each(|child| predicate_reads(child, sets));
        }
    }
}

fn scope_reads(scope: &AffectedScope, sets: &mut Sets) {
    match scope {
        AffectedScope::Space {} | AffectedScope::Target { operation: None, .. } => {}
        AffectedScope::Operation { operation } | AffectedScope::Target { operation: Some(operation), .. } => {
            sets.reads([operation]);
        }
        AffectedScope::Grant { grant_id } => sets.reads([grant_id]),
        AffectedScope::Obligation { obligation_id } => sets.reads([obligation_id]),
    }
}

/// Reissues a delta against the current state: the same changes, a fresh id, the current parent.
///
/// `between` are all commits from the delta's parent to the current state, in order.
///
/// # Errors
/// `stale_parent` when a commit in between touched what the delta reads or writes, a restriction in force covers it, or
/// `between` is not that history; `missing_authority` when a change that needs authority names none.
pub fn rebase<'a>(
    delta: &Delta,
    current: &State,
    between: impl IntoIterator<Item = &'a Commit>,
    fresh_id: DeltaId,
) -> Result<Delta, Denied> {
    let stale = |offending: &dyn std::fmt::Display, reason| Denied::new(RefusalCode::StaleParent, offending, reason);
    let sets = sets(delta, current);
    let mut reached = delta.parent_state;
    for commit in between {
        demand(commit.parent == reached, || stale(&commit.version, "the history since the parent has a gap"))?;
        reached = commit.after;
        let written = written(commit);
        let shared = sets.touched_by(&written);
        demand(!branch!("state.rebase_touched", shared.is_some()), || {
            stale(&shared.map_or("", Id::as_str), "a commit since the parent touched what the delta reads or writes")
        })?;
    }
    demand(reached == current.reference(), || stale(&reached.version, "the history since the parent has a gap"))?;
    let covering = current.restrictions_in_force().find(|r| covers(&r.affected_scope, delta, &sets));
    demand(!branch!("state.rebase_restricted", covering.is_some()), || {
        let offending = covering.map_or("", |restriction| restriction.restriction_id.as_str());
        stale(&offending, "a restriction in force covers the delta")
    })?;
    // A closing change keeps its closure authority's position in the original endorsement; the commit asks for it.
    let needs_authority = |change: &Change| matches!(change.class(), ChangeClass::Normative | ChangeClass::Restrictive);
    let bare = delta.changes.iter().any(needs_authority) && delta.required_authority_refs.is_empty();
    demand(!branch!("state.rebase_lacks_authority", bare), || {
        Denied::new(RefusalCode::MissingAuthority, &delta.delta_id, "the change names no original authority to keep")
    })?;
    let reissued = Delta { delta_id: fresh_id, parent_state: current.reference(), ..delta.clone() };
    Ok(reissued.sealed()?)
}

/// What a commit wrote, as the sets of a later delta see it: items, propositions and both ends of every dependency.
fn written(commit: &Commit) -> BTreeSet<Id> {
    let mut written: BTreeSet<Id> = touched(commit).into_iter().map(|(_, id)| id).collect();
    written.extend(propositions(&commit.delta).iter().map(Id::from));
    written.extend(commit.derived.iter().filter_map(|derived| match derived {
        DerivedChange::Reconsider { premise, .. } => Some(premise.clone()),
        DerivedChange::Suspend { .. } | DerivedChange::RevokeDelegate { .. } | DerivedChange::Oblige { .. } => None,
    }));
    for change in changes(&commit.delta) {
        if let Change::AddDependency { dependency } = &*change {
            written.extend([dependency.premise.clone(), dependency.dependent.clone()]);
        }
        if let Change::Add { item } | Change::Revise { item, .. } = &*change
            && let Item::Method(method) = &**item
        {
            written.extend(method.dependencies.iter().cloned());
        }
    }
    written
}

/// Whether a restriction bears on what the delta is about.
fn covers(scope: &AffectedScope, delta: &Delta, sets: &Sets) -> bool {
    let names = |id: Id| sets.reads.contains(&id) || sets.writes.contains(&id);
    match scope {
        AffectedScope::Space {} => true,
        AffectedScope::Operation { operation } => names(operation.into()),
        AffectedScope::Grant { grant_id } => names(grant_id.into()),
        AffectedScope::Obligation { obligation_id } => names(obligation_id.into()),
        AffectedScope::Target { operation, targets } => {
            operation.as_ref().is_some_and(|operation| names(operation.into()))
                || delta.changes.iter().flat_map(targets_of).any(|other| other.overlaps(targets))
        }
    }
}

fn targets_of(change: &Change) -> &[TargetPattern] {
    let (Change::Add { item } | Change::Revise { item, .. }) = change else {
        return &[];
    };
    let granted = only!(&**item, Grant).map(|grant| grant.targets.as_slice());
    granted.or_else(|| only!(&**item, Constraint).map(|constraint| constraint.targets.as_slice())).unwrap_or_default()
}
