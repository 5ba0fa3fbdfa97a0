//! The one writer: encodes what is queued, writes it in one piece, syncs once, then settles the tickets.

use super::open::staging_name;
use super::ticket::Slot;
use super::{Pending, Segment, Shared, Work};
use crate::derived::Committed;
use crate::disk::DiskFile;
use crate::error::StoreError;
use crate::frame::{self, BATCH_HEADER_BYTES, BatchKind, Draft};
use crate::heads::NewPrints;
use crate::segment::{self, Fingerprint, Footer, PLACE_EVERY_BYTES, SegmentHeader};
use closer_contracts::Digest;
use closer_contracts::record::{Appended, Cursor, Epoch, Record};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the writer waits for more work before it writes down what it knows durable.
const IDLE: Duration = Duration::from_millis(2);

/// The writer keeps at least so many zeros on disk ahead of what it writes, at most.
const ZEROS_AHEAD: u64 = 4 << 20;

/// The end of the log and what the open segment's footer will say.
pub(super) struct Writer {
    pub(super) number: u64,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) offset: u64,
    /// Up to here the segment's space holds written zeros.
    pub(super) zeroed: u64,
    /// The sequence of the next batch.
    pub(super) sequence: u64,
    /// The last sequence known durable.
    pub(super) durable: u64,
    pub(super) epoch: Epoch,
    pub(super) last: Cursor,
    pub(super) chain: Digest,
    pub(super) places: Vec<(Cursor, u64)>,
    pub(super) claims: BTreeMap<Fingerprint, Cursor>,
    pub(super) heads: BTreeMap<Fingerprint, Cursor>,
    pub(super) group: Group,
}

/// What is encoded and not yet durable.
#[derive(Default)]
pub(super) struct Group {
    bytes: Vec<u8>,
    places: Vec<(Cursor, u64)>,
    prints: NewPrints,
    landed: Vec<Landed>,
}

/// One ticket to settle.
struct Landed {
    appended: Appended,
    slot: Arc<Slot>,
    /// The records, what they took in the suffix, and the chain after them; nothing for a lease.
    records: Option<(Arc<[Record]>, usize, Digest)>,
}

