//! The clause trace: every requirement row, the branch that carries it, and the tests and scenarios that show it.
//!
//! Generates `docs/spec-trace.md`. A row once shown there, in any commit, must not be lost again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::{Findings, report};
use crate::source::{self, Sources};

mod catalogue;
mod evidence;
mod page;
mod prove;

use catalogue::{Catalogue, Row};
use evidence::Evidence;
pub(crate) use evidence::scenario_names;

/// The generated page, relative to the workspace root.
const PAGE: &str = "docs/spec-trace.md";

/// A test that claims more rows than this shows none of them clearly.
const ROWS_PER_TEST_MAX: usize = 3;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Fails when docs/spec-trace.md is not what would be generated; writes nothing
    #[arg(long)]
    check: bool,
    /// Inverts the branch of each chosen row and demands that a test of the row turns red; writes nothing but, with
    /// `--all`, docs/spec-trace-proof.md
    #[arg(long)]
    prove: bool,
    #[command(flatten)]
    chosen: Chosen,
}

/// Which rows to prove.
#[derive(Debug, clap::Args)]
#[group(multiple = false, requires = "prove")]
pub(crate) struct Chosen {
    /// Row ids, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "CP-..")]
    rows: Vec<String>,
    /// This many rows, picked by the digest of the current commit
    #[arg(long, value_name = "COUNT")]
    sample: Option<usize>,
    /// Every row a branch carries; writes docs/spec-trace-proof.md
    #[arg(long)]
    all: bool,
}

/// What the tree says about its requirement rows.
#[derive(Debug)]
pub(crate) struct Trace {
    catalogues: Vec<Catalogue>,
    evidence: Vec<Evidence>,
    marks: BTreeSet<String>,
}

/// Runs `cargo xtask trace`.
///
/// # Errors
/// When a check finds something, or a chosen row is not proved.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    if args.prove {
        return prove(root, &args.chosen);
    }
    if args.check {
        return report("trace", check(root)?);
    }
    regenerate(root)
}

/// Writes `docs/spec-trace.md` unless the tree's claims are wrong or a row would be lost.
///
/// # Errors
/// When the claims do not hold together or the file cannot be written.
pub(crate) fn regenerate(root: &Path) -> Result<()> {
    let trace = Trace::read(root, &source::load(root)?)?;
    let findings = trace.findings(&shown_before(root));
    report("trace", findings)?;
    let page = page::render(&trace, &proved(root));
    std::fs::write(root.join(PAGE), page).with_context(|| format!("cannot write {PAGE}"))
}

/// Checks claims, losses and that the committed page is current.
///
/// # Errors
/// When the tree cannot be read.
pub(crate) fn check(root: &Path) -> Result<Findings> {
    let trace = Trace::read(root, &source::load(root)?)?;
    let mut findings = trace.findings(&shown_before(root));
    let committed = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    if committed != page::render(&trace, &proved(root)) {
        findings.errors.push(format!("{PAGE} is not current: run `cargo xtask fix`"));
    }
    Ok(findings)
}

/// Proves a sample of `count` rows, picked by the current commit.
///
/// # Errors
/// When a row of the sample is not proved, or the proof cannot run.
pub(crate) fn prove_sample(root: &Path, count: usize) -> Result<()> {
    prove(root, &Chosen { rows: Vec::new(), sample: Some(count), all: false })
}

fn prove(root: &Path, chosen: &Chosen) -> Result<()> {
    let trace = Trace::read(root, &source::load(root)?)?;
    prove::run(root, &trace, chosen)
}

impl Trace {
    /// Collects rows, claims and marks of the tree.
    ///
    /// # Errors
    /// When a catalogue or scenario cannot be read.
    pub(crate) fn read(root: &Path, sources: &Sources) -> Result<Self> {
        let mut evidence = evidence::of_tests(sources);
        evidence.extend(evidence::of_scenarios(root)?);
        let marks = sources.marks().into_keys().map(str::to_owned).collect();
        Ok(Self { catalogues: catalogue::read(root)?, evidence, marks })
    }

    /// The rows built now.
    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.catalogues.iter().filter(|catalogue| catalogue.is_built_now).flat_map(|catalogue| &catalogue.rows)
    }

    /// The claims on each row.
    fn by_row(&self) -> BTreeMap<&str, Vec<&Evidence>> {
        let mut by_row: BTreeMap<&str, Vec<&Evidence>> = BTreeMap::new();
        for evidence in &self.evidence {
            for row in &evidence.rows {
                by_row.entry(row.as_str()).or_default().push(evidence);
            }
        }
        by_row
    }

    /// Claims that do not hold together, and rows of `shown_before` that nothing shows any more.
    fn findings(&self, shown_before: &BTreeSet<String>) -> Findings {
        let mut findings = Findings::default();
        let known: BTreeMap<&str, &Row> =
            self.catalogues.iter().flat_map(|catalogue| &catalogue.rows).map(|row| (row.id.as_str(), row)).collect();
        for evidence in &self.evidence {
            let place = &evidence.place;
            if evidence.rows.is_empty() || evidence.rows.len() > ROWS_PER_TEST_MAX {
                let count = evidence.rows.len();
                findings.errors.push(format!("{place}: shows {count} rows; one to {ROWS_PER_TEST_MAX} are allowed"));
            }
            for row in &evidence.rows {
                match known.get(row.as_str()) {
                    None => findings.errors.push(format!("{place}: no catalogue has a row `{row}`")),
                    Some(row) if row.is_withdrawn => {
                        findings.errors.push(format!("{place}: row `{}` is withdrawn", row.id));
                    }
                    Some(_) => {}
                }
            }
            for mark in evidence.marks.iter().filter(|mark| !self.marks.contains(*mark)) {
                findings.errors.push(format!("{place}: no branch carries the mark `{mark}`"));
            }
            if evidence.runner.is_none() {
                findings.errors.push(format!("{place}: `shows!` must be the first statement of a test"));
            }
        }
        let shown = self.by_row();
        for lost in shown_before.iter().filter(|row| !shown.contains_key(row.as_str())) {
            if known.get(lost.as_str()).is_some_and(|row| !row.is_withdrawn) {
                findings.errors.push(format!("{lost} was shown before and is lost"));
            }
        }
        let cited: BTreeSet<&String> = self.evidence.iter().flat_map(|evidence| &evidence.marks).collect();
        for mark in self.marks.iter().filter(|mark| !cited.contains(mark)) {
            findings.notices.push(format!("no test cites the mark `{mark}`"));
        }
        let due = self.rows().filter(|row| row.is_due()).count();
        let due_shown = self.rows().filter(|row| row.is_due() && shown.contains_key(row.id.as_str())).count();
        findings.summary = format!("{} rows shown, of {due} due rows {due_shown}", shown.len());
        findings
    }
}

/// Rows shown by the page in the working tree or in any commit that touched it.
fn shown_before(root: &Path) -> BTreeSet<String> {
    let mut shown = page::shown(&std::fs::read_to_string(root.join(PAGE)).unwrap_or_default());
    let commits = git(root, &["log", "--format=%H", "--", PAGE]).unwrap_or_default();
    for commit in commits.lines() {
        shown.extend(page::shown(&git(root, &["show", &format!("{commit}:{PAGE}")]).unwrap_or_default()));
    }
    shown
}

/// Proved (row, mark) pairs of the committed proof.
fn proved(root: &Path) -> BTreeSet<(String, String)> {
    prove::read_page(&std::fs::read_to_string(root.join(prove::PAGE)).unwrap_or_default())
}

/// The output of git, or `None` where there is no repository, no commit or no git.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
