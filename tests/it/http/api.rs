//! What is asked and changed over HTTP, and that it is what the command line tells.

use super::client::{Served, token, until};
use crate::support::{Place, counting, many};
use closer_contracts::shows;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A deployment whose obligation asks the user: nothing grants what would have to be done.
pub(crate) fn asking() -> String {
    let text = counting("conditional");
    let begin = text.find("[[grant]]").unwrap();
    let end = text[begin..].find("[[declaration]]").unwrap() + begin;
    format!("{}{}", &text[..begin], &text[end..]).replace("authority_boundary = [\"grant.finish\"]", "")
}

fn first_packet(served: &Served, secret: &str) -> Value {
    until("a packet is on The Bench", || {
        served.get("/v1/packets", secret).json()["packets"].as_array().is_some_and(|packets| !packets.is_empty())
    });
    let id = served.get("/v1/packets", secret).json()["packets"][0]["decision_id"].as_str().unwrap().to_owned();
    served.get(&format!("/v1/packets/{id}"), secret).expect(200).json()
}

fn answer(packet: &Value, option: &str) -> (String, Value) {
    let id = packet["packet"]["decision_id"].as_str().unwrap();
    (format!("/v1/packets/{id}/decisions"), json!({ "option": option, "packet_digest": packet["digest"] }))
}

#[test]
fn what_is_read_over_http_is_what_the_command_line_tells() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    let secret = token(&place, "user.owner", &["read"]);
    until("the obligation is settled", || {
        served.get("/v1/obligations/obligation.count", &secret).json()["obligation"]["status"] == "resolved"
    });
    for (path, verb) in [
        ("/v1/obligations/obligation.count", vec!["obligation", "show", "obligation.count"]),
        ("/v1/obligations/obligation.count/trace", vec!["obligation", "trace", "obligation.count"]),
        ("/v1/obligations/obligation.count/why", vec!["obligation", "why", "obligation.count"]),
        ("/v1/receipts/2", vec!["receipt", "show", "2"]),
    ] {
        let told = place.call(&[&["--json"], verb.as_slice()].concat()).json();
        assert_eq!(served.get(path, &secret).expect(200).json(), told, "{path}");
    }
    let listed = served.get("/v1/receipts?limit=1", &secret).json();
    assert_eq!((listed["page"]["count"].as_u64(), listed["page"]["complete"].as_bool()), (Some(1), Some(false)));
    let found = served.get("/v1/search?words=SAY%20done", &secret).json();
    assert_eq!(found["found"][0]["id"], "obligation.count");
    for wrong in ["/v1/obligations?limit=0", "/v1/obligations?al=true", "/v1/obligations?after=gone", "/v1/search"] {
        served.get(wrong, &secret).expect(400);
    }
    let absent = served.get("/v1/obligations/none", &secret).expect(404);
    assert_eq!(absent.header("content-type"), Some("application/problem+json"));
    served.get("/v1/nothing", &secret).expect(404);
    served.ask("DELETE", "/v1/obligations", &[], "").expect(405);
}

#[test]
fn every_page_of_a_long_list_is_reached() {
    shows!("CP-B-12", "CP-B-13");
    let place = Place::with(&many(7, "0.1"));
    let served = Served::start(&place, "");
    let secret = token(&place, "user.owner", &["read"]);
    let (mut seen, mut path) = (Vec::new(), "/v1/obligations?all=true&limit=3".to_owned());
    loop {
        let page = served.get(&path, &secret).expect(200).json();
        assert_eq!(page["page"]["total"], 7);
        seen.extend(page["obligations"].as_array().unwrap().iter().map(|kept| kept["obligation_id"].clone()));
        match page["page"]["next"].as_str() {
            Some(next) => path = format!("/v1/obligations?all=true&limit=3&after={next}"),
            None => break,
        }
    }
    let all: Vec<Value> = (0..7).map(|n| json!(format!("obligation.count-{n}"))).collect();
    assert_eq!(seen, all);
}

