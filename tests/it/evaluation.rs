//! Studies over the binary: what the tour types, and runs that are killed.

use crate::support::CLOSER;
use closer_contracts::shows;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn closer(folder: &Path, arguments: &[&str]) -> std::process::Output {
    Command::new(CLOSER).args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// The commands of the tour, as the page has them: the indented lines that begin with `closer`.
fn tour() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/evaluation.md");
    let page = fs::read_to_string(page).unwrap();
    let tour = page.split("## Ten minutes").nth(1).expect("the tour").split("\n## ").next().unwrap();
    let lines = tour.lines().filter_map(|line| line.strip_prefix("    closer "));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_tour_does_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let commands = tour();
    assert!(commands.len() >= 6, "{commands:?}");
    for command in &commands {
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let output = closer(folder.path(), &arguments);
        let said = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "closer {command}: {said:?}");
    }
    assert!(folder.path().join("my-study/study-revision-1/report/index.html").exists());
}

/// What a report has beside what chance touches.
fn steady(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = closer_eval::report::make(&folder.join("s/study-revision-1")).unwrap();
    files.retain(|name, _| !closer_eval::report::VOLATILE.contains(&name.as_str()));
    files
}

#[test]
fn a_run_that_is_killed_ten_times_comes_to_the_figures_of_an_undisturbed_one() {
    let studies = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for folder in &studies {
        let arguments = ["eval", "suite", "s", "--family", "supported_continuation", "--items", "12"];
        assert!(closer(folder.path(), &arguments).status.success());
        assert!(closer(folder.path(), &["eval", "freeze", "s/plan.toml"]).status.success());
    }
    let [undisturbed, disturbed] = &studies;
    let run = ["eval", "run", "s/plan.toml"];
    assert!(closer(undisturbed.path(), &run).status.success());
    let mut killed = 0;
    for time in 0..10_u64 {
        let mut command = Command::new(CLOSER);
        command
            .args(run)
            .current_dir(disturbed.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(60 + 37 * time));
        killed += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(killed > 0, "it was never under way");
    let output = closer(disturbed.path(), &run);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(steady(disturbed.path()), steady(undisturbed.path()));
}

#[test]
fn a_plan_that_changed_is_refused_and_a_report_that_was_changed_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["eval", "suite", "s", "--family", "changed_grant", "--items", "1"];
    assert!(closer(folder.path(), &arguments).status.success());
    let run = ["eval", "run", "s/plan.toml"];
    assert_eq!(closer(folder.path(), &run).status.code(), Some(3), "nothing is frozen");
    assert!(closer(folder.path(), &["eval", "freeze", "s/plan.toml"]).status.success());
    assert!(closer(folder.path(), &run).status.success());
    let revision = folder.path().join("s/study-revision-1");
    let verify = ["eval", "verify", "s/study-revision-1"];
    assert!(closer(folder.path(), &verify).status.success());
    fs::write(revision.join("report/worlds.csv"), "pair\n").unwrap();
    let output = closer(folder.path(), &verify);
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&output.stderr).contains("worlds.csv"), "{output:?}");
    let plan = folder.path().join("s/plan.toml");
    fs::write(&plan, fs::read_to_string(&plan).unwrap().replace("seed = 1", "seed = 2")).unwrap();
    let output = closer(folder.path(), &run);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("model_controls"), "{output:?}");
}

