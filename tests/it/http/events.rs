//! Events over HTTP: CloudEvents in three modes, repeats, payloads of others.

use super::client::{Served, token};
use crate::support::{Place, body, counting, entries};
use closer_contracts::envelope::Body;
use serde_json::{Value, json};

fn event(id: &str) -> Value {
    json!({
        "specversion": "1.0", "id": id, "source": "source.people", "type": "word_given", "subject": "word",
        "data": { "said": "go" },
    })
}

fn send(served: &Served, secret: &str, media: &str, body: &str) -> super::client::Reply {
    let bearer = format!("Bearer {secret}");
    served.ask("POST", "/v1/events", &[("Authorization", &bearer), ("Content-Type", media)], body)
}

const ONE: &str = "application/cloudevents+json; charset=utf-8";
const BATCH: &str = "application/cloudevents-batch+json";

#[test]
fn an_event_comes_in_three_modes_and_a_repeat_is_no_second_one() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    let secret = token(&place, "issuer.security", &["events"]);
    let told = send(&served, &secret, ONE, &event("1").to_string()).expect(200).json();
    assert_eq!(told["status"], "recorded");
    assert_eq!(send(&served, &secret, ONE, &event("1").to_string()).expect(200).json()["status"], "duplicate");
    let bearer = format!("Bearer {secret}");
    let mut headers = vec![
        ("Authorization", bearer.as_str()),
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "source.people"),
        ("ce-type", "word_given"),
        ("ce-subject", "word"),
        ("Content-Type", "application/json"),
    ];
    let repeat = served.ask("POST", "/v1/events", &headers, "{\"said\":\"go\"}").expect(200).json();
    assert_eq!(repeat["status"], "duplicate", "the same event in another mode");
    headers[2].1 = "2";
    assert_eq!(served.ask("POST", "/v1/events", &headers, "go").expect(200).json()["status"], "recorded");
    let mut foreign = event("4");
    foreign["source"] = json!("source.files");
    let batch = json!([event("3"), event("2"), foreign, { "specversion": "0.3" }, event("3")]);
    let told = send(&served, &secret, BATCH, &batch.to_string()).expect(200).json();
    let statuses: Vec<&str> =
        told["results"].as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["recorded", "duplicate", "refused", "refused", "duplicate"]);
    assert_eq!(told["results"][2]["problem"]["code"], "unauthenticated");
    served.stop();
    let events: Vec<_> = entries(&place)
        .into_iter()
        .filter_map(|(_, entry)| if let Some(Body::Event(event)) = body(&entry) { Some(event.clone()) } else { None })
        .filter(|event| event.source.source_id.as_str() == "source.people")
        .collect();
    assert_eq!(events.len(), 3);
    let kept = serde_json::to_value(&events[0].extensions).unwrap();
    assert_eq!(kept["io.cloudevents.event"]["data"]["said"], "go", "what came with it is kept");
}

#[test]
fn what_is_no_event_is_refused_before_anything_is_recorded() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    let secret = token(&place, "issuer.security", &["events"]);
    send(&served, &secret, "text/plain", "hello").expect(415);
    send(&served, &secret, ONE, "[]").expect(400);
    send(&served, &secret, ONE, "{\"specversion\":\"1.0\"").expect(400);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    send(&served, &secret, ONE, &format!("{{\"data\":{deep}}}")).expect(400);
    let mut wide = event("1");
    wide["subject"] = json!("x".repeat(200));
    send(&served, &secret, ONE, &wide.to_string()).expect(400);
    let many: Vec<Value> = (0..1_001).map(|n| event(&n.to_string())).collect();
    send(&served, &secret, BATCH, &json!(many).to_string()).expect(413);
    let mut fraction = event("2");
    fraction["data"] = json!({ "share": 0.5 });
    send(&served, &secret, ONE, &fraction.to_string()).expect(400);
}

#[test]
fn nobody_hands_in_a_payload_of_another_without_its_signature() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    let owner = token(&place, "user.owner", &["events"]);
    let issuer = token(&place, "issuer.security", &["events"]);
    send(&served, &issuer, ONE, &event("1").to_string()).expect(200);
    served.stop();
    let text = entries(&place)
        .into_iter()
        .find_map(|(_, entry)| {
            let closer_protocol::Entry::Payload(payload) = &entry else { return None };
            let own = payload.envelope().producer.actor_id.as_str() == "issuer.security";
            own.then(|| String::from_utf8(payload.bytes().to_vec()).unwrap())
        })
        .unwrap();
    let served = Served::start(&place, "");
    let bearer = |secret: &str| format!("Bearer {secret}");
    let refused = served.ask("POST", "/v1/payloads", &[("Authorization", &bearer(&owner))], &text).expect(403).json();
    assert_eq!(refused["code"], "not_own");
    // Its own producer may; it is the payload on record, and so a repeat.
    let repeat = served.ask("POST", "/v1/payloads", &[("Authorization", &bearer(&issuer))], &text).expect(409).json();
    assert_eq!(repeat["code"], "duplicate");
    let signed = [
        ("Authorization", bearer(&owner)),
        ("closer-key-id", "key-1".to_owned()),
        ("closer-signature", "0".repeat(128)),
    ];
    let signed: Vec<(&str, &str)> = signed.iter().map(|(name, value)| (*name, value.as_str())).collect();
    served.ask("POST", "/v1/payloads", &signed, &text).expect(403);
    served.ask("POST", "/v1/payloads", &[("Authorization", &bearer(&owner))], "{\"not\":\"a payload\"}").expect(422);
}