#[test]
fn an_answer_is_to_the_version_that_was_shown_and_given_once() {
    let place = Place::with(&asking());
    let served = Served::start(&place, "");
    let secret = token(&place, "user.owner", &["read", "answer"]);
    let packet = first_packet(&served, &secret);
    let (path, mut draft) = answer(&packet, "allow");
    let right = draft["packet_digest"].clone();
    draft["packet_digest"] = json!(format!("sha256:{}", "0".repeat(64)));
    let stale = served.post(&path, &secret, &draft).expect(409).json();
    assert_eq!(stale["code"], "stale_packet");
    assert_eq!(stale["newest"]["digest"], right, "the newest version comes with the refusal");
    served.post(&path, &secret, &json!({ "option": "everything", "packet_digest": right })).expect(404);
    served.post(&path, &secret, &json!({ "option": "allow" })).expect(400);
    let issuer = token(&place, "issuer.security", &["answer"]);
    draft["packet_digest"] = right;
    let refused = served.post(&path, &issuer, &draft).expect(403).json();
    assert_eq!(refused["code"], "unauthenticated", "an issuer has no part as the user: {refused}");
    let bearer = format!("Bearer {secret}");
    let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", "once")];
    let first = served.ask("POST", &path, &headers, &draft.to_string()).expect(200);
    let again = served.ask("POST", &path, &headers, &draft.to_string()).expect(200);
    assert_eq!(first.body, again.body);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let other = draft.to_string().replace("allow", "refuse");
    served.ask("POST", &path, &headers, &other).expect(422);
    until("what was allowed is done", || served.get("/v1/decisions", &secret).json()["decisions"][0]["fate"] == "ran");
    let decisions = served.get("/v1/decisions", &secret).json();
    assert_eq!(decisions["page"]["total"], 1, "{decisions}");
    assert_eq!(runs(&place), 1);
}

fn runs(place: &Place) -> usize {
    std::fs::read_to_string(place.path().join("var/world/runs")).unwrap_or_default().lines().count()
}

/// The answer is durable when it is acknowledged: killed before anything came of it, the next process takes it up once.
#[test]
fn an_answer_given_before_a_crash_takes_effect_once() {
    let place = Place::with(&asking());
    let served = Served::start_with(&place, "", &[("CLOSER_CRASH_AT", "before_intent")]);
    let secret = token(&place, "user.owner", &["read", "answer"]);
    let packet = first_packet(&served, &secret);
    let (path, draft) = answer(&packet, "allow");
    served.post(&path, &secret, &draft).expect(200);
    served.kill();
    assert_eq!(runs(&place), 0);
    let served = Served::start(&place, "");
    until("it is done", || served.get("/v1/decisions", &secret).json()["decisions"][0]["fate"] == "ran");
    assert_eq!(runs(&place), 1);
    assert_eq!(served.get("/v1/decisions", &secret).json()["page"]["total"], 1);
    served.post(&path, &secret, &draft).expect(409);
}

#[test]
fn a_refusal_stands_and_nothing_is_done() {
    let place = Place::with(&asking());
    let served = Served::start(&place, "");
    let secret = token(&place, "user.owner", &["read", "answer"]);
    let packet = first_packet(&served, &secret);
    let (path, draft) = answer(&packet, "refuse");
    served.post(&path, &secret, &draft).expect(200);
    let decision = served.get("/v1/decisions", &secret).json()["decisions"][0].clone();
    assert_eq!((&decision["fate"], &decision["decision_type"]), (&json!("no_authority"), &json!("rejection")));
    assert_eq!(runs(&place), 0);
}

