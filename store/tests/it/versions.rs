//! Stores of other format versions: older ones are read for ever, newer ones are refused untouched.

use crate::batch::{claiming, linked, open, record, small};
use closer_contracts::record::{ClaimKey, Cursor, StreamId};
use closer_store::{BodyState, Disk, FORMAT_VERSION, Log, Reader, RealDisk, RecordLog, SimDisk, StoreError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Every file below a folder with its content.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(contents(&path)),
            false => drop(files.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    files
}

/// The store that each fixture holds: 60 records on four streams over two segments, the third's body removed.
fn checks_out(log: &Log) {
    assert_eq!(log.verify(&mut |_| {}).unwrap().records, 61);
    assert_eq!(log.head(&StreamId::new("all")).unwrap().unwrap().position.0, 60);
    let expected = record("r-7", 1200);
    assert_eq!(log.claim(&ClaimKey::new("payload:r-7")).unwrap(), Some(expected.body_digest));
    let entry = log.record(Cursor(8), &Reader::SERVICE).unwrap();
    assert_eq!((entry.record.id, entry.record.body), (expected.id, expected.body));
    assert_eq!(log.record(Cursor(3), &Reader::SERVICE).unwrap().body, BodyState::Removed);
    let epoch = log.acquire().unwrap();
    crate::batch::write(log, epoch, claiming(linked(log, record("new", 100), &["all"])));
    assert_eq!(log.verify(&mut |_| {}).unwrap().records, 62);
}

#[test]
fn a_store_of_every_format_version_opens() {
    for version in 1..=FORMAT_VERSION {
        let fixture = fixtures().join(format!("v{version}"));
        let folder = tempfile::tempdir().unwrap();
        closer_store::restore(&fixture, folder.path(), &mut |_| {}).unwrap();
        let disk = RealDisk::at(folder.path().join("log")).unwrap();
        checks_out(&open(&disk, small()).unwrap());
    }
}

#[test]
fn what_is_written_today_is_the_newest_fixture_byte_for_byte() {
    let disk = SimDisk::new();
    let log = open(&disk, small()).unwrap();
    let epoch = log.acquire().unwrap();
    for index in 0..60 {
        let record = claiming(record(&format!("r-{index}"), 1200));
        crate::batch::write(&log, epoch, linked(&log, record, &["all", &format!("thing:{}", index % 3)]));
    }
    let removal = closer_store::Removal {
        cursor: Cursor(3),
        authority: "decision:d-1".into(),
        reason: "fixture".into(),
        admitted_at: closer_contracts::time::Timestamp::from_unix_ms(1_700_000_001_000),
    };
    log.remove_body(epoch, &removal).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("v");
    log.backup(&written, &mut |_| {}).unwrap();
    if std::env::var_os("CLOSER_BLESS").is_some() {
        let fixture = fixtures().join(format!("v{FORMAT_VERSION}"));
        std::fs::create_dir_all(&fixture).unwrap();
        for (path, bytes) in contents(&written) {
            std::fs::write(fixture.join(path.file_name().unwrap()), bytes).unwrap();
        }
    }
    let named = |folder: &Path| -> BTreeMap<_, _> {
        contents(folder).into_iter().map(|(path, bytes)| (path.file_name().unwrap().to_owned(), bytes)).collect()
    };
    let (today, committed) = (named(&written), named(&fixtures().join(format!("v{FORMAT_VERSION}"))));
    assert!(today == committed, "the format changed: a new format version and fixture are due");
}

#[test]
fn a_newer_store_is_refused_untouched() {
    let folder = tempfile::tempdir().unwrap();
    drop(Log::open(folder.path(), None).unwrap());
    let segment = folder.path().join("log/0000000001.log");
    let mut bytes = std::fs::read(&segment).unwrap();
    let newer = FORMAT_VERSION + 1;
    bytes[8..12].copy_from_slice(&newer.to_le_bytes());
    bytes[12..16].copy_from_slice(&(!newer).to_le_bytes());
    bytes[200] = 7;
    std::fs::write(&segment, &bytes).unwrap();
    std::fs::write(folder.path().join("log/0000000002.new"), b"half a segment").unwrap();
    let before = contents(folder.path());
    let refused = Log::open(folder.path(), None).err();
    let expected = newer;
    assert!(
        matches!(refused, Some(StoreError::NewerVersion { found, known: FORMAT_VERSION }) if found == expected),
        "{refused:?}"
    );
    assert!(contents(folder.path()) == before, "nothing was touched");
}

#[test]
fn an_empty_or_foreign_segment_is_damage() {
    for content in [
        &b""[..],
        b"something else entirely, and long enough to hold a segment header of ninety-six bytes, surely......",
    ] {
        let disk = SimDisk::new();
        let file = disk.create("0000000001.log").unwrap();
        file.write_at(content, 0).unwrap();
        assert!(matches!(open(&disk, small()), Err(StoreError::Corruption(_))));
    }
}
