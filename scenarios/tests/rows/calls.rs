//! Calls from outside: one exact action each, known again by message and by intent.

use crate::support::{recorded, refused};
use closer_contracts::RefusalCode as Code;
use closer_contracts::audit::DecisionType;
use closer_contracts::auth::SigningScope;
use closer_contracts::canonical::digest_of;
use closer_contracts::id::{ArtifactId, AttemptId, DecisionId};
use closer_contracts::item::{EffectClass, Item, OperationEntry, RepeatSafety};
use closer_contracts::refs::{ActorRef, Plain, ProducerRole};
use closer_contracts::{Digest, shows};
use closer_protocol::call::{self, Call, Fate};
use closer_protocol::input::Reply;
use closer_scenarios::founding::operation;
use closer_scenarios::{Deployment, Mode, Space, worker};
use serde_json::json;

/// An operation whose effects answer for calls that are after the same for this long.
fn called(effect_class: EffectClass, window_ms: u64) -> OperationEntry {
    let entry = operation("plan.change", effect_class, RepeatSafety::RepeatSafe);
    let contract = Plain(json!({ "kind": "simulated", "repeat_window_ms": window_ms }));
    let contract_digest = digest_of(&contract).unwrap();
    let verification = closer_contracts::item::Verification { contract_digest, ..entry.verification.clone() };
    OperationEntry { contract, contract_digest, verification, ..entry }
}

fn space(entry: OperationEntry) -> Space {
    let deployment = Deployment::default().without("plan.change").with(Item::Operation(entry));
    Space::found(&deployment, Box::new(|work, _| worker::nothing(work))).unwrap()
}

fn a_call(space: &mut Space, plan: &str) -> Call {
    let id = ArtifactId::new(space.fresh("call"));
    let entry = space.view().state.operation(&"plan.change".into()).unwrap().clone();
    Call {
        call_id: id,
        caller: "worker".into(),
        obligation_id: "o-1".into(),
        session: None,
        transport_key: None,
        proposal: worker::proposal("o-1-works", plan),
        endpoint: entry.contract_digest,
        redeems: None,
    }
}

fn make(space: &mut Space, call: Call) -> Reply {
    let producer = ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant };
    space.submit_artifact(call, producer, SigningScope::Result).unwrap()
}

/// The call that counts for one that was made.
fn counts(reply: &Reply) -> ArtifactId {
    let Reply::Recorded(references) = reply else { panic!("{reply:?}") };
    references[0].id.clone()
}

fn fate(space: &Space, call_id: &ArtifactId) -> Fate {
    call::fate(space.view(), call_id).unwrap()
}

fn attempt(fate: Fate) -> AttemptId {
    match fate {
        Fate::Done { attempt_id, .. } | Fate::Unknown { attempt_id, .. } | Fate::NoEffect { attempt_id, .. } => {
            attempt_id
        }
        other @ (Fate::UnderWay | Fate::OnTheBench(_) | Fate::Refused { .. }) => panic!("{other:?}"),
    }
}

/// Makes a call for a plan and runs what it made eligible.
fn run(space: &mut Space, plan: &str) -> Reply {
    let call = a_call(space, plan);
    let reply = make(space, call);
    space.run().unwrap();
    reply
}

/// The packet of a call that nothing granted.
fn asked(space: &mut Space, plan: &str) -> DecisionId {
    let reply = run(space, plan);
    let Fate::OnTheBench(packet) = fate(space, &counts(&reply)) else { panic!("{:?}", fate(space, &counts(&reply))) };
    packet
}

