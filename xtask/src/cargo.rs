//! Running cargo and reading its metadata.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// What a check found. Findings fail the command; notices are only printed.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<String>,
    pub(crate) notices: Vec<String>,
    pub(crate) summary: String,
}

/// Prints findings; an error among them fails the command.
///
/// # Errors
/// When there is at least one error among the findings.
pub(crate) fn report(name: &str, findings: Findings) -> Result<()> {
    for notice in &findings.notices {
        println!("{name}: note: {notice}");
    }
    for error in &findings.errors {
        println!("{name}: {error}");
    }
    if !findings.errors.is_empty() {
        bail!("{name}: {} finding(s)", findings.errors.len());
    }
    println!("{name}: {}", findings.summary);
    Ok(())
}

/// The cargo that runs this command, in the workspace root.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    // Set by the outer `cargo run` for this crate; children must find their own, and a build script that watches one of
    // them would be run anew, with everything that depends on it, whenever somebody calls cargo without this command.
    let of_this_crate = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_this_crate)) {
        command.env_remove(name);
    }
    command
}

/// The folder of the proof build: apart from the ordinary one, so that no ordinary command ever runs a binary that can
/// invert a guard.
pub(crate) const PROOF_FOLDER: &str = "target/prove";

/// A subcommand of cargo over the whole workspace in the proof build. `verify` uses this one build for the tests and for
/// the proof: without a mark named in the environment it does what an ordinary build does, and a second build of
/// everything takes as long as the tests.
pub(crate) fn proof_build(root: &Path, subcommand: &[&str]) -> Command {
    let mut command = cargo(root);
    command.args(subcommand).args(["--workspace", "--locked", "--features=closer/prove", "--target-dir", PROOF_FOLDER]);
    command.env_remove("CLOSER_INVERT").env_remove("CLOSER_HOLD");
    command
}

/// Runs a command with inherited output.
///
/// # Errors
/// When it cannot start or does not succeed.
pub(crate) fn must(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot start {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}

/// The standard output of a command that must succeed; its standard error is inherited.
///
/// # Errors
/// When it cannot start, does not succeed or writes no UTF-8.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {shown}"))?;
    if !output.status.success() {
        bail!("{shown} ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{shown} wrote bytes that are not UTF-8"))
}

/// The part of `cargo metadata` these commands need.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    #[serde(default)]
    pub(crate) workspace_default_members: Vec<String>,
}

/// One workspace member.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// One declared dependency; `kind` is `None` for ordinary ones, else `dev` or `build`.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Option<String>,
}

/// One library, binary, test, example, bench or build script.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

impl Target {
    /// Whether everything in the target is test code.
    pub(crate) fn is_test(&self) -> bool {
        self.kind.iter().any(|kind| kind == "test" || kind == "bench")
    }
}

/// Reads the workspace members from `cargo metadata`.
///
/// # Errors
/// When cargo fails or its answer cannot be read.
pub(crate) fn metadata(root: &Path) -> Result<Metadata> {
    let json = output(cargo(root).args(["metadata", "--no-deps", "--format-version", "1"]))?;
    serde_json::from_str(&json).context("cannot read the answer of cargo metadata")
}
