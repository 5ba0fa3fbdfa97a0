//! Every development command of the workspace: `cargo xtask --help`.
//!
//! `verify` is what people and CI run; it never writes to the tree. `fix` and `bless` write. The other commands are
//! the single steps of these, one module each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod arch;
mod bench;
mod browser;
mod cargo;
mod crash;
mod eval;
mod fix;
mod fuzz;
mod mcp;
mod model;
mod mutants;
mod python;
mod races;
mod scenario;
mod sim;
mod source;
mod tidy;
mod tools;
mod trace;
mod verify;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development commands of the Closer workspace")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Checks everything and writes nothing: format, lints, tests, docs, arrows, tidiness, clause trace, sample proof
    Verify(verify::Args),
    /// Formats, applies machine-made lint fixes, regenerates docs/spec-trace.md
    Fix,
    /// Accepts changed snapshots, golden vectors and schemas; commit the result alone
    Bless,
    /// Runs scenarios of the catalogue by name
    Scenario(scenario::Args),
    /// Runs the core and the store under seeds: faults, crashes and lies in random order, invariants checked after each step
    Sim(sim::Args),
    /// Runs what happens in many orders at full length: reservations at once, triggers before and after what they wait for
    Races(races::Args),
    /// Bends bytes for everything that reads bytes from outside
    Fuzz(fuzz::Args),
    /// Ties requirement rows to branches and tests; `--prove` inverts each branch and demands a red test
    Trace(trace::Args),
    /// Measures the store or whole actions beside raw limits on the same disk
    Bench(bench::Args),
    /// Calibrates the statistics of the evaluation
    Eval(eval::Args),
    /// Kills, cuts the power and lets writers compete, many times over
    Crash(crash::Args),
    /// Changes the code of one crate, one place at a time, and demands a red test
    Mutants(mutants::Args),
    /// Checks the dependency arrows between crates and the allow-list of the pure core
    Arch,
    /// Checks what prose cannot: dead files, leftovers, long functions, pages, marks, forbidden words
    Tidy,
}

fn main() -> ExitCode {
    let root = workspace_root();
    match run(Cli::parse().command, &root) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command, root: &Path) -> Result<()> {
    match command {
        Command::Verify(args) => verify::run(root, &args),
        Command::Fix => fix::fix(root),
        Command::Bless => fix::bless(root),
        Command::Scenario(args) => scenario::run(root, &args),
        Command::Sim(args) => sim::run(root, &args),
        Command::Races(args) => races::run(root, &args),
        Command::Fuzz(args) => fuzz::run(root, &args),
        Command::Trace(args) => trace::run(root, &args),
        Command::Bench(args) => bench::run(root, &args),
        Command::Eval(args) => eval::run(root, &args),
        Command::Crash(args) => crash::run(root, &args),
        Command::Mutants(args) => mutants::run(root, &args),
        Command::Arch => cargo::report("arch", arch::check(root)?),
        Command::Tidy => cargo::report("tidy", tidy::check(root)?),
    }
}

/// The folder above this crate. It is known at build time, so every command works from any current directory.
fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
