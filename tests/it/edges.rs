//! Where things end: a file that cannot be used, a person who refuses, a process that is stopped, an output that is full.

use crate::support::{Background, CLOSER, Called, Mount, Place, called, counting, segments};
use serde_json::Value;
use std::fs;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn founded() -> Place {
    let place = Place::with(&counting("conditional"));
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    place
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What an adapter turned down is told with the adapter's own words, by `why` and by the trace.
#[test]
fn an_action_that_an_adapter_refused_is_told_with_its_reason() {
    let misspelt = |text: String| text.replace("target_root = \"./var/world\"", "target_root = \"./var/wrld\"");
    let place = Place::with(&misspelt(counting("conditional")));
    place.run(&[]).expect(8);
    let why = place.call(&["--json", "obligation", "why", "obligation.count"]).expect(0).json();
    let told = |value: &Value| value.as_str().unwrap_or_default().contains("wrld");
    assert!(told(&why["not_sent"][0]["reason"]) && told(&why["last_episode"]["reason"]), "{why}");
    let text = place.call(&["obligation", "why", "obligation.count"]).expect(0).stdout;
    assert!(text.contains("the effect was not sent") && text.contains("wrld"), "{text}");
    let trace = place.call(&["obligation", "trace", "obligation.count"]).expect(0).stdout;
    assert!(trace.contains("end: ") && trace.contains("wrld"), "{trace}");
}

/// A readback that cannot look is told with its reason while its attempt stays unsettled.
#[test]
fn a_readback_that_cannot_look_is_told_with_its_reason() {
    let spoilt = |text: String| text.replace(r#"echo done > \"$1\""#, r#"rm \"$1\"; mkdir \"$1\""#);
    let place = Place::with(&spoilt(counting("conditional")));
    place.run(&[]).expect(8);
    let why = place.call(&["--json", "obligation", "why", "obligation.count"]).expect(0).json();
    let waiting = why["waiting"].as_array().unwrap().iter().find(|told| told["for"] == "reconciliation");
    let looked = waiting.map(|told| told["last_look"].to_string()).unwrap_or_default();
    assert!(looked.len() > 10, "{why}");
    assert!(why["last_episode"]["reason"].as_str().is_some_and(|reason| reason.contains(": ")), "{why}");
}

/// The user lists, shows and revokes grants; a repeat is told as one.
#[test]
fn the_user_takes_a_grant_back() {
    let place = founded();
    assert!(place.call(&["grant", "list"]).expect(0).stdout.contains("grant.finish"));
    place.call(&["grant", "show", "nope"]).expect(4);
    place.call(&["grant", "revoke", "nope", "--reason", "x"]).expect(4);
    let revoke = ["--json", "grant", "revoke", "grant.finish", "--reason", "no longer wanted"];
    assert_eq!(place.call(&revoke).expect(0).json()["recorded"].as_array().map(Vec::len), Some(1));
    assert_eq!(place.call(&revoke).expect(0).json()["recorded"].as_array().map(Vec::len), Some(0));
    let shown = place.call(&["--json", "grant", "show", "grant.finish"]).expect(0).json();
    assert_eq!((&shown["standing"], &shown["calls_used"]), (&Value::from("revoked"), &Value::from(0)));
    assert_eq!(place.call(&["--json", "grant", "list"]).expect(0).json()["grants"], serde_json::json!([]));
    // What it was for is refused from then on.
    place.run(&[]).expect(6);
    assert!(!place.path().join("var/world/runs").exists());
}

/// Whoever the profile lets restrict restricts, and nobody is spoken for by mistake.
#[test]
fn whoever_may_restrict_restricts() {
    let place = founded();
    let restrict = |words: &[&str]| -> Called {
        place.call(&[&["--json"], words, &["--operation", "file.finish", "--reason", "enough"]].concat())
    };
    assert_eq!(restrict(&["--as", "agent.worker", "restrict"]).expect(3).json()["code"], "unauthenticated");
    restrict(&["--as", "issuer.security", "restrict", "--issuer", "user.owner"]).expect(2);
    restrict(&["restrict", "--issuer", "user.owner"]).expect(0);
    place.run(&[]).expect(8);
    let why = place.call(&["--json", "obligation", "why", "obligation.count"]).expect(0).json();
    assert!(why["waiting"].as_array().unwrap().iter().any(|told| told["for"] == "restriction"), "{why}");
    assert!(!place.path().join("var/world/runs").exists(), "the user's restriction holds");
    let target = ["--target", "file", "local", "target"];
    restrict(&[&["--as", "issuer.security", "restrict"][..], &target].concat()).expect(0);
}

/// An issuer that is established by its signature alone restricts and sends events with its key.
#[test]
fn an_issuer_with_a_key_restricts_with_it() {
    let place = Place::with(&counting("conditional"));
    let key = place.path().join("issuer.key");
    let made = place.call(&["--json", "keys", "new", key.to_str().unwrap()]).expect(0).json();
    let again = place.call(&["keys", "new", key.to_str().unwrap()]).expect(1);
    assert!(again.stderr.contains("is there already"), "{again:?}");
    let public = made["public_key"].as_str().unwrap();
    let entry = format!(
        "mechanisms = [\"ed25519\"]\nkeys = [{{ public_key = \"{public}\", signing_scope = [\"RESTRICTION_STATEMENT\", \"EVENT\"] }}]"
    );
    let text = counting("conditional").replace("kind = \"issuer\"\n", &format!("kind = \"issuer\"\n{entry}\n"));
    let text = text.replace("[profile]\n", "[profile]\nmechanisms = [\"session\", \"ed25519\"]\nsigning_policy = { rotation = \"yearly\", revocation = \"in the registry\", scope = \"as listed\" }\n");
    fs::write(place.path().join("closer.toml"), text).unwrap();
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    let restrict = ["--json", "restrict", "--issuer", "issuer.security", "--operation", "file.finish", "--reason", "x"];
    assert_eq!(place.call(&restrict).expect(3).json()["code"], "unauthenticated");
    let signed = [&restrict[..], &["--key", key.to_str().unwrap()]].concat();
    assert_eq!(place.call(&signed).expect(0).json()["recorded"].as_array().map(Vec::len), Some(1));

    let draft = ["--as", "issuer.security", "event", "draft", "--source", "source.people", "--entity", "word"];
    let drafted = place.call(&[&draft[..], &["--change", "word_given"]].concat()).expect(0);
    let file = place.path().join("event.json");
    fs::write(&file, &drafted.stdout).unwrap();
    let file = file.to_str().unwrap();
    let by = place.call(&["--json", "keys", "sign", key.to_str().unwrap(), file]).expect(0).json();
    let (key_id, signature) = (by["key_id"].as_str().unwrap(), by["signature"].as_str().unwrap());
    let send = ["event", "send", "--file", file, "--key-id", key_id, "--signature", signature];
    place.call(&[&["--as", "user.owner"][..], &send].concat()).expect(2);
    place.call(&[&["--as", "issuer.security"][..], &send].concat()).expect(0);
    // One line break ends a text file; a second one is no byte of any payload.
    fs::write(file, format!("{}\n", drafted.stdout)).unwrap();
    assert_eq!(place.call(&[&["--json"][..], &send].concat()).expect(3).json()["code"], "schema_invalid");
}

/// A process that holds the store and is stopped keeps nobody waiting for ever.
#[test]
fn a_stopped_process_is_told() {
    let place = Place::with(&counting("conditional"));
    let running: Background = place.running(&["--until-stopped"]);
    place.call(&["obligation", "list"]).expect(0);
    running.signal("-STOP");
    let asked = Instant::now();
    let told = place.call(&["--json", "obligation", "list"]);
    running.signal("-CONT");
    let told = told.expect(7);
    assert!(asked.elapsed() < Duration::from_secs(25), "{:?}", asked.elapsed());
    assert!(told.json()["error"].as_str().is_some_and(|error| error.contains("no sign of life")), "{told:?}");
    until("it answers again", || place.call(&["obligation", "list"]).code == Some(0));
    running.stop();
    assert!(!place.store().join("closer.sock").exists(), "a normal end leaves no socket");
}

/// A companion does not outlive the run after the one that was killed.
#[test]
fn a_companion_of_a_killed_run_is_ended_by_the_next() {
    let companion = "\n[[companion]]\nprogram = \"/bin/sleep\"\narguments = [\"7731\"]\n";
    let place = Place::with(&(counting("conditional") + companion));
    let running = place.running(&["--until-stopped"]);
    let sleeping = || {
        let found = Command::new("pgrep").args(["-fx", "/bin/sleep 7731"]).output().unwrap();
        String::from_utf8(found.stdout).unwrap().lines().count()
    };
    until("the companion runs", || sleeping() == 1);
    running.signal("-KILL");
    drop(running);
    fs::remove_file(place.store().join("closer.sock")).unwrap();
    let next = place.running(&["--until-stopped"]);
    until("one companion runs", || sleeping() == 1);
    next.stop();
    until("no companion is left", || sleeping() == 0);
}

/// With `--json` a wrong call is answered by a value too.
#[test]
fn a_wrong_call_is_answered_in_json() {
    let place = founded();
    let wrong: [&[&str]; 4] = [
        &["--json", "fly"],
        &["--json", "restrict"],
        &["--json", "--as", "user.owner", "keys", "new", "k"],
        &["--json", "reentry", "test", "--json-text", "{"],
    ];
    for call in wrong {
        let told = place.call(call).expect(2);
        assert!(told.json()["error"].as_str().is_some_and(|error| error.len() > 10), "{told:?}");
        assert!(!told.stderr.is_empty() && !told.stderr.contains('\u{1b}'), "{told:?}");
    }
    let long = "a".repeat(100_000);
    let calls: [&[&str]; 3] =
        [&["--json", "obligation", "why", &long], &["--json", "--as", &long, "verify"], &["--json", &long]];
    for call in calls {
        let told = place.call(call);
        assert!(told.stderr.len() < 3_000 && told.stdout.len() < 3_000, "{:?} {}", told.code, told.stderr.len());
    }
    place.call(&["reentry", "list", "--obligation", "nope"]).expect(4);
    place.call(&["incident", "show", "nope"]).expect(4);
}

/// Output that does not get through is no success; a reader that went away is none of ours.
#[test]
fn output_that_is_lost_is_told() {
    let place = founded();
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for words in [&["obligation", "list"][..], &["--json", "obligation", "list"], &["--help"], &["--version"]] {
        let mut command = place.command(words);
        command.stdout(full()).stderr(Stdio::piped());
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {stderr}");
        assert_eq!(stderr.matches("No space left").count(), 1, "{stderr}");
    }
    let mut command = place.command(&["obligation", "list"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Each cause of a failure is said once.
#[test]
fn a_cause_is_said_once() {
    let place = founded();
    let file = place.path().join("closer.toml");
    let told = place.call(&["backup", file.to_str().unwrap()]).expect(1);
    assert_eq!(told.stderr.matches("File exists").count(), 1, "{told:?}");
}

/// What is told to be typed next can be typed as it stands.
#[test]
fn hints_name_the_deployment() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a place's own");
    fs::create_dir(&place).unwrap();
    let named = counting("conditional").replace("[profile]\n", "[profile]\nprofile_id = \"profile.count\"\n");
    fs::write(place.join("closer.toml"), named).unwrap();
    let call = |words: &[&str]| {
        let mut command = Command::new(CLOSER);
        command.arg("-C").arg(&place).args(words);
        called(command)
    };
    let quoted = format!("'{}'", place.to_str().unwrap().replace('\'', r"'\''"));
    let absent = call(&["obligation", "list"]).expect(4);
    assert!(absent.stderr.contains(&format!("begin with: closer init {quoted}")), "{absent:?}");
    call(&["init", place.to_str().unwrap()]).expect(0);
    let shown = call(&["grant", "show", "grant.finish"]).expect(0);
    assert!(shown.stdout.contains(&format!("closer -C {quoted} grant revoke grant.finish")), "{shown:?}");
}

/// A backup that is not what was copied is damage, and nothing of it is left behind.
#[test]
fn a_damaged_backup_is_told_as_damage() {
    let place = founded();
    let (backup, again) = (place.path().join("backup"), place.path().join("again"));
    place.call(&["backup", backup.to_str().unwrap()]).expect(0);
    let segment = backup.join("0000000001.log");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[200] ^= 1;
    fs::write(&segment, bytes).unwrap();
    place.call(&["--json", "restore", backup.to_str().unwrap(), again.to_str().unwrap()]).expect(5);
    assert!(!again.exists());
}

/// Whole batches that are gone from the log's end are told, and nothing goes on over them.
#[test]
fn a_log_that_lost_its_end_is_told() {
    let place = Place::with(&counting("conditional"));
    place.run(&[]).expect(0);
    let segment = segments(&place.store()).remove(0);
    let mut bytes = fs::read(&segment).unwrap();
    let starts: Vec<usize> = (0..bytes.len() - 4).filter(|at| bytes[*at..].starts_with(b"CLBT")).collect();
    bytes[starts[starts.len() - 8]..].fill(0);
    fs::write(&segment, bytes).unwrap();
    for words in [
        &["--json", "verify"][..],
        &["--json", "rebuild"],
        &["--json", "grant", "revoke", "grant.finish", "--reason", "x"],
    ] {
        let told = place.call(words).expect(5).json();
        assert!(told["what"].as_str().is_some_and(|what| what.contains("ends before")), "{told}");
    }
    place.run(&[]).expect(5);
    place.call(&["obligation", "list", "--all"]).expect(0);
    fs::remove_dir_all(place.store().join("derived")).unwrap();
    place.call(&["verify"]).expect(0);
}

/// A store on a file system that cannot be written is verified, read and copied.
#[test]
fn a_read_only_store_can_be_looked_at() {
    let place = Place::with(&counting("conditional"));
    fs::create_dir_all(place.store()).unwrap();
    let Some(mount) = Mount::tmpfs(&place.store(), "160M") else {
        eprintln!("SKIPPED: a read-only file system is only tried where one can be mounted, which needs root");
        return;
    };
    place.run(&[]).expect(0);
    mount.read_only();
    place.call(&["verify"]).expect(0);
    place.call(&["obligation", "why", "obligation.count"]).expect(0);
    let backup = place.path().join("backup");
    place.call(&["backup", backup.to_str().unwrap()]).expect(0);
    place.call(&["restore", backup.to_str().unwrap(), place.path().join("again").to_str().unwrap()]).expect(0);
    let told = place.call(&["restrict", "--operation", "file.finish", "--reason", "x"]).expect(1);
    assert!(told.stderr.contains("cannot be written"), "{told:?}");
}

/// A run that finds no room says so, and so does a rebuild.
#[test]
fn a_full_disk_is_told_by_whoever_meets_it() {
    let place = Place::with(&counting("conditional"));
    fs::create_dir_all(place.store()).unwrap();
    let Some(_mount) = Mount::tmpfs(&place.store(), "140M") else {
        eprintln!("SKIPPED: a full disk is only tried where a file system can be mounted, which needs root");
        return;
    };
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    fs::remove_dir_all(place.store().join("derived")).unwrap();
    let filler = place.store().join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[7; 4096]).is_ok() {}
    let rebuilt = place.call(&["rebuild"]);
    assert_eq!(rebuilt.code, Some(1), "{rebuilt:?}");
    assert!(rebuilt.stdout.is_empty(), "{rebuilt:?}");
    // The reserve is gone too, so that nothing ordinary has room.
    fs::remove_file(place.store().join("log/reserve")).unwrap();
    while std::io::Write::write_all(&mut file, &[7; 4096]).is_ok() {}
    let run = place.run(&["--json"]).expect(3);
    assert!(run.stdout.contains("storage_full") && run.stderr.contains("the disk is full"), "{run:?}");
}

/// A second refusal of the same question is no new answer, and `why` tells the first.
#[test]
fn a_refusal_of_the_user_is_told() {
    let ungranted = counting("conditional").replace("address = \"*\" }]\nexpiry", "address = \"other\" }]\nexpiry");
    let place = Place::with(&ungranted);
    place.run(&[]).expect(6);
    let packets = place.call(&["--json", "bench", "list"]).expect(0).json();
    let decision = packets["packets"][0]["decision_id"].as_str().unwrap();
    place.call(&["bench", "decide", decision, "refuse"]).expect(0);
    assert_eq!(place.call(&["--json", "bench", "decide", decision, "refuse"]).expect(3).json()["code"], "stale_packet");
    let why = place.call(&["--json", "obligation", "why", "obligation.count"]).expect(0).json();
    assert_eq!(why["answered"][0]["option"], "refuse", "{why}");
    assert!(why["would_wake"].as_array().is_some_and(|wakes| !wakes.is_empty()), "{why}");
    assert!(place.call(&["obligation", "why", "obligation.count"]).expect(0).stdout.contains("`refuse`, a rejection"));
}

/// A process that is asked to end before it has an answer says so, as a value too.
#[test]
fn an_interrupted_verb_says_so() {
    let place = Place::with(&counting("conditional"));
    let running = place.running(&["--until-stopped"]);
    running.signal("-STOP");
    let mut command = place.command(&["--json", "obligation", "list"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    running.signal("-CONT");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(told["error"].as_str().is_some_and(|error| error.contains("interrupted")), "{output:?}");
    drop(UnixStream::connect(place.store().join("closer.sock")));
}

/// A restriction ends by a reassessment of the user's, and not by its issuer's word.
#[test]
fn a_restriction_is_lifted_by_the_user_and_by_nobody_else() {
    let place = founded();
    let target = ["--operation", "file.finish", "--target", "file", "local", "target", "--reason", "enough"];
    place.call(&[&["--as", "issuer.security", "restrict"][..], &target].concat()).expect(0);
    let restrictions = || place.call(&["--json", "restrictions"]).expect(0).json()["restrictions"].clone();
    let id = restrictions()[0]["restriction_id"].as_str().unwrap().to_owned();
    let lift = ["--json", "lift", &id, "--reason", "the key was replaced"];
    let own = place.call(&[&["--as", "issuer.security"][..], &lift].concat());
    assert_ne!(own.code, Some(0), "{own:?}");
    assert_eq!(restrictions().as_array().map(Vec::len), Some(1));
    assert_eq!(place.call(&["lift", "restriction-none", "--reason", "x"]).code, Some(4));
    place.call(&lift).expect(0);
    assert_eq!(restrictions().as_array().map(Vec::len), Some(0));
}

/// A user that is established by a signature alone answers and registers keys with it.
#[test]
fn a_user_with_a_key_answers_and_rotates_with_it() {
    let place = Place::with(&counting("conditional"));
    let key = place.path().join("user.key");
    let key = key.to_str().unwrap();
    let public = place.call(&["--json", "keys", "new", key]).expect(0).json()["public_key"].clone();
    let public = public.as_str().unwrap();
    let user = format!(
        "\n[[identity]]\nactor_id = \"user.owner\"\nkind = \"user\"\nroles = [\"user\"]\nmechanisms = [\"ed25519\"]\n\
         keys = [{{ public_key = \"{public}\", signing_scope = [\"USER_DECISION\", \"DECLARATION\"] }}]\n"
    );
    let text = counting("conditional").replace("[profile]\n", "[profile]\nmechanisms = [\"session\", \"ed25519\"]\nsigning_policy = { rotation = \"yearly\", revocation = \"in the registry\", scope = \"as listed\" }\n");
    fs::write(place.path().join("closer.toml"), text + &user).unwrap();
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    place.call(&["--as", "issuer.security", "grant", "revoke", "grant.finish", "--reason", "x"]).expect(0);
    place.run(&[]).expect(6);
    let listed = place.call(&["--json", "bench", "list"]).expect(0).json();
    let packet = listed["packets"][0]["decision_id"].as_str().unwrap().to_owned();
    let decide = ["--json", "bench", "decide", &packet, "allow"];
    assert_eq!(place.call(&decide).expect(3).json()["code"], "unauthenticated");
    place.call(&[&decide[..], &["--key", key]].concat()).expect(2);
    place.call(&[&["--as", "user.owner"], &decide[..], &["--key", key]].concat()).expect(0);
    // What stays open is the review of the issuer's restriction.
    let run = place.run(&[]).expect(8);
    assert!(run.stdout.contains("obligation.count: resolved"), "{run:?}");
    let rotate = ["--json", "keys", "rotate", "issuer.security", public, "--scope", "EVENT"];
    assert_eq!(place.call(&rotate).expect(3).json()["code"], "unauthenticated");
    place.call(&[&["--as", "user.owner"], &rotate[..], &["--key", key]].concat()).expect(0);
    let keys = place.call(&["--json", "keys", "list"]).expect(0).json();
    assert!(keys["keys"].as_array().unwrap().iter().any(|key| key["identity"] == "issuer.security"), "{keys}");
}

/// A deployment of which two of three people give this kind of authority.
pub(crate) fn two_of_three(text: &str, kind: &str) -> Place {
    let people: String = ["ada", "ben", "eve"]
        .iter()
        .map(|name| format!("\n[[identity]]\nactor_id = \"person.{name}\"\nkind = \"user\"\nroles = [\"user\"]\n"))
        .collect();
    let quorum = format!(
        "\n[[profile.people.quorum]]\nkind = \"{kind}\"\nof = [\"person.ada\", \"person.ben\", \"person.eve\"]\nneeded = 2\n"
    );
    let text = text.replacen("\n[[profile.disclosure_rules]]", &format!("{quorum}\n[[profile.disclosure_rules]]"), 1);
    Place::with(&(text + &people))
}

/// What two of three have to declare waits after the first; the second joins by the same command, or by the proposal's id.
#[test]
fn a_second_person_joins_what_the_first_has_declared() {
    let place = two_of_three(&counting("conditional"), "declaration");
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    place.call(&["--as", "issuer.security", "restrict", "--operation", "file.finish", "--reason", "enough"]).expect(0);
    let restrictions = || place.call(&["--json", "restrictions"]).expect(0).json()["restrictions"].clone();
    let id = restrictions()[0]["restriction_id"].as_str().unwrap().to_owned();
    let lift = |person: &str, reason: &str| {
        place.call(&["--json", "--as", person, "lift", &id, "--reason", reason]).expect(0).json()
    };
    let waiting =
        || place.call(&["--json", "--as", "person.eve", "change", "list"]).expect(0).json()["changes"].clone();
    let first = lift("person.ada", "the key was replaced");
    assert_eq!(
        (&first["waits"]["missing"], &first["waits"]["others"][0]),
        (&1.into(), &"person.ben".into()),
        "{first}"
    );
    assert_eq!(
        lift("person.ada", "the key was replaced")["recorded"].as_array().map(Vec::len),
        Some(0),
        "counted once"
    );
    assert_eq!(lift("person.ben", "for another reason")["waits"]["missing"], 1, "another change waits for itself");
    assert_eq!(
        lift("user.owner", "the key was replaced")["waits"]["missing"],
        1,
        "who is not of the group adds nothing"
    );
    assert_eq!((restrictions().as_array().map(Vec::len), waiting().as_array().map(Vec::len)), (Some(1), Some(2)));
    place.call(&["--as", "issuer.security", "change", "list"]).expect(3);
    place.call(&["--as", "person.ben", "change", "join", "delta-none"]).expect(4);
    assert!(lift("person.ben", "the key was replaced")["waits"].is_null());
    assert_eq!((restrictions().as_array().map(Vec::len), waiting().as_array().map(Vec::len)), (Some(0), Some(0)));

    let file = place.path().join("eve.key");
    let made = place.call(&["--json", "keys", "new", file.to_str().unwrap()]).expect(0).json();
    let public = made["public_key"].as_str().unwrap();
    let rotate = |person: &str, whose: &str| {
        place.call(&["--json", "--as", person, "keys", "rotate", whose, public, "--scope", "EVENT"]).expect(0).json()
    };
    rotate("person.ada", "issuer.security");
    assert!(rotate("person.eve", "issuer.security")["waits"].is_null(), "the same command, later");
    let listed = place.call(&["--json", "keys", "list"]).expect(0).json();
    let key =
        listed["keys"].as_array().unwrap().iter().find(|key| key["identity"] == "issuer.security").unwrap().clone();
    let revoke = |person: &str| {
        let id = key["key"]["key_id"].as_str().unwrap();
        place.call(&["--json", "--as", person, "keys", "revoke", id]).expect(0).json()
    };
    let proposed = revoke("person.ada")["waits"]["delta_id"].as_str().unwrap().to_owned();
    place.call(&["--as", "person.ben", "change", "join", &proposed]).expect(0);
    let listed = place.call(&["--json", "keys", "list"]).expect(0).json();
    assert!(listed["keys"].as_array().unwrap().iter().all(|key| key["standing"] == "revoked"), "{listed}");
}

/// An organization decides by as many of its people as its profile says, each of whom sees what is asked.
#[test]
fn an_organization_decides_by_two_of_three() {
    let place = two_of_three(&counting("conditional"), "user_decision");
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    place.call(&["--as", "issuer.security", "grant", "revoke", "grant.finish", "--reason", "x"]).expect(0);
    place.run(&[]).expect(6);
    let listed = place.call(&["--json", "--as", "person.ada", "bench", "list"]).expect(0).json();
    let packet = listed["packets"][0]["decision_id"].as_str().unwrap().to_owned();
    place.call(&["--as", "issuer.security", "bench", "list"]).expect(3);
    let decide = |person: &str| place.call(&["--json", "--as", person, "bench", "decide", &packet, "allow"]);
    assert_eq!(decide("user.owner").expect(3).json()["code"], "missing_authority");
    decide("person.ada").expect(0);
    assert_eq!(decide("person.ada").expect(3).json()["code"], "duplicate");
    place.run(&[]).expect(6);
    assert!(!place.path().join("var/world/runs").exists(), "one of two permits nothing");
    decide("person.eve").expect(0);
    // What stays open is the review of the issuer's restriction.
    let run = place.run(&[]).expect(8);
    assert!(run.stdout.contains("obligation.count: resolved"), "{run:?}");
    assert!(place.path().join("var/world/runs").exists());
}
