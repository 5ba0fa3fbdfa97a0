//! What stands behind the door: the space, who may come in, and how much at once.

use super::hooks::Hook;
use super::limit::Limit;
use super::metrics::Counts;
use super::problem::Problem;
use super::replies::Replies;
use crate::access::{Access, Scope};
use crate::deployment::Http;
use crate::error::Error;
use crate::request::{self, Answer, Outcome, Request};
use crate::space::{Running, Space};
use crate::web::{Heard, Memory};
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use closer_contracts::id::ActorId;
use closer_contracts::time::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Semaphore, watch};

/// How many failed attempts to come in an address may make in a minute.
const FAILED_PER_MINUTE: u32 = 30;

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The address the connection comes from.
    pub address: IpAddr,
    /// Whether it is one beyond the bound, which is heard only where it restricts.
    pub crowded: bool,
}

/// Whoever came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The registered identity.
    pub identity: ActorId,
    /// By what the caller is told apart: the token's id.
    pub name: String,
}

/// One request as a route's handler gets it.
#[derive(Debug)]
pub(crate) struct Call {
    /// Who asks; nobody on routes that are open.
    pub(crate) caller: Option<Caller>,
    /// What stands in the path's places.
    pub(crate) places: Vec<(String, String)>,
    /// The address asked for.
    pub(crate) uri: Uri,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The body, whole.
    pub(crate) body: Bytes,
    /// Whether only what restricts is heard.
    pub(crate) crowded: bool,
}

impl Call {
    /// The identity that asks.
    ///
    /// # Errors
    /// Where nobody came in.
    pub(crate) fn identity(&self) -> Result<&ActorId, Problem> {
        let caller = self.caller.as_ref().ok_or_else(|| Problem::unauthenticated("a bearer token is needed"))?;
        Ok(&caller.identity)
    }

    /// What stands in a place of the path.
    #[must_use]
    pub(crate) fn place(&self, name: &str) -> &str {
        self.places.iter().find(|(place, _)| place == name).map_or("", |(_, text)| text)
    }

    /// The query, as a type that refuses what it does not know.
    ///
    /// # Errors
    /// `unreadable`, with the reason.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let query = axum::extract::Query::try_from_uri(&self.uri);
        query.map(|axum::extract::Query(query)| query).map_err(|error| Problem::unreadable(error.body_text()))
    }

    /// The body, as JSON of a type that refuses what it does not know.
    ///
    /// # Errors
    /// `unreadable`, with the member that does not fit.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let mut reader = serde_json::Deserializer::from_slice(&self.body);
        let read = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            Problem::unreadable(format!("{path}: {}", error.into_inner()))
        })?;
        reader.end().map_err(|error| Problem::unreadable(error.to_string()))?;
        Ok(read)
    }

    /// A header, where it is there once and is text.
    #[must_use]
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next()?;
        match values.next() {
            None => first.to_str().ok(),
            Some(_) => None,
        }
    }
}

/// The door of one running space.
pub struct Door {
    /// The space.
    pub space: Arc<Running>,
    /// The section `[http]`.
    pub settings: Http,
    /// Tokens, links and sessions.
    pub access: Access,
    /// The address under which the service is reached, without a slash at its end.
    pub origin: String,
    /// Turns true when the service is asked to end.
    pub stopping: watch::Receiver<bool>,
    pub(super) streams: Arc<Semaphore>,
    pub(crate) limit: Limit,
    pub(crate) failures: Limit,
    pub(super) replies: Replies,
    pub(super) counts: Counts,
    pub(super) hooks: Vec<Hook>,
    pub(crate) memory: Memory,
    pub(crate) heard: Heard,
    hosts: Vec<String>,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Door {
    /// The door of a space; `listen` is where it is really reached, also where a port was to be chosen.
    ///
    /// # Errors
    /// A webhook's secret that cannot be used.
    pub(crate) fn new(
        space: Arc<Running>,
        access: Access,
        memory: Memory,
        settings: Http,
        listen: std::net::SocketAddr,
        stopping: watch::Receiver<bool>,
    ) -> Result<Self, Error> {
        let hooks = settings.webhooks.iter().map(Hook::open).collect::<Result<Vec<_>, _>>()?;
        let settings = Http { listen, ..settings };
        let origin = settings.origin();
        let mut hosts = vec![origin.split_once("://").map_or("", |(_, host)| host).to_ascii_lowercase()];
        hosts.push(listen.to_string());
        if listen.ip().is_loopback() {
            hosts.push(format!("localhost:{}", listen.port()));
        }
        Ok(Self {
            streams: Arc::new(Semaphore::new(settings.streams_max)),
            limit: Limit::new(settings.requests_per_minute),
            failures: Limit::new(FAILED_PER_MINUTE),
            replies: Replies::default(),
            counts: Counts::default(),
            space,
            settings,
            access,
            memory,
            heard: Heard::default(),
            origin,
            stopping,
            hooks,
            hosts,
        })
    }

    /// Whether the service is reached by TLS, by itself or through a proxy.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.origin.starts_with("https://")
    }

