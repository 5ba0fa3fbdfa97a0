//! Flipped bytes: each is reported with its place, or changes nothing that was acknowledged.

use crate::batch::{fill, open, record, small, write};
use closer_contracts::record::Cursor;
use closer_store::{Corruption, Log, Reader, RecordLog, SimDisk, StoreError};

const FIRST: &str = "0000000001.log";

fn filled(count: usize) -> SimDisk {
    let disk = SimDisk::new();
    let log = open(&disk, small()).unwrap();
    let epoch = log.acquire().unwrap();
    fill(&log, epoch, 0, count, 900);
    drop(log);
    disk
}

/// Opens and verifies; the damage if there is any.
fn look(disk: &SimDisk) -> Result<u64, Corruption> {
    let opened = open(disk, small()).and_then(|log| log.verify(&mut |_| {}));
    match opened {
        Ok(verified) => Ok(verified.records),
        Err(StoreError::Corruption(corruption)) => Err(corruption),
        Err(other) => panic!("{other}"),
    }
}

/// Offsets of the batches in a segment, found by their first word.
fn batches(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len() - 4).step_by(8).filter(|at| bytes[*at..].starts_with(b"CLBT")).collect()
}

#[test]
fn every_byte_of_a_closed_segment_is_watched() {
    let disk = filled(150);
    let bytes = disk.bytes(FIRST).unwrap();
    assert!(disk.bytes("0000000002.log").is_some(), "the first segment is closed");
    for offset in (0..bytes.len()).step_by(61) {
        assert!(disk.flip(FIRST, offset as u64, 1 << (offset % 8)));
        let damage = look(&disk).expect_err("a flipped byte of a closed segment is damage");
        assert_eq!(damage.segment, 1);
        assert!(damage.offset as usize <= offset, "{damage} for a flip at {offset}");
        assert!(disk.flip(FIRST, offset as u64, 1 << (offset % 8)));
    }
    assert_eq!(look(&disk), Ok(150));
}

#[test]
fn each_class_of_bytes_is_reported_with_its_record() {
    let disk = filled(20);
    let bytes = disk.bytes(FIRST).unwrap();
    let starts = batches(&bytes);
    // The first batch is the lease; the fifth holds record 4.
    let batch = starts[4];
    let next = starts[5];
    let heads = u32::from_le_bytes(bytes[batch + 8..batch + 12].try_into().unwrap()) as usize;
    let bodies = u32::from_le_bytes(bytes[batch + 12..batch + 16].try_into().unwrap()) as usize;
    let padding = batch + 96 + heads + bodies;
    assert!(padding < next, "the batch has padding");
    let classes = [
        ("magic", batch),
        ("header checksum", batch + 5),
        ("header length", batch + 9),
        ("body length", batch + 13),
        ("frame checksum", batch + 17),
        ("sequence", batch + 25),
        ("watermark", batch + 49),
        ("chain", batch + 70),
        ("frame header", batch + 96 + 30),
        ("last of the frame headers", batch + 96 + heads - 1),
        ("padding", padding),
    ];
    for (class, offset) in classes {
        assert!(disk.flip(FIRST, offset as u64, 0x10));
        let damage = look(&disk).expect_err(class);
        assert_eq!(
            (damage.segment, damage.offset, damage.record),
            (1, batch as u64, Some(Cursor(4))),
            "{class}: {damage}"
        );
        assert!(disk.flip(FIRST, offset as u64, 0x10));
    }
    let body = batch + 96 + heads;
    assert!(disk.flip(FIRST, body as u64 + 5, 0x10));
    let damage = look(&disk).expect_err("body");
    assert_eq!((damage.offset, damage.record), (body as u64, Some(Cursor(4))));
    let log = open(&disk, small()).unwrap();
    let read = log.record(Cursor(4), &Reader::SERVICE);
    assert!(matches!(read, Err(StoreError::Corruption(_))), "a body is checked on each read: {read:?}");
    assert!(log.record(Cursor(5), &Reader::SERVICE).is_ok());
    assert!(log.replay(Cursor(1), &mut |_, _| {}).is_err());
}

