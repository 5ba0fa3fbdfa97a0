//! The long crash runs that `verify` leaves out: the same tests and the same crash driver, many times over.

use crate::cargo::{cargo, must};
use anyhow::Result;
use std::path::Path;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often the process is killed: at every named point of the action path, and at random while it writes or opens
    #[arg(long, default_value_t = 100)]
    runs: u32,
    /// How often the power is cut under load, with 1 KB and 20 KB records; needs root for a loop device, else it is skipped
    #[arg(long, default_value_t = 20)]
    power_cuts: u32,
    /// How many rounds two writers compete for one file
    #[arg(long, default_value_t = 10_000)]
    rounds: u32,
}

/// Kills, cuts and competes; fails at the first lost record, repeated effect or lost foreign write.
///
/// # Errors
/// When a run fails.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let runs = args.runs.to_string();
    must(cargo(root).args(["run", "--package", "closer-store", "--bin", "store-crash", "--", "kill", &runs]))?;
    let cuts = args.power_cuts.to_string();
    must(cargo(root).args(["run", "--package", "closer-store", "--bin", "store-crash", "--", "power", &cuts]))?;
    must(cargo(root).env("CLOSER_ROUNDS", args.rounds.to_string()).args([
        "test",
        "--package",
        "closer-adapters",
        "competing_writers",
    ]))?;
    must(cargo(root).env("CLOSER_CRASH_ROUNDS", runs).args([
        "test",
        "--package",
        "closer",
        "--test",
        "it",
        "crash",
        "--",
        "--nocapture",
    ]))
}
