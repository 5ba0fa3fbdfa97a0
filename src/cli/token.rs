//! Tokens and sign-in links: made, listed and taken back on the machine that holds the store, whether it is served or not.

use super::exit::Exit;
use super::init::now;
use super::talk::{Talk, unfounded};
use crate::access::{Access, LINK_MS, Scope, TokenEntry};
use crate::deployment::{Deployment, Http};
use crate::error::Error;
use crate::request::{Answer, Request};
use clap::Subcommand;
use closer_contracts::id::ActorId;
use serde_json::{Value, json};
use std::path::Path;

/// How long a token holds unless something else is said: 90 days.
const LASTS_DAYS: u64 = 90;
const DAY_MS: u64 = 24 * 3_600_000;

#[derive(Debug, Subcommand)]
pub(super) enum Token {
    /// Makes a token; its secret is printed once and kept nowhere.
    #[command(after_help = "\
Examples:
  closer token new --scope read --note 'the dashboard'
  closer --as issuer.security token new --scope restrict --scope events --days 30
  closer --as agent.renewal token new --scope work --note 'its MCP client'")]
    New {
        /// What it opens: read, answer, events, restrict, work; may be repeated.
        #[arg(long = "scope", required = true, value_parser = scope)]
        scopes: Vec<Scope>,
        /// What it is for.
        #[arg(long)]
        note: Option<String>,
        /// How many days it holds; 90 without it.
        #[arg(long)]
        days: Option<u64>,
    },
    /// Lists the tokens, those taken back too.
    List,
    /// Takes a token back; it opens nothing from the next request on.
    Revoke {
        /// Which, by its id.
        token_id: String,
    },
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::parse(text).ok_or_else(|| "read, answer, events, restrict or work".to_owned())
}

pub(super) async fn token(directory: &Path, identity: Option<ActorId>, verb: Token, talk: Talk) -> Result<Exit, Error> {
    let store = Deployment::store_of(directory)?;
    if let Some(answer) = unfounded(&store, directory)? {
        return Ok(talk.tell(&answer));
    }
    let access = Access::of(&store);
    match verb {
        Token::New { scopes, note, days } => {
            let identity = match known(directory, identity).await? {
                Ok(identity) => identity,
                Err(answer) => return Ok(talk.tell(&answer)),
            };
            let expires_at = Some(now().plus_ms(days.unwrap_or(LASTS_DAYS).saturating_mul(DAY_MS)));
            let (token, secret) = access.new_token(&identity, scopes, note, expires_at, &now())?;
            let mut data = told(&token);
            if let Some(members) = data.as_object_mut() {
                members.insert("secret".to_owned(), json!(secret));
            }
            talk.say("this is told once and kept nowhere:");
            Ok(talk.tell(&Answer::done(data, vec![secret])))
        }
        Token::List => {
            let held = access.held()?;
            let lines = held.tokens.iter().map(line).collect();
            Ok(talk.tell(&Answer::done(json!({ "tokens": held.tokens.iter().map(told).collect::<Vec<_>>() }), lines)))
        }
        Token::Revoke { token_id } => match access.revoke_token(&token_id, &now())? {
            true => Ok(talk.tell(&Answer::done(json!({ "revoked": token_id }), vec![format!("revoked {token_id}")]))),
            false => Ok(talk.tell(&Answer::absent(format!("no token that holds is called `{token_id}`")))),
        },
    }
}

/// Makes a single-use link for a person.
pub(super) async fn signin(directory: &Path, identity: Option<ActorId>, talk: Talk) -> Result<Exit, Error> {
    let store = Deployment::store_of(directory)?;
    if let Some(answer) = unfounded(&store, directory)? {
        return Ok(talk.tell(&answer));
    }
    let identity = match known(directory, identity).await? {
        Ok(identity) => identity,
        Err(answer) => return Ok(talk.tell(&answer)),
    };
    let origin = Http::of(directory)?.origin();
    let secret = Access::of(&store).new_link(&identity, &now())?;
    let link = format!("{origin}/signin?link={secret}");
    let minutes = LINK_MS / 60_000;
    talk.say(&format!("signs one device in as {identity}, once, within {minutes} minutes:"));
    Ok(talk.tell(&Answer::done(json!({ "identity": identity, "link": link }), vec![link])))
}

/// The identity that is meant, where somebody may come in as it.
async fn known(directory: &Path, identity: Option<ActorId>) -> Result<Result<ActorId, Answer>, Error> {
    let asked = Request::WhoAmI {};
    let answer = super::talk::asked(directory, identity, asked).await?;
    let named = answer.data.get("identity").and_then(Value::as_str).map(ActorId::from);
    Ok(named.ok_or(answer))
}

fn told(token: &TokenEntry) -> Value {
    json!({
        "token_id": token.token_id, "identity": token.identity, "scopes": token.scopes, "note": token.note,
        "created_at": token.created_at, "expires_at": token.expires_at, "revoked_at": token.revoked_at,
    })
}

fn line(token: &TokenEntry) -> String {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope: &Scope| scope.as_str()).collect();
    let until = match (&token.revoked_at, &token.expires_at) {
        (Some(at), _) => format!("revoked {}", at.as_str()),
        (None, Some(at)) => format!("until {}", at.as_str()),
        (None, None) => "without end".to_owned(),
    };
    let note = token.note.as_deref().unwrap_or_default();
    format!("{}  {}  {}  {until}  {note}", token.token_id, token.identity, scopes.join(","))
}
