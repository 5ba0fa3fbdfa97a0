//! The list `[[hook]]`: which operation a built-in tool of a coding agent is taken for, and how its input becomes that
//! operation's target and parameters.

use super::source::{Misfit, Source};
use closer_contracts::id::{Key, ObligationId, OperationId};
use closer_contracts::refs::{Parameters, Plain, Target};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// A coding agent whose hooks are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Agent {
    /// Claude Code: `PreToolUse`.
    ClaudeCode,
    /// Gemini CLI: `BeforeTool`.
    GeminiCli,
}

/// What one tool of one agent is taken for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// The tool, as the agent calls it.
    pub tool: String,
    /// The agent; any of them without one.
    pub agent: Option<Agent>,
    /// The operation.
    pub operation: OperationId,
    /// The obligation it serves, where restrictions of one are to count.
    pub obligation_id: Option<ObligationId>,
    /// The target's type.
    pub target_type: Key,
    /// The target's account.
    pub account: Key,
    /// The target's address: text, or a JSON pointer into what the agent sends where it begins with a slash.
    pub address: String,
    /// The folder that the address is to lie beneath, and is told relative to.
    pub beneath: Option<PathBuf>,
    /// Each parameter's JSON pointer into what the agent sends.
    #[serde(default)]
    pub parameters: BTreeMap<Key, String>,
}

impl Hook {
    /// Reads the list out of the file.
    pub(super) fn read(source: &Source, file: &mut Map<String, Value>, directory: &Path) -> Result<Vec<Self>, Misfit> {
        let mut hooks: Vec<Self> = super::section(source, file, "hook")?;
        for (index, hook) in hooks.iter_mut().enumerate() {
            let pointer = hook.parameters.iter().find(|(_, pointer)| !pointer.starts_with('/'));
            if let Some((name, _)) = pointer {
                let reason = "this is a JSON pointer into what the agent sends: it begins with a slash, as `/tool_input/command`";
                return Err(source.misfit(format!("hook.{index}.parameters.{name}"), reason));
            }
            hook.beneath = hook.beneath.take().map(|beneath| settled(&directory.join(beneath)));
        }
        Ok(hooks)
    }

    /// Reads the list alone, whatever else the file says.
    ///
    /// # Errors
    /// [`Misfit`] with file, line, column and field.
    pub fn of(directory: &Path) -> Result<Vec<Self>, Misfit> {
        let (source, mut file) = Source::read(&directory.join(super::FILE))?;
        let directory = std::path::absolute(directory).map_err(|error| source.misfit("", error.to_string()))?;
        Self::read(&source, &mut file, &directory)
    }

    /// Whether this is what a tool of an agent is taken for.
    #[must_use]
    pub fn is_for(&self, agent: Agent, tool: &str) -> bool {
        self.tool == tool && self.agent.is_none_or(|own| own == agent)
    }

    /// The target and parameters that what the agent sent comes to.
    ///
    /// # Errors
    /// What it does not hold, and an address that lies outside its folder.
    pub fn of_input(&self, input: &Value) -> Result<(Target, Parameters), String> {
        let address = match self.address.starts_with('/') {
            true => text(input, &self.address)?.to_owned(),
            false => self.address.clone(),
        };
        let address = match &self.beneath {
            None => address,
            Some(beneath) => {
                let cwd = input.get("cwd").and_then(Value::as_str).unwrap_or_default();
                relative(beneath, &Path::new(cwd).join(&address))
                    .ok_or_else(|| format!("the address lies outside {}", beneath.display()))?
            }
        };
        let target = Target {
            r#type: self.target_type.clone(),
            account: self.account.clone(),
            address: address.as_str().into(),
        };
        let value = |pointer: &String| {
            input.pointer(pointer).cloned().map(Plain).ok_or_else(|| format!("the agent sent nothing at {pointer}"))
        };
        let parameters = self.parameters.iter().map(|(name, pointer)| Ok((name.clone(), value(pointer)?)));
        Ok((target, parameters.collect::<Result<_, String>>()?))
    }
}

fn text<'a>(input: &'a Value, pointer: &str) -> Result<&'a str, String> {
    input.pointer(pointer).and_then(Value::as_str).ok_or_else(|| format!("the agent sent no text at {pointer}"))
}

/// A path as a deployment writes it, without `.` and `..`.
fn settled(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut settled, part| {
        match part {
            Component::ParentDir => drop(settled.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => settled.push(part),
        }
        settled
    })
}

/// A path without `.`; none where it has `..`, which leads wherever a link points.
fn plain(path: &Path) -> Option<PathBuf> {
    path.components().try_fold(PathBuf::new(), |mut plain, part| match part {
        Component::ParentDir => None,
        Component::CurDir => Some(plain),
        Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
            plain.push(part);
            Some(plain)
        }
    })
}

fn relative(beneath: &Path, path: &Path) -> Option<String> {
    let inner = plain(path)?;
    let inner = inner.strip_prefix(beneath).ok()?;
    Some(inner.to_str()?.to_owned()).filter(|inner| !inner.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hook() -> Hook {
        Hook {
            tool: "Write".to_owned(),
            agent: None,
            operation: "file.write".into(),
            obligation_id: None,
            target_type: "file".into(),
            account: "local".into(),
            address: "/tool_input/file_path".to_owned(),
            beneath: Some("/work/site".into()),
            parameters: BTreeMap::from([("content".into(), "/tool_input/content".to_owned())]),
        }
    }

    #[test]
    fn an_address_is_told_relative_to_its_folder_and_never_leaves_it() {
        let address = |path: &str| {
            let input = json!({ "cwd": "/work/site/posts", "tool_input": { "file_path": path, "content": "x" } });
            hook().of_input(&input).map(|(target, _)| target.address.to_string()).ok()
        };
        assert_eq!(address("/work/site/a.md").as_deref(), Some("a.md"));
        assert_eq!(address("new.md").as_deref(), Some("posts/new.md"));
        assert_eq!(address("./new.md").as_deref(), Some("posts/new.md"));
        for outside in ["/etc/passwd", "../a.md", "/work/site/../x", "/work/site2/a", "/work/site", "/work/site/"] {
            assert_eq!(address(outside), None, "{outside}");
        }
    }

    #[test]
    fn a_folder_of_the_deployment_is_settled_before_it_is_compared() {
        assert_eq!(settled(Path::new("/a/b/../site/./x")), Path::new("/a/site/x"));
    }

    #[test]
    fn what_the_agent_does_not_send_is_made_up_by_nobody() {
        assert!(hook().of_input(&json!({ "tool_input": { "file_path": "/work/site/a" } })).is_err());
        assert!(hook().of_input(&json!({ "tool_input": { "file_path": 7, "content": "" } })).is_err());
        assert!(hook().of_input(&json!(null)).is_err());
    }
}
