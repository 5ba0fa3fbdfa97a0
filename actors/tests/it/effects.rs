//! What can come between an assessment and its effect, and what is done about an outcome that is not known.

use crate::support::*;
use closer_actors::Options;
use closer_contracts::adjudication::Disposition;
use closer_contracts::audit::RestrictiveAction;
use closer_contracts::item::AffectedScope;
use closer_contracts::refusal::RefusalCode;
use closer_contracts::shows;
use closer_protocol::entry::{AttemptStatus, EpisodeEnd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Holds one stage back until it is let go.
struct Gate {
    reached: Receiver<()>,
    go: Sender<()>,
}

/// A probe that stops the first time a stage is about to be attended to.
fn gate(stage: &'static str) -> (closer_actors::Probe, Gate) {
    let (reaching, reached) = channel();
    let (go, going) = channel::<()>();
    let (once, held) = (AtomicBool::new(false), Mutex::new((reaching, going)));
    let probe = Arc::new(move |name: &'static str| {
        if name == stage && !once.swap(true, Ordering::SeqCst) {
            let held = held.lock().unwrap();
            held.0.send(()).unwrap();
            tokio::task::block_in_place(|| held.1.recv().unwrap());
        }
    });
    (probe, Gate { reached, go })
}

impl Gate {
    fn wait(&self) {
        tokio::task::block_in_place(|| self.reached.recv().unwrap());
    }
}

fn suspend(service: &str) -> RestrictiveAction {
    let targets = closer_contracts::refs::TargetPattern::exactly(&target(service));
    RestrictiveAction::SuspendEligibility(AffectedScope::Target { operation: Some("plan.change".into()), targets })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_restriction_between_assessment_and_admission_is_seen_and_refused() {
    shows!("CP-7.2-17"; by "monitor.restriction_covers");
    let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
    let (probe, gate) = gate("monitor");
    let runtime = place.start(Options { probe: Some(probe), ..Options::default() }).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    gate.wait();
    let assessed = handle.view().adjudications.values().any(|known| known.body.disposition == Disposition::Justified);
    assert!(assessed, "the action has been assessed as justified");
    let reply = handle.submit(restriction(&handle, "statement-1", suspend("service-a"))).await.unwrap();
    assert_eq!(told(&reply), None);
    gate.go.send(()).unwrap();
    until(&handle, |view| view.episodes.values().any(|episode| episode.end.is_some())).await;
    settle(&handle).await;
    let view = handle.view();
    assert!(place.world.effects().is_empty());
    assert!(view.attempts.is_empty(), "no intent was recorded");
    assert_eq!(view.episodes.values().next().unwrap().end, Some(EpisodeEnd::Refused));
    drop(handle);
    runtime.stop().await.unwrap();
    assert!(place.refusals().await.contains(&RefusalCode::Restricted));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_restriction_between_intent_and_sending_is_seen_by_the_last_look() {
    shows!("CP-7.2-17"; by "monitor.restricted_since");
    let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
    let (probe, gate) = gate("dispatcher");
    let runtime = place.start(Options { probe: Some(probe), ..Options::default() }).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    gate.wait();
    assert_eq!(handle.view().attempts.len(), 1, "the intent is durable before anything is sent");
    let reply = handle.submit(restriction(&handle, "statement-1", suspend("service-a"))).await.unwrap();
    assert_eq!(told(&reply), None);
    gate.go.send(()).unwrap();
    let view = until(&handle, |view| view.attempts.values().all(|attempt| attempt.status.is_settled())).await;
    assert!(place.world.effects().is_empty());
    let attempt = view.attempts.values().next().unwrap();
    assert_eq!(attempt.status, AttemptStatus::NoEffectConfirmed);
    assert!(attempt.outcome.as_ref().unwrap().sent_at.is_none(), "it is recorded as not sent");
    settle(&handle).await;
    runtime.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unanswered_effect_that_took_place_is_confirmed_by_readback_and_not_repeated() {
    shows!("CP-8.2-02"; by "readback.all_expectations_hold");
    let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
    place.world.set_mode(Mode::AppliesUnanswered);
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    settle(&handle).await;
    let view = handle.view();
    assert_eq!(place.world.effects().len(), 1);
    assert_eq!(view.attempts.values().next().unwrap().status, AttemptStatus::EffectConfirmed);
    assert!(is_resolved(&view, "o-1"));
    runtime.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_was_lost_is_shown_to_be_absent_before_it_is_tried_again_under_the_same_key() {
    shows!("CP-8.2-05", "CP-8.1-14"; by "readback.absence_shown");
    let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
    place.world.set_mode(Mode::LosesIt);
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    let settled =
        |status| move |view: &closer_protocol::View| view.attempts.values().any(|attempt| attempt.status == status);
    until(&handle, settled(AttemptStatus::NoEffectConfirmed)).await;
    place.world.set_mode(Mode::Answers);
    settle(&handle).await;
    let view = handle.view();
    assert_eq!(place.world.effects().len(), 1);
    assert!(is_resolved(&view, "o-1"));
    let keys: std::collections::BTreeSet<_> =
        view.attempts.values().map(|attempt| attempt.action.idempotency_key.clone()).collect();
    assert!(view.attempts.len() > 1 && keys.len() == 1, "another attempt at the same logical action has its key");
    let mut by_time: Vec<_> = view.attempts.values().collect();
    by_time.sort_by_key(|attempt| attempt.intent.authorized_at.clone());
    let first = by_time[0].outcome.as_ref().unwrap();
    assert!(first.readback_ref.is_some(), "the first was read back before the next was admitted");
    runtime.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_is_always_lost_is_given_up_and_closes_nothing() {
    let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
    place.world.set_mode(Mode::LosesIt);
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    settle(&handle).await;
    let view = handle.view();
    assert!(place.world.effects().is_empty());
    assert_eq!(view.attempts.len(), closer_protocol::episode::ATTEMPTS_MAX);
    assert!(!is_resolved(&view, "o-1"), "an effect that is absent closes nothing");
    runtime.stop().await.unwrap();
}
