//! Taking an append: guards, room, cursors.

use super::open::{self, Settings};
use super::read::SNAPSHOT_STREAM;
use super::{Core, Log, Pending, Shared, Ticket, Work, custody};
use crate::error::{Declined, StoreError};
use crate::frame::{self, BATCH_HEADER_BYTES, NAME_BYTES_MAX};
use crate::heads::Tip;
use crate::segment::{self, PLACE_EVERY_BYTES};
use closer_contracts::Digest;
use closer_contracts::branch;
use closer_contracts::record::{
    Appended, ClaimKey, Conflict, Cursor, Epoch, FencedAppend, Guard, Head, Lane, Record, RecordKind, StreamId,
};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

/// The most records in one append.
const RECORDS_MAX: usize = 4096;

/// The heads that an append's own links make, in order, computed before the lock is taken.
type Made = Vec<Vec<Head>>;

impl Log {
    pub(super) fn submit_append(&self, epoch: Epoch, append: FencedAppend) -> Result<Ticket, Declined> {
        check_reserved(&append.records)?;
        self.submit_any(epoch, append)
    }

    /// Takes an append that may hold the log's own custody records.
    pub(super) fn submit_any(&self, epoch: Epoch, append: FencedAppend) -> Result<Ticket, Declined> {
        let FencedAppend { lane, guards, records } = append;
        check_form(&records)?;
        let bytes = frame::batch_bytes(&records);
        if bytes as u64 > self.shared.settings.append_bytes_max() {
            return Err(malformed("an append must fit a quarter of a segment").into());
        }
        let made: Made = records
            .iter()
            .map(|record| {
                let digest = record.digest();
                record.links.iter().map(|link| link.head(digest)).collect()
            })
            .collect();

        let mut core = self.shared.core();
        core.open()?;
        if branch!("store.lease_lost", epoch != core.epoch) {
            return Err(Declined::Conflict(Conflict::Epoch { actual: core.epoch }));
        }
        self.shared.bounded(&core, lane)?;
        core.check_guards(&guards)?;
        let staged = core.check_links(&records, &made)?;
        core.check_claims(&records)?;
        let rows = records.iter().map(|record| record.links.len() + record.claims.len()).sum();
        let room = self.shared.make_room(&mut core, lane, bytes, rows);
        core.full = matches!(room, Err(StoreError::StoreFull)) || core.plan.on_reserve;
        room?;

        let first = core.next;
        let appended = Appended { epoch, first, last: Cursor(first.0 + records.len() as u64 - 1) };
        for (stream, tip) in staged.tips {
            core.heads.set_tip(stream, tip);
        }
        for (cursor, record) in (first.0..).map(Cursor).zip(&records) {
            for claim in &record.claims {
                core.heads.set_claim(claim.key.clone(), claim.digest, cursor);
            }
        }
        core.next = Cursor(appended.last.0 + 1);
        core.pending_batches += 1;
        core.pending_bytes += bytes;
        let slot = Arc::default();
        let ticket = Ticket { appended, slot: Arc::clone(&slot) };
        core.queue.push(Work::Append(Pending {
            records: records.into(),
            previous: staged.previous,
            appended,
            bytes,
            slot,
        }));
        drop(core);
        self.shared.work.notify_one();
        Ok(ticket)
    }

    pub(super) fn acquire_lease(&self) -> Result<Epoch, StoreError> {
        let ticket = {
            let mut core = self.shared.core();
            core.open()?;
            self.shared.make_room(&mut core, Lane::Reserved, BATCH_HEADER_BYTES, 0)?;
            core.epoch = Epoch(core.epoch.0 + 1);
            let (epoch, first) = (core.epoch, core.next);
            let slot = Arc::default();
            let ticket =
                Ticket { appended: Appended { epoch, first, last: Cursor(first.0 - 1) }, slot: Arc::clone(&slot) };
            core.queue.push(Work::Lease { epoch, first, slot });
            ticket
        };
        self.shared.work.notify_one();
        if self.thread.is_none() {
            self.flush()?;
        }
        Ok(ticket.wait()?.epoch)
    }
}

fn malformed(what: impl Into<String>) -> StoreError {
    StoreError::Malformed(what.into())
}

