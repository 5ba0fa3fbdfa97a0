//! The loop, all the way round, on the pure core.

use crate::support::{commit, delta, endorse, propose, recorded, status};
use closer_contracts::RefusalCode;
use closer_contracts::adjudication::Disposition;
use closer_contracts::audit::{DecisionType, RestrictiveAction};
use closer_contracts::delta::Change;
use closer_contracts::item::AffectedScope;
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::reentry::{TypedPredicate, UserDecisionReceived};
use closer_contracts::shows;
use closer_scenarios::founding::{obligation, plan_target};
use closer_scenarios::{Deployment, Mode, Space, worker};
use serde_json::json;

#[test]
fn an_event_leads_to_a_permitted_effect_a_readback_and_closure() {
    let mut space = Space::found(&Deployment::default(), worker::proposes("basic")).unwrap();
    space.event("service-a", "price").unwrap();
    space.run().unwrap();
    let refusals = space.refusals().unwrap();
    assert!(refusals.is_empty(), "{refusals:?}");
    assert_eq!(space.world.get(&plan_target(), "plan"), Some(&json!("basic")));
    assert_eq!(space.world.effects().len(), 1);
    assert_eq!(status(&space, "o-1"), ObligationStatus::Resolved);
    let replayed = space.replay().unwrap();
    assert_eq!(replayed.state.reference(), space.view().state.reference());
}

#[test]
fn an_effect_beyond_the_grant_waits_for_the_user_and_goes_on_under_a_scoped_grant() {
    let mut space = Space::found(&Deployment::default(), worker::proposes("large")).unwrap();
    space.event("service-a", "price").unwrap();
    space.run().unwrap();
    assert_eq!(space.world.effects().len(), 0);
    assert_eq!(status(&space, "o-1"), ObligationStatus::AwaitingUserJudgment);
    let decision_id = space.view().packets.keys().next().expect("a packet").clone();
    space.answer(&decision_id, DecisionType::ScopedAuthorization).unwrap();
    space.run().unwrap();
    assert_eq!(space.world.get(&plan_target(), "plan"), Some(&json!("large")));
    assert_eq!(status(&space, "o-1"), ObligationStatus::Resolved);
}

#[test]
fn a_lost_answer_is_read_back_before_anything_else_is_done() {
    let mut space = Space::found(&Deployment::default(), worker::proposes("basic")).unwrap();
    space.world.effect_mode = Mode::AppliedUnanswered;
    space.event("service-a", "price").unwrap();
    space.run().unwrap();
    assert_eq!(space.world.effects().len(), 1);
    assert_eq!(status(&space, "o-1"), ObligationStatus::Resolved);
}

#[test]
fn a_restriction_stops_the_next_dispatch() {
    let mut space = Space::found(&Deployment::default(), worker::proposes("basic")).unwrap();
    let scope = AffectedScope::Operation { operation: "plan.change".into() };
    let reply = space.restrict("issuer-1", RestrictiveAction::SuspendEligibility(scope)).unwrap();
    assert!(reply.refusal().is_none(), "{reply:?}");
    space.event("service-a", "price").unwrap();
    space.run().unwrap();
    assert_eq!(space.world.effects().len(), 0);
    assert!(space.refusals().unwrap().contains(&closer_contracts::RefusalCode::Restricted));
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
}

#[test]
fn a_refusal_after_an_allowance_takes_the_grant_back_and_asks_nothing_again() {
    shows!("CP-C13-05"; by "bench.answer_refuses");
    let mut space = Space::found(&Deployment::default(), worker::proposes("large")).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let decision_id = space.view().packets.keys().next().expect("a packet").clone();
    space.answer(&decision_id, DecisionType::ScopedAuthorization).unwrap();
    space.answer(&decision_id, DecisionType::Rejection).unwrap();
    let granted = space.view().state.items(closer_contracts::item::ItemKind::Grant);
    let in_force =
        granted.filter_map(|item| item.item.as_grant()).filter(|g| g.revocation.revoked_by.is_none()).count();
    assert_eq!(in_force, 1, "the founding grant alone is in force");
    space.run().unwrap();
    assert_eq!(space.world.effects().len(), 0);
    let packets = space.view().packets.len();
    let again = space.answer(&decision_id, DecisionType::Rejection).unwrap();
    assert_eq!(again.refusal().map(|denial| denial.code), Some(RefusalCode::StalePacket), "the first refusal stands");
    space.run().unwrap();
    assert_eq!(space.view().packets.len(), packets, "the same question is not put again");
}

