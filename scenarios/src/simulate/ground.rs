//! The real store over a disk in memory, beside a plain model of what it must do.
//!
//! Every append is offered to both, and they must agree; every record is read back from the store once it is durable, and
//! must be the one that was offered; after each restart what was acknowledged must be there, and what was not must be there
//! whole or not at all.

use crate::memory::{Ground, MemoryLog};
use closer_contracts::Digest;
use closer_contracts::record::{
    Appended, Claim, ClaimKey, Cursor, Epoch, FencedAppend, Guard, Head, Lane, Reads, Record, RecordKind, StreamId,
};
use closer_contracts::word_enum;
use closer_store::{Declined, Drive, Log, Reader, RecordLog, Settings, SimDisk, StoreError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

word_enum! {
    /// What a writer leaves out that does not ask.
    pub enum Rogue {
        /// It holds a lease that has passed on.
        OldLease = "old_lease",
        /// It continues a stream from where it was.
        OldLink = "old_link",
        /// It relies on a head that has moved.
        OldHead = "old_head",
        /// It claims what stands for something else.
        TakenClaim = "taken_claim",
        /// It relies on a claim that stands for something else.
        GuardedClaim = "guarded_claim",
    }
}

/// Small, so that a run goes through several segments.
const SEGMENT_BYTES: u64 = 2 << 20;

/// The disk, the log that is open on it, and what must be in it.
#[derive(Default)]
struct Machine {
    disk: SimDisk,
    log: Option<Log>,
    /// The newest epoch that was given.
    lease: u64,
    model: MemoryLog,
    /// How many records there were after each accepted append.
    ends: Vec<usize>,
    /// How many records were told to be durable.
    acknowledged: usize,
    complaints: Vec<String>,
}

/// A handle on the machine.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Mutex<Machine>>);

fn settings() -> Settings {
    Settings { segment_bytes: SEGMENT_BYTES, drive: Drive::Caller, ..Settings::default() }
}

impl Shared {
    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the store did and may not have done.
    pub(super) fn complaints(&self) -> Vec<String> {
        std::mem::take(&mut self.machine().complaints)
    }

    /// Opens the log and compares what is there with what must be. A disk that is full at opening gets its space back.
    pub(super) fn open(&self) -> Result<(), String> {
        let mut machine = self.machine();
        machine.log = None;
        let open = |machine: &Machine| Log::open_on(Arc::new(machine.disk.clone()), settings(), None);
        let log = match open(&machine) {
            Err(_) => {
                machine.disk.set_capacity(None);
                open(&machine)
            }
            opened @ Ok(_) => opened,
        };
        let log = log.map_err(|error| format!("the store does not open again: {error}"))?;
        let verified = log.verify(&mut |_| {}).map_err(|error| format!("after a restart: {error}"))?;
        let there = usize::try_from(verified.records).unwrap_or(usize::MAX);
        if there < machine.acknowledged {
            return Err(format!("{} records were acknowledged and {there} are there", machine.acknowledged));
        }
        if there > 0 && !machine.ends.contains(&there) {
            return Err(format!("half an append is there: {there} records"));
        }
        let survived = log.tail(Cursor(0), usize::MAX, Duration::ZERO, &Reader::SERVICE);
        let survived = survived.map_err(|error| format!("after a restart: {error}"))?;
        let differs = survived.iter().zip(machine.model.records()).position(|(is, was)| is.record != *was);
        if let Some(index) = differs {
            return Err(format!("record {} is not what was written", index + 1));
        }
        machine.ends.retain(|end| *end <= there);
        machine.model = MemoryLog::of(machine.model.records().iter().take(there).cloned().collect());
        machine.acknowledged = there;
        machine.log = Some(log);
        Ok(())
    }

    /// Makes everything that was accepted durable. False where the disk refused: the log takes nothing more.
    pub(super) fn flush(&self) -> bool {
        let mut machine = self.machine();
        let flushed = machine.log.as_ref().is_some_and(|log| log.flush().is_ok());
        if flushed {
            machine.acknowledged = machine.model.records().len();
        }
        flushed
    }

    /// Takes the lease for a new holder.
    pub(super) fn acquire(&self) -> Result<Stored, StoreError> {
        let mut machine = self.machine();
        let epoch = machine.log.as_ref().ok_or(StoreError::Closed)?.acquire()?;
        machine.acknowledged = machine.model.records().len();
        if epoch.0 <= machine.lease {
            machine.complaints.push(format!("the lease was given as epoch {} once before", epoch.0));
        }
        machine.lease = epoch.0;
        let records = machine.model.records().to_vec();
        Ok(Stored { shared: self.clone(), epoch, records, settled: Arc::default() })
    }

    /// A writer that does not ask what stands there: its append must be declined, or a complaint is left. Gives what it
    /// tried; nothing where there is nothing to break.
    pub(super) fn rogue(&self, way: Rogue, pick: usize) -> Option<&'static str> {
        let (append, epoch) = {
            let machine = self.machine();
            let records = machine.model.records();
            let known = records.get(pick % records.len().max(1))?.clone();
            let link = known.links.first()?.clone();
            let mut record = Record { links: Vec::new(), claims: Vec::new(), ..known.clone() };
            let mut guards = Vec::new();
            let mut epoch = machine.lease;
            match way {
                Rogue::OldLease => epoch = epoch.checked_sub(1)?,
                Rogue::OldLink => record.links.push(link),
                Rogue::OldHead => guards.push(Guard::Head { stream: link.stream, expected: link.previous }),
                Rogue::TakenClaim => {
                    let claim = known.claims.first()?;
                    record.claims.push(Claim { key: claim.key.clone(), digest: Digest::of(b"another") });
                }
                Rogue::GuardedClaim => {
                    let claim = known.claims.first()?;
                    guards.push(Guard::Claim { key: claim.key.clone(), allowed: Some(Digest::of(b"another")) });
                }
            }
            if matches!(record.kind, RecordKind::Custody | RecordKind::Snapshot) {
                return None;
            }
            (FencedAppend { lane: Lane::Ordinary, guards, records: vec![record] }, Epoch(epoch))
        };
        let mut rogue = Stored { shared: self.clone(), epoch, records: Vec::new(), settled: Arc::default() };
        let _declined = rogue.submit(append);
        Some(way.as_str())
    }

    /// Durable records after a cursor, as read from the disk, each with what was offered in its place.
    pub(super) fn durable_after(&self, cursor: usize) -> Result<Vec<(Record, Option<Record>)>, String> {
        let machine = self.machine();
        let Some(log) = machine.log.as_ref() else { return Ok(Vec::new()) };
        let after = Cursor(cursor as u64);
        if log.durable() <= after {
            return Ok(Vec::new());
        }
        let entries = log.tail(after, usize::MAX, Duration::ZERO, &Reader::SERVICE);
        let entries = entries.map_err(|error| format!("reading back: {error}"))?;
        let offered = machine.model.records().iter().skip(cursor).map(Some).chain(std::iter::repeat(None));
        Ok(entries.into_iter().zip(offered).map(|(entry, offered)| (entry.record, offered.cloned())).collect())
    }

    /// The store checks everything on disk.
    pub(super) fn verify(&self) -> Result<(), String> {
        let machine = self.machine();
        let Some(log) = machine.log.as_ref() else { return Ok(()) };
        log.verify(&mut |_| {}).map(|_| ()).map_err(|error| format!("the store's own check: {error}"))
    }

    /// Lets the sync after `passing` more of them fail.
    pub(super) fn fail_sync_after(&self, passing: u64) {
        self.machine().disk.fail_sync_after(passing);
    }

    /// Leaves so much space and no more, or lifts the limit.
    pub(super) fn leave_space(&self, bytes: Option<u64>) {
        let machine = self.machine();
        let used = machine.disk.used_bytes();
        machine.disk.set_capacity(bytes.map(|bytes| used + bytes));
    }

    /// Ends the process, without a word to the disk.
    pub(super) fn kill(&self) {
        if let Some(log) = self.machine().log.take() {
            log.abandon();
        }
    }

    /// Cuts the power; `survives` says which of the sectors on their way are written.
    pub(super) fn cut_power(&self, survives: &mut dyn FnMut(usize, usize) -> bool) {
        let mut machine = self.machine();
        machine.disk.crash(&mut |_, index, count| survives(index, count));
        if let Some(log) = machine.log.take() {
            log.abandon();
        }
    }
}

