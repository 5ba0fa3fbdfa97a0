//! Who takes the next step: a program that is given one packet and answers once, started fresh for every world. Spec: §10.1.
//!
//! A participant reads one WORK as JSON on stdin and writes one object `{"result": RESULT, "packet": DIGEST, "usage": {…}}` on
//! stdout; `packet`, the digest of what it read, and `usage` may be left out. It is told nothing else: not which world it is in, not that there is another. `CLOSER_EVAL_SEED` in its environment is a number
//! of its own for whatever it draws.

mod ask;
mod builtin;

pub use ask::{Asked, Launch, NoAnswer, ask};
pub use builtin::{Floor, Synthetic, answer};

use crate::resource::Usage;
use closer_adapters::participants::Policy;
use closer_contracts::fault::Fault;
use closer_contracts::work::{Work, WorkResult};
use closer_contracts::{Check, Digest, RefusalCode, canonical};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A participant as a plan declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Participant {
    /// A scripted policy: ordered rules over the packet.
    Policy(Policy),
    /// A policy whose effect is known, for trying the apparatus itself.
    Synthetic(Synthetic),
    /// A policy that does always the same.
    Floor {
        /// What it does.
        floor: Floor,
    },
    /// Any program.
    Command(Command),
}

impl Participant {
    /// The files it is made of, relative to the plan's folder.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        match self {
            Self::Command(command) => &command.files,
            Self::Policy(_) | Self::Synthetic(_) | Self::Floor { .. } => &[],
        }
    }
}

/// A program, and everything it may know of where it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its environment; nothing else of ours is passed on.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The folder it runs in, relative to the plan's.
    #[serde(default = "here")]
    pub folder: PathBuf,
    /// How long it may take, in milliseconds. Default one minute.
    #[serde(default = "minute")]
    pub deadline_ms: u64,
    /// The files it is made of, relative to the plan's folder: frozen with it.
    #[serde(default)]
    pub files: Vec<PathBuf>,
}

fn here() -> PathBuf {
    PathBuf::from(".")
}

const fn minute() -> u64 {
    60_000
}

/// What a participant wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answered {
    /// The RESULT.
    pub result: WorkResult,
    /// The digest of the packet as it arrived; absent where the participant does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Digest>,
    /// What it took; absent where the participant did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Answers one packet on stdin as a declared participant of our own, and ends: what a world's process does.
///
/// # Errors
/// Why it does not.
pub fn serve(declaration: &std::path::Path) -> Result<(), String> {
    use std::io::{Read, Write};
    let declared = std::fs::read(declaration).map_err(|error| format!("{}: {error}", declaration.display()))?;
    let participant: Participant = serde_json::from_slice(&declared).map_err(|error| error.to_string())?;
    let mut packet = Vec::new();
    std::io::stdin().lock().take(4 << 20).read_to_end(&mut packet).map_err(|error| error.to_string())?;
    let work: Work = canonical::read(packet.trim_ascii_end()).map_err(|fault| fault.to_string())?;
    let seed = std::env::var("CLOSER_EVAL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_default();
    let answered = answer(&participant, &work, seed).ok_or("the policy gives no answer to this packet")?;
    let written = serde_json::to_vec(&answered).map_err(|error| error.to_string())?;
    std::io::stdout().lock().write_all(&written).map_err(|error| error.to_string())
}

/// A list is no answer, however many are in it: what was asked for is one.
fn not_one(came: usize) -> Fault {
    Fault::new(RefusalCode::Cardinality, format!("one answer was asked for and a list of {came} came"))
}

/// Reads what a participant wrote: untrusted, and held to the contract strictly.
///
/// # Errors
/// `schema_invalid` and the contract's own codes; `cardinality` for a list; `unresolved_ref` for an answer to another work; `digest_mismatch` for one to
/// a packet that arrived cut short.
pub fn read(bytes: &[u8], work: &Work) -> Result<Answered, Fault> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| Fault::schema(format!("the answer is not JSON: {error}")))?;
    let mut members = match value {
        Value::Object(members) => members,
        Value::Array(answers) => return Err(not_one(answers.len())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(Fault::schema("the answer is no object"));
        }
    };
    let usage = members.remove("usage").filter(|usage| !usage.is_null());
    let packet = members.remove("packet").filter(|packet| !packet.is_null());
    let result = members.remove("result").ok_or_else(|| Fault::schema("the answer has a result").within("result"))?;
    if let Some(name) = members.keys().next() {
        return Err(Fault::schema("an answer has no such member").within(name));
    }
    if let Value::Array(results) = &result {
        return Err(not_one(results.len()).within("result"));
    }
    let result: WorkResult = canonical::from_value(result).map_err(|fault| fault.within("result"))?;
    result.check().map_err(|fault| fault.within("result"))?;
    if result.work_id != work.work_id {
        return Err(Fault::new(RefusalCode::UnresolvedRef, "the answer is to another work").within("result.work_id"));
    }
    let usage = usage.map(serde_json::from_value).transpose();
    let usage = usage.map_err(|error| Fault::schema(error.to_string()).within("usage"))?;
    let packet: Option<Digest> = packet
        .map(serde_json::from_value)
        .transpose()
        .map_err(|error| Fault::schema(error.to_string()).within("packet"))?;
    if packet.is_some_and(|arrived| canonical::digest_of(work).is_ok_and(|sent| sent != arrived)) {
        let reason = "the packet did not arrive as it was sent";
        return Err(Fault::new(RefusalCode::DigestMismatch, reason).within("packet"));
    }
    Ok(Answered { result, packet, usage })
}

#[cfg(test)]
mod tests;
