//! Agents outside, driven by a real MCP client: work is taken and answered, and whatever else comes has its code.

mod client;
mod hooks;
mod hostile;

use crate::http::client::Served;
use client::{Connected, Revision, answer_to, deployment, tool, working};
use serde_json::{Value, json};

/// An agent does what waits for it until nothing does and the obligation is settled.
async fn work_until_settled(agent: &Connected, place: &crate::support::Place) -> usize {
    let mut answered = 0;
    for _ in 0..200 {
        let taken = agent.call("closer_work_take", json!({})).await.done();
        if !taken["packet"].is_null() {
            let work_id = taken["packet"]["work_id"].clone();
            let answer = answer_to(&taken["packet"]);
            agent.call("closer_work_return", json!({ "work_id": work_id, "answer": answer })).await.done();
            answered += 1;
        }
        let listed = place.call(&["--json", "obligation", "list", "--all"]).expect(0).json();
        if listed["obligations"][0]["status"] == "resolved" {
            return answered;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the obligation is not settled: {:?}", place.call(&["obligation", "why", "obligation.count"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_over_stdio_takes_its_work_and_the_obligation_advances() {
    for revision in Revision::BOTH {
        let place = deployment();
        let run = place.running(&["--until-stopped"]);
        let agent = Connected::stdio(&place, "agent.worker", revision).await;
        assert!(work_until_settled(&agent, &place).await >= 1);
        let runs = std::fs::read_to_string(place.path().join("var/world/runs")).unwrap();
        assert_eq!(runs.lines().count(), 1, "what it proposed ran once");
        let told = agent.call("closer_work_list", json!({ "all": true })).await.done();
        let first = told["work"][0]["work_id"].clone();
        let why = agent.call("closer_work_why", json!({ "work_id": first })).await.done();
        assert_eq!(why["work"]["proposals"][0]["attempt"], "effect_confirmed", "{why}");
        agent.end().await;
        assert!(matches!(run.stop(), Some(0 | 8)), "it ends by itself, with or without something open");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_over_http_is_whom_its_token_speaks_for() {
    for revision in Revision::BOTH {
        let place = deployment();
        place.call(&["init"]).expect(0);
        let token = |identity: &str, scope: &str| {
            let made = place.call(&["--json", "--as", identity, "token", "new", "--scope", scope]).expect(0);
            made.json()["secret"].as_str().unwrap().to_owned()
        };
        let (own, other, reading) =
            (token("agent.worker", "work"), token("agent.zero", "work"), token("user.owner", "read"));
        let served = Served::start(&place, "requests_per_minute = 6000");
        let agent = Connected::http(served.port, &own, revision).await;
        let stranger = Connected::http(served.port, &other, revision).await;
        let work_id = working(&agent).await;
        stranger.call("closer_work_read", json!({ "work_id": work_id })).await.refused("unresolved_ref");
        assert_eq!(stranger.call("closer_work_list", json!({})).await.done()["work"], json!([]));
        assert!(work_until_settled(&agent, &place).await >= 1);
        for wrong in ["", "nothing", &reading] {
            assert!(!Connected::tries_http(served.port, wrong, revision).await, "`{wrong}` opens nothing");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_verbs_answer_on_the_command_line_and_over_http() {
    let place = deployment();
    place.call(&["init"]).expect(0);
    let made = place.call(&["--json", "--as", "agent.worker", "token", "new", "--scope", "work"]).expect(0);
    let token = made.json()["secret"].as_str().unwrap().to_owned();
    let served = Served::start(&place, "");
    let bearer = format!("Bearer {token}");
    let call = |method: &str, path: &str, body: &str| served.ask(method, path, &[("Authorization", &bearer)], body);
    let mut work_id = String::new();
    for _ in 0..200 {
        let listed = call("GET", "/v1/work", "").expect(200).json();
        if let Some(first) = listed["work"][0]["work_id"].as_str() {
            work_id = first.to_owned();
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let taken = call("POST", &format!("/v1/work/{work_id}/take"), "").expect(200).json();
    assert_eq!(taken["packet"]["work_id"], json!(work_id));
    call("POST", &format!("/v1/work/{work_id}/take"), "").expect(409);
    let again = place.call(&["--json", "--as", "agent.worker", "work", "read", &work_id]).expect(0).json();
    assert_eq!(again["packet"], taken["packet"]);
    let answer = answer_to(&taken["packet"]).to_string();
    let twice = answer.replacen('{', "{\"work_id\":\"other\",", 1);
    let result = format!("/v1/work/{work_id}/result");
    let recorded = call("POST", &result, &answer).expect(200).json();
    assert!(recorded["recorded"][0]["id"].as_str().is_some_and(|id| id.starts_with("pl.result")), "{recorded}");
    assert_eq!(call("POST", &result, &twice).expect(409).json()["code"], "duplicate");
    let why = place.call(&["--as", "agent.worker", "work", "why", &work_id]).expect(0);
    assert!(why.stdout.contains("answered"), "{why:?}");
    place.call(&["--as", "agent.zero", "work", "why", &work_id]).expect(4);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_offered_says_what_it_takes() {
    let place = deployment();
    place.call(&["init"]).expect(0);
    let agent = Connected::stdio(&place, "agent.worker", Revision::Stateless).await;
    let tools = agent.tools().await;
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "closer_work_list",
            "closer_work_take",
            "closer_work_read",
            "closer_work_return",
            "closer_work_why",
            "closer_packet_follow"
        ]
    );
    for tool in &tools {
        let schema = &tool["inputSchema"];
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)), "{tool}");
    }
    let result: &Value = &tool(&tools, "closer_work_return")["inputSchema"]["$defs"]["RESULT"];
    assert_eq!(result["additionalProperties"], json!(false), "{result}");
}

#[test]
fn nobody_speaks_over_mcp_for_whom_no_face_speaks() {
    let place = deployment();
    place.call(&["init"]).expect(0);
    place.call(&["mcp"]).expect(2);
    let refused = place.call(&["--as", "closer.planner", "work", "list"]).expect(3);
    assert!(refused.stderr.contains("unauthenticated") || refused.stdout.contains("unauthenticated"), "{refused:?}");
}
