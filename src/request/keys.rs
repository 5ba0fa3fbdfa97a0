//! Registered signing keys. Private keys never come here: `closer keys new` writes them to files of their owner.

use super::{Answer, KeysRequest, change, words};
use crate::error::Error;
use crate::space::Space;
use closer_contracts::auth::SigningScope;
use closer_contracts::canonical::digest_of;
use closer_contracts::delta::Change;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, Key, KeyId};
use closer_contracts::item::{Identity, Item, ItemKind, SigningKeyEntry};
use closer_contracts::time::Timestamp;
use closer_protocol::view::View;
use serde_json::{Value, json};

/// How long a key is valid that is registered by name, in milliseconds: a year.
const VALID_MS: u64 = 365 * 24 * 3_600_000;

fn identities(view: &View) -> impl Iterator<Item = &Identity> {
    view.state
        .items(ItemKind::Identity)
        .filter_map(|accepted| if let Item::Identity(identity) = &accepted.item { Some(identity) } else { None })
}

/// Answers what is asked about keys.
pub(super) async fn answer(space: &dyn Space, identity: &ActorId, asked: KeysRequest) -> Result<Answer, Error> {
    match asked {
        KeysRequest::List => Ok(list(&space.view())),
        KeysRequest::Rotate { identity: whose, public_key, signing_scope } => {
            match as_waiting(space, |now| rotated(space, &whose, &public_key, &signing_scope, now))? {
                Ok((changes, what)) => change::commit(space, identity, &what, Vec::new(), changes).await,
                Err(answer) => Ok(*answer),
            }
        }
        KeysRequest::RotateDraft { person, identity: whose, public_key, signing_scope } => {
            match as_waiting(space, |now| rotated(space, &whose, &public_key, &signing_scope, now))? {
                Ok((changes, what)) => change::draft(space, &person, &what, changes),
                Err(answer) => Ok(*answer),
            }
        }
        KeysRequest::Revoke { key_id, compromised } => revoke(space, identity, &key_id, compromised).await,
    }
}

fn list(view: &View) -> Answer {
    let keys: Vec<(&Identity, &SigningKeyEntry)> =
        identities(view).flat_map(|identity| identity.keys.iter().map(move |key| (identity, key))).collect();
    let standing = |key: &SigningKeyEntry| match (&key.revoked_at, key.compromised) {
        (None, _) => "current",
        (Some(_), false) => "revoked",
        (Some(_), true) => "compromised",
    };
    let line = |(identity, key): &(&Identity, &SigningKeyEntry)| {
        format!("{} {} {} until {}", key.key_id, identity.actor_id, standing(key), key.not_after.as_str())
    };
    let told = |(identity, key): &(&Identity, &SigningKeyEntry)| json!({ "identity": identity.actor_id, "standing": standing(key), "key": key });
    let told: Vec<Value> = keys.iter().map(told).collect();
    Answer::done(json!({ "keys": told }), keys.iter().map(line).collect())
}

/// What registers another key of an identity, and how that is told; or why it cannot be asked for.
type Rotated = Result<(Vec<Change>, String), Box<Answer>>;

/// What is asked for, as of the moment at which somebody else has declared exactly that, where it waits for others to; else
/// as of now.
fn as_waiting(space: &dyn Space, make: impl Fn(&Timestamp) -> Result<Rotated, Error>) -> Result<Rotated, Error> {
    for waiting in change::all_waiting(space) {
        for at in waiting.iter().flat_map(moments) {
            let made = make(&at)?;
            if made.as_ref().is_ok_and(|(changes, _)| *changes == waiting) {
                return Ok(made);
            }
        }
    }
    make(&space.moment().now)
}

/// The moments from which a change has a key be valid, or revoked.
fn moments(change: &Change) -> Vec<Timestamp> {
    let Change::Revise { item, .. } = change else { return Vec::new() };
    let Item::Identity(identity) = &**item else { return Vec::new() };
    identity.keys.iter().flat_map(|key| [Some(key.not_before.clone()), key.revoked_at.clone()]).flatten().collect()
}

