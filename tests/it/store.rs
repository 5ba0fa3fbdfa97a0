//! The log as a whole: copies, damage, the process that holds it.

use crate::support::{Place, counting, segments};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The segments of a backup by name.
fn files(backup: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(backup).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap()));
    let segments: Vec<(String, Vec<u8>)> = named.filter(|(name, _)| name.ends_with(".log")).collect();
    assert!(!segments.is_empty());
    segments
}

#[test]
fn a_backup_restores_to_the_same_record() {
    let place = Place::with(&counting("conditional"));
    place.run(&[]).expect(0);
    let verified = place.call(&["--json", "verify"]).expect(0).json();
    let backup = place.path().join("backup");
    place.call(&["backup", backup.to_str().unwrap()]).expect(0);
    place.call(&["backup", backup.to_str().unwrap()]).expect(1);
    fs::rename(place.store(), place.path().join("lost")).unwrap();
    place.call(&["obligation", "list"]).expect(4);
    place.call(&["restore", backup.to_str().unwrap(), place.store().to_str().unwrap()]).expect(0);
    for (name, bytes) in files(&backup) {
        assert!(fs::read(place.store().join("log").join(&name)).unwrap_or_default() == bytes, "{name} differs");
    }
    let restored = place.call(&["--json", "verify"]).expect(0).json();
    assert_eq!((&restored["state"], &restored["heads"]), (&verified["state"], &verified["heads"]));
    // Others than the user make no copies.
    let other = place.path().join("other");
    let refused =
        place.call(&["--json", "--as", "issuer.security", "backup", other.to_str().unwrap()]).expect(3).json();
    assert_eq!(refused["code"], "missing_authority");
    assert!(!other.exists());
}

#[test]
fn a_flipped_byte_is_named_by_its_place() {
    let place = Place::with(&counting("conditional"));
    place.run(&[]).expect(0);
    let segment = segments(&place.store()).remove(0);
    let whole = fs::read(&segment).unwrap();
    // Somewhere in the first record's body, well before the end of what is written.
    let at = 3_000;
    assert_ne!(whole[at], 0);
    let mut damaged = whole.clone();
    damaged[at] ^= 0x20;
    fs::write(&segment, &damaged).unwrap();
    let verified = place.call(&["--json", "verify"]).expect(5);
    let place_of = |told: &Value| (told["segment"].as_u64(), told["offset"].is_u64(), told["record"].as_u64());
    assert_eq!(place_of(&verified.json()), (Some(1), true, Some(1)));
    // Whatever meets the damage names its place, also where the store does not even open.
    assert_eq!(place_of(&place.run(&["--json"]).expect(5).json()), (Some(1), true, Some(1)));
    let header = {
        let mut damaged = whole.clone();
        damaged[40] ^= 1;
        damaged
    };
    fs::write(&segment, &header).unwrap();
    for verb in [&["--json", "verify"][..], &["--json", "obligation", "list"], &["--json", "rebuild"]] {
        let told = place.call(verb).expect(5).json();
        assert_eq!((told["segment"].as_u64(), told["offset"].as_u64()), (Some(1), Some(0)), "{verb:?}: {told}");
        assert!(told["what"].is_string() && told.get("record").is_some(), "{verb:?}: {told}");
    }
    fs::write(&segment, &whole).unwrap();
    place.call(&["verify"]).expect(0);
}

/// A changed byte at the very end, where nothing that was acknowledged lies, is told before opening cuts it off.
#[test]
fn a_flipped_byte_of_the_last_seal_is_told() {
    let place = Place::with(&counting("conditional"));
    place.run(&[]).expect(0);
    let segment = segments(&place.store()).remove(0);
    let whole = fs::read(&segment).unwrap();
    let last = whole.windows(4).rposition(|bytes| bytes == b"CLBT").unwrap();
    for at in [0, 5, 33, 95] {
        let mut damaged = whole.clone();
        damaged[last + at] ^= 0x40;
        fs::write(&segment, &damaged).unwrap();
        let told = place.call(&["--json", "verify"]).expect(5).json();
        assert_eq!((told["segment"].as_u64(), told["offset"].as_u64()), (Some(1), Some(last as u64)), "{at}: {told}");
        assert!(told["record"].is_u64());
        // Whatever verify calls damage keeps everything from being sent, and stays as it was found.
        place.run(&[]).expect(5);
        assert_eq!(fs::read(&segment).unwrap(), damaged, "{at}");
    }
    fs::write(&segment, &whole).unwrap();
    place.call(&["verify"]).expect(0);
}

