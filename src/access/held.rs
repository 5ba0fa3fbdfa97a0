//! What is kept of tokens, links and sessions, and the few questions asked of it.

use super::digest;
use closer_contracts::id::ActorId;
use closer_contracts::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The most links that wait to be used, of all identities together; the oldest give way.
const LINKS_MAX: usize = 256;
/// The most sessions of one identity; the oldest give way.
const SESSIONS_MAX: usize = 32;

/// What a token opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Reading the record.
    Read,
    /// Answering packets.
    Answer,
    /// Announcing events and handing in payloads.
    Events,
    /// Restricting.
    Restrict,
    /// Taking work and answering it, as an agent outside.
    Work,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Read, Self::Answer, Self::Events, Self::Restrict, Self::Work];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Answer => "answer",
            Self::Events => "events",
            Self::Restrict => "restrict",
            Self::Work => "work",
        }
    }

    /// The scope that a word names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// A bearer token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// By which it is listed and taken back.
    pub token_id: String,
    /// Whom it speaks for.
    pub identity: ActorId,
    /// What it opens.
    pub scopes: Vec<Scope>,
    /// What it is for, in somebody's words.
    pub note: Option<String>,
    /// SHA-256 of the secret, in hexadecimal.
    pub digest: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it no longer opens anything.
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
}

/// How a single-use secret is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// As an address that is followed.
    Link,
    /// As a code that is typed.
    Code,
}

/// A secret that signs one device in, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    kind: LinkKind,
    digest: String,
    identity: ActorId,
    expires_at: Timestamp,
}

impl Link {
    pub(super) fn new(kind: LinkKind, digest: String, identity: &ActorId, expires_at: Timestamp) -> Self {
        Self { kind, digest, identity: identity.clone(), expires_at }
    }
}

/// A browser's session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionEntry {
    /// By which it is listed and ended.
    pub session_id: String,
    /// Whom it speaks for.
    pub identity: ActorId,
    /// What the browser called itself.
    pub device: String,
    /// SHA-256 of the secret in the cookie, in hexadecimal.
    pub digest: String,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// Everything kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The tokens, those taken back too.
    pub tokens: Vec<TokenEntry>,
    links: Vec<Link>,
    /// The sessions.
    pub sessions: Vec<SessionEntry>,
}

impl Held {
    /// The token with this secret, where it holds at this time.
    #[must_use]
    pub fn token(&self, secret: &str, now: &Timestamp) -> Option<&TokenEntry> {
        let digest = digest(secret);
        let holds = |token: &&TokenEntry| {
            token.revoked_at.is_none() && token.expires_at.as_ref().is_none_or(|expires_at| now < expires_at)
        };
        self.tokens.iter().find(|token| token.digest == digest).filter(holds)
    }

    /// The session with this secret, where it holds at this time.
    #[must_use]
    pub fn session(&self, secret: &str, now: &Timestamp) -> Option<&SessionEntry> {
        let digest = digest(secret);
        self.sessions.iter().find(|session| session.digest == digest).filter(|session| *now < session.expires_at)
    }

    pub(super) fn revoke_token(&mut self, token_id: &str, now: &Timestamp) -> bool {
        let found = self.tokens.iter_mut().find(|token| token.token_id == token_id && token.revoked_at.is_none());
        found.is_some_and(|token| {
            token.revoked_at = Some(now.clone());
            true
        })
    }

    pub(super) fn add_link(&mut self, link: Link, now: &Timestamp) {
        self.links.retain(|kept| *now < kept.expires_at);
        let beyond = (self.links.len() + 1).saturating_sub(LINKS_MAX);
        self.links.drain(..beyond);
        self.links.push(link);
    }

    pub(super) fn link(&self, digests: &[String], now: &Timestamp) -> Option<&Link> {
        self.links.iter().find(|link| digests.contains(&link.digest) && *now < link.expires_at)
    }

    pub(super) fn use_link(&mut self, digests: &[String], now: &Timestamp) -> Option<ActorId> {
        let identity = self.link(digests, now)?.identity.clone();
        self.links.retain(|link| !digests.contains(&link.digest));
        Some(identity)
    }

    pub(super) fn add_session(&mut self, session: SessionEntry, now: &Timestamp) {
        self.sessions.retain(|kept| *now < kept.expires_at);
        let own = |kept: &&SessionEntry| kept.identity == session.identity;
        let beyond = (self.sessions.iter().filter(own).count() + 1).saturating_sub(SESSIONS_MAX);
        let oldest: Vec<String> =
            self.sessions.iter().filter(own).take(beyond).map(|kept| kept.session_id.clone()).collect();
        self.sessions.retain(|kept| !oldest.contains(&kept.session_id));
        self.sessions.push(session);
    }

    pub(super) fn end_session(&mut self, identity: &ActorId, session_id: &str) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|session| session.identity != *identity || session.session_id != session_id);
        self.sessions.len() < before
    }

    pub(super) fn end_sessions(&mut self, identity: &ActorId) -> usize {
        let before = self.sessions.len();
        self.sessions.retain(|session| session.identity != *identity);
        before - self.sessions.len()
    }
}
