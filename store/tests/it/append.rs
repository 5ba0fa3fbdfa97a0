//! The fenced append: guards, tickets, lease, reads.

use crate::batch::{append, claiming, fill, linked, open, record, small, write};
use closer_contracts::Digest;
use closer_contracts::record::{
    ClaimKey, Conflict, Cursor, CustodyClass, Epoch, Guard, Position, Reads, RecordKind, StreamId,
};
use closer_store::{BodyState, Declined, Log, Reader, RealDisk, RecordLog, Settings, SimDisk, StoreError};
use std::time::Duration;

fn fresh() -> (SimDisk, Log, Epoch) {
    let disk = SimDisk::new();
    let log = open(&disk, small()).unwrap();
    let epoch = log.acquire().unwrap();
    (disk, log, epoch)
}

#[test]
fn an_append_is_known_at_once_and_durable_later() {
    let (_disk, log, epoch) = fresh();
    let record = claiming(linked(&log, record("a", 100), &["s"]));
    let head = record.links[0].head(record.digest());
    let ticket = log.submit(epoch, append(vec![record.clone()])).unwrap();
    assert_eq!(ticket.assigned().first, Cursor(1));
    assert_eq!(Reads::head(&log, &StreamId::new("s")), Some(head), "pending appends count for decisions");
    assert_eq!(Reads::claim(&log, &ClaimKey::new("payload:a")), Some(record.body_digest));
    assert_eq!(log.durable(), Cursor(0));
    assert!(
        log.tail(Cursor(0), 10, Duration::ZERO, &Reader::SERVICE).unwrap().is_empty(),
        "readers see what is durable"
    );
    assert!(log.read(&StreamId::new("s"), Position(1), 10, &Reader::SERVICE).unwrap().is_empty());
    log.flush().unwrap();
    assert_eq!(ticket.wait().unwrap().last, Cursor(1));
    let entries = log.tail(Cursor(0), 10, Duration::ZERO, &Reader::SERVICE).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].record, record);
    assert_eq!(entries[0].body, BodyState::Present);
}

#[test]
fn a_guard_that_does_not_hold_names_itself_and_nothing_lands() {
    let (_disk, log, epoch) = fresh();
    write(&log, epoch, claiming(linked(&log, record("a", 10), &["s"])));
    let stream = StreamId::new("s");
    let actual = log.head(&stream).unwrap();
    let conflict = |append| match log.submit(epoch, append) {
        Err(Declined::Conflict(conflict)) => conflict,
        other => panic!("a conflict was due, not {other:?}"),
    };
    let mut guarded = append(vec![linked(&log, record("b", 10), &["t"])]);
    guarded.guards = vec![Guard::Head { stream: stream.clone(), expected: None }];
    assert_eq!(conflict(guarded.clone()), Conflict::Head { stream: stream.clone(), actual });

    guarded.guards = vec![Guard::Claim { key: ClaimKey::new("payload:a"), allowed: None }];
    let claimed = Digest::of(&record("a", 10).body.unwrap());
    assert_eq!(conflict(guarded.clone()), Conflict::Claim { key: ClaimKey::new("payload:a"), actual: claimed });

    let mut stale = record("c", 10);
    stale.links.push(closer_contracts::record::Link::after(stream.clone(), None));
    assert_eq!(conflict(append(vec![stale])), Conflict::Head { stream: stream.clone(), actual });

    let mut taken = record("d", 10);
    taken.claims = claiming(record("a", 10)).claims;
    taken.claims[0].digest = Digest::of(b"other");
    assert!(matches!(conflict(append(vec![taken])), Conflict::Claim { actual, .. } if actual == claimed));

    let Err(Declined::Conflict(fenced)) = log.submit(Epoch(epoch.0 - 1), append(vec![record("e", 10)])) else {
        panic!("an old epoch is fenced")
    };
    assert_eq!(fenced, Conflict::Epoch { actual: epoch });
    assert_eq!(log.head(&StreamId::new("t")).unwrap(), None, "nothing of a declined append is visible");

    guarded.guards = vec![
        Guard::Head { stream, expected: actual.map(|head| head.link) },
        Guard::Claim { key: ClaimKey::new("payload:a"), allowed: Some(claimed) },
        Guard::Claim { key: ClaimKey::new("payload:zzz"), allowed: None },
    ];
    let _ = log.submit(epoch, guarded).unwrap();
}