    /// The runtime's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.space.moment().now
    }

    /// Whether a request names this service as its host: nobody else's name leads here.
    #[must_use]
    pub fn is_own_host(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else { return false };
        let host = host.to_str().unwrap_or_default().to_ascii_lowercase();
        let absolute = uri.authority().is_none_or(|authority| authority.as_str().eq_ignore_ascii_case(&host));
        absolute && self.hosts.contains(&host)
    }

    /// Who is told apart behind an address: what a trusted proxy says it is, where one says so.
    #[must_use]
    pub fn client(&self, peer: Peer, headers: &HeaderMap) -> IpAddr {
        if !self.settings.trusted_proxies.contains(&peer.address) {
            return peer.address;
        }
        let forwarded = headers.get_all("x-forwarded-for").iter().next_back();
        let last = forwarded.and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
        last.unwrap_or(peer.address)
    }

    /// Who comes in with the token that a request bears, for what this scope opens.
    ///
    /// # Errors
    /// Nobody; somebody without this scope; somebody whose identity is revoked; too many that failed.
    pub fn come_in(&self, headers: &HeaderMap, scope: Scope, client: IpAddr) -> Result<Caller, Problem> {
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let secret = bearer.and_then(|bearer| {
            let (scheme, secret) = bearer.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
        });
        let Some(secret) = secret else {
            return Err(Problem::unauthenticated("a bearer token is needed; `closer token new` makes one"));
        };
        let held = self.access.held().map_err(|error| Problem::failed(&error))?;
        let Some(token) = held.token(secret, &self.now()) else {
            if !self.failures.admits(&client.to_string(), Instant::now()) {
                return Err(Problem::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "too_many_failures",
                    "too many failed attempts",
                ));
            }
            return Err(Problem::unauthenticated("this token opens nothing: it is unknown, over or taken back"));
        };
        if let Some(answer) = request::shut_out(&self.space.view(), &token.identity) {
            return Err(Problem { status: StatusCode::UNAUTHORIZED, ..Problem::of(&answer) });
        }
        if !token.scopes.contains(&scope) {
            let detail = format!("this token does not open `{}`", scope.as_str());
            return Err(Problem::new(StatusCode::FORBIDDEN, "scope_missing", detail));
        }
        Ok(Caller { identity: token.identity.clone(), name: token.token_id.clone() })
    }

    /// Asks the space, as the socket would.
    ///
    /// # Errors
    /// Whatever is not as asked.
    pub async fn ask(&self, identity: &ActorId, request: Request) -> Result<Value, Problem> {
        let answer = self.answer(identity, request).await?;
        match answer.outcome {
            Outcome::Done => Ok(answer.data),
            Outcome::Refused | Outcome::NotFound | Outcome::Corruption | Outcome::Failed => Err(Problem::of(&answer)),
        }
    }

    /// Asks the space and gives the answer as it is.
    ///
    /// # Errors
    /// What kept it from being answered.
    pub async fn answer(&self, identity: &ActorId, request: Request) -> Result<Answer, Problem> {
        request::answer(&*self.space, identity, request).await.map_err(|error| Problem::failed(&error))
    }
}
