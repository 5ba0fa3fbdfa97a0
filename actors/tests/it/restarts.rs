//! A process that ends at any boundary: the next one comes to the same accepted content, with every effect made once.

use crate::support::*;
use closer_actors::Options;
use closer_protocol::View;
use closer_protocol::entry::AttemptStatus;
use std::time::Duration;

/// What a space has accepted and done, without the ids that differ from run to run.
fn accepted(view: &View) -> (bool, usize, usize) {
    let claims = view.state.items(closer_contracts::item::ItemKind::Claim).count();
    let confirmed = view.attempts.values().filter(|attempt| attempt.status == AttemptStatus::EffectConfirmed).count();
    (is_resolved(view, "o-1"), confirmed, claims)
}

/// Runs until `halt_after` appends have landed, then ends as a killed process would.
async fn run_and_die(place: &Place, halt_after: u64) {
    let log = open(place.directory.path()).await;
    let before = log.durable();
    let starting = closer_actors::Runtime::start(
        log.clone(),
        place.ports(),
        Options { halt_after: Some(halt_after), ..Options::default() },
    );
    // A runtime that halts before it has recovered never finishes starting: that is a death as well.
    if let Ok(Ok(runtime)) = tokio::time::timeout(Duration::from_secs(5), starting).await {
        let handle = runtime.handle();
        let sent =
            tokio::time::timeout(Duration::from_millis(300), handle.submit(price(&handle, "service-a", "e-1"))).await;
        drop(sent);
        for _ in 0..200 {
            let landed = log.durable();
            tokio::time::sleep(Duration::from_millis(30)).await;
            if log.durable() == landed {
                break;
            }
        }
        assert!(log.durable() >= before);
        drop(handle);
        runtime.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_dies_after_any_append_leaves_the_next_one_to_the_same_end() {
    let mut spread = Vec::new();
    for halt_after in 1..=16 {
        let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
        run_and_die(&place, halt_after).await;
        let left = place.replay().await;
        let runtime = place.start(Options::default()).await;
        let handle = runtime.handle();
        let again = handle.submit(price(&handle, "service-a", "e-1")).await.unwrap();
        drop(again);
        settle(&handle).await;
        let view = handle.view();
        assert_eq!(accepted(&view), (true, 1, 1), "after {halt_after} appends");
        assert_eq!(place.world.effects().len(), 1, "after {halt_after} appends the effect was made once");
        drop(handle);
        runtime.stop().await.unwrap();
        assert_eq!(place.replay().await.state.reference(), view.state.reference());
        spread.push((left.attempts.len(), left.committed.len()));
    }
    assert!(spread.iter().any(|(attempts, _)| *attempts == 0), "some deaths came before the intent");
    assert!(
        spread.iter().any(|(attempts, committed)| *attempts == 1 && *committed == spread[0].1),
        "some between intent and commit"
    );
    assert!(spread.iter().any(|(_, committed)| *committed > spread[0].1), "some after the commit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_graceful_stop_lets_an_effect_end_and_a_restart_goes_on_from_its_outcome() {
    let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
    place.world.effect_ms.store(200, std::sync::atomic::Ordering::SeqCst);
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    until(&handle, |view| !view.attempts.is_empty()).await;
    drop(handle);
    runtime.stop().await.unwrap();
    let left = place.replay().await;
    assert_eq!(
        left.attempts.values().next().unwrap().status,
        AttemptStatus::Responded,
        "the stop waited for the effect"
    );
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    settle(&handle).await;
    assert_eq!(place.world.effects().len(), 1);
    assert!(is_resolved(&handle.view(), "o-1"));
    runtime.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_outlived_its_episode_is_reconciled_by_readback_after_a_restart() {
    let mut founding = founding(&[("o-1", "service-a", "p-1")]);
    founding.profile.limits.episode_ms_max = 400;
    let place = Place::found(&founding, proposes("basic")).await;
    place.world.effect_ms.store(60_000, std::sync::atomic::Ordering::SeqCst);
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    until(&handle, |view| view.episodes.values().any(|episode| episode.end.is_some()) && view.attempts.len() == 1)
        .await;
    drop(handle);
    runtime.kill().await;
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    let view = until(&handle, |view| view.attempts.values().all(|attempt| attempt.status.is_settled())).await;
    assert_eq!(view.attempts.values().next().unwrap().status, AttemptStatus::NoEffectConfirmed);
    assert!(view.unsettled.is_empty(), "the target is free again");
    assert!(place.world.looks.load(std::sync::atomic::Ordering::SeqCst) >= 1, "by looking at the target");
    settle(&handle).await;
    runtime.stop().await.unwrap();
}
