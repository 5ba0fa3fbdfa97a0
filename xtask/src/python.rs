//! Python environments for the tests that are opted into: made once below `target/`, at the versions that were tried.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{cargo, must};

/// What the notebook needs.
const NOTEBOOK: [&str; 2] = ["pandas==3.1.1", "pyarrow==26.0.1"];

/// The interpreter of an environment that holds these packages and can load these modules.
///
/// # Errors
/// When it cannot be made, or what it holds cannot be loaded.
pub(crate) fn installed(root: &Path, name: &str, install: &[&str], modules: &str) -> Result<PathBuf> {
    let environment = root.join("target").join(name);
    let python = environment.join("bin/python3");
    let has = |python: &Path| {
        let asks = ["-c", &format!("import {modules}")];
        Command::new(python).args(asks).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !has(&python) {
        must(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        must(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(install))?;
    }
    match has(&python) {
        true => Ok(python),
        false => bail!("the packages are installed and cannot be loaded"),
    }
}

/// Runs the notebook over the report of a study.
///
/// # Errors
/// When its environment cannot be had here, or the test fails.
pub(crate) fn notebook(root: &Path) -> Result<()> {
    let python = installed(root, "notebook", &NOTEBOOK, "pandas, pyarrow");
    let python = python.context("pandas and pyarrow cannot be had here, so nothing is said about the notebook")?;
    let tests = ["test", "--locked", "--package", "closer", "--test", "it", "the_notebook", "--", "--nocapture"];
    must(cargo(root).args(tests).env("CLOSER_NOTEBOOK_PYTHON", python))
}
