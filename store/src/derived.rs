//! The derived state: indexes and semantic state rows in sled, written behind the log and never trusted for absence.
//!
//! sled survives most killed processes but not a lost machine, so nothing here is the only copy of anything. Rows are
//! written in log order as plain batches on one tree, each with the cursor it brings the state to. On any doubt the
//! folder is set aside and rebuilt from the log, beside the running log, which does not wait for it.
//!
//! | key | value |
//! |---|---|
//! | `i` kind 0 id | cursor of the newest record of this kind and id |
//! | `p` stream 0 position | cursor, for every 64th position of a stream; between them records lead back one by one |
//! | `r` version | the digest of the receipt of the change that led to that version of the state |
//! | `s` | the `StateRef` that the rows stand for |
//! | `v` kind 0 id | a semantic row of the layer above |
//! | `z` | the applied cursor, the log's chain there, the boot id |

mod rows;
mod tree;
mod worker;

use crate::error::StoreError;
use crate::log::Shared;
use closer_contracts::Digest;
use closer_contracts::record::{Cursor, Position, Record, RecordKind, StreamId};
use closer_contracts::refs::StateRef;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tree::Tree;

/// The most bytes the derived state may lag behind before ordinary work is `Busy`.
pub const LAG_BYTES_MAX: usize = 64 << 20;
/// The longest it may lag behind before ordinary work is `Busy`.
pub const LAG_TIME_MAX: Duration = Duration::from_secs(2);
/// The most bytes of a row's value.
pub const VALUE_BYTES_MAX: usize = 1024;
/// A stream's position is indexed when it is a multiple of this.
pub(crate) const POSITION_STEP: u64 = 64;

/// What one record changes in the semantic rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateChange {
    /// The state it was decided on; nothing for the founding record.
    pub parent: Option<StateRef>,
    /// The state it leads to.
    pub next: StateRef,
    /// The digest of its receipt.
    pub receipt: Digest,
    /// The rows that change.
    pub rows: Vec<StateRow>,
}

/// One semantic row: where the value stands, or its digest; at most [`VALUE_BYTES_MAX`] bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRow {
    /// The kind of thing, without NUL.
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// The value, or nothing for a row that goes.
    pub value: Option<Vec<u8>>,
}

/// The layer above, asked about every record in log order: once as it is written, and again whenever rows are rebuilt.
///
/// The answer must depend on the record alone, so that a rebuild writes the same rows.
pub trait StateSink: Send {
    /// What this record changes, if anything.
    fn changes(&mut self, cursor: Cursor, record: &Record) -> Option<StateChange>;
}

/// Records that became durable, for the derived state.
pub(crate) struct Committed {
    pub(crate) first: Cursor,
    pub(crate) last: Cursor,
    pub(crate) records: Arc<[Record]>,
    pub(crate) bytes: usize,
    pub(crate) chain: Digest,
}

/// How the derived state stands to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It is being opened or rebuilt; nothing is answered from it.
    CatchingUp,
    /// It follows the log.
    Following,
    /// It cannot be built; the log goes on without it.
    Aside,
}

/// How far the derived state follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DerivedStatus {
    /// How it stands to the log.
    pub phase: Phase,
    /// The last record it holds.
    pub applied: Cursor,
    /// Bytes of records that wait for it.
    pub lag_bytes: usize,
    /// How often it was set aside since the log was opened.
    pub set_aside_count: u32,
}

struct Follow {
    phase: Phase,
    queue: Vec<(Instant, Committed)>,
    lag_bytes: usize,
    /// When the oldest waiting record became durable.
    oldest: Option<Instant>,
    applied: Cursor,
    set_aside_count: u32,
    doubt: Option<&'static str>,
    /// Why it cannot be built.
    trouble: Option<Arc<str>>,
}

struct Inner {
    folder: PathBuf,
    follow: Mutex<Follow>,
    changed: Condvar,
    tree: Mutex<Option<Tree>>,
    closing: AtomicBool,
}

/// The derived state of one log.
pub struct Derived {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Inner {
    fn follow(&self) -> MutexGuard<'_, Follow> {
        self.follow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tree(&self) -> MutexGuard<'_, Option<Tree>> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn distrust(&self, why: &'static str) {
        let mut follow = self.follow();
        if follow.phase == Phase::Aside {
            return;
        }
        follow.phase = Phase::CatchingUp;
        follow.doubt.get_or_insert(why);
        follow.queue.clear();
        (follow.lag_bytes, follow.oldest) = (0, None);
        drop(follow);
        self.changed.notify_all();
    }
}