fn rotated(
    space: &dyn Space,
    whose: &ActorId,
    public_key: &str,
    signing_scope: &[String],
    now: &Timestamp,
) -> Result<Rotated, Error> {
    let view = space.view();
    let Some(registered) = view.state.identity(whose) else {
        return Ok(Err(Box::new(Answer::not_found("identity", whose.as_str()))));
    };
    let scopes = signing_scope.iter().map(|scope| serde_json::from_value::<SigningScope>(Value::String(scope.clone())));
    let scopes: Result<Vec<SigningScope>, _> = scopes.collect();
    let key_id = crate::keys::id_of(public_key);
    let (scopes, key_id) = match (scopes, key_id) {
        (Ok(scopes), Ok(key_id)) => (scopes, key_id),
        (Err(error), _) => {
            let denial = Fault::schema(error.to_string()).within("signing_scope").into();
            return Ok(Err(Box::new(Answer::refused(&[denial]))));
        }
        (_, Err(reason)) => {
            return Ok(Err(Box::new(Answer::refused(&[Fault::schema(reason).within("public_key").into()]))));
        }
    };
    let mut changed = registered.clone();
    changed.keys.push(SigningKeyEntry {
        key_id: key_id.clone(),
        public_key: Key::from(public_key),
        not_after: now.plus_ms(VALID_MS),
        not_before: now.clone(),
        signing_scope: scopes,
        revoked_at: None,
        compromised: false,
    });
    let replaces = digest_of(&Item::Identity(registered.clone()))?;
    let changes = vec![Change::Revise { item: Box::new(Item::Identity(changed)), replaces }];
    Ok(Ok((changes, format!("key {key_id} is registered for {whose}"))))
}

async fn revoke(space: &dyn Space, identity: &ActorId, key_id: &KeyId, compromised: bool) -> Result<Answer, Error> {
    let view = space.view();
    // Whoever holds the key holds it no longer: a key may stand in more than one identity.
    let holds = |identity: &&Identity| identity.keys.iter().any(|key| key.key_id == *key_id);
    let holders: Vec<&Identity> = identities(&view).filter(holds).collect();
    if holders.is_empty() {
        return Ok(Answer::not_found("key", key_id.as_str()));
    }
    if view.state.is_user(identity) && is_revoked(&holders, key_id, compromised) {
        let text = "revoked already; nothing is recorded".to_owned();
        return Ok(Answer::done(json!({ "recorded": [] }), vec![text]));
    }
    let how = if compromised { "revoked as compromised" } else { "revoked" };
    let whose: Vec<String> = holders.iter().map(|holder| holder.actor_id.to_string()).collect();
    let what = format!("key {} of {} is {how}", words::short_text(key_id.as_str()), whose.join(", "));
    match as_waiting(space, |now| Ok(Ok((revoked(&holders, key_id, compromised, now)?, what.clone()))))? {
        Ok((changes, what)) => change::commit(space, identity, &what, Vec::new(), changes).await,
        Err(answer) => Ok(*answer),
    }
}

/// What revokes a key wherever it is held.
fn revoked(holders: &[&Identity], key_id: &KeyId, compromised: bool, now: &Timestamp) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    for registered in holders {
        let mut changed = (*registered).clone();
        for key in changed.keys.iter_mut().filter(|key| key.key_id == *key_id) {
            key.revoked_at = key.revoked_at.clone().or_else(|| Some(now.clone()));
            key.compromised |= compromised;
        }
        let replaces = digest_of(&Item::Identity((*registered).clone()))?;
        changes.push(Change::Revise { item: Box::new(Item::Identity(changed)), replaces });
    }
    Ok(changes)
}

/// Whether every entry of a key is revoked already, and as compromised where it is to be that.
fn is_revoked(holders: &[&Identity], key_id: &KeyId, compromised: bool) -> bool {
    let mut held = holders.iter().flat_map(|holder| &holder.keys).filter(|key| key.key_id == *key_id);
    held.all(|key| key.revoked_at.is_some() && (key.compromised || !compromised))
}
