//! Bytes of batches and frames. The layout is documented in `docs/store-format.md`; all integers are little-endian.
//!
//! A batch is one fenced append: a fixed header, the frame headers of its records, then their bodies. Checksums cover
//! the headers alone; a body is checked by the digest in its frame header, so that it can be overwritten in place under
//! a custody decision without looking like damage.

use closer_contracts::Digest;
use closer_contracts::record::{Claim, ClaimKey, Cursor, CustodyClass, Epoch, Link, Position, Record, RecordKind, StreamId};
use closer_contracts::time::Timestamp;
use std::sync::Arc;

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

/// One record's frame header as read, with where its body lies.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// The record without its body.
    pub(crate) record: Record,
    /// For each link, the cursor of the previous record of its stream; zero at position 1.
    pub(crate) previous: Vec<Cursor>,
    /// Where the body starts, counted from the start of the batch.
    pub(crate) body_at: usize,
    pub(crate) body_bytes: usize,
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

/// Takes values off the front of bytes read from disk; `None` when they end too soon.
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl<'a> Take<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn digest(&mut self) -> Option<Digest> {
        self.array().map(Digest::from_raw)
    }

    fn text(&mut self, count: usize) -> Option<&'a str> {
        std::str::from_utf8(self.bytes(count)?).ok()
    }
}

/// Reads a batch header; `None` unless its magic and checksum fit.
pub(crate) fn decode_header(bytes: &[u8]) -> Option<BatchHeader> {
    let mut take = Take(bytes.get(..BATCH_HEADER_BYTES)?);
    let (magic, checksum) = (take.u32()?, take.u32()?);
    if magic != BATCH_MAGIC || crc32c::crc32c(take.0) != checksum {
        return None;
    }
    let (heads_bytes, bodies_bytes, _, records) = (take.u32()?, take.u32()?, take.u32()?, take.u32()?);
    let (sequence, epoch, first, watermark) = (take.u64()?, take.u64()?, take.u64()?, take.u64()?);
    let kind = BatchKind::of(take.u32()?)?;
    let _ = take.u32()?;
    let chain = take.digest()?;
    Some(BatchHeader {
        kind,
        records,
        heads_bytes,
        bodies_bytes,
        sequence,
        epoch: Epoch(epoch),
        first: Cursor(first),
        watermark,
        chain,
    })
}

/// Checks the frame headers of a batch against its header and the chain before it.
///
/// `batch` is the whole batch. The error says what does not fit.
pub(crate) fn check(header: &BatchHeader, batch: &[u8], before: Option<Digest>) -> Result<(), &'static str> {
    let heads_end = BATCH_HEADER_BYTES + header.heads_bytes as usize;
    let heads = batch.get(BATCH_HEADER_BYTES..heads_end).ok_or("the frame headers are cut short")?;
    let stored = batch.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    if stored != Some(crc32c::crc32c(heads)) {
        return Err("the checksum of the frame headers does not fit");
    }
    let padding = batch.get(heads_end + header.bodies_bytes as usize..).unwrap_or_default();
    if padding.iter().any(|byte| *byte != 0) {
        return Err("the padding is not zero");
    }
    match before.map(|before| chain(before, batch.get(8..64).unwrap_or_default(), heads)) {
        Some(expected) if expected != header.chain => Err("the chain does not fit the batch before"),
        Some(_) | None => Ok(()),
    }
}

/// One frame header where it lies, nothing copied.
pub(crate) struct FrameView<'a> {
    pub(crate) kind: RecordKind,
    custody: CustodyClass,
    id: &'a str,
    time: &'a str,
    body_digest: Digest,
    pub(crate) links: Vec<LinkView<'a>>,
    pub(crate) claims: Vec<(&'a str, Digest)>,
    body_at: usize,
    body_bytes: usize,
}

/// One link where it lies.
pub(crate) struct LinkView<'a> {
    pub(crate) stream: &'a str,
    position: Position,
    before: Cursor,
    previous: Option<Digest>,
}

