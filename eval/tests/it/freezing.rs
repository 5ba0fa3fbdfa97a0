//! Nothing is dispatched without a freeze, and what changes afterwards is another revision.

use crate::support::{FOLLOWS, Study, plan, table};
use closer_contracts::shows;
use closer_eval::freeze::{NotFrozen, Part};
use closer_eval::runner::RunError;
use closer_eval::suite::{Family, generate};

/// The parts that a run refuses over, after a change.
fn refused_over(study: &Study) -> Vec<Part> {
    let error = study.run().expect_err("something changed");
    let RunError::NotFrozen(NotFrozen::Changed { changed, .. }) = error else { panic!("{error}") };
    changed
}

#[test]
fn a_run_needs_a_freeze_that_fixes_every_part_and_still_holds() {
    shows!("CP-10.3-19");
    let study = Study::of(1, FOLLOWS);
    assert!(matches!(study.run(), Err(RunError::NotFrozen(NotFrozen::Never))));
    study.freeze();
    let path = study.revision(1).join("freeze.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    for part in Part::ALL {
        let mut freeze: serde_json::Value = serde_json::from_str(&whole).unwrap();
        freeze["parts"].as_object_mut().unwrap().remove(part.as_str()).unwrap();
        std::fs::write(&path, freeze.to_string()).unwrap();
        let error = study.run().expect_err("a part is not fixed");
        let RunError::NotFrozen(NotFrozen::Incomplete { missing, .. }) = error else { panic!("{error}") };
        assert_eq!(missing, vec![*part]);
    }
    std::fs::write(&path, whole).unwrap();
    assert!(!study.revision(1).join("accounts.jsonl").exists(), "nothing was dispatched");
    let text = std::fs::read_to_string(study.plan()).unwrap();
    for (from, to, part) in [
        ("seed = 11", "seed = 12", Part::ModelControls),
        ("follows = 90", "follows = 91", Part::Prompts),
        ("calls = 1000", "calls = 1001", Part::Budgets),
        ("resamples = 200", "resamples = 201", Part::AnalysisPlan),
        ("controls = []", "controls = [\"same\"]", Part::Mappings),
    ] {
        std::fs::write(study.plan(), text.replace(from, to)).unwrap();
        assert_eq!(refused_over(&study), vec![part]);
    }
    std::fs::write(study.plan(), &text).unwrap();
    for (file, part) in [("items.jsonl", Part::Fixtures), ("truth.jsonl", Part::Scoring)] {
        let kept = std::fs::read_to_string(study.at(file)).unwrap();
        std::fs::write(study.at(file), kept.clone() + "\n").unwrap();
        assert_eq!(refused_over(&study), vec![part]);
        std::fs::write(study.at(file), kept).unwrap();
    }
    study.run().unwrap();
}

#[test]
fn a_repair_after_the_freeze_is_a_revision_beside_the_old_and_its_failures_stay() {
    shows!("CP-10.3-22", "CP-10.3-23");
    let suite = generate(&[Family::SupportedContinuation], 2, 3).unwrap();
    let broken = "kind = \"command\"\ncommand = [\"/bin/false\"]\n";
    let study = Study::new(&suite, &plan(broken, "controls = []"));
    let (_, failed) = study.reported();
    assert!(table(&failed, "pairs.csv").iter().all(|row| row["cause"] == "no_answer"));
    let accounts = std::fs::read(study.revision(1).join("accounts.jsonl")).unwrap();
    std::fs::write(study.plan(), plan(FOLLOWS, "controls = []")).unwrap();
    assert!(study.run().is_err(), "the repaired plan is not the frozen one");
    assert_eq!(study.freeze(), 2);
    assert_eq!(study.freeze(), 2, "freezing what is frozen changes nothing");
    study.run().unwrap();
    let repaired = study.report(&study.revision(2));
    assert!(table(&repaired, "pairs.csv").iter().all(|row| row["fate"] == "valid"), "not pooled with the old");
    assert_eq!(std::fs::read(study.revision(1).join("accounts.jsonl")).unwrap(), accounts, "the old is as it was");
    assert_eq!(closer_eval::report::make(&study.revision(1)).unwrap(), failed);
}

#[test]
fn the_truth_stays_closed_until_every_output_is_sealed() {
    let study = Study::of(2, FOLLOWS);
    study.freeze();
    study.run().unwrap();
    let revision = study.revision(1);
    closer_eval::report::keep_sources(&study.plan(), &revision).unwrap();
    let path = revision.join("accounts.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.lines().last().unwrap().contains("\"entry\":\"sealed\""));
    let open: Vec<&str> = text.lines().take(text.lines().count() - 1).collect();
    std::fs::write(&path, open.join("\n") + "\n").unwrap();
    let told = closer_eval::report::make(&revision).expect_err("not sealed").to_string();
    assert!(told.contains("not sealed"), "{told}");
    // The run itself does without the truth: with another file in its place it only fails over the digest.
    for artifact in std::fs::read_dir(revision.join("artifacts")).unwrap() {
        let bytes = std::fs::read_to_string(artifact.unwrap().path()).unwrap();
        assert!(!bytes.contains("needs_item"), "no packet or outcome holds any of the truth");
    }
}
