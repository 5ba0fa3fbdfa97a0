//! The deployment file `closer.toml`: what a space is founded with, and how it meets the world.
//!
//! A file holds the contracts' own fields under their own names, in one list per kind of item; what can be derived or has
//! a sane default may be left out (`docs/deployment.md`). Loading touches nothing. Deliberately lacks a second way to say
//! a thing: whatever is founded is an item that the log could hold as it stands.

mod checks;
mod declared;
mod defaults;
mod distinct;
mod fits;
mod founding;
mod hook;
mod http;
mod moments;
mod naming;
mod notify;
mod paths;
mod process;
mod rehearsal;
mod servers;
mod source;

pub use hook::{Agent, Hook};
pub use http::{Http, LISTEN, Mapping, Person, Scheme, Tls, Webhook, When};
pub use notify::{Channel, Notify, Protection, Quiet, Shape, Smtp};
pub(crate) use process::absolute_program;
pub use process::{Command, Companion, Running};
pub use source::{FILE_BYTES_MAX, Misfit};

use checks::Occasion;
use closer_adapters::McpServer;
use closer_adapters::participants::ParticipantConfig;
use closer_contracts::id::{ActorId, ChangeKindId, EntityId, ObligationId, ReadbackMethodId, SourceId};
use closer_contracts::item::Item;
use closer_contracts::refs::Target;
use closer_contracts::time::Timestamp;
use closer_protocol::genesis::Founding;
use declared::Declared;
use serde::Deserialize;
use serde_json::{Map, Value};
use source::Source;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The name of the file in a deployment's folder.
pub const FILE: &str = "closer.toml";

/// When `closer run` ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// When nothing is under way and nothing more can happen without somebody's answer.
    Idle,
    /// When it is stopped.
    Stopped,
}

/// A target that is looked at again and again; what changed becomes evidence, and an event where one is declared.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// How it is looked at.
    pub method: ReadbackMethodId,
    /// What is looked at.
    pub target: Target,
    /// The obligation that the evidence belongs to.
    pub obligation_id: ObligationId,
    /// How long to wait between two looks, in milliseconds. Default 1 s.
    #[serde(default = "every_ms")]
    pub every_ms: u64,
    /// The event that a change is, where it is one.
    pub event: Option<ObservedEvent>,
}

const fn every_ms() -> u64 {
    1_000
}

/// The event that a changed observation is announced with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedEvent {
    /// The source that announces it; the runtime's observer must be one of its emitters.
    pub source_id: SourceId,
    /// The entity it is about.
    pub entity_ref: EntityId,
    /// The kind of change.
    pub change_kind: ChangeKindId,
}

/// A deployment, read and checked.
#[derive(Debug)]
pub struct Deployment {
    /// Its folder, absolute.
    pub directory: PathBuf,
    /// The store's folder, absolute.
    pub store: PathBuf,
    /// When a run ends.
    pub until: Until,
    /// How the service is reached.
    pub http: Http,
    /// Who is told that something waits.
    pub notify: Notify,
    /// What the space is founded with.
    pub founding: Founding,
    /// Who does the work.
    pub participants: BTreeMap<ActorId, ParticipantConfig>,
    /// The MCP servers whose tools are operations or readbacks, by name.
    pub servers: BTreeMap<String, McpServer>,
    /// What is looked at.
    pub observations: Vec<Observation>,
    /// What `init` runs once, before the space exists.
    pub prepare: Vec<Command>,
    /// What `run` starts beside itself and ends with itself.
    pub companions: Vec<Companion>,
    source: Source,
    declared: Declared,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default = "store")]
    store: PathBuf,
    #[serde(default = "until")]
    until: Until,
}

fn store() -> PathBuf {
    PathBuf::from("var/store")
}

const fn until() -> Until {
    Until::Stopped
}

impl Deployment {
    /// Where a deployment's store is; reads no more of the file than that, so that a space can be asked whatever else the
    /// file says.
    ///
    /// # Errors
    /// [`Misfit`] with file, line, column and field.
    pub fn store_of(directory: &Path) -> Result<PathBuf, Misfit> {
        let (source, mut file) = Source::read(&directory.join(FILE))?;
        let directory = std::path::absolute(directory).map_err(|error| source.misfit("", error.to_string()))?;
        let settings = file.remove("run").unwrap_or(Value::Object(Map::new()));
        let settings: Settings = source.typed("run", settings)?;
        Ok(directory.join(settings.store))
    }

