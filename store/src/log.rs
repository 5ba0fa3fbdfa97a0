//! The record log: one fenced append, read by stream or from a cursor.
//!
//! ```text
//! submit: guards, cursors, queue ──► writer: encode, write, fdatasync ──► tickets, tails, derived state
//!         (any thread, one lock)             (one thread, one group)
//! ```
//!
//! The log compares and stores; it knows no policy and no clock. One lock covers heads, claims and the queue, so a
//! conflict is known at once and cursors are given in the order of acceptance; durability follows in groups.
//! Spec: design §3, §5.

mod custody;
mod locate;
mod open;
mod read;
mod recover;
mod submit;
mod ticket;
mod writer;

pub use custody::Removal;
pub(crate) use custody::{BODY_DAMAGED, removed_by};
pub use open::{Drive, Settings};
pub use read::{BodyState, Entry, Reader, SNAPSHOT_STREAM};
pub use recover::Remainder;
pub use ticket::Ticket;

use crate::derived::{Derived, DerivedStatus};
use crate::disk::{Disk, DiskFile};
use crate::error::{Corruption, Declined, StoreError};
use crate::heads::Heads;
use crate::verify::{Progress, Verified};
use closer_contracts::Digest;
use closer_contracts::record::{
    Appended, ClaimKey, Cursor, Epoch, FencedAppend, Head, Position, Reads, Record, StreamId,
};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use ticket::Slot;
use writer::Writer;

/// What a backend of the record must do. All methods may be called from any thread; none needs an async runtime.
pub trait RecordLog: Send + Sync {
    /// Takes the sequencer's lease: raises the epoch durably and fences every older one.
    ///
    /// # Errors
    /// Whatever keeps the log from writing.
    fn acquire(&self) -> Result<Epoch, StoreError>;

    /// Checks all guards against the newest state, pending appends included, and takes the append.
    ///
    /// # Errors
    /// `Conflict` naming the guard that failed; `Busy` and `StoreFull` as the lane allows; `Poisoned`; `Malformed`.
    fn submit(&self, epoch: Epoch, append: FencedAppend) -> Result<Ticket, Declined>;

    /// The current head of a stream, pending appends included.
    ///
    /// # Errors
    /// `Io` or `Corruption` when the record that made it cannot be read.
    fn head(&self, stream: &StreamId) -> Result<Option<Head>, StoreError>;

    /// What a key stands for, or `None` when it is proved unclaimed; pending appends included.
    ///
    /// # Errors
    /// As [`RecordLog::head`].
    fn claim(&self, key: &ClaimKey) -> Result<Option<Digest>, StoreError>;

    /// Durable records of a stream from a position on, in order.
    ///
    /// # Errors
    /// As [`RecordLog::head`].
    fn read(&self, stream: &StreamId, from: Position, limit: usize, as_: &Reader) -> Result<Vec<Entry>, StoreError>;

    /// Durable records after a cursor, in order; waits up to `wait` for the first.
    ///
    /// # Errors
    /// As [`RecordLog::head`].
    fn tail(&self, after: Cursor, limit: usize, wait: Duration, as_: &Reader) -> Result<Vec<Entry>, StoreError>;

    /// Walks everything on disk and checks it.
    ///
    /// # Errors
    /// The first damage found, with its place.
    fn verify(&self, progress: &mut dyn FnMut(Progress)) -> Result<Verified, StoreError>;
}

/// Whether a log takes what it is given.
#[derive(Debug, Clone)]
pub enum Standing {
    /// It does.
    Writing,
    /// The disk had no room for the last append; what may use the reserve is taken.
    Full,
    /// It takes nothing more until it is opened again.
    Stopped(StoreError),
}

/// One segment as readers see it.
pub(crate) struct Segment {
    number: u64,
    file: Arc<dyn DiskFile>,
    /// The first cursor it can hold.
    first: Cursor,
    /// The end of its durable batches.
    end: u64,
    /// (first cursor, offset) of some of its batches, in order.
    places: Vec<(Cursor, u64)>,
    closed: bool,
}

