//! What belongs to the user: a packet, a scoped authorization, a grant, and only then the effect.

use crate::support::*;
use closer_actors::Options;
use closer_contracts::audit::DecisionType;
use closer_contracts::obligation::ObligationStatus;
use closer_protocol::Input;
use closer_protocol::entry::EpisodeEnd;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_grant_the_user_is_asked_and_a_scoped_authorization_leads_to_the_effect() {
    let founding = without(founding(&[("o-1", "service-a", "p-1")]), "grant-1");
    let place = Place::found(&founding, proposes("basic")).await;
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    settle(&handle).await;
    let view = handle.view();
    assert!(place.world.effects().is_empty(), "nothing is done without a grant");
    assert_eq!(view.episodes.values().next().unwrap().end, Some(EpisodeEnd::AwaitingUser));
    assert_eq!(view.state.obligation(&"o-1".into()).unwrap().status, ObligationStatus::AwaitingUserJudgment);
    let decision_id = view.packets.keys().next().unwrap().clone();
    let reply = handle.submit(decision(&handle, &decision_id, DecisionType::ScopedAuthorization)).await.unwrap();
    assert_eq!(told(&reply), None);
    settle(&handle).await;
    let view = handle.view();
    assert_eq!(place.world.effects().len(), 1);
    assert!(is_resolved(&view, "o-1"));
    assert!(
        view.state.grant(&place.world.effects()[0].authority_ref).is_some(),
        "the effect was under the user's grant"
    );
    runtime.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejection_leaves_the_effect_undone_and_the_obligation_open() {
    let founding = without(founding(&[("o-1", "service-a", "p-1")]), "grant-1");
    let place = Place::found(&founding, proposes("basic")).await;
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    settle(&handle).await;
    let decision_id = handle.view().packets.keys().next().unwrap().clone();
    let input: Input = decision(&handle, &decision_id, DecisionType::Rejection);
    assert_eq!(told(&handle.submit(input).await.unwrap()), None);
    settle(&handle).await;
    assert!(place.world.effects().is_empty());
    assert!(handle.view().state.obligation(&"o-1".into()).unwrap().status.is_open());
    runtime.stop().await.unwrap();
}