/// What a refusal leaves without anything that would wake it says so in its gap, by whose refusal and until when.
#[test]
fn a_refused_obligation_that_nothing_else_wakes_says_so() {
    shows!("CP-INV-07", "CP-C3-04"; by "bench.refusal_leaves_no_trigger");
    let mut space = Space::found(&Deployment::default(), worker::proposes("large")).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let decision_id = space.view().packets.keys().next().expect("a packet").clone();
    let answer = TypedPredicate::UserDecisionReceived(UserDecisionReceived {
        decision_ref: decision_id.clone(),
        required_decision_class: DecisionType::ScopedAuthorization,
    });
    let (_, mut reentries) = obligation("o-1", "service-a");
    for reentry in &mut reentries {
        (reentry.reentry_id, reentry.predicate) = ("reentry-answer".into(), answer.clone());
    }
    let armed = Change::SetTriggers { obligation_id: "o-1".into(), reentries, trigger_gap: None };
    let armed = delta(&mut space, vec![armed], Vec::new(), Vec::new());
    recorded(&propose(&mut space, armed.clone()));
    recorded(&endorse(&mut space, &armed, Disposition::Endorsed));
    recorded(&commit(&mut space, &armed));
    let gap = |space: &Space| space.view().state.obligation(&"o-1".into()).and_then(|kept| kept.trigger_gap.clone());
    assert_eq!(gap(&space), None, "an answer would wake it");
    let at = space.moment().now;
    recorded(&space.answer(&decision_id, DecisionType::Rejection).unwrap());
    let gap = gap(&space).expect("the answer it waited for never comes");
    assert!(gap.reason.as_str().contains("refused") && gap.reason.as_str().contains(decision_id.as_str()), "{gap:?}");
    let latest = at.plus_ms(space.view().state.limits().review_interval_ms_max + 60_000);
    assert!(closer_state::comes_by(&gap.review_predicate, &latest), "{gap:?}");
}

#[test]
fn an_allowance_for_once_covers_no_second_effect() {
    let mut space = Space::found(&Deployment::default(), worker::proposes("large")).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let decision_id = space.view().packets.keys().next().expect("a packet").clone();
    space.answer(&decision_id, DecisionType::ScopedAuthorization).unwrap();
    let proposal = worker::proposal("p-o-1", "large");
    let now = space.moment().now;
    let covered = |space: &Space| closer_protocol::action::covering_grant(space.view(), &proposal, &now).is_some();
    assert!(covered(&space), "it may be done once");
    space.run().unwrap();
    assert_eq!(space.world.effects().len(), 1);
    assert!(!covered(&space), "and not again");
}

/// An episode that ended because an adapter turned its effect down says with the adapter's own words why.
#[test]
fn an_effect_that_was_not_sent_leaves_its_reason_with_the_episode() {
    let mut space = Space::found(&Deployment::default(), worker::proposes("basic")).unwrap();
    space.world.effect_mode = Mode::NotSent;
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let episode = space.view().episodes.values().next().expect("the episode").clone();
    let reason = episode.end_reason.as_ref().map(|reason| reason.as_str()).unwrap_or_default();
    assert!(reason.contains("not sent") && reason.contains("the connection was refused"), "{reason}");
    let replayed = space.replay().unwrap();
    assert_eq!(
        replayed.episodes.get(&episode.episode_id).map(|known| known.end_reason.clone()),
        Some(episode.end_reason.clone())
    );
}
