//! Reading durable records: by cursor, by stream, from a cursor on. A reader's capability decides which bodies it gets.

use super::locate::{Located, Place};
use super::{Log, Shared, corrupt, custody};
use crate::error::StoreError;
use crate::frame::{BatchHeader, Frame};
use crate::segment::Found;
use closer_contracts::Digest;
use closer_contracts::record::{Cursor, CustodyClass, Position, Record, RecordKind, StreamId};
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// The stream to which every snapshot record is linked.
pub const SNAPSHOT_STREAM: &str = "snapshot";

/// What a reader may see: bodies up to a custody class. Headers are readable by all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    clearance: CustodyClass,
}

impl Reader {
    /// Any reader of the space: open bodies.
    pub const SPACE: Self = Self { clearance: CustodyClass::Open };
    /// With the user's authority: restricted bodies too.
    pub const USER: Self = Self { clearance: CustodyClass::Restricted };
    /// The services: every body.
    pub const SERVICE: Self = Self { clearance: CustodyClass::Sealed };

    /// Whether bodies of this class are readable.
    #[must_use]
    pub fn may_read(&self, class: CustodyClass) -> bool {
        class <= self.clearance
    }
}

/// What became of a record's body on its way to the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyState {
    /// It is there and fits its digest.
    Present,
    /// It was removed under a custody decision.
    Removed,
    /// It is above the reader's clearance.
    Withheld,
}

/// A durable record as a reader gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the log.
    pub cursor: Cursor,
    /// The record; its body is there if `body` says so.
    pub record: Record,
    /// What became of the body.
    pub body: BodyState,
}

impl Log {
    /// The durable record at a cursor.
    ///
    /// # Errors
    /// `NoRecord` beyond the durable end; `Corruption` naming what does not fit.
    pub fn record(&self, cursor: Cursor, as_: &Reader) -> Result<Entry, StoreError> {
        let place = self.shared.core().place(cursor).ok_or(StoreError::NoRecord(cursor.0))?;
        self.shared.entry(cursor, place.fetch(cursor)?, as_)
    }

    /// The newest durable record of this kind and id, or `None` if there is none.
    ///
    /// The index answers if it can; what it does not know is looked for in the log itself, which takes a full scan.
    ///
    /// # Errors
    /// As [`Log::record`].
    pub fn find(&self, kind: RecordKind, id: &str, as_: &Reader) -> Result<Option<Entry>, StoreError> {
        let indexed = self.derived().and_then(|derived| derived.find(kind, id));
        if let Some(cursor) = indexed {
            match self.record(cursor, as_) {
                Ok(entry) if entry.record.kind == kind && entry.record.id == id => return Ok(Some(entry)),
                Ok(_) | Err(StoreError::NoRecord(_)) => {
                    self.shared.distrust("a record is not where its index row says")
                }
                Err(error) => return Err(error),
            }
        }
        let mut found = None;
        self.shared.scan(Cursor(1), &mut |cursor, record| {
            if record.kind == kind && record.id == id {
                found = Some(cursor);
            }
        })?;
        let Some(cursor) = found else { return Ok(None) };
        if self.derived().is_some_and(|derived| derived.covers(cursor)) {
            self.shared.distrust("an index row of a record is missing");
        }
        self.record(cursor, as_).map(Some)
    }

    /// The newest durable snapshot record: every one is linked to [`SNAPSHOT_STREAM`].
    ///
    /// # Errors
    /// As [`Log::record`].
    pub fn latest_snapshot(&self) -> Result<Option<Entry>, StoreError> {
        let cursor = self.shared.core().heads.durable(&StreamId::new(SNAPSHOT_STREAM));
        cursor.map(|cursor| self.record(cursor, &Reader::SERVICE)).transpose()
    }

    /// Gives every durable record from a cursor on, in order, with bodies, checked; a removed body is absent.
    ///
    /// # Errors
    /// As [`Log::record`].
    pub fn replay(&self, from: Cursor, each: &mut dyn FnMut(Cursor, &Record)) -> Result<(), StoreError> {
        self.shared.replay_batches(from, true, &mut |cursor, record, _| {
            each(cursor, record);
            true
        })
    }

    pub(super) fn read_stream(
        &self,
        stream: &StreamId,
        from: Position,
        limit: usize,
        as_: &Reader,
    ) -> Result<Vec<Entry>, StoreError> {
        let from = from.0.max(1);
        let Some(newest) = self.shared.core().heads.durable(stream) else {
            return Ok(Vec::new());
        };
        let Some(last) = from.checked_add(limit as u64).map(|end| end - 1).filter(|last| *last >= from) else {
            return Ok(Vec::new());
        };
        let mut wanted = BTreeMap::new();
        let mut at = self.near(stream, Position(last)).unwrap_or(newest);
        while at.0 != 0 {
            let place = self.shared.core().place(at).ok_or(StoreError::NoRecord(at.0))?;
            let located = place.fetch(at)?;
            let index = located.frame.record.links.iter().rposition(|link| link.stream == *stream);
            let link =
                index.and_then(|index| located.frame.record.links.get(index).zip(located.frame.previous.get(index)));
            let Some((link, previous)) = link else {
                return Err(corrupt(located.number, located.offset, Some(at), "a stream leads to a record outside it"));
            };
            let (position, previous) = (link.position.0, *previous);
            if (from..=last).contains(&position) {
                wanted.insert(position, (at, located));
            }
            if position <= from {
                break;
            }
            at = previous;
        }
        wanted.into_values().map(|(cursor, located)| self.shared.entry(cursor, located, as_)).collect()
    }

