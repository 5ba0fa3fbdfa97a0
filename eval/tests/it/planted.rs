//! Whatever goes wrong is in the report, under its own cause, and what else there is stays.

use crate::support::{FOLLOWS, Study, figures, plan, table};
use closer_contracts::refs::Plain;
use closer_contracts::shows;
use closer_eval::accounts::{Cause, Fate};
use closer_eval::suite::{Family, generate};
use serde_json::json;

/// The cause of one pair.
fn cause_of(study: &Study, item: &str) -> Option<Cause> {
    let accounts = study.accounts(&study.revision(1));
    let record = &accounts.pairs()[&format!("{item}.inheritance").as_str().into()];
    match record.fate {
        Fate::Invalid(cause) => Some(cause),
        Fate::Valid => None,
        Fate::Pending => panic!("{item} has no fate"),
    }
}

/// A participant that is a shell script; `$packet` holds what it was given and `$work` the id it answers to.
pub(crate) fn script(body: &str) -> String {
    let head = "packet=$(cat); work=$(printf %s \"$packet\" | sed 's/.*\"work_id\":\"\\([^\"]*\\)\".*/\\1/')";
    let script = format!("{head}; {body}");
    format!(
        "kind = \"command\"\ncommand = [\"/bin/sh\", \"-c\", '''{script}''']\nenvironment = {{ PATH = \"/usr/bin:/bin\" }}\n"
    )
}

const EMPTY: &str = r#"\"assessments\":[],\"claims\":[],\"objections\":[],\"skill_receipts\":[],\"unresolved\":[],\"work_id\":\"'$work'\""#;

pub(crate) fn proposal(address: &str) -> String {
    format!(
        r#"{{\"operation\":\"plan.change\",\"target\":{{\"type\":\"plan\",\"account\":\"account-1\",\"address\":\"{address}\"}},\"parameters\":{{\"plan\":\"basic\"}},\"expected_postcondition\":{{\"id\":\"p-o-next\",\"expectations\":[{{\"field\":\"plan\",\"comparison\":\"equals\",\"value\":\"basic\"}}]}}}}"#
    )
}

/// Writes an answer with these proposals, and with this after the result.
pub(crate) fn answers(proposals: &[String], after: &str) -> String {
    let object = format!("{{\\\"result\\\":{{\\\"action_proposals\\\":[{}],{EMPTY}}}{after}}}", proposals.join(","));
    // The shell is handed the object with its quotes plain; only the work's id is filled in by it.
    script(&format!("printf %s '{}'", object.replace("\\\"", "\"")))
}

#[test]
fn a_restated_item_makes_the_pair_invalid_before_anything_is_dispatched() {
    let study = Study::changed(2, FOLLOWS, |items| {
        let claim = items[0].claim.clone();
        items[0].inputs.insert(claim.predicate, claim.object);
        let said = format!("{} is {}", items[1].claim.predicate, items[1].claim.object.as_text().unwrap());
        items[1].inputs.insert("note".into(), Plain(json!(said)));
    });
    let (accounts, files) = study.reported();
    for record in accounts.pairs().values() {
        assert_eq!(record.fate, Fate::Invalid(Cause::Leakage));
        assert!(record.attempts.is_empty(), "nothing was dispatched");
        assert!(record.reason.as_deref().unwrap().contains("told in B"));
    }
    let flow = &figures(&files)["kinds"]["inheritance"]["flow"];
    assert_eq!((&flow["invalid"]["leakage"], &flow["valid"]), (&2.into(), &0.into()));
}

#[test]
fn a_failed_promotion_is_invalid_and_no_negative_result_and_counts_as_not_completed() {
    shows!("CP-10.1-04", "CP-10.1-25", "CP-10.1-28");
    let study = Study::changed(6, "kind = \"synthetic\"\nfollows = 100\nguesses = 0\n", |items| {
        for item in items.iter_mut().take(4) {
            item.claim.evidence.clear();
        }
    });
    let (accounts, files) = study.reported();
    let figures = figures(&files);
    let kind = &figures["kinds"]["inheritance"];
    let flow = &kind["flow"];
    assert_eq!(
        (&flow["enrolled"], &flow["valid"], &flow["invalid"]["promotion_failed"]),
        (&6.into(), &2.into(), &4.into())
    );
    let by_cause: u64 = flow["invalid"].as_object().unwrap().values().map(|number| number.as_u64().unwrap()).sum();
    assert_eq!(by_cause, 4, "the causes sum to the invalid pairs");
    // Two valid pairs, both better with the item; none counts against it.
    assert_eq!(kind["discordant"], json!([2, 0]));
    assert_eq!(kind["answers"]["Ok"]["valid"]["Ok"]["pairs"], 2);
    // Over everything enrolled the failures show: completion, and bounds that say how little is known.
    assert_eq!((&figures["completed"], &figures["failed"]), (&2.into(), &4.into()));
    let bounds = &kind["answers"]["Ok"]["bounds"];
    assert!(bounds["low"].as_f64().unwrap() < -0.4 && bounds["high"].as_f64().unwrap() > 0.8, "{bounds}");
    assert!(accounts.pairs().values().filter(|record| record.store.is_none()).count() == 4);
}

