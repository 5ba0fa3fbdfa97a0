//! A real language model in thirty conferences, where `cargo xtask verify --with-model` has started one. It cannot judge, and
//! what it says is planted to be wrong: this shows the path, the counting and the guards, and no benefit.

use crate::support::Place;
use closer_actors::replay;
use closer_protocol::entry::Entry;
use closer_store::Log;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How many conferences.
const CONFERENCES: usize = 30;
/// How many answers with well-formed claims make the run show anything.
const CLAIMS_MIN: usize = 20;

const HEAD: &str = r#"
[run]
until = "idle"

[[prepare]]
program = "sh"
arguments = ["-c", "mkdir -p var/pages; for i in $(seq 0 29); do echo 'price: 9' > var/pages/page-$i; done"]
creates = "var/pages/page-29"

[profile]
user = "user.owner"
scope = ["pages"]
limits = { fan_out_max = 1, episode_ms_max = 600_000 }

[profile.answers]
q1 = "Sessions of this machine."
q2 = "The owner alone."
q3 = "A changed page activates work."
q4 = "What the page says when it is read."
q5 = "Guards of one append."
q6 = "The members get everything."
q7 = "By the named policies."
q8 = "Everything else goes on."
q9 = "Some tokens each."
q10 = "A claim that no page shows."

[[source]]
source_id = "source.pages"
change_kinds = ["page_changed"]

[[readback_method]]
method = "page.read"
source = "source.pages"
target_type = "page"
contract = { kind = "file", root = "./var/pages", account = "local" }

[[rule]]
rule_id = "rule.sufficiency"

[rule.body]
rule = "sufficiency"
distinct_sources_min = 1
accepts_unknown_target_version = true
observation_types = []

[rule.body.shown]
targets = { type = "page", account = "local", address = "*" }
expectations = [{ field = "content", comparison = "equals", value = "export: kept\n" }]

[[declaration]]
declaration_id = "declaration.pages"
goal = { goal_id = "goal.pages", text = "Know which plans keep export." }
success_criteria = ["Every page is known."]

[[coalition]]
coalition_id = "coalition.inquiry"
members = [
    { actor = "agent.remainder", role = "remainder" },
    { actor = "agent.investigator", role = "investigator", worst_case = { tokens = 8000 } },
    { actor = "agent.regulator", role = "regulator" },
]

# Three positions and no moves: a small model is slow.
[coalition.inquiry]
stop = { rounds_max = 1, calls_max = 3, time_ms_max = 500_000 }
seal_within_ms = 400_000

[[participant]]
identity = "agent.remainder"
kind = "scripted"
answers = [{}]

[[participant]]
identity = "agent.regulator"
kind = "scripted"
answers = [{}]

[[participant]]
identity = "agent.investigator"
kind = "model"
endpoint = "ENDPOINT"
model = "small"
timeout_ms = 300_000
tokens_max = 400
roles.investigator = { lists = ["claims", "assessments"], items_max = 1 }
"#;

fn deployment(endpoint: &str) -> String {
    let mut text = HEAD.replace("ENDPOINT", endpoint);
    for member in ["remainder", "investigator", "regulator"] {
        writeln!(
            text,
            "\n[[identity]]\nactor_id = \"agent.{member}\"\nkind = \"producer\"\nroles = [\"participant\"]\n\n\
             [[profile.disclosure_rules]]\npurpose = \"work\"\nrecipient = \"agent.{member}\"\n\
             categories = [\"obligation\", \"claim\", \"constraint\", \"grant\", \"evidence\", \"position\"]\n\
             permitted_use = [\"answer this work\"]"
        )
        .unwrap();
    }
    for number in 0..CONFERENCES {
        writeln!(
            text,
            "\n[[obligation]]\nobligation_id = \"obligation.{number}\"\ndeclaration = \"declaration.pages\"\n\
             gap = {{ text = \"Does the plan on the page keep export?\", propositions = [\"export-{number}\"] }}\n\
             resolution_conditions = [{{ id = \"condition.{number}\", proposition = \"export-{number}\" }}]\n\n\
             [[obligation.dependencies]]\ndependency_id = \"dependency.{number}\"\n\
             watch = {{ on = \"entity\", entity_ref = \"page.{number}\", change_kinds = [\"page_changed\"] }}\n\n\
             [[reentry]]\nreentry_id = \"reentry.{number}\"\nobligation_id = \"obligation.{number}\"\n\
             predicate = {{ operator = \"TimeReached\", at = \"now+14d\" }}\n\n\
             [[observation]]\nmethod = \"page.read\"\nobligation_id = \"obligation.{number}\"\n\
             target = {{ type = \"page\", account = \"local\", address = \"page-{number}\" }}\n\
             event = {{ source_id = \"source.pages\", entity_ref = \"page.{number}\", change_kind = \"page_changed\" }}"
        )
        .unwrap();
    }
    text
}

#[test]
fn thirty_conferences_with_a_real_model_count_every_answer_and_accept_nothing_that_no_page_shows() {
    let Ok(endpoint) = std::env::var("CLOSER_MODEL_ENDPOINT") else {
        eprintln!("skipped: no model; `cargo xtask verify --with-model` starts one");
        return;
    };
    let place = Place::with(&deployment(&endpoint));
    place.run(&[]).expect(0);
    let log = Log::open(&place.store(), None).unwrap();
    let view = replay(&log).unwrap();
    let investigator = "agent.investigator".into();
    let attempted = view.issued_to.values().filter(|actor| **actor == investigator).count();
    let answers: Vec<_> =
        view.results.values().filter(|result| result.payload.envelope().producer.actor_id == investigator).collect();
    let claiming = answers.iter().filter(|result| !result.body.claims.is_empty()).count();
    let failed = view.failures.get(&investigator).copied().unwrap_or_default();
    let promoted = view.state.items(closer_contracts::item::ItemKind::Claim).count();
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    log.replay(closer_contracts::record::Cursor(1), &mut |_, record| {
        if let Ok(Entry::Refusal(refusal)) = Entry::read(record) {
            *refused.entry(refusal.code.to_string()).or_default() += 1;
        }
    })
    .unwrap();
    let tokens: u64 = view
        .ledger
        .balance(&closer_protocol::ledger::deployment_budget())
        .iter()
        .find(|(name, ..)| *name == "tokens")
        .map_or(0, |(_, used, ..)| *used);
    let concluded = view.conferences.rounds().filter(|round| round.report.is_some()).count();
    println!(
        "model: {concluded} conferences concluded; attempted {attempted}, well-formed {}, with claims {claiming}, failed {failed}, \
         promoted {promoted}, refused by code {refused:?}, {tokens} tokens booked",
        answers.len()
    );
    if claiming < CLAIMS_MIN {
        println!("model: fewer than {CLAIMS_MIN} answers hold well-formed claims, so this line is not shown");
    }
    assert_eq!(concluded, CONFERENCES);
    assert_eq!(attempted, CONFERENCES);
    assert_eq!(answers.len() as u64 + failed, attempted as u64, "every answer is a result or a counted failure");
    assert_eq!(promoted, 0, "no page shows what is claimed");
}
