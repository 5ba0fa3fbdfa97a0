//! The proof that a row's branch matters: invert it, and a test of the row turns red.
//!
//! One build with the feature `prove`; the environment variable `CLOSER_INVERT` names the mark to invert, so nothing is
//! rebuilt per row. Test executables are run directly, one test at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};

use super::evidence::Runner;
use super::{Chosen, Trace, git};

mod build;
mod execute;

use build::Executables;
use execute::Outcome;

/// The committed report of a full proof, relative to the workspace root.
pub(crate) const PAGE: &str = "docs/spec-trace-proof.md";

/// One thing to prove: the row, the branch that carries it, the tests that claim both.
#[derive(Debug)]
struct Claim {
    row: String,
    mark: String,
    runners: BTreeSet<Runner>,
}

/// What became of a claim.
#[derive(Debug)]
enum Verdict {
    /// This test turns red.
    Proved { by: Runner, hung: bool },
    /// No test turns red, or one is not green to begin with.
    Failed { why: String },
}

/// Proves the chosen rows and reports to standard output.
///
/// # Errors
/// When a chosen row has no mark, is not proved, or the proof cannot run.
pub(crate) fn run(root: &Path, trace: &Trace, chosen: &Chosen) -> Result<()> {
    build::refused_in_release(root)?;
    let claims = choose(claims(trace), chosen, &commit(root))?;
    let rows = claims.iter().map(|claim| claim.row.as_str()).collect::<BTreeSet<_>>().len();
    if claims.is_empty() {
        bail!("prove: no row has a mark");
    }
    let verdicts = judge_all(&claims, &build::executables(root)?)?;
    let failed = print(&claims, &verdicts);
    if chosen.all {
        let page = root.join(PAGE);
        std::fs::write(&page, render(&claims, &verdicts)).with_context(|| format!("cannot write {PAGE}"))?;
    }
    if failed > 0 {
        bail!("prove: {failed} of {} claims in {rows} rows are not proved", claims.len());
    }
    println!("prove: {rows} rows, {} claims, all proved; optimized builds refuse the feature", claims.len());
    Ok(())
}

/// Every (row, mark) of the tree with the tests that claim it.
fn claims(trace: &Trace) -> Vec<Claim> {
    let mut claims: BTreeMap<(String, String), BTreeSet<Runner>> = BTreeMap::new();
    for evidence in &trace.evidence {
        for row in &evidence.rows {
            for mark in &evidence.marks {
                claims.entry(pair(row, mark)).or_default().extend(evidence.runner.clone());
            }
        }
    }
    claims.into_iter().map(|((row, mark), runners)| Claim { row, mark, runners }).collect()
}

/// Keeps the claims of the chosen rows.
fn choose(claims: Vec<Claim>, chosen: &Chosen, commit: &str) -> Result<Vec<Claim>> {
    let rows: BTreeSet<String> = claims.iter().map(|claim| claim.row.clone()).collect();
    let keep: BTreeSet<String> = if let Some(count) = chosen.sample {
        let mut ranked: Vec<String> = rows.into_iter().collect();
        ranked.sort_by_key(|row| rank(commit, row));
        ranked.into_iter().take(count).collect()
    } else if chosen.rows.is_empty() {
        rows
    } else {
        if let Some(row) = chosen.rows.iter().find(|row| !rows.contains(*row)) {
            bail!("no test shows {row} by a mark");
        }
        chosen.rows.iter().cloned().collect()
    };
    Ok(claims.into_iter().filter(|claim| keep.contains(&claim.row)).collect())
}

/// Orders rows differently for each commit, and the same for everybody: FNV-1a over both.
fn rank(commit: &str, row: &str) -> u64 {
    let bytes = commit.bytes().chain([b' ']).chain(row.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn commit(root: &Path) -> String {
    git(root, &["rev-parse", "HEAD"]).map_or_else(|| "no commit".to_owned(), |commit| commit.trim().to_owned())
}

/// Judges all claims on as many threads as there are cores; the order of the answers is that of the claims.
fn judge_all(claims: &[Claim], executables: &Executables) -> Result<Vec<Verdict>> {
    let next = AtomicUsize::new(0);
    let plain = Mutex::new(BTreeMap::new());
    let verdicts = Mutex::new(BTreeMap::new());
    let worker = || -> Result<()> {
        while let Some((index, claim)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, claims.get(i)?)))
        {
            let verdict = judge(claim, executables, &plain)?;
            if let Ok(mut verdicts) = verdicts.lock() {
                verdicts.insert(index, verdict);
            }
        }
        Ok(())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        handles.into_iter().try_for_each(|handle| handle.join().unwrap_or_else(|_| bail!("a proof thread panicked")))
    })?;
    let verdicts = verdicts.into_inner().unwrap_or_default();
    if verdicts.len() != claims.len() {
        bail!("{} of {} claims were judged", verdicts.len(), claims.len());
    }
    Ok(verdicts.into_values().collect())
}

