//! `cargo xtask verify`: is the tree sound? Reads it, builds in `target/prove`, writes nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cargo::{cargo, must, proof_build, report};
use crate::{arch, browser, mcp, model, python, tidy, tools, trace};

/// How many rows are proved on each run, picked by the current commit.
const PROVED_ROWS: usize = 40;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these steps, separated by commas
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Step>,
    /// All but these steps, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "only")]
    skip: Vec<Step>,
    /// Conferences of a small real model too: downloads it once, takes a while
    #[arg(long)]
    with_model: bool,
    /// The notebook over a report too: installs pandas and pyarrow once
    #[arg(long)]
    with_notebook: bool,
    /// The Bench in real Chromium too; installs Chromium and Node's packages where they are missing
    #[arg(long)]
    with_browser: bool,
    /// The conformance suite of MCP and its Python SDK too; installs both and the Node they need in target/mcp
    #[arg(long)]
    with_mcp: bool,
}

/// The steps, cheapest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Step {
    Tools,
    Fmt,
    Arch,
    Tidy,
    Trace,
    Clippy,
    Docs,
    Proof,
    Doctests,
    Tests,
    #[value(skip)]
    Model,
    #[value(skip)]
    Notebook,
    Browser,
    Mcp,
}

const STEPS: [Step; 12] = [
    Step::Tools,
    Step::Fmt,
    Step::Arch,
    Step::Tidy,
    Step::Trace,
    Step::Clippy,
    Step::Docs,
    Step::Proof,
    Step::Doctests,
    Step::Tests,
    Step::Browser,
    Step::Mcp,
];

