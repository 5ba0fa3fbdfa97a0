//! Somebody bends what is kept: a commit, a chain of receipts, a snapshot. Each is bent so that everything else about it still
//! agrees, and folding it must tell.

use super::machine::Simulation;
use super::world::one_of;
use closer_contracts::canonical::digest_of;
use closer_contracts::delta::Change;
use closer_contracts::refs::StateRef;
use closer_contracts::{Digest, word_enum};
use closer_state::{Commit, DerivedChange, Snapshot, State};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;
use serde::Serialize;
use std::sync::Arc;

word_enum! {
    /// What is bent.
    pub enum Bent {
        /// The commit stands on another state.
        Parent = "parent",
        /// What was proposed is another delta.
        Proposal = "proposal",
        /// Something more was derived.
        Derived = "derived",
        /// The items have another root.
        Root = "root",
        /// The state has another name.
        After = "after",
        /// The chain lacks a receipt.
        Receipts = "receipts",
        /// The snapshot lacks an item.
        Snapshot = "snapshot",
    }
}

/// What a state is named after, as the specification of the log says it.
#[derive(Serialize)]
struct Chained {
    version: u64,
    parent: Option<StateRef>,
    proposal_digest: Digest,
    derived_digest: Digest,
    state_root: Digest,
}

fn named(commit: &Commit) -> Option<StateRef> {
    let chained = Chained {
        version: commit.version,
        parent: Some(commit.parent),
        proposal_digest: commit.delta.proposal_digest,
        derived_digest: commit.derived_digest,
        state_root: commit.state_root,
    };
    Some(StateRef { version: commit.version, digest: digest_of(&chained).ok()? })
}

/// The newest commit that was read from the disk, and the state before it.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) before: State,
    pub(super) commit: Arc<Commit>,
}

/// A commit that says something else.
fn bend(kept: &Kept, bent: Bent) -> Option<Commit> {
    let mut commit = Commit::clone(&kept.commit);
    let other = Digest::of(b"another");
    match bent {
        Bent::Parent => {
            commit.parent.digest = other;
            commit.delta.parent_state = commit.parent;
            commit.delta.proposal_digest = commit.delta.compute_proposal_digest().ok()?;
            commit.after = named(&commit)?;
        }
        Bent::Proposal => {
            let reason = commit
                .delta
                .changes
                .iter_mut()
                .find_map(|change| if let Change::SetStatus { reason, .. } = change { Some(reason) } else { None });
            *reason? = "Another reason.".into();
        }
        Bent::Derived => {
            let (kind, id) = commit.delta.changes.first()?.subject();
            commit.derived.push(DerivedChange::Reconsider { kind, id: id.clone(), premise: id });
        }
        Bent::Root => {
            commit.state_root = other;
            commit.after = named(&commit)?;
        }
        Bent::After => commit.after.digest = other,
        Bent::Receipts | Bent::Snapshot => return None,
    }
    Some(commit)
}

impl Simulation {
    /// Something kept is bent. Whoever folds it must be told.
    pub(super) fn tamper(&self, rng: &mut Rng) -> Result<String, String> {
        let bent = one_of(rng, Bent::ALL).unwrap_or(Bent::After);
        let told = match bent {
            Bent::Receipts => self.without_a_receipt(rng),
            Bent::Snapshot => self.without_an_item(rng),
            Bent::Parent | Bent::Proposal | Bent::Derived | Bent::Root | Bent::After => {
                let bend = self.kept.as_ref().and_then(|kept| Some((kept, bend(kept, bent)?)));
                bend.map(|(kept, commit)| match closer_state::apply(&kept.before, &commit) {
                    Ok(_) => Err(()),
                    Err(divergence) => Ok(divergence.to_string()),
                })
            }
        };
        match told {
            None => Ok(format!("{bent}: nothing to bend")),
            Some(Ok(divergence)) => Ok(format!("{bent} bent: {divergence}")),
            Some(Err(())) => Err(format!("what is kept was bent, and nobody noticed: {bent}")),
        }
    }

    fn without_a_receipt(&self, rng: &mut Rng) -> Option<Result<String, ()>> {
        let receipts = self.follower.commits.values().filter_map(|committed| committed.receipt.clone());
        let mut receipts: Vec<_> = receipts.collect();
        if receipts.len() < 3 {
            return None;
        }
        receipts.remove(rng.random_range(1..receipts.len() - 1));
        Some(match closer_state::receipt::verify_chain(receipts.iter().map(|receipt| &**receipt)) {
            Ok(()) => Err(()),
            Err(divergence) => Ok(divergence.to_string()),
        })
    }

    fn without_an_item(&self, rng: &mut Rng) -> Option<Result<String, ()>> {
        let mut snapshot = Snapshot::of(&self.follower.state);
        snapshot.items.remove(rng.random_range(0..snapshot.items.len()));
        Some(match snapshot.restore() {
            Ok(_) => Err(()),
            Err(divergence) => Ok(divergence.to_string()),
        })
    }
}
