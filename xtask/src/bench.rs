//! Runs the benchmarks: everything compared in one run, on the same disk and bytes.

use std::path::Path;

use anyhow::{Result, bail};

use crate::cargo::{cargo, metadata, must};

/// The member that owns the benchmarks; it measures, this command only starts it optimized.
const PACKAGE: &str = "closer-bench";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure
    #[arg(value_enum)]
    subject: Subject,
    /// Passed on to the benchmark
    #[arg(last = true)]
    rest: Vec<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Subject {
    /// Raw append, group append, SQLite, the log alone, the log with derived state
    Store,
    /// Governed effects and whole actions, from event to receipt
    Action,
    /// What it costs to invalidate a premise that many claims rest on
    Truth,
    /// What an event costs among 1,000 and among 1,000,000 registered predicates
    Predicates,
}

/// Builds and runs the benchmark.
///
/// # Errors
/// When the workspace has no benchmark member or the run fails.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    if !metadata(root)?.packages.iter().any(|package| package.name == PACKAGE) {
        bail!("the workspace has no member `{PACKAGE}`");
    }
    let subject = match args.subject {
        Subject::Store => "store",
        Subject::Action => "action",
        Subject::Truth => "truth",
        Subject::Predicates => "predicates",
    };
    must(cargo(root).args(["run", "--release", "--package", PACKAGE, "--", subject]).args(&args.rest))
}
