//! What a refusal of the user leaves: no grant from earlier answers, and no obligation that nothing can wake. Spec: §7.3,
//! DEC-64, invariant 7.

use crate::intake;
use crate::sequence::Deciding;
use crate::view::{OnRecord, View};
use closer_contracts::audit::DecisionType;
use closer_contracts::branch;
use closer_contracts::briefcase::Briefcase;
use closer_contracts::delta::Change;
use closer_contracts::id::{DecisionId, GrantId};
use closer_contracts::obligation::{Obligation, TriggerGap};
use closer_contracts::reentry::{TimeReached, TypedPredicate};

/// The grants in force that earlier answers to this packet led to.
pub(super) fn given_by(view: &View, packet: &DecisionId) -> Vec<GrantId> {
    let answers = view.decisions.get(packet).into_iter().flatten();
    let grants = answers.map(|(_, decision)| super::grant_id(decision));
    grants.filter(|id| view.state.grant(id).is_some_and(|grant| grant.revocation.revoked_by.is_none())).collect()
}

/// Whether the packet was refused before and no grant of an earlier answer is left to be taken back.
pub(super) fn stands(view: &View, packet: &DecisionId) -> bool {
    let mut answers = view.decisions.get(packet).into_iter().flatten();
    let before = answers.any(|(_, given)| given.decision_type == DecisionType::Rejection);
    branch!("bench.refused_before", before && given_by(view, packet).is_empty())
}

/// What a refusal leaves of obligations that nothing but this packet's answer would have woken: a gap that says so, reviewed
/// by whoever answers for them within the profile's limit (invariant 7, C3).
pub(super) fn gaps(deciding: &Deciding<'_>, packet: &OnRecord<Briefcase>) -> Vec<Change> {
    let view = deciding.view;
    let left = |obligation: &&Obligation| {
        let mut triggers = view.state.reentries_of(&obligation.obligation_id);
        let awake = triggers.any(|reentry| !waits_for_answer(&reentry.predicate, &packet.body.decision_id));
        obligation.status.is_open() && branch!("bench.refusal_leaves_no_trigger", !awake)
    };
    let open = packet.body.obligation_ids.iter().filter_map(|id| view.state.obligation(id)).filter(left);
    let review = TimeReached { at: deciding.at.now.plus_ms(view.state.limits().review_interval_ms_max) };
    open.map(|obligation| Change::SetTriggers {
        obligation_id: obligation.obligation_id.clone(),
        reentries: view.state.reentries_of(&obligation.obligation_id).cloned().collect(),
        trigger_gap: Some(TriggerGap {
            reason: intake::bounded(&format!(
                "the user refused what {} asked, and nothing else is watched: {}",
                packet.body.decision_id, packet.body.question
            )),
            responsible_owner: obligation.responsible_owner.clone(),
            review_predicate: TypedPredicate::TimeReached(review.clone()),
        }),
    })
    .collect()
}

/// Whether a trigger waits for another answer to this packet than the refusal, which is its last.
fn waits_for_answer(predicate: &TypedPredicate, packet: &DecisionId) -> bool {
    let waits = |item: &TypedPredicate| waits_for_answer(item, packet);
    match predicate {
        TypedPredicate::UserDecisionReceived(leaf) => {
            leaf.decision_ref == *packet && leaf.required_decision_class != DecisionType::Rejection
        }
        TypedPredicate::All(all) => all.items.iter().any(waits),
        TypedPredicate::Any(any) => any.items.iter().all(waits),
        TypedPredicate::EvidenceAdded(_)
        | TypedPredicate::DependencyVersionChanged(_)
        | TypedPredicate::CapabilityVerified(_)
        | TypedPredicate::HandoffAccepted(_)
        | TypedPredicate::TimeReached(_)
        | TypedPredicate::Unsupported(_) => false,
    }
}
