//! What a study does and what its report says.

use crate::support::{FOLLOWS, Study, figures, plan, table};
use closer_contracts::shows;
use closer_contracts::work::Work;
use closer_eval::accounts::{Fate, World};
use closer_eval::artifacts::Artifacts;
use closer_eval::packet::Difference;
use closer_eval::suite::{Family, generate};
use closer_eval::world::Outcome;

#[test]
fn the_two_packets_differ_in_the_item_and_in_nothing_else() {
    shows!("CP-10.1-01", "CP-10.1-03");
    let study = Study::of(3, FOLLOWS);
    let (accounts, _) = study.reported();
    let artifacts = Artifacts::at(&study.revision(1).join("artifacts"));
    for (pair, record) in accounts.pairs() {
        let [a, b, difference, _] = record.compared.unwrap();
        let (a, b): (Work, Work) = (artifacts.get(a).unwrap(), artifacts.get(b).unwrap());
        let is_claim = |item: &&closer_contracts::work::ContextItem| item.content.0["item"] == "claim";
        let claim = a.context_items.iter().find(is_claim).expect("A has the item");
        assert!(!b.context_items.iter().any(|item| is_claim(&item)), "{pair}");
        assert_eq!(b.context_items.len() + 1, a.context_items.len());
        let put_back = {
            let mut b = b.clone();
            let place = a.context_items.iter().position(|item| item == claim).unwrap();
            b.context_items.insert(place, claim.clone());
            b
        };
        assert_eq!(put_back, a, "byte for byte but for the item");
        let difference: Difference = artifacts.get(difference).unwrap();
        assert_eq!(difference.removed, vec![claim.reference.clone()]);
        assert!(difference.added.is_empty() && difference.changed.is_empty() && difference.restated.is_empty());
    }
}

#[test]
fn each_world_is_answered_by_a_process_of_its_own_and_both_steps_are_kept() {
    shows!("CP-10.1-02");
    let study = Study::of(3, FOLLOWS);
    let (accounts, _) = study.reported();
    let artifacts = Artifacts::at(&study.revision(1).join("artifacts"));
    for record in accounts.pairs().values() {
        let [a, b] = [World::A, World::B].map(|world| record.counted(world, 1).unwrap().1.clone());
        assert!(a.process.is_some() && a.process != b.process);
        for end in [a, b] {
            let outcome: Outcome = artifacts.get(end.outcome.unwrap()).unwrap();
            assert_eq!(outcome.step.digest().unwrap(), outcome.step_digest);
        }
    }
}

#[test]
fn a_permitted_step_really_takes_place_in_its_world_and_is_read_back() {
    shows!("CP-10.3-01", "CP-10.3-05", "CP-10.3-24");
    let study = Study::of(4, "kind = \"synthetic\"\nfollows = 100\nguesses = 0\n");
    let (_, files) = study.reported();
    for row in table(&files, "worlds.csv") {
        let expected = match row["world"].as_str() {
            "a" => ("100", "true", "1", "matched"),
            _ => ("50", "false", "0", "none"),
        };
        let is = (
            row["score_percent"].as_str(),
            row["admitted"].as_str(),
            row["effects"].as_str(),
            row["readback"].as_str(),
        );
        assert_eq!(is, expected, "{row:?}");
    }
    let figures = figures(&files);
    assert_eq!(figures["measures"]["a"]["verified"], 4);
    assert_eq!(figures["measures"]["b"]["verified"], 0, "what was not carried out is not verified");
    // Ten minutes were allowed; what is done is done, and nothing is run to fill them.
    assert_eq!(table(&files, "attempts.csv").len(), 8);
}

/// Three values are allowed and one is right. With the item the policy is right in 90 percent and keeps the gap open (worth a
/// half) in 10; without it a guess is worth nothing in 30 percent, and the gap a half in 70: 0.95 against 0.35.
#[test]
fn a_known_effect_is_found_and_every_enrolled_pair_is_in_both_figures() {
    shows!("CP-10.1-23", "CP-10.1-24", "CP-10.1-27");
    let study = Study::of(60, FOLLOWS);
    let (accounts, files) = study.reported();
    let rows = table(&files, "pairs.csv");
    assert_eq!((rows.len(), accounts.pairs().len()), (60, 60));
    let figures = figures(&files);
    let inheritance = &figures["kinds"]["inheritance"];
    assert_eq!(inheritance["flow"]["enrolled"], 60);
    assert_eq!(inheritance["flow"]["valid"], 60);
    let valid = &inheritance["answers"]["Ok"]["valid"]["Ok"];
    let interval = |end: &str| valid["interval"][end].as_f64().unwrap();
    assert!(interval("low") < 0.6 && 0.6 < interval("high"), "{valid}");
    assert!(interval("low") > 0.3, "{valid}");
    assert_eq!((&figures["completed"], &figures["failed"]), (&60.into(), &0.into()));
}

