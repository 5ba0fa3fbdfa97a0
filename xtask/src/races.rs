//! Runs what happens in many orders as often as asked: reservations at once, triggers before and after what they wait for,
//! competing owners, late answers.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;

use crate::cargo::{cargo, must, output};

/// The tests that take the number of their runs from `CLOSER_RUNS`.
const TESTS: &str = "binary(rows) & test(/^many::/)";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many runs of each
    #[arg(long, default_value_t = 1_000)]
    runs: u64,
    /// Only tests whose name contains this
    #[arg(long)]
    only: Option<String>,
}

/// Runs every test of many runs at its full length, one after another, and says how long each took.
///
/// # Errors
/// When one of them fails; it says which seed did.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let listed = output(cargo(root).args(["nextest", "list", "--workspace", "--test", "rows", "-E", TESTS]).args([
        "--message-format",
        "oneline",
        "--color=never",
    ]))?;
    let names = listed.lines().filter_map(|line| line.rsplit(' ').next()).filter(|name| name.starts_with("many::"));
    let chosen: Vec<&str> =
        names.filter(|name| args.only.as_ref().is_none_or(|only| name.contains(only.as_str()))).collect();
    for (at, name) in chosen.iter().enumerate() {
        println!("{} of {}: {name}, {} runs", at + 1, chosen.len(), args.runs);
        let started = Instant::now();
        let exactly = format!("binary(rows) & test(={name})");
        let mut command = cargo(root);
        command.args(["nextest", "run", "--workspace", "--test", "rows", "-E", &exactly, "--no-capture"]);
        // A run at full length outlasts the patience that ordinary tests are given.
        command.args(["--profile", "races"]).env("CLOSER_RUNS", args.runs.to_string());
        must(&mut command)?;
        println!("{name}: {} runs in {:.0} s", args.runs, started.elapsed().as_secs_f64());
    }
    Ok(())
}
