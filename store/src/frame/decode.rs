//! Reading batches and frames back: what does not fit is `None` or says what is wrong.

use super::{BATCH_HEADER_BYTES, BATCH_MAGIC, BatchHeader, BatchKind, chain, custody_code, kind_code};
use closer_contracts::Digest;
use closer_contracts::record::{
    Claim, ClaimKey, Cursor, CustodyClass, Epoch, Link, Position, Record, RecordKind, StreamId,
};
use closer_contracts::time::Timestamp;
use std::sync::Arc;

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
pub(crate) fn view_frames<'a>(
    header: &BatchHeader,
    heads: &'a [u8],
    mut each: impl FnMut(FrameView<'a>),
) -> Option<()> {
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
            claims: self
                .claims
                .iter()
                .map(|(key, digest)| Claim { key: ClaimKey::new(*key), digest: *digest })
                .collect(),
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
