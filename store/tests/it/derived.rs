//! The derived state: it follows, it is doubted, it is rebuilt; and no verdict ever depends on it.

use crate::batch::{append, claiming, linked, record};
use closer_contracts::Digest;
use closer_contracts::record::{ClaimKey, Conflict, Cursor, Epoch, Guard, Position, Record, RecordKind, StreamId};
use closer_contracts::refs::StateRef;
use closer_store::derived::Phase;
use closer_store::{
    Declined, Log, Reader, RealDisk, RecordLog, Settings, StateChange, StateRow, StateSink, StoreError,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// Every record is a state: its version is its cursor, its digest the record's; one row per record.
struct EachRecord {
    last: Option<StateRef>,
}

fn state_at(cursor: Cursor, record: &Record) -> StateRef {
    StateRef { version: cursor.0, digest: record.digest() }
}

impl StateSink for EachRecord {
    fn changes(&mut self, cursor: Cursor, record: &Record) -> Option<StateChange> {
        let parent = if cursor.0 == 1 { None } else { self.last };
        let next = state_at(cursor, record);
        self.last = Some(next);
        let value = Some(record.body_digest.raw().to_vec());
        let rows = vec![StateRow { kind: "thing", id: record.id.clone(), value }];
        Some(StateChange { parent, next, receipt: record.digest(), rows })
    }
}

fn open_with(folder: &Path, sink: Option<Box<dyn StateSink>>) -> Log {
    let disk = RealDisk::at(folder.join("log")).unwrap();
    let settings = Settings { segment_bytes: 256 << 10, derived: Some(folder.join("derived")), ..Settings::default() };
    Log::open_on(Arc::new(disk), settings, sink).unwrap()
}

fn fill(log: &Log, epoch: Epoch, from: usize, count: usize) {
    let mut last = None;
    for index in from..from + count {
        let record = claiming(linked(log, record(&format!("r-{index}"), 200), &["all"]));
        let ticket = loop {
            match log.submit(epoch, append(vec![record.clone()])) {
                Err(Declined::Store(StoreError::Busy(_))) => std::thread::yield_now(),
                submitted => break submitted.unwrap(),
            }
        };
        last = Some(ticket);
    }
    last.unwrap().wait().unwrap();
}

fn follows(log: &Log) {
    assert!(log.derived().unwrap().wait_for(log.durable(), LONG), "{:?}", log.derived_status());
}

/// All verdicts and answers of a log of `count` records made by [`fill`].
fn answers_right(log: &Log, epoch: Epoch, count: usize) {
    let stream = StreamId::new("all");
    let head = log.head(&stream).unwrap().unwrap();
    assert_eq!(head.position.0, count as u64);
    for index in [0, count / 2, count - 1] {
        let id = format!("r-{index}");
        let claimed = record(&id, 200).body_digest;
        let key = ClaimKey::new(format!("payload:{id}"));
        let mut guarded = append(vec![record("x", 1)]);
        guarded.guards = vec![Guard::Claim { key: key.clone(), allowed: None }];
        let Err(Declined::Conflict(conflict)) = log.submit(epoch, guarded) else { panic!("{id} is claimed") };
        assert_eq!(conflict, Conflict::Claim { key, actual: claimed });
        let found = log.find(RecordKind::Payload, &id, &Reader::SERVICE).unwrap().unwrap();
        assert_eq!(found.cursor, Cursor(index as u64 + 1));
        let read = log.read(&stream, Position(index as u64 + 1), 2, &Reader::SERVICE).unwrap();
        assert_eq!(read[0].record.id, id);
    }
    let mut stale = append(vec![record("x", 1)]);
    stale.guards = vec![Guard::Head { stream: stream.clone(), expected: Some(Digest::of(b"old")) }];
    assert!(matches!(log.submit(epoch, stale), Err(Declined::Conflict(Conflict::Head { .. }))));
    assert_eq!(log.claim(&ClaimKey::new("payload:never")).unwrap(), None);
}

#[test]
fn semantic_rows_follow_the_log_and_are_rebuilt_to_the_same_state() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_with(folder.path(), Some(Box::new(EachRecord { last: None })));
    let epoch = log.acquire().unwrap();
    fill(&log, epoch, 0, 300);
    follows(&log);
    let derived = log.derived().unwrap();
    let last = log.record(Cursor(300), &Reader::SERVICE).unwrap().record;
    assert_eq!(derived.state(), Some(state_at(Cursor(300), &last)));
    assert_eq!(derived.row("thing", "r-17"), Some(record("r-17", 200).body_digest.raw().to_vec()));
    let mut told = Vec::new();
    log.rebuild(&mut |cursor| told.push(cursor)).unwrap();
    assert_eq!(told.last(), Some(&Cursor(300)));
    assert_eq!(derived.state(), Some(state_at(Cursor(300), &last)));
    assert_eq!(derived.row("thing", "r-299"), Some(last.body_digest.raw().to_vec()));
    assert_eq!(derived.status().set_aside_count, 1);
    drop(log);

    let log = open_with(folder.path(), Some(Box::new(EachRecord { last: Some(state_at(Cursor(300), &last)) })));
    follows(&log);
    assert_eq!(log.derived_status().unwrap().set_aside_count, 0, "what fits the log is kept");
    fill(&log, log.epoch(), 300, 10);
    follows(&log);
    answers_right(&log, log.epoch(), 310);
    drop(log);

    std::fs::remove_dir_all(folder.path().join("derived")).unwrap();
    let log = open_with(folder.path(), Some(Box::new(EachRecord { last: None })));
    follows(&log);
    assert_eq!(log.derived().unwrap().state().unwrap().version, 310);
    answers_right(&log, log.epoch(), 310);
}

