//! The contract of a conference and its nine moves. Spec: §4.1.

use super::support::{altered, json_of, read, refused, round_trips, words};
use crate::conference::{Conference, ConferenceMove, MoveKind};
use crate::evidence::Evidence;
use crate::example::{Example, Extent};
use crate::item::Shown;
use crate::refusal::RefusalCode;
use crate::shows;
use crate::work::{Proposition, WorkResult};
use serde_json::{Value, json};

fn contract() -> Value {
    json_of(&Conference::example(Extent::Full))
}

/// A move of this kind, with what its kind demands.
fn of_kind(kind: MoveKind) -> Value {
    let narrowed = (kind == MoveKind::Narrow).then(|| Proposition::example(Extent::Full));
    let mut made = ConferenceMove::example(Extent::Full);
    made.r#move = kind;
    made.reason_class = made.reason_class.filter(|_| kind == MoveKind::Challenge);
    if let Some(narrowed) = &narrowed {
        made.subject = crate::canonical::digest_of(narrowed).expect("a digest");
    }
    made.narrowed = narrowed;
    json_of(&made)
}

#[test]
fn a_conference_fixes_six_things_in_advance() {
    shows!("CP-4.1-23"; by "contract.list_is_empty");
    round_trips::<Conference>();
    assert!(read::<Conference>(contract()).is_ok());
    for bound in ["rounds_max", "calls_max", "time_ms_max"] {
        let mut unbounded = contract();
        unbounded["stop"][bound] = json!(0);
        refused(read::<Conference>(unbounded), RefusalCode::SchemaInvalid);
        let mut silent = contract();
        silent["stop"].as_object_mut().expect("an object").remove(bound);
        refused(read::<Conference>(silent), RefusalCode::SchemaInvalid);
    }
    for field in ["subjects", "evidence_scope", "allowed_moves"] {
        let mut without = contract();
        without.as_object_mut().expect("an object").remove(field);
        refused(read::<Conference>(without), RefusalCode::SchemaInvalid);
    }
    for field in ["subjects", "allowed_moves", "seats"] {
        refused(read::<Conference>(altered(contract(), field, json!([]))), RefusalCode::SchemaInvalid);
    }
}

#[test]
fn there_are_nine_moves_and_no_others() {
    shows!("CP-4.1-25");
    words(
        MoveKind::ALL,
        &[
            "assert",
            "support",
            "challenge",
            "narrow",
            "retract",
            "request_evidence",
            "retain_with_reason",
            "assent",
            "defer",
        ],
    );
    for kind in MoveKind::ALL {
        assert!(read::<ConferenceMove>(of_kind(*kind)).is_ok(), "{kind}");
    }
}

#[test]
fn a_move_states_everything_that_it_is_bound_to() {
    shows!("CP-4.1-27");
    round_trips::<ConferenceMove>();
    let bindings =
        ["actor", "role", "local_receipt", "shared_snapshot", "subject", "governing_basis", "reply_to", "evidence"];
    for binding in bindings {
        let mut without = of_kind(MoveKind::Assert);
        without.as_object_mut().expect("an object").remove(binding);
        refused(read::<ConferenceMove>(without), RefusalCode::SchemaInvalid);
        let unsaid = read::<ConferenceMove>(altered(of_kind(MoveKind::Assert), binding, Value::Null));
        assert_eq!(unsaid.is_ok(), binding == "reply_to", "{binding}: an opening move says that it answers none");
    }
}

#[test]
fn who_challenges_or_keeps_to_it_says_why() {
    shows!("CP-4.1-28"; by "conference.reason_missing");
    for kind in [MoveKind::Challenge, MoveKind::RetainWithReason] {
        for unreasoned in [Value::Null, json!("")] {
            refused(read::<ConferenceMove>(altered(of_kind(kind), "reason", unreasoned)), RefusalCode::SchemaInvalid);
        }
    }
    assert!(read::<ConferenceMove>(altered(of_kind(MoveKind::Assent), "reason", Value::Null)).is_ok());
    refused(
        read::<ConferenceMove>(altered(of_kind(MoveKind::Challenge), "reason_class", Value::Null)),
        RefusalCode::SchemaInvalid,
    );
}

#[test]
fn a_narrowing_is_about_what_it_leaves() {
    let narrowing = of_kind(MoveKind::Narrow);
    let other = altered(narrowing.clone(), "subject", json!(crate::digest::Digest::of(b"another")));
    refused(read::<ConferenceMove>(other), RefusalCode::SchemaInvalid);
    refused(read::<ConferenceMove>(altered(narrowing, "narrowed", Value::Null)), RefusalCode::SchemaInvalid);
}

#[test]
fn no_record_asks_for_private_reasoning() {
    shows!("CP-4.1-07", "CP-C6-07");
    let result = json_of(&WorkResult::example(Extent::Full));
    let mut fields: Vec<&str> = result.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "action_proposals",
            "assessments",
            "claims",
            "extensions",
            "objections",
            "skill_receipts",
            "unresolved",
            "work_id"
        ],
        "no member holds a reasoning trace"
    );
    let traced = altered(result, "reasoning", json!("first I thought"));
    refused(read::<WorkResult>(traced), RefusalCode::SchemaInvalid);
    let short = altered(of_kind(MoveKind::RetainWithReason), "reason", json!("It was read back."));
    assert!(read::<ConferenceMove>(short).is_ok(), "a concise rationale is enough");
}

#[test]
fn an_observation_interprets_nothing() {
    shows!("CP-C8-02");
    for field in ["relation", "assessments", "supports", "proposition_id"] {
        let read = read::<Evidence>(altered(json_of(&Evidence::example(Extent::Full)), field, json!("supports")));
        refused(read, RefusalCode::SchemaInvalid);
    }
}

#[test]
fn what_must_be_shown_is_something() {
    round_trips::<Shown>();
    let nothing = altered(json_of(&Shown::example(Extent::Full)), "expectations", json!([]));
    refused(read::<Shown>(nothing), RefusalCode::SchemaInvalid);
}
