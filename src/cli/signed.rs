//! What a person signs here: the space writes it, the key file signs it in this process, and it is handed in.

use super::exit::Exit;
use super::talk::{self, Talk};
use crate::deployment::Deployment;
use crate::error::Error;
use crate::request::{ChangeRequest, KeysRequest, Outcome, Request};
use closer_adapters::keys::SigningKeyFile;
use closer_contracts::audit::{Declaration, UserDecision};
use closer_contracts::auth::SigningScope;
use closer_contracts::canonical;
use closer_contracts::delta::Change;
use closer_contracts::id::ActorId;
use serde_json::Value;
use std::path::Path;

/// Asks for something in a person's name that the person signs with this key.
pub(super) async fn signed(
    directory: &Path,
    person: ActorId,
    request: Request,
    file: &Path,
    talk: Talk,
) -> Result<Exit, Error> {
    let key = SigningKeyFile::load(file).map_err(|error| Error::World(error.to_string()))?;
    let store = Deployment::store_of(directory)?;
    if let Some(answer) = talk::unfounded(&store, directory)? {
        return Ok(talk.tell(&answer));
    }
    let unsigned = if let Request::BenchDecide(draft) = request {
        Request::BenchDraft { person: person.clone(), draft }
    } else if let Request::Keys(KeysRequest::Rotate { identity, public_key, signing_scope }) = request {
        Request::Keys(KeysRequest::RotateDraft { person: person.clone(), identity, public_key, signing_scope })
    } else if let Request::Change(ChangeRequest::Join { delta_id }) = request {
        Request::Change(ChangeRequest::JoinDraft { person: person.clone(), delta_id })
    } else {
        return Ok(talk.misused("this verb is not signed with a key file"));
    };
    let drafted = talk::answered(&store, None, unsigned).await?;
    if drafted.outcome != Outcome::Done {
        return Ok(talk.tell(&drafted));
    }
    let member = |name: &str| drafted.data.get(name).cloned().unwrap_or(Value::Null);
    let send = match drafted.data.get("decision") {
        Some(decision) => {
            let decision: UserDecision = canonical::from_value(decision.clone())?;
            let digest = canonical::digest_of(&decision)?;
            let signature = key.sign(digest, SigningScope::UserDecision, &person)?;
            Request::DecisionSend { decision: Box::new(decision), key_id: key.key_id(), signature }
        }
        None => {
            let declaration: Declaration = canonical::from_value(member("declaration"))?;
            let changes: Vec<Change> = canonical::from_value(member("changes"))?;
            let digest = canonical::digest_of(&declaration)?;
            let signature = key.sign(digest, SigningScope::Declaration, &person)?;
            let declaration = Box::new(declaration);
            Request::Change(ChangeRequest::Send { declaration, changes, key_id: key.key_id(), signature })
        }
    };
    Ok(talk.tell(&talk::answered(&store, None, send).await?))
}
