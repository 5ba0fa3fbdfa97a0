//! Reading a log from disk: versions first, then footers, then the tail; nothing is trusted that does not fit.

use super::{Segment, corrupt};
use crate::disk::{Disk, DiskFile, read_full};
use crate::error::{Corruption, StoreError};
use crate::frame::{self, ALIGNMENT, BATCH_HEADER_BYTES, BatchHeader, BatchKind, Draft};
use crate::heads::{Heads, NewPrints};
use crate::segment::{self, Batches, Footer, Found, HEADER_BYTES, PLACE_EVERY_BYTES, SegmentHeader};
use closer_contracts::Digest;
use closer_contracts::record::{Cursor, Epoch, RecordKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One segment file with its header.
pub(super) type Named = (SegmentHeader, Arc<dyn DiskFile>);

/// Reads all segment headers before anything is written. A newer version anywhere refuses the whole store.
pub(super) fn read_headers(disk: &dyn Disk) -> Result<Vec<Named>, StoreError> {
    let names = disk.list().map_err(StoreError::io("listing the log"))?;
    let mut headers = Vec::new();
    let mut damage = None;
    for number in names.iter().filter_map(|name| segment::number(name)) {
        let file = disk.open(&segment::name(number)).map_err(StoreError::io(format!("opening segment {number}")))?;
        match SegmentHeader::read(&*file, number) {
            Ok(header) => headers.push((header, file)),
            Err(newer @ StoreError::NewerVersion { .. }) => return Err(newer),
            Err(error) => damage = damage.or(Some(error)),
        }
    }
    match damage {
        Some(error) => Err(error),
        None => Ok(headers),
    }
}

/// What is known while the segments are read in order.
pub(super) struct Opened {
    pub(super) heads: Heads,
    pub(super) segments: Vec<Segment>,
    /// The next cursor, the next sequence, the epoch and the chain.
    pub(super) next: Cursor,
    pub(super) sequence: u64,
    pub(super) epoch: Epoch,
    pub(super) chain: Digest,
    /// The open segment's fingerprints.
    pub(super) claims: BTreeMap<segment::Fingerprint, Cursor>,
    pub(super) tips: BTreeMap<segment::Fingerprint, Cursor>,
    pub(super) rows: usize,
    /// Custody records in the open segment, whose removal a crash may have cut short.
    pub(super) removals: Vec<Cursor>,
    /// The last batch is a seal that says everything before it is durable.
    pub(super) sealed: bool,
    /// Where the open segment's batches end.
    tail: Option<Tail>,
}

/// The end of the last segment as it was found.
struct Tail {
    number: u64,
    file: Arc<dyn DiskFile>,
    /// From here on nothing on disk says that it is durable: what can be read may be what a failed sync has left.
    doubtful: u64,
    offset: u64,
    /// Nothing but zeros follows.
    whole: bool,
    damage: Option<&'static str>,
}

/// What stands after the last whole batch of a log: nothing on disk says that it was acknowledged, and opening cuts it off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remainder {
    /// The segment.
    pub segment: u64,
    /// Where it begins.
    pub offset: u64,
    /// The record that was due there.
    pub next: Cursor,
    /// What it is where it is no write that broke off: a seal or lease of which some bytes were changed.
    pub damage: Option<&'static str>,
}

impl Opened {
    pub(super) fn read(headers: &[Named]) -> Result<Self, StoreError> {
        let mut opened = Self {
            heads: Heads::default(),
            segments: Vec::new(),
            next: Cursor(1),
            sequence: 1,
            epoch: Epoch(0),
            chain: Digest::from_raw([0; 32]),
            claims: BTreeMap::new(),
            tips: BTreeMap::new(),
            rows: 0,
            removals: Vec::new(),
            sealed: true,
            tail: None,
        };
        let count = headers.len();
        for (index, (header, file)) in headers.iter().enumerate() {
            opened.check_header(header)?;
            let footer = Footer::read(&**file).map_err(StoreError::io(format!("reading segment {}", header.number)))?;
            match footer {
                Ok(footer) => {
                    let last = index + 1 == count;
                    opened.tail = if last { Some(Tail::closed(header.number, file, footer.end)?) } else { None };
                    opened.take_footer(header, file, footer);
                }
                Err(_) if index + 1 == count => opened.take_tail(header, file)?,
                Err(at) => {
                    return Err(corrupt(header.number, at, None, "the footer of a closed segment is damaged"));
                }
            }
        }
        Ok(opened)
    }

    /// A header must continue the segment before it.
    fn check_header(&self, header: &SegmentHeader) -> Result<(), StoreError> {
        let expected = SegmentHeader {
            number: self.segments.len() as u64 + 1,
            first: self.next,
            sequence: self.sequence,
            epoch: self.epoch,
            chain: self.chain,
        };
        match *header == expected {
            true => Ok(()),
            false => {
                let what = "the segment does not continue the one before; a segment is missing or not of this store";
                Err(corrupt(header.number, 0, Some(self.next), what))
            }
        }
    }

