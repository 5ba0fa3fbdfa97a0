//! The thread that follows the log: opens or sets aside, catches up from disk, then applies what it is handed.

use super::rows::{self, Mark};
use super::tree::{Rows, Tree, Trouble};
use super::{Committed, Inner, POSITION_STEP, Phase, StateSink, VALUE_BYTES_MAX};
use crate::log::Shared;
use closer_contracts::record::{Cursor, Record};
use closer_contracts::refs::StateRef;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Records applied as one batch while catching up.
const RECORDS_PER_BATCH: usize = 1024;
/// Appends applied as one batch while following, at most.
const APPENDS_PER_BATCH: usize = 1024;
/// With fewer appends waiting the worker lets more come, so that a hot key is written once for many of them.
const APPENDS_AT_ONCE: usize = 256;
/// How long it lets them come.
const LINGER: Duration = Duration::from_millis(20);
/// After so many failures in a row without a record applied in between, the log goes on without derived state.
const FAILURES_MAX: u32 = 3;

struct Worker<'a> {
    inner: &'a Inner,
    log: &'a Shared,
    sink: Option<Box<dyn StateSink>>,
    boot: String,
    applied: Cursor,
    state: Option<StateRef>,
}

/// Follows the log until the derived state is closed.
pub(super) fn run(inner: &Inner, log: &Shared, sink: Option<Box<dyn StateSink>>) {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
    let mut worker = Worker { inner, log, sink, boot, applied: Cursor(0), state: None };
    let mut failures = 0;
    while !worker.closing() {
        let reached = worker.applied;
        let Err(trouble) = worker.follow() else { break };
        failures = if worker.applied > reached { 0 } else { failures + 1 };
        tracing::warn!(why = trouble.0, applied = worker.applied.0, "the derived state is set aside and rebuilt");
        worker.set_aside();
        if failures >= FAILURES_MAX {
            tracing::error!("the derived state cannot be built; the log goes on without it");
            let mut follow = inner.follow();
            (follow.phase, follow.trouble) = (Phase::Aside, Some(trouble.0.into()));
            drop(follow);
            inner.changed.notify_all();
            return;
        }
    }
    if let Some(tree) = inner.tree().take()
        && let Err(trouble) = tree.flush()
    {
        tracing::warn!(why = trouble.0, "the derived state did not close cleanly");
    }
}