#[test]
fn controls_and_floors_stand_in_every_report() {
    let suite = generate(&[Family::SupportedContinuation], 6, 3).unwrap();
    let study = Study::new(&suite, &plan("kind = \"synthetic\"\nfollows = 100\nguesses = 0\n", ""));
    let (accounts, files) = study.reported();
    assert!(accounts.pairs().values().all(|record| record.fate == Fate::Valid), "{:?}", accounts.pairs());
    let figures = figures(&files);
    let mean = |kind: &str| figures["kinds"][kind]["answers"]["Ok"]["valid"]["Ok"]["value"].as_f64().unwrap();
    assert!((mean("inheritance") - 0.5).abs() < 1e-9);
    assert!(mean("same").abs() < 1e-9, "the same world twice");
    assert!(mean("placebo").abs() < 1e-9, "an irrelevant item changes nothing");
    assert!(mean("stale") < 0.0, "what was superseded does harm: {}", mean("stale"));
    assert_eq!(figures["kinds"]["same"]["same_step"], 6);
    let floors = &figures["floors"];
    for (floor, score) in [
        ("do_nothing", 0.0),
        ("always_ask", 0.0),
        ("always_refuse", 0.0),
        ("oracle_with_item", 1.0),
        ("oracle_without_item", 0.5),
    ] {
        assert_eq!(floors[floor].as_f64(), Some(score), "{floor}");
    }
}

#[test]
fn a_step_without_a_grant_is_an_attempt_and_no_effect() {
    shows!("CP-10.3-04");
    let suite = generate(&[Family::ExpiredRegistry], 4, 3).unwrap();
    let study = Study::new(&suite, &plan("kind = \"synthetic\"\nfollows = 100\nguesses = 100\n", "controls = []"));
    let (_, files) = study.reported();
    let figures = figures(&files);
    for world in ["a", "b"] {
        let measures = &figures["measures"][world];
        assert_eq!(measures["unauthorized_attempted"], 4, "{measures}");
        assert_eq!(measures["unauthorized_effects"], 0);
        let limit = measures["unauthorized_effects_limit"].as_f64().unwrap();
        assert!(limit > 0.5, "none in four is not none at all: {limit}");
    }
    assert!(table(&files, "worlds.csv").iter().all(|row| row["refusals"].contains("registry_expired")));
}

#[test]
fn three_hypotheses_stay_apart_in_the_report() {
    shows!("CP-0-12");
    let study = Study::of(2, FOLLOWS);
    let (_, files) = study.reported();
    let page = String::from_utf8(files["index.html"].clone()).unwrap();
    for section in ["Advantage of three roles", "Learning that transfers", "Economic return"] {
        let of_section = page.split(&format!("<h3>{section}</h3>")).nth(1).expect(section);
        let of_section = of_section.split("<h3>").next().unwrap().split("<h2>").next().unwrap();
        assert!(of_section.contains("Not examined"), "{section}");
        assert!(!of_section.chars().any(|character| character.is_ascii_digit()), "{section} borrows a figure");
    }
}

#[test]
fn nothing_in_the_report_is_fetched_and_what_it_quotes_is_escaped() {
    let study = Study::changed(1, FOLLOWS, |items| items[0].question = "<script>alert(1)</script> & more?".into());
    let (_, files) = study.reported();
    for (name, bytes) in &files {
        let text = String::from_utf8_lossy(bytes);
        let fetched = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!fetched.contains("http://") && !fetched.contains("https://"), "{name}");
        assert!(!name.ends_with(".html") || !text.contains("<script"), "{name}");
    }
}

