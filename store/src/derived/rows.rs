//! Keys and values of the derived rows, big-endian so that their order is the order of what they name.

use closer_contracts::Digest;
use closer_contracts::record::{Cursor, Position, RecordKind, StreamId};
use closer_contracts::refs::StateRef;

/// The key of the state that the rows stand for.
pub(super) const STATE: &[u8] = b"s";
/// The key of the mark.
pub(super) const MARK: &[u8] = b"z";

pub(super) fn record_key(kind: RecordKind, id: &str) -> Vec<u8> {
    named(b'i', kind.as_str(), id)
}

pub(super) fn row_key(kind: &str, id: &str) -> Vec<u8> {
    named(b'v', kind, id)
}

fn named(table: u8, kind: &str, id: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(kind.len() + id.len() + 2);
    key.push(table);
    key.extend_from_slice(kind.as_bytes());
    key.push(0);
    key.extend_from_slice(id.as_bytes());
    key
}

pub(super) fn receipt_key(version: u64) -> Vec<u8> {
    let mut key = vec![b'r'];
    key.extend_from_slice(&version.to_be_bytes());
    key
}

pub(super) fn position_key(stream: &StreamId, position: Position) -> Vec<u8> {
    let mut key = vec![b'p'];
    key.extend_from_slice(stream.as_str().as_bytes());
    key.push(0);
    key.extend_from_slice(&position.0.to_be_bytes());
    key
}

/// The keys of a stream's positions from one on.
pub(super) fn position_range(stream: &StreamId, from: Position) -> (Vec<u8>, Vec<u8>) {
    let mut to = position_key(stream, Position(u64::MAX));
    to.push(0);
    (position_key(stream, from), to)
}

pub(super) fn cursor(value: &[u8]) -> Option<Cursor> {
    value.try_into().ok().map(u64::from_be_bytes).map(Cursor)
}

pub(super) fn state_value(state: StateRef) -> Vec<u8> {
    let mut value = state.version.to_be_bytes().to_vec();
    value.extend_from_slice(state.digest.raw());
    value
}

pub(super) fn state(value: &[u8]) -> Option<StateRef> {
    let (version, digest) = value.split_first_chunk()?;
    let digest = Digest::from_raw(digest.try_into().ok()?);
    Some(StateRef { version: u64::from_be_bytes(*version), digest })
}

/// How far the rows go, and in whose log and boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) applied: Cursor,
    pub(super) chain: Digest,
    pub(super) boot: String,
}

impl Mark {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut value = self.applied.0.to_be_bytes().to_vec();
        value.extend_from_slice(self.chain.raw());
        value.extend_from_slice(self.boot.as_bytes());
        value
    }

    pub(super) fn decode(value: &[u8]) -> Option<Self> {
        let (applied, rest) = value.split_first_chunk()?;
        let (chain, boot) = rest.split_first_chunk()?;
        let boot = String::from_utf8(boot.to_vec()).ok()?;
        Some(Self { applied: Cursor(u64::from_be_bytes(*applied)), chain: Digest::from_raw(*chain), boot })
    }
}
