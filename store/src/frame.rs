//! Bytes of batches and frames. The layout is documented in `docs/store-format.md`; all integers are little-endian.
//!
//! A batch is one fenced append: a fixed header, the frame headers of its records, then their bodies. Checksums cover
//! the headers alone; a body is checked by the digest in its frame header, so that it can be overwritten in place under
//! a custody decision without looking like damage.

mod decode;
#[cfg(test)]
mod tests;

pub(crate) use decode::{Frame, FrameView, Take, check, decode_frames, decode_header, view_frames};

use closer_contracts::Digest;
use closer_contracts::record::{Cursor, CustodyClass, Epoch, Record, RecordKind};

/// Bytes of a batch header.
pub(crate) const BATCH_HEADER_BYTES: usize = 96;
/// Batches start at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;
/// The first word of every batch.
pub(crate) const BATCH_MAGIC: u32 = u32::from_le_bytes(*b"CLBT");
const FRAME_FIXED_BYTES: usize = 20 + 32;
const LINK_FIXED_BYTES: usize = 2 + 2 + 8 + 8 + 32;
const CLAIM_FIXED_BYTES: usize = 2 + 32;
/// The longest stream name, claim key or record id, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 512;

/// What a batch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchKind {
    /// Records of one fenced append.
    Append,
    /// Nothing but the watermark, written when the writer is idle.
    Seal,
    /// Raises the epoch of the sequencer's lease.
    Lease,
}

impl BatchKind {
    const fn code(self) -> u32 {
        match self {
            Self::Append => 1,
            Self::Seal => 2,
            Self::Lease => 3,
        }
    }

    fn of(code: u32) -> Option<Self> {
        [Self::Append, Self::Seal, Self::Lease].into_iter().find(|kind| kind.code() == code)
    }
}

/// The header of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    pub(crate) kind: BatchKind,
    pub(crate) records: u32,
    pub(crate) heads_bytes: u32,
    pub(crate) bodies_bytes: u32,
    /// From 1, without gaps, across segments.
    pub(crate) sequence: u64,
    pub(crate) epoch: Epoch,
    pub(crate) first: Cursor,
    /// The sequence known durable when this batch was written.
    pub(crate) watermark: u64,
    /// Digest of the previous batch's chain and this batch's headers.
    pub(crate) chain: Digest,
}

impl BatchHeader {
    /// Bytes of the whole batch, padding included.
    pub(crate) fn batch_bytes(&self) -> usize {
        padded(BATCH_HEADER_BYTES + self.heads_bytes as usize + self.bodies_bytes as usize)
    }

    /// The cursor of the last record, or of the one before `first` if there is none.
    pub(crate) const fn last(&self) -> Cursor {
        Cursor((self.first.0 + self.records as u64).saturating_sub(1))
    }
}

/// Rounds up to [`ALIGNMENT`].
pub(crate) const fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

const fn kind_code(kind: RecordKind) -> u8 {
    match kind {
        RecordKind::Genesis => 1,
        RecordKind::Payload => 2,
        RecordKind::Auth => 3,
        RecordKind::Artifact => 4,
        RecordKind::Commit => 5,
        RecordKind::Intent => 6,
        RecordKind::Outcome => 7,
        RecordKind::Refusal => 8,
        RecordKind::Ledger => 9,
        RecordKind::Ownership => 10,
        RecordKind::Activation => 11,
        RecordKind::Notice => 12,
        RecordKind::Snapshot => 13,
        RecordKind::Custody => 14,
    }
}

const fn custody_code(custody: CustodyClass) -> u8 {
    match custody {
        CustodyClass::Open => 1,
        CustodyClass::Restricted => 2,
        CustodyClass::Sealed => 3,
    }
}

/// Bytes that a record's frame header takes.
pub(crate) fn frame_bytes(record: &Record) -> usize {
    let links: usize = record.links.iter().map(|link| LINK_FIXED_BYTES + link.stream.as_str().len()).sum();
    let claims: usize = record.claims.iter().map(|claim| CLAIM_FIXED_BYTES + claim.key.as_str().len()).sum();
    FRAME_FIXED_BYTES + record.id.len() + record.admitted_at.as_str().len() + links + claims
}

/// Bytes that a batch of these records takes, padding included.
pub(crate) fn batch_bytes(records: &[Record]) -> usize {
    let body = |record: &Record| record.body.as_ref().map_or(0, |body| body.len());
    padded(BATCH_HEADER_BYTES + records.iter().map(|record| frame_bytes(record) + body(record)).sum::<usize>())
}

/// What a batch is made from.
pub(crate) struct Draft<'a> {
    pub(crate) kind: BatchKind,
    pub(crate) sequence: u64,
    pub(crate) epoch: Epoch,
    pub(crate) first: Cursor,
    pub(crate) watermark: u64,
    pub(crate) records: &'a [Record],
    /// For every link of every record in order, the cursor of its stream's previous record.
    pub(crate) previous: &'a [Cursor],
    /// The chain of the batch before.
    pub(crate) chain: Digest,
}