/// Runs every chosen step, also after one has failed, then a summary.
///
/// # Errors
/// Names the steps that failed.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let is_chosen = |step: &Step| {
        let asked_for = match step {
            Step::Browser => args.with_browser,
            Step::Mcp => args.with_mcp,
            Step::Tools
            | Step::Fmt
            | Step::Arch
            | Step::Tidy
            | Step::Trace
            | Step::Clippy
            | Step::Docs
            | Step::Proof
            | Step::Doctests
            | Step::Tests
            | Step::Model
            | Step::Notebook => true,
        };
        if args.only.is_empty() { asked_for && !args.skip.contains(step) } else { args.only.contains(step) }
    };
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    let mut closing_line = String::new();
    let begin = Instant::now();
    let opted = [(args.with_model, Step::Model), (args.with_notebook, Step::Notebook)];
    let opted = opted.into_iter().filter(|(asked_for, _)| *asked_for).map(|(_, step)| step);
    for step in STEPS.into_iter().filter(is_chosen).chain(opted) {
        let name = format!("{step:?}").to_lowercase();
        let begin = Instant::now();
        let outcome = step.run(root, &mut closing_line);
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        let line = format!("{word:<6} {name:<9} {}", seconds(begin.elapsed()));
        println!("{line}");
        lines.push(line);
        if let Err(error) = outcome {
            println!("       {name}: {error:#}");
            failed.push(name);
        }
    }
    println!("\nverify: {} steps in {}", lines.len(), seconds(begin.elapsed()));
    for line in &lines {
        println!("  {line}");
    }
    if !closing_line.is_empty() {
        println!("{closing_line}");
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

fn seconds(duration: Duration) -> String {
    format!("{:>7.1} s", duration.as_secs_f64())
}

impl Step {
    fn run(self, root: &Path, closing_line: &mut String) -> Result<()> {
        match self {
            Self::Tools => tools::ensure(),
            Self::Fmt => must(cargo(root).args(["fmt", "--all", "--check"])),
            Self::Arch => report("arch", arch::check(root)?),
            Self::Tidy => report("tidy", tidy::check(root)?),
            Self::Trace => report("trace", trace::check(root)?),
            Self::Clippy => must(proof_build(root, &["clippy", "--all-targets"]).args(["--", "-D", "warnings"])),
            Self::Docs => must(proof_build(root, &["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings")),
            Self::Proof => trace::prove_sample(root, PROVED_ROWS),
            Self::Doctests => must(never_writing(&mut proof_build(root, &["test", "--doc"]))),
            Self::Tests => tests(root, closing_line),
            Self::Model => model::run(root),
            Self::Notebook => python::notebook(root),
            Self::Browser => browser::run(root),
            Self::Mcp => mcp::run(root),
        }
    }
}

/// Keeps the test libraries from writing into the tree.
fn never_writing(command: &mut Command) -> &mut Command {
    command.env("INSTA_UPDATE", "no").env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true").env_remove("CLOSER_BLESS")
}

fn tests(root: &Path, closing_line: &mut String) -> Result<()> {
    let mut command = if tools::has_nextest() {
        let mut command = proof_build(root, &["nextest", "run", "--no-fail-fast", "--status-level", "fail"]);
        command.args(["--final-status-level", "slow", "--show-progress", "none"]);
        command
    } else {
        proof_build(root, &["test", "--lib", "--bins", "--tests", "--no-fail-fast"])
    };
    never_writing(&mut command);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("cannot start the tests")?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let results = std::thread::scope(|scope| {
        let errors = scope.spawn(|| stderr.map(|pipe| relay(pipe, std::io::stderr())).unwrap_or_default());
        let mut results = stdout.map(|pipe| relay(pipe, std::io::stdout())).unwrap_or_default();
        results.extend(errors.join().unwrap_or_default());
        results
    });
    *closing_line = summarize(&results);
    let status = child.wait()?;
    if !status.success() {
        bail!("the test run ended with {status}");
    }
    Ok(())
}

/// Passes output on line by line; returns the runner's result lines.
fn relay(pipe: impl Read, mut to: impl Write) -> Vec<String> {
    let mut results = Vec::new();
    for line in BufReader::new(pipe).lines().map_while(Result::ok) {
        // A reader that went away is no reason to stop the tests.
        let _ = writeln!(to, "{line}");
        let text = line.trim();
        if text.starts_with("test result: ") || text.starts_with("Summary [") {
            results.push(line);
        }
    }
    results
}

/// One closing line: nextest's own, or the sum of what `cargo test` says once per executable.
fn summarize(results: &[String]) -> String {
    if let Some(line) = results.iter().find(|line| line.trim().starts_with("Summary [")) {
        return line.clone();
    }
    let sum = |word: &str| -> u64 {
        let counts = results.iter().flat_map(|line| line.split([';', '.']));
        counts.filter_map(|part| part.trim().strip_suffix(word)?.trim().parse::<u64>().ok()).sum()
    };
    let (passed, failed, ignored) = (sum("passed"), sum("failed"), sum("ignored"));
    let word = if failed == 0 && !results.iter().any(|line| line.contains("FAILED")) { "ok" } else { "FAILED" };
    format!("test result: {word}. {passed} passed; {failed} failed; {ignored} ignored; {} executables", results.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_adds_up_what_each_executable_said() {
        let lines = [
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s",
        ];
        let lines = lines.map(str::to_owned);
        assert_eq!(summarize(&lines), "test result: FAILED. 15 passed; 2 failed; 1 ignored; 2 executables");
    }

    #[test]
    fn the_closing_line_of_nextest_is_its_own() {
        let lines = ["     Summary [   0.005s] 3 tests run: 3 passed, 0 skipped".to_owned()];
        assert_eq!(summarize(&lines), lines.concat());
    }

    #[test]
    fn result_lines_are_picked_out_of_what_is_passed_on() {
        let text = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed;\n";
        let mut passed_on = Vec::new();
        let results = relay(text.as_bytes(), &mut passed_on);
        assert_eq!(results, ["test result: ok. 1 passed; 0 failed;"]);
        assert_eq!(passed_on, text.as_bytes());
    }
}
