//! Readbacks: what the target shows after an attempt, by the registered method, and what it cannot show.

use crate::actions::{readback_now, ready};
use crate::support::{changed, codes, dispatch, recorded, refused, status};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Phase;
use closer_contracts::envelope::Body;
use closer_contracts::evidence::Evidence;
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::{Payload, shows};
use closer_protocol::entry::AttemptStatus;
use closer_scenarios::founding::plan_target;
use closer_scenarios::{Deployment, Mode};

pub(crate) fn observed(payload: &Payload, change: impl FnOnce(&mut Evidence)) -> Payload {
    let Body::Evidence(evidence) = payload.body() else { unreachable!("an observation") };
    let mut evidence = (**evidence).clone();
    change(&mut evidence);
    changed(payload, |envelope| envelope.body = evidence.into())
}

#[test]
fn an_outcome_is_not_adjudicated_without_its_readback() {
    shows!("CP-C15-05", "CP-4.2-02"; by "adjudication.outcome_cites_readback");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    recorded(&dispatch(&mut space, &payload_id));
    let read = readback_now(&mut space);
    recorded(&space.submit_payload(read.clone()).unwrap());
    let view = space.view().clone();
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let attempt = view.attempts.values().next().expect("the attempt");
    let evidence = view.evidence.values().next().expect("the readback");
    let judged =
        closer_protocol::adjudicate::post_outcome(&view, episode, attempt, evidence, &space.moment().now).unwrap();
    let Body::Adjudication(body) = judged.body() else { unreachable!("an adjudication") };
    assert_eq!(body.phase, Phase::PostOutcome);
    let mut without = judged.envelope().clone();
    without.body =
        closer_contracts::adjudication::Adjudication { readback_refs: Vec::new(), ..(**body).clone() }.into();
    assert_eq!(Payload::seal(without).map_err(|fault| fault.code).err(), Some(Code::SchemaInvalid));
    recorded(&space.submit_payload(judged).unwrap());
}

#[test]
fn a_readback_comes_after_its_attempt() {
    shows!("CP-C15-05", "CP-C8-06"; by "readback.before_the_attempt");
    let (mut space, _, payload_id) = ready(&Deployment::default());
    let before = space.moment().now;
    space.pass(1_000).unwrap();
    recorded(&dispatch(&mut space, &payload_id));
    let read = readback_now(&mut space);
    let early = observed(&read, |evidence| evidence.observed_at = before);
    let reply = space.submit_payload(early).unwrap();
    assert!(codes(&reply).contains(&Code::SchemaInvalid), "{reply:?}");
    recorded(&space.submit_payload(read).unwrap());
}

/// The settle time ends by the runtime's clock; an observation dated ahead of it says nothing more than one of now.
#[test]
fn a_readback_dated_ahead_ends_no_settle_time() {
    let (mut space, _, payload_id) = ready(&Deployment::default());
    space.world.set(&plan_target(), "plan", "standard");
    space.world.effect_mode = Mode::AnsweredNotApplied;
    recorded(&dispatch(&mut space, &payload_id));
    let read = readback_now(&mut space);
    let far = closer_contracts::Timestamp::parse("2199-01-01T00:00:00Z").unwrap();
    let ahead = observed(&read, |evidence| {
        evidence.observed_at = far;
        if let Some(readback) = &mut evidence.readback {
            assert_eq!(readback.outcome, closer_contracts::evidence::ReadbackOutcome::Unknown, "it is still settling");
            readback.outcome = closer_contracts::evidence::ReadbackOutcome::NotMatched;
        }
    });
    refused(&space.submit_payload(ahead).unwrap(), Code::SchemaInvalid);
    space.pass(2_000).unwrap();
    let later = readback_now(&mut space);
    let Body::Evidence(evidence) = later.body() else { unreachable!("an observation") };
    let outcome = evidence.readback.as_ref().map(|readback| readback.outcome);
    assert_eq!(outcome, Some(closer_contracts::evidence::ReadbackOutcome::NotMatched), "once it is over");
}