/// The participant in plain Python does what the item says and keeps the gap open without it: 1 against 0.5 in every pair.
#[test]
fn a_plain_python_function_is_a_participant() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: the command `python3` is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["eval", "suite", "s", "--family", "supported_continuation", "--items", "3"];
    assert!(closer(folder.path(), &arguments).status.success());
    let answer = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/evaluation/answer.py");
    fs::copy(answer, folder.path().join("s/answer.py")).unwrap();
    let plan = folder.path().join("s/plan.toml");
    let path = std::env::var("PATH").unwrap();
    let home = std::env::var("HOME").unwrap_or_default();
    let command = format!(
        "kind = \"command\"\ncommand = [\"python3\", \"answer.py\"]\nfiles = [\"answer.py\"]\n\
         environment = {{ PATH = '{path}', HOME = '{home}' }}"
    );
    let text = fs::read_to_string(&plan).unwrap();
    let text = text.replace("kind = \"synthetic\"\nfollows = 90\nguesses = 30", &command);
    assert!(text.contains("answer.py\"]\nfiles"));
    fs::write(&plan, text).unwrap();
    assert!(closer(folder.path(), &["eval", "freeze", "s/plan.toml"]).status.success());
    let output = closer(folder.path(), &["eval", "run", "s/plan.toml"]);
    assert!(output.status.success(), "{output:?}");
    let files = closer_eval::report::make(&folder.path().join("s/study-revision-1")).unwrap();
    let figures: serde_json::Value = serde_json::from_slice(&files["figures.json"]).unwrap();
    let inheritance = &figures["kinds"]["inheritance"];
    assert_eq!(inheritance["flow"]["valid"], 3, "{}", inheritance["flow"]);
    assert_eq!(inheritance["answers"]["Ok"]["valid"]["Ok"]["value"], 0.5);
    // What the participant is made of is frozen with it.
    fs::write(folder.path().join("s/answer.py"), "pass\n").unwrap();
    assert_eq!(closer(folder.path(), &["eval", "run", "s/plan.toml"]).status.code(), Some(3));
}