/// The writer's thread: commits whatever is queued until the log is closed.
pub(super) fn run(shared: &Arc<Shared>, writer: &Mutex<Writer>) {
    loop {
        let closing = {
            let mut core = shared.core();
            loop {
                if !core.queue.is_empty() || core.closed {
                    break;
                }
                if !core.unsealed {
                    core = shared.work.wait(core).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                let (again, idle) = shared.work.wait_timeout(core, IDLE).unwrap_or_else(PoisonError::into_inner);
                core = again;
                if idle.timed_out() && core.queue.is_empty() {
                    shared.seal(&mut core);
                    break;
                }
            }
            core.closed
        };
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        if closing {
            writer.close(shared);
            return;
        }
        if let Err(error) = writer.commit(shared) {
            tracing::error!(%error, "the log stopped accepting");
        }
    }
}

impl Shared {
    /// Queues a seal if there is room for it in the open segment.
    fn seal(&self, core: &mut super::Core) {
        core.unsealed = false;
        if core.poisoned.is_none() && self.fits(core, BATCH_HEADER_BYTES, 0) {
            core.plan.offset += BATCH_HEADER_BYTES as u64;
            core.queue.push(Work::Seal);
        }
    }
}

impl Writer {
    /// Makes everything queued durable.
    pub(super) fn commit(&mut self, shared: &Shared) -> Result<(), StoreError> {
        loop {
            let (works, poisoned) = {
                let mut core = shared.core();
                (std::mem::take(&mut core.queue), core.poisoned.clone())
            };
            if let Some(why) = poisoned {
                self.fail(shared, works, &why);
                return Err(StoreError::Poisoned(why));
            }
            if works.is_empty() {
                return Ok(());
            }
            let mut works = works.into_iter();
            if let Err(error) = self.write(shared, &mut works) {
                let why: Arc<str> = error.to_string().into();
                self.fail(shared, works.collect(), &why);
                return Err(StoreError::Poisoned(why));
            }
        }
    }

    /// Writes out what is left and a last watermark.
    pub(super) fn close(&mut self, shared: &Shared) {
        if self.commit(shared).is_err() || shared.settings.reading {
            return;
        }
        {
            let mut core = shared.core();
            // Whoever only looked leaves no trace.
            if core.unsealed {
                shared.seal(&mut core);
            }
        }
        if let Err(error) = self.commit(shared).and_then(|()| self.file.sync_data().map_err(StoreError::io("closing")))
        {
            tracing::error!(%error, "the log did not close cleanly");
        }
    }

    fn write(&mut self, shared: &Shared, works: &mut impl Iterator<Item = Work>) -> Result<(), StoreError> {
        for work in works.by_ref() {
            match work {
                Work::Append(pending) => self.append(pending),
                Work::Lease { epoch, first, slot } => {
                    self.epoch = epoch;
                    self.encode(BatchKind::Lease, first, &[], &[]);
                    let appended = Appended { epoch, first, last: Cursor(first.0.saturating_sub(1)) };
                    self.group.landed.push(Landed { appended, slot, records: None });
                }
                Work::Seal => {
                    let next = Cursor(self.last.0 + 1);
                    self.encode(BatchKind::Seal, next, &[], &[]);
                }
                Work::Roll { number, file } => {
                    self.land(shared)?;
                    self.roll(shared, number, file)?;
                }
            }
        }
        self.land(shared)
    }

    fn append(&mut self, pending: Pending) {
        let Pending { records, previous, appended, bytes, slot } = pending;
        self.epoch = appended.epoch;
        self.encode(BatchKind::Append, appended.first, &records, &previous);
        self.last = appended.last;
        self.group.prints.add(appended.first, &records);
        self.group.landed.push(Landed { appended, slot, records: Some((records, bytes, self.chain)) });
    }

    fn encode(&mut self, kind: BatchKind, first: Cursor, records: &[Record], previous: &[Cursor]) {
        let offset = self.offset + self.group.bytes.len() as u64;
        let last_place = self.group.places.last().or(self.places.last());
        if last_place.is_none_or(|(_, last)| offset >= last + PLACE_EVERY_BYTES) {
            self.group.places.push((first, offset));
        }
        let draft = Draft {
            kind,
            sequence: self.sequence,
            epoch: self.epoch,
            first,
            watermark: self.durable,
            records,
            previous,
            chain: self.chain,
        };
        self.chain = frame::encode(&draft, &mut self.group.bytes);
        self.sequence += 1;
    }

    /// Writes and syncs the group, shows it to readers and settles its tickets.
    fn land(&mut self, shared: &Shared) -> Result<(), StoreError> {
        if self.group.bytes.is_empty() {
            return Ok(());
        }
        let number = self.number;
        let what = || format!("writing segment {number}");
        self.zero_ahead(shared.settings.segment_bytes).map_err(StoreError::io(what()))?;
        self.file.write_at(&self.group.bytes, self.offset).map_err(StoreError::io(what()))?;
        self.offset += self.group.bytes.len() as u64;
        self.group.bytes.clear();
        if !self.group.landed.is_empty() {
            self.file.sync_data().map_err(StoreError::io(what()))?;
            shared.flushes.fetch_add(1, Ordering::Relaxed);
            self.durable = self.sequence - 1;
        }
        let Group { places, prints, landed, .. } = std::mem::take(&mut self.group);
        self.places.extend(places.iter().copied());
        for (print, cursor) in &prints.claims {
            self.claims.entry(*print).or_insert(*cursor);
        }
        self.heads.extend(prints.heads.iter().copied());
        {
            let mut core = shared.core();
            core.heads.settle(&prints);
            core.durable = self.last;
            core.unsealed |= !landed.is_empty();
            let appends = landed.iter().filter_map(|landed| landed.records.as_ref());
            for (_, bytes, _) in appends {
                core.pending_batches = core.pending_batches.saturating_sub(1);
                core.pending_bytes = core.pending_bytes.saturating_sub(*bytes);
            }
            if let Some(segment) = core.segments.last_mut() {
                segment.end = self.offset;
                segment.places.extend(places);
            }
        }
        shared.durable.notify_all();
        let mut committed = Vec::new();
        for Landed { appended, slot, records } in landed {
            slot.settle(appended, Ok(()));
            if let Some((records, bytes, chain)) = records {
                committed.push(Committed { first: appended.first, last: appended.last, records, bytes, chain });
            }
        }
        if let Some(derived) = &shared.derived {
            derived.feed(committed);
        }
        Ok(())
    }

    /// Writes zeros where the group will go, and syncs them on their own.
    ///
    /// Allocated space that was never written makes every sync a change of metadata too: slower, and on a file system
    /// that is being shut down a sync was seen to succeed without it. Over written zeros a sync is data alone.
    fn zero_ahead(&mut self, segment_bytes: u64) -> std::io::Result<()> {
        let end = self.offset + self.group.bytes.len() as u64;
        if end <= self.zeroed {
            return Ok(());
        }
        let from = self.zeroed.max(self.offset);
        let to = (end + ZEROS_AHEAD).min(segment_bytes).max(end);
        let zeros = vec![0; usize::try_from(to - from).unwrap_or_default()];
        self.file.write_at(&zeros, from)?;
        self.file.sync_data()?;
        self.zeroed = to;
        Ok(())
    }

    /// Closes the open segment with its footer and goes on in `file`.
    fn roll(&mut self, shared: &Shared, number: u64, file: Arc<dyn DiskFile>) -> Result<(), StoreError> {
        let footer = Footer {
            end: self.offset,
            last: self.last,
            last_sequence: self.sequence - 1,
            epoch: self.epoch,
            chain: self.chain,
            places: std::mem::take(&mut self.places),
            claims: std::mem::take(&mut self.claims).into_iter().collect(),
            heads: std::mem::take(&mut self.heads).into_iter().collect(),
        };
        let bytes = footer.encode();
        let closing = || format!("closing segment {}", self.number);
        self.file.write_at(&bytes, self.offset).map_err(StoreError::io(closing()))?;
        self.file.set_len(self.offset + bytes.len() as u64).map_err(StoreError::io(closing()))?;
        self.file.sync_data().map_err(StoreError::io(closing()))?;
        self.durable = self.sequence - 1;
        let header = SegmentHeader {
            number,
            first: Cursor(self.last.0 + 1),
            sequence: self.sequence,
            epoch: self.epoch,
            chain: self.chain,
        };
        begin(shared, &*file, &header)?;
        self.number = number;
        self.file = Arc::clone(&file);
        self.offset = segment::HEADER_BYTES as u64;
        self.zeroed = self.offset;
        let mut core = shared.core();
        if let Some(closed) = core.segments.last_mut() {
            closed.closed = true;
        }
        core.segments.push(Segment {
            number,
            file,
            first: header.first,
            end: self.offset,
            places: Vec::new(),
            closed: false,
        });
        Ok(())
    }

    /// Nothing undurable will ever be: says so to every ticket, and to everyone who waits.
    fn fail(&mut self, shared: &Shared, works: Vec<Work>, why: &Arc<str>) {
        let queued = {
            let mut core = shared.core();
            core.poisoned.get_or_insert_with(|| Arc::clone(why));
            core.pending_batches = 0;
            core.pending_bytes = 0;
            std::mem::take(&mut core.queue)
        };
        shared.durable.notify_all();
        let group = std::mem::take(&mut self.group);
        let error = || Err(StoreError::Poisoned(Arc::clone(why)));
        for landed in group.landed {
            landed.slot.settle(landed.appended, error());
        }
        for work in works.into_iter().chain(queued) {
            match work {
                Work::Append(pending) => pending.slot.settle(pending.appended, error()),
                Work::Lease { epoch, first, slot } => slot.settle(Appended { epoch, first, last: first }, error()),
                Work::Seal | Work::Roll { .. } => {}
            }
        }
    }
}

/// Gives an allocated file its header and its name, durably.
pub(super) fn begin(shared: &Shared, file: &dyn DiskFile, header: &SegmentHeader) -> Result<(), StoreError> {
    let what = || format!("beginning segment {}", header.number);
    file.write_at(&header.encode(), 0).map_err(StoreError::io(what()))?;
    file.sync_data().map_err(StoreError::io(what()))?;
    let (staging, name) = (staging_name(header.number), segment::name(header.number));
    shared.disk.rename(&staging, &name).map_err(StoreError::io(what()))?;
    shared.disk.sync_dir().map_err(StoreError::io(what()))
}
