//! What leaves under a receipt, as one value: the items, with proof that the accepted ones are accepted. It is a part of
//! the record and no copy of it: nothing founds or restores a space from it. Spec: §4.3, §6.5.

use super::{Candidates, materialize};
use crate::view::View;
use closer_contracts::audit::DisclosureReceipt;
use closer_contracts::contract::Check;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{Id, Key};
use closer_contracts::item::ItemKind;
use closer_contracts::refs::StateRef;
use closer_contracts::work::ContextItem;
use closer_state::Proof;
use serde::{Deserialize, Serialize};

/// The format that an export names itself by.
pub const FORMAT: &str = "closer-export-1";

/// That an item is accepted: its kind, and the path from it to the root of the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// Its kind.
    pub kind: ItemKind,
    /// The path.
    pub proof: Proof,
}

/// One item of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exported {
    /// The item, with its immutable reference.
    pub item: ContextItem,
    /// That it is accepted, where it is; evidence and receipts are on record without being accepted state.
    pub accepted: Option<Accepted>,
}

/// What leaves under a receipt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// [`FORMAT`].
    pub format: Key,
    /// What was released to whom, for what, and what was held back.
    pub receipt: DisclosureReceipt,
    /// The state that the proofs are of.
    pub state: StateRef,
    /// Its root. That it is this state's is the receipt of its commit to say.
    pub state_root: Digest,
    /// The items, the limits of the view last.
    pub items: Vec<Exported>,
}

/// Composes the export of a receipt on record.
///
/// # Errors
/// `schema_invalid` when something on record has no canonical form.
pub fn export(view: &View, receipt: &DisclosureReceipt) -> Result<Export, Fault> {
    let candidates = Candidates::of_record(view)?;
    let items = materialize(view, receipt)?.into_iter();
    let proved = items.map(|item| {
        let kind = candidates
            .category_of(&item.reference)
            .and_then(|category| ItemKind::ALL.iter().copied().find(|kind| kind.as_str() == category.as_str()));
        let accepted = kind.and_then(|kind| {
            let proof = view.state.prove(kind, &Id::new(item.reference.id.as_str()))?;
            Some(Accepted { kind, proof })
        });
        Exported { item, accepted }
    });
    Ok(Export {
        format: Key::from(FORMAT),
        receipt: receipt.clone(),
        state: view.state.reference(),
        state_root: view.state.root(),
        items: proved.collect(),
    })
}

impl Export {
    /// What can be checked without the space: every item is what its reference and the receipt name, and every proof ends at
    /// the root. It says nothing of what is not in it.
    ///
    /// # Errors
    /// `digest_mismatch`, naming the item.
    pub fn verify(&self) -> Result<(), Fault> {
        let differs = |reason: &'static str| Fault::new(closer_contracts::RefusalCode::DigestMismatch, reason);
        for Exported { item, accepted } in &self.items {
            item.check().map_err(|fault| fault.within(&item.reference.id))?;
            if !self.receipt.materialized_item_refs.contains(&item.reference) {
                return Err(differs("the receipt names no such item").within(&item.reference.id));
            }
            let proves = accepted.as_ref().is_none_or(|Accepted { kind, proof }| {
                proof.verify(&self.state_root, *kind, &Id::new(item.reference.id.as_str()), &item.reference.digest)
            });
            if !proves {
                return Err(differs("the proof does not end at the state's root").within(&item.reference.id));
            }
        }
        Ok(())
    }
}
