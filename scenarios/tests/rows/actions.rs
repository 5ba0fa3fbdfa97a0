//! Actions: one key for one logical operation, the current owner's epoch, and readback before repetition.

use crate::support::{begun, changed, codes, dispatch, recorded, refused, until, until_dispatch};
use closer_contracts::RefusalCode as Code;
use closer_contracts::action::Action;
use closer_contracts::audit::RestrictiveAction;
use closer_contracts::delta::Change;
use closer_contracts::envelope::{Body, Extensions};
use closer_contracts::id::{EpisodeId, PayloadId};
use closer_contracts::item::{EffectClass, Item, ItemKind, RepeatSafety};
use closer_contracts::refs::{Plain, ProducerRole};
use closer_contracts::{Payload, shows};
use closer_protocol::entry::AttemptStatus;
use closer_protocol::episode::Next;
use closer_protocol::input::Input;
use closer_protocol::port::Performed;
use closer_protocol::{action, readback};
use closer_scenarios::founding::{operation, plan_target};
use closer_scenarios::{Deployment, Mode, Space, worker};
use serde_json::json;

fn with(payload: &Payload, id: &str, change: impl FnOnce(&mut Action)) -> Payload {
    let Body::Action(action) = payload.body() else { unreachable!("an action") };
    let mut action = (**action).clone();
    change(&mut action);
    action.logical_digest = action.compute_logical_digest().unwrap();
    changed(payload, |envelope| {
        envelope.payload_id = id.into();
        envelope.body = action.into();
    })
}

