//! Records and appends for the tests.

use closer_contracts::Digest;
use closer_contracts::record::{
    Claim, ClaimKey, Cursor, CustodyClass, Epoch, FencedAppend, Lane, Link, Record, RecordKind, StreamId,
};
use closer_contracts::time::Timestamp;
use closer_store::{Disk, Drive, Log, RecordLog, Settings, StoreError, Ticket};
use std::sync::Arc;

/// A record of `bytes` bytes without links, whose content follows from its id.
pub(crate) fn record(id: &str, bytes: usize) -> Record {
    let body: Arc<[u8]> = id.bytes().chain(*b" ").cycle().take(bytes).collect();
    Record {
        kind: RecordKind::Payload,
        id: id.to_owned(),
        admitted_at: Timestamp::from_unix_ms(1_700_000_000_000),
        custody: CustodyClass::Open,
        links: Vec::new(),
        claims: Vec::new(),
        body_digest: Digest::of(&body),
        body: Some(body),
    }
}

/// The record, linked to the streams after their current heads.
pub(crate) fn linked(log: &Log, mut record: Record, streams: &[&str]) -> Record {
    for name in streams {
        let stream = StreamId::new(*name);
        let head = log.head(&stream).unwrap();
        record.links.push(Link::after(stream, head));
    }
    record
}

/// The record, claiming its own id.
pub(crate) fn claiming(mut record: Record) -> Record {
    record.claims.push(Claim { key: ClaimKey::new(format!("payload:{}", record.id)), digest: record.body_digest });
    record
}

pub(crate) fn append(records: Vec<Record>) -> FencedAppend {
    FencedAppend { lane: Lane::Ordinary, guards: Vec::new(), records }
}

/// Settings for small segments and a writer that runs on flush alone.
pub(crate) fn small() -> Settings {
    Settings { segment_bytes: 64 << 10, drive: Drive::Caller, ..Settings::default() }
}

pub(crate) fn open(disk: &(impl Disk + Clone + 'static), settings: Settings) -> Result<Log, StoreError> {
    Log::open_on(Arc::new(disk.clone()), settings, None)
}

/// Submits one record and makes it durable.
pub(crate) fn write(log: &Log, epoch: Epoch, record: Record) -> Cursor {
    let ticket: Ticket = log.submit(epoch, append(vec![record])).unwrap();
    log.flush().unwrap();
    ticket.wait().unwrap().first
}

/// Fills the log with `count` linked and claiming records of `bytes` bytes.
pub(crate) fn fill(log: &Log, epoch: Epoch, from: usize, count: usize, bytes: usize) {
    for index in from..from + count {
        let record = claiming(record(&format!("r-{index}"), bytes));
        let thing = format!("thing:{}", index % 7);
        write(log, epoch, linked(log, record, &["all", &thing]));
    }
}
