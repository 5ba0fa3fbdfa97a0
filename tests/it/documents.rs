//! What the project's pages say where the specification asks for it to be said.

use closer_contracts::shows;
use std::fs;

fn page(path: &str) -> String {
    let whole = fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    // As people read it: across the ends of lines.
    whole.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn says(path: &str, texts: &[&str]) {
    let page = page(path);
    for text in texts {
        assert!(page.contains(text), "{path} does not say `{text}`");
    }
}

#[test]
fn four_areas_are_flagged_as_awaiting_human_review() {
    shows!("CP-D-11");
    let areas = [
        "emergency authority and its abuse (§7.2)",
        "remediation after an over-disclosure (§4.3)",
        "the exact contracts (Appendix C)",
        "the tradeoffs of evaluation (§10)",
    ];
    says("docs/limits.md", &areas);
}

#[test]
fn the_limits_that_receipts_do_not_resolve_are_listed() {
    shows!("CP-12-01");
    let limits = [
        "A shared error of models",
        "Misuse of valid sources",
        "Bad inference in good form",
        "Exceptions lost in distillation",
        "Stale catalogues",
        "The overhead of a group",
        "Habitual approval",
        "A constraint is enforced where it is represented here and applies",
    ];
    says("docs/limits.md", &limits);
}

#[test]
fn every_threshold_that_is_active_is_published() {
    shows!("CP-8.4-04");
    let limits = closer_contracts::profile::Limits::default();
    let published = serde_json::to_value(&limits).unwrap();
    let names: Vec<&str> = published.as_object().unwrap().keys().map(String::as_str).collect();
    says("docs/deployment.md", &names);
    says("docs/deployment.md", &["PASSED_OVER_MAX", "ASSESSMENTS_MAX", "READBACKS_MAX", "ATTEMPTS_MAX", "DRAFTS_MAX"]);
    let mut undeclared = published.clone();
    undeclared["cooldown_ms"] = 5.into();
    assert!(serde_json::from_value::<closer_contracts::profile::Limits>(undeclared).is_err(), "it is not started with");
}

#[test]
fn related_work_is_compared_by_abstract_and_nothing_is_called_new() {
    shows!("CP-3.4-05");
    says(
        "docs/limits.md",
        &["compared at the level of their abstracts", "would need a full examination of related work"],
    );
    says("README.md", &["No claim is made of novelty"]);
}

#[test]
fn prototypes_prove_nothing_about_hidden_sources() {
    shows!("CP-6.5-05");
    says("docs/limits.md", &["Earlier prototypes are not cited as evidence that what a source keeps hidden is bound"]);
}

#[test]
fn nobody_is_given_percentages_and_concepts_approve_no_artifact() {
    shows!("CP-D-10");
    says("docs/limits.md", &["No percentages of correctness or authorship", "approves no artifact"]);
    let percent = |path: &str| page(path).contains("% correct") || page(path).contains("percent correct");
    assert!(!percent("README.md") && !percent("docs/limits.md"));
}

/// What is wrong with a folder of contribution histories: a version that does not name the digest of each file before it.
fn unfaithful(folder: &std::path::Path) -> Vec<String> {
    let number = |name: &str| name.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u64>>();
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let versions = names.filter_map(|name| name.strip_suffix(".md").map(str::to_owned));
    let mut versions: Vec<String> = versions.filter(|version| version != "README").collect();
    versions.sort_by_key(|version| number(version));
    let mut found = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let text = fs::read_to_string(folder.join(format!("{version}.md"))).unwrap();
        for earlier in &versions[..index] {
            let digest = closer_contracts::Digest::of(&fs::read(folder.join(format!("{earlier}.md"))).unwrap());
            if !text.contains(&format!("{earlier} {digest}")) {
                found.push(format!("{version} does not name {earlier} {digest}"));
            }
        }
    }
    found
}

#[test]
fn contribution_history_is_kept_by_version_and_earlier_files_stay_untouched() {
    shows!("CP-D-12");
    let committed = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/contributions");
    assert!(committed.join(concat!(env!("CARGO_PKG_VERSION"), ".md")).exists(), "this version has none");
    assert_eq!(unfaithful(&committed), Vec::<String>::new());
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(&committed).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let add = |version: &str, earlier: &[&str]| {
        let digest = |name: &&str| {
            let bytes = fs::read(folder.path().join(format!("{name}.md"))).unwrap();
            format!("- {name} {}", closer_contracts::Digest::of(&bytes))
        };
        let named: Vec<String> = earlier.iter().map(digest).collect();
        let text = format!("# {version}\n\n## Earlier\n\n{}\n", named.join("\n"));
        fs::write(folder.path().join(format!("{version}.md")), text).unwrap();
    };
    add("99.0.0", &["0.1.0"]);
    add("99.10.0", &["0.1.0", "99.0.0"]);
    assert_eq!(unfaithful(folder.path()), Vec::<String>::new(), "a version is added, and what was there is as it was");
    fs::write(folder.path().join("0.1.0.md"), "# 0.1.0, told better\n").unwrap();
    assert_eq!(unfaithful(folder.path()).len(), 2, "whoever comes after it names what it was");
    add("99.11.0", &["99.10.0"]);
    assert!(unfaithful(folder.path()).iter().any(|told| told.starts_with("99.11.0 does not name 99.0.0")));
}
