//! What a person does from the command line about questions and responsibility: amend, look at fates, hand over, accept.

use crate::support::{Place, has_openssl};
use serde_json::Value;
use std::process::Command;

fn days_left(place: &Place, certificate: &str, days: u64) -> bool {
    let file = place.path().join("var/certs").join(certificate);
    let seconds = (days * 24 * 3_600).to_string();
    let checked = Command::new("openssl").args(["x509", "-noout", "-checkend", &seconds, "-in"]).arg(file).output();
    checked.unwrap().status.success()
}

fn asked(place: &Place) -> String {
    let listed = place.call(&["--json", "bench", "list"]).expect(0).json();
    let packets = listed["packets"].as_array().unwrap();
    assert_eq!(packets.len(), 1, "{listed}");
    packets[0]["decision_id"].as_str().unwrap().to_owned()
}

fn answers(place: &Place, decision: &str) -> Vec<Value> {
    place.call(&["--json", "bench", "show", decision]).expect(0).json()["answers"].as_array().unwrap().clone()
}

#[test]
fn a_person_allows_another_action_than_the_proposed_one_and_sees_what_became_of_it() {
    if !has_openssl() {
        return;
    }
    let place = Place::example("certificate-renewal", |text| text);
    place.run(&[]).expect(6);
    let views = place.call(&["--json", "briefcase"]).expect(0).json();
    assert_eq!(views["bench"][0]["about"], "certificate.rekey", "{views}");
    let decision = asked(&place);
    place.call(&["bench", "decide", &decision, "allow", "--amend", "days"]).expect(2);
    place.call(&["bench", "decide", &decision, "allow", "--amend", "days=60"]).expect(0);
    assert_eq!(answers(&place, &decision)[0]["fate"], "waiting");
    place.call(&["bench", "decide", &decision, "investigate"]).expect(3);
    place.run(&["--answer"]).expect(0);
    assert!(days_left(&place, "mail.pem", 59) && !days_left(&place, "mail.pem", 61), "for 60 days, and not for 90");
    let told = answers(&place, &decision);
    assert_eq!((&told[0]["fate"], &told[0]["amended"]), (&"ran".into(), &true.into()), "{told:?}");
}

#[test]
fn an_obligation_is_handed_over_by_consent_and_accepted_once() {
    if !has_openssl() {
        return;
    }
    let place = Place::example("certificate-renewal", |text| text);
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    let held = |place: &Place| {
        let listed = place.call(&["--json", "handoff", "list"]).expect(0).json();
        let held = listed["held"].as_array().unwrap().iter().find(|held| held["obligation_id"] == "obligation.web");
        let held = held.unwrap().clone();
        (held["owner"].as_str().unwrap().to_owned(), held["epoch"].as_u64().unwrap())
    };
    let (owner, epoch) = held(&place);
    assert_eq!(epoch, 0);
    let written = place.call(&["--json", "handoff", "contract", "--owes", "results"]).expect(0).json();
    let contract = written["recorded"][0]["id"].as_str().unwrap().to_owned();
    let to = ["--to", "issuer.security", "--contract", &contract];
    let offer = |who: &str| {
        let mut arguments = vec!["--json", "--as", who, "handoff", "offer", "obligation.web"];
        arguments.extend(to);
        place.call(&arguments)
    };
    offer("issuer.security").expect(3);
    offer(&owner).expect(0);
    let listed = place.call(&["--json", "handoff", "list"]).expect(0).json();
    let handoff = listed["handoffs"][0]["handoff"]["handoff_id"].as_str().unwrap().to_owned();
    assert_eq!(listed["handoffs"][0]["status"], "offered");
    let accept = |who: &str| place.call(&["--json", "--as", who, "handoff", "accept", &handoff]);
    assert_eq!(accept(&owner).expect(3).json()["code"], "consent_missing");
    accept("issuer.security").expect(0);
    assert_eq!(held(&place), ("issuer.security".to_owned(), 1));
    assert_eq!(accept("issuer.security").expect(3).json()["code"], "duplicate");
    place.run(&["--answer"]).expect(0);
    assert!(days_left(&place, "web.pem", 30), "the work went on under the new epoch");
}

#[test]
fn an_open_question_of_the_profile_is_named() {
    if !has_openssl() {
        return;
    }
    let place = Place::example("certificate-renewal", |text| text);
    place.call(&["init"]).expect(0);
    let told = place.call(&["--json", "profile", "check"]).expect(0).json();
    assert_eq!(told["questions"].as_array().unwrap().len(), 10);
    let open = |text: String| text.lines().filter(|line| !line.starts_with("q8 =")).collect::<Vec<_>>().join("\n");
    let place = Place::example("certificate-renewal", open);
    place.call(&["init"]).expect(0);
    let told = place.call(&["--json", "profile", "check"]).expect(3).json();
    let questions = told["questions"].as_array().unwrap();
    let open: Vec<_> = questions.iter().filter(|question| question["open"] == true).collect();
    assert_eq!(open.len(), 1, "{told}");
    assert_eq!(open[0]["question"], 8);
}
