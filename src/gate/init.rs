//! A deployment for the servers that a client is configured with: each is started and asked what it lists, and everything
//! that a person has to decide is written down with the strictest answer and a comment that says so.

mod client;
mod profile;

pub use client::{Configured, diff, read, rewritten};

use crate::deployment::FILE;
use crate::error::Error;
use closer_adapters::McpServers;
use closer_adapters::mcp::Listed;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a deployment was made of.
#[derive(Debug)]
pub struct Made {
    /// The file.
    pub file: PathBuf,
    /// How many tools there are, by server.
    pub tools: BTreeMap<String, usize>,
    /// The client's configuration as it was, and as it is to be.
    pub before: String,
    /// The same with the gate in the servers' place.
    pub after: String,
}

/// How a deployment is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hints {
    /// What a server says about its tools' effects is written as a comment; a person confirms it.
    AsComments,
    /// A person has confirmed that the tools which are said to only read do only read.
    ReadsConfirmed,
}

/// Starts every server of a client's configuration, lists its tools and writes a deployment into a folder.
///
/// # Errors
/// What is wrong with the configuration, a server that does not start, or a deployment that is there already.
pub async fn make(from: &Path, directory: &Path, hints: Hints) -> Result<Made, Error> {
    let before = std::fs::read_to_string(from).map_err(Error::io(format!("reading {}", from.display())))?;
    let configured = client::read(&before).map_err(|reason| told(from, &reason))?;
    let file = directory.join(FILE);
    if file.exists() {
        return Err(Error::World(format!("{} is there already; name a folder without one", file.display())));
    }
    let launches = configured.iter().map(|(name, configured)| {
        let server = configured.server().map_err(|reason| told(from, &format!("`{name}`: {reason}")))?;
        Ok((name.clone(), server))
    });
    let servers = McpServers::new(launches.collect::<Result<_, Error>>()?, McpServers::unrecorded());
    let mut listed: BTreeMap<String, Vec<Listed>> = BTreeMap::new();
    for name in configured.keys() {
        listed.insert(name.clone(), servers.listed(name).await.map_err(Error::World)?);
    }
    let text = profile::text(&configured, &listed, hints);
    std::fs::create_dir_all(directory).map_err(Error::io(format!("creating {}", directory.display())))?;
    std::fs::write(&file, text).map_err(Error::io(format!("writing {}", file.display())))?;
    let after = client::rewritten(&before, directory).map_err(|reason| told(from, &reason))?;
    let tools = listed.into_iter().map(|(name, tools)| (name, tools.len())).collect();
    Ok(Made { file, tools, before, after })
}

fn told(from: &Path, reason: &str) -> Error {
    Error::World(format!("{}: {reason}", from.display()))
}
