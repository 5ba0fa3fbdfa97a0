//! What is worked on first: five inputs, compared one after another, and recorded with the choice. Spec: §8.4.
//!
//! An estimate orders work and is worth nothing by itself: it is written beside an episode's begin and nowhere else. Whoever
//! was passed over as often as [`PASSED_OVER_MAX`] comes first, whatever the inputs say, so that nobody waits for ever (§8.3).

use crate::view::View;
use closer_contracts::branch;
use closer_contracts::id::{GrantId, Id, ObligationId};
use closer_contracts::item::EffectClass;
use closer_contracts::obligation::{AssessmentStatus, Obligation};
use closer_contracts::reentry::TypedPredicate;
use closer_contracts::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// How often an obligation is passed over before it comes first.
pub const PASSED_OVER_MAX: u64 = 8;
/// How many of those that wait are compared, the longest-waiting first.
pub const COMPARED_MAX: usize = 256;

/// The inputs, in the order in which they are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Priority {
    /// The first moment at which one of its triggers or its gap's review is due; the earlier comes first.
    pub deadline: Option<Timestamp>,
    /// The gravest effect that its grants allow; the graver comes first.
    pub consequence: Option<EffectClass>,
    /// How many other obligations watch it or rest on it; more come first.
    pub impact: u32,
    /// How many of its conditions are not settled; more come first.
    pub information: u32,
    /// How many questions about it wait for the user; fewer come first.
    pub effort: u32,
    /// How many others were begun since it became eligible.
    pub passed_over: u64,
}

fn count(found: usize) -> u32 {
    u32::try_from(found).unwrap_or(u32::MAX)
}

fn earliest(predicate: &TypedPredicate) -> Option<&Timestamp> {
    match predicate {
        TypedPredicate::TimeReached(leaf) => Some(&leaf.at),
        TypedPredicate::All(_)
        | TypedPredicate::Any(_)
        | TypedPredicate::EvidenceAdded(_)
        | TypedPredicate::DependencyVersionChanged(_)
        | TypedPredicate::UserDecisionReceived(_)
        | TypedPredicate::CapabilityVerified(_)
        | TypedPredicate::HandoffAccepted(_)
        | TypedPredicate::Unsupported(_) => predicate.children().iter().filter_map(earliest).min(),
    }
}

const fn gravity(class: EffectClass) -> u8 {
    match class {
        EffectClass::ReadOnly => 0,
        EffectClass::Internal => 1,
        EffectClass::ExternalReversible => 2,
        EffectClass::ExternalIrreversible => 3,
    }
}

fn consequence(view: &View, obligation: &Obligation) -> Option<EffectClass> {
    let grants = obligation.authority_boundary.iter();
    let grants = grants.filter_map(|id| view.state.grant(&GrantId::new(id.as_str())));
    let operations = grants.flat_map(|grant| &grant.allowed_operations);
    let classes = operations.filter_map(|id| view.state.operation(id)).map(|entry| entry.effect_class);
    classes.max_by_key(|class| gravity(*class))
}

/// The inputs of one obligation, as the record shows them.
#[must_use]
pub fn of(view: &View, obligation: &Obligation) -> Priority {
    let id = Id::from(&obligation.obligation_id);
    let due = view.state.reentries_of(&obligation.obligation_id).filter_map(|reentry| earliest(&reentry.predicate));
    let review = obligation.trigger_gap.as_ref().and_then(|gap| earliest(&gap.review_predicate));
    let open = |status| matches!(status, AssessmentStatus::Unassessed | AssessmentStatus::Insufficient);
    let unsettled = obligation.resolution_conditions.iter().filter(|condition| open(condition.assessment_status));
    let asked = view.waiting.iter().filter_map(|packet| view.packets.get(packet));
    let asked = asked.filter(|packet| packet.packet.body.obligation_ids.contains(&obligation.obligation_id));
    let began = view.turn_of.get(&obligation.obligation_id).and_then(|turn| view.begun_at.get(turn));
    Priority {
        deadline: due.chain(review).min().cloned(),
        consequence: consequence(view, obligation),
        impact: count(view.state.obligations_watching_item(&id).count() + view.state.dependents_of(&id).count()),
        information: count(unsettled.count()),
        effort: count(asked.count()),
        passed_over: began.map_or(0, |began| view.begun.saturating_sub(*began)),
    }
}

/// Which of two comes first; `Equal` where no input tells them apart, and who waits longer goes first.
#[must_use]
pub fn compare(one: &Priority, other: &Priority) -> Ordering {
    let starves = |it: &Priority| branch!("priority.passed_over", it.passed_over >= PASSED_OVER_MAX);
    if starves(one) || starves(other) {
        return starves(other).cmp(&starves(one));
    }
    let soonest = |it: &Priority| it.deadline.as_ref().map_or(i64::MAX, Timestamp::unix_ms);
    let grave = |it: &Priority| it.consequence.map(gravity);
    let order = soonest(one).cmp(&soonest(other));
    let order = order.then_with(|| grave(other).cmp(&grave(one)));
    let order = order.then_with(|| other.impact.cmp(&one.impact));
    let order = order.then_with(|| other.information.cmp(&one.information));
    let order = order.then_with(|| one.effort.cmp(&other.effort));
    match branch!("priority.ordered", true) {
        true => order,
        false => order.reverse(),
    }
}

/// The obligations in the order in which they are worked on; `waiting` is the order in which they came.
#[must_use]
pub fn ordered(view: &View, waiting: impl Iterator<Item = ObligationId>) -> Vec<ObligationId> {
    let mut compared: Vec<(Priority, ObligationId)> =
        waiting.take(COMPARED_MAX).filter_map(|id| Some((of(view, view.state.obligation(&id)?), id))).collect();
    compared.sort_by(|(one, _), (other, _)| compare(one, other));
    compared.into_iter().map(|(_, id)| id).collect()
}
