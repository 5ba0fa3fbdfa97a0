//! Walking everything on disk and checking it: headers, checksums, chains, claims, bodies, footers.

use crate::disk::DiskFile;
use crate::error::{Corruption, StoreError};
use crate::frame::Frame;
use crate::heads::NewPrints;
use crate::log::{BODY_DAMAGED, Log, removed_by};
use crate::segment::{Batch, Batches, Fingerprint, Footer, Found, HEADER_BYTES, SegmentHeader};
use closer_contracts::record::{ClaimKey, Cursor, Epoch, Head, Position, StreamId};
use closer_contracts::{Digest, canonical};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// How far a walk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Segments walked.
    pub segments: u64,
    /// Segments in all.
    pub segments_total: u64,
    /// Records seen.
    pub records: u64,
    /// Bytes walked.
    pub bytes: u64,
}

/// A log in which everything fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Durable records.
    pub records: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes walked.
    pub bytes: u64,
    /// The digest of all streams with their heads, sorted by name: equal exactly if all histories are.
    pub heads: Digest,
    /// The chain over all headers in log order.
    pub chain: Digest,
}

struct Walk {
    progress: Progress,
    next: Cursor,
    sequence: u64,
    watermark: u64,
    epoch: Epoch,
    chain: Digest,
    heads: HashMap<StreamId, (Head, Cursor)>,
    claims: HashMap<ClaimKey, Digest>,
    /// Bodies that do not fit, until a custody record names them.
    misfits: BTreeMap<Cursor, Corruption>,
    removed: BTreeSet<Cursor>,
    /// The fingerprints of the segment being walked.
    claim_prints: BTreeMap<Fingerprint, Cursor>,
    head_prints: BTreeMap<Fingerprint, Cursor>,
}

/// Walks all durable bytes of a log.
pub(crate) fn verify(log: &Log, progress: &mut dyn FnMut(Progress)) -> Result<Verified, StoreError> {
    let segments = log.durable_segments();
    let mut walk = Walk {
        progress: Progress { segments: 0, segments_total: segments.len() as u64, records: 0, bytes: 0 },
        next: Cursor(1),
        sequence: 1,
        watermark: 0,
        epoch: Epoch(0),
        chain: Digest::from_raw([0; 32]),
        heads: HashMap::new(),
        claims: HashMap::new(),
        misfits: BTreeMap::new(),
        removed: BTreeSet::new(),
        claim_prints: BTreeMap::new(),
        head_prints: BTreeMap::new(),
    };
    for (number, file, end, closed) in segments {
        walk.segment(number, &file, end, closed, progress)?;
        walk.progress.segments += 1;
        progress(walk.progress);
    }
    if let Some((_, damage)) = walk.misfits.iter().find(|(cursor, _)| !walk.removed.contains(cursor)) {
        return Err(damage.clone().into());
    }
    Ok(walk.verified())
}

impl Walk {
    fn verified(self) -> Verified {
        let heads: BTreeMap<&StreamId, &Head> = self.heads.iter().map(|(stream, (head, _))| (stream, head)).collect();
        let mut parts: Vec<&[u8]> = Vec::with_capacity(heads.len() * 2);
        for (stream, head) in heads {
            parts.push(stream.as_str().as_bytes());
            parts.push(head.link.raw());
        }
        Verified {
            records: self.progress.records,
            segments: self.progress.segments,
            bytes: self.progress.bytes,
            heads: canonical::hash_parts("closer.heads.v1", &parts),
            chain: self.chain,
        }
    }

    fn segment(
        &mut self,
        number: u64,
        file: &Arc<dyn DiskFile>,
        end: u64,
        closed: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), StoreError> {
        let damage = |offset, record, what| StoreError::from(Corruption { segment: number, offset, record, what });
        let header = SegmentHeader::read(&**file, number)?;
        let expected =
            SegmentHeader { number, first: self.next, sequence: self.sequence, epoch: self.epoch, chain: self.chain };
        if header != expected {
            return Err(damage(0, Some(self.next), "the segment does not continue the one before"));
        }
        self.claim_prints.clear();
        self.head_prints.clear();
        let mut batches = Batches::new(Arc::clone(file), HEADER_BYTES as u64, end);
        while batches.offset() < end {
            let offset = batches.offset();
            let found = batches.next(Some(self.chain)).map_err(StoreError::io(format!("reading segment {number}")))?;
            match found {
                Found::Batch(batch) => self.batch(number, &batch)?,
                Found::End => return Err(damage(offset, Some(self.next), "a batch is missing")),
                Found::Damaged(what) => return Err(damage(offset, Some(self.next), what)),
            }
            let before = self.progress.bytes;
            self.progress.bytes += batches.offset() - offset;
            if before >> 24 != self.progress.bytes >> 24 {
                progress(self.progress);
            }
        }
        match closed {
            true => self.footer(number, &**file, end),
            false => Ok(()),
        }
    }