/// A study of some pairs, run; gives the folder of its revision.
fn study(folder: &Path, items: &str) -> std::path::PathBuf {
    let suite = ["eval", "suite", "s", "--family", "supported_continuation", "--items", items];
    for arguments in [&suite[..], &["eval", "freeze", "s/plan.toml"], &["eval", "run", "s/plan.toml"]] {
        let output = closer(folder, arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    folder.join("s/study-revision-1")
}

/// `CLOSER_NOTEBOOK_PYTHON` names an interpreter with pandas and pyarrow; `cargo xtask verify --with-notebook` makes one.
#[test]
fn the_notebook_makes_the_headline_table_again_from_the_parquet_files() {
    let Some(python) = std::env::var_os("CLOSER_NOTEBOOK_PYTHON") else {
        eprintln!("skipped: CLOSER_NOTEBOOK_PYTHON names no interpreter");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let report = study(folder.path(), "12").join("report");
    let runs = "import json, sys\nfor cell in json.load(open(sys.argv[1]))['cells']:\n    \
                if cell['cell_type'] == 'code':\n        exec(''.join(cell['source']), globals())";
    let notebook = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/evaluation/headline.ipynb");
    let output = Command::new(python).args(["-c", runs]).arg(notebook).env("REPORT", &report).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table: serde_json::Value = serde_json::from_slice(output.stdout.trim_ascii()).unwrap();
    let figures: serde_json::Value = serde_json::from_slice(&fs::read(report.join("figures.json")).unwrap()).unwrap();
    let kinds = figures["kinds"].as_object().unwrap();
    assert_eq!(table.as_object().unwrap().len(), kinds.len());
    for (kind, of) in kinds {
        let (row, answers) = (&table[kind], &of["answers"]["Ok"]);
        for (name, figure) in [
            ("valid_pairs", &answers["valid"]["Ok"]["value"]),
            ("all_enrolled", &answers["all_enrolled"]["Ok"]["value"]),
            ("bounds_low", &answers["bounds"]["low"]),
            ("bounds_high", &answers["bounds"]["high"]),
        ] {
            let (made, told) = (row[name].as_f64().unwrap(), figure.as_f64().unwrap());
            assert!((made - told).abs() < 1e-5, "{kind}, {name}: {made} and {told}");
        }
    }
}

#[test]
fn a_redacted_bundle_tells_nothing_that_was_written_and_every_figure_can_be_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let revision = study(folder.path(), "4");
    let made = |arguments: &[&str]| closer(folder.path(), arguments);
    assert!(made(&["eval", "bundle", "s/study-revision-1", "whole"]).status.success());
    assert!(made(&["eval", "verify", "whole"]).status.success());
    assert!(made(&["eval", "bundle", "s/study-revision-1", "shared", "--redact"]).status.success());
    assert!(made(&["eval", "verify", "shared", "--against", "s/study-revision-1"]).status.success());
    // The figures are those of the whole; nothing that an item, a packet or an answer says is left.
    let shared = folder.path().join("shared");
    let same = |name: &str| {
        assert_eq!(
            fs::read(shared.join("report").join(name)).unwrap(),
            fs::read(revision.join("report").join(name)).unwrap()
        );
    };
    ["figures.json", "pairs.csv", "pairs.parquet", "questions.csv", "forest.svg", "flow.svg"]
        .into_iter()
        .for_each(same);
    let item = fs::read_to_string(folder.path().join("s/items.jsonl")).unwrap();
    let item: serde_json::Value = serde_json::from_str(item.lines().next().unwrap()).unwrap();
    let secrets =
        [item["question"].as_str().unwrap(), item["claim"]["predicate"].as_str().unwrap(), "service-a", "plan.change"];
    let mut left = vec![shared.clone()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        for secret in secrets {
            assert!(!text.contains(secret), "{} tells `{secret}`", path.display());
        }
    }
    // A score, a digest or a line that was changed is found.
    for (file, from, to) in [
        ("redacted.json", "\"score\": 100", "\"score\": 99"),
        ("digests.jsonl", "sha256:", "sha256:0"),
        ("accounts.jsonl", "\"entry\":\"settled\"", "\"entry\":\"sealed\""),
    ] {
        let path = shared.join(file);
        let kept = fs::read_to_string(&path).unwrap();
        assert!(kept.contains(from), "{file}");
        fs::write(&path, kept.replacen(from, to, 1)).unwrap();
        assert!(!made(&["eval", "verify", "shared"]).status.success(), "{file}");
        fs::write(&path, kept).unwrap();
    }
    assert!(made(&["eval", "verify", "shared"]).status.success());
}

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
        .unwrap()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn the_pages_claim_neither_novelty_nor_assurance_and_say_what_is_open() {
    shows!("CP-0-13", "CP-10.4-03");
    let readme = page("README.md");
    assert!(readme.contains("No claim is made of novelty or of assurance in production"));
    assert!(
        readme
            .contains("the benefit of the whole, compared with simpler workflows of equal resources, is not validated")
    );
    let evaluation = page("docs/evaluation.md");
    assert!(evaluation.contains("was not replicated by anybody independent"));
    for open in
        ["the benefit of the integrated whole", "learning that lasts", "an advantage of three roles", "economic return"]
    {
        assert!(evaluation.contains(open), "{open}");
    }
    let claims = [
        "production-ready",
        "production ready",
        "battle-tested",
        "first of its kind",
        "state of the art",
        "proven benefit",
    ];
    for name in
        ["README.md", "ARCHITECTURE.md", "docs/evaluation.md", "docs/deployment.md", "docs/cli.md", "CHANGELOG.md"]
    {
        let text = page(name).to_lowercase();
        assert!(!claims.iter().any(|claim| text.contains(claim)), "{name}");
    }
}

/// The committed report of a small real model, behind a real endpoint: whatever it says, it can be made again from what lies
/// beside it, and it says of itself what it is evidence of.
#[test]
fn the_committed_report_of_a_small_model_is_made_again_and_says_what_it_shows() {
    let revision = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/evaluation/smollm2");
    closer_eval::report::verify(&revision).unwrap();
    let page = fs::read_to_string(revision.join("report/index.html")).unwrap();
    let (_, interpreted) = page.split_once("<h2>Interpretations</h2>").unwrap();
    assert!(interpreted.contains("evidence of the wire path and not of benefit"));
    let files = closer_eval::report::make(&revision).unwrap();
    let figures: serde_json::Value = serde_json::from_slice(&files["figures.json"]).unwrap();
    assert!(figures["kinds"]["inheritance"]["flow"]["enrolled"].as_u64() >= Some(40));
}
