//! Lost power and failed syncs on a simulated disk: what was acknowledged stays, what was not is all there or gone.

use crate::batch::{append, claiming, fill, linked, open, record, small, write};
use closer_contracts::record::{Cursor, Epoch, StreamId};
use closer_store::{Declined, Log, Reader, RecordLog, SimDisk, StoreError};
use proptest::prelude::*;
use std::time::Duration;

#[derive(Debug, Clone)]
enum Step {
    /// Submit an append of so many records of so many bytes.
    Submit {
        records: usize,
        bytes: usize,
    },
    Flush,
    /// Lose power; of each file's unsynced sectors, the seed says which survive.
    Crash {
        seed: u64,
        prefix: bool,
    },
    /// End the process without losing what the system holds.
    Kill,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1usize..4, 1usize..3000).prop_map(|(records, bytes)| Step::Submit { records, bytes }),
        3 => Just(Step::Flush),
        2 => (any::<u64>(), any::<bool>()).prop_map(|(seed, prefix)| Step::Crash { seed, prefix }),
        1 => Just(Step::Kill),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A small generator, so that one seed gives one fault.
fn mix(seed: u64, value: u64) -> u64 {
    let mut x = seed ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (x >> 31)
}

struct Run {
    disk: SimDisk,
    log: Option<Log>,
    epoch: Epoch,
    /// Appends in order of submission: how many records, and whether they were acknowledged.
    appends: Vec<(Vec<String>, bool)>,
    next: usize,
}

impl Run {
    fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    fn submit(&mut self, records: usize, bytes: usize) {
        let mut batch = Vec::new();
        for index in 0..records {
            let record = claiming(record(&format!("r-{}", self.next + index), bytes));
            let stream = format!("s:{}", (self.next + index) % 5);
            batch.push(if index == 0 { linked(self.log(), record, &[&stream]) } else { record });
        }
        let ids = batch.iter().map(|record| record.id.clone()).collect();
        match self.log().submit(self.epoch, append(batch)) {
            Ok(_ticket) => {
                self.next += records;
                self.appends.push((ids, false));
            }
            Err(Declined::Store(StoreError::Busy(_))) => {}
            Err(declined) => panic!("{declined}"),
        }
    }

    fn flush(&mut self) {
        self.log().flush().unwrap();
        self.appends.iter_mut().for_each(|(_, acknowledged)| *acknowledged = true);
    }

