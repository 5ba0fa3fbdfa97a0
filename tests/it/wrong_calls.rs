//! Calls that name what is not there: the exit code says so, and what to do next stands beside it.

use crate::support::{Mount, Place, call, counting};
use std::fs;

fn founded() -> Place {
    let place = Place::with(&counting("conditional"));
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    place
}

/// Nothing is exported to somebody whom nobody knows, and no receipt says that it was.
#[test]
fn an_export_for_nobody_is_not_found() {
    let place = founded();
    let told = place.call(&["--json", "export", "--for", "nobody.here", "--purpose", "audit"]).expect(4).json();
    assert!(told["error"].as_str().is_some_and(|error| error.contains("nobody.here")), "{told}");
    let before = place.call(&["--json", "verify"]).expect(0).json()["records"].clone();
    place.call(&["export", "--for", "nobody.here", "--purpose", "audit"]).expect(4);
    assert_eq!(place.call(&["--json", "verify"]).expect(0).json()["records"], before);
    place.call(&["export", "--for", "user.owner", "--purpose", "audit"]).expect(0);
}

/// A backup, a deployment that is not there: not found, with what to do.
#[test]
fn what_is_not_there_is_not_found() {
    let place = founded();
    let again = place.path().join("again");
    let file = place.path().join("closer.toml");
    for absent in [place.path().join("nothing"), place.path().join("var"), file.clone()] {
        let told = call(&["restore", absent.to_str().unwrap(), again.to_str().unwrap()]).expect(4);
        assert!(told.stderr.contains("there is no backup at") && told.stderr.contains("closer backup"), "{told:?}");
        assert!(!again.exists());
    }
    for absent in [place.path().join("nothing"), file] {
        let told = call(&["run", absent.to_str().unwrap()]).expect(4);
        assert!(told.stderr.contains("is not there; name a deployment's folder"), "{told:?}");
    }
}

/// A second founding is refused, and says how to go on.
#[test]
fn a_second_founding_says_how_to_go_on() {
    let place = founded();
    let folder = place.path().to_str().unwrap();
    let told = call(&["init", folder]).expect(1);
    assert!(told.stderr.contains(&format!("go on with: closer run {folder}")), "{told:?}");
    let told = call(&["--json", "init", folder]).expect(1);
    assert!(told.json()["error"].as_str().unwrap().contains("founded already"), "{told:?}");
}

/// A destination without room is told as one, and nothing half made is left there.
#[test]
fn a_backup_without_room_leaves_nothing() {
    let place = founded();
    let whole = place.path().join("whole");
    place.call(&["backup", whole.to_str().unwrap()]).expect(0);
    let small = place.path().join("small");
    fs::create_dir(&small).unwrap();
    let Some(_mount) = Mount::tmpfs(&small, "16k") else {
        eprintln!("SKIPPED: a full disk is only tried where a file system can be mounted, which needs root");
        return;
    };
    for destination in [small.clone(), small.join("copy")] {
        let (to, from) = (destination.to_str().unwrap(), whole.to_str().unwrap());
        let told = [place.call(&["--json", "backup", to]), call(&["--json", "restore", from, to])];
        for told in told {
            let told = told.expect(3).json();
            assert_eq!(told["code"], "storage_full", "{told}");
            assert!(told["reason"].as_str().unwrap().contains(to), "{told}");
            assert_eq!(fs::read_dir(&small).unwrap().count(), 0, "nothing is left");
        }
    }
}
