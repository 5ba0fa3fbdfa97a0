//! Removing a body: the record stays, the bytes go, and nothing looks damaged.

use crate::batch::{claiming, fill, linked, open, record, small, write};
use closer_contracts::record::{Cursor, Position, RecordKind, StreamId};
use closer_contracts::time::Timestamp;
use closer_store::{BodyState, Log, Reader, RecordLog, Removal, SimDisk, StoreError};

const FIRST: &str = "0000000001.log";

fn removal(cursor: u64) -> Removal {
    Removal {
        cursor: Cursor(cursor),
        authority: "decision:d-1".into(),
        reason: "asked for by the person it is about".into(),
        admitted_at: Timestamp::from_unix_ms(1_700_000_001_000),
    }
}

fn secret() -> (SimDisk, Log) {
    let disk = SimDisk::new();
    let log = open(&disk, small()).unwrap();
    let epoch = log.acquire().unwrap();
    fill(&log, epoch, 0, 2, 300);
    write(&log, epoch, claiming(linked(&log, record("secret", 700), &["all"])));
    fill(&log, epoch, 3, 2, 300);
    (disk, log)
}

fn holds_secret(disk: &SimDisk) -> bool {
    disk.bytes(FIRST).unwrap().windows(20).any(|window| window == b"secret secret secret")
}

#[test]
fn a_removed_body_is_gone_and_its_record_stays() {
    let (disk, log) = secret();
    let before = log.verify(&mut |_| {}).unwrap();
    assert!(holds_secret(&disk));
    log.remove_body(log.epoch(), &removal(3)).unwrap();
    assert!(!holds_secret(&disk));
    let entry = log.record(Cursor(3), &Reader::SERVICE).unwrap();
    assert_eq!((entry.body, entry.record.body.clone()), (BodyState::Removed, None));
    assert_eq!(entry.record.id, "secret");
    assert_eq!(log.verify(&mut |_| {}).unwrap().records, before.records + 1);
    let decision = log.read(&StreamId::new("custody"), Position(1), 9, &Reader::SERVICE).unwrap();
    assert_eq!(decision.len(), 1);
    assert_eq!(decision[0].record.kind, RecordKind::Custody);
    let body = String::from_utf8(decision[0].record.body.as_ref().unwrap().to_vec()).unwrap();
    assert!(body.contains("decision:d-1") && body.contains("asked for"), "{body}");

    log.remove_body(log.epoch(), &removal(3)).unwrap();
    assert_eq!(log.durable().0, before.records + 1, "removing again records nothing new");
    drop(log);
    let log = open(&disk, small()).unwrap();
    assert_eq!(log.verify(&mut |_| {}).unwrap().records, before.records + 1);
    assert_eq!(log.record(Cursor(3), &Reader::SERVICE).unwrap().body, BodyState::Removed);
    let mut bodies = 0;
    log.replay(Cursor(1), &mut |_, record| bodies += usize::from(record.body.is_some())).unwrap();
    assert_eq!(bodies as u64, before.records);
}

#[test]
fn a_crash_between_decision_and_removal_is_made_good() {
    let (disk, log) = secret();
    let spared = disk.bytes(FIRST).unwrap();
    log.remove_body(log.epoch(), &removal(3)).unwrap();
    log.abandon();
    // Put the body back, as if the overwriting had never reached the disk.
    let removed = disk.bytes(FIRST).unwrap();
    for (offset, (old, new)) in spared.iter().zip(&removed).enumerate() {
        if *new == 0 && *old != 0 {
            assert!(disk.flip(FIRST, offset as u64, *old));
        }
    }
    assert!(holds_secret(&disk));
    let log = open(&disk, small()).unwrap();
    assert!(!holds_secret(&disk));
    assert_eq!(log.record(Cursor(3), &Reader::SERVICE).unwrap().body, BodyState::Removed);
    log.verify(&mut |_| {}).unwrap();
}

#[test]
fn an_overwritten_body_without_a_decision_is_damage() {
    let (disk, log) = secret();
    drop(log);
    let bytes = disk.bytes(FIRST).unwrap();
    let at = bytes.windows(7).position(|window| window == b"secret ").unwrap();
    for (offset, byte) in bytes.iter().enumerate().skip(at).take(700) {
        assert!(disk.flip(FIRST, offset as u64, *byte));
    }
    let log = open(&disk, small()).unwrap();
    let Err(StoreError::Corruption(damage)) = log.verify(&mut |_| {}) else { panic!("damage was due") };
    assert_eq!((damage.record, damage.offset), (Some(Cursor(3)), at as u64));
}

#[test]
fn only_durable_records_and_no_custody_record_lose_their_body() {
    let (_disk, log) = secret();
    assert!(log.remove_body(log.epoch(), &removal(99)).is_err());
    log.remove_body(log.epoch(), &removal(3)).unwrap();
    let of_decision = log.durable().0;
    assert!(log.remove_body(log.epoch(), &removal(of_decision)).is_err());
    assert_eq!(log.durable().0, of_decision);
}
