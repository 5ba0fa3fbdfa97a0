//! What was offered, on which contracts, and under which handoff each obligation is held: a fold of the log.

use crate::view::OnRecord;
use closer_contracts::handoff::{AcceptanceReceipt, Handoff, ResponsibilityContract};
use closer_contracts::id::{ArtifactId, HandoffId, ObligationId};
use closer_contracts::refs::ArtifactRef;
use closer_contracts::time::Timestamp;
use closer_monitor::OwnershipStanding;
use imbl::OrdMap;
use std::sync::Arc;

/// Everything about handoffs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Handoffs {
    offered: OrdMap<HandoffId, OnRecord<Handoff>>,
    contracts: OrdMap<ArtifactId, (ArtifactRef, Arc<ResponsibilityContract>)>,
    held_under: OrdMap<ObligationId, (HandoffId, Timestamp)>,
}

impl Handoffs {
    /// An offer by its id.
    #[must_use]
    pub fn offered(&self, id: &HandoffId) -> Option<&OnRecord<Handoff>> {
        self.offered.get(id)
    }

    /// Every offer, in id order.
    pub fn offers(&self) -> impl Iterator<Item = &OnRecord<Handoff>> {
        self.offered.values()
    }

    /// Every contract on record, in id order.
    pub fn contracts(&self) -> impl Iterator<Item = &(ArtifactRef, Arc<ResponsibilityContract>)> {
        self.contracts.values()
    }

    /// The contract that a reference names, with its digest.
    #[must_use]
    pub fn contract(&self, reference: &ArtifactRef) -> Option<&Arc<ResponsibilityContract>> {
        let (_, contract) = self.contracts.get(&reference.id).filter(|(known, _)| known == reference)?;
        Some(contract)
    }

    /// The handoff that was accepted last for an obligation, and when.
    #[must_use]
    pub fn last_accepted(&self, obligation_id: &ObligationId) -> Option<(&Arc<Handoff>, &Timestamp)> {
        let (id, accepted_at) = self.held_under.get(obligation_id)?;
        Some((&self.offered.get(id)?.body, accepted_at))
    }

    /// The handoffs that were accepted last, one an obligation.
    pub fn accepted(&self) -> impl Iterator<Item = &Arc<Handoff>> {
        self.held_under.values().filter_map(|(id, _)| Some(&self.offered.get(id)?.body))
    }

    /// Whether somebody accepted an obligation under this epoch, or it was raised to fence an owner off.
    pub(crate) fn standing(&self, obligation_id: &ObligationId, epoch: u64) -> OwnershipStanding {
        let accepted = self.last_accepted(obligation_id).is_some_and(|(handoff, _)| handoff.ownership_epoch == epoch);
        match accepted {
            true => OwnershipStanding::Held,
            false => OwnershipStanding::Fenced,
        }
    }

    pub(crate) fn fold_offer(&mut self, offer: OnRecord<Handoff>) {
        self.offered.insert(offer.body.handoff_id.clone(), offer);
    }

    pub(crate) fn fold_contract(&mut self, reference: ArtifactRef, contract: &ResponsibilityContract) {
        self.contracts.insert(reference.id.clone(), (reference, Arc::new(contract.clone())));
    }

    pub(crate) fn fold_acceptance(&mut self, receipt: &AcceptanceReceipt) {
        if let Some(offer) = self.offered.get(&receipt.handoff_ref) {
            let held = (receipt.handoff_ref.clone(), receipt.accepted_at.clone());
            self.held_under.insert(offer.body.obligation_id.clone(), held);
        }
    }
}