impl Derived {
    /// A derived state that is not yet open.
    pub(crate) fn new(folder: PathBuf) -> Self {
        let follow = Follow {
            phase: Phase::CatchingUp,
            queue: Vec::new(),
            lag_bytes: 0,
            oldest: None,
            applied: Cursor(0),
            set_aside_count: 0,
            doubt: None,
            trouble: None,
        };
        let inner = Inner {
            folder,
            follow: Mutex::new(follow),
            changed: Condvar::new(),
            tree: Mutex::new(None),
            closing: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner), thread: Mutex::new(None) }
    }

    /// Opens the rows and gives the last record that they hold: it was durable once. What cannot be opened or read knows
    /// nothing, and is seen to later.
    pub(crate) fn known(&self) -> Option<Cursor> {
        // Absent rows are not made here, and rows that cannot be written cannot be opened.
        rustix::fs::access(&self.inner.folder, rustix::fs::Access::WRITE_OK).ok()?;
        let tree = Tree::open(&self.inner.folder).ok()?;
        let mark = tree.get(rows::MARK).ok().flatten().and_then(|value| rows::Mark::decode(&value));
        *self.inner.tree() = Some(tree);
        mark.map(|mark| mark.applied)
    }

    /// Leaves the rows as they are; the log goes on without them.
    pub(crate) fn stand_aside(&self) {
        *self.inner.tree() = None;
        self.inner.follow().phase = Phase::Aside;
    }

    /// Opens it on a thread of its own and follows the log from then on.
    pub(crate) fn start(&self, log: Arc<Shared>, sink: Option<Box<dyn StateSink>>) -> Result<(), StoreError> {
        let inner = Arc::clone(&self.inner);
        let thread = std::thread::Builder::new().name("closer-derived".into());
        let thread =
            thread.spawn(move || worker::run(&inner, &log, sink)).map_err(StoreError::io("starting a thread"))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Hands over what became durable. While it catches up it reads the log instead.
    pub(crate) fn feed(&self, committed: Vec<Committed>) {
        let mut follow = self.inner.follow();
        if follow.phase != Phase::Following || committed.is_empty() {
            return;
        }
        let now = Instant::now();
        follow.lag_bytes += committed.iter().map(|committed| committed.bytes).sum::<usize>();
        follow.oldest.get_or_insert(now);
        follow.queue.extend(committed.into_iter().map(|committed| (now, committed)));
        drop(follow);
        self.inner.changed.notify_all();
    }

    /// Whether ordinary work must wait for it.
    pub(crate) fn lags(&self) -> bool {
        let follow = self.inner.follow();
        follow.lag_bytes > LAG_BYTES_MAX || follow.oldest.is_some_and(|oldest| oldest.elapsed() > LAG_TIME_MAX)
    }

    /// Sets it aside and rebuilds it.
    pub(crate) fn distrust(&self, why: &'static str) {
        self.inner.distrust(why);
    }

    /// Whether it should know the record at this cursor.
    pub(crate) fn covers(&self, cursor: Cursor) -> bool {
        let follow = self.inner.follow();
        follow.phase == Phase::Following && cursor <= follow.applied
    }

    /// The newest record of this kind and id that it knows.
    pub(crate) fn find(&self, kind: RecordKind, id: &str) -> Option<Cursor> {
        self.ask(|tree| tree.get(&rows::record_key(kind, id)))?.and_then(|value| rows::cursor(&value))
    }

    /// A record of the stream at the position or up to [`POSITION_STEP`] after it, if it knows one.
    pub(crate) fn near(&self, stream: &StreamId, position: Position) -> Option<Cursor> {
        let (from, to) = rows::position_range(stream, position);
        self.ask(|tree| tree.first(&from, &to))?.and_then(|value| rows::cursor(&value))
    }

    /// The state that the semantic rows stand for.
    #[must_use]
    pub fn state(&self) -> Option<StateRef> {
        self.ask(|tree| tree.get(rows::STATE))?.and_then(|value| rows::state(&value))
    }

    /// A semantic row. A missing row proves nothing.
    #[must_use]
    pub fn row(&self, kind: &str, id: &str) -> Option<Vec<u8>> {
        self.ask(|tree| tree.get(&rows::row_key(kind, id)))?
    }

    /// Asks the tree if it follows the log; any trouble sets it aside.
    fn ask<T>(&self, question: impl FnOnce(&Tree) -> Result<T, tree::Trouble>) -> Option<T> {
        if self.inner.follow().phase != Phase::Following {
            return None;
        }
        let answer = self.inner.tree().as_ref().map(question)?;
        if answer.is_err() {
            self.inner.distrust("the index could not be read");
        }
        answer.ok()
    }

    /// How far it follows.
    #[must_use]
    pub fn status(&self) -> DerivedStatus {
        let follow = self.inner.follow();
        DerivedStatus {
            phase: follow.phase,
            applied: follow.applied,
            lag_bytes: follow.lag_bytes,
            set_aside_count: follow.set_aside_count,
        }
    }

    /// Waits until it holds everything up to `cursor`; false if it is set aside for good or the time is over.
    #[must_use]
    pub fn wait_for(&self, cursor: Cursor, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut follow = self.inner.follow();
        loop {
            if follow.phase == Phase::Following && follow.applied >= cursor {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || follow.phase == Phase::Aside {
                return false;
            }
            follow = self.inner.changed.wait_timeout(follow, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Throws it away and builds it from the log up to `end`, telling how far it is.
    ///
    /// # Errors
    /// `Derived` if it cannot be built, with what keeps it from that; `Closed` while the log is being closed.
    pub fn rebuild(&self, end: Cursor, progress: &mut dyn FnMut(Cursor)) -> Result<(), StoreError> {
        self.inner.distrust("a rebuild was asked for");
        while !self.wait_for(end, Duration::from_millis(100)) {
            let status = self.status();
            if status.phase == Phase::Aside {
                let trouble = self.inner.follow().trouble.clone();
                return Err(trouble.map_or(StoreError::Closed, StoreError::Derived));
            }
            if self.inner.closing.load(Ordering::Relaxed) {
                return Err(StoreError::Closed);
            }
            progress(status.applied);
        }
        progress(end);
        Ok(())
    }

    /// Stops following; what is missing is caught up when it is opened again.
    pub(crate) fn close(&self) {
        self.inner.closing.store(true, Ordering::Relaxed);
        self.inner.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the derived state's thread panicked");
        }
    }
}
