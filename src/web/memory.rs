//! What each person has looked at, so that a page can say what changed since, and what an answer took.
//!
//! Kept beside the record and never in it: it decides nothing, and losing it loses a convenience.

use crate::error::Error;
use closer_contracts::id::{ActorId, DecisionId};
use closer_contracts::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The name of the file in a store's folder.
const FILE: &str = "looks.json";
/// The most packets that are remembered of each person; the oldest give way.
const PACKETS_MAX: usize = 500;
/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// How one person has dealt with one packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Look {
    /// When it was opened first.
    pub(crate) first_at: Timestamp,
    /// When it was opened last.
    pub(crate) last_at: Timestamp,
    /// How often it was opened.
    pub(crate) opens: u32,
    /// How many words were shown in all.
    pub(crate) words_shown: u64,
    /// The digest of the version that was shown last.
    pub(crate) digest: String,
    /// That version.
    pub(crate) packet: Value,
    /// When it was answered.
    pub(crate) answered_at: Option<Timestamp>,
    /// Until when it is put off.
    pub(crate) later_until: Option<Timestamp>,
}

type Looks = BTreeMap<String, BTreeMap<String, Look>>;

/// The looks of one store's people.
#[derive(Debug)]
pub(crate) struct Memory {
    path: PathBuf,
    looks: Mutex<Looks>,
}

impl Memory {
    /// Reads what is remembered; what cannot be read is forgotten.
    pub(crate) fn of(store: &Path) -> Self {
        let path = store.join(FILE);
        let small = std::fs::metadata(&path).is_ok_and(|found| found.len() <= FILE_BYTES_MAX);
        let text = if small { std::fs::read(&path).unwrap_or_default() } else { Vec::new() };
        let looks = serde_json::from_slice(&text).unwrap_or_default();
        Self { path, looks: Mutex::new(looks) }
    }

    /// How a person has dealt with a packet so far.
    pub(crate) fn look(&self, who: &ActorId, packet: &DecisionId) -> Option<Look> {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.get(who.as_str())?.get(packet.as_str()).cloned()
    }

    /// Changes what is remembered of a packet, and writes it down.
    pub(crate) fn change(&self, who: &ActorId, packet: &DecisionId, fresh: &Look, how: impl FnOnce(&mut Look)) {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let own = looks.entry(who.to_string()).or_default();
        how(own.entry(packet.to_string()).or_insert_with(|| fresh.clone()));
        while own.len() > PACKETS_MAX {
            let oldest = own.iter().min_by_key(|(_, look)| look.last_at.unix_ms()).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                own.remove(&oldest);
            }
        }
        if let Err(error) = write(&self.path, &looks) {
            tracing::warn!(%error, "what was looked at could not be written down");
        }
    }
}

fn write(path: &Path, looks: &Looks) -> Result<(), Error> {
    use std::os::unix::fs::OpenOptionsExt;
    let writing = || Error::io(format!("writing {}", path.display()));
    let text = serde_json::to_vec(looks).map_err(|error| Error::World(error.to_string()))?;
    let beside = path.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    let mut file = options.open(&beside).map_err(writing())?;
    std::io::Write::write_all(&mut file, &text).map_err(writing())?;
    std::fs::rename(&beside, path).map_err(writing())
}
