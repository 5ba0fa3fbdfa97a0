//! The one build with inverted branches, and the check that an optimized build refuses it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::Runner;
use super::execute::{self, Outcome};
use crate::cargo::{PROOF_FOLDER, Target, metadata, output, proof_build};

/// The text of the compile error in `contracts/src/mark.rs`.
const REFUSAL: &str = "refused in optimized builds";

/// The test of `closer-scenarios` that runs the catalogue, or the one case `CLOSER_SCENARIO` names.
const SCENARIO_TARGET: &str = "catalog";

/// Test executables by the root file of their target.
pub(super) struct Executables {
    by_target: BTreeMap<PathBuf, Executable>,
}

struct Executable {
    path: PathBuf,
    package_folder: PathBuf,
    target: String,
}

/// The messages of `cargo --message-format=json` that name test executables.
#[derive(Deserialize)]
struct Artifact {
    package_id: String,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds every test of the workspace with the feature `prove`.
pub(super) fn executables(root: &Path) -> Result<Executables> {
    println!("prove: building the tests with invertible branches in {PROOF_FOLDER}");
    let mut build = proof_build(root, &["test", "--no-run", "--quiet", "--message-format=json-render-diagnostics"]);
    let messages = output(&mut build)?;
    let folders: BTreeMap<String, PathBuf> = metadata(root)?
        .packages
        .into_iter()
        .filter_map(|package| Some((package.id, package.manifest_path.parent()?.to_path_buf())))
        .collect();
    let mut by_target = BTreeMap::new();
    for artifact in messages.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok()) {
        let (Some(path), Some(folder)) = (artifact.executable, folders.get(&artifact.package_id)) else {
            continue;
        };
        if artifact.profile.test {
            let executable = Executable { path, package_folder: folder.clone(), target: artifact.target.name };
            by_target.insert(artifact.target.src_path, executable);
        }
    }
    Ok(Executables { by_target })
}

impl Executables {
    /// Runs one test or scenario, with `inverted` inverted.
    pub(super) fn run(&self, runner: &Runner, inverted: Option<&str>) -> Result<Outcome> {
        let (executable, path, scenario) = match runner {
            Runner::Test { target, path, .. } => (self.by_target.get(target), path.as_str(), None),
            Runner::Scenario { name } => {
                let of_catalog = |executable: &&Executable| {
                    executable.target == SCENARIO_TARGET && executable.package_folder.ends_with("scenarios")
                };
                (self.by_target.values().find(of_catalog), SCENARIO_TARGET, Some(name))
            }
        };
        let Some(executable) = executable else {
            return Ok(Outcome::NotFound);
        };
        let mut command = Command::new(&executable.path);
        command.args(["--exact", path, "--include-ignored"]);
        command.current_dir(&executable.package_folder);
        command.env("CARGO_MANIFEST_DIR", &executable.package_folder);
        command.env("INSTA_UPDATE", "no");
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
        command.env("PROPTEST_MAX_SHRINK_ITERS", "0");
        command.env_remove("CLOSER_INVERT");
        if let Some(mark) = inverted {
            command.env("CLOSER_INVERT", mark);
        }
        if let Some(name) = scenario {
            command.env("CLOSER_SCENARIO", name);
        }
        execute::run(command).with_context(|| format!("cannot run {}", runner.shown()))
    }
}

/// Demands that the compiler accepts the marks with `prove` in a debug build and refuses them in an optimized one.
///
/// # Errors
/// When the guard is gone, or the release profile switches debug assertions on.
pub(super) fn refused_in_release(root: &Path) -> Result<()> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).context("cannot read Cargo.toml")?;
    let manifest: toml::Table = toml::from_str(&manifest).context("cannot read Cargo.toml")?;
    let release = manifest.get("profile").and_then(|profile| profile.get("release"));
    if release.and_then(|release| release.get("debug-assertions")).and_then(toml::Value::as_bool) == Some(true) {
        bail!("the release profile switches debug assertions on, which lets `prove` into optimized builds");
    }
    let (accepted, complaint) = compile_marks(root, "on")?;
    if !accepted {
        bail!("contracts/src/mark.rs does not compile with the feature `prove`:\n{complaint}");
    }
    let (accepted, complaint) = compile_marks(root, "off")?;
    if accepted || !complaint.contains(REFUSAL) {
        bail!("contracts/src/mark.rs no longer refuses the feature `prove` in optimized builds");
    }
    Ok(())
}

/// Compiles the marks alone (they depend on nothing), with debug assertions `on` or `off`.
fn compile_marks(root: &Path, assertions: &str) -> Result<(bool, String)> {
    let folder = root.join(PROOF_FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {PROOF_FOLDER}"))?;
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .current_dir(root)
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--cfg", "feature=\"prove\""])
        .arg(format!("-Cdebug-assertions={assertions}"))
        .arg("--out-dir")
        .arg(&folder)
        .arg("contracts/src/mark.rs")
        .stdout(Stdio::null())
        .output()
        .context("cannot start rustc")?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimized_builds_refuse_inverted_branches() {
        refused_in_release(&crate::workspace_root()).expect("the guard stands");
    }

    #[test]
    fn marks_without_the_guard_are_noticed() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir_all(folder.path().join("contracts/src")).expect("folder");
        std::fs::write(folder.path().join("contracts/src/mark.rs"), "//! No guard.\n").expect("written");
        std::fs::write(folder.path().join("Cargo.toml"), "").expect("written");
        let error = refused_in_release(folder.path()).expect_err("no guard").to_string();
        assert!(error.contains("no longer refuses"), "{error}");
        std::fs::write(folder.path().join("Cargo.toml"), "[profile.release]\ndebug-assertions = true\n")
            .expect("written");
        let error = refused_in_release(folder.path()).expect_err("assertions on").to_string();
        assert!(error.contains("debug assertions"), "{error}");
    }
}
