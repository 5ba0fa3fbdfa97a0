//! What a result leads on to, and what an episode returns whatever it leads on to. Spec: §7.1.

use crate::support::{begun, recorded, space, until};
use closer_contracts::id::ObligationId;
use closer_contracts::item::{IdentityKind, Item};
use closer_contracts::refs::ProducerRole;
use closer_contracts::work::{Need, Relation, WorkResult};
use closer_contracts::{Timestamp, shows};
use closer_protocol::episode::Next;
use closer_protocol::follow_up::{FollowUp, Outcome, outcome};
use closer_scenarios::founding::{identity, plan_target};
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Space, worker};

/// Relates all evidence in its packet to the question, and leaves this open.
fn relates_and_lacks(need: Need) -> Answer {
    Box::new(move |work, view| WorkResult {
        assessments: worker::reads(work, view, Relation::Unresolved).assessments,
        ..worker::leaves_open(need)(work, view)
    })
}

/// Observed once, then asked: how the episode went on, and what it came to.
fn came_to(space: &mut Space, before_the_answer: impl FnOnce(&mut Space)) -> (Vec<Next>, Outcome) {
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    let episode_id = begun(space);
    until(space, &episode_id, |next| matches!(next, Next::Ask { .. }));
    before_the_answer(space);
    let stages = space.finish(&episode_id).unwrap();
    let episode = space.view().episodes.get(&episode_id).expect("the episode").clone();
    (stages, outcome(space.view(), &episode))
}

fn operation() -> (Vec<Next>, Outcome) {
    came_to(&mut space(worker::proposes("basic")), |_| {})
}

fn question() -> (Vec<Next>, Outcome) {
    came_to(&mut space(relates_and_lacks(Need::Tradeoff)), |_| {})
}

fn investigation() -> (Vec<Next>, Outcome) {
    came_to(&mut space(relates_and_lacks(Need::Evidence)), |space| {
        recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    })
}

fn able_and_unable() -> Space {
    let able = identity("zoe", IdentityKind::Producer, &[ProducerRole::Participant], &["plan.audit"]);
    let deployment = Deployment::default().with(Item::Identity(able));
    Space::found(&deployment, relates_and_lacks(Need::Prerequisite)).unwrap()
}

fn handoff() -> (Vec<Next>, Outcome) {
    let mut space = able_and_unable();
    space.contract(&["plan.audit"], &[], &[]).unwrap();
    let told = came_to(&mut space, |_| {});
    let held = space.view().ownership(&"o-1".into()).expect("the obligation");
    assert_eq!(held.owner.as_str(), "closer.coordinator", "an offer moves nothing");
    told
}

/// A space in which the obligation's only trigger has fired and is spent.
fn spent() -> Space {
    let mut space = space(relates_and_lacks(Need::Evidence));
    let due = Timestamp::parse("2026-12-31T00:00:00Z").unwrap();
    let left = u64::try_from(due.unix_ms() - space.moment().now.unix_ms()).unwrap();
    space.pass(left).unwrap();
    assert_eq!(space.view().state.reentries_of(&"o-1".into()).count(), 0);
    space
}

fn reentry() -> (Vec<Next>, Outcome) {
    came_to(&mut spent(), |_| {})
}

#[test]
fn a_result_leads_on_to_five_things() {
    shows!("CP-7.1-03"; by "follow_up.more_came_in", "follow_up.ability_lacking", "follow_up.triggers_spent");
    for (led, follow_up) in [
        (operation(), FollowUp::Operation),
        (question(), FollowUp::UserQuestion),
        (investigation(), FollowUp::Investigation),
        (handoff(), FollowUp::Handoff),
        (reentry(), FollowUp::Reentry),
    ] {
        assert_eq!(led.1.follow_ups, [follow_up], "{:?}", led.0);
    }
    let asked_again = |stages: &[Next]| stages.iter().filter(|next| matches!(next, Next::Work { .. })).count();
    assert_eq!(asked_again(&investigation().0), 1, "once more, on what had come in");
    assert_eq!(asked_again(&question().0), 0, "nothing had");
    assert!(
        handoff().0.iter().any(|next| matches!(next, Next::HandOver { recipient, .. } if recipient.as_str() == "zoe"))
    );
    // Without a contract that asks for more than the worker has, there is nothing to offer.
    assert_eq!(came_to(&mut able_and_unable(), |_| {}).1.follow_ups, []);
}

#[test]
fn the_trigger_that_is_left_behind_wakes_the_obligation_with_the_next_evidence() {
    let mut space = spent();
    came_to(&mut space, |_| {});
    assert!(!space.view().eligible.contains_key(&ObligationId::from("o-1")));
    recorded(&space.observe(&plan_target(), None).unwrap());
    assert!(space.view().eligible.contains_key(&ObligationId::from("o-1")), "the evidence woke it");
    let replayed = space.replay().unwrap();
    assert_eq!(replayed.state.root(), space.view().state.root());
}

#[test]
fn every_outcome_returns_evidence_and_candidate_deltas() {
    shows!("CP-7.1-04"; by "follow_up.evidence_on_record", "follow_up.delta_on_record");
    for (_, outcome) in [operation(), question(), investigation(), handoff(), reentry()] {
        let told = serde_json::to_value(&outcome).unwrap();
        assert!(
            told["evidence"].is_array() && told["candidate_deltas"].is_array(),
            "present, also where empty: {told}"
        );
        assert!(!outcome.evidence.is_empty(), "what was read back or related: {told}");
    }
    assert_eq!(operation().1.candidate_deltas.len(), 1, "what the readback establishes is proposed");
    assert_eq!(question().1.candidate_deltas.len(), 0);
}