#[test]
fn links_and_claims_of_one_append_see_each_other() {
    let (_disk, log, epoch) = fresh();
    let first = linked(&log, record("a", 10), &["s"]);
    let mut second = record("b", 10);
    second
        .links
        .push(closer_contracts::record::Link::after(StreamId::new("s"), Some(first.links[0].head(first.digest()))));
    let _ = log.submit(epoch, append(vec![first, second])).unwrap();
    log.flush().unwrap();
    let ids: Vec<_> = log.read(&StreamId::new("s"), Position(1), 10, &Reader::SERVICE).unwrap();
    assert_eq!(ids.iter().map(|entry| entry.record.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);

    let one = claiming(record("c", 10));
    let mut other = record("d", 10);
    other.claims = one.claims.clone();
    other.claims[0].digest = Digest::of(b"something else");
    let declined = log.submit(epoch, append(vec![one, other]));
    assert!(matches!(declined, Err(Declined::Conflict(Conflict::Claim { .. }))));
    assert_eq!(log.claim(&ClaimKey::new("payload:c")).unwrap(), None);
}

#[test]
fn what_cannot_be_read_back_is_refused() {
    let (_disk, log, epoch) = fresh();
    let refused =
        |record| matches!(log.submit(epoch, append(vec![record])), Err(Declined::Store(StoreError::Malformed(_))));
    let mut wrong = record("a", 10);
    wrong.body_digest = Digest::of(b"");
    assert!(refused(wrong));
    let mut bodiless = record("a", 10);
    bodiless.body = None;
    assert!(refused(bodiless));
    assert!(refused(record(&"x".repeat(513), 10)));
    assert!(refused(record("", 10)));
    assert!(refused(record("big", 20_000)), "beyond a quarter of a segment");
    let mut custody = record("a", 10);
    custody.kind = RecordKind::Custody;
    assert!(refused(custody));
    let mut hiding = record("a", 10);
    hiding.claims = claiming(record("x", 1)).claims;
    hiding.claims[0].key = ClaimKey::new("custody:1");
    assert!(refused(hiding));
    assert_eq!(log.pending(), 0);
}

#[test]
fn a_lease_fences_older_ones_and_survives_reopening() {
    let (disk, log, first) = fresh();
    write(&log, first, record("a", 10));
    let second = log.acquire().unwrap();
    assert!(second > first);
    assert!(matches!(
        log.submit(first, append(vec![record("b", 10)])),
        Err(Declined::Conflict(Conflict::Epoch { .. }))
    ));
    drop(log);
    let log = open(&disk, small()).unwrap();
    assert_eq!(log.epoch(), second);
    assert!(matches!(
        log.submit(first, append(vec![record("b", 10)])),
        Err(Declined::Conflict(Conflict::Epoch { .. }))
    ));
    assert_eq!(log.acquire().unwrap().0, second.0 + 1);
}

#[test]
fn everything_is_found_again_after_reopening_across_segments() {
    let (disk, log, epoch) = fresh();
    fill(&log, epoch, 0, 300, 900);
    let verified = log.verify(&mut |_| {}).unwrap();
    assert_eq!(verified.records, 300);
    assert!(verified.segments > 4, "the log rolled: {} segments", verified.segments);
    let head = log.head(&StreamId::new("all")).unwrap();
    drop(log);

    let log = open(&disk, small()).unwrap();
    assert_eq!(log.verify(&mut |_| {}).unwrap().heads, verified.heads);
    assert_eq!(log.head(&StreamId::new("all")).unwrap(), head);
    for index in [0, 1, 150, 299] {
        let key = ClaimKey::new(format!("payload:r-{index}"));
        assert_eq!(log.claim(&key).unwrap(), Some(record(&format!("r-{index}"), 900).body_digest));
        let entry = log.record(Cursor(index + 1), &Reader::SERVICE).unwrap();
        assert_eq!(entry.record.id, format!("r-{index}"));
        assert_eq!(log.find(RecordKind::Payload, &entry.record.id, &Reader::SERVICE).unwrap(), Some(entry));
    }
    assert_eq!(log.claim(&ClaimKey::new("payload:r-300")).unwrap(), None);
    assert_eq!(log.find(RecordKind::Payload, "r-300", &Reader::SERVICE).unwrap(), None);
    let thing = log.read(&StreamId::new("thing:3"), Position(2), 5, &Reader::SERVICE).unwrap();
    let ids: Vec<_> = thing.iter().map(|entry| entry.record.id.clone()).collect();
    assert_eq!(ids, ["r-10", "r-17", "r-24", "r-31", "r-38"]);
    let tail = log.tail(Cursor(297), 10, Duration::ZERO, &Reader::SERVICE).unwrap();
    assert_eq!(tail.iter().map(|entry| entry.cursor.0).collect::<Vec<_>>(), [298, 299, 300]);
    let mut replayed = 0;
    log.replay(Cursor(100), &mut |cursor, record| {
        assert_eq!(record.id, format!("r-{}", cursor.0 - 1));
        assert!(record.body.is_some());
        replayed += 1;
    })
    .unwrap();
    assert_eq!(replayed, 201);
    let epoch = log.acquire().unwrap();
    fill(&log, epoch, 300, 10, 900);
    assert_eq!(log.verify(&mut |_| {}).unwrap().records, 310);
}

#[test]
fn a_reader_gets_bodies_up_to_its_clearance() {
    let (_disk, log, epoch) = fresh();
    for (id, custody) in [("o", CustodyClass::Open), ("r", CustodyClass::Restricted), ("s", CustodyClass::Sealed)] {
        let mut record = record(id, 10);
        record.custody = custody;
        write(&log, epoch, linked(&log, record, &["all"]));
    }
    let seen = |reader| {
        let read = log.read(&StreamId::new("all"), Position(1), 9, &reader).unwrap();
        let tail = log.tail(Cursor(0), 9, Duration::ZERO, &reader).unwrap();
        assert_eq!(read, tail);
        for entry in &read {
            assert_eq!(entry.record.body.is_some(), entry.body == BodyState::Present);
            assert_eq!(log.record(entry.cursor, &reader).unwrap(), *entry);
        }
        read.iter().filter(|entry| entry.body == BodyState::Present).count()
    };
    assert_eq!(seen(Reader::SPACE), 1);
    assert_eq!(seen(Reader::USER), 2);
    assert_eq!(seen(Reader::SERVICE), 3);
}

#[test]
fn the_undurable_suffix_is_bounded_for_ordinary_work_alone() {
    let disk = SimDisk::new();
    let log = open(&disk, Settings { pending_batches_max: 3, ..small() }).unwrap();
    let epoch = log.acquire().unwrap();
    for index in 0..3 {
        let _ = log.submit(epoch, append(vec![record(&format!("r-{index}"), 10)])).unwrap();
    }
    let declined = log.submit(epoch, append(vec![record("ordinary", 10)]));
    assert!(matches!(declined, Err(Declined::Store(StoreError::Busy(_)))));
    let mut urgent = append(vec![record("urgent", 10)]);
    urgent.lane = closer_contracts::record::Lane::Reserved;
    let _ = log.submit(epoch, urgent).unwrap();
    log.flush().unwrap();
    let _ = log.submit(epoch, append(vec![record("ordinary", 10)])).unwrap();
}

#[test]
fn threads_share_one_log_and_are_called_back_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path(), None).unwrap();
    let epoch = log.acquire().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (log, sender) = (&log, sender.clone());
            scope.spawn(move || {
                for index in 0..50 {
                    let record =
                        claiming(linked(log, record(&format!("{thread}-{index}"), 200), &[&format!("t:{thread}")]));
                    let ticket = loop {
                        match log.submit(epoch, append(vec![record.clone()])) {
                            Ok(ticket) => break ticket,
                            Err(Declined::Store(StoreError::Busy(_))) => std::thread::yield_now(),
                            Err(declined) => panic!("{declined}"),
                        }
                    };
                    let sender = sender.clone();
                    ticket.on_durable(move |done| sender.send(done.unwrap().first).unwrap());
                }
            });
        }
    });
    drop(sender);
    let cursors: Vec<Cursor> = receiver.iter().collect();
    assert_eq!(cursors.len(), 400);
    assert!(log.verify(&mut |_| {}).unwrap().records == 400);
    for thread in 0..8 {
        let head = log.head(&StreamId::new(format!("t:{thread}"))).unwrap().unwrap();
        assert_eq!(head.position, Position(50));
    }
    let second = Log::open(folder.path(), None).err();
    assert!(matches!(second, Some(StoreError::Locked)), "one process holds the directory: {second:?}");
}

#[test]
fn a_tail_waits_for_the_next_record() {
    let folder = tempfile::tempdir().unwrap();
    let disk = RealDisk::at(folder.path()).unwrap();
    let log = open(&disk, Settings { segment_bytes: 1 << 20, ..Settings::default() }).unwrap();
    let epoch = log.acquire().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| log.tail(Cursor(0), 1, Duration::from_secs(30), &Reader::SPACE).unwrap());
        std::thread::sleep(Duration::from_millis(30));
        let _ = log.submit(epoch, append(vec![record("a", 10)])).unwrap();
        assert_eq!(waiting.join().unwrap()[0].record.id, "a");
    });
    assert!(log.tail(Cursor(1), 1, Duration::from_millis(5), &Reader::SPACE).unwrap().is_empty());
}
