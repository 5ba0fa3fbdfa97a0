//! The section `[http]`: where the service listens, under which address it is reached, and who may be in between.

use super::source::{Misfit, Source};
use closer_contracts::id::{ActorId, SourceId};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Where the service listens unless the deployment says otherwise: on this machine alone.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8460);

/// The files of a certificate and its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate, with whatever leads to its authority behind it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What a person is known by beside their identity.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// The registered identity that the person signs in as.
    pub identity: ActorId,
    /// The appointed issuer whose restrictions the person makes; without one, the identity itself.
    pub restricts_as: Option<ActorId>,
}

/// How a webhook's sender is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature` with a base64 HMAC-SHA-256 over all three.
    Standard,
    /// A hexadecimal HMAC-SHA-256 over the body alone, in a header of the hook's choice, with or without `sha256=`.
    Body,
}

/// What a field of a payload has to be.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The field, as a JSON pointer.
    pub field: String,
    /// Exactly this.
    pub equals: Option<Value>,
    /// Or one of these.
    pub one_of: Option<Vec<Value>>,
}

/// What a payload becomes, where every condition holds. `{/a/b}` in a text stands for that field of the payload.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// The conditions.
    #[serde(default)]
    pub when: Vec<When>,
    /// What the event is about.
    pub entity: String,
    /// The kind of change.
    pub change_kind: String,
    /// What makes a repeat the same event; the whole payload without one.
    pub id: Option<String>,
    /// The field that says when it was observed, as a JSON pointer.
    pub observed_at: Option<String>,
    /// Evidence on record that it cites.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// The fields that are kept with the event, as JSON pointers.
    #[serde(default)]
    pub keep: Vec<String>,
}

/// A source that speaks by webhooks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// The last part of its address: `/hooks/NAME`.
    pub name: String,
    /// The registered source.
    pub source_id: SourceId,
    /// The emitter of that source whom the hook speaks for.
    pub identity: ActorId,
    /// How its sender is known.
    pub scheme: Scheme,
    /// The file with the shared secret, its owner's alone.
    pub secret_file: PathBuf,
    /// The header with the signature, where the scheme leaves it open.
    pub header: Option<String>,
    /// How far off a signed time may be, in milliseconds. Default five minutes.
    #[serde(default = "replay_window_ms")]
    pub replay_window_ms: u64,
    /// What payloads become; the first that fits counts.
    #[serde(default)]
    pub map: Vec<Mapping>,
}

const fn replay_window_ms() -> u64 {
    5 * 60_000
}

/// How the service is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Under which address it is reached, without a slash at its end; where it listens, without one.
    pub public_url: Option<String>,
    /// Its certificate and key, where it speaks TLS itself.
    pub tls: Option<Tls>,
    /// Who speaks TLS for it: connections from anywhere else are closed at once.
    pub trusted_proxies: Vec<IpAddr>,
    /// The longest body of a request, in bytes.
    pub body_bytes_max: usize,
    /// How many requests a caller may make in a minute.
    pub requests_per_minute: u32,
    /// How many connections are open at once.
    pub connections_max: usize,
    /// How many streams of changes are open at once.
    pub streams_max: usize,
    /// How long a browser stays signed in, in milliseconds.
    pub session_ms: u64,
    /// After how long without a request an answer that gives authority is asked for once more, in milliseconds.
    pub ask_again_ms: u64,
    /// The people, as far as there is something to say about them.
    pub people: Vec<Person>,
    /// The sources that speak by webhooks.
    pub webhooks: Vec<Webhook>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    listen: Option<SocketAddr>,
    public_url: Option<String>,
    tls: Option<Tls>,
    #[serde(default)]
    trusted_proxies: Vec<IpAddr>,
    body_bytes_max: Option<usize>,
    requests_per_minute: Option<u32>,
    connections_max: Option<usize>,
    streams_max: Option<usize>,
    session_ms: Option<u64>,
    ask_again_ms: Option<u64>,
    #[serde(default)]
    person: Vec<Person>,
    #[serde(default)]
    webhook: Vec<Webhook>,
}

