//! Segment files: header, footer, and reading the batches between them in order.

use crate::disk::{DiskFile, read_full};
use crate::error::{Corruption, StoreError};
use crate::frame::{self, ALIGNMENT, BATCH_HEADER_BYTES, BATCH_MAGIC, BatchHeader, Frame, FrameView, Take};
use closer_contracts::Digest;
use closer_contracts::record::{Cursor, Epoch};
use std::sync::Arc;

/// The newest store format this program reads and the one it writes.
pub const FORMAT_VERSION: u32 = 1;
/// Bytes of a segment header.
pub(crate) const HEADER_BYTES: usize = 96;
/// Bytes of the fixed part of a footer.
pub(crate) const FOOTER_FIXED_BYTES: usize = 80;
/// Bytes of the trailer, the last of a closed segment.
pub(crate) const TRAILER_BYTES: usize = 32;
/// Bytes of a fingerprint row in a footer.
pub(crate) const ROW_BYTES: usize = 24;
/// Bytes of a place row in a footer.
pub(crate) const PLACE_BYTES: usize = 16;
/// A place is noted for at most every so many bytes of batches.
pub(crate) const PLACE_EVERY_BYTES: u64 = 16 << 10;
const SEGMENT_MAGIC: [u8; 8] = *b"closerlg";
const FOOTER_MAGIC: u32 = u32::from_le_bytes(*b"CLFT");
const TRAILER_MAGIC: [u8; 8] = *b"closerft";
const READ_BYTES: usize = 1 << 20;

/// The first 16 bytes of the SHA-256 of a key: of a claim key, or of a stream name.
pub(crate) type Fingerprint = [u8; 16];

/// The fingerprint of a claim key.
pub(crate) fn claim_fingerprint(key: &str) -> Fingerprint {
    fingerprint(b"claim\0", key)
}

/// The fingerprint of a stream name.
pub(crate) fn stream_fingerprint(stream: &str) -> Fingerprint {
    fingerprint(b"stream\0", stream)
}

fn fingerprint(domain: &[u8], key: &str) -> Fingerprint {
    use sha2::{Digest as _, Sha256};
    let mut hasher = Sha256::new();
    hasher.update(domain);
    hasher.update(key.as_bytes());
    let full: [u8; 32] = hasher.finalize().into();
    full.first_chunk().copied().unwrap_or_default()
}

/// The file name of a segment.
pub(crate) fn name(number: u64) -> String {
    format!("{number:010}.log")
}

/// The number of a segment file; `None` for any other file.
pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    (digits.len() == 10).then(|| digits.parse().ok()).flatten()
}

/// What a segment header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) number: u64,
    /// The first cursor that this segment can hold.
    pub(crate) first: Cursor,
    /// The sequence of its first batch.
    pub(crate) sequence: u64,
    /// The epoch in force before its first batch.
    pub(crate) epoch: Epoch,
    /// The chain of the batch before its first.
    pub(crate) chain: Digest,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut rest = Vec::with_capacity(HEADER_BYTES);
        for word in [self.number, self.first.0, self.sequence, self.epoch.0] {
            rest.extend_from_slice(&word.to_le_bytes());
        }
        rest.extend_from_slice(self.chain.raw());
        rest.resize(HEADER_BYTES - 24, 0);
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(&SEGMENT_MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&(!FORMAT_VERSION).to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&rest).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&rest);
        bytes.first_chunk().copied().unwrap_or([0; HEADER_BYTES])
    }

    /// Reads the header of segment `number`. A newer format version is refused before anything else is looked at.
    pub(crate) fn read(file: &dyn DiskFile, number: u64) -> Result<Self, StoreError> {
        let mut bytes = [0; HEADER_BYTES];
        read_full(file, &mut bytes, 0).map_err(StoreError::io(format!("reading segment {number}")))?;
        let damaged = || Corruption { segment: number, offset: 0, record: None, what: "the segment header is damaged" };
        let mut take = Take(&bytes);
        let magic = take.array().ok_or_else(damaged)?;
        let (version, inverse) = (take.u32().ok_or_else(damaged)?, take.u32().ok_or_else(damaged)?);
        if magic != SEGMENT_MAGIC || version != !inverse || version == 0 {
            return Err(damaged().into());
        }
        if version > FORMAT_VERSION {
            return Err(StoreError::NewerVersion { found: version, known: FORMAT_VERSION });
        }
        Self::decode(take).filter(|header| header.number == number).ok_or_else(|| damaged().into())
    }

    fn decode(mut take: Take<'_>) -> Option<Self> {
        let (checksum, zero) = (take.u32()?, take.u32()?);
        if zero != 0 || crc32c::crc32c(take.0.get(..HEADER_BYTES - 24)?) != checksum {
            return None;
        }
        let (number, first, sequence, epoch) = (take.u64()?, take.u64()?, take.u64()?, take.u64()?);
        let chain = take.digest()?;
        Some(Self { number, first: Cursor(first), sequence, epoch: Epoch(epoch), chain })
    }
}