/// Appends the batch to `out` and returns its chain.
pub(crate) fn encode(draft: &Draft<'_>, out: &mut Vec<u8>) -> Digest {
    let start = out.len();
    out.resize(start + BATCH_HEADER_BYTES, 0);
    let mut previous = draft.previous.iter();
    for record in draft.records {
        encode_frame(record, &mut previous, out);
    }
    let heads_bytes = out.len() - start - BATCH_HEADER_BYTES;
    for body in draft.records.iter().filter_map(|record| record.body.as_ref()) {
        out.extend_from_slice(body);
    }
    let bodies_bytes = out.len() - start - BATCH_HEADER_BYTES - heads_bytes;
    out.resize(start + padded(out.len() - start), 0);

    let heads_at = start + BATCH_HEADER_BYTES;
    let heads = out.get(heads_at..heads_at + heads_bytes).unwrap_or_default();
    let mut header = [0u8; BATCH_HEADER_BYTES];
    let mut fields = Fields { bytes: &mut header, at: 8 };
    fields.put(&(heads_bytes as u32).to_le_bytes());
    fields.put(&(bodies_bytes as u32).to_le_bytes());
    fields.put(&crc32c::crc32c(heads).to_le_bytes());
    fields.put(&(draft.records.len() as u32).to_le_bytes());
    fields.put(&draft.sequence.to_le_bytes());
    fields.put(&draft.epoch.0.to_le_bytes());
    fields.put(&draft.first.0.to_le_bytes());
    fields.put(&draft.watermark.to_le_bytes());
    fields.put(&draft.kind.code().to_le_bytes());
    fields.put(&[0; 4]);
    let chain = chain(draft.chain, fields.bytes.get(8..64).unwrap_or_default(), heads);
    fields.put(chain.raw());
    let checksum = crc32c::crc32c(fields.bytes.get(8..).unwrap_or_default());
    fields.at = 0;
    fields.put(&BATCH_MAGIC.to_le_bytes());
    fields.put(&checksum.to_le_bytes());
    if let Some(slot) = out.get_mut(start..start + BATCH_HEADER_BYTES) {
        slot.copy_from_slice(&header);
    }
    chain
}

/// The digest that ties a batch's headers to all batches before it.
fn chain(previous: Digest, fields: &[u8], heads: &[u8]) -> Digest {
    use sha2::{Digest as _, Sha256};
    let mut hasher = Sha256::new();
    hasher.update(previous.raw());
    hasher.update(fields);
    hasher.update(heads);
    Digest::from_raw(hasher.finalize().into())
}

fn encode_frame<'a>(record: &Record, previous: &mut impl Iterator<Item = &'a Cursor>, out: &mut Vec<u8>) {
    let body_bytes = record.body.as_ref().map_or(0, |body| body.len());
    out.extend_from_slice(&(frame_bytes(record) as u32).to_le_bytes());
    out.extend_from_slice(&(body_bytes as u32).to_le_bytes());
    out.extend_from_slice(&[kind_code(record.kind), custody_code(record.custody)]);
    out.extend_from_slice(&(record.id.len() as u16).to_le_bytes());
    out.extend_from_slice(&(record.admitted_at.as_str().len() as u16).to_le_bytes());
    out.extend_from_slice(&(record.links.len() as u16).to_le_bytes());
    out.extend_from_slice(&(record.claims.len() as u16).to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(record.body_digest.raw());
    out.extend_from_slice(record.id.as_bytes());
    out.extend_from_slice(record.admitted_at.as_str().as_bytes());
    for link in &record.links {
        out.extend_from_slice(&(link.stream.as_str().len() as u16).to_le_bytes());
        out.extend_from_slice(&u16::from(link.previous.is_some()).to_le_bytes());
        out.extend_from_slice(&link.position.0.to_le_bytes());
        out.extend_from_slice(&previous.next().map_or(0, |cursor| cursor.0).to_le_bytes());
        out.extend_from_slice(link.previous.as_ref().map_or(&[0; 32], |digest| digest.raw()));
        out.extend_from_slice(link.stream.as_str().as_bytes());
    }
    for claim in &record.claims {
        out.extend_from_slice(&(claim.key.as_str().len() as u16).to_le_bytes());
        out.extend_from_slice(claim.digest.raw());
        out.extend_from_slice(claim.key.as_str().as_bytes());
    }
}

struct Fields<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Fields<'_> {
    fn put(&mut self, value: &[u8]) {
        if let Some(slot) = self.bytes.get_mut(self.at..self.at + value.len()) {
            slot.copy_from_slice(value);
        }
        self.at += value.len();
    }
}
