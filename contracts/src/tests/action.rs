//! The identity of an action, and what is not part of it. Spec: §6.4, C7.

use super::support::{altered, json_of, read, refused, round_trips};
use crate::action::Action;
use crate::adjudication::{Adjudication, Phase};
use crate::digest::Digest;
use crate::envelope::{Body, Payload};
use crate::example::{self, Example, Extent};
use crate::refs::{Plain, SubjectType, Target};
use crate::refusal::RefusalCode;
use crate::shows;
use serde_json::json;

/// The logical content's fields, with another value for each.
fn others() -> [(&'static str, Action); 8] {
    let action = || Action::example(Extent::Full);
    let bound = Action::example(Extent::Bound);
    [
        ("operation", Action { operation: "another".into(), ..action() }),
        ("target", Action { target: Target { account: "another".into(), ..action().target }, ..action() }),
        ("parameters", Action { parameters: [("seats".into(), Plain(json!(26)))].into(), ..action() }),
        ("expected_postcondition", Action { expected_postcondition: bound.expected_postcondition, ..action() }),
        ("authority_ref", Action { authority_ref: "another".into(), ..action() }),
        ("relevant_semantic_version", Action { relevant_semantic_version: 15, ..action() }),
        ("registry_version", Action { registry_version: 3, ..action() }),
        ("idempotency_key", Action { idempotency_key: "another".into(), ..action() }),
    ]
}

fn digest(action: &Action) -> Digest {
    action.compute_logical_digest().expect("a digest")
}

#[test]
fn action_is_whole() {
    shows!("CP-C7-01");
    round_trips::<Action>();
}

#[test]
fn the_logical_digest_covers_eight_fields() {
    shows!("CP-6.4-01", "CP-C7-02");
    let action = Action::example(Extent::Full);
    let content = json_of(&action.logical_content());
    let mut names: Vec<&str> = content.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut expected = others().map(|(field, _)| field).to_vec();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
    let mut digests: Vec<Digest> = others().iter().map(|(_, other)| digest(other)).chain([digest(&action)]).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 9, "each field changes the digest");
}

#[test]
fn the_logical_digest_leaves_the_attempt_out() {
    shows!("CP-6.4-02");
    let action = Action::example(Extent::Full);
    let attempt = Action {
        action_id: "another".into(),
        attempt_id: "another".into(),
        ownership_epoch: 99,
        logical_digest: Digest::of(b"another"),
        ..action.clone()
    };
    assert_eq!(digest(&attempt), digest(&action));
}

#[test]
fn the_envelope_covers_the_attempt() {
    shows!("CP-6.4-03");
    let seal = |action: Action| {
        let envelope = example::envelope(Body::from(action), Extent::Full);
        Payload::seal(envelope).expect("a payload").content_digest()
    };
    let action = Action::example(Extent::Full);
    let first = seal(action.clone());
    assert_eq!(seal(action.clone()), first);
    assert_ne!(seal(Action { attempt_id: "another".into(), ..action.clone() }), first);
    assert_ne!(seal(Action { ownership_epoch: 15, ..action.clone() }), first);
    assert_ne!(seal(Action { action_id: "another".into(), ..action }), first);
}

#[test]
fn targets_that_look_alike_are_different_operations() {
    shows!("CP-6.4-08", "CP-B-23");
    let at = |address: &str| {
        let mut action = Action::example(Extent::Full);
        action.target.address = address.into();
        digest(&action)
    };
    let pairs = [
        ("https://example.org/a", "https://example.org/A"),
        ("https://example.org/a", "https://example.org/a/"),
        ("https://example.org/caf\u{e9}", "https://example.org/cafe\u{301}"),
        ("https://example.org/a", "https://example.org/a "),
    ];
    for (one, other) in pairs {
        assert_ne!(at(one), at(other), "{one} and {other}");
    }
}

#[test]
fn the_sent_digest_is_that_of_the_content() {
    shows!("CP-C7-03"; by "action.logical_digest_agrees");
    let action = json_of(&Action::example(Extent::Full));
    assert!(read::<Action>(action.clone()).is_ok());
    let stated = altered(action.clone(), "logical_digest", json!(Digest::of(b"another")));
    refused(read::<Action>(stated), RefusalCode::DigestMismatch);
    for (field, other) in others() {
        let changed = altered(action.clone(), field, json_of(&other)[field].clone());
        refused(read::<Action>(changed), RefusalCode::DigestMismatch);
    }
}

#[test]
fn the_same_words_do_not_make_the_same_action() {
    shows!("CP-B-22");
    let described = |seats: u32| {
        let mut action = Action::example(Extent::Full);
        action.parameters = [
            ("description".into(), Plain(json!("move the team to the cheaper plan"))),
            ("seats".into(), Plain(json!(seats))),
        ]
        .into();
        action.logical_digest = digest(&action);
        action
    };
    let (one, other) = (described(25), described(26));
    assert_ne!(one.logical_digest, other.logical_digest);
    let mut adjudication = Adjudication::example(Extent::Minimal);
    adjudication.subject.digest = one.logical_digest;
    assert_eq!((adjudication.phase, adjudication.subject.r#type), (Phase::PreAction, SubjectType::Action));
    assert_ne!(adjudication.subject.digest, other.logical_digest, "an assessment of one does not cover the other");
}