/// What waits for the writer.
enum Work {
    Append(Pending),
    Lease { epoch: Epoch, first: Cursor, slot: Arc<Slot> },
    Seal,
    Roll { number: u64, file: Arc<dyn DiskFile> },
}

/// An accepted append on its way to the disk.
struct Pending {
    records: Arc<[Record]>,
    previous: Vec<Cursor>,
    appended: Appended,
    bytes: usize,
    slot: Arc<Slot>,
}

/// Where the next accepted batch will lie.
struct Plan {
    number: u64,
    offset: u64,
    /// Claims and links in this segment, for the size of its footer.
    rows: usize,
    /// The segment was the reserve, and there is no other yet.
    on_reserve: bool,
}

/// Everything under the one lock.
struct Core {
    heads: Heads,
    segments: Vec<Segment>,
    queue: Vec<Work>,
    next: Cursor,
    epoch: Epoch,
    durable: Cursor,
    pending_batches: usize,
    pending_bytes: usize,
    plan: Plan,
    /// Something became durable that no watermark on disk covers.
    unsealed: bool,
    poisoned: Option<Arc<str>>,
    /// Damage that opening or a walk has found: nothing more is taken until it is resolved.
    damaged: Option<Corruption>,
    /// The last append found no room.
    full: bool,
    /// Nothing is written, whatever is asked.
    reading: bool,
    closed: bool,
}

/// What submitters, readers and the writer share.
pub(crate) struct Shared {
    disk: Arc<dyn Disk>,
    settings: Settings,
    core: Mutex<Core>,
    /// The queue has work.
    work: Condvar,
    /// The durable end moved, or never will again.
    durable: Condvar,
    /// How often a group of batches was synced.
    flushes: AtomicU64,
    derived: Option<Derived>,
}

impl Shared {
    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The segment log in one directory, held by one process.
pub struct Log {
    shared: Arc<Shared>,
    writer: Arc<Mutex<Writer>>,
    thread: Option<JoinHandle<()>>,
    _lock: Box<dyn Any + Send + Sync>,
}

impl Log {
    /// As [`RecordLog::head`]: beside [`Reads`], the version that says why it cannot answer.
    ///
    /// # Errors
    /// As [`RecordLog::head`].
    pub fn head(&self, stream: &StreamId) -> Result<Option<Head>, StoreError> {
        Ok(self.shared.core().tip(stream)?.map(|tip| tip.head))
    }

    /// As [`RecordLog::claim`]: beside [`Reads`], the version that says why it cannot answer.
    ///
    /// # Errors
    /// As [`RecordLog::claim`].
    pub fn claim(&self, key: &ClaimKey) -> Result<Option<Digest>, StoreError> {
        self.shared.core().claimed(key)
    }

    /// Whether the log still takes ordinary work.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let core = self.shared.core();
        match core.open() {
            Err(error) => Standing::Stopped(error),
            Ok(()) if core.full => Standing::Full,
            Ok(()) => Standing::Writing,
        }
    }

    /// The newest durable cursor.
    #[must_use]
    pub fn durable(&self) -> Cursor {
        self.shared.core().durable
    }

