//! Looking at real files, processes and sockets.

use super::*;
use crate::fixture::{Reply, Server, clock, readback, target};
use crate::process::MemoryLedger;
use closer_contracts::digest::Digest;
use closer_contracts::time::Timestamp;
use serde_json::json;
use std::path::Path;

async fn observe(contract: &Value, target: Target) -> Observed {
    let observer = ReadbackObserver::new(
        Arc::new(clock()),
        Arc::new(MemoryLedger::default()),
        HttpClient::default(),
        McpServers::default(),
    );
    observer.observe(&readback(contract, target)).await
}

#[track_caller]
fn seen(observed: Observed) -> (Target, TargetVersion, Value, Vec<Text>) {
    match observed {
        Observed::Seen { target, target_version, observation, limitations, .. } => {
            (target, target_version, observation.value.0, limitations)
        }
        Observed::Unavailable { reason, .. } => panic!("unavailable: {reason}"),
    }
}

#[track_caller]
fn unavailable(observed: Observed) -> String {
    match observed {
        Observed::Unavailable { reason, .. } => reason.to_string(),
        Observed::Seen { observation, .. } => panic!("seen: {observation:?}"),
    }
}

fn file_contract(root: &Path) -> Value {
    json!({ "kind": "file", "root": root, "account": "host" })
}

#[tokio::test]
async fn a_file_is_looked_at_anew_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let contract = file_contract(folder.path());
    let (_, version, absent, _) = seen(observe(&contract, target("host", "file")).await);
    assert_eq!((absent, version), (json!({ "exists": false }), TargetVersion::Unknown));
    for content in ["one", "two"] {
        std::fs::write(folder.path().join("file"), content).unwrap();
        let (_, _, fields, limitations) = seen(observe(&contract, target("host", "file")).await);
        assert_eq!(fields["digest"], json!(Digest::of(content.as_bytes())));
        assert_eq!((&fields["bytes"], &fields["content"]), (&json!(3), &json!(content)));
        Timestamp::parse(fields["modified_at"].as_str().unwrap()).unwrap();
        assert_eq!(limitations, []);
    }
}

#[tokio::test]
async fn hostile_content_is_digested_and_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = [0xff, 0x00, 0xfe];
    std::fs::write(folder.path().join("file"), bytes).unwrap();
    let (_, _, fields, _) = seen(observe(&file_contract(folder.path()), target("host", "file")).await);
    assert_eq!((&fields["digest"], fields.get("content")), (&json!(Digest::of(&bytes)), None));
    let mut bounded = file_contract(folder.path());
    bounded["bytes_max"] = json!(2);
    assert!(unavailable(observe(&bounded, target("host", "file")).await).contains("more than 2 bytes"));
}

#[tokio::test]
async fn a_file_that_was_cut_off_beside_the_target_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let open =
        format!("{}attempt-1{OPEN}", crate::operations::aside_prefix("file"), OPEN = crate::operations::OPEN_SUFFIX);
    std::fs::write(folder.path().join("file"), "ours").unwrap();
    std::fs::write(folder.path().join(&open), "foreign").unwrap();
    let contract = file_contract(folder.path());
    let (_, _, _, limitations) = seen(observe(&contract, target("host", "file")).await);
    assert!(limitations[0].as_str().contains(&open));
    let (_, _, _, other) = seen(observe(&contract, target("host", "other")).await);
    assert_eq!(other, []);
}

#[tokio::test]
async fn traversal_links_and_other_types_are_unavailable() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(outer.path().join("secret"), "x").unwrap();
    std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
    for kind in ["file", "x509_file"] {
        let contract = json!({ "kind": kind, "root": root, "account": "host" });
        for address in ["../secret", "link", "/etc/hostname"] {
            unavailable(observe(&contract, target("host", address)).await);
        }
    }
    let mut other = target("host", "file");
    other.r#type = "other".into();
    assert!(unavailable(observe(&file_contract(&root), other).await).contains("not `other`"));
}