/// What a closed segment's footer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footer {
    /// The end of the batches: the offset of the footer.
    pub(crate) end: u64,
    pub(crate) last: Cursor,
    pub(crate) last_sequence: u64,
    pub(crate) epoch: Epoch,
    pub(crate) chain: Digest,
    /// (cursor, offset) of some batches, in order.
    pub(crate) places: Vec<(Cursor, u64)>,
    /// The claims it wrote, with the cursor of the first record that claims each.
    pub(crate) claims: Vec<(Fingerprint, Cursor)>,
    /// The streams it continued, with the cursor of the last record of each.
    pub(crate) heads: Vec<(Fingerprint, Cursor)>,
}

/// Bytes that a footer with so many rows takes, trailer included.
pub(crate) const fn footer_bytes(places: usize, rows: usize) -> usize {
    FOOTER_FIXED_BYTES + places * PLACE_BYTES + rows * ROW_BYTES + TRAILER_BYTES
}

impl Footer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut rest = Vec::with_capacity(footer_bytes(self.places.len(), self.claims.len() + self.heads.len()));
        for count in [self.places.len(), self.claims.len(), self.heads.len(), 0] {
            rest.extend_from_slice(&(count as u32).to_le_bytes());
        }
        for word in [self.last.0, self.last_sequence, self.epoch.0] {
            rest.extend_from_slice(&word.to_le_bytes());
        }
        rest.extend_from_slice(self.chain.raw());
        for (cursor, offset) in &self.places {
            rest.extend_from_slice(&cursor.0.to_le_bytes());
            rest.extend_from_slice(&offset.to_le_bytes());
        }
        for (print, cursor) in self.claims.iter().chain(&self.heads) {
            rest.extend_from_slice(print);
            rest.extend_from_slice(&cursor.0.to_le_bytes());
        }
        let mut bytes = FOOTER_MAGIC.to_le_bytes().to_vec();
        bytes.extend_from_slice(&crc32c::crc32c(&rest).to_le_bytes());
        bytes.append(&mut rest);
        let mut trailer = TRAILER_MAGIC.to_vec();
        trailer.extend_from_slice(&self.end.to_le_bytes());
        trailer.extend_from_slice(&((bytes.len() + TRAILER_BYTES) as u64).to_le_bytes());
        let checksum = crc32c::crc32c(&trailer);
        trailer.extend_from_slice(&checksum.to_le_bytes());
        trailer.extend_from_slice(&[0; 4]);
        bytes.append(&mut trailer);
        bytes
    }

    /// Reads the footer at the end of a file, or says at which offset there is none that fits.
    pub(crate) fn read(file: &dyn DiskFile) -> std::io::Result<Result<Self, u64>> {
        let len = file.len()?;
        let trailer_at = len.saturating_sub(TRAILER_BYTES as u64);
        let mut trailer = [0; TRAILER_BYTES];
        read_full(file, &mut trailer, trailer_at)?;
        let place = Self::decode_trailer(&trailer).filter(|(end, bytes)| end.checked_add(*bytes) == Some(len));
        let Some((end, bytes)) = place else {
            return Ok(Err(trailer_at));
        };
        let mut footer = vec![0; usize::try_from(bytes).unwrap_or_default().saturating_sub(TRAILER_BYTES)];
        read_full(file, &mut footer, end)?;
        Ok(Self::decode(&footer, end).ok_or(end))
    }

    fn decode_trailer(bytes: &[u8; TRAILER_BYTES]) -> Option<(u64, u64)> {
        let mut take = Take(bytes);
        let magic: [u8; 8] = take.array()?;
        let (end, length) = (take.u64()?, take.u64()?);
        let (checksum, zero) = (take.u32()?, take.u32()?);
        let fits = magic == TRAILER_MAGIC && zero == 0 && crc32c::crc32c(bytes.get(..24)?) == checksum;
        fits.then_some((end, length))
    }

    fn decode(bytes: &[u8], end: u64) -> Option<Self> {
        let mut take = Take(bytes);
        let (magic, checksum) = (take.u32()?, take.u32()?);
        if magic != FOOTER_MAGIC || crc32c::crc32c(take.0) != checksum {
            return None;
        }
        let (places, claims, heads, _) = (take.u32()?, take.u32()?, take.u32()?, take.u32()?);
        let (last, last_sequence, epoch) = (take.u64()?, take.u64()?, take.u64()?);
        let chain = take.digest()?;
        let places = (0..places).map(|_| Some((Cursor(take.u64()?), take.u64()?))).collect::<Option<_>>()?;
        let mut rows = |count| (0..count).map(|_| Some((take.array()?, Cursor(take.u64()?)))).collect::<Option<_>>();
        let (claims, heads) = (rows(claims)?, rows(heads)?);
        let footer = Self { end, last: Cursor(last), last_sequence, epoch: Epoch(epoch), chain, places, claims, heads };
        take.0.is_empty().then_some(footer)
    }
}