    /// The epoch that holds the lease, pending ones included.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.shared.core().epoch
    }

    /// How many appends are accepted and not durable yet.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.shared.core().pending_batches
    }

    /// How often this process has synced a group of batches; appends that are in flight together share a flush.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.shared.flushes.load(Ordering::Relaxed)
    }

    /// The derived state beside the log, or `None` when the log was opened without.
    #[must_use]
    pub fn derived(&self) -> Option<&Derived> {
        self.shared.derived.as_ref()
    }

    /// How far the derived state follows the log, or `None` when there is none.
    #[must_use]
    pub fn derived_status(&self) -> Option<DerivedStatus> {
        self.derived().map(Derived::status)
    }

    /// Throws the derived state away and builds it again from the log, telling the cursor it has reached.
    ///
    /// # Errors
    /// `Closed` when there is none; `Derived` when it cannot be built; damage that was found in the log.
    pub fn rebuild(&self, progress: &mut dyn FnMut(Cursor)) -> Result<(), StoreError> {
        self.shared.core().open()?;
        self.derived().ok_or(StoreError::Closed)?.rebuild(self.durable(), progress)
    }

    /// Ends the log as a killed process would: what is not durable is not written, and the directory is let go.
    pub fn abandon(self) {
        self.shared.core().poisoned.get_or_insert_with(|| "abandoned".into());
    }

    /// Makes everything accepted so far durable, on the calling thread.
    ///
    /// # Errors
    /// `Poisoned` when the disk refused.
    pub fn flush(&self) -> Result<(), StoreError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.commit(&self.shared)
    }

    /// Fails where a walk has found damage that is not resolved.
    pub(crate) fn undamaged(&self) -> Result<(), StoreError> {
        self.shared.core().undamaged()
    }

    /// The segments with their durable ends: (number, file, end of batches, closed).
    pub(crate) fn durable_segments(&self) -> Vec<(u64, Arc<dyn DiskFile>, u64, bool)> {
        let core = self.shared.core();
        core.segments.iter().map(|s| (s.number, Arc::clone(&s.file), s.end, s.closed)).collect()
    }
}

impl Drop for Log {
    /// Writes out what was accepted, then lets the directory go.
    fn drop(&mut self) {
        {
            let mut core = self.shared.core();
            core.closed = true;
        }
        self.shared.work.notify_all();
        self.shared.durable.notify_all();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(())) => {}
            Some(Err(_)) => tracing::error!("the log's writer thread panicked"),
            None => self.writer.lock().unwrap_or_else(PoisonError::into_inner).close(&self.shared),
        }
        if let Some(derived) = &self.shared.derived {
            derived.close();
        }
    }
}

impl RecordLog for Log {
    fn acquire(&self) -> Result<Epoch, StoreError> {
        self.acquire_lease()
    }

    fn submit(&self, epoch: Epoch, append: FencedAppend) -> Result<Ticket, Declined> {
        self.submit_append(epoch, append)
    }

    fn head(&self, stream: &StreamId) -> Result<Option<Head>, StoreError> {
        Self::head(self, stream)
    }

    fn claim(&self, key: &ClaimKey) -> Result<Option<Digest>, StoreError> {
        Self::claim(self, key)
    }

    fn read(&self, stream: &StreamId, from: Position, limit: usize, as_: &Reader) -> Result<Vec<Entry>, StoreError> {
        self.read_stream(stream, from, limit, as_)
    }

    fn tail(&self, after: Cursor, limit: usize, wait: Duration, as_: &Reader) -> Result<Vec<Entry>, StoreError> {
        self.read_tail(after, limit, wait, as_)
    }

    fn verify(&self, progress: &mut dyn FnMut(Progress)) -> Result<Verified, StoreError> {
        let walked = crate::verify::verify(self, progress);
        if let Err(StoreError::Corruption(damage)) = &walked {
            self.shared.core().damaged.get_or_insert_with(|| damage.clone());
        }
        let walked = walked?;
        // Every batch fits, and yet the end of the log may be gone.
        self.undamaged()?;
        Ok(walked)
    }
}

/// A read that fails stops the log: a decision must never rest on an absence that was not proved.
impl Reads for Log {
    fn head(&self, stream: &StreamId) -> Option<Head> {
        let mut core = self.shared.core();
        let tip = core.tip(stream);
        core.trusting(tip)?.map(|tip| tip.head)
    }

    fn claim(&self, key: &ClaimKey) -> Option<Digest> {
        let mut core = self.shared.core();
        let claimed = core.claimed(key);
        core.trusting(claimed)?
    }
}

impl Core {
    /// The value, or nothing and a log that accepts no more.
    fn trusting<T>(&mut self, read: Result<T, StoreError>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                tracing::error!(%error, "a guard could not be read");
                self.poisoned.get_or_insert_with(|| error.to_string().into());
                None
            }
        }
    }
}

/// The damage, as this crate's error.
fn corrupt(segment: u64, offset: u64, record: Option<Cursor>, what: &'static str) -> StoreError {
    Corruption { segment, offset, record, what }.into()
}