#[test]
fn another_accounts_target_establishes_nothing() {
    shows!("CP-C8-03", "CP-INV-04"; by "readback.other_target", "readback.outcome_misstated");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    recorded(&dispatch(&mut space, &payload_id));
    space.world.observe_mode = Mode::WrongAccount;
    let read = readback_now(&mut space);
    let claimed = observed(&read, |evidence| {
        if let Some(readback) = &mut evidence.readback {
            readback.outcome = closer_contracts::evidence::ReadbackOutcome::Matched;
        }
    });
    refused(&space.submit_payload(claimed).unwrap(), Code::TargetMismatch);
    space.finish(&episode_id).unwrap();
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
    assert!(!crate::support::claimed(&space));
}

#[test]
fn a_readback_is_of_an_attempt_on_record_by_its_registered_method() {
    shows!("CP-12-10"; by "readback.method_unregistered");
    let (mut space, _, payload_id) = ready(&Deployment::default());
    recorded(&dispatch(&mut space, &payload_id));
    let read = readback_now(&mut space);
    let unknown = observed(&read, |evidence| {
        if let Some(readback) = &mut evidence.readback {
            readback.attempt_id = "attempt-none".into();
        }
    });
    refused(&space.submit_payload(unknown).unwrap(), Code::UnresolvedRef);
    let other = observed(&read, |evidence| {
        if let Some(readback) = &mut evidence.readback {
            readback.readback_method_ref.version = 2;
        }
    });
    refused(&space.submit_payload(other).unwrap(), Code::ContractIncompatible);
    recorded(&space.submit_payload(read).unwrap());
}

#[test]
fn after_a_crash_between_call_and_record_the_target_decides() {
    shows!("CP-8.1-14", "CP-8.2-02"; by "readback.all_expectations_hold");
    for applied in [true, false] {
        let (mut space, episode_id, payload_id) = ready(&Deployment::default());
        space.sends_at_once = false;
        recorded(&dispatch(&mut space, &payload_id));
        let action = space.view().actions.get(&payload_id).expect("the action").body.clone();
        if applied {
            let now = space.moment().now;
            space.world.perform(&action, &now);
        }
        space.crash().unwrap();
        space.sends_at_once = true;
        let attempt = space.view().attempts.values().next().expect("the attempt");
        assert_eq!(attempt.status, AttemptStatus::OutcomeUnknown);
        space.finish(&episode_id).unwrap();
        let expected = if applied { ObligationStatus::Resolved } else { ObligationStatus::Active };
        assert_eq!(status(&space, "o-1"), expected, "applied: {applied}");
        assert_eq!(space.world.effects().len(), usize::from(applied), "no effect is repeated");
    }
}

#[test]
fn the_interval_between_authorization_and_effect_is_on_record_or_said_to_be_unknown() {
    shows!("CP-8.1-15"; by "readback.absence_shown");
    let (mut space, _, payload_id) = ready(&Deployment::default());
    space.sends_at_once = false;
    recorded(&dispatch(&mut space, &payload_id));
    space.pass(2_000).unwrap();
    space.send().unwrap();
    let attempt = space.view().attempts.values().next().expect("the attempt").clone();
    let sent_at = attempt.outcome.as_ref().and_then(|outcome| outcome.sent_at.clone()).expect("it was sent");
    assert_eq!(sent_at.unix_ms() - attempt.intent.authorized_at.unix_ms(), 2_000);
    space.pass(2_000).unwrap();
    space.world.set(&plan_target(), "plan", "large");
    let read = readback_now(&mut space);
    recorded(&space.submit_payload(read).unwrap());
    let settled = space.view().attempts.values().next().expect("the attempt").outcome.clone().expect("settled");
    assert_eq!(
        (settled.status, settled.sent_at.clone()),
        (AttemptStatus::NoEffectConfirmed, Some(sent_at)),
        "and stays with what settles it"
    );
    let (mut space, _, payload_id) = ready(&Deployment::default());
    space.sends_at_once = false;
    recorded(&dispatch(&mut space, &payload_id));
    space.crash().unwrap();
    let attempt = space.view().attempts.values().next().expect("the attempt");
    assert_eq!(attempt.outcome.as_ref().map(|outcome| outcome.sent_at.clone()), Some(None), "unknown after a crash");
}
