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
    /// A fresh process per world, a run of many pairs, the report of many more: pairs of both as arguments, 2000 and 10000 else
    Eval,
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
        Subject::Eval => return study(root, &args.rest),
    };
    must(cargo(root).args(["run", "--release", "--package", PACKAGE, "--", subject]).args(&args.rest))
}

/// The participant that each world starts lies beside the measuring program, so both are built first.
fn study(root: &Path, rest: &[String]) -> Result<()> {
    must(cargo(root).args(["build", "--release", "--package", "closer-eval", "--bins"]))?;
    let defaults = ["2000".to_owned(), "10000".to_owned()];
    let pairs = if rest.is_empty() { &defaults } else { rest };
    let arguments = ["run", "--release", "--package", "closer-eval", "--bin", "closer-study-bench", "--"];
    must(cargo(root).args(arguments).args(pairs))
}