/// The store as one holder of a lease sees it.
pub(super) struct Stored {
    shared: Shared,
    epoch: Epoch,
    records: Vec<Record>,
    settled: Arc<Mutex<Vec<Result<(), StoreError>>>>,
}

impl Reads for Stored {
    fn head(&self, stream: &StreamId) -> Option<Head> {
        self.shared.machine().log.as_ref().and_then(|log| Reads::head(log, stream))
    }

    fn claim(&self, key: &ClaimKey) -> Option<Digest> {
        self.shared.machine().log.as_ref().and_then(|log| Reads::claim(log, key))
    }
}

impl Ground for Stored {
    fn submit(&mut self, append: FencedAppend) -> Result<Appended, Declined> {
        let mut machine = self.shared.machine();
        let holds = match self.epoch.0 == machine.lease {
            true => machine.model.check(&append).map_err(|conflict| format!("{conflict:?}")),
            false => Err(format!("epoch {} has lost the lease", self.epoch.0)),
        };
        let taken = match machine.log.as_ref() {
            Some(log) => log.submit(self.epoch, append.clone()),
            None => Err(Declined::Store(StoreError::Closed)),
        };
        match (taken, holds) {
            (Ok(_), Err(why)) => {
                machine.complaints.push(format!("the store took an append that it had to decline: {why}"));
                Err(Declined::Store(StoreError::Closed))
            }
            (Err(Declined::Conflict(conflict)), Ok(())) => {
                machine.complaints.push(format!("the store declined an append whose guards hold: {conflict:?}"));
                Err(Declined::Conflict(conflict))
            }
            (Err(declined), _) => Err(declined),
            (Ok(ticket), Ok(())) => {
                self.records.extend(append.records.iter().cloned());
                if let Err(conflict) = machine.model.append(append) {
                    machine.complaints.push(format!("{conflict:?}"));
                }
                let end = machine.model.records().len();
                machine.ends.push(end);
                let appended = ticket.assigned();
                let settled = Arc::clone(&self.settled);
                ticket.on_durable(move |outcome| {
                    settled.lock().unwrap_or_else(PoisonError::into_inner).push(outcome.map(|_| ()));
                });
                Ok(appended)
            }
        }
    }

    fn landed(&mut self) -> Result<usize, StoreError> {
        let settled = std::mem::take(&mut *self.settled.lock().unwrap_or_else(PoisonError::into_inner));
        settled.into_iter().collect::<Result<Vec<()>, _>>().map(|landed| landed.len())
    }

    fn records(&self) -> &[Record] {
        &self.records
    }

    fn lease(&self) -> Epoch {
        Epoch(self.shared.machine().lease)
    }
}
