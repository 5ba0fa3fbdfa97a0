//! The newest heads and claims in memory: what every guard is compared with.
//!
//! Hot entries carry names and values: pending appends and whatever was touched lately. Cold entries are fingerprints
//! that lead to the record in the log; they prove absence, and 24 bytes suffice for each.

use crate::frame::FrameView;
use crate::segment::{Fingerprint, claim_fingerprint, stream_fingerprint};
use closer_contracts::Digest;
use closer_contracts::record::{ClaimKey, Cursor, Head, Record, StreamId};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A stream's head and the record that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tip {
    pub(crate) head: Head,
    pub(crate) cursor: Cursor,
}

/// Where a value stands.
pub(crate) enum Standing<T> {
    /// Here.
    Known(T),
    /// In the record at this cursor.
    In(Cursor),
    /// Nowhere: proved by the fingerprints.
    Absent,
}

/// Fingerprints are digests already: their first word is the hash.
#[derive(Default)]
pub(crate) struct PrintHasher(u64);

impl Hasher for PrintHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(word) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*word);
        }
    }

    fn write_usize(&mut self, _: usize) {}
}

type Prints = HashMap<Fingerprint, Cursor, BuildHasherDefault<PrintHasher>>;

/// What one durable batch adds to the fingerprints.
#[derive(Debug, Default)]
pub(crate) struct NewPrints {
    pub(crate) claims: Vec<(Fingerprint, Cursor)>,
    pub(crate) heads: Vec<(Fingerprint, Cursor)>,
}

impl NewPrints {
    /// Adds the fingerprints of one frame.
    pub(crate) fn add_view(&mut self, cursor: Cursor, frame: &FrameView<'_>) {
        self.claims.extend(frame.claims.iter().map(|(key, _)| (claim_fingerprint(key), cursor)));
        self.heads.extend(frame.links.iter().map(|link| (stream_fingerprint(link.stream), cursor)));
    }

    /// Adds the fingerprints of records from `first` on.
    pub(crate) fn add(&mut self, first: Cursor, records: &[Record]) {
        for (cursor, record) in (first.0..).map(Cursor).zip(records) {
            self.claims.extend(record.claims.iter().map(|claim| (claim_fingerprint(claim.key.as_str()), cursor)));
            self.heads.extend(record.links.iter().map(|link| (stream_fingerprint(link.stream.as_str()), cursor)));
        }
    }
}

/// How many heads and claims stay hot at most, about 150 bytes each, before the coldest are forgotten.
const HOT_MAX: usize = 400_000;

/// All heads and claims of a log.
#[derive(Default)]
pub(crate) struct Heads {
    tips: HashMap<StreamId, Tip>,
    claims: HashMap<ClaimKey, (Digest, Cursor)>,
    cold_tips: Prints,
    cold_claims: Prints,
}

impl Heads {
    pub(crate) fn tip(&self, stream: &StreamId) -> Standing<Tip> {
        match self.tips.get(stream) {
            Some(tip) => Standing::Known(*tip),
            None => cold(&self.cold_tips, &stream_fingerprint(stream.as_str())),
        }
    }

    pub(crate) fn claim(&self, key: &ClaimKey) -> Standing<Digest> {
        match self.claims.get(key) {
            Some((digest, _)) => Standing::Known(*digest),
            None => cold(&self.cold_claims, &claim_fingerprint(key.as_str())),
        }
    }

    /// The newest durable record of a stream.
    pub(crate) fn durable(&self, stream: &StreamId) -> Option<Cursor> {
        self.cold_tips.get(&stream_fingerprint(stream.as_str())).copied()
    }

    pub(crate) fn set_tip(&mut self, stream: StreamId, tip: Tip) {
        self.tips.insert(stream, tip);
    }

    /// Notes a claim; the first record that claims a key stays the one that is cited.
    pub(crate) fn set_claim(&mut self, key: ClaimKey, digest: Digest, cursor: Cursor) {
        self.claims.entry(key).or_insert((digest, cursor));
    }

    /// Takes in the fingerprints of what is durable now.
    pub(crate) fn settle(&mut self, prints: &NewPrints) {
        for (print, cursor) in &prints.claims {
            self.cold_claims.entry(*print).or_insert(*cursor);
        }
        self.cold_tips.extend(prints.heads.iter().copied());
    }

    /// Forgets the names and values of what was last touched before `cursor`, once there are many; their fingerprints stay.
    pub(crate) fn cool(&mut self, cursor: Cursor) {
        if self.tips.len() + self.claims.len() <= HOT_MAX {
            return;
        }
        self.tips.retain(|_, tip| tip.cursor >= cursor);
        self.claims.retain(|_, (_, claimed)| *claimed >= cursor);
    }
}

fn cold<T>(prints: &Prints, print: &Fingerprint) -> Standing<T> {
    prints.get(print).map_or(Standing::Absent, |cursor| Standing::In(*cursor))
}