#[test]
fn task_commit_and_contract_failures_are_counted_apart_zero_included() {
    shows!("CP-10.1-26", "CP-INV-10");
    let study = Study::changed(3, &script("exit 3"), |items| items[0].claim.evidence.clear());
    let (_, files) = study.reported();
    let failures = &figures(&files)["kinds"]["inheritance"]["flow"]["failures"];
    assert_eq!((&failures["task"], &failures["commit"], &failures["contract"]), (&2.into(), &1.into(), &0.into()));
    let rows = table(&files, "pairs.csv");
    assert_eq!(rows.len(), 3, "each enrolled case once");
    assert!(rows.iter().all(|row| row["fate"] == "invalid" && !row["cause"].is_empty()), "{rows:?}");
    let attempts = table(&files, "attempts.csv");
    assert!(attempts.iter().all(|row| row["end"] == "no_answer" && row["reason"].contains("exit status: 3")));
}

#[test]
fn a_store_that_was_changed_after_the_commit_is_found_and_nothing_is_asked() {
    let study = Study::of(2, FOLLOWS);
    study.freeze();
    study.run().unwrap();
    let revision = study.revision(1);
    // As far as the first pair's commit, then its store is exchanged for the other's.
    let path = revision.join("accounts.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let committed = text.lines().position(|line| line.contains("\"entry\":\"committed\"")).unwrap();
    let pair = text.lines().nth(committed).unwrap().split("\"pair\":\"").nth(1).unwrap().split('"').next().unwrap();
    let kept: Vec<&str> = text.lines().take(committed + 1).collect();
    std::fs::write(&path, kept.join("\n") + "\n").unwrap();
    let other = if pair.contains("0001") { pair.replace("0001", "0002") } else { pair.replace("0002", "0001") };
    let (from, to) = (revision.join("stores").join(other), revision.join("stores").join(pair));
    std::fs::remove_dir_all(&to).unwrap();
    closer_eval::store::copy(&from, &to).unwrap();
    study.run().unwrap();
    assert_eq!(cause_of(&study, pair.trim_end_matches(".inheritance")), Some(Cause::FixtureTampered));
    let accounts = study.accounts(&revision);
    assert!(accounts.pairs()[&pair.into()].attempts.is_empty());
}

#[test]
fn usage_that_is_not_told_stays_unknown_in_every_total() {
    let study = Study::of(2, &answers(&[], ""));
    let (accounts, files) = study.reported();
    assert!(accounts.pairs().values().all(|record| record.fate == Fate::Valid), "{:?}", accounts.pairs());
    assert_eq!(figures(&files)["measures"]["a"]["usage_missing"], 2);
    for row in table(&files, "resources.csv") {
        let metered = ["wall_ms", "concurrency"].contains(&row["dimension"].as_str());
        assert!(metered || row["used"] == "unknown", "{row:?}");
    }
}

#[test]
fn an_answer_for_the_wrong_target_is_told_scores_nothing_and_takes_no_effect() {
    let study = Study::of(2, &answers(&[proposal("service-b")], ",\\\"usage\\\":{\\\"calls\\\":1}"));
    let (_, files) = study.reported();
    let rows = table(&files, "worlds.csv");
    assert_eq!(rows.len(), 4, "{:?}", table(&files, "attempts.csv"));
    for row in rows {
        let is = (row["wrong_target"].as_str(), row["score_percent"].as_str(), row["effects"].as_str());
        assert_eq!(is, ("true", "0", "0"), "{row:?}");
    }
    assert_eq!(figures(&files)["measures"]["a"]["wrong_target"], 2);
}

#[test]
fn two_steps_where_one_was_asked_for_are_a_contract_failure_of_their_own() {
    let study = Study::of(1, &answers(&[proposal("service-a"), proposal("service-a")], ""));
    study.reported();
    assert_eq!(cause_of(&study, "supported_continuation-0001"), Some(Cause::Cardinality));
}

#[test]
fn a_list_of_answers_is_no_answer_however_many_are_in_it() {
    shows!("CP-10.4-01");
    let two = answers(&[proposal("service-a"), proposal("service-a")], "");
    for participant in [two, script("echo '[]'"), script("echo '{\"result\":[]}'"), script("echo '[{},{}]'")] {
        let study = Study::of(1, &participant);
        let (_, files) = study.reported();
        assert_eq!(cause_of(&study, "supported_continuation-0001"), Some(Cause::Cardinality), "{participant}");
        let flow = &figures(&files)["kinds"]["inheritance"]["flow"];
        assert_eq!((&flow["invalid"]["cardinality"], &flow["failures"]["contract"]), (&1.into(), &1.into()));
    }
}