pub(crate) fn ready(deployment: &Deployment) -> (Space, EpisodeId, PayloadId) {
    let mut space = Space::found(deployment, worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    (space, episode_id, payload_id)
}

fn payload(space: &Space, payload_id: &PayloadId) -> Payload {
    (*space.view().actions.get(payload_id).expect("the action").payload).clone()
}

/// The assessor assesses an action on record.
pub(crate) fn assess(space: &mut Space, episode_id: &EpisodeId, payload_id: &PayloadId) {
    let view = space.view().clone();
    let episode = view.episodes.get(episode_id).expect("the episode");
    let action = view.actions.get(payload_id).expect("the action");
    let draft = closer_protocol::adjudicate::pre_action(&view, episode, action, &space.moment().now).unwrap();
    recorded(&space.submit_payload(draft).unwrap());
}

/// Another attempt at an action that is on record, as the planner drafts it now, changed as told.
pub(crate) fn again(
    space: &mut Space,
    episode_id: &EpisodeId,
    payload_id: &PayloadId,
    change: impl FnOnce(&mut Action),
) -> PayloadId {
    let episode = space.view().episodes.get(episode_id).expect("the episode").clone();
    let now = space.moment().now;
    let draft = action::draft_again(space.view(), &episode, payload_id, 2, &now).unwrap();
    let id = space.fresh("pl.again");
    let changed = with(&draft, &id, change);
    recorded(&space.submit_payload(changed.clone()).unwrap());
    changed.id().clone()
}

/// The readback of the newest attempt, as the observer drafts it now.
pub(crate) fn readback_now(space: &mut Space) -> Payload {
    let attempt = space.view().attempts.values().next_back().expect("the attempt").clone();
    let method = readback::method_for(space.view(), &attempt).expect("the method").clone();
    let now = space.moment().now;
    let observed = space.world.observe(&attempt.action.target, &now);
    readback::draft(space.view(), &method, &observed, &attempt.action.target, Some(&attempt), &[], &now).unwrap()
}

#[test]
fn an_action_id_names_one_logical_digest() {
    shows!("CP-C7-04", "CP-B-01"; by "action.id_names_other_content");
    let (mut space, _, payload_id) = ready(&Deployment::default());
    let own = payload(&space, &payload_id);
    let other = with(&own, "pl.other", |action| {
        action.parameters.insert("plan".into(), Plain(json!("small")));
        action.attempt_id = "attempt-other".into();
    });
    refused(&space.submit_payload(other).unwrap(), Code::KeyConflict);
    recorded(&dispatch(&mut space, &payload_id));
}

#[test]
fn a_key_never_stands_for_changed_content_even_if_that_is_assessed() {
    shows!("CP-6.4-07", "CP-C7-08", "CP-8.2-05"; by "monitor.key_stands_for_other_content");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    let own = payload(&space, &payload_id);
    recorded(&dispatch(&mut space, &payload_id));
    let read = readback_now(&mut space);
    recorded(&space.submit_payload(read).unwrap());
    let other = with(&own, "pl.other", |action| {
        action.action_id = "action-other".into();
        action.attempt_id = "attempt-other".into();
        action.parameters.insert("plan".into(), Plain(json!("small")));
    });
    recorded(&space.submit_payload(other.clone()).unwrap());
    assess(&mut space, &episode_id, other.id());
    refused(&dispatch(&mut space, other.id()), Code::KeyReuseChangedContent);
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn a_reassigned_operation_keeps_its_key_and_only_the_new_epoch_dispatches() {
    shows!("CP-6.4-05", "CP-C7-06", "CP-8.2-07"; by "monitor.epoch_stale");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    let epoch = space.transfer("o-1", "closer.planner", None).unwrap();
    refused(&dispatch(&mut space, &payload_id), Code::StaleEpoch);
    assert_eq!(space.world.effects().len(), 0);
    let renewed = again(&mut space, &episode_id, &payload_id, |_| {});
    let actions = [&payload_id, &renewed].map(|id| space.view().actions.get(id).expect("on record").body.clone());
    assert_eq!(actions[0].logical_digest, actions[1].logical_digest);
    assert_eq!(actions[0].idempotency_key, actions[1].idempotency_key);
    assert_ne!(actions[0].attempt_id, actions[1].attempt_id);
    assert_eq!(actions[1].ownership_epoch, epoch);
    recorded(&dispatch(&mut space, &renewed));
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn a_former_owner_dispatches_nothing() {
    shows!("CP-8.2-09"; by "monitor.epoch_stale");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    space.transfer("o-1", "closer.planner", None).unwrap();
    let renewed = again(&mut space, &episode_id, &payload_id, |_| {});
    space.transfer("o-1", "closer.coordinator", None).unwrap();
    for former in [payload_id, renewed] {
        refused(&dispatch(&mut space, &former), Code::StaleEpoch);
    }
    assert_eq!((space.world.effects().len(), space.view().attempts.len()), (0, 0));
}

#[test]
fn a_new_owner_waits_until_the_former_owners_effect_is_reconciled() {
    shows!("CP-8.2-08", "CP-C7-09", "CP-8.2-10"; by "monitor.attempt_refused");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    space.world.effect_mode = Mode::LostUnanswered;
    recorded(&dispatch(&mut space, &payload_id));
    space.transfer("o-1", "closer.planner", None).unwrap();
    let renewed = again(&mut space, &episode_id, &payload_id, |_| {});
    let reply = dispatch(&mut space, &renewed);
    refused(&reply, Code::OutcomeUnknown);
    assert_eq!(codes(&reply), [Code::OutcomeUnknown], "the epoch is right, the effect is open");
    space.pass(5_000).unwrap();
    space.world.set(&plan_target(), "plan", "large");
    let read = readback_now(&mut space);
    recorded(&space.submit_payload(read).unwrap());
    space.world.effect_mode = Mode::Normal;
    assess(&mut space, &episode_id, &renewed);
    recorded(&dispatch(&mut space, &renewed));
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn nothing_is_repeated_before_the_target_was_read_back() {
    shows!("CP-10.2-09", "CP-8.2-11"; by "monitor.attempt_refused");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    space.world.effect_mode = Mode::AppliedUnanswered;
    recorded(&dispatch(&mut space, &payload_id));
    let second = again(&mut space, &episode_id, &payload_id, |_| {});
    refused(&dispatch(&mut space, &second), Code::OutcomeUnknown);
    let read = readback_now(&mut space);
    recorded(&space.submit_payload(read).unwrap());
    let reply = dispatch(&mut space, &second);
    assert!(codes(&reply).contains(&Code::Duplicate), "it was done: {reply:?}");
    assert_eq!(space.world.effects().len(), 1, "and is never done again");
}

#[test]
fn a_retry_needs_a_grant_that_is_still_there() {
    shows!("CP-8.2-04"; by "monitor.grant_revoked");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    space.world.effect_mode = Mode::NotSent;
    recorded(&dispatch(&mut space, &payload_id));
    let second = again(&mut space, &episode_id, &payload_id, |_| {});
    recorded(&space.restrict("issuer-1", RestrictiveAction::RevokeGrant("grant-1".into())).unwrap());
    refused(&dispatch(&mut space, &second), Code::GrantRevoked);
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn an_operation_that_is_not_repeat_safe_is_not_retried() {
    shows!("CP-8.2-03"; by "readback.absence_shown");
    let entry = operation("plan.change", EffectClass::ExternalReversible, RepeatSafety::RepeatSafe);
    let once = closer_contracts::item::OperationEntry { repeat_safety: RepeatSafety::NotRepeatSafe, ..entry };
    let (mut space, episode_id, payload_id) = ready(&Deployment::default().with(Item::Operation(once)));
    space.world.effect_mode = Mode::LostUnanswered;
    recorded(&dispatch(&mut space, &payload_id));
    space.pass(5_000).unwrap();
    space.world.set(&plan_target(), "plan", "large");
    let read = readback_now(&mut space);
    recorded(&space.submit_payload(read).unwrap());
    let attempt = space.view().attempts.values().next().expect("the attempt");
    assert_eq!(attempt.status, AttemptStatus::OutcomeUnknown, "another state does not show that nothing happened");
    let second = again(&mut space, &episode_id, &payload_id, |_| {});
    refused(&dispatch(&mut space, &second), Code::OutcomeUnknown);
}

#[test]
fn a_replaced_grant_needs_a_new_assessment_and_a_new_key() {
    shows!("CP-C7-07", "CP-4.2-08"; by "monitor.read_set_moved");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    let old = space.view().actions.get(&payload_id).expect("the action").body.clone();
    let accepted = space.view().state.item(ItemKind::Grant, &"grant-1".into()).expect("the grant").clone();
    let Item::Grant(mut grant) = accepted.item.clone() else { unreachable!("a grant") };
    grant.expiry = grant.expiry.plus_ms(1_000);
    let changes = vec![Change::Revise { item: Box::new(Item::Grant(grant)), replaces: accepted.digest }];
    let authority = space.instruct(&changes).unwrap();
    let delta = crate::support::delta(&mut space, changes, Vec::new(), vec![authority]);
    recorded(&crate::support::propose(&mut space, delta.clone()));
    recorded(&crate::support::endorse(&mut space, &delta, closer_contracts::adjudication::Disposition::Endorsed));
    recorded(&crate::support::commit(&mut space, &delta));
    let reply = dispatch(&mut space, &payload_id);
    refused(&reply, Code::StaleVersion);
    let moved = |fact: &str| matches!(&reply, closer_protocol::input::Reply::Refused(denials) if denials.iter().any(|denial| denial.offending.as_deref() == Some(fact)));
    assert!(moved("grant:grant-1"), "{reply:?}");
    let view = space.view().clone();
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let result = episode.results.first().expect("the result").clone();
    let now = space.moment().now;
    let renewed =
        action::draft(&view, episode, &result, &worker::proposal("p-o-1", "basic"), &"grant-1".into(), 1, &now)
            .unwrap();
    let Body::Action(new) = renewed.body() else { unreachable!("an action") };
    assert_ne!((&new.idempotency_key, new.logical_digest), (&old.idempotency_key, old.logical_digest));
    recorded(&space.submit_payload(renewed.clone()).unwrap());
    refused(&dispatch(&mut space, renewed.id()), Code::Unassessed);
    assess(&mut space, &episode_id, renewed.id());
    recorded(&dispatch(&mut space, renewed.id()));
}

#[test]
fn the_registered_effect_counts_whatever_the_proposal_says() {
    shows!("CP-C7-10", "CP-C7-16"; by "monitor.profile_incomplete");
    let incomplete = Deployment::default().with_profile(|profile| drop(profile.answers.remove(&"q4".into())));
    let (mut space, episode_id, payload_id) = ready(&incomplete);
    let own = payload(&space, &payload_id);
    let harmless = Extensions([("org.example.effect".into(), Plain(json!("read_only")))].into());
    let labelled = with(&own, "pl.labelled", |action| {
        action.action_id = "action-labelled".into();
        action.attempt_id = "attempt-labelled".into();
        action.extensions = Some(harmless);
    });
    recorded(&space.submit_payload(labelled.clone()).unwrap());
    assess(&mut space, &episode_id, labelled.id());
    refused(&dispatch(&mut space, labelled.id()), Code::ProfileIncomplete);
    let reading = operation("plan.change", EffectClass::ReadOnly, RepeatSafety::RepeatSafe);
    let (mut space, _, payload_id) = ready(&incomplete.with(Item::Operation(reading)));
    recorded(&dispatch(&mut space, &payload_id));
}

#[test]
fn an_extension_changes_no_decision() {
    shows!("CP-B-10"; by "monitor.no_such_grant");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    let own = payload(&space, &payload_id);
    let real = Extensions([("org.example.authority_ref".into(), Plain(json!("grant-1")))].into());
    let unauthorized = with(&own, "pl.unauthorized", |action| {
        action.action_id = "action-unauthorized".into();
        action.attempt_id = "attempt-unauthorized".into();
        action.authority_ref = "grant-none".into();
        action.extensions = Some(real);
    });
    recorded(&space.submit_payload(unauthorized.clone()).unwrap());
    assess(&mut space, &episode_id, unauthorized.id());
    let reply = dispatch(&mut space, unauthorized.id());
    refused(&reply, Code::MissingAuthority);
    let Body::Action(bare) = own.body() else { unreachable!("an action") };
    let none = Extensions([("org.example.authority_ref".into(), Plain(json!("grant-none")))].into());
    let extended = with(&own, "pl.extended", |action| action.extensions = Some(none));
    let Body::Action(extended_body) = extended.body() else { unreachable!("an action") };
    assert_eq!(extended_body.logical_digest, bare.logical_digest);
    recorded(&space.submit_payload(extended.clone()).unwrap());
    recorded(&dispatch(&mut space, extended.id()));
}

#[test]
fn epoch_and_attempt_are_bound_by_the_envelope_around_them() {
    shows!("CP-C7-05", "CP-6.4-03"; by "envelope.content_digest_agrees");
    let (space, _, payload_id) = ready(&Deployment::default());
    let own = payload(&space, &payload_id);
    for (field, value) in [("ownership_epoch", json!(7)), ("attempt_id", json!("attempt-other"))] {
        let mut forged: serde_json::Value = serde_json::from_slice(own.bytes()).unwrap();
        forged["body"][field] = value;
        let bytes = closer_contracts::canonical::to_bytes(&forged).unwrap();
        assert_eq!(Payload::read(&bytes).map_err(|fault| fault.code).err(), Some(Code::DigestMismatch), "{field}");
    }
    assert_eq!(Payload::read(own.bytes()).unwrap(), own);
}

#[test]
fn an_attempt_that_nobody_asked_for_has_no_outcome() {
    shows!("CP-8.1-12"; by "dispatch.outcome_on_record");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    let performed = Performed::NotSent { reason: "there was no intent".into() };
    refused(
        &space.submit(Input::Performed { attempt_id: "attempt-none".into(), performed }).unwrap(),
        Code::UnresolvedRef,
    );
    recorded(&dispatch(&mut space, &payload_id));
    until(&mut space, &episode_id, |next| matches!(next, Next::Judge { .. }));
    let intent =
        space.entries().unwrap().iter().position(|(_, entry)| matches!(entry, closer_protocol::Entry::Intent(_)));
    let outcome =
        space.entries().unwrap().iter().position(|(_, entry)| matches!(entry, closer_protocol::Entry::Outcome(_)));
    assert!(intent.is_some() && intent < outcome, "the intent is on record before what came of it");
}

#[test]
fn an_action_of_another_role_is_never_recorded() {
    shows!("CP-6.2-06"; by "payload_type.producer_unmapped");
    let (mut space, _, payload_id) = ready(&Deployment::default());
    let own = payload(&space, &payload_id);
    let coordinator = closer_protocol::services::actor_ref(ProducerRole::Coordinator);
    let theirs = changed(&with(&own, "pl.theirs", |action| action.attempt_id = "attempt-theirs".into()), |envelope| {
        envelope.producer = coordinator
    });
    refused(&space.submit_payload(theirs.clone()).unwrap(), Code::MissingAuthority);
    refused(&dispatch(&mut space, theirs.id()), Code::UnresolvedRef);
}
