//! Answering a coding agent's hook before it uses one of its own tools: JSON in, one decision out, and `deny` wherever no
//! verdict was had.

use super::exit::Exit;
use super::output;
use super::talk::Talk;
use crate::deployment::{Agent, Deployment, Hook};
use crate::refusals::what_to_do;
use crate::request::{AdviceDraft, Answer, Asked, Outcome, Request};
use crate::socket;
use clap::Args;
use closer_contracts::id::{ActorId, Key};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most bytes that are read from an agent.
const INPUT_BYTES_MAX: u64 = 4 << 20;

#[derive(Debug, Args)]
pub(super) struct Asking {
    /// The deployment's folder; that of `-C` without it.
    #[arg(value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
    /// Whose hook this is.
    #[arg(long, value_enum)]
    pub(super) agent: Agent,
    /// How long a verdict may take, in milliseconds; after that the answer is `deny`. Keep it below the agent's own timeout.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(super) within_ms: u64,
}

/// What both agents send, as far as it is looked at here; a mapping may look at the rest.
#[derive(Deserialize)]
struct Sent {
    hook_event_name: String,
    tool_name: String,
}

/// What is said to the agent.
enum Decision {
    Allow,
    Deny(String),
}

pub(super) async fn hook(directory: &Path, identity: Option<ActorId>, asking: &Asking, talk: Talk) -> Exit {
    let within = Duration::from_millis(asking.within_ms);
    let decided = tokio::time::timeout(within, decide(directory, identity, asking.agent)).await;
    let late = |_| Err(format!("there was no verdict within {} ms", asking.within_ms));
    let decision = decided.unwrap_or_else(late).unwrap_or_else(Decision::Deny);
    if let Decision::Deny(reason) = &decision {
        talk.say(reason);
    }
    output::line(&told(asking.agent, &decision).to_string());
    match output::lost() {
        None => Exit::Ok,
        // Both agents take this code for a blocked tool.
        Some(_) => Exit::Usage,
    }
}

async fn decide(directory: &Path, identity: Option<ActorId>, agent: Agent) -> Result<Decision, String> {
    let identity = identity.ok_or("say for which agent this hook asks: `--as IDENTITY`")?;
    let input = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())??;
    let sent: Sent = serde_json::from_value(input.clone()).map_err(|error| format!("the hook's input: {error}"))?;
    let expected = match agent {
        Agent::ClaudeCode => "PreToolUse",
        Agent::GeminiCli => "BeforeTool",
    };
    if sent.hook_event_name != expected {
        return Err(format!("this answers `{expected}` and no other hook"));
    }
    let hooks = Hook::of(directory).map_err(|misfit| misfit.to_string())?;
    let hook = hooks.iter().find(|hook| hook.is_for(agent, &sent.tool_name)).ok_or_else(|| {
        format!("no `[[hook]]` of the deployment says what the tool `{}` is taken for", sent.tool_name)
    })?;
    let (target, parameters) = hook.of_input(&input)?;
    let draft = AdviceDraft {
        tool: Key::new(sent.tool_name),
        operation: hook.operation.clone(),
        target,
        parameters,
        obligation_id: hook.obligation_id.clone(),
    };
    let store = Deployment::store_of(directory).map_err(|misfit| misfit.to_string())?;
    let asked = Asked { identity: Some(identity), request: Request::Advise(draft) };
    let answer = socket::ask(&store, &asked).await.map_err(|error| format!("{error}; start it with `closer serve`"))?;
    Ok(match answer.outcome {
        Outcome::Done => Decision::Allow,
        Outcome::Refused | Outcome::NotFound | Outcome::Corruption | Outcome::Failed => Decision::Deny(reason(&answer)),
    })
}

fn read() -> Result<Value, String> {
    let mut text = String::new();
    let read = std::io::stdin().take(INPUT_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| format!("the hook's input: {error}"))?;
    match text.len() as u64 <= INPUT_BYTES_MAX {
        true => serde_json::from_str(&text).map_err(|error| format!("the hook's input: {error}")),
        false => Err(format!("the hook's input has more than {INPUT_BYTES_MAX} bytes")),
    }
}

fn reason(answer: &Answer) -> String {
    let first = answer.text.first().map_or("no verdict was had", String::as_str);
    let next = answer.code.map(what_to_do).unwrap_or_default();
    match next.first() {
        Some(next) => format!("{first}. {next}"),
        None => first.to_owned(),
    }
}

/// The decision in the agent's own words.
fn told(agent: Agent, decision: &Decision) -> Value {
    let reason = match decision {
        Decision::Allow => "closer: nothing speaks against it".to_owned(),
        Decision::Deny(reason) => format!("closer: {reason}"),
    };
    let word = match decision {
        Decision::Allow => "allow",
        Decision::Deny(_) => "deny",
    };
    match agent {
        Agent::ClaudeCode => json!({
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": word, "permissionDecisionReason": reason,
            },
        }),
        Agent::GeminiCli => json!({ "decision": word, "reason": reason }),
    }
}