    /// After reopening: a prefix of the appends is there, whole, with everything acknowledged.
    fn reopen(&mut self) {
        let log = open(&self.disk, small()).unwrap();
        let verified = log.verify(&mut |_| {}).unwrap();
        let there: Vec<String> = log
            .tail(Cursor(0), usize::MAX, Duration::ZERO, &Reader::SERVICE)
            .unwrap()
            .into_iter()
            .map(|entry| entry.record.id)
            .collect();
        assert_eq!(verified.records as usize, there.len());
        let mut left = there.as_slice();
        let mut kept = 0;
        for (ids, acknowledged) in &self.appends {
            match left.strip_prefix(ids.as_slice()) {
                Some(rest) => (left, kept) = (rest, kept + 1),
                None => {
                    assert!(!acknowledged, "an acknowledged append is lost: {ids:?}");
                    break;
                }
            }
        }
        assert!(left.is_empty(), "half an append is visible, or one after a lost one: {left:?}");
        self.appends.truncate(kept);
        self.appends.iter_mut().for_each(|(_, acknowledged)| *acknowledged = true);
        self.next = there.len();
        self.epoch = log.acquire().unwrap();
        self.log = Some(log);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn nothing_acknowledged_is_lost_and_nothing_is_half_there(steps in steps()) {
        let disk = SimDisk::new();
        let mut run = Run { disk, log: None, epoch: Epoch(0), appends: Vec::new(), next: 0 };
        run.reopen();
        for step in steps {
            match step {
                Step::Submit { records, bytes } => run.submit(records, bytes),
                Step::Flush => run.flush(),
                Step::Kill => {
                    run.log.take().unwrap().abandon();
                    run.reopen();
                }
                Step::Crash { seed, prefix } => {
                    // Half of the crashes come while a group is on its way: the sync fails, the power goes.
                    if seed % 2 == 0 {
                        run.disk.fail_sync_after(mix(seed, 1) % 2);
                        if run.log().flush().is_ok() {
                            run.appends.iter_mut().for_each(|(_, acknowledged)| *acknowledged = true);
                        }
                    }
                    run.disk.crash(&mut |_, index, count| match prefix {
                        true => (index as u64) < mix(seed, 2) % (count as u64 + 1),
                        false => !mix(seed, 3 + index as u64).is_multiple_of(3),
                    });
                    run.log.take().unwrap().abandon();
                    run.reopen();
                }
            }
        }
    }
}

#[test]
fn a_torn_group_is_cut_off_wherever_it_tears() {
    for keep in 0..30 {
        let disk = SimDisk::new();
        let log = open(&disk, small()).unwrap();
        let epoch = log.acquire().unwrap();
        fill(&log, epoch, 0, 3, 700);
        for index in 3..8 {
            let _ = log.submit(epoch, append(vec![claiming(record(&format!("r-{index}"), 1500))])).unwrap();
        }
        disk.hold_syncs();
        let _ = log.flush();
        disk.crash(&mut |_, index, _| index < keep);
        log.abandon();
        let log = open(&disk, small()).unwrap();
        let records = log.verify(&mut |_| {}).unwrap().records;
        assert!((3..=8).contains(&records), "{records} records with {keep} sectors kept");
        assert_eq!(log.durable(), Cursor(records));
    }
}

#[test]
fn after_a_failed_sync_nothing_is_accepted_until_reopened() {
    let disk = SimDisk::new();
    let log = open(&disk, small()).unwrap();
    let epoch = log.acquire().unwrap();
    write(&log, epoch, linked(&log, record("kept", 100), &["s"]));
    let syncs = disk.sync_count();
    disk.fail_sync_after(0);
    let first = log.submit(epoch, append(vec![linked(&log, record("lost", 100), &["s"])])).unwrap();
    let second = log.submit(epoch, append(vec![linked(&log, record("lost too", 100), &["s"])])).unwrap();
    assert!(matches!(log.flush(), Err(StoreError::Poisoned(_))));
    assert!(matches!(first.wait(), Err(StoreError::Poisoned(_))));
    assert!(matches!(second.wait(), Err(StoreError::Poisoned(_))));
    let declined = log.submit(epoch, append(vec![record("late", 100)]));
    assert!(matches!(declined, Err(Declined::Store(StoreError::Poisoned(_)))));
    assert!(log.acquire().is_err());
    assert_eq!(disk.sync_count(), syncs + 1, "no sync is tried again");
    assert_eq!(log.durable(), Cursor(1));
    drop(log);
    disk.crash(&mut |_, _, _| false);
    let log = open(&disk, small()).unwrap();
    assert_eq!(log.head(&StreamId::new("s")).unwrap().unwrap().position.0, 1);
    let epoch = log.acquire().unwrap();
    write(&log, epoch, linked(&log, record("again", 100), &["s"]));
}

#[test]
fn an_unfinished_segment_is_forgotten() {
    let disk = SimDisk::new();
    for cut in 0..12 {
        let log = open(&disk, small()).unwrap();
        let epoch = log.acquire().unwrap();
        let before = log.durable().0;
        disk.fail_sync_after(cut);
        let mut index = before;
        while index < before + 40 {
            let record = claiming(record(&format!("r-{index}"), 2000));
            let Ok(ticket) = log.submit(epoch, append(vec![record])) else {
                break;
            };
            if log.flush().is_err() || ticket.wait().is_err() {
                break;
            }
            index += 1;
        }
        disk.crash(&mut |_, index, _| index % 2 == 0);
        log.abandon();
        let log = open(&disk, small()).unwrap();
        assert!(log.durable().0 >= index, "acknowledged up to {index}, there up to {}", log.durable().0);
        log.verify(&mut |_| {}).unwrap();
    }
}

/// After a failed sync the system still shows what it never wrote, and takes it for written. Whoever opens the log again on
/// the same system and goes on must not lose it, or what comes after it, to the next power cut.
#[test]
fn what_a_failed_sync_has_left_readable_is_written_again_before_it_is_relied_on() {
    for passing in 0..6 {
        let disk = SimDisk::new();
        let log = open(&disk, small()).unwrap();
        let epoch = log.acquire().unwrap();
        fill(&log, epoch, 0, 3, 700);
        let mut acknowledged = log.durable();
        disk.fail_sync_after(passing);
        for index in 3..60 {
            let record = claiming(record(&format!("r-{index}"), 1500));
            let Ok(_ticket) = log.submit(epoch, append(vec![record])) else { break };
            if log.flush().is_err() {
                break;
            }
        }
        drop(log);
        let log = open(&disk, small()).unwrap();
        let epoch = log.acquire().unwrap();
        acknowledged = acknowledged.max(log.durable());
        for index in 0..40 {
            let record = claiming(record(&format!("after-{index}"), 1500));
            let _ticket = log.submit(epoch, append(vec![record])).unwrap();
            log.flush().unwrap();
            acknowledged = acknowledged.max(log.durable());
        }
        disk.crash(&mut |_, _, _| false);
        log.abandon();
        let log = open(&disk, small()).unwrap();
        log.verify(&mut |_| {}).unwrap();
        assert!(log.durable() >= acknowledged, "with {passing} syncs passing");
    }
}
