//! A study in a folder of its own.

use closer_eval::accounts::Accounts;
use closer_eval::item::StudyItem;
use closer_eval::plan::Plan;
use closer_eval::runner::{self, ACCOUNTS, Options, Ran, RunError};
use closer_eval::suite::{Family, Suite, generate};
use closer_eval::{freeze, report};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) struct Study {
    folder: TempDir,
}

pub(crate) const FOLLOWS: &str = "kind = \"synthetic\"\nfollows = 90\nguesses = 30\n";

pub(crate) fn plan(participant: &str, more: &str) -> String {
    format!(
        "study = \"demo\"\nitems = \"items.jsonl\"\ntruth = \"truth.jsonl\"\nseed = 11\n{more}\n[participant]\n{participant}\n\
         [resources]\ncalls = 1000\ntokens = 1000000\nreasoning_tokens = \"counted\"\ncached_tokens = \"counted\"\n\
         cost_micros = 1000000\ncurrency = \"EUR\"\nwall_ms = 600000\nconcurrency = 2\n\
         [analysis]\nmethod = \"t\"\nmargin_percent = 10\nfamilies = [\"supported_continuation\"]\nresamples = 200\n\
         [expected]\ndiscordance_percent = 60\ndifference_percent = 40\n"
    )
}

impl Study {
    pub(crate) fn new(suite: &Suite, plan: &str) -> Self {
        let study = Self { folder: tempfile::tempdir().unwrap() };
        suite.write(&study.at("items.jsonl"), &study.at("truth.jsonl")).unwrap();
        std::fs::write(study.plan(), plan).unwrap();
        study
    }

    /// Supported continuation, so many items, with this participant; the controls are none unless `more` says so.
    pub(crate) fn of(items: usize, participant: &str) -> Self {
        Self::changed(items, participant, |_| {})
    }

    pub(crate) fn changed(items: usize, participant: &str, change: impl FnOnce(&mut Vec<StudyItem>)) -> Self {
        let mut suite = generate(&[Family::SupportedContinuation], items, 3).unwrap();
        change(&mut suite.items);
        Self::new(&suite, &plan(participant, "controls = []"))
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn plan(&self) -> PathBuf {
        self.at("plan.toml")
    }

    pub(crate) fn revision(&self, number: u32) -> PathBuf {
        self.at(&format!("demo-revision-{number}"))
    }

    pub(crate) fn freeze(&self) -> u32 {
        freeze::freeze(&Plan::read(&self.plan()).unwrap(), self.folder.path()).unwrap().0.revision
    }

    pub(crate) fn run(&self) -> Result<Ran, RunError> {
        self.run_with(None)
    }

    pub(crate) fn run_with(&self, cost_micros_max: Option<u64>) -> Result<Ran, RunError> {
        let own = vec![env!("CARGO_BIN_EXE_closer-participant").into()];
        let build = closer_contracts::Digest::of(b"this build");
        runner::run(&self.plan(), &Options { own, build, cost_micros_max }, &|_| {})
    }

    /// Frozen, run, reported: the accounts and every file of the report.
    pub(crate) fn reported(&self) -> (Accounts, BTreeMap<String, Vec<u8>>) {
        let revision = self.revision(self.freeze());
        self.run().unwrap();
        (self.accounts(&revision), self.report(&revision))
    }

    pub(crate) fn accounts(&self, revision: &Path) -> Accounts {
        Accounts::read(&revision.join(ACCOUNTS)).unwrap()
    }

    pub(crate) fn report(&self, revision: &Path) -> BTreeMap<String, Vec<u8>> {
        report::keep_sources(&self.plan(), revision).unwrap();
        report::write(revision).unwrap();
        assert!(report::verify(revision).unwrap() > 8);
        report::make(revision).unwrap()
    }
}

/// A table of a report: one map per row.
pub(crate) fn table(files: &BTreeMap<String, Vec<u8>>, name: &str) -> Vec<BTreeMap<String, String>> {
    let text = String::from_utf8(files[name].clone()).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| head.iter().map(|name| (*name).to_owned()).zip(fields(line)).collect()).collect()
}

fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(character),
        }
    }
    fields
}

pub(crate) fn figures(files: &BTreeMap<String, Vec<u8>>) -> serde_json::Value {
    serde_json::from_slice(&files["figures.json"]).unwrap()
}
