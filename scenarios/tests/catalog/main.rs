//! The catalogue of cases: each runs as written, and its transcript is the one beside it.
//!
//! `CLOSER_SCENARIO` names the one case to run, by its path below `catalog` without `.toml`. `CLOSER_BLESS=1` writes the
//! transcripts anew; what `then` demands is written by hand and is never blessed.

#[cfg(test)]
mod cases;

use cases::{cases, differing, read};
use closer_contracts::item::ItemKind;
use closer_contracts::shows;
use closer_scenarios::catalog::{Failed, Scenario, balanced};

#[test]
fn catalog() {
    let only = std::env::var("CLOSER_SCENARIO").ok();
    let bless = std::env::var("CLOSER_BLESS").is_ok_and(|value| value == "1");
    let chosen: Vec<_> =
        cases().into_iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name)).collect();
    assert!(!chosen.is_empty(), "no case is called {only:?}");
    let mut failures = Vec::new();
    for (name, path) in chosen {
        let scenario = read(&path);
        assert!(
            scenario.rows.len() <= 3 && !scenario.clauses.is_empty() && !scenario.then.is_empty(),
            "{name} is not whole"
        );
        let transcript = match scenario.run() {
            Ok(transcript) => transcript,
            Err(failed) => {
                failures.push(format!("{name}: {failed}"));
                continue;
            }
        };
        let beside = path.with_extension("transcript");
        if bless {
            std::fs::write(&beside, &transcript).unwrap();
        }
        let written = std::fs::read_to_string(&beside).unwrap_or_default();
        if let Some((number, (expected, actual))) = differing(&written, &transcript) {
            failures
                .push(format!("{name}: line {number} of its transcript is `{actual}`, beside it stands `{expected}`"));
        }
        if only.is_some() {
            println!("{}\n{transcript}", scenario.name);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_whole_suite_passes_on_a_small_open_catalogue() {
    shows!("CP-11-07");
    // What the cases are founded on is written in this repository: few entries, and none that reaches for anything else.
    let founded = closer_scenarios::Deployment::default().with_inquiry().founding;
    let kinds = [ItemKind::Operation, ItemKind::Skill, ItemKind::Workflow];
    let catalogue = founded.items.iter().filter(|item| kinds.contains(&item.kind())).count();
    assert!((1..=12).contains(&catalogue), "{catalogue} entries");
    for (name, path) in cases() {
        if let Err(failed) = read(&path).run() {
            panic!("{name}: {failed}");
        }
    }
}

#[test]
fn every_case_runs_the_same_twice() {
    shows!("CP-10.2-16"; by "timers.deadline_passed");
    let mut overdue = 0;
    for (name, path) in cases() {
        let scenario = read(&path);
        let (first, second) =
            (scenario.run().unwrap_or_else(|failed| panic!("{name}: {failed}")), scenario.run().unwrap());
        assert_eq!(first, second, "{name}");
        overdue += first.lines().filter(|line| line.contains(" overdue ")).count();
    }
    assert!(overdue > 0, "a case lets a deadline pass");
}

#[test]
fn the_suite_shows_continuation_and_restraint() {
    shows!("CP-10.2-14", "CP-10.2-15"; by "catalog.shows_no_continuation", "catalog.shows_no_restraint");
    let suite: Vec<Scenario> = cases().iter().map(|(_, path)| read(path)).collect();
    balanced(&suite).unwrap();
    let refusing: Vec<Scenario> =
        suite.iter().filter(|case| !case.then.iter().any(|line| line.starts_with("effects "))).cloned().collect();
    assert!(matches!(balanced(&refusing), Err(Failed::OneSided(_))), "refusals alone show no continuation");
    let effecting: Vec<Scenario> =
        suite.iter().filter(|case| !case.then.iter().any(|line| line.starts_with("refused "))).cloned().collect();
    assert!(matches!(balanced(&effecting), Err(Failed::OneSided(_))), "successes alone show no restraint");
}

#[test]
fn the_suite_has_a_correct_minority_and_a_false_agreement() {
    shows!("CP-3.5-05");
    let (upheld, stopped) = ("claim p-o-1 accepted", "claim p-o-1 absent");
    let cases: Vec<Scenario> = cases().iter().map(|(_, path)| read(path)).collect();
    for row in ["CP-10.2-11", "CP-10.2-12"] {
        let of_family = cases.iter().filter(|case| case.rows.iter().any(|known| known == row));
        let demands = |line: &str| of_family.clone().any(|case| case.then.iter().any(|demand| demand == line));
        assert!(demands(upheld) && demands(stopped), "{row} is shown from both sides");
    }
}

#[test]
fn what_no_case_can_say_is_refused_by_name() {
    const CASE: &str = "name = \"n\"\nrows = []\nclauses = [\"§1\"]\ngiven = []\nwhen = []\nthen = []\n";
    assert!(Scenario::read(CASE).is_ok());
    let unknown = Scenario::read(&format!("{CASE}expected = []\n")).unwrap_err().to_string();
    assert!(unknown.contains("expected"), "{unknown}");
    for (place, line, reason) in [
        ("given", "moon.full", "moon.full"),
        ("given", "grant.given grant-2 plan=basic", "there is no detail `plan`"),
        ("when", "episodes.run twice", "one word too many"),
        ("when", "decision.given maybe", "none of"),
        ("then", "effects many", "no number"),
        ("then", "obligation o-1 closed", "none of"),
    ] {
        let mut case = Scenario::read(CASE).unwrap();
        match place {
            "given" => case.given.push(line.to_owned()),
            "when" => case.when.push(line.to_owned()),
            _ => case.then.push(line.to_owned()),
        }
        let failed = case.run().unwrap_err().to_string();
        assert!(failed.contains(reason), "{failed}");
    }
    let mut case = Scenario::read(CASE).unwrap();
    case.then.push("effects 1".to_owned());
    assert!(matches!(case.run(), Err(Failed::Unmet { .. })), "a demand that does not hold is told");
}
