//! What the service derives in the same commit, outside the delta's changes. Spec: §3.2, DEC-35, DEC-66, §7.2.
//!
//! Only descriptive items (claims and methods) are suspended when a premise goes. A normative item that rests on it is
//! named for reconsideration and stays as it is: facts never alter what is wanted or permitted.

use crate::accepted::is_invalidated;
use crate::fold::{Cause, arm, revoke, set_standing};
use crate::state::State;
use closer_contracts::branch;
use closer_contracts::delta::Change;
use closer_contracts::id::{ActorId, GrantId, Id, Key, ObligationId, PolicyId, ReentryId, Text};
use closer_contracts::item::{Item, ItemKind, Standing};
use closer_contracts::obligation::{Condition, Gap, Obligation, ObligationStatus, Origin};
use closer_contracts::reentry::{Reentry, TimeReached, TypedPredicate};
use closer_contracts::refs::{Amounts, ArtifactRef, Scope};
use closer_contracts::{Fault, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// One change that the service made because of the delta's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "derived", rename_all = "snake_case", deny_unknown_fields)]
pub enum DerivedChange {
    /// A claim or method is suspended: a premise of it was invalidated (DEC-35).
    Suspend {
        /// The item's kind.
        kind: ItemKind,
        /// The item.
        id: Id,
        /// The premise that went.
        premise: Id,
    },
    /// A grant is revoked with the grant it was delegated from (DEC-66).
    RevokeDelegate {
        /// The delegate's grant.
        grant_id: GrantId,
        /// The grant it was delegated from.
        premise: GrantId,
    },
    /// An item that rests on what was invalidated, or that no longer rests on what it did: unchanged, but to be looked at
    /// again. An obligation becomes eligible.
    Reconsider {
        /// The item's kind.
        kind: ItemKind,
        /// The item.
        id: Id,
        /// The premise that went, or from which it was untied.
        premise: Id,
    },
    /// The duty to reconcile an urgent restriction, from the profile's standing requirement (DEC-30).
    Oblige {
        /// The obligation.
        obligation: Box<Obligation>,
        /// Its triggers.
        reentries: Vec<Reentry>,
    },
}

impl DerivedChange {
    /// The item the change is about.
    #[must_use]
    pub fn subject(&self) -> (ItemKind, Id) {
        match self {
            Self::Suspend { kind, id, .. } | Self::Reconsider { kind, id, .. } => (*kind, id.clone()),
            Self::RevokeDelegate { grant_id, .. } => (ItemKind::Grant, grant_id.into()),
            Self::Oblige { obligation, .. } => (ItemKind::Obligation, (&obligation.obligation_id).into()),
        }
    }
}

/// Folds a derived change into the state.
///
/// # Errors
/// As the fold of a change.
pub(crate) fn fold_derived(state: &mut State, derived: &DerivedChange, cause: &Cause) -> Result<(), Fault> {
    match derived {
        DerivedChange::Suspend { kind, id, .. } => set_standing(state, *kind, id, Standing::Suspended, cause.version),
        DerivedChange::RevokeDelegate { grant_id, .. } => revoke(state, grant_id, cause),
        DerivedChange::Reconsider { .. } => Ok(()),
        DerivedChange::Oblige { obligation, reentries } => {
            state.put(Item::Obligation((**obligation).clone()), cause.version)?;
            arm(state, reentries, cause.version)
        }
    }
}

/// Whether claims and methods may be suspended: an urgent commit leaves them to the ordinary path (DEC-35).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Knowledge,
    AuthorityOnly,
}

/// What follows from the invalidation of these items, in breadth-first order; each item is visited once.
///
/// Nothing is changed here: the list is folded by the caller. Linear in what is affected.
pub(crate) fn consequences(state: &State, invalidated: Vec<Id>, reach: Reach) -> Vec<DerivedChange> {
    cascade(state, invalidated, reach).derived
}

/// What follows, and what it took to find out.
pub(crate) struct Cascade {
    pub(crate) derived: Vec<DerivedChange>,
    /// How many ties were looked at: each once, so that the work grows with what is affected and with nothing else.
    #[cfg_attr(not(test), expect(dead_code, reason = "counted so that tests can tell the work without a clock"))]
    pub(crate) ties: u64,
}

/// Walks from premise to dependent.
pub(crate) fn cascade(state: &State, invalidated: Vec<Id>, reach: Reach) -> Cascade {
    let mut ties = 0;
    let mut seen: BTreeSet<(ItemKind, Id)> = BTreeSet::new();
    let mut queue: VecDeque<Id> = invalidated.into();
    for id in &queue {
        seen.extend(state.locate(id).map(|accepted| (accepted.item.kind(), id.clone())));
    }
    let mut derived = Vec::new();
    while let Some(premise) = queue.pop_front() {
        let watchers = state.obligations_watching_item(&premise).map(|obligation| Id::from(&obligation.obligation_id));
        let dependents = state.dependents_of(&premise).cloned();
        for dependent in dependents.chain(watchers).collect::<Vec<_>>() {
            ties += 1;
            for accepted in state.locate(&dependent) {
                if seen.insert((accepted.item.kind(), dependent.clone())) {
                    let change = consequence(state, &accepted.item, &premise, reach);
                    if invalidates(&change) {
                        queue.push_back(dependent.clone());
                    }
                    derived.extend(change);
                }
            }
        }
    }
    Cascade { derived, ties }
}

