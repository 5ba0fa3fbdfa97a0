//! What an over-disclosed item has reached: walked by citations, from a payload up to the packet it came from.

use super::Case;
use crate::view::View;
use closer_contracts::Payload;
use closer_contracts::id::{ArtifactId, IncidentId, Key, PayloadId};
use closer_contracts::refs::ArtifactRef;
use std::collections::BTreeSet;

/// The cases that are not reconciled.
fn unreconciled(view: &View) -> impl Iterator<Item = &Case> {
    view.incidents.values().map(|case| &**case).filter(|case| !case.state.is_reconciled())
}

/// The incident that has stopped the release of this item, to whomever.
pub(crate) fn stopped<'a>(view: &'a View, item: &ArtifactId) -> Option<&'a IncidentId> {
    let affects = |case: &&Case| case.opened.released_item_refs.iter().any(|affected| affected.id == *item);
    unreconciled(view).find(affects).map(|case| &case.opened.incident_id)
}

/// The incident that a payload must wait for, because it follows from a packet with an affected item.
pub(crate) fn suspended<'a>(view: &'a View, payload: &Payload) -> Option<&'a IncidentId> {
    unreconciled(view).find(|case| relies_on(view, payload, case)).map(|case| &case.opened.incident_id)
}

/// Whether a payload, or one that it follows from, was made under a receipt that released an affected item.
fn relies_on(view: &View, payload: &Payload, case: &Case) -> bool {
    let made_under = |payload: &Payload| {
        let receipt = view.released.get(&Key::new(payload.envelope().disclosure.id.as_str()));
        receipt.is_some_and(|receipt| case.is_affected(receipt))
    };
    if made_under(payload) {
        return true;
    }
    let mut seen: BTreeSet<PayloadId> = BTreeSet::new();
    let mut next: Vec<PayloadId> = payload.envelope().parents.clone();
    while let Some(id) = next.pop() {
        let Some(parent) = view.chain.on_record(&id).filter(|_| seen.insert(id.clone())) else {
            continue;
        };
        if made_under(parent) {
            return true;
        }
        next.extend(parent.envelope().parents.iter().cloned());
    }
    false
}

/// Everything on record that derives from a case's items, the packets first.
pub(super) fn dependents(view: &View, case: &Case) -> Vec<ArtifactRef> {
    let mut reached: BTreeSet<PayloadId> = BTreeSet::new();
    let mut dependents = Vec::new();
    for payload in view.chain.in_order() {
        let envelope = payload.envelope();
        let receipt = view.released.get(&Key::new(envelope.disclosure.id.as_str()));
        let made_under = receipt.is_some_and(|receipt| case.is_affected(receipt));
        if made_under || envelope.parents.iter().any(|parent| reached.contains(parent)) {
            reached.insert(payload.id().clone());
            dependents.push(crate::entry::payload_ref(payload));
        }
    }
    dependents
}