    fn batch(&mut self, number: u64, batch: &Batch<'_>) -> Result<(), StoreError> {
        let header = &batch.header;
        let damage = |what| Corruption { segment: number, offset: batch.offset, record: Some(self.next), what };
        let in_order = header.sequence == self.sequence
            && header.first == self.next
            && header.epoch >= self.epoch
            && (self.watermark..header.sequence).contains(&header.watermark);
        if !in_order {
            return Err(damage("a batch is out of order").into());
        }
        let frames = batch.frames().ok_or_else(|| damage("the frame headers are damaged"))?;
        for (cursor, frame) in (header.first.0..).map(Cursor).zip(&frames) {
            self.frame(number, batch, cursor, frame)?;
        }
        self.next = Cursor(header.last().0 + 1);
        self.sequence += 1;
        self.watermark = header.watermark;
        self.epoch = header.epoch;
        self.chain = header.chain;
        Ok(())
    }

    fn frame(&mut self, number: u64, batch: &Batch<'_>, cursor: Cursor, frame: &Frame) -> Result<(), StoreError> {
        let damage = |offset, what| Corruption { segment: number, offset, record: Some(cursor), what };
        let record = &frame.record;
        let digest = record.digest();
        for (link, previous) in record.links.iter().zip(&frame.previous) {
            let (head, at) =
                self.heads.get(&link.stream).copied().map_or((None, Cursor(0)), |(head, at)| (Some(head), at));
            let continues = link.previous == head.map(|head| head.link)
                && link.position == Position(head.map_or(0, |head| head.position.0) + 1)
                && *previous == at;
            if !continues {
                return Err(damage(batch.offset, "a link does not continue its stream").into());
            }
            self.heads.insert(link.stream.clone(), (link.head(digest), cursor));
        }
        for claim in &record.claims {
            if *self.claims.entry(claim.key.clone()).or_insert(claim.digest) != claim.digest {
                return Err(damage(batch.offset, "a key is claimed twice").into());
            }
        }
        self.removed.extend(removed_by(record));
        if frame.body(batch.bytes).is_none() {
            self.misfits.insert(cursor, damage(batch.offset + frame.body_at as u64, BODY_DAMAGED));
        }
        let mut prints = NewPrints::default();
        prints.add(cursor, std::slice::from_ref(record));
        for (print, cursor) in prints.claims {
            self.claim_prints.entry(print).or_insert(cursor);
        }
        self.head_prints.extend(prints.heads);
        self.progress.records += 1;
        Ok(())
    }

    fn footer(&self, number: u64, file: &dyn DiskFile, end: u64) -> Result<(), StoreError> {
        let damage = |what| StoreError::from(Corruption { segment: number, offset: end, record: None, what });
        let footer = Footer::read(file).map_err(StoreError::io(format!("reading segment {number}")))?;
        let footer = footer.map_err(|_| damage("the footer is damaged"))?;
        let same = |rows: &[(Fingerprint, Cursor)], seen: &BTreeMap<Fingerprint, Cursor>| {
            rows.len() == seen.len() && rows.iter().all(|(print, cursor)| seen.get(print) == Some(cursor))
        };
        let fits = footer.end == end
            && footer.last.0 + 1 == self.next.0
            && footer.last_sequence + 1 == self.sequence
            && footer.chain == self.chain
            && same(&footer.claims, &self.claim_prints)
            && same(&footer.heads, &self.head_prints);
        match fits {
            true => Ok(()),
            false => Err(damage("the footer does not fit its segment")),
        }
    }
}