/// One batch as read, with its bytes.
pub(crate) struct Batch<'a> {
    pub(crate) header: BatchHeader,
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// Shows the records' frame headers where they lie; `None` if they do not add up.
    pub(crate) fn view(&self, each: impl FnMut(FrameView<'a>)) -> Option<()> {
        frame::view_frames(&self.header, self.bytes.get(BATCH_HEADER_BYTES..)?, each)
    }

    /// The records' frame headers.
    pub(crate) fn frames(&self) -> Option<Vec<Frame>> {
        frame::decode_frames(&self.header, self.bytes.get(BATCH_HEADER_BYTES..)?)
    }
}

/// What stands at an offset.
pub(crate) enum Found<'a> {
    /// A batch whose header and frame headers fit their checksums.
    Batch(Batch<'a>),
    /// Zeros, a footer, or the end of the file.
    End,
    /// Something else.
    Damaged(&'static str),
}

/// Reads the batches of one segment in order, in large steps.
pub(crate) struct Batches {
    file: Arc<dyn DiskFile>,
    buffer: Vec<u8>,
    buffer_at: u64,
    offset: u64,
    end: u64,
    step: usize,
}

impl Batches {
    /// Starts at `offset` and reads up to `end`.
    pub(crate) fn new(file: Arc<dyn DiskFile>, offset: u64, end: u64) -> Self {
        Self { file, buffer: Vec::new(), buffer_at: offset, offset, end, step: READ_BYTES }
    }

    /// Reads in steps of `bytes`, for a short look.
    pub(crate) fn in_steps_of(mut self, bytes: usize) -> Self {
        self.step = bytes;
        self
    }

    /// Where the next batch is looked for.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Makes `count` bytes at the current offset available, or fewer at the end.
    fn fill(&mut self, count: usize) -> std::io::Result<()> {
        let skip = usize::try_from(self.offset - self.buffer_at).unwrap_or(usize::MAX);
        if self.buffer.len().saturating_sub(skip) >= count {
            return Ok(());
        }
        self.buffer.drain(..skip.min(self.buffer.len()));
        self.buffer_at = self.offset;
        let kept = self.buffer.len();
        let left = usize::try_from(self.end.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let wanted = count.max(self.step).min(left);
        if wanted > kept {
            self.buffer.resize(wanted, 0);
            let slot = self.buffer.get_mut(kept..).unwrap_or_default();
            let filled = read_full(&*self.file, slot, self.offset + kept as u64)?;
            self.buffer.truncate(kept + filled);
        }
        Ok(())
    }

    fn window(&self, count: usize) -> Option<&[u8]> {
        let from = usize::try_from(self.offset - self.buffer_at).ok()?;
        self.buffer.get(from..from.checked_add(count)?)
    }

    /// The next batch. After anything but a batch it stays where it is.
    ///
    /// `before` is the chain of the batch before; with `None` the chain is not checked.
    pub(crate) fn next(&mut self, before: Option<Digest>) -> std::io::Result<Found<'_>> {
        self.fill(BATCH_HEADER_BYTES)?;
        let Some(window) = self.window(BATCH_HEADER_BYTES) else {
            let from = usize::try_from(self.offset - self.buffer_at).unwrap_or(usize::MAX);
            let rest = self.buffer.get(from..).unwrap_or_default();
            let zero = rest.iter().all(|byte| *byte == 0);
            return Ok(if zero { Found::End } else { Found::Damaged("the last batch is cut short") });
        };
        let magic = window.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        if magic == Some(FOOTER_MAGIC) || window.iter().all(|byte| *byte == 0) {
            return Ok(Found::End);
        }
        let Some(header) = frame::decode_header(window) else {
            return Ok(Found::Damaged("the batch header is damaged"));
        };
        let total = header.batch_bytes();
        self.fill(total)?;
        let offset = self.offset;
        let checked = match self.window(total) {
            Some(bytes) => frame::check(&header, bytes, before),
            None => Err("the last batch is cut short"),
        };
        if let Err(what) = checked {
            return Ok(Found::Damaged(what));
        }
        self.offset += total as u64;
        let from = usize::try_from(offset - self.buffer_at).unwrap_or_default();
        let bytes = self.buffer.get(from..from + total).unwrap_or_default();
        Ok(Found::Batch(Batch { header, offset, bytes }))
    }

    /// Looks beyond the end, or beyond a damaged batch, at which the batch of this `sequence` was due.
    pub(crate) fn beyond(mut self, sequence: u64) -> std::io::Result<Beyond> {
        let mut beyond = Beyond { watermark: 0, zero: true };
        while self.offset < self.end {
            self.fill(READ_BYTES)?;
            let from = usize::try_from(self.offset - self.buffer_at).unwrap_or(usize::MAX);
            let window = self.buffer.get(from..).unwrap_or_default();
            // Candidates start in the blocks of this window; a header may reach beyond it, so the last stay for the next.
            let last = window.len() as u64 + self.offset >= self.end;
            let usable = if last { window.len() } else { window.len().saturating_sub(ZERO_BLOCK_BYTES) };
            let usable = usable - usable % ALIGNMENT;
            if usable == 0 {
                break;
            }
            for block in (0..usable).step_by(ZERO_BLOCK_BYTES) {
                let end = (block + ZERO_BLOCK_BYTES).min(usable);
                if is_zero(window.get(block..end).unwrap_or_default()) {
                    continue;
                }
                beyond.zero = false;
                for at in (block..end).step_by(ALIGNMENT) {
                    let candidate = window.get(at..).unwrap_or_default();
                    if candidate.first_chunk() == Some(&BATCH_MAGIC.to_le_bytes())
                        && let Some(header) = frame::decode_header(candidate)
                        && header.sequence > sequence
                    {
                        beyond.watermark = beyond.watermark.max(header.watermark);
                    }
                }
            }
            self.offset += usable as u64;
        }
        Ok(beyond)
    }
}

/// What lies beyond the last batch that fits.
pub(crate) struct Beyond {
    /// The highest watermark of any later batch header; zero if there is none.
    pub(crate) watermark: u64,
    /// There is nothing but zeros.
    pub(crate) zero: bool,
}

const ZERO_BLOCK_BYTES: usize = 4096;

/// Whether all bytes are zero, a block at a time.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(256).all(|block| block.iter().fold(0, |all, byte| all | byte) == 0)
}
