//! Opening: takes the directory, reads what is there, makes sure of the reserve, and starts the writer.

use super::recover::{Opened, Remainder, read_headers};
use super::writer::{self, Group, Writer};
use super::{Core, Log, Plan, Segment, Shared};
use crate::derived::{Derived, StateSink};
use crate::disk::{Disk, DiskFile, RealDisk};
use crate::error::StoreError;
use crate::segment::{self, HEADER_BYTES, SegmentHeader};
use closer_contracts::Digest;
use closer_contracts::record::{Cursor, Epoch, Lane};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex};

/// The file that keeps space for urgent work.
pub(super) const RESERVE: &str = "reserve";
const STAGING: &str = ".new";

/// The name of a segment until its header is durable.
pub(super) fn staging_name(number: u64) -> String {
    format!("{number:010}{STAGING}")
}

/// Who runs the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drive {
    /// A thread of the log's own.
    Thread,
    /// Whoever calls [`Log::flush`]: nothing happens between calls, so that a simulation is deterministic.
    Caller,
}

/// How a log is run. The format on disk does not depend on it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The most bytes of a segment, footer included. The reserve has this size too.
    pub segment_bytes: u64,
    /// The most appends accepted and not durable; beyond it ordinary work is `Busy`.
    pub pending_batches_max: usize,
    /// The most bytes accepted and not durable; beyond it ordinary work is `Busy`.
    pub pending_bytes_max: usize,
    /// Who runs the writer.
    pub drive: Drive,
    /// The folder of the derived state, or `None` for a log without.
    pub derived: Option<PathBuf>,
    /// Whether the log is opened for reading alone: nothing on disk is changed, and nothing is taken.
    pub reading: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            pending_batches_max: 256,
            pending_bytes_max: 1 << 20,
            drive: Drive::Thread,
            derived: None,
            reading: false,
        }
    }
}

impl Settings {
    /// The most bytes of one append: a quarter of a segment.
    #[must_use]
    pub const fn append_bytes_max(&self) -> u64 {
        self.segment_bytes / 4
    }
}

impl Log {
    /// Opens the store in a directory, creating it if it is new: the log in `log/`, the derived state in `derived/`.
    ///
    /// # Errors
    /// `Locked`, `NewerVersion`, `Corruption` and whatever the system says.
    pub fn open(directory: &Path, sink: Option<Box<dyn StateSink>>) -> Result<Self, StoreError> {
        let settings = Settings { derived: Some(directory.join("derived")), ..Settings::default() };
        let disk = RealDisk::at(directory.join("log")).map_err(StoreError::io("opening the store's directory"))?;
        Self::open_on(Arc::new(disk), settings, sink)
    }

    /// Opens the store in a directory for reading alone: nothing there is changed, so that a read-only copy will do.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_reading(directory: &Path) -> Result<Self, StoreError> {
        let derived = Some(directory.join("derived"));
        let settings = Settings { derived, drive: Drive::Caller, reading: true, ..Settings::default() };
        Self::open_on(Arc::new(RealDisk::reading(directory.join("log"))), settings, None)
    }

    /// Opens a log on any disk. `sink` says what the derived state holds beyond the indexes.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_on(
        disk: Arc<dyn Disk>,
        settings: Settings,
        sink: Option<Box<dyn StateSink>>,
    ) -> Result<Self, StoreError> {
        let lock = lock(&*disk)?;
        let headers = read_headers(&*disk)?;
        let names = disk.list().map_err(StoreError::io("listing the log"))?;
        let mut opened = Opened::read(&headers)?;
        let derived = settings.derived.clone().map(Derived::new);
        let damage = opened.damage(derived.as_ref().and_then(Derived::known));
        // A log that is damaged stays as it was found, and so does one that is only read.
        let untouched = settings.reading || damage.is_some();
        if !untouched {
            for name in names.iter().filter(|name| name.ends_with(STAGING)) {
                disk.remove(name).map_err(StoreError::io("removing an unfinished segment"))?;
            }
            opened.cut()?;
            // A name may be there that was never made durable.
            disk.sync_dir().map_err(StoreError::io("opening the store's directory"))?;
        }
        let removals = std::mem::take(&mut opened.removals);
        let (mut core, tail) = opened.into_parts(&settings);
        core.damaged = damage;
        core.unsealed &= !untouched;
        let shared = Arc::new(Shared {
            disk,
            core: Mutex::new(core),
            settings,
            flushes: AtomicU64::new(0),
            work: Condvar::new(),
            durable: Condvar::new(),
            derived,
        });
        let writer = match untouched {
            true => tail.idle(&shared)?,
            false => tail.writer(&shared)?,
        };
        let writer = Arc::new(Mutex::new(writer));
        if !untouched {
            shared.ensure_reserve()?;
        }
        let thread = match shared.settings.drive {
            Drive::Caller => None,
            Drive::Thread => {
                let (shared, writer) = (Arc::clone(&shared), Arc::clone(&writer));
                let thread = std::thread::Builder::new().name("closer-log".into());
                let started = thread.spawn(move || writer::run(&shared, &writer));
                Some(started.map_err(StoreError::io("starting the writer"))?)
            }
        };
        let log = Self { shared, writer, thread, _lock: lock };
        match log.derived() {
            Some(derived) if untouched => derived.stand_aside(),
            Some(derived) => {
                log.finish_removals(&removals)?;
                derived.start(Arc::clone(&log.shared), sink)?;
            }
            None if untouched => {}
            None => log.finish_removals(&removals)?,
        }
        Ok(log)
    }
}

