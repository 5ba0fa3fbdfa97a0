//! The gate's verbs.

use super::exit::Exit;
use super::talk::{self, Talk};
use crate::deployment::{Agent, Deployment};
use crate::error::Error;
use crate::gate::init::Hints;
use crate::gate::{self, Gate, Mode};
use crate::request::{ObserveRequest, Request};
use clap::{Args, Subcommand};
use closer_adapters::ids::UuidIds;
use closer_contracts::id::{ActorId, Key, ObligationId};
use closer_contracts::item::Item;
use closer_contracts::refs::ProducerRole;
use closer_contracts::time::Timestamp;
use closer_protocol::observe;
use closer_protocol::port::Ids;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What can be typed after `closer gate`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct GateArguments {
    /// The deployment's folder; that of `-C` without it.
    #[arg(value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
    #[command(subcommand)]
    step: Option<Step>,
    /// The obligation that the calls are for; without one, the open one that the identity holds, and each client's own
    /// session says what a repeat is.
    #[arg(long, value_name = "ID")]
    obligation: Option<String>,
    /// How long a call is held while a person is asked, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait_s: u64,
    /// Forwards calls of operations that nothing was ever granted for, after what would have become of them is on record. It
    /// governs nothing: no permit, no receipt. Ends 14 days after it was first started; then every call is governed.
    #[arg(long)]
    observe: bool,
    /// Has observing end this many days after it was first started.
    #[arg(long, value_name = "DAYS", requires = "observe", value_parser = clap::value_parser!(u64).range(1..=observe::DAYS_MAX))]
    days: Option<u64>,
    /// Has observing end then: `2026-12-31T12:00:00Z`. An end that was set is not put off.
    #[arg(long, value_name = "TIME", requires = "observe", conflicts_with = "days", value_parser = moment)]
    until: Option<Timestamp>,
}

fn moment(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).map_err(|fault| fault.to_string())
}

/// What is done about a gate instead of serving.
#[derive(Debug, Subcommand)]
enum Step {
    /// Starts the servers of a client's configuration, lists their tools and writes a deployment for them; shows how the
    /// client's configuration changes.
    #[command(after_help = "\
Examples:
  closer -C gate gate init --from client.json        writes gate/closer.toml, strictest answers, one entry per tool
  closer -C gate gate init --from client.json --confirm-reads
                                                     takes the servers' word for tools that only read")]
    Init {
        /// The client's configuration: JSON with `mcpServers`.
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
        /// You have looked at the tools that are said to only read, and they do.
        #[arg(long)]
        confirm_reads: bool,
    },
    /// Counts what `closer gate --observe` has seen, by tool: what would have passed, been asked about, been refused; and
    /// proposes the narrowest grants under which nobody would have been asked.
    Report,
    /// Lists what a client's configuration still reaches around the gate: servers that it starts itself, and its own shell and
    /// editor where neither `closer hook` stands before them nor they are switched off. Exit code 1 where there is something.
    #[command(after_help = "\
Examples:
  closer gate doctor --client .mcp.json --client .claude/settings.json --agent claude-code
  closer gate doctor --client ~/.gemini/settings.json --agent gemini-cli")]
    Doctor {
        /// A file of the client's configuration, JSON; several where it has several.
        #[arg(long, value_name = "FILE", required = true)]
        client: Vec<PathBuf>,
        /// Whose configuration it is. Without it the client's own tools are not looked at.
        #[arg(long, value_enum)]
        agent: Option<Agent>,
    },
}

async fn init(directory: &Path, from: &Path, confirm_reads: bool, talk: Talk) -> Result<Exit, Error> {
    let hints = if confirm_reads { Hints::ReadsConfirmed } else { Hints::AsComments };
    let made = gate::init::make(from, directory, hints).await?;
    let told = made.tools.iter().map(|(server, count)| format!("{server}: {count} tools"));
    talk.say(&format!("wrote {} ({})", made.file.display(), told.collect::<Vec<_>>().join(", ")));
    match talk.json {
        true => talk.put(&json!({ "file": made.file, "tools": made.tools, "client": made.after }).to_string()),
        false => gate::init::diff(&made.before, &made.after).iter().for_each(|line| talk.put(line)),
    }
    talk.say(&format!("look through it, then: {}", talk.command(&["init", &directory.to_string_lossy()])));
    Ok(Exit::Ok)
}

fn doctor(files: &[PathBuf], agent: Option<Agent>, talk: Talk) -> Result<Exit, Error> {
    let read = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).map_err(Error::io(format!("reading {}", file.display())))?;
        serde_json::from_str(&text).map_err(|error| Error::World(format!("{}: it is no JSON: {error}", file.display())))
    };
    let files = files.iter().map(read).collect::<Result<Vec<Value>, Error>>()?;
    let found = gate::doctor::findings(&files, agent);
    if talk.json {
        let listed: Vec<Value> =
            found.iter().map(|finding| json!({ "what": finding.what, "why": finding.why })).collect();
        talk.put(&json!({ "around": listed }).to_string());
    } else {
        found.iter().for_each(|finding| talk.put(&format!("{}: {}", finding.what, finding.why)));
    }
    if agent.is_none() {
        talk.say("the client's own tools were not looked at; name it with `--agent`");
    }
    if !found.is_empty() {
        return Ok(Exit::Error);
    }
    talk.say("nothing that is known here leads around the gate");
    Ok(Exit::Ok)
}

/// Serves one client over standard input and output.
pub(super) async fn gate(
    directory: &Path,
    identity: Option<ActorId>,
    arguments: GateArguments,
    talk: Talk,
) -> Result<Exit, Error> {
    match &arguments.step {
        Some(Step::Init { from, confirm_reads }) => return init(directory, from, *confirm_reads, talk).await,
        Some(Step::Report) => {
            return talk::ask(directory, identity, Request::Observe(ObserveRequest::Report {}), talk).await;
        }
        Some(Step::Doctor { client, agent }) => return doctor(client, *agent, talk),
        None => {}
    }
    let identity = match identity {
        Some(identity) => identity,
        None => only_participant(directory)?,
    };
    let session = Key::new(UuidIds.fresh("client"));
    let obligation = arguments.obligation.map(ObligationId::from);
    let directory = std::path::absolute(directory).map_err(Error::io("finding the deployment"))?;
    let gate = Gate::new(directory, identity, obligation, session, arguments.wait_s)?;
    let mode = match arguments.observe {
        true => Mode::Observe { until: arguments.until, days: arguments.days },
        false => Mode::Govern,
    };
    gate::serve(gate.with_mode(mode), |banner| talk.say(banner)).await?;
    Ok(Exit::Ok)
}

/// The one participant that a deployment declares.
fn only_participant(directory: &Path) -> Result<ActorId, Error> {
    let deployment = Deployment::load(directory, &super::init::now())?;
    let items = deployment.founding.items.iter();
    let identities = items.filter_map(|item| if let Item::Identity(identity) = item { Some(identity) } else { None });
    let works = identities.filter(|identity| identity.roles.contains(&ProducerRole::Participant));
    let works: Vec<&ActorId> = works.map(|identity| &identity.actor_id).collect();
    match works.as_slice() {
        [only] => Ok((*only).clone()),
        [] => Err(Error::World("the deployment declares no participant to call as".to_owned())),
        several => {
            let names: Vec<&str> = several.iter().map(|identity| identity.as_str()).collect();
            Err(Error::World(format!("name who calls with `--as`: {}", names.join(", "))))
        }
    }
}
