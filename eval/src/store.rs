//! What the worlds of a pair begin from, on disk: a record log like any other, and each world's own copy of it.

use closer_contracts::Digest;
use closer_contracts::canonical::hash_parts;
use closer_contracts::record::{Cursor, Epoch, FencedAppend, Lane, Record};
use closer_store::{Drive, Log, RealDisk, RecordLog, Settings, StoreError};
use std::path::Path;
use std::sync::Arc;

/// Why a store could not be written, copied or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreFault {
    /// The store itself.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The store did not take a record.
    #[error("the store declined a record: {0}")]
    Declined(String),
    /// The folder.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Small segments: a pair's record is some hundred kilobytes at most, and every world copies it.
fn settings() -> Settings {
    Settings { segment_bytes: 512 << 10, drive: Drive::Caller, derived: None, ..Settings::default() }
}

fn open(folder: &Path) -> Result<Log, StoreFault> {
    Ok(Log::open_on(Arc::new(RealDisk::at(folder)?), settings(), None)?)
}

/// Writes records as a store of their own.
///
/// # Errors
/// [`StoreFault`].
pub fn write(folder: &Path, records: &[Record]) -> Result<(), StoreFault> {
    let log = open(folder)?;
    let lease = std::thread::scope(|scope| {
        let taken = scope.spawn(|| log.acquire());
        while !taken.is_finished() {
            log.flush()?;
            std::thread::yield_now();
        }
        taken.join().map_err(|_| StoreFault::Declined("the lease was not taken".into()))?.map_err(StoreFault::from)
    })?;
    append(&log, lease, records)
}

fn append(log: &Log, epoch: Epoch, records: &[Record]) -> Result<(), StoreFault> {
    let mut tickets = Vec::new();
    for some in records.chunks(16) {
        let append = FencedAppend { lane: Lane::Ordinary, guards: Vec::new(), records: some.to_vec() };
        tickets.push(log.submit(epoch, append).map_err(|declined| StoreFault::Declined(declined.to_string()))?);
    }
    log.flush()?;
    for ticket in tickets {
        ticket.wait()?;
    }
    Ok(())
}

/// The records of a store.
///
/// # Errors
/// [`StoreFault`].
pub fn read(folder: &Path) -> Result<Vec<Record>, StoreFault> {
    let log = open(folder)?;
    let mut records = Vec::new();
    log.replay(Cursor(1), &mut |_, record| records.push(record.clone()))?;
    Ok(records)
}

/// Copies a store, file by file.
///
/// # Errors
/// [`StoreFault`].
pub fn copy(from: &Path, to: &Path) -> Result<(), StoreFault> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The digest of records: their bodies, ids and times, in order.
#[must_use]
pub fn digest(records: &[Record]) -> Digest {
    let digests: Vec<Digest> = records.iter().map(Record::digest).collect();
    let parts: Vec<&[u8]> = digests.iter().map(|digest| &digest.raw()[..]).collect();
    hash_parts("closer.eval.store.v1", &parts)
}
