//! Removing a body under a custody decision: the decision is recorded first, then the bytes are overwritten in place.
//!
//! From the moment the custody record is durable the body counts as removed; a crash before the overwriting is made good
//! when the log is opened. Digest, reason and authority stay. Spec: design §3 (DEC-81).

use super::read::Reader;
use super::{Log, Shared, corrupt};
use crate::error::{Declined, StoreError};
use crate::heads::Standing;
use closer_contracts::Digest;
use closer_contracts::canonical;
use closer_contracts::record::{
    Appended, Claim, ClaimKey, Conflict, Cursor, CustodyClass, Epoch, FencedAppend, Lane, Link, Record, RecordKind,
    StreamId,
};
use closer_contracts::time::Timestamp;
use serde::Serialize;

/// Claim keys of this prefix belong to custody records: `custody:17` names the record whose body is removed.
pub(super) const CLAIM_PREFIX: &str = "custody:";
/// The stream of all custody records.
const STREAM: &str = "custody";
/// What is said of a body that does not fit its digest.
pub(crate) const BODY_DAMAGED: &str = "the body does not fit its digest";

/// A decision that one body is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The record whose body goes.
    pub cursor: Cursor,
    /// Who decided: the id of the decision or grant.
    pub authority: String,
    /// Why.
    pub reason: String,
    /// When the sequence admitted the decision.
    pub admitted_at: Timestamp,
}

#[derive(Serialize)]
struct RemovalBody<'a> {
    authority: &'a str,
    body_digest: Digest,
    cursor: u64,
    reason: &'a str,
    record_digest: Digest,
}

/// The claim that says a body is removed.
pub(crate) fn claim_key(cursor: Cursor) -> ClaimKey {
    ClaimKey::new(format!("{CLAIM_PREFIX}{}", cursor.0))
}

/// The cursor that a custody record names, if it is one.
pub(crate) fn removed_by(record: &Record) -> Option<Cursor> {
    let named = record.claims.iter().find_map(|claim| claim.key.as_str().strip_prefix(CLAIM_PREFIX))?;
    (record.kind == RecordKind::Custody).then(|| named.parse().ok().map(Cursor)).flatten()
}

impl Log {
    /// Records the decision and then overwrites the body durably. Doing it again is harmless and changes nothing.
    ///
    /// # Errors
    /// `NoRecord`; a `Conflict` of the epoch; `Malformed` for a custody record, whose own body stays; whatever keeps the
    /// log from writing.
    pub fn remove_body(&self, epoch: Epoch, removal: &Removal) -> Result<(), Declined> {
        let target = self.record(removal.cursor, &Reader::SERVICE)?;
        if target.record.kind == RecordKind::Custody {
            return Err(StoreError::Malformed("a custody record keeps its body".into()).into());
        }
        if !self.shared.is_removed(removal.cursor)? {
            self.record_removal(epoch, removal, &target.record)?;
        }
        self.overwrite(removal.cursor)?;
        Ok(())
    }

    fn record_removal(&self, epoch: Epoch, removal: &Removal, target: &Record) -> Result<Appended, Declined> {
        let body = RemovalBody {
            authority: &removal.authority,
            body_digest: target.body_digest,
            cursor: removal.cursor.0,
            reason: &removal.reason,
            record_digest: target.digest(),
        };
        let body = canonical::to_bytes(&body).map_err(|fault| StoreError::Malformed(fault.reason.into_owned()))?;
        let stream = StreamId::new(STREAM);
        loop {
            let head = self.shared.core().tip(&stream)?.map(|tip| tip.head);
            let record = Record {
                kind: RecordKind::Custody,
                id: claim_key(removal.cursor).as_str().to_owned(),
                admitted_at: removal.admitted_at.clone(),
                custody: CustodyClass::Open,
                links: vec![Link::after(stream.clone(), head)],
                claims: vec![Claim { key: claim_key(removal.cursor), digest: target.digest() }],
                body_digest: Digest::of(&body),
                body: Some(body.as_slice().into()),
            };
            let append = FencedAppend { lane: Lane::Reserved, guards: Vec::new(), records: vec![record] };
            match self.submit_any(epoch, append) {
                Err(Declined::Conflict(Conflict::Head { .. })) => {}
                Err(declined) => return Err(declined),
                Ok(ticket) => {
                    if self.thread.is_none() {
                        self.flush()?;
                    }
                    return Ok(ticket.wait()?);
                }
            }
        }
    }

    /// Finishes the removals that these custody records name.
    pub(super) fn finish_removals(&self, custody_records: &[Cursor]) -> Result<(), StoreError> {
        for cursor in custody_records {
            let entry = self.record(*cursor, &Reader::SERVICE)?;
            let target = removed_by(&entry.record);
            let target = target.ok_or_else(|| corrupt(0, 0, Some(*cursor), "a custody record names no record"))?;
            self.overwrite(target)?;
        }
        Ok(())
    }

    fn overwrite(&self, cursor: Cursor) -> Result<(), StoreError> {
        let place = self.shared.core().place(cursor).ok_or(StoreError::NoRecord(cursor.0))?;
        let located = place.fetch(cursor)?;
        let zeros = vec![0; located.frame.body_bytes];
        let at = located.offset + located.frame.body_at as u64;
        let what = || StoreError::io(format!("removing the body of record {}", cursor.0));
        place.file.write_at(&zeros, at).map_err(what())?;
        place.file.sync_data().map_err(what())
    }
}

impl Shared {
    /// Whether a custody decision names this record.
    pub(super) fn is_removed(&self, cursor: Cursor) -> Result<bool, StoreError> {
        Ok(!matches!(self.core().heads.claim(&claim_key(cursor)), Standing::Absent))
    }
}
