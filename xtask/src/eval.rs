//! Writes what the evaluation's statistics keep of their promises.

use std::path::Path;

use anyhow::{Context, Result};

use crate::cargo::{cargo, must};

/// The table, relative to the workspace.
const TABLE: &str = "docs/calibration.md";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// Simulates studies whose truth is known and writes docs/calibration.md
    Calibrate {
        /// Simulated studies per cell
        #[arg(long, default_value_t = 10_000)]
        studies: u64,
    },
}

/// Builds the calibration optimized, runs it and writes its table.
///
/// # Errors
/// When it cannot be built, run or written.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let Subject::Calibrate { studies } = args.subject;
    let table = std::fs::File::create(root.join(TABLE)).with_context(|| format!("cannot write {TABLE}"))?;
    let mut command = cargo(root);
    command.args(["run", "--release", "--package", "closer-eval", "--bin", "closer-calibrate", "--"]);
    must(command.arg(studies.to_string()).stdout(table))
}