#[test]
fn a_granted_call_runs_and_is_read_back() {
    let mut space = space(called(EffectClass::ExternalReversible, 0));
    let reply = run(&mut space, "basic");
    assert!(matches!(fate(&space, &counts(&reply)), Fate::Done { .. }), "{:?}", fate(&space, &counts(&reply)));
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn where_each_call_is_new_two_are_two_effects() {
    let mut space = space(called(EffectClass::ExternalReversible, 0));
    let (first, second) = (run(&mut space, "basic"), run(&mut space, "basic"));
    assert_ne!(counts(&first), counts(&second));
    assert_eq!(space.world.effects().len(), 2);
}

#[test]
fn within_its_window_an_effect_answers_for_whoever_is_after_the_same() {
    let mut space = space(called(EffectClass::ExternalReversible, 60_000));
    let (first, second) = (run(&mut space, "basic"), run(&mut space, "basic"));
    assert_eq!(counts(&first), counts(&second));
    assert_eq!(space.world.effects().len(), 1);
    // Another plan is another intent, and so is the same one once its window is over.
    run(&mut space, "small");
    space.pass(120_000).unwrap();
    let late = run(&mut space, "basic");
    assert_ne!(counts(&late), counts(&first));
    assert_eq!(space.world.effects().len(), 3);
}

#[test]
fn a_session_has_intents_of_its_own() {
    let mut space = space(called(EffectClass::ExternalReversible, 60_000));
    for session in ["s-1", "s-2", "s-1"] {
        let call = Call { session: Some(session.into()), ..a_call(&mut space, "basic") };
        make(&mut space, call);
        space.run().unwrap();
    }
    assert_eq!(space.world.effects().len(), 2);
}

#[test]
fn the_same_message_is_the_same_call_whatever_the_window() {
    shows!("CP-6.4-07", "CP-8.2-01"; by "call.key_stands_for_another");
    let mut space = space(called(EffectClass::ExternalReversible, 0));
    let keyed = |space: &mut Space, plan: &str| Call { transport_key: Some("k-1".into()), ..a_call(space, plan) };
    let call = keyed(&mut space, "basic");
    let first = make(&mut space, call);
    space.run().unwrap();
    let call = keyed(&mut space, "basic");
    assert_eq!(counts(&make(&mut space, call)), counts(&first));
    let call = keyed(&mut space, "small");
    refused(&make(&mut space, call), Code::KeyReuseChangedContent);
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn while_an_attempt_is_unsettled_the_same_is_not_called_again() {
    shows!("CP-C7-09"; by "call.attempt_unsettled");
    let mut space = space(called(EffectClass::ExternalReversible, 60_000));
    space.world.effect_mode = Mode::AppliedUnanswered;
    space.world.observe_mode = Mode::Unavailable;
    let first = run(&mut space, "basic");
    let unsettled = attempt(fate(&space, &counts(&first)));
    let call = a_call(&mut space, "basic");
    let again = make(&mut space, call);
    refused(&again, Code::OutcomeUnknown);
    assert_eq!(again.refusal().unwrap().offending.as_deref(), Some(unsettled.as_str()));
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn reads_always_run_and_leave_nothing_to_be_read_back() {
    let mut space = space(called(EffectClass::ReadOnly, 60_000));
    let (first, second) = (run(&mut space, "basic"), run(&mut space, "basic"));
    assert_ne!(counts(&first), counts(&second));
    assert!(matches!(fate(&space, &counts(&second)), Fate::Done { .. }), "{:?}", fate(&space, &counts(&second)));
    // One whose answer is lost blocks nothing either.
    space.world.effect_mode = Mode::AppliedUnanswered;
    let lost = run(&mut space, "basic");
    assert!(matches!(fate(&space, &counts(&lost)), Fate::NoEffect { .. }), "{:?}", fate(&space, &counts(&lost)));
    assert!(space.view().unsettled.is_empty());
}

#[test]
fn an_endpoint_that_shows_itself_otherwise_is_not_called() {
    shows!("CP-3.3-05", "CP-12-08"; by "call.endpoint_differs");
    let mut space = space(called(EffectClass::ExternalReversible, 0));
    let call = Call { endpoint: Digest::of(b"described anew"), ..a_call(&mut space, "basic") };
    refused(&make(&mut space, call), Code::EndpointMismatch);
    space.run().unwrap();
    assert!(space.world.effects().is_empty());
}

#[test]
fn a_call_is_made_by_a_participant_in_its_own_name() {
    let mut space = space(called(EffectClass::ExternalReversible, 0));
    let call = a_call(&mut space, "basic");
    let producer = ActorRef { actor_id: "observer-1".into(), role: ProducerRole::Observer };
    refused(&space.submit_artifact(call, producer, SigningScope::Result).unwrap(), Code::Unauthenticated);
}

#[test]
fn what_a_person_allowed_is_redeemed_once_and_as_it_was_asked() {
    let mut space = space(called(EffectClass::ExternalReversible, 0));
    let packet = asked(&mut space, "huge");
    let redeem = |space: &mut Space, plan: &str| Call { redeems: Some(packet.clone()), ..a_call(space, plan) };
    let call = redeem(&mut space, "huge");
    refused(&make(&mut space, call), Code::MissingAuthority);
    recorded(&space.answer(&packet, DecisionType::ScopedAuthorization).unwrap());
    space.run().unwrap();
    assert!(space.world.effects().is_empty(), "nobody has redeemed it");
    let call = redeem(&mut space, "basic");
    refused(&make(&mut space, call), Code::SubjectMismatch);
    let call = redeem(&mut space, "huge");
    let first = make(&mut space, call);
    space.run().unwrap();
    let call = redeem(&mut space, "huge");
    assert_eq!(counts(&make(&mut space, call)), counts(&first));
    space.run().unwrap();
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn a_packet_that_was_refused_is_not_redeemed() {
    let mut space = space(called(EffectClass::ExternalReversible, 0));
    let packet = asked(&mut space, "huge");
    recorded(&space.answer(&packet, DecisionType::Rejection).unwrap());
    let call = Call { redeems: Some(packet), ..a_call(&mut space, "huge") };
    refused(&make(&mut space, call), Code::MissingAuthority);
}

#[test]
fn a_packet_of_somebody_else_is_not_redeemed() {
    let mut space = Space::found(
        &Deployment::default(),
        Box::new(|work, _| {
            let proposed = vec![worker::proposal("o-1-works", "huge")];
            closer_contracts::work::WorkResult { action_proposals: proposed, ..worker::nothing(work) }
        }),
    )
    .unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let packet = space.view().packets.keys().next().unwrap().clone();
    recorded(&space.answer(&packet, DecisionType::ScopedAuthorization).unwrap());
    let call = Call { redeems: Some(packet), ..a_call(&mut space, "huge") };
    refused(&make(&mut space, call), Code::Unauthenticated);
}

#[test]
fn calls_that_come_together_have_their_turns() {
    let mut space = space(called(EffectClass::ExternalReversible, 60_000));
    let mut ids = Vec::new();
    for plan in ["basic", "small", "basic"] {
        let call = a_call(&mut space, plan);
        ids.push(counts(&make(&mut space, call)));
    }
    assert_eq!(ids[0], ids[2], "the same waits already");
    space.run().unwrap();
    for id in &ids {
        assert!(matches!(fate(&space, id), Fate::Done { .. }), "{:?}", fate(&space, id));
    }
    assert_eq!(space.world.effects().len(), 2);
}
