//! Three roles against one agent's procedure, from the freeze to the report.

use crate::planted::{answers, proposal};
use crate::support::{FOLLOWS, Study, figures, plan, table};
use closer_contracts::canonical::digest_of;
use closer_contracts::shows;
use closer_eval::accounts::{Cause, Fate};
use closer_eval::comparison::NotComparable;
use closer_eval::plan::{PairKind, Plan};
use closer_eval::runner::{self, Options, RunError};
use closer_eval::suite::{Family, Suite, generate};
use std::collections::BTreeMap;

const VECTOR: &str = "{ calls = 400, tokens = 100000, reasoning_tokens = \"counted\", cached_tokens = \"counted\", \
     cost_micros = 1000, currency = \"EUR\", wall_ms = 600000, concurrency = 1 }";

/// Four calls of three roles and whoever hands on, and four of one agent.
fn arms(roles: &str, solo: &str) -> String {
    format!(
        "controls = []\n[procedures]\noffering = \"obligations\"\n[[procedures.arms]]\narm = \"roles\"\nstages = [\
         {{ role = \"mapper\", asks = \"Which step do the items lead to?\" }}, {{ role = \"coordinator\", coordinates = true }}, \
         {{ role = \"critic\", asks = \"What is wrong with it?\" }}, {{ role = \"judge\", asks = \"Decide.\" }}]\n{roles}\n\
         [[procedures.arms]]\narm = \"solo\"\nstages = [\
         {{ role = \"worker\" }}, {{ role = \"worker\" }}, {{ role = \"worker\" }}, {{ role = \"worker\" }}]\n{solo}\n"
    )
}

fn matched() -> String {
    arms(&format!("resources = {VECTOR}"), &format!("resources = {VECTOR}"))
}

fn suite(families: &[Family], items: usize) -> Suite {
    generate(families, items, 3).unwrap()
}

fn told(files: &BTreeMap<String, Vec<u8>>) -> serde_json::Value {
    serde_json::from_slice(&files["procedures.json"]).unwrap()
}

fn of_procedures(study: &Study) -> usize {
    let accounts = study.accounts(&study.revision(1));
    accounts.pairs().values().filter(|record| record.kind == PairKind::Procedure).count()
}

#[test]
fn three_roles_and_one_agent_under_equal_means_are_told_by_continuation_and_by_effort() {
    shows!("CP-0-11");
    let study = Study::new(&suite(&[Family::SupportedContinuation], 3), &plan(FOLLOWS, &matched()));
    let (accounts, files) = study.reported();
    let flow = &figures(&files)["kinds"]["procedure"]["flow"];
    assert_eq!((&flow["enrolled"], &flow["valid"]), (&3.into(), &3.into()));
    let told = told(&files);
    assert_eq!(told["comparison"]["Ok"]["label"], "equally resourced");
    assert_eq!(told["arms"], serde_json::json!(["roles", "solo"]));
    for arm in [0, 1] {
        assert_eq!(told["measures"][arm]["runs"], 3);
        assert!(told["measures"][arm]["correct"].is_u64() && told["measures"][arm]["words_to_read"].is_u64());
    }
    assert_eq!(told["effort"], serde_json::Value::Null, "nobody recorded minutes, and none are made up");
    let calls = table(&files, "calls.csv");
    assert_eq!(calls.len(), 3 * 8);
    let processes: std::collections::BTreeSet<_> = calls.iter().map(|row| row["process"].clone()).collect();
    assert!(processes.len() > 20, "each stage is a process of its own");
    for record in accounts.pairs().values().filter(|record| record.kind == PairKind::Procedure) {
        let [a, b, ..] = record.compared.unwrap();
        assert_eq!(a, b, "the same packet for both arms");
    }
    // What is charged: coordination by itself, and in the whole.
    let charges = table(&files, "charges.csv");
    let used = |arm: &str, charge: &str| {
        let row =
            charges.iter().find(|row| row["arm"] == arm && row["charge"] == charge && row["dimension"] == "calls");
        row.unwrap()["used"].clone()
    };
    assert_eq!([used("roles", "roles"), used("roles", "coordination"), used("roles", "all")], ["9", "3", "12"]);
    assert_eq!([used("solo", "roles"), used("solo", "coordination"), used("solo", "all")], ["12", "0", "12"]);
    let page = String::from_utf8(files["index.html"].clone()).unwrap();
    assert!(page.contains("equally resourced") && page.contains("minutes of the user"));
    // Minutes that somebody did record are read, by arm.
    let touch = |arm: &str, minutes: u64| {
        format!(
            "{{\"obligation\":\"supported_continuation-0001\",\"arm\":\"{arm}\",\"need\":\"owners_judgment\",\"review_minutes\":{minutes}}}\n"
        )
    };
    std::fs::write(study.revision(1).join("effort.jsonl"), touch("roles", 6) + &touch("solo", 9)).unwrap();
    let files = closer_eval::report::make(&study.revision(1)).unwrap();
    let told: serde_json::Value = serde_json::from_slice(&files["procedures.json"]).unwrap();
    assert_eq!(told["effort"][0]["necessary"]["review_minutes"]["known"], 6);
    assert_eq!(told["offering"][0]["arms"], serde_json::json!([6, 9]));
}

