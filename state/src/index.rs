//! Secondary indexes over accepted items, kept as items come and go, so that a lookup costs what it touches.

use crate::accepted::is_invalidated;
use crate::awaited::{Awaited, awaited, moments};
use closer_contracts::Timestamp;
use closer_contracts::id::{EntityId, Id, OperationId, PropositionId};
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::obligation::Watch;
use imbl::OrdSet;
use std::ops::Bound;

/// Which members stand under a key, in id order.
#[derive(Debug, Clone)]
pub(crate) struct Index<K: Ord + Clone>(OrdSet<(K, Id)>);

impl<K: Ord + Clone> Default for Index<K> {
    fn default() -> Self {
        Self(OrdSet::new())
    }
}

impl<K: Ord + Clone> Index<K> {
    pub(crate) fn of(&self, key: K) -> impl Iterator<Item = &Id> {
        let from = Bound::Included((key.clone(), Id::from("")));
        self.0.range((from, Bound::Unbounded)).take_while(move |(other, _)| *other == key).map(|(_, member)| member)
    }

    /// The members at keys up to and including `last`, in key order; a member may come more than once.
    pub(crate) fn up_to(&self, last: K) -> impl Iterator<Item = &Id> {
        self.0.iter().take_while(move |(key, _)| *key <= last).map(|(_, member)| member)
    }

    /// The first key after `key`.
    pub(crate) fn next_after(&self, key: K) -> Option<&K> {
        let from = Bound::Excluded((key.clone(), Id::from("")));
        self.0.range((from, Bound::Unbounded)).map(|(next, _)| next).find(|next| **next > key)
    }

    fn set(&mut self, key: K, member: &Id, held: Held) {
        let entry = (key, member.clone());
        match held {
            Held::Yes => drop(self.0.insert(entry)),
            Held::No => drop(self.0.remove(&entry)),
        }
    }
}

/// Whether an item enters the indexes or leaves them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Held {
    Yes,
    No,
}

/// All indexes of a state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Indexes {
    /// Proposition → claims on it.
    pub(crate) claims: Index<PropositionId>,
    /// Operation → grants that allow it.
    pub(crate) grants: Index<OperationId>,
    /// Entity → obligations that watch it.
    pub(crate) entity_watchers: Index<EntityId>,
    /// Item → obligations that watch it.
    pub(crate) item_watchers: Index<Id>,
    /// Premise → the dependencies and methods that name it.
    pub(crate) premises: Index<Id>,
    /// Dependent → the dependencies that name it.
    pub(crate) dependents: Index<Id>,
    /// Open obligations, and constraints and restrictions in force, by kind.
    pub(crate) in_force: Index<ItemKind>,
    /// Cited evidence → obligations that watch for it.
    pub(crate) evidence_watchers: Index<Id>,
    /// An input → the triggers and reviewed gaps that wait for it.
    pub(crate) awaited: Index<Awaited>,
    /// A moment → the triggers and reviewed gaps that may become due at it.
    pub(crate) moments: Index<Timestamp>,
}

impl Indexes {
    pub(crate) fn update(&mut self, item: &Item, held: Held) {
        let id = item.id();
        awaited(item).into_iter().for_each(|input| self.awaited.set(input, &id, held));
        moments(item).into_iter().for_each(|moment| self.moments.set(moment, &id, held));
        match item {
            Item::Claim(claim) => self.claims.set(claim.proposition.proposition_id.clone(), &id, held),
            Item::Grant(grant) => {
                for operation in &grant.allowed_operations {
                    self.grants.set(operation.clone(), &id, held);
                }
            }
            Item::Obligation(obligation) => {
                for dependency in &obligation.dependencies {
                    match &dependency.watch {
                        Watch::Entity { entity_ref, evidence_ids, .. } => {
                            self.entity_watchers.set(entity_ref.clone(), &id, held);
                            for evidence in evidence_ids {
                                self.evidence_watchers.set(evidence.clone(), &id, held);
                            }
                        }
                        Watch::Item { id: watched } => self.item_watchers.set(watched.clone(), &id, held),
                    }
                }
                if obligation.status.is_open() {
                    self.in_force.set(ItemKind::Obligation, &id, held);
                }
            }
            Item::Dependency(dependency) => {
                self.premises.set(dependency.premise.clone(), &id, held);
                self.dependents.set(dependency.dependent.clone(), &id, held);
            }
            Item::Method(method) => {
                for premise in &method.dependencies {
                    self.premises.set(premise.clone(), &id, held);
                }
            }
            Item::Constraint(_) | Item::Restriction(_) => {
                if !is_invalidated(item) {
                    self.in_force.set(item.kind(), &id, held);
                }
            }
            Item::Goal(_)
            | Item::Reentry(_)
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
            | Item::Profile(_) => {}
        }
    }
}
