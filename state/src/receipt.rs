//! Receipts: one for every accepted transition, chained by the states before and after. Spec: C14.

use crate::commit::Commit;
use crate::denied::Divergence;
use crate::derive::DerivedChange;
use crate::state::State;
use closer_contracts::audit::{CommitReceipt, InvalidatedDependencies, InvalidatedItem, UrgentDetails};
use closer_contracts::canonical::digest_of;
use closer_contracts::id::{ActorId, ReceiptId};
use closer_contracts::refs::{ArtifactRef, VersionedRef};
use closer_contracts::{Check, Fault, RefusalCode, Timestamp, branch};

/// How many invalidated items a receipt lists itself; the rest stand in the commit, under the list's digest (DEC-11).
pub const INVALIDATED_PAGE_ITEMS: usize = 256;

/// What a receipt says beside its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptFacts {
    /// Its fresh id.
    pub receipt_id: ReceiptId,
    /// The endorsements; empty on the urgent path.
    pub adjudication_refs: Vec<ArtifactRef>,
    /// Who committed.
    pub committing_authority: ActorId,
    /// When.
    pub committed_at: Timestamp,
    /// The urgent details; absent on the ordinary path.
    pub urgent_details: Option<UrgentDetails>,
}

/// The receipt of a commit that made `after`.
///
/// # Errors
/// `missing_endorsement` for an ordinary commit without adjudications; `schema_invalid` for urgent details on the wrong
/// path; `unresolved_ref` when the duty to reconcile is not an open obligation, or no profile is in force.
pub fn receipt(commit: &Commit, after: &State, facts: ReceiptFacts) -> Result<CommitReceipt, Fault> {
    let profile = after
        .profile()
        .ok_or_else(|| Fault::new(RefusalCode::UnresolvedRef, "no profile is in force").within("profile_ref"))?;
    if let Some(details) = &facts.urgent_details {
        let duty = after.obligation(&details.reconciliation_obligation_id);
        if !branch!("state.duty_is_open", duty.is_some_and(|duty| duty.status.is_open())) {
            let fault = Fault::new(RefusalCode::UnresolvedRef, "the duty to reconcile is not an open obligation");
            return Err(fault.within("reconciliation_obligation_id").within("urgent_details"));
        }
    }
    let receipt = CommitReceipt {
        receipt_id: facts.receipt_id,
        delta_id: commit.delta.delta_id.clone(),
        proposal_digest: commit.delta.proposal_digest,
        admission_path: commit.delta.admission_path,
        adjudication_refs: facts.adjudication_refs,
        before_state: commit.parent,
        after_state: commit.after,
        committing_authority: facts.committing_authority,
        committed_at: facts.committed_at,
        invalidated_dependencies: invalidated(commit)?,
        urgent_details: facts.urgent_details,
        profile_ref: VersionedRef { id: (&profile.profile_id).into(), version: profile.version },
    };
    receipt.check()?;
    Ok(receipt)
}

/// What the commit invalidated by derivation: the first page, the total and the digest of the whole list.
///
/// # Errors
/// `schema_invalid` when the list has no canonical form.
pub fn invalidated(commit: &Commit) -> Result<InvalidatedDependencies, Fault> {
    let listed = |derived: &DerivedChange| match derived {
        DerivedChange::Suspend { .. } | DerivedChange::RevokeDelegate { .. } => {
            let (kind, id) = derived.subject();
            Some(InvalidatedItem { kind, id })
        }
        DerivedChange::Reconsider { .. } | DerivedChange::Oblige { .. } => None,
    };
    let mut items: Vec<InvalidatedItem> = commit.derived.iter().filter_map(listed).collect();
    let (total, list_digest) = (items.len(), digest_of(&items)?);
    items.truncate(INVALIDATED_PAGE_ITEMS);
    Ok(InvalidatedDependencies {
        complete: branch!("state.page_is_whole", items.len() == total),
        total: total as u64,
        list_digest,
        items,
    })
}

/// Whether each receipt begins where the one before it ended, one for every version.
///
/// # Errors
/// [`Divergence::Chain`] with the first receipt that does not.
pub fn verify_chain<'a>(receipts: impl IntoIterator<Item = &'a CommitReceipt>) -> Result<(), Divergence> {
    let mut previous: Option<&CommitReceipt> = None;
    for receipt in receipts {
        let continues = previous.is_none_or(|previous| previous.after_state == receipt.before_state);
        let rises = receipt.after_state.version == receipt.before_state.version + 1;
        if !branch!("state.receipts_chain", continues && rises) {
            return Err(Divergence::Chain { receipt: receipt.receipt_id.to_string() });
        }
        previous = Some(receipt);
    }
    Ok(())
}
