//! What reads bytes from outside.

use crate::bend::run;
use closer::deployment::Deployment;
use closer::request::Asked;
use closer_contracts::canonical::{read_value, to_bytes};
use closer_contracts::envelope::Payload;
use closer_contracts::example::{self, Example, Extent};
use closer_contracts::payload_type::PayloadType;
use closer_contracts::record::{Record, RecordKind};
use closer_contracts::reentry::TypedPredicate;
use closer_contracts::{Digest, Timestamp};
use closer_monitor::ClockStanding;
use closer_protocol::entry::Entry;
use closer_protocol::input::Moment;
use closer_protocol::{View, predicate};
use closer_scenarios::{Deployment as Small, Space, worker};
use closer_store::{Drive, Log, RecordLog, Settings, SimDisk};
use std::path::Path;
use std::sync::Arc;

fn payloads() -> Vec<Vec<u8>> {
    let of = |payload_type: &PayloadType| {
        [Extent::Minimal, Extent::Full].map(|extent| example::payload(*payload_type, extent).bytes().to_vec())
    };
    PayloadType::ALL.iter().flat_map(of).collect()
}

/// What a small space writes from its beginning to the closing of its obligation.
fn records() -> Vec<Record> {
    let mut space = Space::found(&Small::default(), worker::proposes("basic")).unwrap();
    space.event("service-a", "price").unwrap();
    space.run().unwrap();
    space.records().to_vec()
}

#[test]
fn a_payload_is_refused_or_read_as_the_bytes_it_is() {
    run("payload", &payloads(), |input| {
        if let Ok(payload) = Payload::read(input) {
            assert_eq!(&payload.bytes()[..], input);
            assert_eq!(Payload::read(payload.bytes()).unwrap(), payload);
            let value: serde_json::Value = serde_json::from_slice(input).unwrap();
            assert_eq!(serde_jcs::to_vec(&value).unwrap(), input, "what is accepted is canonical");
        }
    });
}

#[test]
fn the_strict_reader_agrees_with_a_library() {
    run("strict", &payloads(), |input| {
        if let Ok(value) = read_value(input) {
            let plain: serde_json::Value =
                serde_json::from_slice(input).expect("a library reads what is read strictly");
            assert_eq!(value, plain);
            if let Ok(written) = to_bytes(&value) {
                assert_eq!(written, serde_jcs::to_vec(&value).unwrap());
                assert_eq!(read_value(&written).unwrap(), value);
            }
        }
    });
}

#[test]
fn a_record_is_refused_or_folds_or_diverges() {
    let records = records();
    let mut view = View::default();
    for record in &records {
        view.fold(&Entry::read(record).unwrap(), &record.admitted_at).unwrap();
    }
    // The first byte says which kind of record the rest is the body of.
    let kinds: Vec<(RecordKind, String)> = records.iter().map(|record| (record.kind, record.id.clone())).collect();
    let numbered = records.iter().enumerate().take(250);
    let corpus: Vec<Vec<u8>> = numbered
        .map(|(number, record)| [&[u8::try_from(number).unwrap()], record.body.as_deref().unwrap()].concat())
        .collect();
    let at = Timestamp::from_unix_ms(1_800_000_000_000);
    run("record", &corpus, |input| {
        let Some((number, body)) = input.split_first() else { return };
        let (kind, id) = kinds[usize::from(*number) % kinds.len()].clone();
        let body: Arc<[u8]> = body.into();
        let record = Record { kind, id, body_digest: Digest::of(&body), body: Some(body), ..records[0].clone() };
        if let Ok(entry) = Entry::read(&record) {
            let mut folded = view.clone();
            let _ = folded.fold(&entry, &at);
            let _ = View::default().fold(&entry, &at);
        }
    });
}

#[test]
fn a_predicate_is_refused_or_evaluates_the_same_way_twice() {
    let mut view = View::default();
    for record in records() {
        view.fold(&Entry::read(&record).unwrap(), &record.admitted_at).unwrap();
    }
    let at = Moment { now: Timestamp::from_unix_ms(1_800_000_000_000), clock: ClockStanding::Reliable };
    let corpus: Vec<Vec<u8>> = [Extent::Minimal, Extent::Full]
        .into_iter()
        .map(TypedPredicate::example)
        .chain(
            [r#"{"operator":"TimeReached","at":"2026-01-01T00:00:00Z"}"#]
                .map(|text| serde_json::from_str(text).unwrap()),
        )
        .map(|predicate| to_bytes(&predicate).unwrap())
        .chain(
            [Extent::Minimal, Extent::Full]
                .map(|extent| to_bytes(&closer_contracts::reentry::Reentry::example(extent).predicate).unwrap()),
        )
        .collect();
    run("predicate", &corpus, |input| {
        if let Ok(typed) = serde_json::from_slice::<TypedPredicate>(input) {
            assert_eq!(predicate::evaluate(&typed, &view, &at), predicate::evaluate(&typed, &view, &at));
            let _ = predicate::inputs(&typed, &view);
            let _ = predicate::is_bounded(&typed, &at.now, 1_000);
        }
    });
}

#[test]
fn a_deployment_file_is_refused_or_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files =
        ["examples/certificate-renewal/closer.toml", "examples/cost-candidate/closer.toml", "tests/it/counting.toml"];
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(root.join(file)).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let now = Timestamp::from_unix_ms(1_800_000_000_000);
    run("deployment", &corpus, |input| {
        std::fs::write(folder.path().join("closer.toml"), input).unwrap();
        let _ = Deployment::load(folder.path(), &now);
    });
}

