//! What people make of the figures: kept apart from them, and only where it says what it rests on. Spec: §10.4.

use crate::artifacts::Artifacts;
use crate::file::{self, Misfit};
use closer_contracts::Digest;
use closer_contracts::contract::Check;
use closer_contracts::fault::Fault;
use closer_contracts::id::{Key, Text};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file of a revision that holds them, one JSON object a line.
const FILE: &str = "interpretations.jsonl";

/// One interpretation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interpretation {
    /// Who says it.
    pub by: Key,
    /// What they say.
    pub text: Text,
    /// The artifacts it rests on.
    pub rests_on: Vec<Digest>,
    /// What it corrects, in words; the corrected one stays where it is.
    #[serde(default)]
    pub corrects: Option<Text>,
}

impl Check for Interpretation {
    fn check(&self) -> Result<(), Fault> {
        self.by.check().map_err(|fault| fault.within("by"))?;
        self.text.check().map_err(|fault| fault.within("text"))?;
        match self.rests_on.is_empty() {
            true => Err(Fault::schema("a claim cites an artifact that bears it out").within("rests_on")),
            false => Ok(()),
        }
    }
}

/// The interpretations of a revision; each cites artifacts that are there.
pub(super) fn read(revision: &Path, artifacts: &Artifacts) -> Result<Vec<Interpretation>, Misfit> {
    let path = revision.join(FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let read: Vec<Interpretation> = file::lines(&path)?;
    for (index, interpretation) in read.iter().enumerate() {
        if let Some(missing) = interpretation.rests_on.iter().find(|digest| !artifacts.path(**digest).exists()) {
            return Err(Misfit::at(&path, index + 1, "rests_on", format!("there is no artifact {missing}")));
        }
    }
    Ok(read)
}