impl Log {
    /// What the end of a store holds beyond its last whole batch. Nothing is changed; opening the log cuts it off.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn remainder(directory: &Path) -> Result<Option<Remainder>, StoreError> {
        Self::remainder_on(&RealDisk::reading(directory.join("log")))
    }

    /// As [`Log::remainder`], on any disk.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn remainder_on(disk: &dyn Disk) -> Result<Option<Remainder>, StoreError> {
        let _lock = lock(disk)?;
        Ok(Opened::read(&read_headers(disk)?)?.remainder())
    }
}

/// Takes the directory for this process.
fn lock(disk: &dyn Disk) -> Result<Box<dyn std::any::Any + Send + Sync>, StoreError> {
    disk.lock().map_err(|error| match error.kind() == ErrorKind::WouldBlock {
        true => StoreError::Locked,
        false => StoreError::io("locking the store")(error),
    })
}

impl Shared {
    /// Makes sure the reserve is there, or notes that the log lives on it.
    fn ensure_reserve(&self) -> Result<(), StoreError> {
        let kept = match self.disk.open(RESERVE) {
            Ok(file) => file.len().map_err(StoreError::io("looking at the reserved segment"))?,
            Err(_) => 0,
        };
        if kept == self.settings.segment_bytes {
            return Ok(());
        }
        match self.renew_reserve() {
            Err(StoreError::StoreFull) => {
                tracing::warn!("no space for the reserved segment: ordinary work is refused");
                self.core().plan.on_reserve = true;
                Ok(())
            }
            done => done,
        }
    }
}

impl Shared {
    /// Allocates the segment that opening begins, from the reserve if the disk is full.
    fn first_segment(&self, number: u64) -> Result<Arc<dyn DiskFile>, StoreError> {
        let (file, on_reserve) = self.next_segment(number, Lane::Reserved, false)?;
        self.core().plan.on_reserve = on_reserve;
        Ok(file)
    }
}

impl Opened {
    /// The state under the lock, and what the writer goes on from.
    fn into_parts(self, settings: &Settings) -> (Core, Tail) {
        let open = self.segments.last().filter(|segment| !segment.closed);
        let number = self.segments.len() as u64;
        let tail = Tail {
            file: open.map(|segment| Arc::clone(&segment.file)),
            places: open.map(|segment| segment.places.clone()).unwrap_or_default(),
            offset: open.map_or(HEADER_BYTES as u64, |segment| segment.end),
            number: if open.is_some() { number } else { number + 1 },
            sequence: self.sequence,
            epoch: self.epoch,
            last: Cursor(self.next.0 - 1),
            chain: self.chain,
            claims: self.claims,
            heads: self.tips,
        };
        let core = Core {
            heads: self.heads,
            segments: self.segments,
            queue: Vec::new(),
            next: self.next,
            epoch: self.epoch,
            durable: Cursor(self.next.0 - 1),
            pending_batches: 0,
            pending_bytes: 0,
            plan: Plan { number: tail.number, offset: tail.offset, rows: self.rows, on_reserve: false },
            unsealed: settings.drive == Drive::Thread && !self.sealed,
            poisoned: None,
            damaged: None,
            full: false,
            reading: settings.reading,
            closed: false,
        };
        (core, tail)
    }
}

/// Where the writer goes on.
struct Tail {
    /// The open segment, or nothing when the last one is closed.
    file: Option<Arc<dyn DiskFile>>,
    places: Vec<(Cursor, u64)>,
    offset: u64,
    number: u64,
    sequence: u64,
    epoch: Epoch,
    last: Cursor,
    chain: Digest,
    claims: BTreeMap<segment::Fingerprint, Cursor>,
    heads: BTreeMap<segment::Fingerprint, Cursor>,
}

impl Tail {
    /// Begins a segment if none is open, and makes the writer.
    fn writer(self, shared: &Shared) -> Result<Writer, StoreError> {
        let Self { file, places, offset, number, sequence, epoch, last, chain, claims, heads } = self;
        let file = match file {
            Some(file) => {
                // Without space the segment ends where it is allocated: the next batch that does not fit will say so.
                if let Err(error) = file.preallocate(shared.settings.segment_bytes) {
                    tracing::warn!(%error, "the open segment could not be allocated to its full size");
                }
                file
            }
            None => {
                let header = SegmentHeader { number, first: Cursor(last.0 + 1), sequence, epoch, chain };
                let file = shared.first_segment(number)?;
                writer::begin(shared, &*file, &header)?;
                let (first, file) = (header.first, Arc::clone(&file));
                let end = HEADER_BYTES as u64;
                let shown = Segment { number, file: Arc::clone(&file), first, end, places: Vec::new(), closed: false };
                shared.core().segments.push(shown);
                file
            }
        };
        let durable = sequence - 1;
        let group = Group::default();
        let zeroed = offset;
        Ok(Writer { number, file, offset, zeroed, sequence, durable, epoch, last, chain, places, claims, heads, group })
    }

    /// A writer that is never given anything to write.
    fn idle(self, shared: &Shared) -> Result<Writer, StoreError> {
        let Self { file, places, offset, number, sequence, epoch, last, chain, claims, heads } = self;
        let newest = || shared.core().segments.last().map(|segment| Arc::clone(&segment.file));
        let absent = || StoreError::io("reading the log")(ErrorKind::NotFound.into());
        let file = file.or_else(newest).ok_or_else(absent)?;
        let (durable, zeroed, group) = (sequence - 1, offset, Group::default());
        Ok(Writer { number, file, offset, zeroed, sequence, durable, epoch, last, chain, places, claims, heads, group })
    }
}