/// Shows the frame headers of a batch one by one; `None` if they do not add up.
pub(crate) fn view_frames<'a>(header: &BatchHeader, heads: &'a [u8], mut each: impl FnMut(FrameView<'a>)) -> Option<()> {
    let mut take = Take(heads.get(..header.heads_bytes as usize)?);
    let bodies_at = BATCH_HEADER_BYTES + header.heads_bytes as usize;
    let mut body_at = bodies_at;
    for _ in 0..header.records {
        let frame = view_frame(&mut take, body_at)?;
        body_at += frame.body_bytes;
        each(frame);
    }
    (take.0.is_empty() && body_at - bodies_at == header.bodies_bytes as usize).then_some(())
}

/// Reads the frame headers of a batch.
pub(crate) fn decode_frames(header: &BatchHeader, heads: &[u8]) -> Option<Vec<Frame>> {
    let mut frames = Vec::with_capacity(header.records.min(1024) as usize);
    view_frames(header, heads, |view| frames.push(view.to_frame()))?;
    frames.into_iter().collect()
}

fn view_frame<'a>(take: &mut Take<'a>, body_at: usize) -> Option<FrameView<'a>> {
    let frame_bytes = take.u32()? as usize;
    let mut take = Take(take.bytes(frame_bytes.checked_sub(4)?)?);
    let body_bytes = take.u32()? as usize;
    let [kind, custody] = take.array()?;
    let kind = RecordKind::ALL.iter().copied().find(|known| kind_code(*known) == kind)?;
    let custody = CustodyClass::ALL.iter().copied().find(|known| custody_code(*known) == custody)?;
    let (id_bytes, time_bytes, links, claims) = (take.u16()?, take.u16()?, take.u16()?, take.u16()?);
    let _ = take.u16()?;
    let body_digest = take.digest()?;
    let id = take.text(id_bytes.into())?;
    let time = take.text(time_bytes.into())?;
    let links = (0..links)
        .map(|_| {
            let (stream_bytes, continues) = (take.u16()?, take.u16()?);
            let (position, before) = (Position(take.u64()?), Cursor(take.u64()?));
            let digest = take.digest()?;
            let stream = take.text(stream_bytes.into())?;
            Some(LinkView { stream, position, before, previous: (continues == 1).then_some(digest) })
        })
        .collect::<Option<Vec<_>>>()?;
    let claims = (0..claims)
        .map(|_| {
            let key_bytes = take.u16()?;
            let digest = take.digest()?;
            Some((take.text(key_bytes.into())?, digest))
        })
        .collect::<Option<Vec<_>>>()?;
    let frame = FrameView { kind, custody, id, time, body_digest, links, claims, body_at, body_bytes };
    take.0.is_empty().then_some(frame)
}

impl FrameView<'_> {
    /// The frame on its own; `None` if its time is none.
    fn to_frame(&self) -> Option<Frame> {
        let link = |link: &LinkView<'_>| Link {
            stream: StreamId::new(link.stream),
            position: link.position,
            previous: link.previous,
        };
        let record = Record {
            kind: self.kind,
            id: self.id.to_owned(),
            admitted_at: Timestamp::parse(self.time).ok()?,
            custody: self.custody,
            links: self.links.iter().map(link).collect(),
            claims: self.claims.iter().map(|(key, digest)| Claim { key: ClaimKey::new(*key), digest: *digest }).collect(),
            body_digest: self.body_digest,
            body: None,
        };
        let previous = self.links.iter().map(|link| link.before).collect();
        Some(Frame { record, previous, body_at: self.body_at, body_bytes: self.body_bytes })
    }

    /// Whether the body's bytes within the whole batch are what the frame says.
    pub(crate) fn body_fits(&self, batch: &[u8]) -> bool {
        batch.get(self.body_at..self.body_at + self.body_bytes).is_some_and(|body| Digest::of(body) == self.body_digest)
    }
}

impl Frame {
    /// The body's bytes within the whole batch, if they are what the record says.
    pub(crate) fn body(&self, batch: &[u8]) -> Option<Arc<[u8]>> {
        let body = batch.get(self.body_at..self.body_at + self.body_bytes)?;
        (Digest::of(body) == self.record.body_digest).then(|| body.into())
    }
}
