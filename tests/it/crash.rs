//! `kill -9` at every named point of the action path, and what a restart makes of it.

use crate::support::{Place, counting, taking};
use serde_json::Value;

fn runs(place: &Place) -> usize {
    std::fs::read_to_string(place.path().join("var/world/runs")).unwrap_or_default().lines().count()
}

/// Crashes at a point, starts again, and gives the final call's JSON.
fn crashed(point: &str, deployment: &str) -> (Place, Value, i32) {
    let place = Place::with(deployment);
    let crashed = place.run_with(&[], &[("CLOSER_CRASH_AT", point)]);
    assert_eq!(crashed.code, None, "{point} was not reached: {crashed:?}");
    let before = place.call(&["--json", "verify"]).expect(0).json();
    let run = place.run(&["--json"]);
    let after = place.call(&["--json", "verify"]).expect(0).json();
    assert!(after["records"].as_u64() >= before["records"].as_u64(), "{point}");
    (place, run.json(), run.code.unwrap())
}

#[test]
fn no_effect_is_repeated_whatever_the_crash_left() {
    if !cfg!(debug_assertions) {
        eprintln!("skipped: release builds have no crash points");
        return;
    }
    let rounds: usize = std::env::var("CLOSER_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let points =
        ["before_intent", "after_intent", "after_effect", "before_readback", "after_readback", "before_commit"];
    for round in 1..=rounds {
        std::thread::scope(|scope| {
            for point in points {
                scope.spawn(move || {
                    let (place, run, code) = crashed(point, &counting("conditional"));
                    assert_eq!((code, runs(&place)), (0, 1), "{point}: {run}");
                    assert_eq!(std::fs::read_to_string(place.path().join("var/world/target")).unwrap(), "done\n");
                });
            }
        });
        eprintln!("round {round} of {rounds}: killed at {} points, nothing lost or repeated", points.len());
    }
}

#[test]
fn an_effect_that_broke_off_stays_unknown_where_it_may_not_be_repeated() {
    if !cfg!(debug_assertions) {
        eprintln!("skipped: release builds have no crash points");
        return;
    }
    let (place, run, code) = crashed("during_effect", &taking("5", "not_repeat_safe"));
    assert_eq!(code, 8, "{run}");
    assert!(runs(&place) <= 1);
    let why = place.call(&["--json", "obligation", "why", "obligation.count"]).expect(0).json();
    let waiting = why["waiting"].as_array().unwrap();
    assert!(waiting.iter().any(|told| told["for"] == "reconciliation" && told["status"] == "outcome_unknown"), "{why}");
    place.run(&["--json"]);
    assert!(runs(&place) <= 1);
}
