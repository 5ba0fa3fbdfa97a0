//! Bounds at the edge: ordinary work is refused as busy, restrictions never wait behind it.

use crate::support::*;
use closer_actors::{Error, Options, Runtime};
use closer_contracts::audit::RestrictiveAction;
use closer_contracts::item::AffectedScope;
use closer_contracts::refusal::RefusalCode;
use closer_store::{Log, Settings, SimDisk};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_bound_ordinary_work_is_busy_and_a_restriction_still_commits() {
    let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
    let runtime = place.start(Options { admitted_max: 4, ..Options::default() }).await;
    let handle = runtime.handle();
    let inputs: Vec<_> = (0..64).map(|i| price(&handle, "elsewhere", &format!("e-{i}"))).collect();
    let restriction = restriction(
        &handle,
        "statement-1",
        RestrictiveAction::SuspendEligibility(AffectedScope::Operation { operation: "plan.change".into() }),
    );
    let mut waiting: Vec<_> = inputs.into_iter().map(|input| Box::pin(handle.submit(input))).collect();
    let mut refused = 0;
    let mut admitted = Vec::new();
    for mut submit in waiting.drain(..) {
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(submit.as_mut().poll(context))).await;
        match polled {
            std::task::Poll::Ready(Err(Error::Busy)) => refused += 1,
            std::task::Poll::Ready(other) => drop(other.unwrap()),
            std::task::Poll::Pending => admitted.push(submit),
        }
    }
    assert!(refused > 0, "there is a bound");
    let reply = handle.submit(restriction).await.unwrap();
    assert_eq!(told(&reply), None, "a restriction is never busy");
    for submit in admitted {
        assert_eq!(told(&submit.await.unwrap()), None);
    }
    send(&handle, "elsewhere", "e-after").await;
    settle(&handle).await;
    runtime.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_runtime_takes_nothing_more() {
    let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    let input = price(&handle, "service-a", "e-1");
    let urgent = restriction(&handle, "statement-1", RestrictiveAction::RevokeGrant("grant-1".into()));
    runtime.stop().await.unwrap();
    assert!(matches!(handle.submit(input).await, Err(Error::Stopped)));
    assert!(matches!(handle.submit(urgent).await, Err(Error::Stopped)));
    assert!(handle.view().attempts.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_space_is_founded_once_and_an_empty_log_is_not_run() {
    let place = Place::found(&founding(&[("o-1", "service-a", "p-1")]), proposes("basic")).await;
    let at = closer_protocol::Moment { now: now(), clock: closer_monitor::ClockStanding::Reliable };
    let log = open(place.directory.path()).await;
    let again = closer_actors::found(&log, &founding(&[]), &at).await;
    assert!(matches!(again, Err(Error::Founded)));
    let empty = tempfile::tempdir().unwrap();
    let started = closer_actors::Runtime::start(open(empty.path()).await, place.ports(), Options::default()).await;
    assert!(matches!(started, Err(Error::Unfounded)));
}

/// A founded log on a simulated disk.
async fn simulated(disk: &SimDisk) -> Arc<Log> {
    let settings = Settings { segment_bytes: 512 << 10, derived: None, ..Settings::default() };
    let log = Arc::new(Log::open_on(Arc::new(disk.clone()), settings, None).unwrap());
    let at = closer_protocol::Moment { now: now(), clock: closer_monitor::ClockStanding::Reliable };
    closer_actors::found(&log, &founding(&[("o-1", "service-a", "p-1")]), &at).await.unwrap();
    log
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_ordinary_work_is_refused_and_a_restriction_still_commits() {
    let disk = SimDisk::new();
    let log = simulated(&disk).await;
    let place = Place::found(&founding(&[]), proposes("basic")).await;
    let runtime = Runtime::start(log, place.ports(), Options::default()).await.unwrap();
    let handle = runtime.handle();
    disk.set_capacity(Some(disk.used_bytes()));
    let mut refused = None;
    for i in 0..1000 {
        let reply = handle.submit(price(&handle, "elsewhere", &format!("e-{i}"))).await.unwrap();
        if let Some(code) = told(&reply) {
            refused = Some((i, code));
            break;
        }
    }
    let (recorded, code) = refused.expect("the disk fills up");
    assert_eq!(code, RefusalCode::StorageFull);
    let revocation = restriction(&handle, "statement-1", RestrictiveAction::RevokeGrant("grant-1".into()));
    assert_eq!(told(&handle.submit(revocation).await.unwrap()), None);
    let view = handle.view();
    assert!(view.state.grant(&"grant-1".into()).unwrap().revocation.revoked_by.is_some());
    assert_eq!(view.events.len(), recorded, "what was refused left nothing, and nothing recorded was lost");
    disk.set_capacity(None);
    send(&handle, "elsewhere", "e-after").await;
    settle(&handle).await;
    runtime.stop().await.unwrap();
}

/// A log that takes no ordinary work for now declines what was decided; a restriction does not wait until it does again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restriction_overtakes_what_a_busy_log_declined() {
    let disk = SimDisk::new();
    drop(simulated(&disk).await);
    let settings = Settings { segment_bytes: 512 << 10, pending_batches_max: 0, derived: None, ..Settings::default() };
    let log = Arc::new(Log::open_on(Arc::new(disk.clone()), settings, None).unwrap());
    let place = Place::found(&founding(&[]), proposes("basic")).await;
    let runtime = Runtime::start(log, place.ports(), Options::default()).await.unwrap();
    let handle = runtime.handle();
    let (one, two) = (price(&handle, "elsewhere", "e-1"), price(&handle, "elsewhere", "e-2"));
    let (one, two) = (handle.submit(one), handle.submit(two));
    let revocation = restriction(&handle, "statement-1", RestrictiveAction::RevokeGrant("grant-1".into()));
    let restricted = async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        tokio::time::timeout(std::time::Duration::from_secs(20), handle.submit(revocation)).await
    };
    tokio::select! {
        reply = restricted => assert_eq!(told(&reply.expect("it waits for nobody").unwrap()), None),
        _ = one => panic!("ordinary work was taken"),
        _ = two => panic!("ordinary work was taken"),
    }
    assert!(handle.view().state.grant(&"grant-1".into()).unwrap().revocation.revoked_by.is_some());
    runtime.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaves_of_a_step_whose_flush_failed() {
    let disk = SimDisk::new();
    let log = simulated(&disk).await;
    let place = Place::found(&founding(&[]), proposes("basic")).await;
    let runtime = Runtime::start(log, place.ports(), Options::default()).await.unwrap();
    let handle = runtime.handle();
    settle(&handle).await;
    let before = handle.view();
    let inputs: Vec<_> = (0..3).map(|i| price(&handle, "service-a", &format!("e-{i}"))).collect();
    disk.fail_sync_after(0);
    for input in inputs {
        let settled = tokio::time::timeout(std::time::Duration::from_secs(20), handle.submit(input)).await.unwrap();
        assert!(matches!(settled, Err(Error::Store(_) | Error::Stopped)), "{settled:?}");
    }
    assert!(Arc::ptr_eq(&before, &handle.view()), "no view shows what is not durable");
    assert!(place.world.effects().is_empty());
    runtime.kill().await;
}
