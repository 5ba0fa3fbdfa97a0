//! An actor that panics is started again, and the episode goes on from its records to the same end.

use crate::support::*;
use closer_actors::{Options, Probe};
use closer_protocol::View;
use closer_protocol::entry::{AttemptStatus, EpisodeEnd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A probe that panics the first `times` times that a stage is about to be attended to.
fn dies(stage: &'static str, times: u32) -> (Probe, Arc<AtomicU32>) {
    let deaths = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&deaths);
    let probe = Arc::new(move |name: &'static str| {
        if name == stage && counted.load(Ordering::SeqCst) < times {
            counted.fetch_add(1, Ordering::SeqCst);
            panic!("the {stage} dies, as the test asks");
        }
    });
    (probe, deaths)
}

fn content(view: &View) -> Vec<String> {
    let claims = view.state.items(closer_contracts::item::ItemKind::Claim);
    claims.map(|claim| claim.item.id().to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_at_any_stage_leads_to_the_same_accepted_content() {
    let stages = [
        "coordinator",
        "disclosure",
        "participants",
        "planner",
        "assessor",
        "monitor",
        "observer",
        "distiller",
        "semantic",
    ];
    for stage in stages {
        let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
        let (probe, deaths) = dies(stage, 2);
        let runtime = place.start(Options { probe: Some(probe), ..Options::default() }).await;
        let handle = runtime.handle();
        send(&handle, "service-a", "e-1").await;
        settle(&handle).await;
        let view = handle.view();
        assert_eq!(deaths.load(Ordering::SeqCst), 2, "the {stage} died twice");
        assert!(is_resolved(&view, "o-1"), "after deaths of the {stage}");
        assert_eq!(content(&view), ["claim-p-1"]);
        assert_eq!(place.world.effects().len(), 1, "after deaths of the {stage} the effect was made once");
        runtime.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_that_dies_before_it_tells_leaves_an_unknown_outcome_that_is_read_back() {
    let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
    let (probe, deaths) = dies("dispatcher", 1);
    let runtime = place.start(Options { probe: Some(probe), ..Options::default() }).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    settle(&handle).await;
    let view = handle.view();
    assert_eq!(deaths.load(Ordering::SeqCst), 1);
    let mut attempts: Vec<_> = view.attempts.values().collect();
    attempts.sort_by_key(|attempt| attempt.intent.authorized_at.clone());
    assert_eq!(attempts[0].status, AttemptStatus::NoEffectConfirmed);
    assert!(attempts[0].outcome.as_ref().unwrap().readback_ref.is_some(), "by a readback, not by assumption");
    assert_eq!(
        place.world.effects()[0].attempt_id,
        attempts[1].intent.attempt_id,
        "a permit that is used up sends nothing"
    );
    assert_eq!((attempts.len(), place.world.effects().len()), (2, 1));
    assert!(is_resolved(&view, "o-1"));
    runtime.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_participant_that_always_panics_gives_no_answer_and_the_obligation_stays_open() {
    let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), Box::new(|_| panic!("as the test asks"))).await;
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    settle(&handle).await;
    let view = handle.view();
    assert_eq!(view.episodes.values().next().unwrap().end, Some(EpisodeEnd::NoAnswer));
    assert!(!is_resolved(&view, "o-1"));
    runtime.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sequence_that_dies_between_any_two_decisions_reads_the_log_and_goes_on() {
    for dies_at in 3..=16_u32 {
        let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
        let decisions = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&decisions);
        let probe: Probe = Arc::new(move |name: &'static str| {
            let is_due = name == "sequence" && counted.fetch_add(1, Ordering::SeqCst) + 1 == dies_at;
            assert!(!is_due, "the sequence dies, as the test asks");
        });
        let runtime = place.start(Options { probe: Some(probe), ..Options::default() }).await;
        let handle = runtime.handle();
        // The event itself may be what is interrupted: it is sent again, and recorded once.
        let first = handle.submit(price(&handle, "service-a", "e-1")).await;
        if first.is_err() {
            send(&handle, "service-a", "e-1").await;
        }
        until(&handle, |view| is_resolved(view, "o-1")).await;
        settle(&handle).await;
        assert!(decisions.load(Ordering::SeqCst) > dies_at, "it came to decision {dies_at}");
        assert_eq!(place.world.effects().len(), 1, "after a death at decision {dies_at}");
        assert_eq!(content(&handle.view()), ["claim-p-1"]);
        runtime.stop().await.unwrap();
    }
}

/// Obligations that are kept at the same time.
const LOAD: [(&str, &str, &str); 3] =
    [("o-1", "service-a", "p-1"), ("o-2", "service-b", "p-2"), ("o-3", "service-c", "p-3")];

/// Every actor that takes messages.
const ACTORS: [&str; 11] = [
    "coordinator",
    "disclosure",
    "participants",
    "planner",
    "assessor",
    "monitor",
    "dispatcher",
    "observer",
    "distiller",
    "semantic",
    "sequence",
];

/// What was accepted of each obligation and what was done at each target, by where it comes from and not by its id.
fn came_to(view: &View, place: &Place) -> Vec<String> {
    let mut told: Vec<String> = LOAD
        .iter()
        .map(|(id, _, proposition)| {
            let obligation = view.state.obligation(&(*id).into()).unwrap();
            let conditions = obligation.resolution_conditions.iter().map(|condition| condition.assessment_status);
            let conditions: Vec<_> = conditions.collect();
            let claims = view.state.claims_on(&(*proposition).into()).count();
            format!("{id}: {}, {conditions:?}, {claims} claims", obligation.status)
        })
        .collect();
    let mut effects: Vec<String> = place
        .world
        .effects()
        .iter()
        .map(|action| format!("{} at {}", action.operation, action.target.address))
        .collect();
    effects.sort();
    told.extend(effects);
    told.extend(view.calls_under.iter().map(|(grant, calls)| format!("{grant}: {calls} calls")));
    told
}

/// Runs the load to its end; the `nth` message that `actor` attends to kills it. Gives what it came to, and whether it died.
async fn under_load(actor: &'static str, nth: u32) -> (Vec<String>, bool) {
    let place = Place::found(&founding(&LOAD), proposes("basic")).await;
    let attended = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&attended);
    let probe: Probe = Arc::new(move |name: &'static str| {
        let is_due = name == actor && counted.fetch_add(1, Ordering::SeqCst) + 1 == nth;
        assert!(!is_due, "the {actor} dies, as the test asks");
    });
    let runtime = place.start(Options { probe: Some(probe), ..Options::default() }).await;
    let handle = runtime.handle();
    for (number, (_, service, _)) in LOAD.iter().enumerate() {
        let key = format!("e-{number}");
        // What is interrupted is sent again, and recorded once.
        if handle.submit(price(&handle, service, &key)).await.is_err() {
            let _taken_before = handle.submit(price(&handle, service, &key)).await.unwrap();
        }
    }
    until(&handle, |view| LOAD.iter().all(|(id, ..)| is_resolved(view, id))).await;
    settle(&handle).await;
    let reached = (came_to(&handle.view(), &place), attended.load(Ordering::SeqCst) >= nth);
    runtime.stop().await.unwrap();
    reached
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_of_any_actor_at_any_of_its_messages_under_load_changes_nothing_that_is_accepted_or_done() {
    let (undisturbed, _) = under_load("nobody", 1).await;
    assert_eq!(undisturbed.iter().filter(|line| line.starts_with("plan.change at")).count(), LOAD.len());
    for actor in ACTORS {
        for nth in [1, 2, 5] {
            // A sequence that dies of its first two decisions has not begun, and whoever begins it is told so.
            let begun = if actor == "sequence" { 2 } else { 0 };
            let (disturbed, died) = under_load(actor, begun + nth).await;
            assert!(died || nth > LOAD.len() as u32, "the {actor} attends to {nth} messages");
            assert_eq!(disturbed, undisturbed, "after the death of the {actor} at its message {nth}");
        }
    }
}
