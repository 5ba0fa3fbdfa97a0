//! What is accepted now. A clone is O(1): the maps are persistent and share what did not change. Spec: §5, design §4.

use crate::accepted::{Accepted, only};
use crate::awaited::Awaited;
use crate::index::{Held, Indexes};
use crate::merkle::{Merkle, Proof};
use closer_contracts::audit::Grant;
use closer_contracts::canonical::hash_parts;
use closer_contracts::id::{
    ActorId, ClaimId, ConstraintId, DependencyId, EntityId, GoalId, GrantId, Id, MethodId, ObligationId, OperationId,
    PolicyId, PropositionId, ReadbackMethodId, ReentryId, RestrictionId, RuleId, SourceId,
};
use closer_contracts::item::{
    Appointment, Claim, Constraint, Dependency, Goal, Identity, Item, ItemKind, Method, OperationEntry, Policy,
    ReadbackMethod, Restriction, Rule, Source,
};
use closer_contracts::obligation::Obligation;
use closer_contracts::profile::{Limits, Profile};
use closer_contracts::reentry::Reentry;
use closer_contracts::refs::{StateRef, VersionedRef};
use closer_contracts::{Digest, Fault, Timestamp};
use imbl::OrdMap;
use std::sync::Arc;

/// One accepted state. Every version is identified by its [`StateRef`] and never changes. Spec: §5, SR2.
#[derive(Debug, Clone)]
pub struct State {
    reference: StateRef,
    items: OrdMap<ItemKind, OrdMap<Id, Arc<Accepted>>>,
    merkle: Merkle,
    indexes: Indexes,
}

impl Default for State {
    fn default() -> Self {
        Self::empty()
    }
}

impl State {
    /// Whether this is the user of the deployment, in whom all authority ends (SR1).
    #[must_use]
    pub fn is_user(&self, actor: &ActorId) -> bool {
        self.profile().is_some_and(|profile| profile.user == *actor)
    }

    /// The state before genesis: nothing is accepted.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            reference: StateRef { version: 0, digest: hash_parts("closer.state.empty.v1", &[]) },
            items: OrdMap::new(),
            merkle: Merkle::default(),
            indexes: Indexes::default(),
        }
    }

    /// Its version and digest.
    #[must_use]
    pub const fn reference(&self) -> StateRef {
        self.reference
    }

    /// The Merkle root over all items.
    #[must_use]
    pub fn root(&self) -> Digest {
        self.merkle.root()
    }

    /// The proof that an item is accepted with its digest under [`State::root`].
    #[must_use]
    pub fn prove(&self, kind: ItemKind, id: &Id) -> Option<Proof> {
        self.merkle.prove(kind, id)
    }

    /// The item of this kind and id, whatever its standing.
    #[must_use]
    pub fn item(&self, kind: ItemKind, id: &Id) -> Option<&Accepted> {
        self.items.get(&kind)?.get(id).map(Arc::as_ref)
    }

    /// All items of a kind in id order, whatever their standing.
    pub fn items(&self, kind: ItemKind) -> impl Iterator<Item = &Accepted> {
        self.items.get(&kind).into_iter().flat_map(OrdMap::values).map(Arc::as_ref)
    }

    /// The items with this id: one, except that an appointment has the id of its issuer's identity.
    pub fn locate<'a>(&'a self, id: &Id) -> impl Iterator<Item = &'a Accepted> {
        self.items.values().filter_map(move |items| items.get(id)).map(Arc::as_ref)
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.values().map(OrdMap::len).sum()
    }

    /// Whether nothing is accepted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn put(&mut self, item: Item, since: u64) -> Result<(), Fault> {
        let digest = item.digest()?;
        let (kind, id) = (item.kind(), item.id());
        self.forget(kind, &id);
        self.indexes.update(&item, Held::Yes);
        self.merkle.insert(kind, &id, digest);
        let accepted = Accepted { item, digest, since };
        self.items.entry(kind).or_default().insert(id, Arc::new(accepted));
        Ok(())
    }

    pub(crate) fn remove(&mut self, kind: ItemKind, id: &Id) {
        self.forget(kind, id);
        self.merkle.remove(kind, id);
        if let Some(items) = self.items.get_mut(&kind) {
            items.remove(id);
        }
    }

    fn forget(&mut self, kind: ItemKind, id: &Id) {
        if let Some(old) = self.items.get(&kind).and_then(|items| items.get(id)).cloned() {
            self.indexes.update(&old.item, Held::No);
        }
    }

    pub(crate) const fn set_reference(&mut self, reference: StateRef) {
        self.reference = reference;
    }
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident($id:ty) -> $variant:ident($ty:ty);)+) => {
        impl State {$(
            $(#[$doc])*
            #[must_use]
            pub fn $name(&self, id: &$id) -> Option<&$ty> {
                only!(&self.item(ItemKind::$variant, &id.into())?.item, $variant)
            }
        )+}
    };
}

