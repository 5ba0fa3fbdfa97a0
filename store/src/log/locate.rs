//! From a cursor to the bytes of its record.

use super::{Core, Segment, corrupt};
use crate::disk::DiskFile;
use crate::error::StoreError;
use crate::frame::Frame;
use crate::heads::{Standing, Tip};
use crate::segment::{Batches, Found};
use closer_contracts::Digest;
use closer_contracts::record::{ClaimKey, Cursor, StreamId};
use std::sync::Arc;

/// A short read: a few batches.
const LOOK_BYTES: usize = 24 << 10;

/// Where to start looking for a record, detached from the lock.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) number: u64,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) offset: u64,
    pub(crate) end: u64,
}

/// A record's frame and the bytes of its batch.
pub(crate) struct Located {
    pub(crate) number: u64,
    /// The offset of the batch in its segment.
    pub(crate) offset: u64,
    pub(crate) frame: Frame,
    pub(crate) batch: Vec<u8>,
    pub(crate) chain: Digest,
}

impl Place {
    /// The batches from here to the segment's durable end.
    pub(crate) fn batches(&self) -> Batches {
        Batches::new(Arc::clone(&self.file), self.offset, self.end)
    }

    /// Reads the record at `cursor`.
    pub(crate) fn fetch(&self, cursor: Cursor) -> Result<Located, StoreError> {
        let mut batches = self.batches().in_steps_of(LOOK_BYTES);
        loop {
            let offset = batches.offset();
            let found = batches.next(None).map_err(StoreError::io(format!("reading segment {}", self.number)))?;
            let batch = match found {
                Found::Batch(batch) => batch,
                Found::End => {
                    return Err(corrupt(self.number, offset, Some(cursor), "the record is not where it was written"));
                }
                Found::Damaged(what) => return Err(corrupt(self.number, offset, Some(cursor), what)),
            };
            if batch.header.records == 0 || batch.header.last() < cursor {
                continue;
            }
            let index = usize::try_from(cursor.0.saturating_sub(batch.header.first.0)).unwrap_or(usize::MAX);
            let frame = batch.frames().and_then(|frames| frames.into_iter().nth(index));
            let frame =
                frame.ok_or_else(|| corrupt(self.number, offset, Some(cursor), "the frame header is damaged"))?;
            let (batch, chain) = (batch.bytes.to_vec(), batch.header.chain);
            return Ok(Located { number: self.number, offset, frame, batch, chain });
        }
    }
}

impl Core {
    /// The place of a durable record, or `None` beyond the durable end.
    pub(super) fn place(&self, cursor: Cursor) -> Option<Place> {
        if cursor > self.durable || cursor.0 == 0 {
            return None;
        }
        let index = self.segments.partition_point(|segment| segment.first <= cursor).checked_sub(1)?;
        self.segments.get(index).map(|segment| segment.place(cursor))
    }

    /// The tip of a stream, made hot if it was not.
    pub(super) fn tip(&mut self, stream: &StreamId) -> Result<Option<Tip>, StoreError> {
        match self.heads.tip(stream) {
            Standing::Known(tip) => Ok(Some(tip)),
            Standing::Absent => Ok(None),
            Standing::In(cursor) => {
                let located = self.fetch(cursor)?;
                let record = &located.frame.record;
                let link = record.links.iter().rev().find(|link| link.stream == *stream);
                let link = link.ok_or_else(|| located.misled(cursor))?;
                let tip = Tip { head: link.head(record.digest()), cursor };
                self.heads.set_tip(stream.clone(), tip);
                Ok(Some(tip))
            }
        }
    }

    /// What a key stands for, made hot if it was not.
    pub(super) fn claimed(&mut self, key: &ClaimKey) -> Result<Option<Digest>, StoreError> {
        match self.heads.claim(key) {
            Standing::Known(digest) => Ok(Some(digest)),
            Standing::Absent => Ok(None),
            Standing::In(cursor) => {
                let located = self.fetch(cursor)?;
                let claim = located.frame.record.claims.iter().find(|claim| claim.key == *key);
                let digest = claim.ok_or_else(|| located.misled(cursor))?.digest;
                self.heads.set_claim(key.clone(), digest, cursor);
                Ok(Some(digest))
            }
        }
    }

    fn fetch(&self, cursor: Cursor) -> Result<Located, StoreError> {
        self.place(cursor).ok_or(StoreError::NoRecord(cursor.0))?.fetch(cursor)
    }
}

impl Located {
    /// A fingerprint led to a record that does not carry its key.
    fn misled(&self, cursor: Cursor) -> StoreError {
        corrupt(self.number, self.offset, Some(cursor), "a fingerprint leads to a record without its key")
    }
}

impl Segment {
    fn place(&self, cursor: Cursor) -> Place {
        let index = self.places.partition_point(|(first, _)| *first <= cursor).saturating_sub(1);
        let offset = self.places.get(index).map_or(crate::segment::HEADER_BYTES as u64, |(_, offset)| *offset);
        Place { number: self.number, file: Arc::clone(&self.file), offset, end: self.end }
    }
}
