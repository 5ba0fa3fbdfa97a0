//! Requests against servers that misbehave.

use super::*;
use crate::fixture::{Reply, Server, clock, doubt, permitted, refusal, response, target};
use closer_contracts::shows;
use std::time::{Duration, Instant};

const OK: &str = r#"{"plan":"economy"}"#;

fn contract(url: &str) -> Value {
    json!({
        "kind": "http",
        "endpoint": { "url": url, "deadline_ms": 5_000 },
        "method": "PUT",
        "body": { "plan": "plan" },
        "if_match_parameter": "version",
    })
}

async fn send(contract: &Value) -> Performed {
    let parameters = [("plan", json!("economy")), ("version", json!("v7"))];
    send_with(contract, &parameters).await
}

async fn send_with(contract: &Value, parameters: &[(&str, Value)]) -> Performed {
    let permitted = permitted(contract, target("acme", "plan"), parameters);
    let mut members = contract.as_object().unwrap().clone();
    members.remove("kind");
    let contract: Http = serde_json::from_value(Value::Object(members)).unwrap();
    perform(&permitted, &contract, &HttpClient::default(), &clock()).await
}

#[tokio::test]
async fn a_request_carries_key_precondition_and_body() {
    shows!("CP-8.1-13"; by "http.sends_idempotency_key", "http.sends_precondition");
    let server = Server::start(vec![Reply::json(200, "ETag: \"v8\"\r\n", OK)]);
    let response = response(send(&contract(&server.url("/accounts/{account}/{target}"))).await);
    assert_eq!(response, json!({ "status": 200, "version": "v8", "body": { "json": { "plan": "economy" } } }));
    let [request] = server.requests().try_into().unwrap();
    let request = request.replace("\r\n", "\n");
    assert!(request.starts_with("PUT /accounts/acme/plan HTTP/1.1\n"), "{request}");
    let lower = request.to_ascii_lowercase();
    for line in ["idempotency-key: key-1\n", "if-match: \"v7\"\n", "content-type: application/json\n"] {
        assert!(lower.contains(line), "{request}");
    }
    assert!(request.ends_with("\n\n{\"plan\":\"economy\"}"), "{request}");
}

/// A probe reads and does nothing else: what could change something is not sent under a read-only entry, and the reverse.
#[tokio::test]
async fn a_read_only_operation_asks_and_nothing_more() {
    let server = Server::start(vec![Reply::json(200, "", OK), Reply::json(200, "", OK)]);
    let probe = |contract: &Value, effect_class| {
        let mut order = crate::fixture::order(contract, target("acme", "plan"), &[("plan", json!("economy"))]);
        let mut entry = (*order.entry).clone();
        entry.effect_class = effect_class;
        order.entry = std::sync::Arc::new(entry);
        let mut members = contract.as_object().unwrap().clone();
        members.remove("kind");
        let contract: Http = serde_json::from_value(Value::Object(members)).unwrap();
        async move { perform(&Permitted::for_test(order), &contract, &HttpClient::default(), &clock()).await }
    };
    let get =
        json!({ "kind": "http", "endpoint": { "url": server.url("/accounts/{account}/{target}") }, "method": "GET" });
    response(probe(&get, EffectClass::ReadOnly).await);
    let [request] = server.requests().try_into().unwrap();
    let request = request.to_ascii_lowercase();
    assert!(request.starts_with("get /accounts/acme/plan http/1.1\r\n") && request.ends_with("\r\n\r\n"), "{request}");
    assert!(!request.contains("idempotency-key") && !request.contains("if-match"), "{request}");
    let (mut put, mut with_body) = (get.clone(), get.clone());
    put["method"] = json!("PUT");
    with_body["body"] = json!({ "plan": "plan" });
    for (contract, effect_class, why) in [
        (&get, EffectClass::ExternalReversible, "read-only"),
        (&put, EffectClass::ReadOnly, "read-only"),
        (&with_body, EffectClass::ReadOnly, "neither a body"),
    ] {
        assert!(refusal(probe(contract, effect_class).await).contains(why), "{why}");
    }
    assert_eq!(server.requests().len(), 1, "nothing else was sent");
}

