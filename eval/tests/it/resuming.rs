//! A run that ends anywhere goes on where its accounts end, and comes to the same figures.

use crate::support::{FOLLOWS, Study, plan, table};
use closer_eval::report::VOLATILE;
use closer_eval::statistics::bootstrap::Random;
use closer_eval::suite::{Family, generate};

fn study() -> Study {
    let families = [Family::SupportedContinuation, Family::InsufficientEvidence, Family::CorrectMinority];
    Study::new(&generate(&families, 2, 5).unwrap(), &plan(FOLLOWS, "controls = [\"same\"]"))
}

#[test]
fn a_run_that_ends_ten_times_anywhere_comes_to_the_figures_of_an_undisturbed_one() {
    let (_, undisturbed) = study().reported();
    let disturbed = study();
    disturbed.freeze();
    let revision = disturbed.revision(1);
    let path = revision.join("accounts.jsonl");
    let mut random = Random::seeded(17);
    disturbed.run().unwrap();
    let whole = std::fs::metadata(&path).unwrap().len();
    for time in 1..=10_u64 {
        // What a process that was killed leaves: some prefix of what it would have written, a torn line at its end; each
        // time a little further than the last.
        let kept = whole * (time - 1) / 11 + random.below((whole / 11) as usize) as u64;
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..kept.min(bytes.len() as u64) as usize]).unwrap();
        let _ = std::fs::remove_dir_all(revision.join("worlds"));
        disturbed.run().unwrap();
    }
    let files = disturbed.report(&revision);
    assert_eq!(files.keys().collect::<Vec<_>>(), undisturbed.keys().collect::<Vec<_>>());
    for (name, bytes) in &files {
        assert!(VOLATILE.contains(&name.as_str()) || *bytes == undisturbed[name], "{name} differs");
    }
    let key = |row: &std::collections::BTreeMap<String, String>| {
        ["pair", "world", "repeat", "answer", "outcome"].map(|column| row[column].clone())
    };
    let (before, after) = (table(&undisturbed, "attempts.csv"), table(&files, "attempts.csv"));
    let counted: Vec<_> = after.iter().filter(|row| row["end"] == "counted").map(key).collect();
    let mut expected: Vec<_> = before.iter().map(key).collect();
    let mut found = counted.clone();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "each answer counts once");
    for row in after.iter().filter(|row| row["end"] != "counted") {
        assert_eq!((row["end"].as_str(), row["calls"].as_str()), ("interrupted", "unknown"), "{row:?}");
    }
    assert!(after.len() > before.len(), "some attempt was under way at some end");
}

#[test]
fn a_sealed_study_takes_nothing_more_and_two_processes_do_not_share_one() {
    let study = study();
    study.reported();
    let path = study.revision(1).join("accounts.jsonl");
    let before = std::fs::read(&path).unwrap();
    study.run().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let held = closer_eval::accounts::Accounts::open(&path).unwrap();
    assert!(study.run().is_err_and(|error| error.to_string().contains("another process")));
    drop(held);
}