#[test]
fn a_case_tells_what_the_user_had_already_and_what_handing_on_took() {
    shows!("CP-11-12");
    let mut suite = suite(&[Family::SupportedContinuation], 3);
    for (index, has) in [Some(true), Some(false), None].into_iter().enumerate() {
        suite.truths[index].user_has_it = has;
        suite.items[index].truth_digest = digest_of(&suite.truths[index]).unwrap();
    }
    let study = Study::new(&suite, &plan("kind = \"synthetic\"\nfollows = 100\nguesses = 0\n", &matched()));
    let (_, files) = study.reported();
    let rows = table(&files, "cases.csv");
    assert_eq!(rows.len(), 6);
    for row in &rows {
        let (had, gained) = match row["pair"].split('.').next().unwrap() {
            "supported_continuation-0001" => ("true", "false"),
            "supported_continuation-0002" => ("false", "true"),
            _ => ("unknown", "false"),
        };
        assert_eq!(
            (row["user_had_it"].as_str(), row["gained"].as_str(), row["score_percent"].as_str()),
            (had, gained, "100")
        );
        let coordination = if row["arm"] == "roles" { "1" } else { "0" };
        assert_eq!(row["coordination_calls"], coordination, "{row:?}");
    }
    assert_eq!(told(&files)["gained"], serde_json::json!([1, 1]));
}

#[test]
fn procedures_that_do_not_match_are_refused_before_anything_is_asked() {
    let one = format!("resources = {VECTOR}");
    for (solo, reason) in [
        (String::new(), NotComparable::NoVector),
        (format!("{one}\nrule = {{ id = \"rule.other\", version = 1 }}"), NotComparable::Rule),
        (format!("{one}\ntools = [\"search\"]"), NotComparable::Tools),
        (format!("{one}\nevidence = [\"one page more\"]"), NotComparable::Evidence),
        (format!("{one}\nparticipant = {{ kind = \"floor\", floor = \"do_nothing\" }}"), NotComparable::ModelAccess),
        (one.replace("400", "100"), NotComparable::NoPrimaryBudget),
    ] {
        let study = Study::new(&suite(&[Family::SupportedContinuation], 1), &plan(FOLLOWS, &arms(&one, &solo)));
        study.freeze();
        let error = study.run().expect_err("they do not match");
        let RunError::NotComparable(reasons) = &error else { panic!("{error}") };
        assert_eq!(*reasons, vec![reason]);
        assert!(study.accounts(&study.revision(1)).pairs().is_empty());
    }
    // With a budget that comes first they may be compared, and nothing is called equal.
    let fewer = one.replace("400", "100");
    let text =
        plan(FOLLOWS, &arms(&one, &fewer).replace("[procedures]\n", "[procedures]\nprimary = \"input_tokens\"\n"));
    let study = Study::new(&suite(&[Family::SupportedContinuation], 1), &text);
    let (_, files) = study.reported();
    let label = told(&files)["comparison"]["Ok"]["label"].as_str().unwrap().to_owned();
    assert_eq!(label, "matched by input_tokens first; not matched: calls");
}

#[test]
fn without_a_mechanism_that_was_tested_by_this_build_no_procedures_are_compared() {
    let broken = "kind = \"command\"\ncommand = [\"/bin/false\"]\n";
    let study = Study::new(&suite(&[Family::SupportedContinuation], 2), &plan(broken, &matched()));
    let (_, files) = study.reported();
    assert_eq!(of_procedures(&study), 0);
    assert_eq!(told(&files)["comparison"]["Err"], serde_json::json!(["no_mechanism_test"]));
    assert!(String::from_utf8(files["index.html"].clone()).unwrap().contains("Not compared: no_mechanism_test"));

    // Another build does not go on where the mechanism was tested by the first.
    let study = Study::new(&suite(&[Family::SupportedContinuation], 2), &plan(FOLLOWS, &matched()));
    study.freeze();
    study.run().unwrap();
    let path = study.revision(1).join("accounts.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let tested = text.lines().position(|line| line.contains("\"entry\":\"tested\"")).unwrap();
    let kept: Vec<&str> = text.lines().take(tested + 1).collect();
    std::fs::write(&path, kept.join("\n") + "\n").unwrap();
    let own = vec![env!("CARGO_BIN_EXE_closer-participant").into()];
    let build = closer_contracts::Digest::of(b"another build");
    runner::run(&study.plan(), &Options { own, build, cost_micros_max: None }, &|_| {}).unwrap();
    assert_eq!(of_procedures(&study), 0);
}

