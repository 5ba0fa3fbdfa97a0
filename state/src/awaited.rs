//! What installed triggers and gap reviews wait for, so that what is recorded finds the ones it can move. Spec: §1.1, C11.

use closer_contracts::Timestamp;
use closer_contracts::id::{CapabilityId, DecisionId, HandoffId, Id, SourceId};
use closer_contracts::item::Item;
use closer_contracts::reentry::TypedPredicate;

/// One input of a predicate, apart from time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// Events or evidence of a source.
    Source(SourceId),
    /// Another version of an accepted item.
    Item(Id),
    /// A decision of the user on a packet.
    Decision(DecisionId),
    /// The verification of a capability.
    Capability(CapabilityId),
    /// The acceptance of a handoff.
    Handoff(HandoffId),
}

/// What the item waits for: a trigger, or an obligation whose gap is reviewed on a condition.
pub(crate) fn awaited(item: &Item) -> Vec<Awaited> {
    let mut found = Vec::new();
    if let Some(predicate) = predicate_of(item) {
        visit(predicate, &mut |leaf| inputs(leaf, &mut found));
    }
    if let Item::Reentry(reentry) = item {
        found.extend(reentry.event_sources.iter().map(|source| Awaited::Source(source.source_id.clone())));
    }
    found
}

/// The moments at which the item may become due: the times its predicate names, and its own expiry.
pub(crate) fn moments(item: &Item) -> Vec<Timestamp> {
    let mut found = Vec::new();
    if let Some(predicate) = predicate_of(item) {
        visit(predicate, &mut |leaf| {
            if let TypedPredicate::TimeReached(leaf) = leaf {
                found.push(leaf.at.clone());
            }
        });
    }
    if let Item::Reentry(reentry) = item {
        found.extend(reentry.expires_at.clone());
    }
    found
}

fn predicate_of(item: &Item) -> Option<&TypedPredicate> {
    if let Item::Reentry(reentry) = item {
        return Some(&reentry.predicate);
    }
    if let Item::Obligation(obligation) = item {
        return obligation.trigger_gap.as_ref().map(|gap| &gap.review_predicate);
    }
    None
}

fn visit<'a>(predicate: &'a TypedPredicate, each: &mut dyn FnMut(&'a TypedPredicate)) {
    each(predicate);
    predicate.children().iter().for_each(|child| visit(child, each));
}

fn inputs(predicate: &TypedPredicate, found: &mut Vec<Awaited>) {
    match predicate {
        TypedPredicate::EvidenceAdded(leaf) => {
            found.extend(leaf.permitted_source_refs.iter().cloned().map(Awaited::Source));
        }
        TypedPredicate::DependencyVersionChanged(leaf) => found.push(Awaited::Item(leaf.dependency_ref.clone())),
        TypedPredicate::UserDecisionReceived(leaf) => found.push(Awaited::Decision(leaf.decision_ref.clone())),
        TypedPredicate::CapabilityVerified(leaf) => found.push(Awaited::Capability(leaf.capability_ref.clone())),
        TypedPredicate::HandoffAccepted(leaf) => found.push(Awaited::Handoff(leaf.handoff_ref.clone())),
        TypedPredicate::TimeReached(_)
        | TypedPredicate::All(_)
        | TypedPredicate::Any(_)
        | TypedPredicate::Unsupported(_) => {}
    }
}