/// What can be refused without looking at the log.
fn check_form(records: &[Record]) -> Result<(), StoreError> {
    if records.is_empty() || records.len() > RECORDS_MAX {
        return Err(malformed(format!("an append has 1 to {RECORDS_MAX} records")));
    }
    for record in records {
        let names = record.links.iter().map(|link| link.stream.as_str());
        let names = names.chain(record.claims.iter().map(|claim| claim.key.as_str())).chain([record.id.as_str()]);
        if names.into_iter().any(|name| name.is_empty() || name.len() > NAME_BYTES_MAX) {
            return Err(malformed(format!("`{}`: a name has 1 to {NAME_BYTES_MAX} bytes", record.id)));
        }
        if record.links.len() > usize::from(u16::MAX) || record.claims.len() > usize::from(u16::MAX) {
            return Err(malformed(format!("`{}`: a record has at most {} links and claims", record.id, u16::MAX)));
        }
        let body =
            record.body.as_ref().ok_or_else(|| malformed(format!("`{}`: a new record has a body", record.id)))?;
        if Digest::of(body) != record.body_digest {
            return Err(malformed(format!("`{}`: the body digest is not the body's", record.id)));
        }
    }
    Ok(())
}

/// Custody records are the log's own, and snapshots must be where they are looked for.
fn check_reserved(records: &[Record]) -> Result<(), StoreError> {
    for record in records {
        let own = record.claims.iter().any(|claim| claim.key.as_str().starts_with(custody::CLAIM_PREFIX));
        if own || record.kind == RecordKind::Custody {
            return Err(malformed(format!("`{}`: only the removal of a body makes a custody record", record.id)));
        }
        let linked = record.links.iter().any(|link| link.stream.as_str() == SNAPSHOT_STREAM);
        if linked != (record.kind == RecordKind::Snapshot) {
            return Err(malformed(format!(
                "`{}`: snapshots, and only they, are linked to `{SNAPSHOT_STREAM}`",
                record.id
            )));
        }
    }
    Ok(())
}

/// What an append does to the streams if it is taken.
#[derive(Default)]
struct Staged {
    tips: BTreeMap<StreamId, Tip>,
    /// For every link in order, the cursor of the stream's previous record.
    previous: Vec<Cursor>,
}

impl Core {
    /// Fails unless the log still accepts work.
    pub(super) fn open(&self) -> Result<(), StoreError> {
        self.undamaged()?;
        if self.reading {
            return Err(StoreError::ReadOnly);
        }
        match &self.poisoned {
            Some(why) => Err(StoreError::Poisoned(Arc::clone(why))),
            None if self.closed => Err(StoreError::Closed),
            None => Ok(()),
        }
    }

    /// Fails where a walk has found damage.
    pub(super) fn undamaged(&self) -> Result<(), StoreError> {
        self.damaged.as_ref().map_or(Ok(()), |damage| Err(damage.clone().into()))
    }

    fn check_guards(&mut self, guards: &[Guard]) -> Result<(), Declined> {
        for guard in guards {
            match guard {
                Guard::Head { stream, expected } => {
                    let actual = self.tip(stream)?.map(|tip| tip.head);
                    if branch!("store.guarded_head_moved", actual.map(|head| head.link) != *expected) {
                        return Err(Declined::Conflict(Conflict::Head { stream: stream.clone(), actual }));
                    }
                }
                Guard::Claim { key, allowed } => {
                    if let Some(actual) = self.claimed(key)?
                        && branch!("store.guarded_claim_differs", Some(actual) != *allowed)
                    {
                        return Err(Declined::Conflict(Conflict::Claim { key: key.clone(), actual }));
                    }
                }
            }
        }
        Ok(())
    }

    /// Every link must continue its stream, counting the links before it in the same append.
    fn check_links(&mut self, records: &[Record], made: &Made) -> Result<Staged, Declined> {
        let mut staged = Staged::default();
        for ((cursor, record), heads) in (self.next.0..).map(Cursor).zip(records).zip(made) {
            for (link, head) in record.links.iter().zip(heads) {
                let tip = match staged.tips.get(&link.stream) {
                    Some(tip) => Some(*tip),
                    None => self.tip(&link.stream)?,
                };
                let actual = tip.map(|tip| tip.head);
                let continues = link.previous == actual.map(|head| head.link)
                    && link.position.0 == actual.map_or(0, |head| head.position.0) + 1;
                if branch!("store.link_broken", !continues) {
                    return Err(Declined::Conflict(Conflict::Head { stream: link.stream.clone(), actual }));
                }
                staged.previous.push(tip.map_or(Cursor(0), |tip| tip.cursor));
                staged.tips.insert(link.stream.clone(), Tip { head: *head, cursor });
            }
        }
        Ok(staged)
    }

