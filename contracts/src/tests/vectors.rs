//! Golden vectors: bytes, digests and signatures that another language can check (`contracts/vectors/check.py`).
//!
//! Expected values of canonical JSON come from a second implementation and must agree with ours; the rest is compared
//! with the committed files, which the script verifies on its own.

use super::support::{altered, committed, json_of, read_canonical, refused, resealed};
use crate::action::Action;
use crate::auth::{SigningScope, key_id, sign, signed_message};
use crate::canonical::{self, PAYLOAD_BYTES_MAX, read_value};
use crate::delta::Delta;
use crate::digest::Digest;
use crate::envelope::Payload;
use crate::example::{self, Example, Extent};
use crate::payload_type::PayloadType;
use crate::record::{CustodyClass, Head, Link, Position, Record, RecordKind, StreamId};
use crate::refs::EvidenceSnapshot;
use crate::refusal::RefusalCode;
use crate::time::Timestamp;
use ed25519_dalek::SigningKey;
use serde_json::{Value, json};

/// The value with its members in order: whether they are kept so is a feature that any crate of a build may switch.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().map(|(name, member)| (name.clone(), sorted(member))).collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// A committed file's text.
pub(super) fn text(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(&sorted(value)).expect("JSON");
    text.push('\n');
    text
}

fn vectors(file: &str, about: &str, vectors: Vec<Value>) {
    let whole = json!({ "about": about, "vectors": vectors });
    committed(&format!("vectors/{file}.json"), &text(&whole));
}

/// Canonical bytes by the second implementation, which ours must equal.
fn canonical_by_another(value: &Value) -> String {
    let theirs = serde_json_canonicalizer::to_string(value).expect("canonical JSON");
    let ours = canonical::to_bytes(value).expect("canonical JSON");
    assert_eq!(theirs.as_bytes(), ours.as_slice());
    theirs
}

