//! What a client's configuration still reaches around the gate: servers that it starts itself, and its own shell and editor
//! where neither `closer hook` stands before them nor they are switched off. What cannot be told counts as reachable.

use crate::deployment::Agent;
use serde_json::Value;
use std::path::Path;

/// A way around the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is reachable.
    pub what: String,
    /// Why, and what to do.
    pub why: &'static str,
}

/// The members under which clients keep their servers.
const MEMBERS: [&str; 2] = ["mcpServers", "servers"];

const DIRECT: &str = "the client reaches it itself: take it out, and let `closer gate` offer its tools";
const OBSERVES: &str =
    "it only observes: calls without a grant are forwarded; leave `--observe` out to have them governed";
const BUILT_IN: &str = "no `closer hook` stands before it: add the hook, or switch the tool off";

/// Everything that a client with these configuration files reaches around the gate.
#[must_use]
pub fn findings(files: &[Value], agent: Option<Agent>) -> Vec<Finding> {
    let mut found = Vec::new();
    files.iter().for_each(|file| servers(file, &mut found));
    if let Some(agent) = agent {
        let open = built_in(agent).iter().filter(|tool| !files.iter().any(|file| is_covered(file, agent, tool)));
        found.extend(open.map(|tool| Finding { what: format!("built-in tool `{tool}`"), why: BUILT_IN }));
    }
    found
}

/// Servers stand at the top, and in some clients once more for each project.
fn servers(value: &Value, found: &mut Vec<Finding>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_object().filter(|_| MEMBERS.contains(&name.as_str())) {
                    Some(entries) => found.extend(entries.iter().filter_map(|(name, entry)| around(name, entry))),
                    None => servers(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| servers(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn around(name: &str, entry: &Value) -> Option<Finding> {
    let what = format!("server `{name}`");
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let arguments = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    let arguments: Vec<&str> = arguments.filter_map(Value::as_str).collect();
    let is_gate = is_closer(command) && verb(&arguments) == Some("gate");
    match (is_gate, arguments.contains(&"--observe")) {
        (true, false) => None,
        (true, true) => Some(Finding { what, why: OBSERVES }),
        (false, _) => Some(Finding { what, why: DIRECT }),
    }
}

fn is_closer(program: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "closer")
}

/// The first word that is neither an option nor an option's value.
fn verb<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "-C" | "--as" => drop(words.next()),
            option if option.starts_with('-') => {}
            verb => return Some(verb),
        }
    }
    None
}

/// The tools by which an agent changes something with its own hands.
const fn built_in(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::ClaudeCode => &["Bash", "Edit", "Write", "NotebookEdit"],
        Agent::GeminiCli => &["run_shell_command", "write_file", "replace"],
    }
}

fn is_covered(file: &Value, agent: Agent, tool: &str) -> bool {
    let (event, word) = match agent {
        Agent::ClaudeCode => ("PreToolUse", "claude-code"),
        Agent::GeminiCli => ("BeforeTool", "gemini-cli"),
    };
    let switched_off = match agent {
        Agent::ClaudeCode => named(file, "/permissions/deny", tool),
        Agent::GeminiCli => named(file, "/tools/exclude", tool) || named(file, "/excludeTools", tool),
    };
    let runs = file.get("disableAllHooks") != Some(&Value::Bool(true));
    let entries = file.pointer(&format!("/hooks/{event}")).and_then(Value::as_array);
    let hooked = entries.into_iter().flatten().filter(|entry| matches(entry.get("matcher"), tool)).any(|entry| {
        let hooks = entry.get("hooks").and_then(Value::as_array).into_iter().flatten();
        hooks.filter_map(|hook| hook.get("command")?.as_str()).any(|command| asks_closer(command, word))
    });
    switched_off || (runs && hooked)
}

fn named(file: &Value, pointer: &str, tool: &str) -> bool {
    let listed = file.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(Value::as_str).any(|listed| listed == tool || listed == format!("{tool}(*)"))
}

/// Whether a matcher is sure to match a tool: everything, or one of the names that it lists.
fn matches(matcher: Option<&Value>, tool: &str) -> bool {
    match matcher.map(Value::as_str) {
        None | Some(Some("" | "*" | ".*")) => true,
        Some(Some(listed)) => listed.split('|').any(|name| name == tool),
        Some(None) => false,
    }
}

fn asks_closer(command: &str, agent: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let Some((program, arguments)) = words.split_first() else { return false };
    is_closer(program) && verb(arguments) == Some("hook") && arguments.contains(&agent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn what(files: &[Value], agent: Option<Agent>) -> Vec<String> {
        findings(files, agent).into_iter().map(|finding| finding.what).collect()
    }

    fn hooked(matcher: &str, command: &str) -> Value {
        json!({ "hooks": { "PreToolUse": [{ "matcher": matcher, "hooks": [{ "type": "command", "command": command }] }] } })
    }

    #[test]
    fn a_server_that_is_no_governing_gate_is_a_way_around_it_wherever_it_stands() {
        let gate = json!({ "command": "/usr/bin/closer", "args": ["-C", "/srv/mine", "gate"] });
        assert!(what(&[json!({ "mcpServers": { "closer": gate } })], None).is_empty());
        let observing = json!({ "command": "closer", "args": ["gate", "/srv/mine", "--observe"] });
        for other in [
            observing,
            json!({ "command": "notes-server", "args": ["gate"] }),
            json!({ "command": "closer", "args": ["mcp", "gate"] }),
            json!({ "url": "http://127.0.0.1:1/mcp" }),
        ] {
            let files = [json!({ "projects": { "/srv": { "mcpServers": { "closer": gate, "other": other } } } })];
            assert_eq!(what(&files, None), ["server `other`"], "{other}");
        }
    }

    #[test]
    fn a_built_in_tool_is_covered_by_the_hook_or_by_being_switched_off() {
        let command = "closer hook /srv/mine --as agent.clerk --agent claude-code";
        let claude = Some(Agent::ClaudeCode);
        assert!(what(&[hooked("*", command)], claude).is_empty());
        assert_eq!(what(&[hooked("Bash|Edit|Write", command)], claude), ["built-in tool `NotebookEdit`"]);
        let denied = json!({ "permissions": { "deny": ["NotebookEdit", "Bash(rm:*)"] } });
        assert!(what(&[hooked("Bash|Edit|Write", command), denied.clone()], claude).is_empty());
        assert_eq!(what(&[denied], claude).len(), 3, "a part of what a shell can do is not the shell");
        for other in ["closer advise", "true", "closer hook /srv/mine --as a --agent gemini-cli"] {
            assert_eq!(what(&[hooked("*", other)], claude).len(), 4, "{other}");
        }
        // What cannot be told counts as reachable.
        assert_eq!(what(&[hooked("Ba.h", command)], claude).len(), 4);
        let mut off = hooked("*", command);
        off["disableAllHooks"] = json!(true);
        assert_eq!(what(&[off], claude).len(), 4);
        let gemini = json!({ "tools": { "exclude": ["run_shell_command", "write_file"] } });
        assert_eq!(what(&[gemini], Some(Agent::GeminiCli)), ["built-in tool `replace`"]);
    }
}
