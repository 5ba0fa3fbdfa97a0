//! The commit: a delta admitted whole against the accepted state, with what the service derived. Spec: §5, C10, design §4.

use crate::accepted::is_invalidated;
use crate::denied::{Denied, Divergence};
use crate::derive::{DerivedChange, Duty, Reach, consequences, fold_derived, untied};
use crate::fold::{Cause, fold};
use crate::guard::{self, Admission};
use crate::state::State;
use closer_contracts::canonical::{digest_of, from_value, read_value, to_bytes};
use closer_contracts::delta::{AdmissionPath, Change, Delta};
use closer_contracts::id::{Id, ObligationId, PropositionId};
use closer_contracts::item::{AffectedScope, Item, ItemKind};
use closer_contracts::reentry::Reentry;
use closer_contracts::refs::{ArtifactRef, StateRef};
use closer_contracts::{Digest, Fault, Timestamp, branch};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// One accepted transition: the body of a `commit` record. Spec: design §3, §4.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// The version it makes.
    pub version: u64,
    /// The state it was admitted against.
    pub parent: StateRef,
    /// What was proposed, unchanged.
    pub delta: Delta,
    /// What the service derived, in order.
    pub derived: Vec<DerivedChange>,
    /// The digest of `derived`.
    pub derived_digest: Digest,
    /// The Merkle root of the state it makes.
    pub state_root: Digest,
    /// The state it makes.
    pub after: StateRef,
}

impl Commit {
    /// The canonical bytes of the record's body.
    ///
    /// # Errors
    /// `schema_invalid` when the delta has no canonical form.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Fault> {
        to_bytes(self)
    }

    /// Reads a record's body. Its length is bounded by the record that carries it.
    ///
    /// # Errors
    /// `schema_invalid` with the path of the field.
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        from_value(read_value(bytes)?)
    }
}

/// What the protocol has verified for this delta, and what it hands over for what is derived. It decides nothing that is
/// in the state itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derivation {
    /// The time of the commit, recorded in its receipt.
    pub now: Timestamp,
    /// Declarations in effect and commits of accepted requirements that an obligation may come from.
    pub origins: Vec<ArtifactRef>,
    /// The authorities that were checked for this delta.
    pub authorities: Vec<ArtifactRef>,
    /// The obligations whose closure authority took a positive position on this exact delta (DEC-28).
    pub closing: Vec<ObligationId>,
    /// The duty to reconcile; given for an urgent delta.
    pub urgent: Option<Duty>,
}

impl Derivation {
    /// At this time, with nothing verified.
    #[must_use]
    pub const fn at(now: Timestamp) -> Self {
        Self { now, origins: Vec::new(), authorities: Vec::new(), closing: Vec::new(), urgent: None }
    }
}

/// Admits a delta whole, or names everything that speaks against it, first in precedence first.
///
/// # Errors
/// `stale_parent`, `digest_mismatch`, `schema_invalid`, `oversize`, `unresolved_ref`, `key_conflict`, `duplicate`,
/// `cardinality`, `stale_version`, `grant_revoked`, `missing_authority`, `unsupported_promotion`, `no_origin`,
/// `no_trigger`, `not_closable`, `not_restrictive`, `self_privilege`, `missing_deadline`.
pub fn propose(state: &State, delta: Delta, derivation: &Derivation) -> Result<(Commit, State), Vec<Denied>> {
    guard::integrity(state, &delta).map_err(|denied| vec![denied])?;
    let admission = Admission { delta: &delta, derivation };
    let cause = Cause::of(&delta, state.reference().version + 1);
    let mut next = state.clone();
    let mut denials = guard::whole(state, &admission);
    for change in changes(&delta) {
        let folded = guard::change::check(&next, &change, &admission)
            .and_then(|()| fold(&mut next, &change, &cause).map_err(Denied::from));
        denials.extend(folded.err());
    }
    denials.extend(guard::outcome(&next, &admission));
    if branch!("state.any_change_denied", !denials.is_empty()) {
        denials.sort_by_key(|denied| denied.code.precedence());
        return Err(denials);
    }
    let derived = derive(state, &next, &delta, derivation);
    derived
        .iter()
        .try_for_each(|change| fold_derived(&mut next, change, &cause))
        .and_then(|()| seal(state.reference(), delta, derived, next))
        .map_err(|fault| vec![fault.into()])
}

/// All changes of a delta, its dependency updates among them.
pub(crate) fn changes(delta: &Delta) -> impl Iterator<Item = Cow<'_, Change>> {
    let updates = delta.dependency_updates.iter().cloned();
    let updates = updates.map(|dependency| Cow::Owned(Change::AddDependency { dependency }));
    delta.changes.iter().map(Cow::Borrowed).chain(updates)
}

fn derive(state: &State, next: &State, delta: &Delta, derivation: &Derivation) -> Vec<DerivedChange> {
    let invalidated: Vec<Id> =
        delta.changes.iter().filter(|change| invalidates(change)).map(|c| c.subject().1).collect();
    match delta.admission_path {
        AdmissionPath::Ordinary => {
            let mut derived = consequences(next, invalidated, Reach::Knowledge);
            derived.extend(delta.changes.iter().flat_map(|change| untied(state, change)));
            derived
        }
        AdmissionPath::UrgentRestrictive => {
            let mut derived = consequences(next, invalidated, Reach::AuthorityOnly);
            derived.extend(derivation.urgent.as_ref().map(Duty::oblige));
            derived
        }
    }
}