#[test]
fn malformed_slow_and_talkative_participants_are_told_apart() {
    for (participant, cause) in [
        (script("echo no json"), Cause::Malformed),
        (answers(&[], ",\\\"more\\\":1"), Cause::Malformed),
        (script("sleep 30") + "deadline_ms = 200\n", Cause::TimedOut),
        (script("head -c 2000000 /dev/zero"), Cause::Malformed),
        ("kind = \"command\"\ncommand = [\"/nowhere/at-all\"]\n".to_owned(), Cause::NoAnswer),
    ] {
        let study = Study::of(1, &participant);
        study.freeze();
        study.run().unwrap();
        assert_eq!(cause_of(&study, "supported_continuation-0001"), Some(cause), "{participant}");
    }
}

#[test]
fn every_attempt_is_kept_and_made_again_only_as_often_as_was_frozen() {
    let suite = generate(&[Family::SupportedContinuation], 1, 3).unwrap();
    let more = "controls = []\nretry = { attempts_max = 3 }";
    let study = Study::new(&suite, &plan(&script("exit 1"), more));
    let (_, files) = study.reported();
    assert_eq!(table(&files, "attempts.csv").len(), 6);
    // A malformed answer is an answer: it is not asked for again.
    let study = Study::new(&suite, &plan(&script("echo no json"), more));
    let (_, files) = study.reported();
    assert_eq!(table(&files, "attempts.csv").len(), 2);
}

#[test]
fn an_arm_that_has_used_up_its_vector_is_stopped_and_counted() {
    shows!("CP-10.1-12");
    let suite = generate(&[Family::SupportedContinuation], 3, 3).unwrap();
    let capped = plan("kind = \"floor\"\nfloor = \"do_nothing\"\n", "controls = []")
        .replace("calls = 1000", "calls = 2")
        .replace("concurrency = 2", "concurrency = 1");
    let study = Study::new(&suite, &capped);
    let (_, files) = study.reported();
    let flow = &figures(&files)["kinds"]["inheritance"]["flow"];
    assert_eq!((&flow["valid"], &flow["invalid"]["resources_used_up"]), (&2.into(), &1.into()));
}

#[test]
fn a_promotion_without_support_and_a_needless_probe_are_counted() {
    shows!("CP-10.3-02", "CP-10.3-07");
    let claim = "{\\\"proposition\\\":{\\\"proposition_id\\\":\\\"p-o-next\\\",\\\"subject\\\":\\\"s\\\",\\\"predicate\\\":\\\"q\\\",\\\"object\\\":1,\\\"scope\\\":[\\\"space\\\"]},\\\"applicability\\\":[]}";
    let claims = answers(&[], "").replace("\"claims\":[]", &format!("\"claims\":[{}]", claim.replace("\\\"", "\"")));
    let (_, files) = Study::of(2, &claims).reported();
    assert_eq!(figures(&files)["measures"]["a"]["unsupported_claims"], 2, "{:?}", table(&files, "attempts.csv"));
    let probing = answers(&[proposal("service-a").replace("plan.change", "status.read")], "");
    let study = Study::changed(2, &probing, |items| {
        for item in items {
            let mut probe = item.operations[0].clone();
            probe.operation = "status.read".into();
            probe.probe = true;
            probe.parameters = [("plan".into(), vec![Plain(json!("basic"))])].into();
            item.operations.push(probe);
        }
    });
    let (_, files) = study.reported();
    let measures = &figures(&files)["measures"];
    assert_eq!(measures["a"]["unnecessary_probes"], 2, "what was inherited is known");
    assert_eq!(measures["b"]["unnecessary_probes"], 0, "without it, looking is no waste");
}

#[test]
fn a_cap_on_money_ends_the_enrolment_before_it_and_no_pair_is_left_halfway() {
    let suite = generate(&[Family::SupportedContinuation], 8, 3).unwrap();
    let priced = answers(&[], ",\\\"usage\\\":{\\\"calls\\\":1,\\\"cost_micros\\\":10}");
    let study = Study::new(&suite, &plan(&priced, "controls = []").replace("concurrency = 2", "concurrency = 1"));
    study.freeze();
    let ran = study.run_with(Some(50)).unwrap();
    // A pair takes 20: two fit below 50, and a third would pass it.
    assert_eq!((ran.planned, ran.enrolled, ran.not_enrolled), (8, 2, 6));
    let files = study.report(&study.revision(1));
    assert_eq!(figures(&files)["kinds"]["inheritance"]["flow"]["valid"], 2);
}

#[test]
fn a_plan_reaches_for_no_file_outside_its_folder() {
    let study = Study::of(1, FOLLOWS);
    let text = std::fs::read_to_string(study.plan()).unwrap();
    for outside in ["../items.jsonl", "/etc/passwd"] {
        std::fs::write(study.plan(), text.replace("\"items.jsonl\"", &format!("\"{outside}\""))).unwrap();
        let told = closer_eval::plan::Plan::read(&study.plan()).expect_err("it lies outside").to_string();
        assert!(told.contains("below"), "{told}");
    }
}