/// Each test is green as it is, and at least one turns red under the inversion.
fn judge(claim: &Claim, executables: &Executables, plain: &Mutex<BTreeMap<Runner, Outcome>>) -> Result<Verdict> {
    for runner in &claim.runners {
        let known = plain.lock().ok().and_then(|plain| plain.get(runner).cloned());
        let outcome = match known {
            Some(outcome) => outcome,
            None => executables.run(runner, None)?,
        };
        if let Ok(mut plain) = plain.lock() {
            plain.insert(runner.clone(), outcome.clone());
        }
        match outcome {
            Outcome::Green => {}
            Outcome::Red => {
                return Ok(Verdict::Failed { why: format!("{} is red as it is", runner.shown()) });
            }
            Outcome::Hung => {
                return Ok(Verdict::Failed { why: format!("{} hangs as it is", runner.shown()) });
            }
            Outcome::NotFound => {
                return Ok(Verdict::Failed { why: format!("{} cannot be run", runner.shown()) });
            }
        }
    }
    for runner in &claim.runners {
        match executables.run(runner, Some(&claim.mark))? {
            Outcome::Green | Outcome::NotFound => {}
            Outcome::Red => {
                return Ok(Verdict::Proved { by: runner.clone(), hung: false });
            }
            Outcome::Hung => {
                return Ok(Verdict::Proved { by: runner.clone(), hung: true });
            }
        }
    }
    Ok(Verdict::Failed { why: "every test stays green when the branch is inverted".to_owned() })
}

/// Prints failures and hangs; returns how many claims failed.
fn print(claims: &[Claim], verdicts: &[Verdict]) -> usize {
    let mut failed = 0;
    for (claim, verdict) in claims.iter().zip(verdicts) {
        match verdict {
            Verdict::Proved { hung: false, .. } => {}
            Verdict::Proved { by, hung: true } => {
                println!("prove: {} `{}`: {} hangs, counted as red", claim.row, claim.mark, by.shown());
            }
            Verdict::Failed { why } => {
                failed += 1;
                let tests: Vec<String> = claim.runners.iter().map(Runner::shown).collect();
                println!("prove: {} `{}` NOT PROVED: {why} ({})", claim.row, claim.mark, tests.join(", "));
            }
        }
    }
    failed
}

/// The committed report: the same tree gives the same bytes.
fn render(claims: &[Claim], verdicts: &[Verdict]) -> String {
    let mut page =
        "# Clause proof\n\nGenerated by `cargo xtask trace --prove --all`. Each branch mark was inverted in a \
        build with the feature `prove`; the test named turned red.\n\n| row | mark | verdict |\n|---|---|---|\n"
            .to_owned();
    for (claim, verdict) in claims.iter().zip(verdicts) {
        let verdict = match verdict {
            Verdict::Proved { by, hung: false } => format!("red: {}", by.shown()),
            Verdict::Proved { by, hung: true } => format!("red: {} hangs", by.shown()),
            Verdict::Failed { why } => format!("NOT PROVED: {why}"),
        };
        let _ = writeln!(page, "| {} | `{}` | {verdict} |", claim.row, claim.mark);
    }
    page
}

/// The proved pairs of a committed report.
pub(crate) fn read_page(page: &str) -> BTreeSet<(String, String)> {
    page.lines()
        .filter_map(|line| {
            let (row, rest) = line.strip_prefix("| ")?.split_once(" | `")?;
            let (mark, verdict) = rest.split_once("` | ")?;
            verdict.starts_with("red: ").then(|| pair(row, mark))
        })
        .collect()
}

/// The key of a claim.
pub(crate) fn pair(row: &str, mark: &str) -> (String, String) {
    (row.to_owned(), mark.to_owned())
}

#[cfg(test)]
#[path = "prove_tests.rs"]
mod tests;
