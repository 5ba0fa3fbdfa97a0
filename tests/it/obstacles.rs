//! An obstacle in the world: its cause is told while it stands, and not when it is over.

use crate::support::{Place, counting};
use serde_json::Value;
use std::fs;

fn why(place: &Place) -> (Value, String) {
    let ask = ["obligation", "why", "obligation.count"];
    (place.call(&[&["--json"], &ask[..]].concat()).expect(0).json(), place.call(&ask).expect(0).stdout)
}

fn unseen(place: &Place) -> Vec<String> {
    let told = why(place).0;
    let waiting = told["waiting"].as_array().unwrap().iter().filter(|told| told["for"] == "observation");
    waiting.map(|told| told["reason"].as_str().unwrap().to_owned()).collect()
}

/// A deployment whose file is looked at by a program; it fails with what `broken` holds, and nothing is to be done yet.
fn looked_at_by_a_program() -> Place {
    let from = "contract = { kind = \"file\", root = \"./var/world\", account = \"local\" }";
    let script = r#"if test -e broken; then cat broken >&2; exit 1; fi; printf '{{"account":"local","content":"%s"}}' "$(cat "$1")""#;
    let run = format!(
        "run = {{ program = \"/bin/sh\", arguments = [\"-c\", '''{script}''', \"sh\", \"{{target}}\"], target_root = \"./var/world\", working_directory = \"./var/world\" }}"
    );
    let to = format!("contract = {{ kind = \"command\", account_member = \"account\", {run} }}");
    let anything = "{ field = \"/observation/type\", comparison = \"equals\", value = \"file\" }";
    let go = "{ field = \"/observation/value/content\", comparison = \"equals\", value = \"go\" }";
    let text = counting("conditional");
    assert!(text.contains(from) && text.contains(anything));
    Place::with(&text.replace(from, &to).replace(anything, go))
}

/// Why nothing can be seen is told as it is now, in one line: another cause takes the first one's place, and none is told
/// once the same is seen as before.
#[test]
fn a_cause_that_is_over_is_not_told_any_more() {
    let place = looked_at_by_a_program();
    let broken = place.path().join("var/world/broken");
    place.run(&[]).expect(8);
    assert_eq!(unseen(&place), Vec::<String>::new());

    fs::write(&broken, "Could not open certificate\n40A7:error:16000069:STORE routines\n\u{1b}[31m40A7:error\n")
        .unwrap();
    place.run(&[]).expect(8);
    let (told, text) = why(&place);
    let reason = unseen(&place).concat();
    assert!(reason.ends_with("the program ended with status 1: Could not open certificate"), "{told}");
    assert!(
        text.contains("Could not open certificate\n") && !text.contains("40A7") && !text.contains("u{a}"),
        "{text}"
    );

    fs::write(&broken, "permission denied\n").unwrap();
    place.run(&[]).expect(8);
    let told = unseen(&place);
    assert!(told.len() == 1 && told[0].contains("permission denied"), "only the cause of now: {told:?}");

    fs::remove_file(&broken).unwrap();
    place.run(&[]).expect(8);
    assert_eq!(unseen(&place), Vec::<String>::new(), "the cause is over");
    assert!(!why(&place).1.contains("Nobody can see"));

    fs::write(&broken, "gone again\n").unwrap();
    place.run(&[]).expect(8);
    assert!(unseen(&place).concat().contains("gone again"));
}

/// An allowed action that was refused at dispatch is told as that, with the reason; once it ran, the refusal is over.
#[test]
fn an_allowed_action_that_was_not_sent_is_told_as_that_until_it_ran() {
    let there = "target_root = \"./var/world\"\nworking_directory = \"./var/world\"";
    let late = "target_root = \"./var/world\"\nworking_directory = \"./var/late\"";
    let text = counting("conditional").replace("address = \"*\" }]\nexpiry", "address = \"other\" }]\nexpiry");
    assert!(text.contains(there));
    let place = Place::with(&text.replace(there, late));
    place.run(&[]).expect(6);
    let packets = place.call(&["--json", "bench", "list"]).expect(0).json();
    let id = packets["packets"][0]["decision_id"].as_str().unwrap().to_owned();
    place.call(&["bench", "decide", &id, "allow"]).expect(0);
    place.run(&[]).expect(8);

    let fate = || place.call(&["--json", "bench", "decisions", &id]).expect(0).json()["decisions"][0].clone();
    let list = || place.call(&["bench", "list", "--all"]).expect(0).stdout;
    let (told, listed) = (fate(), list());
    assert_eq!(told["fate"], "not_sent", "{told}");
    assert!(listed.contains("was refused at dispatch") && listed.contains("nothing was sent"), "{listed}");
    assert!(listed.contains("waits to run") && !listed.contains("was sent as"), "{listed}");
    assert_eq!(why(&place).0["not_sent"].as_array().map(Vec::len), Some(1));

    fs::create_dir(place.path().join("var/late")).unwrap();
    let word = ["event", "send", "--source", "source.people", "--entity", "word", "--change", "word_given"];
    place.call(&[&["--as", "issuer.security"], &word[..]].concat()).expect(0);
    place.run(&[]).expect(0);
    assert_eq!(fate()["fate"], "ran", "it ran under the same answer");
    assert!(list().contains("and was read back"));
    let (told, text) = why(&place);
    assert!(told["not_sent"].as_array().is_some_and(Vec::is_empty) && !text.contains("Not sent"), "{text}");
}

/// What a preparation has made before it failed, or was ended, is not taken for the whole by the next run.
#[test]
fn a_preparation_that_failed_is_not_taken_for_done() {
    let sound = "program = \"touch\"\narguments = [\"var/world/target\"]";
    let half =
        "program = \"/bin/sh\"\narguments = [\"-c\", \"mkdir var/world/target; echo one >&2; echo two >&2; exit 3\"]";
    let text = counting("conditional");
    let place = Place::with(&text.replace(sound, half));
    for _ in 0..2 {
        let failed = place.run(&[]).expect(1);
        assert!(failed.stderr.contains("exit status: 3: one") && !failed.stderr.contains("two"), "{failed:?}");
        assert!(!place.store().exists());
        let left = fs::read_dir(place.path().join("var/world")).unwrap().count();
        assert_eq!(left, 0, "nothing half made is left");
    }
    // As a process leaves it that was killed in between.
    fs::create_dir(place.path().join("var/world/target")).unwrap();
    fs::write(place.path().join("var/world/target.preparing"), "").unwrap();
    fs::write(place.path().join("closer.toml"), text).unwrap();
    place.run(&[]).expect(0);
    assert!(place.path().join("var/world/target").is_file());
    assert!(!place.path().join("var/world/target.preparing").exists());
}