const fn invalidates(change: &Option<DerivedChange>) -> bool {
    matches!(change, Some(DerivedChange::Suspend { .. } | DerivedChange::RevokeDelegate { .. }))
}

fn consequence(state: &State, item: &Item, premise: &Id, reach: Reach) -> Option<DerivedChange> {
    let (kind, id, premise) = (item.kind(), item.id(), premise.clone());
    match item {
        item if is_invalidated(item) => None,
        Item::Claim(_) | Item::Method(_) if branch!("state.cascade_reaches_knowledge", reach == Reach::Knowledge) => {
            Some(DerivedChange::Suspend { kind, id, premise })
        }
        Item::Grant(grant) if branch!("state.delegate_falls", state.item(ItemKind::Grant, &premise).is_some()) => {
            let premise = GrantId::new(premise.as_str());
            Some(DerivedChange::RevokeDelegate { grant_id: grant.grant_id.clone(), premise })
        }
        Item::Claim(_)
        | Item::Method(_)
        | Item::Grant(_)
        | Item::Goal(_)
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
        | Item::Appointment(_)
        | Item::Coalition(_)
        | Item::Capability(_)
        | Item::Workflow(_)
        | Item::Skill(_)
        | Item::Profile(_) => Some(DerivedChange::Reconsider { kind, id, premise }),
    }
}

/// What a change unties: a removed dependency, or a premise that a method no longer names. Judged against the state
/// before the change, so that the commit itself says which ties are gone.
pub(crate) fn untied(state: &State, change: &Change) -> Vec<DerivedChange> {
    let mut ties: Vec<(Id, Id)> = Vec::new();
    if let Change::RemoveDependency { dependency_id } = change
        && let Some(tie) = state.dependency(dependency_id)
    {
        ties.push((tie.dependent.clone(), tie.premise.clone()));
    }
    if let Change::Revise { item, .. } = change
        && let Item::Method(new) = &**item
        && let Some(old) = state.method(&new.method_id)
    {
        let gone = old.dependencies.iter().filter(|premise| !new.dependencies.contains(premise));
        ties.extend(gone.map(|premise| ((&new.method_id).into(), premise.clone())));
    }
    let named = |(id, premise): &(Id, Id)| {
        let found = state.locate(id).map(|accepted| accepted.item.kind());
        found
            .map(|kind| DerivedChange::Reconsider { kind, id: id.clone(), premise: premise.clone() })
            .collect::<Vec<_>>()
    };
    ties.iter().flat_map(named).collect()
}

/// What the protocol hands over for the duty to reconcile an urgent commit: fresh ids, the deadline and who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duty {
    /// The issuer of the restriction.
    pub issuer: ActorId,
    /// The obligation's fresh id.
    pub obligation_id: ObligationId,
    /// Its trigger's fresh id.
    pub reentry_id: ReentryId,
    /// The commit of the profile that holds the standing requirement (DEC-30).
    pub origin: ArtifactRef,
    /// The scope it is about.
    pub scope: Scope,
    /// What is to be reconciled, for people.
    pub text: Text,
    /// What settles it.
    pub condition: Condition,
    /// The finite deadline, which arms the trigger.
    pub due_at: Timestamp,
    /// Who answers for it; never the issuer.
    pub independent_owner: ActorId,
    /// The policy after the trigger fired.
    pub refresh_policy_ref: PolicyId,
    /// The policy when the trigger expires.
    pub expiry_policy_ref: PolicyId,
}

impl Duty {
    pub(crate) fn oblige(&self) -> DerivedChange {
        let reentry = Reentry {
            reentry_id: self.reentry_id.clone(),
            obligation_id: self.obligation_id.clone(),
            predicate: TypedPredicate::TimeReached(TimeReached { at: self.due_at.clone() }),
            event_sources: Vec::new(),
            eligible_work: vec![Key::from("reconciliation")],
            resource_posture: Amounts::default(),
            deduplication_key: Key::from(self.reentry_id.as_str()),
            expires_at: None,
            refresh_policy_ref: self.refresh_policy_ref.clone(),
            expiry_policy_ref: self.expiry_policy_ref.clone(),
            extensions: None,
        };
        let obligation = Obligation {
            obligation_id: self.obligation_id.clone(),
            origin: Origin::Commit(self.origin.clone()),
            scope: self.scope.clone(),
            gap: Gap { text: self.text.clone(), propositions: vec![self.condition.proposition.clone()] },
            resolution_conditions: vec![self.condition.clone()],
            dependencies: Vec::new(),
            status: ObligationStatus::Active,
            responsible_owner: self.independent_owner.clone(),
            authority_boundary: Vec::new(),
            closure_authority: self.independent_owner.clone(),
            reentry_refs: vec![self.reentry_id.clone()],
            trigger_gap: None,
            extensions: None,
        };
        DerivedChange::Oblige { obligation: Box::new(obligation), reentries: vec![reentry] }
    }
}
