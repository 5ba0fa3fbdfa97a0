//! The provider's own promises, and its bad days over a real socket.

use crate::behaviour::Behaviour;
use crate::provider::{Answer, Ask, Provider};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("state.json")
    }

    fn open(&self, behaviour: Behaviour) -> Provider {
        Provider::open(&self.path(), behaviour).unwrap()
    }
}

fn get(provider: &Provider, path: &str) -> Answer {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    provider.answer(&Ask { method: "GET", path, query, ..Ask::default() })
}

fn put(provider: &Provider, key: &str, version: &str, plan: &str) -> Answer {
    provider.answer(&Ask {
        method: "PUT",
        path: "/accounts/acme/plan",
        idempotency_key: Some(key),
        if_match: Some(version),
        body: json!({ "plan": plan }).to_string().as_bytes(),
        ..Ask::default()
    })
}

fn changes(provider: &Provider) -> Value {
    get(provider, "/admin/changes").body["changes"].clone()
}

#[test]
fn a_change_takes_effect_once_per_key_and_survives_a_restart() {
    let scene = Scene::new();
    let provider = scene.open(Behaviour::default());
    let first = put(&provider, "key-1", "\"1\"", "economy");
    assert_eq!((first.status, first.version, first.applied), (200, Some(2), true));
    drop(provider);
    let provider = scene.open(Behaviour::default());
    let again = put(&provider, "key-1", "\"1\"", "economy");
    assert_eq!((again.status, again.body, again.applied), (200, first.body, false));
    assert_eq!(put(&provider, "key-1", "\"2\"", "basic").status, 422);
    assert_eq!(changes(&provider), 1);
    assert_eq!(get(&provider, "/accounts/acme/plan").body["plan"], "economy");
    assert_eq!(get(&provider, "/accounts/acme/billing").body["monthly_price_minor"], 1_500);
    assert_eq!(get(&provider, "/accounts/acme/service").body["latency_ms"], 180);
}

#[test]
fn a_change_at_another_version_or_without_a_key_is_refused() {
    let scene = Scene::new();
    let provider = scene.open(Behaviour::default());
    assert_eq!(put(&provider, "key-1", "\"7\"", "economy").status, 412);
    assert_eq!(put(&provider, "key-2", "\"1\"", "luxury").status, 422);
    let keyless = Ask { method: "PUT", path: "/accounts/acme/plan", body: br#"{"plan":"economy"}"#, ..Ask::default() };
    assert_eq!(provider.answer(&keyless).status, 400);
    assert_eq!(changes(&provider), 0);
    // A refused key stands for nothing.
    assert_eq!(put(&provider, "key-1", "\"1\"", "economy").status, 200);
}

#[test]
fn the_published_list_does_not_establish_the_export_and_the_probe_does() {
    let scene = Scene::new();
    let provider = scene.open(Behaviour::default());
    assert!(!get(&provider, "/plans").body.to_string().contains("export"));
    for (plan, available) in [("economy", true), ("basic", false), ("luxury", false)] {
        let probe = get(&provider, &format!("/accounts/acme/capabilities/export?plan={plan}"));
        assert_eq!((&probe.body["available"], &probe.body["service_version"]), (&json!(available), &json!("2026.3")));
    }
    assert_eq!(get(&provider, "/accounts/nobody/plan").status, 404);
    assert_eq!(get(&provider, "/nothing").status, 404);
}

#[test]
fn stale_reads_and_the_wrong_account_are_served_on_request() {
    let scene = Scene::new();
    let provider = scene.open(Behaviour { stale_ms: 200, ..Behaviour::default() });
    put(&provider, "key-1", "\"1\"", "economy");
    assert_eq!(get(&provider, "/accounts/acme/plan").body["plan"], "standard");
    std::thread::sleep(Duration::from_millis(220));
    assert_eq!(get(&provider, "/accounts/acme/plan").body["plan"], "economy");
    let confused = scene.open(Behaviour { wrong_account: true, ..Behaviour::default() });
    assert_eq!(get(&confused, "/accounts/acme/plan").body["account"], "other");
}

async fn exchange(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn change_request(key: &str) -> String {
    let body = r#"{"plan":"economy"}"#;
    let length = body.len();
    format!(
        "PUT /accounts/acme/plan HTTP/1.1\r\nhost: x\r\nconnection: close\r\nidempotency-key: {key}\r\n\
         if-match: \"1\"\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn on_bad_days_a_change_is_applied_and_the_connection_dropped_or_the_answer_late() {
    let scene = Scene::new();
    let provider = Arc::new(scene.open(Behaviour { drop_after_apply: true, ..Behaviour::default() }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(crate::serve::serve(listener, Arc::clone(&provider)));

    assert_eq!(exchange(port, &change_request("key-1")).await, "");
    assert_eq!(changes(&provider), 1);
    let body = r#"{"late_ms":150}"#;
    let length = body.len();
    let set = format!(
        "PUT /admin/behaviour HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    assert!(exchange(port, &set).await.starts_with("HTTP/1.1 200"));
    let begun = Instant::now();
    let late = exchange(port, &change_request("key-1")).await;
    assert!(begun.elapsed() >= Duration::from_millis(150));
    assert!(late.starts_with("HTTP/1.1 200") && late.to_ascii_lowercase().contains("etag: \"2\""), "{late}");
    assert_eq!(changes(&provider), 1);
}

#[test]
fn the_command_line_is_read_or_told_what_is_wrong() {
    let read = |line: &str| crate::arguments(line.split_whitespace().map(str::to_owned));
    let (path, port, behaviour) = read("state.json --port 8080 --late-ms 5 --drop-after-apply").unwrap();
    assert_eq!((path, port), (PathBuf::from("state.json"), 8080));
    assert_eq!((behaviour.late_ms, behaviour.drop_after_apply), (5, true));
    for wrong in ["", "a b", "a --port", "a --port x", "a --port 70000", "a --what"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
