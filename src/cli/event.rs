//! What can be typed about events.

use super::arguments::text_of;
use crate::request::{EventDraft, Request};
use clap::Subcommand;
use closer_contracts::envelope::Payload;
use closer_contracts::id::ActorId;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum Event {
    /// Announces a change, as an emitter of its source.
    #[command(after_help = "\
Examples:
  closer --as issuer.security event send --source source.security --entity key.web --change key_revoked
  closer event send --file event.json --key-id sha256:... --signature ...")]
    Send {
        /// The registered source.
        #[arg(long, required_unless_present = "file")]
        source: Option<String>,
        /// What it is about.
        #[arg(long, required_unless_present = "file")]
        entity: Option<String>,
        /// The kind of change.
        #[arg(long, required_unless_present = "file")]
        change: Option<String>,
        /// Evidence on record that it cites.
        #[arg(long)]
        evidence: Vec<String>,
        /// Two events of a source with the same key are one.
        #[arg(long)]
        key: Option<String>,
        /// A whole payload instead, in canonical JSON; `-` for stdin.
        #[arg(long, conflicts_with_all = ["source", "entity", "change", "evidence", "key"])]
        file: Option<PathBuf>,
        /// The key that signed it.
        #[arg(long, requires_all = ["file", "signature"])]
        key_id: Option<String>,
        /// Its signature, 128 hexadecimal digits.
        #[arg(long, requires = "key_id")]
        signature: Option<String>,
    },
    /// Writes the payload that `event send` would, for a producer who signs elsewhere; records nothing.
    #[command(after_help = "\
Example:
  closer --as monitor.remote event draft --source source.remote --entity key.web --change key_revoked > event.json
  closer keys sign remote.key event.json
  closer event send --file event.json --key-id sha256:... --signature ...")]
    Draft {
        /// The registered source.
        #[arg(long)]
        source: String,
        /// What it is about.
        #[arg(long)]
        entity: String,
        /// The kind of change.
        #[arg(long)]
        change: String,
        /// Evidence on record that it cites.
        #[arg(long)]
        evidence: Vec<String>,
        /// Two events of a source with the same key are one.
        #[arg(long)]
        key: Option<String>,
    },
}

impl Event {
    /// The request that a verb is for the identity that was named.
    pub(super) fn request(self, identity: Option<&ActorId>) -> Result<Request, String> {
        match self {
            Self::Send { file: Some(file), key_id, signature, .. } => {
                let payload = payload_of(&file)?;
                spoken_for(&payload, identity)?;
                let (key_id, signature) = (key_id.map(Into::into), signature.map(Into::into));
                Ok(Request::PayloadSend { payload, key_id, signature })
            }
            Self::Send { source, entity, change, evidence, key, .. } => {
                let change = Change { source, entity, change, evidence, key };
                change.draft().map(Request::EventSend)
            }
            Self::Draft { source, entity, change, evidence, key } => {
                let change = Change { source: Some(source), entity: Some(entity), change: Some(change), evidence, key };
                change.draft().map(Request::EventDraft)
            }
        }
    }
}

/// What an event is about, as it is typed.
struct Change {
    source: Option<String>,
    entity: Option<String>,
    change: Option<String>,
    evidence: Vec<String>,
    key: Option<String>,
}

impl Change {
    fn draft(self) -> Result<EventDraft, String> {
        let (Some(source), Some(entity), Some(change)) = (self.source, self.entity, self.change) else {
            return Err("an event has a source, an entity and a kind of change".to_owned());
        };
        Ok(EventDraft {
            source_id: source.into(),
            entity_ref: entity.into(),
            change_kind: change.into(),
            evidence: self.evidence.into_iter().map(Into::into).collect(),
            deduplication_key: self.key.map(Into::into),
        })
    }
}

/// A payload's bytes from a file. An editor ends a file with a line break, which is no part of the payload; anything else is.
pub(super) fn payload_of(file: &Path) -> Result<String, String> {
    let text = text_of(file)?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// A payload is its producer's; nobody hands it in as somebody else's. One that cannot be read is refused where it arrives.
fn spoken_for(payload: &str, identity: Option<&ActorId>) -> Result<(), String> {
    let (Some(identity), Ok(payload)) = (identity, Payload::read(payload.as_bytes())) else {
        return Ok(());
    };
    let producer = &payload.envelope().producer.actor_id;
    match producer == identity {
        true => Ok(()),
        false => Err(format!("the payload is {producer}'s own, and --as says {identity}")),
    }
}