    fn take_footer(&mut self, header: &SegmentHeader, file: &Arc<dyn DiskFile>, footer: Footer) {
        self.heads.settle(&NewPrints { claims: footer.claims, heads: footer.heads });
        self.next = Cursor(footer.last.0 + 1);
        self.sequence = footer.last_sequence + 1;
        self.epoch = footer.epoch;
        self.chain = footer.chain;
        self.segments.push(Segment {
            number: header.number,
            file: Arc::clone(file),
            first: header.first,
            end: footer.end,
            places: footer.places,
            closed: true,
        });
    }

    /// What the open segment holds beyond its last whole batch.
    pub(super) fn remainder(&self) -> Option<Remainder> {
        let tail = self.tail.as_ref().filter(|tail| !tail.whole)?;
        Some(Remainder { segment: tail.number, offset: tail.offset, next: self.next, damage: tail.damage })
    }

    /// What is wrong with the end of the log: it ends before a record that was durable once, or what stands there was
    /// changed after it was written.
    pub(super) fn damage(&self, known: Option<Cursor>) -> Option<Corruption> {
        let (segment, offset) = self.segments.last().map_or((1, 0), |segment| (segment.number, segment.end));
        let lost = "the log ends before a record that the derived state knows as durable: restore a backup, or remove the folder `derived` to go on without what is lost";
        let lost = known.is_some_and(|known| known >= self.next).then_some((segment, offset, lost));
        let changed = self.tail.as_ref().and_then(|tail| Some((tail.number, tail.offset, tail.damage?)));
        let (segment, offset, what) = changed.or(lost)?;
        Some(Corruption { segment, offset, record: Some(self.next), what })
    }

    /// Cuts off what no later batch says was acknowledged, and makes the rest durable. A sync that failed leaves bytes that
    /// can be read, that the system takes for written, and that no later sync will write: so they are written again.
    pub(super) fn cut(&self) -> Result<(), StoreError> {
        let Some(tail) = &self.tail else { return Ok(()) };
        let what = || StoreError::io(format!("cutting segment {}", tail.number));
        if !tail.whole {
            let reason = "a batch that is not whole, and of which nothing on disk says that it was acknowledged";
            tracing::warn!(segment = tail.number, offset = tail.offset, reason, "the log's end is cut off");
            tail.file.set_len(tail.offset).map_err(what())?;
        }
        let rewritten = usize::try_from(tail.offset.saturating_sub(tail.doubtful)).unwrap_or_default();
        let mut bytes = vec![0; rewritten];
        let filled = read_full(&*tail.file, &mut bytes, tail.doubtful).map_err(what())?;
        bytes.truncate(filled);
        tail.file.write_at(&bytes, tail.doubtful).map_err(what())?;
        tail.file.sync_data().map_err(what())
    }

    /// Reads the open segment: finds its end and takes in what lies before it.
    fn take_tail(&mut self, header: &SegmentHeader, file: &Arc<dyn DiskFile>) -> Result<(), StoreError> {
        let number = header.number;
        let reading = || StoreError::io(format!("reading segment {number}"));
        let len = file.len().map_err(reading())?;
        let end = self.find_end(number, file, len)?;
        let mut segment = Segment {
            number,
            file: Arc::clone(file),
            first: header.first,
            end: HEADER_BYTES as u64,
            places: Vec::new(),
            closed: false,
        };
        let mut batches = Batches::new(Arc::clone(file), segment.end, end.offset);
        let mut doubtful = None;
        while let Found::Batch(batch) = batches.next(None).map_err(reading())? {
            let mut prints = NewPrints::default();
            let (mut cursor, mut whole, mut custody) = (batch.header.first, true, Vec::new());
            let viewed = batch.view(|frame| {
                prints.add_view(cursor, &frame);
                whole &= batch.header.sequence <= end.known_durable || frame.body_fits(batch.bytes);
                if frame.kind == RecordKind::Custody {
                    custody.push(cursor);
                }
                cursor.0 += 1;
            });
            let (header, offset) = (batch.header, batch.offset);
            viewed.ok_or_else(|| corrupt(number, offset, Some(header.first), "the frame headers are damaged"))?;
            if !whole {
                break;
            }
            if header.sequence > end.known_durable {
                doubtful.get_or_insert(offset);
            }
            if segment.places.last().is_none_or(|(_, last)| offset >= last + PLACE_EVERY_BYTES) {
                segment.places.push((header.first, offset));
            }
            segment.end = batches.offset();
            self.removals.append(&mut custody);
            self.take_batch(&header, &prints);
        }
        let whole = end.zero_beyond && segment.end == end.offset;
        let doubtful = doubtful.unwrap_or(segment.end);
        let damage = end.damage;
        self.tail = Some(Tail { number, file: Arc::clone(file), doubtful, offset: segment.end, whole, damage });
        self.segments.push(segment);
        Ok(())
    }

