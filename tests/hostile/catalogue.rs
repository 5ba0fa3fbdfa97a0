//! The catalogue, run against one process.

use crate::attack::{Attack, File, Known};
use crate::support::{Place, counting};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How many attacks the catalogue has at least.
const ATTACKS_MIN: usize = 150;

/// Every attack with its area, in the order of files and entries.
fn attacks() -> Vec<(String, Attack)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/attacks");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let area = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let file: File = toml::from_str(&written_out(&std::fs::read_to_string(path).unwrap()))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file.attack.into_iter().map(move |attack| (area.clone(), attack))
    };
    files.iter().flat_map(read).collect()
}

/// Writes out what is abbreviated: `«3×ab»` is `ababab`.
fn written_out(text: &str) -> String {
    let mut parts = text.split('«');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (repeated, rest) = part.split_once('»').unwrap();
        let (times, what) = repeated.split_once('×').unwrap();
        whole.push_str(&what.repeat(times.parse().unwrap()));
        whole.push_str(rest);
    }
    whole
}

/// Sends one line and reads one answer; nothing where the connection just ended.
fn exchange(place: &Place, line: &[u8]) -> Option<Value> {
    let mut stream = UnixStream::connect(place.store().join("closer.sock")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // A line that is longer than one may be is not read to its end.
    let _ = stream.write_all(line);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    BufReader::new(stream).read_until(b'\n', &mut answer).ok()?;
    (!answer.is_empty()).then(|| serde_json::from_slice(&answer).unwrap())
}

/// What governs: the accepted state.
fn governing(place: &Place) -> Value {
    let verify = serde_json::json!({ "identity": null, "request": { "verb": "verify" } });
    let answer = exchange(place, format!("{verify}\n").as_bytes()).unwrap();
    assert_eq!(answer["outcome"], "done", "{answer}");
    answer["data"]["state"].clone()
}

#[test]
fn every_attack_gets_its_code_and_changes_nothing_that_governs() {
    let place = Place::with(&counting("conditional"));
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    let known = Known::of(&place.store());
    let running = place.running(&["--until-stopped"]);
    let settled = settled(&place);
    let mut wrong = Vec::new();
    for (number, (area, attack)) in attacks().iter().enumerate() {
        let answer = exchange(&place, &attack.bytes(&known, number)).unwrap_or(Value::Null);
        let code = answer["code"].as_str();
        let outcome = answer["outcome"].as_str();
        let as_expected = match (&attack.code, &attack.outcome) {
            (Some(expected), None) => code == Some(expected) && outcome == Some("refused"),
            (None, Some(expected)) => outcome == Some(expected),
            _ => panic!("{}: an attack has a code or an outcome", attack.name),
        };
        if !as_expected {
            wrong.push(format!("{area}: {}: {:?}, not {code:?} {outcome:?}: {answer}", attack.name, attack.code));
        }
        if outcome == Some("done") && governing(&place) != settled {
            wrong.push(format!("{area}: {} has changed what governs", attack.name));
        }
    }
    let governs = governing(&place);
    let ended = running.stop();
    assert!(wrong.is_empty(), "{} attacks went otherwise:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(governs, settled, "the attacks have changed what governs");
    assert!(ended.is_some(), "the process was still there to be stopped, and ended by itself");
    place.call(&["verify"]).expect(0);
}

/// The process does its honest work first: then nothing of its own moves what governs.
fn settled(place: &Place) -> Value {
    let mut before = Value::Null;
    for _ in 0..100 {
        let now = governing(place);
        let listed = serde_json::json!({ "identity": null, "request": { "verb": "obligation_list", "all": true } });
        let listed = exchange(place, format!("{listed}\n").as_bytes()).unwrap();
        if now == before && listed.to_string().contains("\"resolved\"") {
            return now;
        }
        before = now;
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the obligation was not settled");
}

#[test]
fn the_catalogue_is_whole() {
    let attacks = attacks();
    assert!(attacks.len() >= ATTACKS_MIN, "{} attacks", attacks.len());
    let names: BTreeSet<&str> = attacks.iter().map(|(_, attack)| attack.name.as_str()).collect();
    assert_eq!(names.len(), attacks.len(), "each has a name of its own");
    let areas: BTreeSet<&str> = attacks.iter().map(|(area, _)| area.as_str()).collect();
    let demanded = ["bench", "disclosure", "dispatch", "identity", "import", "inquiry", "intake", "state", "urgent"];
    assert!(demanded.iter().all(|area| areas.contains(area)), "{areas:?}");
    let rows =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/requirements/closer.md")).unwrap();
    for (_, attack) in &attacks {
        assert!(!attack.rows.is_empty(), "{} names no row", attack.name);
        for row in &attack.rows {
            assert!(rows.contains(&format!("| {row} |")), "{}: there is no row {row}", attack.name);
        }
    }
}
