//! Many obligations at once, with endorsements that take their time.

use crate::support::*;
use closer_actors::Options;
use closer_contracts::refusal::RefusalCode;
use closer_contracts::shows;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_obligations_close_and_no_position_is_asked_for_twice_where_sets_are_disjoint() {
    let names: Vec<(String, String, String)> =
        (0..64).map(|i| (format!("o-{i}"), format!("service-{i}"), format!("p-{i}"))).collect();
    let obligations: Vec<(&str, &str, &str)> =
        names.iter().map(|(o, s, p)| (o.as_str(), s.as_str(), p.as_str())).collect();
    let place = Place::found(&founding(&obligations), proposes("basic")).await;
    let slow = Slow::new(50, 500);
    let runtime = place.start(Options { endorser: Some(Arc::clone(&slow) as _), ..Options::default() }).await;
    let handle = runtime.handle();
    for (_, service, _) in &obligations {
        send(&handle, service, &format!("e.{service}")).await;
    }
    settle(&handle).await;
    let view = handle.view();
    let open: Vec<_> = obligations.iter().filter(|(obligation, _, _)| !is_resolved(&view, obligation)).collect();
    assert!(open.is_empty(), "open: {open:?}");
    assert_eq!(place.world.effects().len(), 64);
    assert_eq!(slow.count(), 64, "one position for each obligation");
    assert!(slow.asked.lock().unwrap().values().all(|times| *times == 1));
    drop(handle);
    runtime.stop().await.unwrap();
    assert!(!place.refusals().await.contains(&RefusalCode::StaleParent), "disjoint sets are reissued, not refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_sets_get_a_stale_parent_and_a_fresh_assessment() {
    shows!("CP-8.1-11"; by "state.rebase_touched");
    let obligations =
        [("o-1", "service-1", "p-shared"), ("o-2", "service-2", "p-shared"), ("o-3", "service-3", "p-shared")];
    let place = Place::found(&founding(&obligations), proposes("basic")).await;
    let slow = Slow::new(200, 201);
    let runtime = place.start(Options { endorser: Some(Arc::clone(&slow) as _), ..Options::default() }).await;
    let handle = runtime.handle();
    for (_, service, _) in &obligations {
        send(&handle, service, &format!("e.{service}")).await;
    }
    settle(&handle).await;
    let view = handle.view();
    for (obligation, _, _) in &obligations {
        assert!(is_resolved(&view, obligation), "{obligation} is closed");
    }
    assert!(slow.count() > 3, "those whose parent had moved under them were assessed anew");
    drop(handle);
    runtime.stop().await.unwrap();
    assert!(place.refusals().await.contains(&RefusalCode::StaleParent));
}
