//! Who may come in over HTTP: bearer tokens, sign-in links and browser sessions, each bound to a registered identity.
//!
//! Kept in one file of the store's folder, its owner's alone. A secret is told once, when it is made; the file holds its
//! digest. What is taken back is gone with the next request, whichever process took it back. Deliberately lacks authority:
//! whoever comes in is an identity, and what that identity may do is decided by the protocol.

mod file;
mod held;

pub(crate) use file::secret_file;
pub use held::{Held, LinkKind, Scope, SessionEntry, TokenEntry};

use crate::error::Error;
use closer_contracts::id::ActorId;
use closer_contracts::time::Timestamp;
use file::Stamp;
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the file in a store's folder.
pub const FILE: &str = "access.json";

/// How long a sign-in link is good for, in milliseconds: a quarter of an hour.
pub const LINK_MS: u64 = 15 * 60_000;
/// How long a code for another device is good for, in milliseconds: five minutes.
pub const CODE_MS: u64 = 5 * 60_000;

/// The digest under which a secret is kept. Secrets are random, so that a plain digest cannot be guessed back.
#[must_use]
pub fn digest(secret: &str) -> String {
    hex::encode(Sha256::digest(secret.as_bytes()))
}

/// A new secret: 256 random bits behind a prefix that says what it opens.
fn secret(prefix: &str) -> String {
    format!("{prefix}_{}", hex::encode(rand::random::<[u8; 32]>()))
}

/// Characters that are not taken for one another when a code is read off a screen.
const CODE_CHARACTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// A code of 60 bits that a person can type.
fn code() -> String {
    let characters = rand::random::<[u8; 12]>().map(|byte| {
        let index = usize::from(byte) % CODE_CHARACTERS.len();
        CODE_CHARACTERS.get(index).map_or('A', |character| char::from(*character))
    });
    let text: String = characters.iter().collect();
    text.as_bytes().chunks(4).map(String::from_utf8_lossy).collect::<Vec<_>>().join("-")
}

/// A code as it was typed: case and separators do not matter.
fn typed(text: &str) -> String {
    let plain: String = text.trim().chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_uppercase();
    plain.as_bytes().chunks(4).map(String::from_utf8_lossy).collect::<Vec<_>>().join("-")
}

/// The access kept for one store.
#[derive(Debug)]
pub struct Access {
    path: PathBuf,
    read: Mutex<Option<(Stamp, Arc<Held>)>>,
}

/// A browser's session as it was just opened; the secret goes into its cookie and nowhere else.
#[derive(Debug, Clone)]
pub struct Opened {
    /// For the cookie.
    pub secret: String,
    /// What is kept of it.
    pub session: SessionEntry,
}

impl Access {
    /// The access of the store in this folder.
    #[must_use]
    pub fn of(store: &Path) -> Self {
        Self { path: store.join(FILE), read: Mutex::new(None) }
    }