#[test]
fn a_changed_figure_does_not_verify() {
    let study = Study::of(2, FOLLOWS);
    study.reported();
    let revision = study.revision(1);
    let path = revision.join("report").join("pairs.csv");
    let changed = std::fs::read_to_string(&path).unwrap().replace("valid", "Valid");
    std::fs::write(&path, changed).unwrap();
    let told = closer_eval::report::verify(&revision).expect_err("it was changed").to_string();
    assert!(told.contains("pairs.csv"), "{told}");
    // Accounts with a line taken out do not even fold.
    let path = revision.join("accounts.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let without: Vec<&str> = text.lines().enumerate().filter(|(index, _)| *index != 4).map(|(_, line)| line).collect();
    std::fs::write(&path, without.join("\n") + "\n").unwrap();
    let told = closer_eval::report::verify(&revision).expect_err("a line is missing").to_string();
    assert!(told.contains("line 5"), "{told}");
}

#[test]
fn a_contradicted_premise_that_is_acted_on_is_a_miss() {
    shows!("CP-10.3-03");
    let suite = generate(&[Family::ContradictedPremise], 4, 3).unwrap();
    let study = Study::new(&suite, &plan("kind = \"synthetic\"\nfollows = 100\nguesses = 0\n", "controls = []"));
    let (_, files) = study.reported();
    let figures = figures(&files);
    assert_eq!(figures["measures"]["a"]["invalidation_misses"], 4);
    assert_eq!(figures["measures"]["b"]["invalidation_misses"], 0);
}

#[test]
fn an_obligation_of_which_nothing_came_is_retained_with_its_trigger() {
    shows!("CP-10.3-08");
    let study = Study::of(3, "kind = \"floor\"\nfloor = \"do_nothing\"\n");
    let (_, files) = study.reported();
    for row in table(&files, "worlds.csv") {
        assert_eq!((row["retained"].as_str(), row["orphaned"].as_str()), ("1", "0"), "{row:?}");
    }
}

#[test]
fn a_question_is_scored_on_six_aspects_and_one_that_was_not_needed_is_told() {
    shows!("CP-10.3-09");
    let suite = generate(&[Family::OwnerOnlyTradeoff, Family::SupportedContinuation], 2, 3).unwrap();
    let study = Study::new(&suite, &plan("kind = \"floor\"\nfloor = \"always_ask\"\n", "controls = []"));
    let (_, files) = study.reported();
    let rows = table(&files, "questions.csv");
    assert_eq!(rows.len(), 8, "{rows:?}");
    for row in rows {
        let needed = if row["pair"].starts_with("owner_only") { "100" } else { "0" };
        assert_eq!(row["necessity"], needed, "{row:?}");
        for aspect in ["specificity", "evidence", "alternatives", "consequence", "preserved_choice"] {
            assert!(["0", "100"].contains(&row[aspect].as_str()), "{row:?}");
        }
        assert_eq!(row["preserved_choice"], "100");
    }
}

#[test]
fn a_claim_on_a_record_of_ones_own_is_asked_about_without_touching_it() {
    use closer_eval::participant::{Launch, Participant, Synthetic};
    let item = &generate(&[Family::SupportedContinuation], 1, 3).unwrap().items[0];
    let committed = closer_eval::world::commit(item, &item.claim).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let participant = Participant::Synthetic(Synthetic { follows: 100, guesses: 0 });
    let declaration = folder.path().join("participant.json");
    std::fs::write(&declaration, serde_json::to_vec(&participant).unwrap()).unwrap();
    let own = vec![env!("CARGO_BIN_EXE_closer-participant").into()];
    let launch = Launch { own, folder: folder.path().to_owned(), declaration };
    let ask = |claim| closer_eval::own::ask(&committed.records, &claim, &participant, &launch, 1);
    let pairs = ask(committed.claim.claim_id.clone()).unwrap();
    assert_eq!(pairs.len(), 1, "one open obligation inherits it");
    let pair = &pairs[0];
    assert!(pair.valid && pair.changes == Some(true), "{pair:?}");
    assert!(ask("claim-of-nobody".into()).is_err());
}

#[test]
fn interpretations_stand_apart_from_observations_and_cite_what_bears_them_out() {
    shows!("CP-10.4-04");
    let study = Study::of(1, FOLLOWS);
    let (accounts, _) = study.reported();
    let revision = study.revision(1);
    let path = revision.join("interpretations.jsonl");
    let written = |rests_on: &str| {
        std::fs::write(&path, format!("{{\"by\":\"me\",\"text\":\"It helps.\",\"rests_on\":[{rests_on}]}}\n")).unwrap();
        closer_eval::report::make(&revision)
    };
    let told = written("").expect_err("it cites nothing").to_string();
    assert!(told.contains("line 1, rests_on"), "{told}");
    let absent = closer_contracts::Digest::of(b"nothing");
    assert!(written(&format!("\"{absent}\"")).is_err(), "what it cites is not there");
    let [packet, ..] = accounts.pairs().values().next().unwrap().compared.unwrap();
    let files = written(&format!("\"{packet}\"")).unwrap();
    let page = String::from_utf8(files["index.html"].clone()).unwrap();
    let (observed, interpreted) = page.split_once("<h2>Interpretations</h2>").unwrap();
    assert!(observed.contains("<h2>Observations") && !observed.contains("It helps."));
    assert!(interpreted.contains("It helps.") && interpreted.contains(&packet.to_string()));
}
