//! A withdrawal reaches its recipients, and what they say of their copies reaches the case.

use crate::support::*;
use closer_actors::{Handle, Options};
use closer_contracts::audit::DisclosureIncident;
use closer_contracts::id::{ActorId, IncidentId};
use closer_contracts::refs::{ArtifactRef, ProducerRole, VersionedRef};
use closer_protocol::View;
use closer_protocol::incident::{self, Answer, Case, IncidentState, IncidentStep, Step};
use std::sync::Arc;

const THREE: [&str; 3] = ["remainder", "investigator", "regulator"];

fn case(view: &View) -> Arc<Case> {
    view.incidents.get(&IncidentId::from("incident-1")).expect("the case").clone()
}

/// The obligation, as it went into every packet.
fn released(view: &View) -> ArtifactRef {
    let items = view.released.values().flat_map(|receipt| &receipt.materialized_item_refs);
    items.into_iter().find(|item| item.id.as_str() == "o-1").expect("it was released").clone()
}

fn report(view: &View) -> DisclosureIncident {
    DisclosureIncident {
        incident_id: "incident-1".into(),
        released_item_refs: vec![released(view)],
        recipient_refs: THREE.map(Into::into).to_vec(),
        containment_attempts: Vec::new(),
        notification_attempts: Vec::new(),
        dependent_artifacts: Vec::new(),
        acknowledgments: Vec::new(),
        unknown_copies: Vec::new(),
        incident_owner: "user".into(),
        policy_version: VersionedRef { id: "profile-1".into(), version: 1 },
    }
}

async fn submitted(handle: &Handle, body: impl Into<closer_protocol::entry::ArtifactBody>) {
    let reply = handle.submit(artifact(handle, body, "user", ProducerRole::User)).await.unwrap();
    assert_eq!(reply.refusal(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_acknowledges_one_fails_one_is_silent_and_each_stands_for_itself() {
    let founding = with_coalition(founding(&[("o-1", "service-a", "p-1")]), &THREE, |_| {});
    let mut place = Place::found(&founding, proposes("basic")).await;
    let voices = THREE.map(|actor| place.seat(actor, Voice::quiet()));
    *voices[0].copies.lock().unwrap() = Some(Answer::Acknowledged);
    *voices[1].copies.lock().unwrap() = Some(Answer::Failed);
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    settle(&handle).await;
    submitted(&handle, report(&handle.view())).await;
    let view = handle.view();
    submitted(&handle, incident::notify(&view, &case(&view), &handle.moment().now).unwrap()).await;
    let view = until(&handle, |view| case(view).answers().count() == 2).await;
    let answers: Vec<(String, Answer)> =
        case(&view).answers().map(|(_, who, answer)| (who.to_string(), answer)).collect();
    assert!(answers.contains(&("remainder".to_owned(), Answer::Acknowledged)));
    assert!(answers.contains(&("investigator".to_owned(), Answer::Failed)));
    for voice in &voices {
        let notices = voice.notices.lock().unwrap();
        assert_eq!(notices.len(), 1, "told once");
        assert_eq!(notices[0].receipt.materialized_item_refs, [released(&view)], "of what it had been given");
    }
    // Whoever is silent is told again by the next process, and nobody else is.
    drop(handle);
    runtime.stop().await.unwrap();
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    settle(&handle).await;
    let told = voices.each_ref().map(|voice| voice.notices.lock().unwrap().len());
    assert_eq!(told, [1, 1, 2]);
    let silent: Vec<ActorId> = case(&handle.view()).silent().cloned().collect();
    assert_eq!(silent, ["regulator".into()]);
    let content = Step::Reconciled { unknown_copies: silent, justification: "It cannot be reached.".into() };
    submitted(&handle, IncidentStep { step_id: "reconciled-1".into(), incident_id: "incident-1".into(), content })
        .await;
    assert_eq!(case(&handle.view()).state, IncidentState::ReconciledWithUnknowns);
    runtime.stop().await.unwrap();
}
