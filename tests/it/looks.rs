//! Looking at targets: what nobody can see is told, and one target has one looker.

use crate::support::{Place, body, counting, entries, notice, refusal};
use closer_contracts::envelope::Body;
use closer_protocol::Entry;
use closer_protocol::entry::NoticeKind;

fn waiting(place: &Place) -> Vec<serde_json::Value> {
    let why = place.call(&["--json", "obligation", "why", "obligation.count"]).expect(0).json();
    let waiting = why["waiting"].as_array().unwrap().iter();
    waiting.filter(|told| told["for"] == "observation").cloned().collect()
}

/// Nobody waits in silence for what nobody can look at: it is on record once, and `why` says so until it is seen.
#[test]
fn a_target_that_nobody_can_look_at_is_told() {
    let place = Place::with(&counting("conditional").replace("program = \"touch\"", "program = \"mkdir\""));
    place.run(&[]).expect(8);
    place.run(&[]).expect(8);
    let told = waiting(&place);
    let reason = told.first().and_then(|told| told["reason"].as_str()).unwrap_or_default();
    assert!(told.len() == 1 && reason.contains("cannot be looked at") && reason.contains("regular file"), "{told:?}");
    let text = place.call(&["obligation", "why", "obligation.count"]).expect(0).stdout;
    assert!(text.contains("Nobody can see what it waits for: `target` of `local`"), "{text}");
    let limits = |place: &Place| {
        let entries = entries(place);
        let notices = entries.iter().filter_map(|(_, entry)| notice(entry));
        notices.filter(|notice| notice.kind == NoticeKind::ResidualInterval).count()
    };
    assert_eq!(limits(&place), 1, "once, however often it is tried");

    let target = place.path().join("var/world/target");
    std::fs::remove_dir(&target).unwrap();
    std::fs::write(&target, "").unwrap();
    place.run(&[]).expect(0);
    assert_eq!((waiting(&place).len(), limits(&place)), (0, 1));
}

/// Two observations of one target do not race for its next number: both changes are announced, about the same evidence.
#[test]
fn two_observations_of_one_target_are_one_look() {
    let one = counting("conditional");
    let from = one.find("[[observation]]").unwrap();
    let (observation, rest) = one[from..].split_once("[[participant]]").unwrap();
    let other = observation.replace("file.target", "file.other");
    let place = Place::with(&format!("{}{observation}{other}[[participant]]{rest}", &one[..from]));
    place.run(&[]).expect(0);
    let entries = entries(&place);
    let refusals: Vec<_> = entries.iter().filter_map(|(_, entry)| refusal(entry)).collect();
    assert!(refusals.is_empty(), "{refusals:?}");
    let cited = |entity: &str| {
        let event = |entry: &Entry| {
            let event = if let Some(Body::Event(event)) = body(entry) { event } else { return None };
            (event.entity_ref.as_str() == entity).then(|| event.evidence_refs.clone())
        };
        entries.iter().filter_map(|(_, entry)| event(entry)).collect::<Vec<_>>()
    };
    assert!(!cited("file.target").is_empty());
    assert_eq!(cited("file.target"), cited("file.other"));
}
