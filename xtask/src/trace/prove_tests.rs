use std::path::PathBuf;

use super::*;
use crate::source;

fn claim(row: &str, mark: &str) -> Claim {
    Claim { row: row.into(), mark: mark.into(), runners: [Runner::Scenario { name: "case".into() }].into() }
}

fn chosen(rows: &[&str], sample: Option<usize>) -> Chosen {
    Chosen { rows: rows.iter().map(|row| (*row).to_owned()).collect(), sample, all: false }
}

fn rows(claims: &[Claim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.row.as_str()).collect()
}

#[test]
fn a_sample_depends_on_the_commit_and_on_nothing_else() {
    let all = || (10..60).map(|n| claim(&format!("CP-1-{n}"), "m")).collect::<Vec<_>>();
    let first = choose(all(), &chosen(&[], Some(5)), "c1").expect("sample");
    let again = choose(all(), &chosen(&[], Some(5)), "c1").expect("sample");
    let other = choose(all(), &chosen(&[], Some(5)), "c2").expect("sample");
    assert_eq!(rows(&first).len(), 5);
    assert_eq!(rows(&first), rows(&again));
    assert_ne!(rows(&first), rows(&other));
}

#[test]
fn named_rows_are_taken_whole_and_an_unshown_one_is_an_error() {
    let all = || vec![claim("CP-1-01", "a"), claim("CP-1-01", "b"), claim("CP-1-02", "a")];
    assert_eq!(rows(&choose(all(), &chosen(&["CP-1-01"], None), "c").expect("rows")), ["CP-1-01", "CP-1-01"]);
    assert!(choose(all(), &chosen(&["CP-1-03"], None), "c").is_err());
}

#[test]
fn only_red_verdicts_are_read_back_as_proved() {
    let claims = [claim("CP-1-01", "a"), claim("CP-1-02", "b")];
    let verdicts = [
        Verdict::Proved { by: Runner::Scenario { name: "case".into() }, hung: true },
        Verdict::Failed { why: "every test stays green when the branch is inverted".into() },
    ];
    assert_eq!(read_page(&render(&claims, &verdicts)), [pair("CP-1-01", "a")].into());
}

/// A workspace in the shape of ours, small enough to build within a test.
fn small_workspace() -> tempfile::TempDir {
    const FEATURE: &str = "[features]\nprove = [\"closer-contracts/prove\"]\n";
    let folder = tempfile::tempdir().expect("folder");
    let package = |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
    let uses = |path: &str| format!("[dependencies]\ncloser-contracts = {{ path = \"{path}\" }}\n");
    let files = [
        ("Cargo.toml", {
            let members = "[workspace]\nmembers = [\"contracts\", \"scenarios\"]\nresolver = \"3\"\n";
            format!("{members}{}{}{FEATURE}", package("closer"), uses("contracts"))
        }),
        ("src/lib.rs", GUARD.to_owned()),
        ("tests/it.rs", OUTSIDE.to_owned()),
        ("contracts/Cargo.toml", format!("{}[features]\nprove = []\n", package("closer-contracts"))),
        ("contracts/src/lib.rs", "pub mod mark;\n".to_owned()),
        ("contracts/src/mark.rs", {
            let real = crate::workspace_root().join("contracts/src/mark.rs");
            std::fs::read_to_string(real).expect("marks")
        }),
        ("scenarios/Cargo.toml", {
            format!("{}{}closer = {{ path = \"..\" }}\n", package("closer-scenarios"), uses("../contracts"))
        }),
        ("scenarios/src/lib.rs", String::new()),
        ("scenarios/tests/catalog.rs", CATALOG.to_owned()),
        ("scenarios/catalog/late.toml", "rows = [\"CP-1-04\"]\nmark = \"guard.is_late\"\n".to_owned()),
    ];
    let requirements = [
        ("closer.md", "| CP-1-01 | a | b |\n"),
        ("delegation.md", "| RW-1-01 | a |\n"),
        ("continuity.md", "| WC-001 | a |\n"),
        ("peer.md", "| PE-001 | a |\n"),
    ];
    let requirements = requirements.map(|(name, text)| (format!("docs/requirements/{name}"), text.to_owned()));
    let files = files.into_iter().map(|(name, text)| (name.to_owned(), text)).chain(requirements);
    for (name, text) in files {
        let path: PathBuf = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        std::fs::write(path, text).expect("written");
    }
    crate::cargo::must(crate::cargo::cargo(folder.path()).args(["generate-lockfile", "--offline", "--quiet"]))
        .expect("lock file");
    folder
}

const GUARD: &str = r#"
use closer_contracts::branch;
#[cfg(test)] use closer_contracts::shows;
pub fn is_late(now: u64, deadline: u64) -> bool { branch!("guard.is_late", now > deadline) }
#[test] fn shows_it() { shows!("CP-1-01"; by "guard.is_late"); assert!(is_late(2, 1)); }
#[test] fn cannot_fail() { shows!("CP-1-02"; by "guard.is_late"); let _ = is_late(2, 1); }
"#;

const OUTSIDE: &str = r#"
mod inner {
    use closer_contracts::shows;
    #[test] fn dies() { shows!("CP-1-03"; by "guard.is_late"); if !closer::is_late(2, 1) { std::process::abort() } }
    #[test] fn red_anyway() { shows!("CP-1-05"; by "guard.is_late"); assert!(!closer::is_late(2, 1)); }
}
"#;

const CATALOG: &str = r#"
#[test] fn catalog() { assert!(std::env::var("CLOSER_SCENARIO").as_deref() != Ok("late") || closer::is_late(2, 1)); }
"#;

#[test]
fn a_test_that_stays_green_under_inversion_proves_nothing() {
    let folder = small_workspace();
    let trace = Trace::read(folder.path(), &source::load(folder.path()).expect("sources")).expect("trace");
    let claims = claims(&trace);
    let verdicts = judge_all(&claims, &build::executables(folder.path()).expect("build")).expect("verdicts");
    let table: Vec<String> =
        render(&claims, &verdicts).lines().filter(|line| line.starts_with("| CP")).map(str::to_owned).collect();
    assert_eq!(
        table,
        [
            "| CP-1-01 | `guard.is_late` | red: closer shows_it |",
            "| CP-1-02 | `guard.is_late` | NOT PROVED: every test stays green when the branch is inverted |",
            "| CP-1-03 | `guard.is_late` | red: closer inner::dies |",
            "| CP-1-04 | `guard.is_late` | red: scenario late |",
            "| CP-1-05 | `guard.is_late` | NOT PROVED: closer inner::red_anyway is red as it is |",
        ]
    );
}
