//! Bent bytes for whoever reads bytes from outside, for as long as asked.

use std::path::Path;

use anyhow::Result;

use crate::cargo::{cargo, must};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long each target runs, in minutes
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Where the bending begins: another number bends otherwise
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the targets whose test name contains this
    #[arg(long)]
    only: Option<String>,
}

/// Runs every target of `tests/fuzz` side by side; an input that breaks one is kept below `tests/fuzz/found/`.
///
/// # Errors
/// When an input breaks something.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let mut command = cargo(root);
    command.env("CLOSER_FUZZ_MS", (args.minutes * 60_000).to_string());
    command.env("CLOSER_FUZZ_SEED", args.seed.to_string());
    command.args(["test", "--quiet", "--package", "closer", "--test", "fuzz", "--", "--nocapture"]);
    must(command.args(&args.only))
}