impl Http {
    /// Reads the section; without one, the service listens on this machine alone.
    pub(super) fn read(source: &Source, file: &mut Map<String, Value>, directory: &Path) -> Result<Self, Misfit> {
        let section = file.remove("http").unwrap_or(Value::Object(Map::new()));
        let section: Section = source.typed("http", section)?;
        let tls =
            section.tls.map(|tls| Tls { certificate: directory.join(tls.certificate), key: directory.join(tls.key) });
        let http = Self {
            listen: section.listen.unwrap_or(LISTEN),
            public_url: section.public_url.map(|url| url.trim_end_matches('/').to_owned()),
            tls,
            trusted_proxies: section.trusted_proxies,
            body_bytes_max: section.body_bytes_max.unwrap_or(1 << 20),
            requests_per_minute: section.requests_per_minute.unwrap_or(600),
            connections_max: section.connections_max.unwrap_or(1024),
            streams_max: section.streams_max.unwrap_or(64),
            session_ms: section.session_ms.unwrap_or(30 * 24 * 3_600_000),
            ask_again_ms: section.ask_again_ms.unwrap_or(15 * 60_000),
            people: section.person,
            webhooks: section
                .webhook
                .into_iter()
                .map(|hook| Webhook { secret_file: directory.join(&hook.secret_file), ..hook })
                .collect(),
        };
        http.check(source)?;
        Ok(http)
    }

    /// Reads the section alone, whatever else the file says.
    ///
    /// # Errors
    /// [`Misfit`] with file, line, column and field.
    pub fn of(directory: &Path) -> Result<Self, Misfit> {
        let (source, mut file) = Source::read(&directory.join(super::FILE))?;
        let directory = std::path::absolute(directory).map_err(|error| source.misfit("", error.to_string()))?;
        Self::read(&source, &mut file, &directory)
    }

    /// The address under which the service is reached, as far as the file says.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        self.public_url.clone().unwrap_or_else(|| format!("{scheme}://{}", self.listen))
    }

    fn check_hooks(&self, source: &Source) -> Result<(), Misfit> {
        for (index, hook) in self.webhooks.iter().enumerate() {
            let field = |name: &str| format!("http.webhook.{index}.{name}");
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            if hook.name.is_empty() || !hook.name.bytes().all(plain) {
                return Err(source.misfit(field("name"), "letters, digits and - _ . alone"));
            }
            if self.webhooks.iter().take(index).any(|other| other.name == hook.name) {
                return Err(source.misfit(field("name"), "another webhook has this name"));
            }
            if hook.scheme == Scheme::Body && hook.header.is_none() {
                return Err(source.misfit(field("header"), "say which header has the signature"));
            }
            for (index, map) in hook.map.iter().enumerate() {
                let pointers = map.when.iter().map(|when| &when.field).chain(&map.keep).chain(&map.observed_at);
                if let Some(wrong) = pointers.into_iter().find(|pointer| !pointer.starts_with('/')) {
                    let reason = format!("`{wrong}` is no JSON pointer; one begins with a slash");
                    return Err(source.misfit(field(&format!("map.{index}")), reason));
                }
                if map.when.iter().any(|when| when.equals.is_some() == when.one_of.is_some()) {
                    let reason = "a condition says `equals` or `one_of`";
                    return Err(source.misfit(field(&format!("map.{index}.when")), reason));
                }
            }
        }
        Ok(())
    }

    fn check(&self, source: &Source) -> Result<(), Misfit> {
        self.check_hooks(source)?;
        let plain = self.tls.is_none();
        if plain && !self.listen.ip().is_loopback() && self.trusted_proxies.is_empty() {
            let reason = "plain HTTP is served on a loopback address only; name TLS files, or the addresses of the proxies \
                          that speak TLS for it";
            return Err(source.misfit("http.listen", reason));
        }
        let Some(url) = &self.public_url else {
            return match plain && !self.trusted_proxies.is_empty() {
                true => Err(source.misfit("http.public_url", "behind a proxy, say under which address it is reached")),
                false => Ok(()),
            };
        };
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
        let well_formed = !host.is_empty()
            && host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']'));
        if !well_formed {
            return Err(source.misfit("http.public_url", "an address such as https://closer.example, without a path"));
        }
        let local = ["localhost", "127.0.0.1", "[::1]"];
        let is_local = local.iter().any(|name| host == *name || host.starts_with(&format!("{name}:")));
        match url.starts_with("https://") || is_local {
            true => Ok(()),
            false => Err(source.misfit("http.public_url", "beyond this machine it is reached by https:// alone")),
        }
    }

    /// What is said about a person, where something is.
    #[must_use]
    pub fn person(&self, identity: &ActorId) -> Option<&Person> {
        self.people.iter().find(|person| person.identity == *identity)
    }

    /// The issuer whose restrictions this identity makes.
    #[must_use]
    pub fn restricts_as(&self, identity: &ActorId) -> ActorId {
        self.person(identity).and_then(|person| person.restricts_as.clone()).unwrap_or_else(|| identity.clone())
    }
}