#[test]
fn only_the_issuer_that_the_token_speaks_for_restricts() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    let owner = token(&place, "user.owner", &["read", "restrict"]);
    let draft = json!({ "operation": "file.finish", "reason": "enough" });
    let issuer = token(&place, "issuer.security", &["restrict"]);
    let made = served.post("/v1/restrictions", &issuer, &draft).expect(200).json();
    assert_eq!(made["in_force_before"], false);
    let again = served.post("/v1/restrictions", &issuer, &draft).expect(200).json();
    assert_eq!(again["in_force_before"], true);
    // The user needs no appointment, and finds it in force.
    assert_eq!(served.post("/v1/restrictions", &owner, &draft).expect(200).json()["in_force_before"], true);
    let everything = served.post("/v1/restrictions", &owner, &json!({ "reason": "all of it" })).expect(200).json();
    assert_eq!(everything["in_force_before"], false);
    let listed = served.get("/v1/restrictions", &owner).json();
    let of_issuer = listed["restrictions"].as_array().unwrap().iter().find(|one| one["issued_by"] == "issuer.security");
    let listed = json!({ "restrictions": [of_issuer.unwrap()] });
    assert_eq!(listed["restrictions"][0]["covers"], "`file.finish`");
    assert_eq!(listed["restrictions"][0]["awaits_reconciliation"], true);
    assert!(listed["restrictions"][0]["reconcile_by"].is_string());
}

#[test]
fn a_restriction_is_lifted_over_http_under_the_users_authority() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    let owner = token(&place, "user.owner", &["read", "answer"]);
    let issuer = token(&place, "issuer.security", &["restrict"]);
    served.post("/v1/restrictions", &issuer, &json!({ "operation": "file.finish", "reason": "enough" })).expect(200);
    let restrictions = || served.get("/v1/restrictions", &owner).json()["restrictions"].as_array().unwrap().clone();
    let path = format!("/v1/restrictions/{}/lift", restrictions()[0]["restriction_id"].as_str().unwrap());
    let body = json!({ "reason": "the key was replaced" });
    served.post(&path, &issuer, &body).expect(403);
    let answering = token(&place, "issuer.security", &["answer"]);
    served.post(&path, &answering, &body).expect(403);
    served.post(&path, &owner, &json!({})).expect(400);
    assert_eq!(restrictions().len(), 1);
    assert_eq!(served.post("/v1/restrictions/restriction-none/lift", &owner, &body).expect(404).json()["status"], 404);
    served.post(&path, &owner, &body).expect(200);
    assert_eq!(restrictions().len(), 0);
    served.post(&path, &owner, &body).expect(409);
}

#[test]
fn whoever_follows_changes_is_told_that_there_are_some() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "streams_max = 1");
    let secret = token(&place, "user.owner", &["read"]);
    let follow = || {
        let mut stream = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = format!(
            "GET /v1/changes HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {secret}\r\n\r\n",
            served.port
        );
        stream.write_all(head.as_bytes()).unwrap();
        BufReader::new(stream)
    };
    let mut followed = follow().lines();
    assert!(followed.next().unwrap().unwrap().contains("200"));
    let mut told = followed.map_while(Result::ok).filter(|line| line.starts_with("data: "));
    let first = told.next().unwrap();
    served.get("/v1/changes", &secret).expect(503);
    let issuer = token(&place, "issuer.security", &["restrict"]);
    served.post("/v1/restrictions", &issuer, &json!({ "operation": "file.finish", "reason": "enough" })).expect(200);
    let later = told.find(|line| *line != first).unwrap();
    let data: Value = serde_json::from_str(later.trim_start_matches("data: ")).unwrap();
    assert!(data["state_version"].is_u64() && data["packets_waiting"].is_u64());
}

#[test]
fn the_figures_tell_how_the_space_stands() {
    let place = Place::with(&asking());
    let served = Served::start(&place, "");
    let secret = token(&place, "user.owner", &["read"]);
    first_packet(&served, &secret);
    served.ask("GET", "/metrics", &[], "").expect(401);
    let text = served.get("/metrics", &secret).expect(200).body;
    assert!(text.contains("\ncloser_packets_waiting 1\n"), "{text}");
    assert!(text.contains("closer_obligations{status=\"awaiting_user_judgment\"} 1"), "{text}");
    assert!(text.contains("closer_http_requests_total{route=\"/v1/packets\",status=\"200\"}"), "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}