#[tokio::test]
async fn another_account_than_asked_for_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (seen_target, ..) = seen(observe(&file_contract(folder.path()), target("elsewhere", "file")).await);
    assert_eq!(seen_target, target("host", "file"));

    let server = Server::start(vec![Reply::json(200, "", r#"{"account":"other","plan":"economy"}"#)]);
    let (seen_target, ..) = seen(observe(&http_contract(&server), target("acme", "plan")).await);
    assert_eq!(seen_target, target("other", "plan"));
}

fn http_contract(server: &Server) -> Value {
    json!({
        "kind": "http_get",
        "endpoint": { "url": server.url("/accounts/{account}/{target}") },
        "account_pointer": "/account",
        "fields": { "plan": "/plan", "first": "/list/0", "none": "/none" },
    })
}

#[tokio::test]
async fn a_service_is_asked_anew_and_states_its_own_version() {
    let body = |plan: &str| format!(r#"{{"account":"acme","plan":"{plan}","list":[5],"rev":9}}"#);
    let server = Server::start(vec![
        Reply::json(200, "ETag: \"v1\"\r\n", &body("standard")),
        Reply::json(200, "ETag: \"v2\"\r\n", &body("economy")),
        Reply::json(200, "", &body("economy")),
    ]);
    let mut contract = http_contract(&server);
    for (version, plan) in [(Some("v1"), "standard"), (Some("v2"), "economy"), (None, "economy")] {
        let (seen_target, seen_version, fields, _) = seen(observe(&contract, target("acme", "plan")).await);
        assert_eq!(seen_target, target("acme", "plan"));
        assert_eq!(seen_version, TargetVersion::from(version.map(Key::from)));
        assert_eq!(fields, json!({ "plan": plan, "first": 5 }));
    }
    contract["version_pointer"] = json!("/rev");
    let (_, version, ..) = seen(observe(&contract, target("acme", "plan")).await);
    assert_eq!(version, TargetVersion::Known("9".into()));
    assert!(server.requests().iter().all(|request| request.starts_with("GET /accounts/acme/plan HTTP/1.1\r\n")));
}

#[tokio::test]
async fn answers_that_establish_nothing_are_unavailable() {
    let hostile = [
        Reply::json(404, "", "{}"),
        Reply::json(302, "Location: http://127.0.0.1:1/\r\n", r#"{"account":"acme"}"#),
        Reply::json(200, "", r#"{"plan":"economy"}"#),
        Reply::json(200, "", r#"{"account":"acme","account":"other"}"#),
        Reply::json(200, "", r#"{"account":"acme","price":1.5}"#),
        Reply::json(200, "", r#"{"account":7}"#),
        Reply::json(200, "", &format!(r#"{{"account":"acme","x":"{}"}}"#, "x".repeat(100_000))),
        Reply::json(200, "", &"[".repeat(1_000)),
        Reply::json(200, "", &format!(r#"{{"account":"{}"}}"#, "x".repeat(300))),
        Reply::Bytes(b"\xff\xff\xff".to_vec()),
        Reply::Drop,
    ];
    for reply in hostile {
        let server = Server::start(vec![reply.clone()]);
        unavailable(observe(&http_contract(&server), target("acme", "plan")).await);
        assert_eq!(server.requests().len(), 1, "{reply:?}");
    }
}

fn printing(output: &str) -> Value {
    json!({
        "kind": "command",
        "account_member": "account",
        "version_member": "version",
        "run": { "program": "/usr/bin/printf", "arguments": ["%s", output] },
    })
}

#[tokio::test]
async fn a_program_says_what_it_sees_as_one_json_object() {
    let output = r#"{"account":"acme","version":"7","open":true}"#.replace('{', "{{").replace('}', "}}");
    let (seen_target, version, fields, _) = seen(observe(&printing(&output), target("acme", "x")).await);
    assert_eq!((seen_target, version), (target("acme", "x"), TargetVersion::Known("7".into())));
    assert_eq!(fields, json!({ "account": "acme", "version": "7", "open": true }));
    for wrong in ["", "[]", "{{}}", r#"{{"account":"a","account":"a"}}"#, "nonsense", "{other}"] {
        unavailable(observe(&printing(wrong), target("acme", "x")).await);
    }
    let mut failing = printing("x");
    failing["run"]["program"] = json!("/bin/false");
    assert!(unavailable(observe(&failing, target("acme", "x")).await).contains("status 1"));
}

#[tokio::test]
async fn a_person_must_confirm_and_unknown_kinds_are_told() {
    let person = json!({ "kind": "person", "instructions": "look at the bill" });
    assert!(unavailable(observe(&person, target("acme", "x")).await).contains("look at the bill"));
    for wrong in [
        json!({ "kind": "magic" }),
        json!({}),
        json!([]),
        json!({ "kind": "file", "root": "/", "account": "a", "x": 1 }),
    ] {
        assert!(unavailable(observe(&wrong, target("acme", "x")).await).contains("cannot be read"), "{wrong}");
    }
}

fn openssl(folder: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("openssl")
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("openssl is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_certificate_is_parsed_by_openssl_itself() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let contract = json!({ "kind": "x509_file", "root": root, "account": "host" });
    let key = ["-newkey", "ed25519", "-nodes", "-keyout", "key.pem"];
    let begun = Timestamp::from_unix_ms(clock().now().0.unix_ms() / 1_000 * 1_000);
    openssl(
        root,
        &[
            &["req", "-x509"],
            &key[..],
            &["-subj", "/O=A, Inc/CN=a.example", "-days", "10", "-set_serial", "4097", "-out", "cert.pem"],
        ]
        .concat(),
    );
    let (seen_target, version, fields, _) = seen(observe(&contract, target("host", "cert.pem")).await);
    assert_eq!((seen_target, version), (target("host", "cert.pem"), TargetVersion::Unknown));
    assert_eq!(fields["serial"], "1001");
    assert_eq!(fields["subject"], "CN=a.example,O=A\\, Inc");
    let not_after = Timestamp::parse(fields["not_after"].as_str().unwrap()).unwrap();
    let ten_days = begun.plus_ms(10 * 86_400_000);
    assert!(not_after >= ten_days && not_after <= ten_days.plus_ms(60_000), "{not_after}");
    let key = openssl(root, &["pkey", "-in", "key.pem", "-pubout"]);
    assert_eq!(fields["public_key_digest"], json!(Digest::of(key.trim().as_bytes())));

    // The same key renewed, then another key: only the latter shows another public key.
    openssl(root, &["req", "-x509", "-key", "key.pem", "-subj", "/CN=a.example", "-days", "20", "-out", "cert.pem"]);
    let (_, _, renewed, _) = seen(observe(&contract, target("host", "cert.pem")).await);
    assert_eq!(renewed["public_key_digest"], fields["public_key_digest"]);
    assert!(Timestamp::parse(renewed["not_after"].as_str().unwrap()).unwrap() > not_after);

    std::fs::write(root.join("cert.pem"), b"\xff not a certificate").unwrap();
    assert!(unavailable(observe(&contract, target("host", "cert.pem")).await).contains("status 1"));
    unavailable(observe(&contract, target("host", "none.pem")).await);
}