#[test]
fn damage_to_the_last_acknowledged_batch_is_reported_once_a_watermark_covers_it() {
    let disk = filled(20);
    let bytes = disk.bytes(FIRST).unwrap();
    let starts = batches(&bytes);
    let (last, seal) = (starts[starts.len() - 2], starts[starts.len() - 1]);
    for offset in [last, last + 30, last + 120] {
        assert!(disk.flip(FIRST, offset as u64, 1));
        let damage = look(&disk).expect_err("a batch known durable");
        assert_eq!((damage.offset, damage.record), (last as u64, Some(Cursor(20))));
        assert!(disk.flip(FIRST, offset as u64, 1));
    }
    assert!(disk.flip(FIRST, seal as u64 + 30, 1));
    let damage = look(&disk).expect_err("a seal that was changed");
    assert_eq!((damage.offset, damage.record), (seal as u64, Some(Cursor(21))), "no record is lost with it");
}

/// A seal or lease at the very end holds nothing to lose, but a changed byte of it is told: it is no write that broke off.
#[test]
fn every_byte_of_a_trailing_seal_and_lease_is_watched() {
    let disk = filled(20);
    assert_eq!(Log::remainder_on(&disk).unwrap(), None);
    let seal = *batches(&disk.bytes(FIRST).unwrap()).last().unwrap();
    let look_at = |flips: &[u64], due: usize| {
        flips.iter().for_each(|at| assert!(disk.flip(FIRST, *at, 0x20)));
        let told = match Log::remainder_on(&disk) {
            Ok(Some(told)) if told.damage.is_some() => (told.segment, told.offset, told.next),
            Err(StoreError::Corruption(damage)) => (damage.segment, damage.offset, damage.record.unwrap()),
            other => panic!("{flips:?}: {other:?}"),
        };
        assert_eq!(told, (1, due as u64, Cursor(21)), "{flips:?}");
        flips.iter().for_each(|at| assert!(disk.flip(FIRST, *at, 0x20)));
    };
    (0..96).for_each(|at| look_at(&[seal as u64 + at], seal));
    let leased = open(&disk, small()).unwrap();
    leased.acquire().unwrap();
    leased.abandon();
    let lease = *batches(&disk.bytes(FIRST).unwrap()).last().unwrap();
    assert_eq!(lease, seal + 96);
    (0..96).for_each(|at| look_at(&[seal as u64 + at], seal));
    (0..96).for_each(|at| look_at(&[lease as u64 + at], lease));
    look_at(&[lease as u64 + 1, lease as u64 + 30, lease as u64 + 70], lease);
    // A write that broke off ends in zeros, and is none.
    closer_store::Disk::open(&disk, FIRST).unwrap().write_at(&[0; 56], lease as u64 + 40).unwrap();
    let told = Log::remainder_on(&disk).unwrap().unwrap();
    assert_eq!((told.offset, told.damage), (lease as u64, None));
    assert_eq!(look(&disk), Ok(20));
    assert_eq!(Log::remainder_on(&disk).unwrap(), None, "opening has cut it off");
}

/// Opening and closing a log writes nothing to it.
#[test]
fn whoever_only_looks_leaves_no_trace() {
    let disk = filled(20);
    let before = batches(&disk.bytes(FIRST).unwrap());
    for _ in 0..5 {
        drop(open(&disk, small()).unwrap());
    }
    assert_eq!(batches(&disk.bytes(FIRST).unwrap()), before);
}

#[test]
fn a_running_log_reports_damage_below_its_durable_end() {
    let disk = SimDisk::new();
    let log = open(&disk, small()).unwrap();
    let epoch = log.acquire().unwrap();
    write(&log, epoch, record("a", 100));
    let last = *batches(&disk.bytes(FIRST).unwrap()).last().unwrap();
    assert!(disk.flip(FIRST, last as u64 + 40, 1));
    let Err(StoreError::Corruption(damage)) = log.verify(&mut |_| {}) else { panic!("damage was due") };
    assert_eq!(damage.record, Some(Cursor(1)));
    log.abandon();
}

#[test]
fn a_missing_segment_is_reported() {
    let disk = filled(300);
    closer_store::Disk::remove(&disk, "0000000002.log").unwrap();
    let damage = look(&disk).unwrap_err();
    assert_eq!((damage.segment, damage.offset), (3, 0));
}

#[test]
fn a_stray_byte_beyond_the_end_harms_nothing() {
    let disk = filled(3);
    let length = disk.bytes(FIRST).unwrap().len() as u64;
    assert!(disk.flip(FIRST, length - 100, 1));
    assert_eq!(look(&disk), Ok(3));
    let log: Log = open(&disk, small()).unwrap();
    let epoch = log.acquire().unwrap();
    fill(&log, epoch, 3, 100, 900);
    assert_eq!(log.verify(&mut |_| {}).unwrap().records, 103);
}
