//! Simulated runs, as many and as long as asked, and the table of guards that they notice the loss of.

pub(crate) mod guards;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::cargo::{cargo, must, output};

/// The profile with assertions and optimization, apart from the ordinary build: its guards can be taken out.
const BUILD: [&str; 10] = [
    "--profile=proof",
    "--package=closer-scenarios",
    "--bin=simulate",
    "--features=prove",
    "--target-dir=target/prove",
    "--locked",
    "--quiet",
    "--message-format=json-render-diagnostics",
    "--color=never",
    "--keep-going",
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many seeds
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Steps of each run
    #[arg(long, default_value_t = 400)]
    steps: u64,
    /// Replays this one seed; with --steps as it was found with
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// Replays a kept plan
    #[arg(long, conflicts_with_all = ["seeds", "from", "seed"])]
    plan: Option<PathBuf>,
    /// Takes out each guard, one at a time, and writes which seed notices into docs/reliability.md
    #[arg(long, conflicts_with_all = ["seed", "plan"])]
    guards: bool,
    /// With --guards: only marks that contain this; prints, and writes nothing
    #[arg(long, requires = "guards")]
    only: Option<String>,
    /// Puts the reasons of scenarios/guards.toml into the table, without running anything
    #[arg(long, conflicts_with_all = ["seed", "plan", "guards"])]
    explain: bool,
}

/// Runs the simulator; a failing seed is shrunk and kept below `scenarios/seeds/`.
///
/// # Errors
/// When something that must always hold did not.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    if args.explain {
        return guards::explain(root);
    }
    let simulator = build(root)?;
    if args.guards {
        return guards::run(root, &simulator, (args.seeds, args.steps), args.only.as_deref());
    }
    let mut command = Command::new(simulator);
    command.current_dir(root).args(["--steps", &args.steps.to_string()]);
    match (&args.plan, args.seed) {
        (Some(plan), _) => command.arg("--plan").arg(plan),
        (None, Some(seed)) => command.args(["--from", &seed.to_string(), "--seeds", "1", "--keep", "scenarios/seeds"]),
        (None, None) => {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            command.args(["--from", &args.from.to_string(), "--seeds", &args.seeds.to_string()]);
            command.args(["--threads", &threads.to_string(), "--keep", "scenarios/seeds"])
        }
    };
    must(&mut command)
}

/// The one message of cargo that is wanted.
#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
}

fn build(root: &Path) -> Result<PathBuf> {
    let messages = output(cargo(root).arg("build").args(BUILD))?;
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
    let simulator = artifacts.filter_map(|artifact| artifact.executable).next_back();
    simulator.context("cargo built no simulator")
}