    /// A durable record of the stream at or shortly after a position, from the index.
    fn near(&self, stream: &StreamId, position: Position) -> Option<Cursor> {
        let cursor = self.derived()?.near(stream, position)?;
        let located = self.shared.core().place(cursor)?.fetch(cursor).ok()?;
        let fits = located.frame.record.links.iter().any(|link| link.stream == *stream && link.position >= position);
        if !fits {
            self.shared.distrust("a stream's index row leads elsewhere");
        }
        fits.then_some(cursor)
    }

    pub(super) fn read_tail(
        &self,
        after: Cursor,
        limit: usize,
        wait: Duration,
        as_: &Reader,
    ) -> Result<Vec<Entry>, StoreError> {
        let deadline = Instant::now().checked_add(wait);
        let mut core = self.shared.core();
        while core.durable <= after && core.poisoned.is_none() && !core.closed {
            let left = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(Vec::new());
            }
            core = self.shared.durable.wait_timeout(core, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(core);
        let mut entries = Vec::new();
        if limit > 0 {
            self.shared.walk(
                Cursor(after.0.saturating_add(1)),
                &mut |place, header, offset, index, frame, batch| {
                    let cursor = Cursor(header.first.0 + index as u64);
                    let located =
                        Located { number: place.number, offset, frame, batch: batch.to_vec(), chain: header.chain };
                    entries.push(self.shared.entry(cursor, located, as_)?);
                    Ok(entries.len() < limit)
                },
            )?;
        }
        Ok(entries)
    }
}

/// What a walk shows of each record: place, batch header, batch offset, index in the batch, frame, batch bytes.
type Visit<'a> = dyn FnMut(&Place, &BatchHeader, u64, usize, Frame, &[u8]) -> Result<bool, StoreError> + 'a;

impl Shared {
    /// Visits durable records from a cursor on until told to stop.
    pub(super) fn walk(&self, from: Cursor, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let mut from = Cursor(from.0.max(1));
        while let Some(place) = { self.core().place(from) } {
            let reading = || StoreError::io(format!("reading segment {}", place.number));
            let mut batches = place.batches();
            loop {
                let offset = batches.offset();
                let batch = match batches.next(None).map_err(reading())? {
                    Found::Batch(batch) => batch,
                    Found::End => break,
                    Found::Damaged(what) => return Err(corrupt(place.number, offset, Some(from), what)),
                };
                if batch.header.records == 0 || batch.header.last() < from {
                    continue;
                }
                let damaged = || corrupt(place.number, offset, Some(from), "the frame headers are damaged");
                for (index, frame) in batch.frames().ok_or_else(damaged)?.into_iter().enumerate() {
                    if batch.header.first.0 + (index as u64) < from.0 {
                        continue;
                    }
                    if !visit(&place, &batch.header, offset, index, frame, batch.bytes)? {
                        return Ok(());
                    }
                    from.0 += 1;
                }
            }
            let stuck =
                self.core().place(from).is_some_and(|next| next.number == place.number && next.end == place.end);
            if stuck {
                return Err(corrupt(
                    place.number,
                    place.end,
                    Some(from),
                    "a record is missing at the end of its segment",
                ));
            }
        }
        Ok(())
    }

    /// Visits durable records' headers from a cursor on.
    pub(super) fn scan(&self, from: Cursor, each: &mut dyn FnMut(Cursor, &Record)) -> Result<(), StoreError> {
        self.walk(from, &mut |_, header, _, index, frame, _| {
            each(Cursor(header.first.0 + index as u64), &frame.record);
            Ok(true)
        })
    }

    /// Visits durable records from a cursor on until told to stop, and tells which end a batch.
    pub(crate) fn replay_batches(
        &self,
        from: Cursor,
        with_bodies: bool,
        each: &mut dyn FnMut(Cursor, &Record, bool) -> bool,
    ) -> Result<(), StoreError> {
        self.walk(from, &mut |place, header, offset, index, mut frame, batch| {
            let cursor = Cursor(header.first.0 + index as u64);
            if with_bodies {
                frame.record.body = frame.body(batch);
                if frame.record.body.is_none() && !self.is_removed(cursor)? {
                    let at = offset + frame.body_at as u64;
                    return Err(corrupt(place.number, at, Some(cursor), custody::BODY_DAMAGED));
                }
            }
            Ok(each(cursor, &frame.record, cursor == header.last()))
        })
    }

    /// The record as this reader may see it.
    fn entry(&self, cursor: Cursor, located: Located, as_: &Reader) -> Result<Entry, StoreError> {
        let Located { number, offset, frame, batch, .. } = located;
        if !as_.may_read(frame.record.custody) {
            return Ok(Entry { cursor, record: frame.record, body: BodyState::Withheld });
        }
        if self.is_removed(cursor)? {
            return Ok(Entry { cursor, record: frame.record, body: BodyState::Removed });
        }
        let body = frame.body(&batch);
        let at = offset + frame.body_at as u64;
        let body = body.ok_or_else(|| corrupt(number, at, Some(cursor), custody::BODY_DAMAGED))?;
        let mut record = frame.record;
        record.body = Some(body);
        Ok(Entry { cursor, record, body: BodyState::Present })
    }

    /// The chain of the batch that holds a durable record.
    pub(crate) fn chain_at(&self, cursor: Cursor) -> Result<Digest, StoreError> {
        let place = self.core().place(cursor).ok_or(StoreError::NoRecord(cursor.0))?;
        Ok(place.fetch(cursor)?.chain)
    }

    /// The newest durable cursor.
    pub(crate) fn durable_end(&self) -> Cursor {
        self.core().durable
    }

    /// Sets the derived state aside.
    fn distrust(&self, why: &'static str) {
        if let Some(derived) = &self.derived {
            derived.distrust(why);
        }
    }
}
