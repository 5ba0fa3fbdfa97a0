//! Key files: made and used here, never sent anywhere.

use super::event::payload_of;
use super::exit::Exit;
use super::talk::Talk;
use crate::error::Error;
use crate::request::Answer;
use closer_adapters::keys::{KeyError, SigningKeyFile};
use closer_contracts::envelope::Payload;
use serde_json::json;
use std::path::Path;

fn broken(error: &KeyError) -> Error {
    Error::World(error.to_string())
}

pub(super) fn new(file: &Path, talk: Talk) -> Result<Exit, Error> {
    let key = SigningKeyFile::generate(file).map_err(|error| broken(&error))?;
    let (public_key, key_id) = (key.public_key(), key.key_id());
    talk.say(&format!("the secret is in {}; whoever can read it can sign", file.display()));
    let data = json!({ "public_key": public_key, "key_id": key_id, "file": file });
    Ok(talk.tell(&Answer::done(data, vec![public_key.to_string(), key_id.to_string()])))
}

pub(super) fn sign(file: &Path, payload: &Path, talk: Talk) -> Result<Exit, Error> {
    let key = SigningKeyFile::load(file).map_err(|error| broken(&error))?;
    let text = payload_of(payload).map_err(Error::World)?;
    let payload = Payload::read(text.as_bytes())?;
    let envelope = payload.envelope();
    let signature = key.sign(envelope.content_digest, envelope.r#type.into(), &envelope.producer.actor_id)?;
    let data = json!({ "key_id": key.key_id(), "signature": signature });
    Ok(talk.tell(&Answer::done(data, vec![key.key_id().to_string(), signature.to_string()])))
}
