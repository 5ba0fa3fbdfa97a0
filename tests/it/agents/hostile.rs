//! What a hostile or careless client gets: another's work, a replayed answer, forged metadata, arguments beyond their limits, and
//! a hundred sessions at once.

use super::client::{Connected, Revision, answer_to, deployment, working};
use crate::http::client::Served;
use crate::support::{entries, refusal};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn each_wrong_call_has_its_code_and_takes_nothing_from_anybody() {
    let place = deployment();
    let run = place.running(&["--until-stopped"]);
    let agent = Connected::stdio(&place, "agent.worker", Revision::Stateless).await;
    let other = Connected::stdio(&place, "agent.zero", Revision::Handshake).await;
    let work_id = working(&agent).await;
    let packet = agent.call("closer_work_take", json!({ "work_id": work_id })).await.done()["packet"].clone();
    let answer = answer_to(&packet);
    let returning = |answer: &Value| json!({ "work_id": work_id, "answer": answer });

    other.call("closer_work_return", returning(&answer)).await.refused("unresolved_ref");
    other.call("closer_work_return", returning(&json!({ "nonsense": true }))).await.refused("unresolved_ref");
    other.call("closer_work_take", json!({ "work_id": work_id })).await.refused("unresolved_ref");
    agent.call("closer_work_take", json!({ "work_id": work_id })).await.refused("duplicate");
    agent.call("closer_work_read", json!({ "work_id": "w".repeat(129) })).await.refused("schema_invalid");
    agent.call("closer_work_read", json!({ "work_id": "work-unknown" })).await.refused("unresolved_ref");
    agent.call("closer_work_return", json!({ "work_id": work_id, "answer": "yes" })).await.refused("schema_invalid");
    agent.call("closer_work_list", json!({ "all": 1 })).await.refused("schema_invalid");
    assert!(agent.call_with("closer_work_redo", json!({}), None).await.is_err(), "there is no such tool");

    // Metadata gives nobody another name.
    let forged = json!({ "identity": "agent.worker", "io.closer/identity": "agent.worker", "as": "user.owner" });
    let told = other.call_with("closer_work_read", json!({ "work_id": work_id }), Some(forged)).await.unwrap();
    told.refused("unresolved_ref");

    agent.call("closer_work_return", returning(&answer)).await.done();
    agent.call("closer_work_return", returning(&answer)).await.refused("duplicate");
    let changed = json!({ "work_id": work_id, "claims": [], "action_proposals": [], "assessments": [], "objections": [],
        "unresolved": [], "skill_receipts": [] });
    agent.call("closer_work_return", returning(&changed)).await.refused("duplicate");
    agent.end().await;
    other.end().await;
    assert!(matches!(run.stop(), Some(0 | 8)), "it ends by itself, with or without something open");
    let kept: Vec<_> =
        entries(&place).into_iter().filter_map(|(_, entry)| refusal(&entry).map(|kept| kept.code.as_str())).collect();
    for code in ["unresolved_ref", "duplicate"] {
        assert!(kept.contains(&code), "{code} is on record: {kept:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_answer_is_a_failure_of_whoever_gave_it_and_is_not_mended() {
    let place = deployment();
    let run = place.running(&["--until-stopped"]);
    let agent = Connected::stdio(&place, "agent.worker", Revision::Handshake).await;
    let work_id = working(&agent).await;
    let spoilt = json!({ "work_id": work_id, "answer": { "work_id": work_id } });
    agent.call("closer_work_return", spoilt).await.refused("schema_invalid");
    let why = agent.call("closer_work_why", json!({ "work_id": work_id })).await.done();
    assert_eq!((&why["work"]["standing"], &why["work"]["failed"][0]), (&json!("failed"), &json!("schema_invalid")));
    agent.end().await;
    assert!(matches!(run.stop(), Some(0 | 8)), "it ends by itself");
    let counted = entries(&place).into_iter().any(|(_, entry)| {
        refusal(&entry)
            .is_some_and(|kept| kept.code.as_str() == "schema_invalid" && kept.subject.as_str().starts_with("answer-"))
    });
    assert!(counted, "the failure is on record");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_hundred_sessions_one_takes_the_work_and_one_answer_counts() {
    let place = deployment();
    place.call(&["init"]).expect(0);
    let made = place.call(&["--json", "--as", "agent.worker", "token", "new", "--scope", "work"]).expect(0);
    let token = made.json()["secret"].as_str().unwrap().to_owned();
    let served = Served::start(&place, "requests_per_minute = 60000");
    let first = Connected::http(served.port, &token, Revision::Stateless).await;
    let work_id = working(&first).await;
    let packet = first.call("closer_work_read", json!({ "work_id": work_id })).await.done()["packet"].clone();
    let answer = Arc::new(answer_to(&packet));
    let sessions = (0..100).map(|index| {
        let (token, work_id, answer, port) = (token.clone(), work_id.clone(), Arc::clone(&answer), served.port);
        tokio::spawn(async move {
            let revision = Revision::BOTH[index % 2];
            let session = Connected::http(port, &token, revision).await;
            let code = |told: super::client::Told| match told.0.is_error.unwrap_or_default() {
                true => told.0.structured_content.unwrap()["code"].as_str().unwrap().to_owned(),
                false => "done".to_owned(),
            };
            let taken = code(session.call("closer_work_take", json!({ "work_id": work_id })).await);
            let returned = session.call("closer_work_return", json!({ "work_id": work_id, "answer": *answer })).await;
            (taken, code(returned))
        })
    });
    let (mut taken, mut returned) = (BTreeMap::new(), BTreeMap::new());
    for session in sessions.collect::<Vec<_>>() {
        let (first, second) = session.await.unwrap();
        *taken.entry(first).or_insert(0) += 1;
        *returned.entry(second).or_insert(0) += 1;
    }
    // Whoever comes to take it after it was answered is told that, with the same code.
    assert!(taken.keys().all(|code| ["done", "duplicate"].contains(&code.as_str())), "{taken:?}");
    assert!(taken.get("done").copied().unwrap_or(0) <= 1, "{taken:?}");
    assert_eq!(returned, BTreeMap::from([("done".to_owned(), 1), ("duplicate".to_owned(), 99)]));
    let all = first.call("closer_work_list", json!({ "all": true })).await.done();
    assert_eq!(all["work"][0]["standing"], "answered");
}