impl Worker<'_> {
    fn closing(&self) -> bool {
        self.inner.closing.load(Ordering::Relaxed)
    }

    /// Opens what is there, or starts anew, and follows. Returns at closing, or with what went wrong.
    fn follow(&mut self) -> Result<(), Trouble> {
        self.open()?;
        loop {
            self.catch_up()?;
            if self.closing() {
                return Ok(());
            }
            self.begin_following()?;
            self.take_what_comes()?;
            if self.closing() {
                return Ok(());
            }
        }
    }

    /// From here on records are handed over, unless somebody doubts the rows.
    fn begin_following(&self) -> Result<(), Trouble> {
        let mut follow = self.inner.follow();
        if let Some(why) = follow.doubt {
            return Err(Trouble(why.into()));
        }
        follow.phase = Phase::Following;
        drop(follow);
        self.inner.changed.notify_all();
        Ok(())
    }

    fn open(&mut self) -> Result<(), Trouble> {
        self.inner.follow().doubt = None;
        let opened = self.inner.tree().take();
        let tree = opened.map_or_else(|| Tree::open(&self.inner.folder), Ok)?;
        let mark = tree.get(rows::MARK)?.map(|value| Mark::decode(&value).ok_or(Trouble("unreadable mark".into())));
        match mark.transpose()? {
            None if tree.is_empty()? => self.applied = Cursor(0),
            None => return Err(Trouble("rows without a mark".into())),
            Some(mark) if mark.boot != self.boot => return Err(Trouble("written before the machine restarted".into())),
            Some(mark) => match self.log.chain_at(mark.applied) {
                Ok(chain) if chain == mark.chain => self.applied = mark.applied,
                Ok(_) | Err(_) => return Err(Trouble("it does not fit the log".into())),
            },
        }
        self.state = tree.get(rows::STATE)?.and_then(|value| rows::state(&value));
        self.inner.follow().applied = self.applied;
        *self.inner.tree() = Some(tree);
        Ok(())
    }

    /// Drops the tree and moves its folder out of the way.
    fn set_aside(&mut self) {
        *self.inner.tree() = None;
        let aside = self.inner.folder.with_extension("aside");
        if let Err(error) = remove(&aside).and_then(|()| move_if_there(&self.inner.folder, &aside)) {
            tracing::error!(%error, "the derived state's folder could not be moved");
        }
        (self.applied, self.state) = (Cursor(0), None);
        let mut follow = self.inner.follow();
        follow.phase = Phase::CatchingUp;
        follow.applied = Cursor(0);
        follow.queue.clear();
        (follow.lag_bytes, follow.oldest) = (0, None);
        follow.set_aside_count += 1;
    }

    /// Applies what the log holds beyond the rows.
    fn catch_up(&mut self) -> Result<(), Trouble> {
        let reached = self.applied;
        while !self.closing() && self.applied < self.log.durable_end() {
            self.doubt()?;
            let mut batch = Vec::new();
            let with_bodies = self.sink.is_some();
            let from = Cursor(self.applied.0 + 1);
            let read = self.log.replay_batches(from, with_bodies, &mut |cursor, record, ends_batch| {
                batch.push((cursor, record.clone()));
                batch.len() < RECORDS_PER_BATCH || !ends_batch
            });
            read.map_err(|error| Trouble(error.to_string()))?;
            let Some((last, _)) = batch.last() else { return Ok(()) };
            let last = *last;
            let chain = self.log.chain_at(last).map_err(|error| Trouble(error.to_string()))?;
            let mut rows = Rows::new();
            for (cursor, record) in &batch {
                self.derive(*cursor, record, &mut rows)?;
            }
            self.apply(rows, last, chain)?;
        }
        // Rows that were built count once they are on disk: a full one says so here at the latest.
        match &*self.inner.tree() {
            Some(tree) if self.applied > reached => tree.flush(),
            Some(_) | None => Ok(()),
        }
    }

    /// Applies handed-over records until there is a gap, a doubt or the end.
    fn take_what_comes(&mut self) -> Result<(), Trouble> {
        loop {
            let mut batch = {
                let mut follow = self.inner.follow();
                while follow.queue.is_empty() && follow.doubt.is_none() && !self.closing() {
                    follow = self.inner.changed.wait(follow).unwrap_or_else(PoisonError::into_inner);
                }
                if follow.queue.len() < APPENDS_AT_ONCE && follow.doubt.is_none() && !self.closing() {
                    drop(follow);
                    std::thread::sleep(LINGER);
                    follow = self.inner.follow();
                }
                let count = follow.queue.len().min(APPENDS_PER_BATCH);
                follow.queue.drain(..count).map(|(_, committed)| committed).collect::<Vec<_>>()
            };
            self.doubt()?;
            if self.closing() {
                return Ok(());
            }
            batch.retain(|committed| committed.first > self.applied);
            if batch.first().is_some_and(|committed| committed.first.0 != self.applied.0 + 1) {
                return Ok(());
            }
            self.apply_committed(&batch)?;
        }
    }

    fn apply_committed(&mut self, batch: &[Committed]) -> Result<(), Trouble> {
        let Some(last) = batch.last() else { return Ok(()) };
        let mut rows = Rows::new();
        for committed in batch {
            for (cursor, record) in (committed.first.0..).map(Cursor).zip(committed.records.iter()) {
                self.derive(cursor, record, &mut rows)?;
            }
        }
        self.apply(rows, last.last, last.chain)?;
        let mut follow = self.inner.follow();
        follow.lag_bytes = follow.lag_bytes.saturating_sub(batch.iter().map(|committed| committed.bytes).sum());
        follow.oldest = follow.queue.first().map(|(since, _)| *since);
        Ok(())
    }

    /// Ends the following when somebody found a row missing or wrong.
    fn doubt(&self) -> Result<(), Trouble> {
        match self.inner.follow().doubt {
            Some(why) => Err(Trouble(why.into())),
            None => Ok(()),
        }
    }

    /// The rows of one record.
    fn derive(&mut self, cursor: Cursor, record: &Record, rows: &mut Rows) -> Result<(), Trouble> {
        let at = cursor.0.to_be_bytes().to_vec();
        rows.insert(rows::record_key(record.kind, &record.id), Some(at.clone()));
        for link in record.links.iter().filter(|link| link.position.0 % POSITION_STEP == 0) {
            rows.insert(rows::position_key(&link.stream, link.position), Some(at.clone()));
        }
        let Some(change) = self.sink.as_mut().and_then(|sink| sink.changes(cursor, record)) else {
            return Ok(());
        };
        if change.parent != self.state {
            return Err(Trouble(format!("the rows stand for another state than the parent of record {}", cursor.0)));
        }
        for row in change.rows {
            if row.value.as_ref().is_some_and(|value| value.len() > VALUE_BYTES_MAX) {
                return Err(Trouble(format!("the row {}/{} is too large", row.kind, row.id)));
            }
            rows.insert(rows::row_key(row.kind, &row.id), row.value);
        }
        rows.insert(rows::receipt_key(change.next.version), Some(change.receipt.raw().to_vec()));
        rows.insert(rows::STATE.to_vec(), Some(rows::state_value(change.next)));
        self.state = Some(change.next);
        Ok(())
    }

    fn apply(&mut self, mut rows: Rows, last: Cursor, chain: closer_contracts::Digest) -> Result<(), Trouble> {
        let mark = Mark { applied: last, chain, boot: self.boot.clone() };
        rows.insert(rows::MARK.to_vec(), Some(mark.encode()));
        match &*self.inner.tree() {
            Some(tree) => tree.apply(rows)?,
            None => return Err(Trouble("the index is not open".into())),
        }
        self.applied = last;
        self.inner.follow().applied = last;
        self.inner.changed.notify_all();
        Ok(())
    }
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn move_if_there(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