#[test]
fn a_request_is_refused_or_read() {
    let verbs = [
        r#"{"identity":null,"request":{"verb":"verify"}}"#,
        r#"{"identity":"user.owner","request":{"verb":"bench_decide","decision_id":"d","option":"allow"}}"#,
        r#"{"identity":null,"request":{"verb":"restrict","issuer":"i","grant_id":null,"operation":"o","targets":null,"obligation_id":null,"reason":"r","reconcile_within_ms":7}}"#,
        r#"{"identity":null,"request":{"verb":"reentry_register","reentry":{"obligation_id":"o","predicate":{"operator":"TimeReached"}}}}"#,
    ];
    let corpus: Vec<Vec<u8>> = verbs.iter().map(|verb| verb.as_bytes().to_vec()).collect();
    run("request", &corpus, |input| {
        if let Ok(asked) = serde_json::from_slice::<Asked>(input) {
            let written = serde_json::to_vec(&asked).unwrap();
            assert!(serde_json::from_slice::<Asked>(&written).is_ok());
        }
    });
}

const SEGMENT: &str = "0000000001.log";

fn settings() -> Settings {
    Settings { segment_bytes: 256 << 10, drive: Drive::Caller, ..Settings::default() }
}

/// A disk whose one segment is these bytes.
fn disk_of(bytes: &[u8]) -> SimDisk {
    use closer_store::Disk;
    let disk = SimDisk::new();
    let file = disk.create(SEGMENT).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir().unwrap();
    disk
}

/// A log on bent bytes opens and is whole up to where it was cut, or says where the damage is.
#[test]
fn a_segment_is_refused_or_every_record_of_it_is_what_was_written() {
    let disk = SimDisk::new();
    let log = Log::open_on(Arc::new(disk.clone()), settings(), None).unwrap();
    let epoch = log.acquire().unwrap();
    let written = records();
    for record in written.iter().take(20) {
        let append = closer_contracts::record::FencedAppend {
            lane: closer_contracts::record::Lane::Ordinary,
            guards: Vec::new(),
            records: vec![Record { links: Vec::new(), claims: Vec::new(), ..record.clone() }],
        };
        let _ticket = log.submit(epoch, append).unwrap();
        log.flush().unwrap();
    }
    let end = 24 << 10;
    let mut bytes = disk.bytes(SEGMENT).expect("the first segment");
    bytes.truncate(end);
    run("segment", &[bytes], |input| {
        let Ok(log) = Log::open_on(Arc::new(disk_of(input)), settings(), None) else { return };
        let read = log.tail(
            closer_contracts::record::Cursor(0),
            usize::MAX,
            std::time::Duration::ZERO,
            &closer_store::Reader::SERVICE,
        );
        for (entry, was) in read.into_iter().flatten().zip(&written) {
            let is = &entry.record;
            assert!(
                is.id == was.id && (is.body == was.body || is.body.is_none()),
                "record {} was changed",
                entry.cursor.0
            );
        }
        let _ = log.verify(&mut |_| {});
    });
}

#[test]
fn a_backup_is_refused_or_restored_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open_on(Arc::new(closer_store::RealDisk::at(folder.path().join("log")).unwrap()), settings(), None)
        .unwrap();
    let epoch = log.acquire().unwrap();
    let record = Record { links: Vec::new(), claims: Vec::new(), ..records()[1].clone() };
    let append = closer_contracts::record::FencedAppend {
        lane: closer_contracts::record::Lane::Ordinary,
        guards: Vec::new(),
        records: vec![record],
    };
    let _ticket = log.submit(epoch, append).unwrap();
    log.flush().unwrap();
    let copy = folder.path().join("copy");
    log.backup(&copy, &mut |_| {}).unwrap();
    let manifest = std::fs::read_dir(&copy).unwrap().map(|entry| entry.unwrap().path());
    let manifest = manifest.into_iter().find(|path| path.extension().is_some_and(|e| e == "json")).unwrap();
    let corpus = vec![std::fs::read(&manifest).unwrap()];
    let whole = serde_json::from_slice::<serde_json::Value>(&corpus[0]).unwrap();
    run("import", &corpus, |input| {
        std::fs::write(&manifest, input).unwrap();
        let to = tempfile::tempdir().unwrap();
        let restored = closer_store::restore(&copy, &to.path().join("restored"), &mut |_| {});
        if restored.is_ok() {
            let read: serde_json::Value = serde_json::from_slice(input).unwrap();
            assert_eq!(read["files"], whole["files"], "what is restored is what the manifest was written for");
        }
    });
}