/// Whether what rests on the change's subject loses a premise.
pub(crate) fn invalidates(change: &Change) -> bool {
    match change {
        Change::Suspend { .. } | Change::Retract { .. } | Change::RevokeGrant { .. } => true,
        Change::Revise { item, .. } => is_invalidated(item),
        Change::Add { .. }
        | Change::AdmitObligation { .. }
        | Change::SetStatus { .. }
        | Change::SetConditions { .. }
        | Change::SetTriggers { .. }
        | Change::SetOwner { .. }
        | Change::AddDependency { .. }
        | Change::RemoveDependency { .. }
        | Change::SuspendEligibility { .. }
        | Change::LiftRestriction { .. } => false,
    }
}

#[derive(Serialize)]
struct Chained {
    version: u64,
    parent: Option<StateRef>,
    proposal_digest: Digest,
    derived_digest: Digest,
    state_root: Digest,
}

/// Names a state by everything that led to it: `H({version, parent, proposal_digest, derived_digest, state_root})`.
pub(crate) fn state_ref(
    parent: Option<StateRef>,
    proposal_digest: Digest,
    derived_digest: Digest,
    state_root: Digest,
) -> Result<StateRef, Fault> {
    let version = parent.map_or(0, |parent| parent.version + 1);
    let digest = digest_of(&Chained { version, parent, proposal_digest, derived_digest, state_root })?;
    Ok(StateRef { version, digest })
}

fn seal(
    parent: StateRef,
    delta: Delta,
    derived: Vec<DerivedChange>,
    mut next: State,
) -> Result<(Commit, State), Fault> {
    let derived_digest = digest_of(&derived)?;
    let state_root = next.root();
    let after = state_ref(Some(parent), delta.proposal_digest, derived_digest, state_root)?;
    next.set_reference(after);
    let version = after.version;
    Ok((Commit { version, parent, delta, derived, derived_digest, state_root, after }, next))
}

/// Folds a recorded commit into the state before it and compares every digest it names.
///
/// # Errors
/// The first thing that differs, by name.
pub fn apply(state: &State, commit: &Commit) -> Result<State, Divergence> {
    let version = commit.version;
    let same = |holds: bool, divergence: Divergence| if holds { Ok(()) } else { Err(divergence) };
    let fold_fault = |fault| Divergence::Fold { version, fault };
    let parent = commit.parent == state.reference() && commit.delta.parent_state == commit.parent;
    same(branch!("state.replay_parent", parent), Divergence::Parent { version })?;
    let proposal = commit.delta.compute_proposal_digest().map_err(fold_fault)?;
    let proposed = proposal == commit.delta.proposal_digest;
    same(branch!("state.replay_proposal", proposed), Divergence::Proposal { version })?;
    let derived = digest_of(&commit.derived).map_err(fold_fault)? == commit.derived_digest;
    same(branch!("state.replay_derived", derived), Divergence::Derived { version })?;
    let cause = Cause::of(&commit.delta, version);
    let mut next = state.clone();
    changes(&commit.delta).try_for_each(|change| fold(&mut next, &change, &cause)).map_err(fold_fault)?;
    commit.derived.iter().try_for_each(|change| fold_derived(&mut next, change, &cause)).map_err(fold_fault)?;
    same(branch!("state.replay_root", next.root() == commit.state_root), Divergence::Root { version })?;
    let after = state_ref(Some(commit.parent), commit.delta.proposal_digest, commit.derived_digest, commit.state_root)
        .map_err(fold_fault)?;
    same(branch!("state.replay_after", after == commit.after), Divergence::After { version })?;
    next.set_reference(after);
    Ok(next)
}

/// Every item that the commit changes or derives a change for, in order, without repeats. Its record links to the stream
/// of each. Restrictions bind further scopes: see [`restricted_scopes`]; claims move propositions: see [`propositions`].
#[must_use]
pub fn touched(commit: &Commit) -> Vec<(ItemKind, Id)> {
    let mut touched: BTreeSet<(ItemKind, Id)> = commit.derived.iter().map(DerivedChange::subject).collect();
    for change in changes(&commit.delta) {
        touched.insert(change.subject());
    }
    let mut triggers = |reentries: &[Reentry]| {
        touched.extend(reentries.iter().map(|reentry| (ItemKind::Reentry, (&reentry.reentry_id).into())));
    };
    for change in &commit.delta.changes {
        if let Change::AdmitObligation { reentries, .. } | Change::SetTriggers { reentries, .. } = change {
            triggers(reentries);
        }
    }
    for derived in &commit.derived {
        if let DerivedChange::Oblige { reentries, .. } = derived {
            triggers(reentries);
        }
    }
    touched.into_iter().collect()
}

/// The scopes that the commit's restrictions bind. Admissions guard every scope they lie in.
#[must_use]
pub fn restricted_scopes(commit: &Commit) -> Vec<AffectedScope> {
    let scope = |change: &Change| {
        let Change::SuspendEligibility { restriction } = change else {
            return None;
        };
        Some(restriction.affected_scope.clone())
    };
    commit.delta.changes.iter().filter_map(scope).collect()
}

/// The propositions that the commit's claims and support relations are about, sorted, without repeats.
#[must_use]
pub fn propositions(delta: &Delta) -> Vec<PropositionId> {
    let relations = delta.support_relations.iter().map(|relation| relation.proposition_id.clone());
    let mut found: BTreeSet<PropositionId> = relations.collect();
    for change in &delta.changes {
        if let Change::Add { item } | Change::Revise { item, .. } = change
            && let Item::Claim(claim) = &**item
        {
            found.insert(claim.proposition.proposition_id.clone());
        }
    }
    found.into_iter().collect()
}
