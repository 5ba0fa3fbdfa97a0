//! Webhooks: who may send them, for how long, and what becomes of their payloads.

use super::client::{Reply, Served, token};
use crate::support::{Place, counting};
use serde_json::json;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

fn hooks() -> String {
    let hook = |name: &str, scheme: &str| {
        format!(
            "[[http.webhook]]\nname = \"{name}\"\nsource_id = \"source.people\"\nidentity = \"issuer.security\"\n{scheme}\n\
             secret_file = \"secret\"\n[[http.webhook.map]]\nwhen = [{{ field = \"/kind\", equals = \"said\" }}]\n\
             entity = \"{{/what}}\"\nchange_kind = \"word_given\"\nid = \"{{/id}}\"\nkeep = [\"/by\"]\n"
        )
    };
    hook("standard", "scheme = \"standard\"\nreplay_window_ms = 60000")
        + &hook("body", "scheme = \"body\"\nheader = \"x-hub-signature-256\"")
}

fn place() -> Place {
    with_secret(Place::with(&counting("conditional")))
}

fn with_secret(place: Place) -> Place {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create_new(true).write(true).mode(0o600).open(place.path().join("secret")).unwrap();
    file.write_all(SECRET.as_bytes()).unwrap();
    place
}

/// HMAC-SHA-256 by another program than ours; the key in hexadecimal.
fn hmac(key: &str, text: &str) -> Vec<u8> {
    let mut child = Command::new("openssl")
        .args(["dgst", "-sha256", "-mac", "HMAC", "-macopt", &format!("hexkey:{key}"), "-binary"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap().stdout
}

fn run(program: &str, arguments: &[&str], input: &[u8]) -> String {
    let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn send(served: &Served, id: &str, at: i64, body: &str, signed: &str) -> Reply {
    let key = hex(&{
        let mut bytes = Vec::new();
        let decoded = Command::new("sh").args(["-c", "printf %s \"$0\" | base64 -d", &SECRET[6..]]).output().unwrap();
        bytes.extend(decoded.stdout);
        bytes
    });
    let signature = run("base64", &["-w0"], &hmac(&key, &format!("{id}.{at}.{signed}")));
    let (at, signature) = (at.to_string(), format!("v1,AAAA v1,{signature}"));
    let headers = [("webhook-id", id), ("webhook-timestamp", at.as_str()), ("webhook-signature", signature.as_str())];
    served.ask("POST", "/hooks/standard", &headers, body)
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

#[test]
fn a_signed_payload_becomes_an_event_once_and_within_its_time() {
    if !crate::support::has_openssl() {
        return;
    }
    let place = place();
    let served = Served::start(&place, &hooks());
    let body = json!({ "kind": "said", "what": "word", "id": 1, "by": "ops" }).to_string();
    let told = send(&served, "msg_1", now(), &body, &body).expect(200).json();
    assert_eq!(told["status"], "recorded");
    assert_eq!(send(&served, "msg_1", now(), &body, &body).expect(200).json()["status"], "duplicate");
    send(&served, "msg_2", now() - 3_600, &body, &body).expect(401);
    send(&served, "msg_2", now() + 3_600, &body, &body).expect(401);
    send(&served, "msg_2", now(), &body.replace("word", "else"), &body).expect(401);
    send(&served, "", now(), &body, &body).expect(401);
    served.ask("POST", "/hooks/standard", &[], &body).expect(401);
    served.ask("POST", "/hooks/none", &[], &body).expect(404);
    let other = json!({ "kind": "shouted" }).to_string();
    assert_eq!(send(&served, "msg_3", now(), &other, &other).expect(200).json()["status"], "ignored");
    let wrong = json!({ "kind": "said", "what": "two words", "id": 2 }).to_string();
    assert_eq!(send(&served, "msg_4", now(), &wrong, &wrong).expect(422).json()["code"], "unmapped");
}

#[test]
fn a_hook_that_signs_its_body_alone_is_known_by_its_header() {
    if !crate::support::has_openssl() {
        return;
    }
    let place = place();
    let served = Served::start(&place, &hooks());
    let body = json!({ "kind": "said", "what": "word", "id": 9 }).to_string();
    let signature = hex(&hmac(&hex(SECRET.as_bytes()), &body));
    let good = format!("sha256={signature}");
    let told = served.ask("POST", "/hooks/body", &[("X-Hub-Signature-256", &good)], &body).expect(200).json();
    assert_eq!(told["status"], "recorded");
    let bad = good.replace(&signature[..4], "0000");
    served.ask("POST", "/hooks/body", &[("X-Hub-Signature-256", &bad)], &body).expect(401);
    served
        .ask("POST", "/hooks/body", &[("X-Hub-Signature-256", &good), ("X-Hub-Signature-256", &good)], &body)
        .expect(401);
}

#[test]
fn whoever_guesses_signatures_is_turned_away() {
    let place = place();
    let served = Served::start(&place, &hooks());
    let guess =
        |n: u32| served.ask("POST", "/hooks/body", &[("X-Hub-Signature-256", &format!("{n:064x}"))], "{}").status;
    let statuses: Vec<u16> = (0..40).map(guess).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 30);
}

#[test]
fn a_payload_is_tried_out_without_being_recorded() {
    // An obligation that stays open: nothing grants what would have to be done.
    let place = with_secret(Place::with(&super::api::asking()));
    let served = Served::start(&place, &hooks());
    let file = place.path().join("payload.json");
    std::fs::write(&file, json!({ "kind": "said", "what": "word", "id": 1 }).to_string()).unwrap();
    let path = file.to_string_lossy().into_owned();
    let told = place.call(&["--json", "source", "test", &path, "--hook", "body"]).expect(0).json();
    assert_eq!(told["matched_obligation_ids"], json!(["obligation.count"]), "{told}");
    assert_eq!((&told["declared"], &told["duplicate"]), (&json!(true), &json!(false)));
    place.call(&["source", "test", &path]).expect(4);
    place.call(&["source", "test", &path, "--hook", "none"]).expect(4);
    std::fs::write(&file, "{}").unwrap();
    let ignored = place.call(&["source", "test", &path, "--hook", "body"]).expect(4);
    assert!(ignored.stderr.contains("ignored"), "{ignored:?}");
    let event =
        json!({ "specversion": "1.0", "id": "1", "source": "source.people", "type": "word_given", "subject": "word" });
    std::fs::write(&file, event.to_string()).unwrap();
    place.call(&["source", "test", &path]).expect(0);
    let secret = token(&place, "user.owner", &["read"]);
    let found = served.get("/v1/search?words=word_given", &secret).json();
    assert_eq!(found["page"]["total"], 0, "nothing was recorded");
}

#[test]
fn a_secret_that_others_can_read_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    std::fs::set_permissions(place.path().join("secret"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let file = place.path().join("closer.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n[http]\nlisten = \"127.0.0.1:0\"\n{}", hooks())).unwrap();
    let mut command = Command::new(crate::support::CLOSER);
    let output = command.arg("serve").arg(place.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("can be read by others"));
}