getters! {
    /// The goal, whatever its standing.
    goal(GoalId) -> Goal(Goal);
    /// The constraint, whatever its standing.
    constraint(ConstraintId) -> Constraint(Constraint);
    /// The grant, revoked or not.
    grant(GrantId) -> Grant(Grant);
    /// The claim, whatever its standing.
    claim(ClaimId) -> Claim(Claim);
    /// The method, whatever its standing.
    method(MethodId) -> Method(Method);
    /// The obligation, open or closed.
    obligation(ObligationId) -> Obligation(Obligation);
    /// The dependency.
    dependency(DependencyId) -> Dependency(Dependency);
    /// The installed trigger.
    reentry(ReentryId) -> Reentry(Reentry);
    /// The restriction, lifted or not.
    restriction(RestrictionId) -> Restriction(Restriction);
    /// The registered operation, whatever its standing.
    operation(OperationId) -> Operation(OperationEntry);
    /// The registered readback method at its accepted version.
    readback_method(ReadbackMethodId) -> ReadbackMethod(ReadbackMethod);
    /// The registered identity, whatever its standing.
    identity(ActorId) -> Identity(Identity);
    /// The registered source, whatever its standing.
    source(SourceId) -> Source(Source);
    /// The policy at its accepted version.
    policy(PolicyId) -> Policy(Policy);
    /// The appointment of an urgent issuer.
    appointment(ActorId) -> Appointment(Appointment);
}

impl State {
    /// The rule, if its accepted version is the one cited.
    #[must_use]
    pub fn rule(&self, reference: &VersionedRef) -> Option<&Rule> {
        only!(&self.item(ItemKind::Rule, &reference.id)?.item, Rule).filter(|rule| rule.version == reference.version)
    }

    /// The rule at its accepted version.
    #[must_use]
    pub fn rule_now(&self, id: &RuleId) -> Option<&Rule> {
        only!(&self.item(ItemKind::Rule, &id.into())?.item, Rule)
    }

    /// The readback method, if its accepted version is the one cited.
    #[must_use]
    pub fn readback_method_at(&self, reference: &VersionedRef) -> Option<&ReadbackMethod> {
        only!(&self.item(ItemKind::ReadbackMethod, &reference.id)?.item, ReadbackMethod)
            .filter(|method| method.version == reference.version)
    }

    /// The deployment profile in force.
    #[must_use]
    pub fn profile(&self) -> Option<&Profile> {
        self.items(ItemKind::Profile).find_map(|accepted| only!(&accepted.item, Profile))
    }

