//! A client's configuration: which servers it starts, and the same with the gate in their place.

use crate::deployment::absolute_program;
use closer_adapters::McpServer;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The members under which clients keep their servers.
const MEMBERS: [&str; 2] = ["mcpServers", "servers"];

/// A server as a client is configured with it.
#[derive(Debug, Clone, Deserialize)]
pub struct Configured {
    /// The program.
    pub command: Option<String>,
    /// Or the address.
    pub url: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The folder it runs in.
    pub cwd: Option<String>,
}

impl Configured {
    /// How the server is started.
    ///
    /// # Errors
    /// That it is not a program, or one that cannot be found.
    pub fn server(&self) -> Result<McpServer, String> {
        let program = match (&self.command, &self.url) {
            (Some(command), _) => Some(absolute_program(command, Path::new("."))?),
            (None, Some(_)) => None,
            (None, None) => return Err("it has neither a `command` nor a `url`".to_owned()),
        };
        let url = self.url.clone().filter(|_| program.is_none());
        Ok(McpServer {
            program,
            url,
            bearer_file: None,
            arguments: self.args.clone(),
            environment: self.env.clone(),
            environment_allowed: ["PATH", "HOME", "LANG"].map(str::to_owned).to_vec(),
            working_directory: self.cwd.clone(),
            start_ms: 60_000,
        })
    }
}

fn whole(text: &str) -> Result<(Map<String, Value>, &'static str), String> {
    let whole: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let Value::Object(members) = whole else { return Err("it is no JSON object".to_owned()) };
    let member = MEMBERS.into_iter().find(|member| members.get(*member).is_some_and(Value::is_object));
    member.map(|member| (members, member)).ok_or_else(|| "it has no `mcpServers`".to_owned())
}

/// The servers that a client is configured with, by name.
///
/// # Errors
/// What cannot be read.
pub fn read(text: &str) -> Result<BTreeMap<String, Configured>, String> {
    let (mut members, member) = whole(text)?;
    let servers = members.remove(member).unwrap_or(Value::Null);
    let servers: BTreeMap<String, Configured> =
        serde_json::from_value(servers).map_err(|error| format!("`{member}`: {error}"))?;
    let plain = |name: &str| {
        !name.is_empty()
            && name.len() <= 40
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    match servers.keys().find(|name| !plain(name)) {
        Some(name) => Err(format!("`{name}`: name servers in letters, digits, `_`, `-` and `.`, at most 40 of them")),
        None if servers.is_empty() => Err(format!("`{member}` names no server")),
        None => Ok(servers),
    }
}

/// The configuration with the gate in the place of every server.
///
/// # Errors
/// What cannot be read.
pub fn rewritten(text: &str, directory: &Path) -> Result<String, String> {
    let (mut members, member) = whole(text)?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let directory = std::path::absolute(directory).map_err(|error| error.to_string())?;
    members.insert(member.to_owned(), json!({ "closer": { "command": program, "args": ["gate", directory] } }));
    pretty(&Value::Object(members))
}

fn pretty(value: &Value) -> Result<String, String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|error| error.to_string())
}

/// What changes from one configuration to another, line by line: what goes with `-`, what comes with `+`.
#[must_use]
pub fn diff(before: &str, after: &str) -> Vec<String> {
    let tidy = serde_json::from_str(before).ok().and_then(|value: Value| pretty(&value).ok());
    let before = tidy.unwrap_or_else(|| before.to_owned());
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()).saturating_sub(head);
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let gone = old.get(head..old.len().saturating_sub(tail)).unwrap_or_default();
    let come = new.get(head..new.len().saturating_sub(tail)).unwrap_or_default();
    let kept = |lines: &[&str]| lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>();
    let mut told = kept(old.get(..head).unwrap_or_default());
    told.extend(gone.iter().map(|line| format!("- {line}")));
    told.extend(come.iter().map(|line| format!("+ {line}")));
    told.extend(kept(old.get(old.len().saturating_sub(tail)..).unwrap_or_default()));
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_go_and_the_gate_comes() {
        let before = r#"{"theme": "dark", "mcpServers": {"notes": {"command": "sh", "args": ["-c", "x"]}}}"#;
        assert_eq!(read(before).unwrap()["notes"].args, ["-c", "x"]);
        let after = rewritten(before, Path::new("/srv/gate")).unwrap();
        let told = diff(before, &after);
        assert!(told.iter().any(|line| line.starts_with("- ") && line.contains("\"notes\"")), "{told:?}");
        assert!(told.iter().any(|line| line.starts_with("+ ") && line.contains("/srv/gate")), "{told:?}");
        assert!(told.iter().any(|line| line.starts_with("  ") && line.contains("theme")), "{told:?}");
        for bad in ["", "[]", "{}", r#"{"mcpServers": {}}"#, r#"{"mcpServers": {"a b": {"command": "sh"}}}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