    /// Reads the deployment in a folder. `now` is what relative times count from. What only its founding can show,
    /// [`Self::fits_founding`] asks.
    ///
    /// # Errors
    /// [`Misfit`] with file, line, column and field.
    pub fn load(directory: &Path, now: &Timestamp) -> Result<Self, Misfit> {
        let (source, mut file) = Source::read(&directory.join(FILE))?;
        let directory = std::path::absolute(directory).map_err(|error| source.misfit("", error.to_string()))?;
        distinct::check(&source, &file)?;
        moments::resolve(&source, &mut file, now)?;
        let raw = file.clone();
        let settings = file.remove("run").unwrap_or(Value::Object(Map::new()));
        let settings: Settings = source.typed("run", settings)?;
        let prepare: Vec<Command> = section(&source, &mut file, "prepare")?;
        let companions: Vec<Companion> = section(&source, &mut file, "companion")?;
        let observations: Vec<Observation> = section(&source, &mut file, "observation")?;
        let participants = participants(&source, &mut file, &directory)?;
        let servers = servers::read(&source, &mut file, &directory)?;
        let _: Vec<Hook> = Hook::read(&source, &mut file, &directory)?;
        let http = Http::read(&source, &mut file, &directory)?;
        let notify = Notify::read(&source, &mut file, &directory)?;
        let founding = founding::found(&source, file, &directory, now)?;
        let declared = Declared::of(raw, &founding, directory.clone(), now.clone());
        checks::check(&source, &declared, Occasion::Run)?;
        servers::named(&source, &founding, &servers)?;
        Ok(Self {
            store: directory.join(settings.store),
            until: settings.until,
            http,
            notify,
            founding,
            participants,
            servers,
            observations,
            prepare,
            companions,
            directory,
            source,
            declared,
        })
    }

    /// Whether a space can be founded with it: whatever it names is declared, every bound leaves something, and the core
    /// admits the founding. Nothing is touched.
    ///
    /// # Errors
    /// [`Misfit`] with file, line, column and field.
    pub fn fits_founding(&self) -> Result<(), Misfit> {
        checks::check(&self.source, &self.declared, Occasion::Founding)?;
        rehearsal::rehearse(&self.source, &self.declared, &self.founding)
    }

    /// What went wrong with something that the file declares, told where it is declared.
    #[must_use]
    pub fn misfit(&self, field: &str, reason: impl Into<String>) -> Misfit {
        self.source.misfit(field, reason)
    }
}

fn section<T: serde::de::DeserializeOwned>(
    source: &Source,
    file: &mut Map<String, Value>,
    name: &str,
) -> Result<Vec<T>, Misfit> {
    source.typed(name, file.remove(name).unwrap_or(Value::Array(Vec::new())))
}

/// Completes a trigger that was written by hand as in a deployment file; `methods` are the readback methods there are.
///
/// # Errors
/// A stream of observations that no method makes.
pub fn complete_reentry(table: &mut Map<String, Value>, methods: &[Item]) -> Result<(), String> {
    if let Some(predicate) = table.get_mut("predicate") {
        naming::streams(predicate, methods)?;
    }
    defaults::complete_reentry(table);
    Ok(())
}

/// Puts the names of observation streams where `METHOD TYPE ACCOUNT ADDRESS` stands in a predicate.
///
/// # Errors
/// A stream of observations that no method makes.
pub fn name_streams(predicate: &mut Value, methods: &[Item]) -> Result<(), String> {
    naming::streams(predicate, methods)
}

/// The participants: each entry is a participant's own configuration, and whose it is.
fn participants(
    source: &Source,
    file: &mut Map<String, Value>,
    directory: &Path,
) -> Result<BTreeMap<ActorId, ParticipantConfig>, Misfit> {
    let entries: Vec<Map<String, Value>> = section(source, file, "participant")?;
    let mut participants = BTreeMap::new();
    for (index, mut entry) in entries.into_iter().enumerate() {
        let field = format!("participant.{index}");
        let identity = entry.remove("identity").unwrap_or(Value::Null);
        if let Some(Value::String(path)) = entry.get_mut("key_file")
            && let Some(inner) = path.strip_prefix("./")
        {
            *path = directory.join(inner).to_string_lossy().into_owned();
        }
        let config = ParticipantConfig::read(&Value::Object(entry));
        let config = config.map_err(|fault| source.misfit(paths::join(&field, &fault.path), fault.reason))?;
        let identity: ActorId = source.typed(&format!("{field}.identity"), identity)?;
        participants.insert(identity, config);
    }
    Ok(participants)
}

#[cfg(test)]
#[path = "deployment/deployment_tests.rs"]
mod tests;