#[test]
fn a_change_of_another_parent_sets_the_rows_aside() {
    struct Skips;
    impl StateSink for Skips {
        fn changes(&mut self, cursor: Cursor, record: &Record) -> Option<StateChange> {
            let parent = (cursor.0 > 1).then(|| StateRef { version: cursor.0 - 2, digest: record.digest() });
            let next = state_at(cursor, record);
            Some(StateChange { parent, next, receipt: record.digest(), rows: Vec::new() })
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let log = open_with(folder.path(), Some(Box::new(Skips)));
    let epoch = log.acquire().unwrap();
    fill(&log, epoch, 0, 20);
    let derived = log.derived().unwrap();
    assert!(!derived.wait_for(Cursor(20), Duration::from_secs(10)));
    assert_eq!(derived.status().phase, Phase::Aside, "the mismatch is in the log: rebuilding cannot mend it");
    assert!(derived.status().set_aside_count > 0);
    answers_right(&log, epoch, 20);
}

#[test]
fn rows_of_another_log_are_not_trusted() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (folder, count) in [(&one, 60), (&other, 100)] {
        let log = open_with(folder.path(), None);
        // As many leases as records, so that the two logs differ from the first byte on.
        for _ in 1..count {
            log.acquire().unwrap();
        }
        let epoch = log.acquire().unwrap();
        fill(&log, epoch, 0, count);
        follows(&log);
    }
    std::fs::remove_dir_all(other.path().join("derived")).unwrap();
    std::fs::rename(one.path().join("derived"), other.path().join("derived")).unwrap();
    let log = open_with(other.path(), None);
    follows(&log);
    assert_eq!(log.derived_status().unwrap().set_aside_count, 1);
    answers_right(&log, log.epoch(), 100);
}

/// Whole batches that are gone from the end leave a log in which everything fits; the rows remember that there was more.
#[test]
fn a_log_that_ends_before_what_its_rows_hold_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    {
        let log = open_with(folder.path(), None);
        let epoch = log.acquire().unwrap();
        fill(&log, epoch, 0, 40);
        follows(&log);
    }
    let segment = folder.path().join("log/0000000001.log");
    let whole = std::fs::read(&segment).unwrap();
    let starts: Vec<usize> = (0..whole.len() - 4).filter(|at| whole[*at..].starts_with(b"CLBT")).collect();
    // At a batch's beginning, and within a batch.
    for cut in [starts[starts.len() - 6], starts[starts.len() - 6] + 100] {
        let mut lost = whole.clone();
        lost[cut..].fill(0);
        std::fs::write(&segment, &lost).unwrap();
        for _ in 0..2 {
            let log = open_with(folder.path(), None);
            let end = log.durable();
            assert!(end < Cursor(40), "{end:?}");
            let Err(StoreError::Corruption(told)) = log.verify(&mut |_| {}) else { panic!("the loss is told") };
            assert_eq!((told.segment, told.record), (1, Some(Cursor(end.0 + 1))));
            assert!(told.what.contains("derived"), "{told}");
            let taken = log.submit(log.epoch(), append(vec![record("more", 10)]));
            assert!(matches!(taken, Err(Declined::Store(StoreError::Corruption(_)))), "{taken:?}");
            assert!(matches!(log.acquire(), Err(StoreError::Corruption(_))));
            assert!(matches!(log.rebuild(&mut |_| {}), Err(StoreError::Corruption(_))), "what remembers is kept");
            assert!(log.record(Cursor(1), &Reader::SERVICE).is_ok(), "what is there can be read");
        }
        assert!(std::fs::read(&segment).unwrap() == lost, "a damaged log stays as it was found");
    }
    std::fs::remove_dir_all(folder.path().join("derived")).unwrap();
    let log = open_with(folder.path(), None);
    log.verify(&mut |_| {}).unwrap();
    log.acquire().unwrap();
}