#[test]
fn a_stage_that_has_answered_is_not_asked_again_after_a_kill() {
    let text = plan(FOLLOWS, &matched()).replace("concurrency = 2", "concurrency = 1");
    let study = Study::new(&suite(&[Family::SupportedContinuation], 2), &text);
    let (_, undisturbed) = study.reported();
    let path = study.revision(1).join("accounts.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let calls: Vec<usize> =
        whole.lines().enumerate().filter(|(_, line)| line.contains("\"entry\":\"called\"")).map(|(at, _)| at).collect();
    for cut in [calls[1], calls[6], calls[9]] {
        let kept: Vec<&str> = whole.lines().take(cut + 1).collect();
        std::fs::write(&path, kept.join("\n") + "\n").unwrap();
        study.run().unwrap();
        let files = study.report(&study.revision(1));
        let answered = table(&files, "calls.csv").iter().filter(|row| row["end"] == "counted").count();
        assert_eq!(answered, 2 * 8, "every stage answered once");
        for (name, bytes) in &undisturbed {
            if !closer_eval::report::VOLATILE.contains(&name.as_str()) {
                assert_eq!(&files[name], bytes, "{name} after a cut at line {cut}");
            }
        }
    }
}

#[test]
fn what_the_finalizer_stops_for_both_arms_is_credited_to_neither() {
    let asks = answers(&[proposal("service-a")], ",\\\"usage\\\":{\\\"calls\\\":1}");
    let study = Study::new(&suite(&[Family::ChangedGrant], 2), &plan(&asks, &matched()));
    let (_, files) = study.reported();
    let protection = &told(&files)["protection"];
    for arm in [0, 1] {
        assert_eq!(protection[arm], serde_json::json!({ "arm": 0, "finalizer": 2, "failed": 0 }));
    }
    // Tokens and money that the program does not tell stay unknown, coordination included.
    let charges = table(&files, "charges.csv");
    let all = charges.iter().find(|row| row["charge"] == "all" && row["dimension"] == "input_tokens").unwrap();
    assert!(all["used"].contains("incomplete"), "{all:?}");
}

#[test]
fn an_arm_that_has_used_up_its_own_vector_is_stopped_and_the_other_is_not() {
    let few = VECTOR.replace("400", "6");
    let text = arms(&format!("resources = {few}"), &format!("resources = {VECTOR}"));
    let text = text.replace("[procedures]\n", "[procedures]\nprimary = \"calls\"\n");
    let text = plan("kind = \"floor\"\nfloor = \"do_nothing\"\n", &text).replace("concurrency = 2", "concurrency = 1");
    let study = Study::new(&suite(&[Family::SupportedContinuation], 3), &text);
    let (accounts, files) = study.reported();
    let stopped = |record: &&closer_eval::accounts::PairRecord| record.fate == Fate::Invalid(Cause::ResourcesUsedUp);
    assert_eq!(accounts.pairs().values().filter(stopped).count(), 2, "six calls are one case and a half");
    let flow = &figures(&files)["kinds"]["procedure"]["flow"];
    assert_eq!((&flow["answered_a"], &flow["answered_b"]), (&1.into(), &3.into()));
}

#[test]
fn influence_is_claimed_from_valid_pairs_alone() {
    shows!("CP-3.1-05");
    let study = Study::of(3, "kind = \"command\"\ncommand = [\"/bin/false\"]\n");
    let (_, files) = study.reported();
    assert_eq!(figures(&files)["influence"], "not_claimed");
    let page = String::from_utf8(files["index.html"].clone()).unwrap();
    assert!(page.contains("No influence of what was inherited is claimed"));
    let study = Study::of(3, "kind = \"floor\"\nfloor = \"do_nothing\"\n");
    let (_, files) = study.reported();
    assert_eq!(figures(&files)["influence"], "not_shown");
    let study = Study::of(8, "kind = \"synthetic\"\nfollows = 95\nguesses = 0\n");
    let (_, files) = study.reported();
    assert_eq!(figures(&files)["influence"], "shown");
}

#[test]
fn procedures_are_frozen_with_everything_else() {
    let study = Study::new(&suite(&[Family::SupportedContinuation], 1), &plan(FOLLOWS, &matched()));
    study.freeze();
    let text = std::fs::read_to_string(study.plan()).unwrap();
    std::fs::write(study.plan(), text.replace("Decide.", "Decide well.")).unwrap();
    assert!(matches!(study.run(), Err(RunError::NotFrozen(_))));
    let plan = Plan::read(&study.plan()).unwrap();
    assert!(plan.procedures.is_some_and(|procedures| procedures.arms[0].stages.len() == 4));
}
