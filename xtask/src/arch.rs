//! The dependency arrows between the crates, and what the pure core may depend on.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cargo::{Findings, Metadata, metadata};

/// Who may use whom. Members that are not named may use nothing of ours.
const ARROWS: [(&str, &[&str]); 11] = [
    ("closer-contracts", &[]),
    ("closer-state", &["contracts"]),
    ("closer-monitor", &["contracts", "state"]),
    ("closer-protocol", &["contracts", "state", "monitor"]),
    ("closer-store", &["contracts", "state"]),
    ("closer-adapters", &["contracts", "state", "monitor", "protocol"]),
    ("closer-actors", &["contracts", "state", "monitor", "protocol", "store"]),
    ("closer-scenarios", &["contracts", "state", "monitor", "protocol", "store"]),
    ("closer-eval", &["contracts", "state", "monitor", "protocol", "store", "adapters", "actors", "scenarios"]),
    ("closer-bench", &["contracts", "state", "monitor", "protocol", "store", "adapters", "actors", "scenarios"]),
    ("closer", &["contracts", "state", "monitor", "protocol", "store", "adapters", "actors", "scenarios", "eval"]),
];

/// Beside the arrows, for tests alone: the scenarios' deployment, so that it is written once. Scenarios use no shell.
const TEST_ARROWS: [(&str, &str); 1] = [("closer-actors", "closer-scenarios")];

/// The crates that decide and touch nothing.
pub(crate) const CORE: [&str; 4] = ["contracts", "state", "monitor", "protocol"];

/// What the core may depend on: data structures, encodings and signatures. It grows by an ADR.
const CORE_MAY_USE: [&str; 12] = [
    "ed25519-dalek",
    "hex",
    "imbl",
    "jiff",
    "schemars",
    "serde",
    "serde_jcs",
    "serde_json",
    "serde_path_to_error",
    "sha2",
    "thiserror",
    "base64",
];

/// What the core's tests may use besides.
const CORE_TESTS_MAY_USE: [&str; 5] = ["insta", "proptest", "serde_json_canonicalizer", "tempfile", "toml"];

/// Checks arrows, the core's dependencies, and that versions stand in the root manifest only.
///
/// # Errors
/// When cargo metadata or a manifest cannot be read.
pub(crate) fn check(root: &Path) -> Result<Findings> {
    let metadata = metadata(root)?;
    let mut findings = Findings { errors: judge(&metadata), ..Findings::default() };
    for package in &metadata.packages {
        let text = std::fs::read_to_string(&package.manifest_path)
            .with_context(|| format!("cannot read the manifest of {}", package.name))?;
        let manifest =
            toml::from_str(&text).with_context(|| format!("cannot read the manifest of {}", package.name))?;
        findings.errors.extend(own_versions(&package.name, &manifest));
    }
    findings.summary = format!("{} crates follow the arrows", metadata.packages.len());
    Ok(findings)
}

/// The arrows and dependencies that are not allowed.
fn judge(metadata: &Metadata) -> Vec<String> {
    let members: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let mut errors = Vec::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let allowed = ARROWS.iter().find(|(from, _)| *from == name).map_or(&[][..], |(_, to)| to);
        let is_core = is_core(name);
        for dependency in &package.dependencies {
            let to = dependency.name.as_str();
            let is_for_tests = dependency.kind.as_deref() == Some("dev");
            if members.contains(to) {
                let is_allowed = to.strip_prefix("closer-").is_some_and(|to| allowed.contains(&to));
                let is_for_tests_only = is_for_tests && TEST_ARROWS.contains(&(name, to));
                if !(is_allowed || is_for_tests_only) {
                    errors.push(format!("{name} → {to} is no allowed arrow"));
                }
            } else if is_core && !CORE_MAY_USE.contains(&to) && !(is_for_tests && CORE_TESTS_MAY_USE.contains(&to)) {
                errors.push(format!("{name} → {to} is not on the allow-list of the pure core (xtask/src/arch.rs)"));
            }
        }
        if !metadata.workspace_default_members.contains(&package.id) {
            errors.push(format!("{name} is not among the default members"));
        }
    }
    errors
}

