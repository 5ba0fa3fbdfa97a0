//! The gate's verbs.

use super::exit::Exit;
use super::talk::Talk;
use crate::deployment::Deployment;
use crate::error::Error;
use crate::gate::init::Hints;
use crate::gate::{self, Gate};
use clap::{Args, Subcommand};
use closer_adapters::ids::UuidIds;
use closer_contracts::id::{ActorId, Key, ObligationId};
use closer_contracts::item::Item;
use closer_contracts::refs::ProducerRole;
use closer_protocol::port::Ids;
use serde_json::json;
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

/// Serves one client over standard input and output.
pub(super) async fn gate(
    directory: &Path,
    identity: Option<ActorId>,
    arguments: GateArguments,
    talk: Talk,
) -> Result<Exit, Error> {
    if let Some(Step::Init { from, confirm_reads }) = &arguments.step {
        return init(directory, from, *confirm_reads, talk).await;
    }
    let identity = match identity {
        Some(identity) => identity,
        None => only_participant(directory)?,
    };
    let session = Key::new(UuidIds.fresh("client"));
    let obligation = arguments.obligation.map(ObligationId::from);
    let directory = std::path::absolute(directory).map_err(Error::io("finding the deployment"))?;
    gate::serve(Gate::new(directory, identity, obligation, session, arguments.wait_s)?).await?;
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
