//! The hook of a coding agent: recorded inputs of two agents, each with the decision it gets.

use crate::support::{Place, entries};
use closer_protocol::Entry;
use closer_protocol::entry::ArtifactBody;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

fn place() -> Place {
    Place::example("agent-at-work", |text| text)
}

/// Asks the hook as an agent does, and gives its one answer.
#[track_caller]
fn asked(place: &Place, agent: &str, options: &[&str], input: &str) -> Value {
    let mut command = place.command(&["--as", "agent.clerk", "hook", "--agent", agent]);
    command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn claude(place: &Place, tool: &str, tool_input: &Value) -> String {
    let cwd = std::path::absolute(place.path().join("var/notices")).unwrap();
    json!({
        "session_id": "00893aaf-19fa-41d2-8238-13269b9b3ca0", "transcript_path": "/home/me/.claude/projects/x/1.jsonl", "cwd": cwd,
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": tool_input,
        "tool_use_id": "toolu_01ABC123",
    })
    .to_string()
}

fn gemini(place: &Place, tool: &str, tool_input: &Value) -> String {
    let cwd = std::path::absolute(place.path().join("var/notices")).unwrap();
    json!({
        "session_id": "s-1", "transcript_path": "/home/me/.gemini/tmp/1.json", "cwd": cwd, "hook_event_name": "BeforeTool",
        "timestamp": "2026-01-01T00:00:00.000Z", "tool_name": tool, "tool_input": tool_input,
    })
    .to_string()
}

#[track_caller]
fn decided(told: &Value, word: &str, part: &str) {
    let claude = &told["hookSpecificOutput"];
    let (decision, reason) = match claude.is_object() {
        true => (&claude["permissionDecision"], &claude["permissionDecisionReason"]),
        false => (&told["decision"], &told["reason"]),
    };
    assert_eq!(decision, word, "{told}");
    assert!(reason.as_str().unwrap().contains(part), "{told}");
}

#[test]
fn a_built_in_tool_is_allowed_where_the_monitor_would_and_denied_everywhere_else() {
    let place = place();
    let run = place.running(&["--until-stopped"]);
    let write = |path: &str| json!({ "file_path": path, "content": "open from 9 to 5" });
    let told = asked(&place, "claude-code", &[], &claude(&place, "Write", &write("office-hours.txt")));
    decided(&told, "allow", "nothing speaks against it");
    assert_eq!(told["hookSpecificOutput"]["hookEventName"], "PreToolUse");
    let told = asked(&place, "gemini-cli", &[], &gemini(&place, "write_file", &write("office-hours.txt")));
    decided(&told, "allow", "nothing speaks against it");

    // Beyond the grant, outside the folder, unmapped, incomplete, another event, no input at all.
    decided(&asked(&place, "claude-code", &[], &claude(&place, "Write", &write("other.txt"))), "deny", "out_of_bounds");
    decided(
        &asked(&place, "gemini-cli", &[], &gemini(&place, "write_file", &write("other.txt"))),
        "deny",
        "out_of_bounds",
    );
    for outside in ["../office-hours.txt", "/etc/hosts", ""] {
        decided(&asked(&place, "claude-code", &[], &claude(&place, "Write", &write(outside))), "deny", "outside");
    }
    decided(
        &asked(&place, "claude-code", &[], &claude(&place, "Bash", &json!({ "command": "true" }))),
        "deny",
        "`Bash`",
    );
    decided(&asked(&place, "gemini-cli", &[], &gemini(&place, "Write", &write("office-hours.txt"))), "deny", "`Write`");
    let without = json!({ "file_path": "office-hours.txt" });
    decided(&asked(&place, "claude-code", &[], &claude(&place, "Write", &without)), "deny", "nothing at");
    let wrong = json!({ "file_path": "office-hours.txt", "content": 7 });
    decided(&asked(&place, "claude-code", &[], &claude(&place, "Write", &wrong)), "deny", "schema_invalid");
    let other = claude(&place, "Write", &write("office-hours.txt")).replace("PreToolUse", "PostToolUse");
    decided(&asked(&place, "claude-code", &[], &other), "deny", "`PreToolUse`");
    for broken in ["", "{", "[]", "null", "{\"hook_event_name\":\"PreToolUse\"}"] {
        decided(&asked(&place, "claude-code", &[], broken), "deny", "input");
    }
    assert!(matches!(run.stop(), Some(0 | 8)), "it ends by itself, with or without something open");

    let advised = entries(&place).into_iter().filter_map(|(_, entry)| {
        let Entry::Artifact(artifact) = entry else { return None };
        let ArtifactBody::Advice(advice) = &*artifact else { return None };
        Some((advice.verdict.as_str(), advice.code.map(|code| code.as_str())))
    });
    let advised: Vec<_> = advised.collect();
    let said = |verdict: &str| advised.iter().filter(|(said, _)| *said == verdict).count();
    assert_eq!((said("advised_to_go_on"), said("advised_against")), (2, 3), "{advised:?}");
    let sent = entries(&place).iter().any(|(_, entry)| matches!(entry, Entry::Intent(_) | Entry::Outcome(_)));
    assert!(!sent, "advice is no effect of this runtime");
}

#[test]
fn a_restriction_turns_advice_at_once() {
    let place = place();
    let run = place.running(&["--until-stopped"]);
    let input = claude(&place, "Write", &json!({ "file_path": "office-hours.txt", "content": "x" }));
    decided(&asked(&place, "claude-code", &[], &input), "allow", "");
    place.call(&["grant", "revoke", "grant.office-hours", "--reason", "no more"]).expect(0);
    decided(&asked(&place, "claude-code", &[], &input), "deny", "grant_revoked");
    assert!(matches!(run.stop(), Some(0 | 8)), "it ends by itself, with or without something open");
}

#[test]
fn where_no_verdict_is_had_the_answer_is_deny() {
    let place = place();
    let input = claude(&place, "Write", &json!({ "file_path": "office-hours.txt", "content": "x" }));
    decided(&asked(&place, "claude-code", &[], &input), "deny", "closer serve");
    place.call(&["init"]).expect(0);
    decided(&asked(&place, "claude-code", &[], &input), "deny", "closer serve");
    let run = place.running(&["--until-stopped"]);
    run.signal("-STOP");
    let begin = Instant::now();
    let told = asked(&place, "claude-code", &["--within-ms", "700"], &input);
    assert!(begin.elapsed().as_secs() < 5, "the deadline holds");
    decided(&told, "deny", "within 700 ms");
    run.signal("-CONT");
    let unnamed = {
        let mut command = place.command(&["hook", "--agent", "claude-code"]);
        command.stdin(Stdio::null()).output().unwrap()
    };
    decided(&serde_json::from_slice(&unnamed.stdout).unwrap(), "deny", "--as");
    assert!(matches!(run.stop(), Some(0 | 8)), "it ends by itself, with or without something open");
}
