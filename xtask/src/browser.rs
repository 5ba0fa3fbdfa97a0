//! The Bench in real Chromium: installs what that needs by its ordinary installers, then runs `tests/browser`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::{cargo, must};
use crate::tools;

/// Builds the binary and runs the browser tests. Writes to `target/browser` alone.
///
/// # Errors
/// What is missing and cannot be installed; tests that fail.
pub(crate) fn run(root: &Path) -> Result<()> {
    tools::ensure_browser()?;
    let source = root.join("tests/browser");
    let place = root.join("target/browser");
    std::fs::create_dir_all(&place).context("cannot make target/browser")?;
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(source.join(file), place.join(file)).with_context(|| format!("cannot copy {file}"))?;
    }
    let mut npm = Command::new("npm");
    must(npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]).current_dir(&place))?;
    must(cargo(root).args(["build", "--locked", "--package", "closer"]))?;
    let tests: Vec<_> = std::fs::read_dir(&source)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".test.cjs"))
        .collect();
    if tests.is_empty() {
        bail!("there is no test in {}", source.display());
    }
    must(Command::new("node").arg("--test").args(tests).current_dir(root).env("NODE_PATH", place.join("node_modules")))
}