fn is_core(package: &str) -> bool {
    package.strip_prefix("closer-").is_some_and(|name| CORE.contains(&name))
}

/// Dependencies that a member does not inherit from the root.
fn own_versions(package: &str, manifest: &toml::Table) -> Vec<String> {
    let tables = ["dependencies", "dev-dependencies", "build-dependencies"];
    let declared = tables.iter().filter_map(|table| manifest.get(*table)?.as_table()).flatten();
    let is_inherited = |value: &toml::Value| value.get("workspace").and_then(toml::Value::as_bool) == Some(true);
    declared
        .filter(|(_, value)| !is_inherited(value))
        .map(|(name, _)| {
            format!("{package} → {name}: versions stand in the root manifest; write `{name}.workspace = true`")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(packages: &[(&str, &[(&str, &str)])]) -> Metadata {
        let packages: Vec<serde_json::Value> = packages
            .iter()
            .map(|(name, dependencies)| {
                let dependencies: Vec<_> = dependencies
                    .iter()
                    .map(|(to, kind)| serde_json::json!({"name": to, "kind": (!kind.is_empty()).then_some(kind)}))
                    .collect();
                serde_json::json!({
                    "name": name, "id": name, "manifest_path": "", "targets": [], "dependencies": dependencies,
                })
            })
            .collect();
        let ids: Vec<_> = packages.iter().map(|package| package["id"].clone()).collect();
        serde_json::from_value(serde_json::json!({"packages": packages, "workspace_default_members": ids}))
            .expect("metadata")
    }

    #[test]
    fn allowed_arrows_pass() {
        let tree = metadata(&[
            ("closer-contracts", &[("serde", ""), ("insta", "dev")]),
            ("closer-state", &[("closer-contracts", ""), ("imbl", "")]),
            ("closer-store", &[("closer-state", ""), ("sled", "")]),
            ("closer-scenarios", &[("closer-store", "")]),
            ("closer-actors", &[("closer-store", ""), ("closer-scenarios", "dev")]),
        ]);
        assert_eq!(judge(&tree), Vec::<String>::new());
    }

    #[test]
    fn a_forbidden_arrow_is_found_also_among_dev_dependencies() {
        let tree = metadata(&[
            ("closer-contracts", &[]),
            ("closer-state", &[("closer-store", "dev")]),
            ("closer-store", &[]),
            ("closer-adapters", &[]),
            ("closer-scenarios", &[]),
            ("closer-actors", &[("closer-adapters", ""), ("closer-scenarios", "")]),
            ("closer-xtask", &[("closer-contracts", "")]),
        ]);
        assert_eq!(
            judge(&tree),
            [
                "closer-state → closer-store is no allowed arrow",
                "closer-actors → closer-adapters is no allowed arrow",
                "closer-actors → closer-scenarios is no allowed arrow",
                "closer-xtask → closer-contracts is no allowed arrow",
            ]
        );
    }

    #[test]
    fn the_core_takes_nothing_from_outside_its_list() {
        let tree = metadata(&[("closer-monitor", &[("tokio", ""), ("rand", "dev"), ("proptest", "dev")])]);
        let found = judge(&tree);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found.iter().any(|error| error.contains("→ tokio")) && found.iter().any(|error| error.contains("→ rand"))
        );
    }

    #[test]
    fn a_version_of_its_own_is_found() {
        let manifest = toml::from_str("[dependencies]\nserde.workspace = true\nhex = \"0.4\"\n").expect("manifest");
        let found = own_versions("closer-state", &manifest);
        assert_eq!(found.len(), 1);
        assert!(found.iter().all(|error| error.starts_with("closer-state → hex")));
    }
}