    /// Where the batches of the open segment cease to fit, and what it says is durable. Damage there is corruption if a
    /// later batch knows that what stood there was durable.
    fn find_end(&self, number: u64, file: &Arc<dyn DiskFile>, len: u64) -> Result<End, StoreError> {
        let reading = || StoreError::io(format!("reading segment {number}"));
        let mut batches = Batches::new(Arc::clone(file), HEADER_BYTES as u64, len);
        let (mut sequence, mut next, mut epoch, mut chain) = (self.sequence, self.next, self.epoch, self.chain);
        let mut known_durable = 0;
        let (offset, what) = loop {
            let offset = batches.offset();
            let header = match batches.next(Some(chain)).map_err(reading())? {
                Found::Batch(batch) => batch.header,
                Found::End => break (offset, "a batch is missing"),
                Found::Damaged(what) => break (offset, what),
            };
            let in_order = header.sequence == sequence
                && header.first == next
                && header.watermark < header.sequence
                && header.epoch >= epoch;
            if !in_order {
                break (offset, "a batch is out of order");
            }
            (sequence, next, epoch, chain) = (sequence + 1, Cursor(header.last().0 + 1), header.epoch, header.chain);
            known_durable = known_durable.max(header.watermark);
        };
        let beyond = Batches::new(Arc::clone(file), offset, len).beyond(sequence).map_err(reading())?;
        match beyond.watermark >= sequence {
            true => Err(corrupt(number, offset, Some(next), what)),
            false => {
                let mut found = [0; BATCH_HEADER_BYTES];
                read_full(&**file, &mut found, offset).map_err(reading())?;
                let due = Due { sequence, epoch, first: next, known_durable, chain };
                let damage = due.is_damaged(&found).then_some(SEAL_DAMAGED);
                Ok(End { offset, known_durable: known_durable.max(beyond.watermark), zero_beyond: beyond.zero, damage })
            }
        }
    }

    fn take_batch(&mut self, header: &BatchHeader, prints: &NewPrints) {
        self.rows += prints.claims.len() + prints.heads.len();
        for (print, cursor) in &prints.claims {
            self.claims.entry(*print).or_insert(*cursor);
        }
        self.tips.extend(prints.heads.iter().copied());
        self.heads.settle(prints);
        self.next = Cursor(header.last().0 + 1);
        self.sealed = header.kind == BatchKind::Seal && header.watermark + 1 == header.sequence;
        self.sequence = header.sequence + 1;
        self.epoch = header.epoch;
        self.chain = header.chain;
    }
}

impl Tail {
    /// The footer of a last segment that is closed: the sync that should have made it durable may have failed.
    fn closed(number: u64, file: &Arc<dyn DiskFile>, doubtful: u64) -> Result<Self, StoreError> {
        let offset = file.len().map_err(StoreError::io(format!("reading segment {number}")))?;
        Ok(Self { number, file: Arc::clone(file), doubtful, offset, whole: true, damage: None })
    }
}

/// The end of the batches that fit in the open segment.
struct End {
    offset: u64,
    known_durable: u64,
    zero_beyond: bool,
    damage: Option<&'static str>,
}

/// What is told of a log whose last batch is a damaged seal or lease, and what to do.
const SEAL_DAMAGED: &str = "the seal or lease at the end of the log is damaged, and no record with it: restore a backup, or cut the segment off at this offset to go on";
/// The most bytes in which a damaged seal or lease may differ from what was written.
const DAMAGED_BYTES_MAX: usize = 8;
/// How many watermarks are tried.
const WATERMARKS_MAX: usize = 4096;

/// What a batch at the end of the log would say. A seal and a lease say nothing else, so that one of which bytes were
/// changed can be told from a write that broke off, which ends in zeros.
struct Due {
    sequence: u64,
    epoch: Epoch,
    first: Cursor,
    known_durable: u64,
    chain: Digest,
}

impl Due {
    fn is_damaged(&self, found: &[u8]) -> bool {
        let broke_off = found.rchunks(ALIGNMENT).next().is_some_and(|end| end.iter().all(|byte| *byte == 0));
        let mut watermarks = (self.known_durable..self.sequence).rev().take(WATERMARKS_MAX);
        !broke_off
            && watermarks.any(|watermark| {
                [(BatchKind::Seal, self.epoch), (BatchKind::Lease, Epoch(self.epoch.0 + 1))].iter().any(
                    |(kind, epoch)| {
                        let mut written = Vec::new();
                        let draft = Draft {
                            kind: *kind,
                            sequence: self.sequence,
                            epoch: *epoch,
                            first: self.first,
                            watermark,
                            records: &[],
                            previous: &[],
                            chain: self.chain,
                        };
                        frame::encode(&draft, &mut written);
                        written.iter().zip(found).filter(|(one, other)| one != other).count() <= DAMAGED_BYTES_MAX
                    },
                )
            })
    }
}
