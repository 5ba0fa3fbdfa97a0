//! Seeded runs of the pure core, as many and as long as asked.

use crate::cargo::{cargo, must};
use anyhow::Result;
use std::path::Path;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many seeds, from 0 on
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// Steps of each run
    #[arg(long, default_value_t = 400)]
    steps: u32,
    /// Replays this one seed
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
}

/// Runs the simulation test of `closer-scenarios`; fails at the first violation, with the steps that led to it.
///
/// # Errors
/// When something that must always hold did not.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let mut command = cargo(root);
    command.env("CLOSER_SEEDS", args.seeds.to_string()).env("CLOSER_STEPS", args.steps.to_string());
    if let Some(seed) = args.seed {
        command.env("CLOSER_SEED", seed.to_string());
    }
    let test = "what_must_always_hold_holds_under_every_seed";
    must(
        command
            .args(["test", "--quiet", "--package", "closer-scenarios", "--test", "simulation", "--", test])
            .arg("--nocapture"),
    )
}