    /// Every claim's key must be unclaimed or stand for the same digest.
    fn check_claims(&mut self, records: &[Record]) -> Result<(), Declined> {
        let mut staged: BTreeMap<&ClaimKey, Digest> = BTreeMap::new();
        for claim in records.iter().flat_map(|record| &record.claims) {
            let actual = match staged.get(&claim.key) {
                Some(digest) => Some(*digest),
                None => self.claimed(&claim.key)?,
            };
            if let Some(actual) = actual
                && branch!("store.claim_taken", actual != claim.digest)
            {
                return Err(Declined::Conflict(Conflict::Claim { key: claim.key.clone(), actual }));
            }
            staged.insert(&claim.key, claim.digest);
        }
        Ok(())
    }
}

impl Shared {
    /// Bounds what is accepted and not durable, and how far the derived state lags. Urgent work is never held back.
    fn bounded(&self, core: &Core, lane: Lane) -> Result<(), StoreError> {
        match lane {
            Lane::Reserved => Ok(()),
            Lane::Ordinary => {
                let Settings { pending_batches_max, pending_bytes_max, .. } = &self.settings;
                if core.pending_batches >= *pending_batches_max || core.pending_bytes >= *pending_bytes_max {
                    return Err(StoreError::Busy("too much is waiting for the disk"));
                }
                match self.derived.as_ref().is_some_and(crate::derived::Derived::lags) {
                    true => Err(StoreError::Busy("the derived state lags behind")),
                    false => Ok(()),
                }
            }
        }
    }

    /// Finds room for a batch, in this segment or in a new one.
    pub(super) fn make_room(&self, core: &mut Core, lane: Lane, bytes: usize, rows: usize) -> Result<(), StoreError> {
        if core.plan.on_reserve && lane == Lane::Ordinary {
            self.renew_reserve()?;
            core.plan.on_reserve = false;
        }
        if !self.fits(core, bytes, rows) {
            let number = core.plan.number + 1;
            let (file, on_reserve) = self.next_segment(number, lane, core.plan.on_reserve)?;
            core.queue.push(Work::Roll { number, file });
            core.plan = super::Plan { number, offset: segment::HEADER_BYTES as u64, rows: 0, on_reserve };
            let oldest = core.segments.last().map_or(Cursor(0), |segment| segment.first);
            core.heads.cool(oldest);
        }
        core.plan.offset += bytes as u64;
        core.plan.rows += rows;
        Ok(())
    }

    pub(super) fn fits(&self, core: &Core, bytes: usize, rows: usize) -> bool {
        let end = core.plan.offset + bytes as u64;
        let places = usize::try_from(end / PLACE_EVERY_BYTES).unwrap_or(usize::MAX) + 1;
        let footer = segment::footer_bytes(places, core.plan.rows + rows);
        end + footer as u64 <= self.settings.segment_bytes
    }

    /// Allocates the next segment, or gives the reserve to work that may use it.
    pub(super) fn next_segment(
        &self,
        number: u64,
        lane: Lane,
        on_reserve: bool,
    ) -> Result<(Arc<dyn crate::disk::DiskFile>, bool), StoreError> {
        let name = open::staging_name(number);
        match self.allocate(&name) {
            Ok(file) => Ok((file, on_reserve)),
            Err(error) if is_full(&error) && lane == Lane::Reserved && !on_reserve => {
                match self.disk.rename(open::RESERVE, &name) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(StoreError::StoreFull),
                    done => done.map_err(StoreError::io("taking the reserved segment"))?,
                }
                tracing::warn!(segment = number, "the disk is full: writing to the reserved segment");
                Ok((self.disk.open(&name).map_err(StoreError::io("opening the reserved segment"))?, true))
            }
            Err(error) if is_full(&error) => Err(StoreError::StoreFull),
            Err(error) => Err(StoreError::io(format!("allocating segment {number}"))(error)),
        }
    }

    /// Allocates a new reserve; `StoreFull` while there is no space for one.
    pub(super) fn renew_reserve(&self) -> Result<(), StoreError> {
        match self.allocate(open::RESERVE).and_then(|_| self.disk.sync_dir()) {
            Ok(()) => Ok(()),
            Err(error) if is_full(&error) => Err(StoreError::StoreFull),
            Err(error) => Err(StoreError::io("allocating the reserved segment")(error)),
        }
    }

    /// Creates a file with a segment's space allocated, or leaves none behind.
    pub(super) fn allocate(&self, name: &str) -> std::io::Result<Arc<dyn crate::disk::DiskFile>> {
        let file = self.disk.create(name)?;
        match file.preallocate(self.settings.segment_bytes).and_then(|()| file.sync_data()) {
            Ok(()) => Ok(file),
            Err(error) => {
                self.disk.remove(name)?;
                Err(error)
            }
        }
    }
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
