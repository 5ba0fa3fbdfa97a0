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
        "coordinator", "disclosure", "participants", "planner", "assessor", "monitor", "observer", "distiller", "semantic",
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
    assert!(place.world.effects().is_empty(), "nothing is sent again for a permit that is used up");
    assert_eq!(view.attempts.values().next().unwrap().status, AttemptStatus::NoEffectConfirmed);
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
