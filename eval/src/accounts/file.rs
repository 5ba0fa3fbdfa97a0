//! The file of the accounts: lines that cite each other, durable one by one.

use super::entry::{Attempt, AttemptEnd, Entry, Fate, PairRecord};
use crate::comparison::MechanismTest;
use closer_contracts::canonical;
use closer_contracts::fault::Fault;
use closer_contracts::id::Key;
use closer_contracts::{Digest, canonical::digest_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Why the accounts could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not what was written.
    #[error("{}, line {line}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// Another process keeps these accounts.
    #[error("another process runs this study")]
    Held,
    /// The entry contradicts what is there.
    #[error("`{0}` is enrolled already")]
    EnrolledBefore(Key),
    /// The entry is about a pair that nobody enrolled.
    #[error("`{0}` is not enrolled")]
    NotEnrolled(Key),
    /// The pair has its fate; a later correction is a revision of the study.
    #[error("`{0}` is settled")]
    Settled(Key),
    /// The study is sealed: nothing is added to it.
    #[error("the study is sealed")]
    Sealed,
    /// An entry has no canonical form.
    #[error("{0}")]
    Fault(#[from] Fault),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// The digest of the line before, and this entry.
    link: Digest,
    entry: Entry,
    /// Whether its words were left out, so that its link is taken as it stands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    withheld: bool,
}

/// Takes the accounts for this process. A program that is just being started holds what its parent held until it runs, so
/// that a lock may outlive its holder by a moment.
fn lock(file: &File) -> Result<(), AccountError> {
    for _ in 0..50 {
        if rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Err(AccountError::Held)
}

fn link(previous: Digest, entry: &Entry) -> Result<Digest, Fault> {
    digest_of(&(previous, entry))
}

/// The accounts of one revision.
#[derive(Debug)]
pub struct Accounts {
    path: PathBuf,
    file: File,
    head: Digest,
    lines: usize,
    pairs: BTreeMap<Key, PairRecord>,
    opened: Option<(Key, u32, Digest)>,
    tested: Option<(Digest, usize, Digest)>,
    sealed: bool,
    redacted: bool,
    withheld: usize,
}

impl Accounts {
    /// Opens the accounts, or begins them. A line that was not written whole is cut off; attempts without an end are entered
    /// as interrupted.
    ///
    /// # Errors
    /// [`AccountError`].
    pub fn open(path: &Path) -> Result<Self, AccountError> {
        let io = |source| AccountError::Io { path: path.to_owned(), source };
        let file = File::options().create(true).truncate(false).read(true).append(true).open(path).map_err(io)?;
        lock(&file)?;
        let (mut accounts, whole) = Self::folded(path, file, false)?;
        accounts.file.set_len(whole).map_err(io)?;
        accounts.end_interrupted()?;
        Ok(accounts)
    }

    /// Reads the accounts and changes nothing.
    ///
    /// # Errors
    /// [`AccountError`].
    pub fn read(path: &Path) -> Result<Self, AccountError> {
        let file = File::open(path).map_err(|source| AccountError::Io { path: path.to_owned(), source })?;
        Ok(Self::folded(path, file, false)?.0)
    }

    /// Reads accounts of which some lines lack their words: their links are taken as they stand, and counted.
    ///
    /// # Errors
    /// [`AccountError`].
    pub fn read_redacted(path: &Path) -> Result<Self, AccountError> {
        let file = File::open(path).map_err(|source| AccountError::Io { path: path.to_owned(), source })?;
        Ok(Self::folded(path, file, true)?.0)
    }

    /// The accounts' file with every reason in words left out; the links stay.
    ///
    /// # Errors
    /// [`AccountError`].
    pub fn without_words(path: &Path) -> Result<Vec<u8>, AccountError> {
        Self::read(path)?;
        let bytes = std::fs::read(path).map_err(|source| AccountError::Io { path: path.to_owned(), source })?;
        let mut kept = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let read: Line = canonical::read(line)?;
            match read.entry.without_words() {
                None => kept.extend_from_slice(line),
                Some(entry) => kept.extend(canonical::to_bytes(&Line { link: read.link, entry, withheld: true })?),
            }
            kept.push(b'\n');
        }
        Ok(kept)
    }

    /// How many lines lack their words.
    #[must_use]
    pub const fn withheld(&self) -> usize {
        self.withheld
    }

    fn folded(path: &Path, file: File, redacted: bool) -> Result<(Self, u64), AccountError> {
        let bytes = std::fs::read(path).map_err(|source| AccountError::Io { path: path.to_owned(), source })?;
        let mut accounts = Self {
            path: path.to_owned(),
            file,
            head: Digest::of(b"closer.accounts.v1"),
            lines: 0,
            pairs: BTreeMap::new(),
            opened: None,
            tested: None,
            sealed: false,
            redacted,
            withheld: 0,
        };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        for line in bytes.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
        {
            accounts.follow(line)?;
        }
        Ok((accounts, whole as u64))
    }

    fn follow(&mut self, line: &[u8]) -> Result<(), AccountError> {
        let (path, number) = (self.path.clone(), self.lines + 1);
        let damaged = |reason: String| AccountError::Damaged { path: path.clone(), line: number, reason };
        let line: Line = canonical::read(line).map_err(|fault| damaged(fault.to_string()))?;
        let taken_as_it_stands = line.withheld && self.redacted;
        self.withheld += usize::from(taken_as_it_stands);
        if !taken_as_it_stands && (line.withheld || link(self.head, &line.entry)? != line.link) {
            return Err(damaged("it does not follow from the line before".to_owned()));
        }
        let checked = self.check(&line.entry);
        checked.map_err(|error| damaged(error.to_string()))?;
        self.fold(line.entry, line.link);
        Ok(())
    }

    /// What an entry may say now.
    fn check(&self, entry: &Entry) -> Result<(), AccountError> {
        let pending = |pair: &Key| match self.pairs.get(pair) {
            None => Err(AccountError::NotEnrolled(pair.clone())),
            Some(record) if record.fate != Fate::Pending => Err(AccountError::Settled(pair.clone())),
            Some(_) => Ok(()),
        };
        if self.sealed {
            return Err(AccountError::Sealed);
        }
        match entry {
            Entry::Enrolled { pair, .. } if self.pairs.contains_key(pair) => {
                Err(AccountError::EnrolledBefore(pair.clone()))
            }
            Entry::Opened { .. } | Entry::Enrolled { .. } | Entry::Tested { .. } | Entry::Sealed { .. } => Ok(()),
            Entry::Called(call) => pending(&call.attempt.pair),
            Entry::Committed { pair, .. } | Entry::Compared { pair, .. } | Entry::Settled { pair, .. } => pending(pair),
            Entry::Began(attempt) | Entry::Ended { attempt, .. } => pending(&attempt.pair),
        }
    }

    fn fold(&mut self, entry: Entry, link: Digest) {
        self.head = link;
        self.lines += 1;
        match entry {
            Entry::Opened { study, revision, freeze } => self.opened = Some((study, revision, freeze)),
            Entry::Enrolled { pair, item, kind, family, cluster } => {
                let record = PairRecord {
                    item,
                    kind,
                    family,
                    cluster,
                    store: None,
                    compared: None,
                    attempts: Vec::new(),
                    calls: Vec::new(),
                    fate: Fate::Pending,
                    reason: None,
                };
                self.pairs.insert(pair, record);
            }
            Entry::Committed { pair, store } => self.with(&pair, |record| record.store = Some(store)),
            Entry::Compared { pair, a, b, difference, state } => {
                self.with(&pair, |record| record.compared = Some([a, b, difference, state]));
            }
            Entry::Began(attempt) => {
                let pair = attempt.pair.clone();
                self.with(&pair, |record| record.attempts.push((attempt, None)));
            }
            Entry::Ended { attempt, end } => {
                let pair = attempt.pair.clone();
                self.with(&pair, |record| {
                    if let Some(begun) = record.attempts.iter_mut().find(|(begun, _)| *begun == attempt) {
                        begun.1 = Some(end);
                    }
                });
            }
            Entry::Settled { pair, cause, reason } => self.with(&pair, |record| {
                record.fate = cause.map_or(Fate::Valid, Fate::Invalid);
                record.reason = reason;
            }),
            Entry::Called(call) => {
                let pair = call.attempt.pair.clone();
                self.with(&pair, |record| record.calls.push(*call));
            }
            Entry::Tested { build, valid } => self.tested = Some((build, valid, link)),
            Entry::Sealed { .. } => self.sealed = true,
        }
    }

    fn with(&mut self, pair: &Key, change: impl FnOnce(&mut PairRecord)) {
        if let Some(record) = self.pairs.get_mut(pair) {
            change(record);
        }
    }

    /// Enters a line; it is durable when this returns.
    ///
    /// # Errors
    /// [`AccountError`]; nothing was entered then.
    pub fn enter(&mut self, entry: Entry) -> Result<(), AccountError> {
        self.check(&entry)?;
        let link = link(self.head, &entry)?;
        let mut line = canonical::to_bytes(&Line { link, entry: entry.clone(), withheld: false })?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        written.map_err(|source| AccountError::Io { path: self.path.clone(), source })?;
        self.fold(entry, link);
        Ok(())
    }

    fn end_interrupted(&mut self) -> Result<(), AccountError> {
        let attempts = self.pairs.values().flat_map(|record| &record.attempts);
        let without: Vec<Attempt> =
            attempts.filter(|(_, end)| end.is_none()).map(|(attempt, _)| attempt.clone()).collect();
        for attempt in without {
            self.enter(Entry::Ended { attempt, end: AttemptEnd::interrupted() })?;
        }
        Ok(())
    }

    /// Every enrolled pair, in order of their names.
    #[must_use]
    pub const fn pairs(&self) -> &BTreeMap<Key, PairRecord> {
        &self.pairs
    }

    /// Study, revision and freeze, once they are entered.
    #[must_use]
    pub const fn opened(&self) -> Option<&(Key, u32, Digest)> {
        self.opened.as_ref()
    }

    /// The mechanism test as it was entered, with the accounts' head at that line; none before.
    #[must_use]
    pub fn tested(&self) -> Option<MechanismTest> {
        let (build, valid, accounts) = self.tested?;
        Some(MechanismTest { build, accounts, valid })
    }

    /// Whether every output is in.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// The digest of the newest line, which covers all before it.
    #[must_use]
    pub const fn head(&self) -> Digest {
        self.head
    }
}