#[tokio::test]
async fn a_connection_dropped_after_sending_leaves_the_outcome_unknown_and_is_not_repeated() {
    let server = Server::start(vec![Reply::Drop, Reply::json(200, "", OK)]);
    doubt(send(&contract(&server.url("/x"))).await);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_leaves_the_outcome_unknown() {
    let server = Server::start(vec![Reply::Silence(10_000)]);
    let mut contract = contract(&server.url("/x"));
    contract["endpoint"]["deadline_ms"] = json!(200);
    let begun = Instant::now();
    assert!(doubt(send(&contract).await).contains("time was over"));
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_connection_was_not_sent() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    refusal(send(&contract(&format!("http://127.0.0.1:{port}/x"))).await);
}

#[tokio::test]
async fn a_redirect_is_reported_and_not_followed() {
    let elsewhere = Server::start(vec![Reply::json(200, "", OK)]);
    for status in [301, 302, 303, 307, 308] {
        let location = format!("Location: {}\r\n", elsewhere.url("/stolen"));
        let server = Server::start(vec![Reply::json(status, &location, "{}")]);
        assert_eq!(response(send(&contract(&server.url("/x"))).await)["status"], status);
    }
    assert_eq!(elsewhere.requests(), [""; 0]);
}

#[tokio::test]
async fn a_body_beyond_its_bound_is_left_out() {
    let long = Reply::json(200, "", &"x".repeat(200_000));
    let server = Server::start(vec![long]);
    let mut contract = contract(&server.url("/x"));
    contract["endpoint"]["response_bytes_max"] = json!(1_000_000);
    let response = response(send(&contract).await);
    assert_eq!(response["status"], 200);
    assert!(response["body"]["left_out"].as_str().unwrap().contains("longer"));
}

#[tokio::test]
async fn an_answer_that_is_no_plain_json_is_kept_as_text_and_garbage_is_in_doubt() {
    let server = Server::start(vec![
        Reply::json(200, "", "{\"price\":1.5}"),
        Reply::json(200, "", "{\"a\":1,\"a\":2}"),
        Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut".to_vec()),
        Reply::Bytes(b"\xff\xfe garbage\r\n\r\n".to_vec()),
    ]);
    let contract = contract(&server.url("/x"));
    assert_eq!(response(send(&contract).await)["body"]["text"], "{\"price\":1.5}");
    assert_eq!(response(send(&contract).await)["body"]["text"], "{\"a\":1,\"a\":2}");
    assert!(response(send(&contract).await)["body"]["left_out"].as_str().unwrap().contains("broke off"));
    doubt(send(&contract).await);
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_not_sent() {
    let server = Server::start(vec![Reply::json(200, "", OK)]);
    let sound = contract(&server.url("/x"));
    assert!(refusal(send_with(&sound, &[("plan", json!("economy"))]).await).contains("version"));
    let split = [("plan", json!("economy")), ("version", json!("a\r\nX: y"))];
    assert!(refusal(send_with(&sound, &split).await).contains("header"));
    assert!(refusal(send(&contract("http://provider.example/x")).await).contains("not encrypted"));
    assert!(refusal(send(&contract(&server.url("/{other}"))).await).contains("no parameter"));
    assert_eq!(server.requests(), [""; 0]);
}

#[tokio::test]
async fn a_bearer_token_is_sent_from_a_private_file_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "secret-token\n").unwrap();
    let server = Server::start(vec![Reply::json(200, "", OK)]);
    let mut contract = contract(&server.url("/x"));
    contract["endpoint"]["bearer_file"] = json!(token);
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(refusal(send(&contract).await).contains("open to others"));
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).unwrap();
    response(send(&contract).await);
    assert!(server.requests()[0].to_ascii_lowercase().contains("authorization: bearer secret-token"));
}

/// Runs itself again with a proxy in the environment, which nothing in this process may set.
#[test]
fn a_proxy_of_the_environment_is_not_used() {
    const CHILD: &str = "CLOSER_TEST_ENDPOINT";
    if let Ok(url) = std::env::var(CHILD) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(response(runtime.block_on(send(&contract(&url))))["status"], 200);
        return;
    }
    let proxy = Server::start(vec![Reply::json(502, "", "{}")]);
    let server = Server::start(vec![Reply::json(200, "", OK)]);
    let proxy_url = proxy.url("");
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "operations::http::tests::a_proxy_of_the_environment_is_not_used"])
        .env(CHILD, server.url("/x"))
        .envs(
            ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
                .map(|name| (name, &proxy_url)),
        )
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!((proxy.requests().len(), server.requests().len()), (0, 1));
}

/// A server whose certificate nobody vouches for.
#[tokio::test]
async fn an_untrusted_certificate_ends_the_call_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success());
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let mut server = std::process::Command::new("openssl")
        .args(["s_server", "-cert", "cert.pem", "-key", "key.pem", "-quiet", "-accept", &format!("127.0.0.1:{port}")])
        .current_dir(folder.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let refused = refusal(send(&contract(&format!("https://127.0.0.1:{port}/x"))).await);
    assert!(refused.to_ascii_lowercase().contains("certificate"), "{refused}");
    server.kill().unwrap();
    let output = server.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}
