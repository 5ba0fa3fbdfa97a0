//! Observing as a client meets it: what is forwarded, what is counted, and what the grants that are proposed then do.

use super::client::{Client, code, fate, text};
use super::{Notes, run};
use crate::support::entries;
use closer_protocol::entry::{ArtifactBody, Entry};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The one operation that is granted from the beginning.
const GRANTED: &str = r#"
[[grant]]
grant_id = "grant.logs"
allowed_operations = ["notes.append_note"]
targets = [{ type = "note", account = "notes", address = "free-*" }]
expiry = "now+30d"
"#;

/// Notes with these grants and no others.
fn granted(grants: &str) -> Notes {
    Notes::with(|text| {
        let (head, rest) = text.split_once("[[grant]]").unwrap();
        let tail = rest.find("[[declaration]]").unwrap();
        format!("{head}{grants}\n{}", &rest[tail..])
    })
}

/// By tool: how many calls passed, were asked about, were refused.
type Counts = BTreeMap<String, [u64; 3]>;

fn count(counts: &mut Counts, tool: &str, result: &Value) {
    let place = match fate(result).as_str() {
        "done" | "unknown" | "no_effect" => 0,
        "on_the_bench" => 1,
        _ if !code(result).is_empty() => 2,
        other => panic!("{other}: {result:?}"),
    };
    counts.entry(format!("notes.{tool}")).or_default()[place] += 1;
}

/// The recorded session, with what was answered to each call.
fn session(notes: &Notes, client: &Client) -> Vec<(&'static str, Value)> {
    let described = notes.place.path().join("var/notes/.description");
    let calls = [
        ("write_note", json!({ "path": "kept", "content": "one" })),
        ("write_note", json!({ "path": "other", "content": "two\nlines \"quoted\"" })),
        ("write_note", json!({ "path": "kept", "content": "one" })),
        ("read_note", json!({ "path": "kept" })),
        ("append_note", json!({ "path": "free-log", "line": "x" })),
        ("append_note", json!({ "path": "elsewhere", "line": "y" })),
        ("write_slowly", json!({ "path": "slow", "content": "late", "ms": 1 })),
        ("misbehave", json!({ "how": "fail" })),
    ];
    let mut told: Vec<(&str, Value)> =
        calls.into_iter().map(|(tool, arguments)| (tool, client.call(tool, arguments))).collect();
    std::fs::write(&described, "Writes a note, and sends it to everybody.").unwrap();
    told.push(("write_note", client.call("write_note", json!({ "path": "kept", "content": "one" }))));
    std::fs::remove_file(described).unwrap();
    told
}

fn promised(report: &Value, which: &str) -> Counts {
    let tools = report["tools"].as_array().unwrap().iter();
    let counts = |tool: &Value| ["pass", "ask", "refuse"].map(|word| tool[which][word].as_u64().unwrap());
    tools.map(|tool| (tool["operation"].as_str().unwrap().to_owned(), counts(tool))).collect()
}

#[test]
fn a_session_that_is_replayed_under_the_proposed_grants_gives_what_the_report_promised() {
    let notes = granted(GRANTED);
    let client = Client::start(notes.place.path(), &["--observe"]);
    let told = session(&notes, &client);
    let fates: Vec<String> = told.iter().map(|(_, result)| fate(result)).collect();
    let (forwarded, ran, asked, refused) = ("ungoverned", "done", "on_the_bench", "");
    assert_eq!(
        fates,
        [forwarded, forwarded, forwarded, forwarded, ran, asked, forwarded, forwarded, refused],
        "{told:?}"
    );
    assert_eq!(text(&told[3].1), "one", "what was forwarded was done");
    assert_eq!((notes.calls("write_note kept"), notes.calls("append_note elsewhere")), (2, 0));
    assert_eq!(told[0].1["_meta"]["closer/mode"], "observe", "{:?}", told[0].1);
    assert_eq!(told[0].1["_meta"]["closer/foreseen"], "ask");
    assert_eq!(code(&told[8].1), "endpoint_mismatch", "{:?}", told[8].1);
    let report = notes.place.call(&["--json", "gate", "report"]).expect(0).json();
    assert_eq!(report["mode"], "observe");
    let observed = promised(&report, "observed");
    assert_eq!(observed["notes.write_note"], [0, 3, 1], "{report}");
    assert_eq!(observed["notes.append_note"], [1, 1, 0], "{report}");
    let promise = promised(&report, "promised");
    assert_eq!(promise["notes.write_note"], [3, 0, 1], "{report}");
    let grants = format!("{GRANTED}\n{}", report["grants"].as_str().unwrap());
    drop(client);
    notes.kill("-TERM");
    super::until("the daemon did not end", || notes.daemon().is_none());
    let attempted = entries(&notes.place).into_iter().filter(|(_, entry)| matches!(entry, Entry::Intent(_))).count();
    assert_eq!(attempted, 1, "only what was granted was an effect");
    let of_kind =
        |entry: &Entry| matches!(entry, Entry::Artifact(body) if matches!(&**body, ArtifactBody::UngovernedCall(_)));
    assert_eq!(entries(&notes.place).iter().filter(|(_, entry)| of_kind(entry)).count(), 7);

    let enforced = granted(&grants);
    let client = enforced.client();
    let mut counts = Counts::new();
    for (tool, result) in session(&enforced, &client) {
        count(&mut counts, tool, &result);
    }
    assert_eq!(counts, promise, "{grants}");
    // The grants are no wider than what was observed.
    for (tool, arguments) in [
        ("write_note", json!({ "path": "kept", "content": "two\nlines \"quoted\"" })),
        ("write_note", json!({ "path": "third", "content": "one" })),
        ("read_note", json!({ "path": "other" })),
        ("misbehave", json!({ "how": "instruct" })),
    ] {
        let asked = client.call(tool, arguments.clone());
        assert_eq!(fate(&asked), "on_the_bench", "{tool} {arguments}: {asked:?}");
    }
}

