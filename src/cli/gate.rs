//! The gate's verbs.

use super::exit::Exit;
use super::talk::Talk;
use crate::deployment::Deployment;
use crate::error::Error;
use crate::gate::{self, Gate};
use clap::Args;
use closer_adapters::ids::UuidIds;
use closer_contracts::id::{ActorId, Key, ObligationId};
use closer_contracts::item::Item;
use closer_contracts::refs::ProducerRole;
use closer_protocol::port::Ids;
use std::path::{Path, PathBuf};

/// What can be typed after `closer gate`.
#[derive(Debug, Args)]
pub(super) struct GateArguments {
    /// The deployment's folder; that of `-C` without it.
    #[arg(value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
    /// The obligation that the calls are for; without one, the open one that the identity holds, and each client's own
    /// session says what a repeat is.
    #[arg(long, value_name = "ID")]
    obligation: Option<String>,
    /// How long a call is held while a person is asked, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait_s: u64,
}

/// Serves one client over standard input and output.
pub(super) async fn gate(
    directory: &Path,
    identity: Option<ActorId>,
    arguments: GateArguments,
    _: Talk,
) -> Result<Exit, Error> {
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
    let works = deployment.founding.items.iter().filter_map(|item| match item {
        Item::Identity(identity) if identity.roles.contains(&ProducerRole::Participant) => Some(&identity.actor_id),
        _ => None,
    });
    let works: Vec<&ActorId> = works.collect();
    match works.as_slice() {
        [only] => Ok((*only).clone()),
        [] => Err(Error::World("the deployment declares no participant to call as".to_owned())),
        several => {
            let names: Vec<&str> = several.iter().map(|identity| identity.as_str()).collect();
            Err(Error::World(format!("name who calls with `--as`: {}", names.join(", "))))
        }
    }
}