/// A log that is opened for reading alone changes no byte, not even what opening would cut off.
#[test]
fn a_log_opened_for_reading_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    {
        let log = Log::open(folder.path(), None).unwrap();
        let epoch = log.acquire().unwrap();
        fill(&log, epoch, 0, 10);
    }
    let segment = folder.path().join("log/0000000001.log");
    let mut torn = std::fs::read(&segment).unwrap();
    let end = (0..torn.len() - 4).rfind(|at| torn[*at..].starts_with(b"CLBT")).unwrap() + 96;
    torn[end..end + 40].fill(7);
    std::fs::write(&segment, &torn).unwrap();
    {
        let log = Log::open_reading(folder.path()).unwrap();
        assert_eq!(log.verify(&mut |_| {}).unwrap().records, 10);
        assert!(matches!(log.acquire(), Err(StoreError::ReadOnly)));
        assert!(matches!(
            log.submit(log.epoch(), append(vec![record("more", 10)])),
            Err(Declined::Store(StoreError::ReadOnly))
        ));
        assert_eq!(log.record(Cursor(10), &Reader::SERVICE).unwrap().record.id, "r-9");
        let copy = folder.path().join("copy");
        log.backup(&copy, &mut |_| {}).unwrap();
        closer_store::restore(&copy, &folder.path().join("again"), &mut |_| {}).unwrap();
    }
    assert!(std::fs::read(&segment).unwrap() == torn);
}

#[test]
fn a_garbled_index_changes_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    {
        let log = open_with(folder.path(), None);
        let epoch = log.acquire().unwrap();
        fill(&log, epoch, 0, 500);
        follows(&log);
    }
    let path = folder.path().join("derived/db");
    let good = std::fs::read(&path).unwrap();
    for part in 0..8 {
        let mut bad = good.clone();
        let from = part * good.len() / 8;
        bad[from..from + 64].iter_mut().for_each(|byte| *byte ^= 0x55);
        std::fs::write(&path, bad).unwrap();
        let log = open_with(folder.path(), None);
        follows(&log);
        answers_right(&log, log.epoch(), 500);
    }
}