    /// What is kept now, whoever changed it last.
    ///
    /// # Errors
    /// A file that cannot be read, or that others can read.
    pub fn held(&self) -> Result<Arc<Held>, Error> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = file::stamp(&self.path)?;
        match &*read {
            Some((known, held)) if *known == stamp => Ok(Arc::clone(held)),
            Some(_) | None => {
                let held = Arc::new(file::read(&self.path)?);
                *read = Some((stamp, Arc::clone(&held)));
                Ok(held)
            }
        }
    }

    /// Makes a token; the secret is told here and never again.
    ///
    /// # Errors
    /// What keeps the file from being written.
    pub fn new_token(
        &self,
        identity: &ActorId,
        scopes: Vec<Scope>,
        note: Option<String>,
        expires_at: Option<Timestamp>,
        now: &Timestamp,
    ) -> Result<(TokenEntry, String), Error> {
        let secret = secret("closer");
        let token = TokenEntry {
            token_id: format!("token-{}", hex::encode(rand::random::<[u8; 6]>())),
            identity: identity.clone(),
            scopes,
            note,
            digest: digest(&secret),
            created_at: now.clone(),
            expires_at,
            revoked_at: None,
        };
        let kept = token.clone();
        file::change(&self.path, |held| held.tokens.push(kept))?;
        Ok((token, secret))
    }

    /// Takes a token back. Tells whether there was one that held.
    ///
    /// # Errors
    /// What keeps the file from being written.
    pub fn revoke_token(&self, token_id: &str, now: &Timestamp) -> Result<bool, Error> {
        file::change(&self.path, |held| held.revoke_token(token_id, now))
    }

    /// Makes a link's secret that signs one device in as this identity, once.
    ///
    /// # Errors
    /// What keeps the file from being written.
    pub fn new_link(&self, identity: &ActorId, now: &Timestamp) -> Result<String, Error> {
        let secret = secret("link");
        let link = held::Link::new(LinkKind::Link, digest(&secret), identity, now.plus_ms(LINK_MS));
        file::change(&self.path, |held| held.add_link(link, now))?;
        Ok(secret)
    }

    /// Makes a code that signs another device in as this identity, once.
    ///
    /// # Errors
    /// What keeps the file from being written.
    pub fn new_code(&self, identity: &ActorId, now: &Timestamp) -> Result<String, Error> {
        let code = code();
        let link = held::Link::new(LinkKind::Code, digest(&code), identity, now.plus_ms(CODE_MS));
        file::change(&self.path, |held| held.add_link(link, now))?;
        Ok(code)
    }

    /// Uses a link or a code up and opens a session; nothing where it is unknown, used or out of date.
    ///
    /// # Errors
    /// What keeps the file from being written.
    pub fn sign_in(
        &self,
        offered: &str,
        device: &str,
        lasts_ms: u64,
        now: &Timestamp,
    ) -> Result<Option<Opened>, Error> {
        let digests = [digest(offered.trim()), digest(&typed(offered))];
        let known = self.held()?.link(&digests, now).is_some();
        if !known {
            return Ok(None);
        }
        let secret = secret("session");
        let opened = file::change(&self.path, |held| {
            let identity = held.use_link(&digests, now)?;
            let session = SessionEntry {
                session_id: format!("device-{}", hex::encode(rand::random::<[u8; 6]>())),
                identity,
                device: device.to_owned(),
                digest: digest(&secret),
                created_at: now.clone(),
                expires_at: now.plus_ms(lasts_ms),
            };
            held.add_session(session.clone(), now);
            Some(session)
        })?;
        Ok(opened.map(|session| Opened { secret, session }))
    }

    /// Ends a session of this identity. Tells whether there was one.
    ///
    /// # Errors
    /// What keeps the file from being written.
    pub fn end_session(&self, identity: &ActorId, session_id: &str) -> Result<bool, Error> {
        file::change(&self.path, |held| held.end_session(identity, session_id))
    }

    /// Ends every session of this identity. Tells how many there were.
    ///
    /// # Errors
    /// What keeps the file from being written.
    pub fn end_sessions(&self, identity: &ActorId) -> Result<usize, Error> {
        file::change(&self.path, |held| held.end_sessions(identity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_unix_ms(1_700_000_000_000 + hour * 3_600_000)
    }

    #[test]
    fn a_token_is_kept_as_a_digest_and_gone_once_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let access = Access::of(folder.path());
        let who = ActorId::from("user.owner");
        let (token, secret) = access.new_token(&who, vec![Scope::Read], None, None, &at(0)).unwrap();
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(!text.contains(&secret), "the secret itself is nowhere");
        assert!(access.held().unwrap().token(&secret, &at(1)).is_some());
        let elsewhere = Access::of(folder.path());
        assert!(elsewhere.revoke_token(&token.token_id, &at(2)).unwrap());
        assert!(access.held().unwrap().token(&secret, &at(2)).is_none(), "another process took it back");
        assert!(!elsewhere.revoke_token(&token.token_id, &at(3)).unwrap());
    }

    #[test]
    fn a_token_ends_at_its_date() {
        let folder = tempfile::tempdir().unwrap();
        let access = Access::of(folder.path());
        let who = ActorId::from("user.owner");
        let (_, secret) = access.new_token(&who, vec![Scope::Read], None, Some(at(2)), &at(0)).unwrap();
        assert!(access.held().unwrap().token(&secret, &at(1)).is_some());
        assert!(access.held().unwrap().token(&secret, &at(2)).is_none());
    }

    #[test]
    fn a_link_opens_one_session_and_only_in_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let access = Access::of(folder.path());
        let who = ActorId::from("user.owner");
        let link = access.new_link(&who, &at(0)).unwrap();
        let opened = access.sign_in(&link, "a phone", 3_600_000, &at(0)).unwrap().unwrap();
        assert!(access.sign_in(&link, "a thief", 3_600_000, &at(0)).unwrap().is_none(), "a link is good once");
        assert!(access.held().unwrap().session(&opened.secret, &at(0)).is_some());
        assert!(access.held().unwrap().session(&opened.secret, &at(1)).is_none(), "a session ends");
        let late = access.new_link(&who, &at(0)).unwrap();
        assert!(access.sign_in(&late, "a phone", 3_600_000, &at(1)).unwrap().is_none());
    }

    #[test]
    fn a_code_is_typed_in_any_case_and_wrong_ones_use_it_up() {
        let folder = tempfile::tempdir().unwrap();
        let access = Access::of(folder.path());
        let who = ActorId::from("user.owner");
        let code = access.new_code(&who, &at(0)).unwrap();
        let sloppy = code.to_lowercase().replace('-', " ");
        assert!(access.sign_in(&sloppy, "a phone", 1, &at(0)).unwrap().is_some());
        assert!(access.sign_in("", "nobody", 1, &at(0)).unwrap().is_none());
    }

    #[test]
    fn a_file_that_others_can_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let access = Access::of(folder.path());
        access.new_link(&ActorId::from("user.owner"), &at(0)).unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(access.held().is_err());
    }
}