    /// The limits in force: the profile's, or the defaults before there is one.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.profile().map_or_else(Limits::default, |profile| profile.limits.clone())
    }

    /// Open obligations in id order.
    pub fn open_obligations(&self) -> impl Iterator<Item = &Obligation> {
        self.in_force(ItemKind::Obligation).filter_map(|accepted| only!(&accepted.item, Obligation))
    }

    /// Restrictions in force in id order.
    pub fn restrictions_in_force(&self) -> impl Iterator<Item = &Restriction> {
        self.in_force(ItemKind::Restriction).filter_map(|accepted| only!(&accepted.item, Restriction))
    }

    /// Constraints in force in id order.
    pub fn constraints_in_force(&self) -> impl Iterator<Item = &Constraint> {
        self.in_force(ItemKind::Constraint).filter_map(|accepted| only!(&accepted.item, Constraint))
    }

    fn in_force(&self, kind: ItemKind) -> impl Iterator<Item = &Accepted> {
        self.indexes.in_force.of(kind).filter_map(move |id| self.item(kind, id))
    }

    /// Claims on a proposition in id order, whatever their standing.
    pub fn claims_on<'a>(&'a self, proposition: &PropositionId) -> impl Iterator<Item = &'a Accepted> {
        self.indexes.claims.of(proposition.clone()).filter_map(|id| self.item(ItemKind::Claim, id))
    }

    /// Grants that allow an operation in id order, revoked ones included.
    pub fn grants_allowing<'a>(&'a self, operation: &OperationId) -> impl Iterator<Item = &'a Grant> {
        self.indexes.grants.of(operation.clone()).filter_map(|id| only!(&self.item(ItemKind::Grant, id)?.item, Grant))
    }

    /// The triggers installed for an obligation, in the order it lists them.
    pub fn reentries_of(&self, obligation: &ObligationId) -> impl Iterator<Item = &Reentry> {
        let listed = self.obligation(obligation).map(|obligation| obligation.reentry_refs.iter());
        listed.into_iter().flatten().filter_map(|id| self.reentry(id))
    }

    /// Obligations that watch an entity, open or closed, in id order.
    pub fn obligations_watching_entity<'a>(&'a self, entity: &EntityId) -> impl Iterator<Item = &'a Obligation> {
        self.indexes.entity_watchers.of(entity.clone()).filter_map(|id| self.obligation_by(id))
    }

    /// Obligations that watch an accepted item, open or closed, in id order.
    pub fn obligations_watching_item<'a>(&'a self, item: &Id) -> impl Iterator<Item = &'a Obligation> {
        self.indexes.item_watchers.of(item.clone()).filter_map(|id| self.obligation_by(id))
    }

    /// Obligations that watch for this evidence being cited, open or closed, in id order.
    pub fn obligations_watching_evidence<'a>(&'a self, evidence: &Id) -> impl Iterator<Item = &'a Obligation> {
        self.indexes.evidence_watchers.of(evidence.clone()).filter_map(|id| self.obligation_by(id))
    }

    /// The installed triggers that wait for this input, in id order.
    pub fn triggers_awaiting<'a>(&'a self, input: &Awaited) -> impl Iterator<Item = &'a Reentry> {
        self.indexes.awaited.of(input.clone()).filter_map(|id| self.reentry_by(id))
    }

    /// The obligations with a gap whose review waits for this input, in id order.
    pub fn gaps_awaiting<'a>(&'a self, input: &Awaited) -> impl Iterator<Item = &'a Obligation> {
        self.indexes.awaited.of(input.clone()).filter_map(|id| self.obligation_by(id))
    }

    /// The installed triggers with a moment of their own up to `now`, expiry included; one may come more than once.
    pub fn triggers_due<'a>(&'a self, now: &Timestamp) -> impl Iterator<Item = &'a Reentry> {
        self.indexes.moments.up_to(now.clone()).filter_map(|id| self.reentry_by(id))
    }

    /// The obligations with a gap whose review names a moment up to `now`; one may come more than once.
    pub fn gaps_due<'a>(&'a self, now: &Timestamp) -> impl Iterator<Item = &'a Obligation> {
        self.indexes.moments.up_to(now.clone()).filter_map(|id| self.obligation_by(id))
    }

    /// The next moment after `now` at which a trigger or a gap's review may become due.
    #[must_use]
    pub fn next_moment(&self, now: &Timestamp) -> Option<&Timestamp> {
        self.indexes.moments.next_after(now.clone())
    }

    fn reentry_by(&self, id: &Id) -> Option<&Reentry> {
        only!(&self.item(ItemKind::Reentry, id)?.item, Reentry)
    }

    fn obligation_by(&self, id: &Id) -> Option<&Obligation> {
        only!(&self.item(ItemKind::Obligation, id)?.item, Obligation)
    }

    /// The ids of items that rest on a premise: by a dependency, or as a method that names it. In the order of those.
    pub fn dependents_of<'a>(&'a self, premise: &Id) -> impl Iterator<Item = &'a Id> {
        self.indexes.premises.of(premise.clone()).filter_map(|holder| match self.item(ItemKind::Dependency, holder) {
            Some(accepted) => only!(&accepted.item, Dependency).map(|dependency| &dependency.dependent),
            None => Some(holder),
        })
    }

    /// The ids of what an item rests on, by dependencies; a method also names its own.
    pub fn premises_of<'a>(&'a self, dependent: &Id) -> impl Iterator<Item = &'a Id> {
        let linked = self.indexes.dependents.of(dependent.clone()).filter_map(|holder| {
            only!(&self.item(ItemKind::Dependency, holder)?.item, Dependency).map(|dependency| &dependency.premise)
        });
        let method = self.item(ItemKind::Method, dependent).and_then(|accepted| only!(&accepted.item, Method));
        let named = method.into_iter().flat_map(|method| &method.dependencies);
        linked.chain(named)
    }
}