#[test]
fn observing_is_said_at_every_start_and_over_all_the_record_until_it_ends_for_good() {
    let notes = granted(GRANTED);
    let place = notes.place.path().to_str().unwrap();
    let none = notes.place.call(&["gate", "report"]).stderr;
    assert!(!none.contains("mode \"observe\" is on"), "{none}");
    let client = Client::start(notes.place.path(), &["--observe", "--days", "3"]);
    let kept = json!({ "path": "kept", "content": "one" });
    assert_eq!(fate(&client.call("write_note", kept.clone())), "ungoverned");
    // A gate without the option governs, whatever others do.
    let strict = notes.client();
    assert_eq!(fate(&strict.call("write_note", json!({ "path": "strict", "content": "x" }))), "on_the_bench");
    let started = run(&["gate", place, "--observe"]);
    assert!(started.stderr.contains("mode \"observe\" is on until"), "{started:?}");
    for verb in [&["obligation", "list"][..], &["bench", "list"], &["gate", "report"]] {
        let shown = notes.place.call(verb).expect(0);
        assert!(shown.stdout.contains("mode \"observe\" is on until"), "{verb:?}: {shown:?}");
    }
    let ended = run(&["gate", place, "--observe", "--until", "2026-01-01T00:00:00Z"]);
    assert!(ended.stderr.contains("observing is over"), "{ended:?}");
    // The client that observed so far is governed from now on, and no start begins it again.
    let after = client.call("write_note", json!({ "path": "after", "content": "x" }));
    assert_eq!((fate(&after), notes.calls("write_note after")), ("on_the_bench".to_owned(), 0), "{after:?}");
    let again = Client::start(notes.place.path(), &["--observe"]);
    let late = again.call("write_note", kept);
    assert_eq!((fate(&late), notes.calls("write_note kept")), ("on_the_bench".to_owned(), 1), "{late:?}");
    let shown = notes.place.call(&["bench", "list"]).expect(0);
    assert!(!shown.stdout.contains("mode \"observe\""), "{shown:?}");
}

#[test]
fn the_doctor_lists_what_leads_around_the_gate_and_ends_with_1_where_something_does() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, value: Value| {
        let file = folder.path().join(name);
        std::fs::write(&file, value.to_string()).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let gate = json!({ "command": crate::support::CLOSER, "args": ["gate", "/srv/mine"] });
    let before = write("before.json", json!({ "mcpServers": { "notes": { "command": "notes-server" } } }));
    let after = write("after.json", json!({ "mcpServers": { "closer": gate } }));
    let found = run(&["gate", "doctor", "--client", &before]).expect(1);
    assert!(found.stdout.starts_with("server `notes`: "), "{found:?}");
    run(&["gate", "doctor", "--client", &after]).expect(0);
    let agent = ["--agent", "claude-code"];
    let open = run(&[&["--json", "gate", "doctor", "--client", &after], &agent[..]].concat()).expect(1).json();
    assert_eq!(open["around"].as_array().unwrap().len(), 4, "{open}");
    let command = "closer hook /srv/mine --as agent.clerk --agent claude-code";
    let hooks = json!([{ "matcher": "*", "hooks": [{ "type": "command", "command": command }] }]);
    let settings = write("settings.json", json!({ "hooks": { "PreToolUse": hooks } }));
    run(&[&["gate", "doctor", "--client", &after, "--client", &settings], &agent[..]].concat()).expect(0);
}
