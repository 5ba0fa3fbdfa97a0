//! Who looks at a page: a signed-in device, its session's cookie, and what proves that a form is our own.

use super::trouble::Trouble;
use crate::access::{SessionEntry, digest};
use crate::http::Door;
use crate::request::{self, Request};
use crate::space::Space;
use axum::body::Bytes;
use axum::http::{HeaderMap, Uri, header};
use closer_contracts::id::ActorId;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// The name of the cookie over plain HTTP on this machine, and over TLS.
const COOKIE: &str = "closer";
const COOKIE_TLS: &str = "__Host-closer";

/// One look at a page, or one form sent.
pub(super) struct Visit {
    pub(super) session: SessionEntry,
    pub(super) places: Vec<(String, String)>,
    pub(super) uri: Uri,
    pub(super) form: Vec<(String, String)>,
    /// How long ago this device was heard before, in milliseconds.
    pub(super) idle_ms: u64,
}

impl Visit {
    /// Whom the device speaks for.
    pub(super) const fn identity(&self) -> &ActorId {
        &self.session.identity
    }

    /// What a form of this session bears.
    pub(super) fn csrf(&self) -> String {
        csrf(&self.session)
    }

    /// What stands in a place of the path.
    pub(super) fn place(&self, name: &str) -> &str {
        self.places.iter().find(|(place, _)| place == name).map_or("", |(_, text)| text)
    }

    /// A field of the form, where it was sent.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        field(&self.form, name)
    }

    /// What the address asks for, by name.
    pub(super) fn query(&self, name: &str) -> Option<String> {
        query(&self.uri, name)
    }

    /// Asks the space and reads the answer as a page's own type.
    pub(super) async fn ask<T: DeserializeOwned>(&self, door: &Door, request: Request) -> Result<T, Trouble> {
        let data = self.data(door, request).await?;
        serde_json::from_value(data).map_err(|error| Trouble::unexpected(&error.to_string()))
    }

    /// Asks the space.
    pub(super) async fn data(&self, door: &Door, request: Request) -> Result<Value, Trouble> {
        Ok(door.ask(self.identity(), request).await?)
    }
}

/// A field of a form, where it was sent.
pub(super) fn field<'a>(form: &'a [(String, String)], name: &str) -> Option<&'a str> {
    form.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// What an address asks for, by name.
pub(super) fn query(uri: &Uri, name: &str) -> Option<String> {
    let query = uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

/// The fields of a form.
pub(super) fn fields(body: &Bytes) -> Vec<(String, String)> {
    form_urlencoded::parse(body).into_owned().collect()
}

fn csrf(session: &SessionEntry) -> String {
    digest(&format!("form of {}", session.digest)).chars().take(32).collect()
}

/// Whether a form bears what this session's forms bear. Both are digests of a secret, so that timing tells nothing of use.
pub(super) fn is_own_form(session: &SessionEntry, form: &[(String, String)]) -> bool {
    let offered = field(form, "csrf").unwrap_or_default();
    digest(offered) == digest(&csrf(session))
}

/// The session whose secret the cookie holds, where it holds and its identity still does.
pub(super) fn session(door: &Arc<Door>, headers: &HeaderMap) -> Result<Option<SessionEntry>, Trouble> {
    let name = if door.is_secure() { COOKIE_TLS } else { COOKIE };
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let Some((_, secret)) = pairs.find(|(known, _)| *known == name) else { return Ok(None) };
    let held = door.access.held().map_err(|error| Trouble::unexpected(&error.to_string()))?;
    let Some(session) = held.session(secret, &door.now()) else { return Ok(None) };
    let current = request::shut_out(&door.space.view(), &session.identity).is_none();
    Ok(current.then(|| session.clone()))
}

/// The cookie that opens a session on this device; an empty secret ends it.
pub(super) fn cookie(door: &Door, secret: &str) -> String {
    let seconds = if secret.is_empty() { 0 } else { door.settings.session_ms / 1_000 };
    let (name, secure) = if door.is_secure() { (COOKIE_TLS, "; Secure") } else { (COOKIE, "") };
    format!("{name}={secret}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
}

/// Whether a form was sent by a page of ours, as far as the browser says where it came from.
pub(super) fn is_same_origin(door: &Door, headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text("host").unwrap_or_default();
    let own = |origin: &str| {
        let (scheme, named) = origin.split_once("://").unwrap_or_default();
        origin == door.origin || (named.eq_ignore_ascii_case(host) && door.origin.starts_with(&format!("{scheme}://")))
    };
    let site = text("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"));
    site && text("origin").is_none_or(own)
}

/// A path of ours to go to next; anything else leads to The Bench.
pub(super) fn local(path: &str) -> &str {
    let ours = path.starts_with('/')
        && !path.starts_with("//")
        && path.len() <= 512
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if ours { path } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn only_a_path_of_ours_is_gone_to() {
        assert_eq!(local("/packets/decision-1?again=1"), "/packets/decision-1?again=1");
        for path in
            ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a b", "", "/\r\nx"]
        {
            assert_eq!(local(path), "/", "{path:?}");
        }
    }
}
