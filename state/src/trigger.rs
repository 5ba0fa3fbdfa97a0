//! When an open obligation can still be reconsidered: a live trigger, or a gap with a bounded review. Spec: C3, DEC-97, DEC-98.

use crate::state::State;
use closer_contracts::item::Standing;
use closer_contracts::obligation::{Obligation, TriggerGap};
use closer_contracts::reentry::{Any, Reentry, TypedPredicate};
use closer_contracts::{Timestamp, branch};

/// Whether the obligation has a live trigger or an explicit gap that is reviewed within the profile's limit.
#[must_use]
pub fn is_reconsiderable(state: &State, obligation: &Obligation, now: &Timestamp) -> bool {
    let mut triggers = state.reentries_of(&obligation.obligation_id);
    let live = triggers.any(|reentry| is_live(state, reentry, now));
    let gap = obligation.trigger_gap.as_ref().is_some_and(|gap| is_reviewed(state, gap, now));
    branch!("state.can_be_reconsidered", live || gap)
}

/// Whether a trigger can still fire: it has not expired, and this version can evaluate it from registered sources.
pub(crate) fn is_live(state: &State, reentry: &Reentry, now: &Timestamp) -> bool {
    let expired = reentry.expires_at.as_ref().is_some_and(|expires_at| expires_at <= now);
    let sources = reentry.event_sources.iter().map(|source| &source.source_id);
    !branch!("state.trigger_expired", expired)
        && sources.into_iter().all(|id| is_registered(state, id))
        && is_evaluable(state, &reentry.predicate)
}

fn is_registered(state: &State, id: &closer_contracts::id::SourceId) -> bool {
    state.source(id).is_some_and(|source| source.standing == Standing::Current)
}

fn is_evaluable(state: &State, predicate: &TypedPredicate) -> bool {
    let leaf = match predicate {
        TypedPredicate::EvidenceAdded(leaf) => {
            let sources = &leaf.permitted_source_refs;
            !sources.is_empty() && sources.iter().all(|id| is_registered(state, id))
        }
        TypedPredicate::DependencyVersionChanged(leaf) => state.locate(&leaf.dependency_ref).next().is_some(),
        TypedPredicate::All(_) | TypedPredicate::Any(_) => {
            return predicate.children().iter().all(|child| is_evaluable(state, child));
        }
        // A capability that is not registered yet is what such a trigger may wait for.
        TypedPredicate::UserDecisionReceived(_)
        | TypedPredicate::CapabilityVerified(_)
        | TypedPredicate::HandoffAccepted(_)
        | TypedPredicate::TimeReached(_) => true,
        TypedPredicate::Unsupported(_) => false,
    };
    branch!("state.trigger_evaluable", leaf)
}

/// Whether the gap's review comes within the profile's limit: a time, or an `Any` with one (DEC-98).
fn is_reviewed(state: &State, gap: &TriggerGap, now: &Timestamp) -> bool {
    let latest = now.plus_ms(state.limits().review_interval_ms_max);
    branch!("state.gap_review_bounded", comes_by(&gap.review_predicate, &latest))
}

/// Whether the predicate comes true by then whatever else happens: a time, or an `Any` with one (DEC-98).
#[must_use]
pub fn comes_by(predicate: &TypedPredicate, latest: &Timestamp) -> bool {
    match predicate {
        TypedPredicate::TimeReached(leaf) => leaf.at <= *latest,
        TypedPredicate::Any(Any { items }) => items.iter().any(|item| comes_by(item, latest)),
        TypedPredicate::All(_)
        | TypedPredicate::EvidenceAdded(_)
        | TypedPredicate::DependencyVersionChanged(_)
        | TypedPredicate::UserDecisionReceived(_)
        | TypedPredicate::CapabilityVerified(_)
        | TypedPredicate::HandoffAccepted(_)
        | TypedPredicate::Unsupported(_) => false,
    }
}