/// Opens the index behind the log's back, once its last holder has let go.
fn open_tree(folder: &Path) -> sled::Db {
    for _ in 0..200 {
        match sled::open(folder.join("derived")) {
            Ok(tree) => return tree,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    panic!("the index stays locked");
}

#[test]
fn any_single_row_may_vanish() {
    let folder = tempfile::tempdir().unwrap();
    let count = 150;
    {
        let log = open_with(folder.path(), None);
        let epoch = log.acquire().unwrap();
        fill(&log, epoch, 0, count);
        follows(&log);
    }
    let keys: Vec<_> = {
        let tree = open_tree(folder.path());
        tree.iter().keys().map(|key| key.unwrap()).collect()
    };
    assert!(keys.len() > count, "one row per record and more: {}", keys.len());
    let tries = 200;
    for index in 0..tries {
        let key = &keys[index * keys.len() / tries];
        {
            let tree = open_tree(folder.path());
            assert!(tree.remove(key).unwrap().is_some());
            tree.flush().unwrap();
        }
        let log = open_with(folder.path(), None);
        follows(&log);
        answers_right(&log, log.epoch(), count);
        for index in 0..count {
            let found = log.find(RecordKind::Payload, &format!("r-{index}"), &Reader::SERVICE).unwrap().unwrap();
            assert_eq!(found.cursor.0, index as u64 + 1);
        }
        log.rebuild(&mut |_| {}).unwrap();
    }
}

#[test]
fn a_backup_while_running_restores_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_with(&folder.path().join("store"), None);
    let epoch = log.acquire().unwrap();
    fill(&log, epoch, 0, 2000);
    let backup = folder.path().join("backup");
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| fill(&log, epoch, 2000, 2000));
        let manifest = log.backup(&backup, &mut |_| {}).unwrap();
        assert!(manifest.files.len() > 2);
        writing.join().unwrap();
    });
    assert!(matches!(log.backup(&backup, &mut |_| {}), Err(StoreError::NotEmpty(_))));

    let restored = folder.path().join("restored");
    let manifest = closer_store::restore(&backup, &restored, &mut |_| {}).unwrap();
    for file in &manifest.files {
        let bytes = std::fs::read(restored.join("log").join(&file.name)).unwrap();
        assert_eq!(Digest::of(&bytes), file.digest);
        assert_eq!(bytes, std::fs::read(backup.join(&file.name)).unwrap());
    }
    assert!(matches!(closer_store::restore(&backup, &restored, &mut |_| {}), Err(StoreError::NotEmpty(_))));
    let copy = open_with(&restored, None);
    let records = copy.verify(&mut |_| {}).unwrap().records;
    assert!((2000..=4000).contains(&records), "{records}");
    follows(&copy);
    answers_right(&copy, copy.epoch(), records as usize);

    for (name, change) in [("0000000002.log", 1000), ("manifest.json", 60)] {
        let path = backup.join(name);
        let good = std::fs::read(&path).unwrap();
        let mut bad = good.clone();
        bad[change] ^= 1;
        std::fs::write(&path, bad).unwrap();
        let target = folder.path().join("target");
        let refused = closer_store::restore(&backup, &target, &mut |_| {});
        assert!(
            matches!(refused, Err(StoreError::Manifest(_) | StoreError::NewerVersion { .. })),
            "{name}: {refused:?}"
        );
        assert!(!target.exists() || std::fs::read_dir(&target).unwrap().next().is_none(), "nothing is left behind");
        std::fs::write(&path, good).unwrap();
    }
    std::fs::write(backup.join("0000000099.log"), b"stranger").unwrap();
    let refused = closer_store::restore(&backup, &folder.path().join("t2"), &mut |_| {});
    assert!(matches!(refused, Err(StoreError::Manifest(_))));
}