#[test]
fn the_derived_state_can_be_lost() {
    let place = Place::with(&counting("conditional"));
    place.run(&[]).expect(0);
    let verified = place.call(&["--json", "verify"]).expect(0).json();
    fs::remove_dir_all(place.store().join("derived")).unwrap();
    let rebuilt = place.call(&["--json", "rebuild"]).expect(0).json();
    assert_eq!(rebuilt["state"], verified["state"]);
}

#[test]
fn verbs_reach_the_running_process_through_its_socket() {
    let place = Place::with(&counting("conditional"));
    let running = place.running(&["--until-stopped"]);
    let socket = place.store().join("closer.sock");
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    place.call(&["obligation", "list"]).expect(0);
    place.call(&["verify"]).expect(0);
    let restrict =
        ["--json", "restrict", "--issuer", "issuer.security", "--operation", "file.finish", "--reason", "enough"];
    assert_eq!(place.call(&restrict).expect(0).json()["recorded"].as_array().map(Vec::len), Some(1));
    // What is no request gets an answer, and the next request too.
    let stream = UnixStream::connect(&socket).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    for garbage in ["", "nonsense", "{\"identity\":null}", "[1,2", "{\"identity\":null,\"request\":{\"verb\":\"fly\"}}"]
    {
        writeln!(&stream, "{garbage}").unwrap();
        let answer = answers.next().unwrap().unwrap();
        assert!(answer.contains("cannot be read"), "{garbage}: {answer}");
    }
    writeln!(&stream, "{{\"identity\":null,\"request\":{{\"verb\":\"obligation_list\",\"all\":true}}}}").unwrap();
    assert!(answers.next().unwrap().unwrap().contains("obligation.count"));
    for service in ["closer.semantic", "agent.worker", "nobody"] {
        let refused = place.call(&["--json", "--as", service, "obligation", "list"]).expect(3).json();
        assert_eq!(refused["code"], "unauthenticated", "{service}");
    }
    assert!(matches!(running.stop(), Some(0 | 8)));
    place.call(&["obligation", "list"]).expect(0);
}

#[test]
fn a_second_run_of_one_store_is_turned_away() {
    let place = Place::with(&counting("conditional"));
    let running = place.running(&["--until-stopped"]);
    let second = place.run(&[]).expect(1);
    assert!(second.stderr.contains("another process holds the store"), "{second:?}");
    drop(running);
}

/// Damage that is found while a process runs stops that process too: nothing more is decided, and nothing copied.
#[test]
fn damage_found_in_a_running_process_stops_it() {
    let place = Place::with(&counting("conditional"));
    let running = place.running(&["--until-stopped"]);
    let segment = segments(&place.store()).remove(0);
    let mut damaged = fs::read(&segment).unwrap();
    damaged[3_000] ^= 0x20;
    fs::write(&segment, &damaged).unwrap();
    place.call(&["verify"]).expect(5);
    let send = [
        "restrict",
        "--issuer",
        "issuer.security",
        "--operation",
        "file.finish",
        "--reason",
        "nothing more is decided",
    ];
    assert_eq!(place.call(&send).code, Some(5));
    let copy = place.path().join("copy");
    assert_eq!(place.call(&["backup", copy.to_str().unwrap()]).code, Some(5));
    drop(running);
}

/// A store that lost its log is not founded anew over what was derived from it.
#[test]
fn a_store_that_lost_its_log_is_not_begun_anew() {
    let place = Place::with(&counting("conditional"));
    place.run(&[]).expect(0);
    fs::remove_dir_all(place.store().join("log")).unwrap();
    for told in [place.run(&[]), place.call(&["verify"]), place.call(&["obligation", "list"])] {
        assert_eq!(told.code, Some(5), "{told:?}");
    }
    assert!(!place.store().join("log").exists());
}

/// Verbs that come at the same time to a store that nobody runs wait for each other.
#[test]
fn verbs_at_the_same_time_are_all_heard() {
    let place = Place::with(&counting("conditional"));
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    let told: Vec<Option<i32>> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..6).map(|_| scope.spawn(|| place.call(&["obligation", "list"]).code)).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert_eq!(told, vec![Some(0); 6]);
}
