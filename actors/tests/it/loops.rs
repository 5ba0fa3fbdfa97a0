//! Event → … → commit → receipt, over real actors and the real store.

use crate::support::*;
use closer_actors::Options;
use closer_protocol::entry::{AttemptStatus, EpisodeEnd};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_leads_to_the_effect_its_readback_and_a_closing_commit() {
    let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    settle(&handle).await;
    let view = handle.view();
    assert_eq!(place.world.plan("service-a").as_deref(), Some("basic"));
    assert_eq!(place.world.effects().len(), 1);
    let episode = view.episodes.values().next().unwrap();
    assert_eq!(episode.end, Some(EpisodeEnd::Committed));
    assert!(is_resolved(&view, "o-1"));
    assert_eq!(view.attempts.values().next().unwrap().status, AttemptStatus::EffectConfirmed);
    assert!(view.commits.values().next_back().unwrap().receipt.is_some(), "a commit has its receipt");
    drop(handle);
    runtime.stop().await.unwrap();
    let replayed = place.replay().await;
    assert_eq!(replayed.state.reference(), view.state.reference(), "replay comes to the same state");
}
