//! A full disk: ordinary work is refused while the reserve is free, urgent work goes on.

use crate::batch::{append, open, record, small};
use closer_contracts::record::{Epoch, Lane};
use closer_store::{Declined, Disk, Log, RealDisk, RecordLog, Settings, SimDisk, StoreError};
use std::path::Path;
use std::process::Command;

/// Appends until the store says it is full, and counts.
fn until_full(log: &Log, epoch: Epoch, lane: Lane) -> usize {
    for count in 0..100_000 {
        let mut append = append(vec![record(&format!("{lane:?}-{count}"), 3000)]);
        append.lane = lane;
        match log.submit(epoch, append) {
            Ok(ticket) => {
                log.flush().unwrap();
                ticket.wait().unwrap();
            }
            Err(Declined::Store(StoreError::StoreFull)) => return count,
            Err(declined) => panic!("{declined}"),
        }
    }
    panic!("the store never filled up")
}

/// On a full disk: ordinary work stops, urgent work has a segment of its own, nothing is lost, space heals it.
fn fills_up(disk: &(impl Disk + Clone + 'static), settings: &Settings, give_space: impl FnOnce()) {
    let log = open(disk, settings.clone()).unwrap();
    let epoch = log.acquire().unwrap();
    let ordinary = until_full(&log, epoch, Lane::Ordinary);
    let urgent = until_full(&log, epoch, Lane::Reserved);
    assert!(ordinary > 10 && urgent > 10, "{ordinary} ordinary, {urgent} urgent");
    assert_eq!(until_full(&log, epoch, Lane::Ordinary), 0, "the rest of the reserve is not for ordinary work");
    let records = log.verify(&mut |_| {}).unwrap().records;
    assert_eq!(records as usize, ordinary + urgent);
    drop(log);

    let log = open(disk, settings.clone()).unwrap();
    let epoch = log.epoch();
    assert_eq!(log.verify(&mut |_| {}).unwrap().records, records);
    assert_eq!(until_full(&log, epoch, Lane::Ordinary), 0, "a restart gives the reserve to nobody");
    give_space();
    assert!(until_full(&log, epoch, Lane::Ordinary) > 10);
    assert!(until_full(&log, epoch, Lane::Reserved) > 10, "there is a reserve again");
}

#[test]
fn on_a_simulated_disk() {
    let disk = SimDisk::new();
    disk.set_capacity(Some(5 * (64 << 10)));
    fills_up(&disk, &small(), || disk.set_capacity(Some(9 * (64 << 10))));
}

#[test]
fn on_a_small_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let mount = Mount::tmpfs(folder.path(), "2M");
    let Some(_mount) = mount else {
        println!("skipped: mounting a file system needs root");
        return;
    };
    let ballast = folder.path().join("ballast");
    std::fs::write(&ballast, vec![0; 900 << 10]).unwrap();
    let disk = RealDisk::at(folder.path().join("log")).unwrap();
    let settings = Settings { segment_bytes: 256 << 10, ..small() };
    fills_up(&disk, &settings, || std::fs::remove_file(&ballast).unwrap());
}

/// A file system mounted for as long as the value lives.
struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    fn tmpfs(at: &'a Path, size: &str) -> Option<Self> {
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(at).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(at))
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "the file system is unmounted");
    }
}

/// A backup to a destination without room leaves nothing there, and says what is the matter.
#[test]
fn a_backup_without_room_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let tiny = folder.path().join("small");
    std::fs::create_dir(&tiny).unwrap();
    let Some(_mount) = Mount::tmpfs(&tiny, "64k") else {
        println!("skipped: mounting a file system needs root");
        return;
    };
    let log = open(&RealDisk::at(folder.path().join("log")).unwrap(), small()).unwrap();
    let epoch = log.acquire().unwrap();
    for count in 0..50 {
        let ticket = log.submit(epoch, append(vec![record(&format!("record-{count}"), 3000)])).unwrap();
        log.flush().unwrap();
        ticket.wait().unwrap();
    }
    for destination in [tiny.clone(), tiny.join("copy")] {
        let told = log.backup(&destination, &mut |_| {});
        assert!(matches!(told, Err(StoreError::NoRoom(_))), "{told:?}");
        assert_eq!(std::fs::read_dir(&tiny).unwrap().count(), 0);
    }
    log.backup(&folder.path().join("copy"), &mut |_| {}).unwrap();
}