#[test]
fn canonical_json() {
    let accepted = [
        ("members are sorted", r#"{"b":1,"a":{"d":[],"c":{}}}"#),
        ("white space goes", "{ \"a\" : [ 1 , 2 ] }\n"),
        (
            "keys sort by UTF-16 code units (RFC 8785 §3.2.3)",
            r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#,
        ),
        ("escapes (RFC 8785 §3.2.2)", r#"{"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"}"#),
        ("control characters", r#"["\u0000\u0001\u001f\b\f\n\r\t\u007f\u0080\u2028"]"#),
        ("surrogate pairs become one character", r#"["\ud83d\ude00"]"#),
        ("Unicode is not normalized", "[\"caf\\u00e9\",\"cafe\\u0301\"]"),
        ("literals", "[null,true,false]"),
        ("the largest integers", "[9007199254740991,-9007199254740991,0]"),
        ("an empty key and an empty text", r#"{"":""}"#),
        ("keys that are prefixes of each other", r#"{"aa":1,"a":2,"a\u0000":3,"A":4}"#),
    ];
    let mut list: Vec<Value> = accepted
        .map(|(name, input)| {
            let value = read_value(input.as_bytes()).expect("strict JSON");
            let canonical = canonical_by_another(&value);
            json!({
                "name": name,
                "input": input,
                "canonical": canonical,
                "canonical_hex": hex::encode(&canonical),
                "digest": Digest::of(canonical.as_bytes()),
            })
        })
        .to_vec();
    let deepest = format!("{}{}", "[".repeat(128), "]".repeat(128));
    assert!(read_canonical(deepest.as_bytes()).is_ok());
    list.push(json!({
        "name": "128 levels", "input": deepest, "canonical": deepest, "canonical_hex": hex::encode(&deepest),
        "digest": Digest::of(deepest.as_bytes()),
    }));
    vectors(
        "canonical",
        "input is read strictly; canonical is its RFC 8785 form, canonical_hex the same in UTF-8; digest is SHA-256 over it.",
        list,
    );
}

#[test]
fn refused_json() {
    let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
    let cases: Vec<(&str, &[u8])> = vec![
        ("a key twice", br#"{"a":1,"a":2}"#),
        ("a key twice, once escaped", br#"{"a":1,"\u0061":2}"#),
        ("a key twice, deep inside", br#"{"a":[{"b":1,"b":1}]}"#),
        ("2^53", b"9007199254740992"),
        ("-2^53", b"-9007199254740992"),
        ("thirty digits", b"100000000000000000000000000000"),
        ("a fraction", b"1.5"),
        ("an integral fraction", b"1.0"),
        ("an exponent", b"1e3"),
        ("minus zero", b"-0"),
        ("not a number", b"NaN"),
        ("129 levels", deep.as_bytes()),
        ("a lone high surrogate", br#""\ud800""#),
        ("a lone low surrogate", br#""\udc00""#),
        ("a byte order mark", b"\xef\xbb\xbf{}"),
        ("no UTF-8", b"\"\xff\""),
        ("a surrogate in UTF-8", b"\"\xed\xa0\x80\""),
        ("something after the value", b"{} {}"),
        ("a trailing comma", b"[1,]"),
        ("nothing", b""),
        ("members out of order", br#"{"b":1,"a":2}"#),
        ("white space", b"[1, 2]"),
        ("an escape that need not be", br#"["\/"]"#),
        ("an escape in capitals", br#"["\u000F"]"#),
    ];
    let list = cases.into_iter().map(|(name, bytes)| {
        refused(read_canonical(bytes), RefusalCode::SchemaInvalid);
        json!({ "name": name, "bytes_hex": hex::encode(bytes), "code": "schema_invalid" })
    });
    vectors("refused", "bytes_hex is refused as canonical JSON with code.", list.collect());
}

#[test]
fn payloads() {
    let mut list = Vec::new();
    for payload_type in PayloadType::ALL {
        for (name, extent) in [("minimal", Extent::Minimal), ("full", Extent::Full)] {
            let payload = example::payload(*payload_type, extent);
            let value = read_value(payload.bytes()).expect("strict JSON");
            list.push(json!({
                "name": format!("{payload_type} {name}"),
                "canonical": canonical_by_another(&value),
                "content_digest": payload.content_digest(),
            }));
        }
    }
    vectors(
        "payloads",
        "content_digest is SHA-256 over the canonical object without its own member content_digest.",
        list,
    );
}

#[test]
fn digests_of_parts() {
    let action = Action::example(Extent::Full);
    let delta = Delta::example(Extent::Full);
    let snapshot = EvidenceSnapshot::example(Extent::Full);
    let logical = [
        "operation",
        "target",
        "parameters",
        "expected_postcondition",
        "authority_ref",
        "relevant_semantic_version",
        "registry_version",
        "idempotency_key",
    ];
    let list = vec![
        json!({ "name": "logical digest of an ACTION", "object": action, "covers": logical, "digest": action.logical_digest }),
        json!({ "name": "proposal digest of a DELTA", "object": delta, "all_but": "proposal_digest", "digest": delta.proposal_digest }),
        json!({ "name": "digest of an evidence snapshot", "object": snapshot, "member": "refs", "digest": snapshot.digest }),
    ];
    vectors(
        "digests",
        "digest is SHA-256 over the canonical form of: the members in covers; all but one member; or one member's value.",
        list,
    );
}

#[test]
fn records_and_links() {
    let record = |id: &str, body: &str| Record {
        kind: RecordKind::Payload,
        id: id.into(),
        admitted_at: Timestamp::parse("2026-01-01T12:00:00.000Z").expect("UTC"),
        custody: CustodyClass::Open,
        links: Vec::new(),
        claims: Vec::new(),
        body_digest: Digest::of(body.as_bytes()),
        body: None,
    };
    let stream = StreamId::new("grant:grant-1");
    let mut list = Vec::new();
    let mut head: Option<Head> = None;
    for (id, body) in [("payload-1", "{}"), ("payload-2", "{\"a\":1}"), ("payload-3", "[]")] {
        let record = record(id, body);
        let link = Link::after(stream.clone(), head);
        let next = link.head(record.digest());
        assert_eq!(next.position, Position(head.map_or(1, |head| head.position.0 + 1)));
        list.push(json!({
            "kind": record.kind, "id": record.id, "admitted_at": record.admitted_at, "body": body,
            "body_digest": record.body_digest, "record_digest": record.digest(),
            "stream": stream.as_str(), "position": next.position, "previous": head.map(|head| head.link),
            "link_digest": next.link,
        }));
        head = Some(next);
    }
    vectors(
        "links",
        "H(parts) is SHA-256 over each part after its length as 8 bytes, big-endian. record_digest = H(\"closer.record.v1\", kind, id, raw body_digest, admitted_at); link_digest = H(\"closer.link.v1\", stream, position as 8 bytes, raw previous or nothing, raw record_digest).",
        list,
    );
}

#[test]
fn signatures() {
    let list =
        [(1u8, SigningScope::Event), (2, SigningScope::Delta), (3, SigningScope::UserDecision)].map(|(seed, scope)| {
            let key = SigningKey::from_bytes(&[seed; 32]);
            let public = key.verifying_key();
            let identity = format!("actor-{seed}").into();
            let digest = Digest::of(&[seed]);
            let message = signed_message(digest, scope, &identity).expect("a message");
            json!({
                "seed_hex": hex::encode([seed; 32]),
                "public_key": hex::encode(public.as_bytes()),
                "key_id": key_id(&public),
                "identity": identity,
                "scope": scope,
                "content_digest": digest,
                "message": String::from_utf8(message).expect("UTF-8"),
                "signature": sign(&key, digest, scope, &identity).expect("a signature"),
            })
        });
    vectors(
        "signatures",
        "message is the canonical object of content_digest, domain `closer.signature.v1`, identity and scope; signature is Ed25519 over its UTF-8 bytes; key_id is SHA-256 over the 32 bytes of the public key.",
        list.to_vec(),
    );
}

#[test]
fn invalid_payloads() {
    let whole = |payload_type| json_of(example::payload(payload_type, Extent::Full).envelope());
    let mut damaged_action = whole(PayloadType::Action);
    damaged_action["body"]["parameters"] = json!({ "seats": 26 });
    let mut wrong_subject = whole(PayloadType::Adjudication);
    wrong_subject["body"]["subject"]["type"] = json!("delta");
    let mut no_target = whole(PayloadType::Evidence);
    no_target["body"].as_object_mut().expect("an object").remove("target_binding");
    let mut long = whole(PayloadType::Event);
    long["body"]["deduplication_key"] = json!("x".repeat(257));
    let mut status = whole(PayloadType::Obligation);
    status["body"]["status"] = json!("done");
    let event = || whole(PayloadType::Event);
    let unsealed = |value: Value| canonical::to_bytes(&value).expect("canonical bytes");
    let cases = vec![
        (
            "an unknown version",
            RefusalCode::UnknownVersion,
            resealed(altered(event(), "protocol_version", json!("closer-draft-5"))),
        ),
        (
            "a placeholder digest",
            RefusalCode::SchemaInvalid,
            unsealed(altered(event(), "content_digest", json!("sha256:..."))),
        ),
        ("the body of another type", RefusalCode::SchemaInvalid, resealed(altered(event(), "type", json!("WORK")))),
        ("a thirteenth type", RefusalCode::SchemaInvalid, resealed(altered(event(), "type", json!("RECEIPT")))),
        ("a changed field", RefusalCode::DigestMismatch, unsealed(altered(event(), "budget_ref", json!("another")))),
        ("an unknown field", RefusalCode::SchemaInvalid, resealed(altered(event(), "confidence", json!(1)))),
        ("itself as parent", RefusalCode::UnresolvedRef, resealed(altered(event(), "parents", json!(["payload-1"])))),
        (
            "work without an obligation",
            RefusalCode::SchemaInvalid,
            resealed(altered(whole(PayloadType::Work), "obligation_ids", json!([]))),
        ),
        ("changed parameters under the old logical digest", RefusalCode::DigestMismatch, resealed(damaged_action)),
        ("a phase about another subject", RefusalCode::SubjectMismatch, resealed(wrong_subject)),
        ("evidence without its target", RefusalCode::SchemaInvalid, resealed(no_target)),
        ("a key beyond its bound", RefusalCode::Oversize, resealed(long)),
        ("a status that is none", RefusalCode::SchemaInvalid, resealed(status)),
        (
            "a local time",
            RefusalCode::SchemaInvalid,
            resealed(altered(event(), "created_at", json!("2026-01-01T12:00:00+01:00"))),
        ),
    ];
    let list = cases.into_iter().map(|(name, code, bytes)| {
        assert!(bytes.len() <= PAYLOAD_BYTES_MAX);
        refused(Payload::read(&bytes), code);
        json!({ "name": name, "bytes": String::from_utf8(bytes).expect("UTF-8"), "code": code })
    });
    vectors("invalid", "bytes is refused as a payload with code.", list.collect());
}
