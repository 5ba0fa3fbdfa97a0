//! Trying out what a payload of a source would become, and what it would touch.

use super::arguments::FILE_BYTES_MAX;
use super::exit::Exit;
use super::talk::{Talk, asked};
use crate::deployment::Http;
use crate::error::Error;
use crate::http::{cloud_event, hook_event};
use crate::request::{Answer, EventDraft, Request};
use clap::Subcommand;
use closer_contracts::id::ActorId;
use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum Source {
    /// Shows what a payload would become and which obligations it would touch; nothing is recorded.
    #[command(after_help = "\
Examples:
  closer source test payload.json --hook alerts   by the mappings of a declared webhook
  closer source test event.json                   as a CloudEvent")]
    Test {
        /// The payload, as JSON.
        file: PathBuf,
        /// The declared webhook; without one the payload is a CloudEvent.
        #[arg(long, value_name = "NAME")]
        hook: Option<String>,
    },
}

pub(super) async fn source(
    directory: &Path,
    identity: Option<ActorId>,
    verb: Source,
    talk: Talk,
) -> Result<Exit, Error> {
    let Source::Test { file, hook } = verb;
    let reading = || Error::io(format!("reading {}", file.display()));
    if std::fs::metadata(&file).map_err(reading())?.len() > FILE_BYTES_MAX {
        return Err(Error::World(format!("{}: at most {FILE_BYTES_MAX} bytes are read", file.display())));
    }
    let bytes = std::fs::read(&file).map_err(reading())?;
    let payload: Value =
        serde_json::from_slice(&bytes).map_err(|error| Error::World(format!("{}: {error}", file.display())))?;
    match drafted(directory, hook.as_deref(), payload, &bytes)? {
        Ok(draft) => Ok(talk.tell(&asked(directory, identity, Request::EventTest(draft)).await?)),
        Err(reason) => Ok(talk.tell(&Answer::absent(reason))),
    }
}

/// The event that the payload becomes, or why it becomes none.
fn drafted(
    directory: &Path,
    hook: Option<&str>,
    payload: Value,
    bytes: &[u8],
) -> Result<Result<EventDraft, String>, Error> {
    let Some(name) = hook else {
        let event = payload.as_object().cloned().ok_or_else(|| "a CloudEvent is an object".to_owned());
        return Ok(event.and_then(cloud_event));
    };
    let http = Http::of(directory)?;
    let Some(hook) = http.webhooks.iter().find(|hook| hook.name == name) else {
        return Ok(Err(format!("no webhook is called `{name}`")));
    };
    let made = hook_event(hook, &payload, bytes);
    Ok(made.and_then(|made| {
        made.ok_or_else(|| "no mapping of this webhook fits: the payload would be ignored".to_owned())
    }))
}
