//! Answering whoever the kernel vouches for.
//!
//! A bounded number of connections is served at a time; one that asks nothing gives way where others come. Whoever comes
//! beyond that is still heard, once and within a moment: a restriction is made, anything else is told to come again. So
//! nobody who restricts waits for others.

use super::{LINE_BYTES_MAX, Place};
use crate::error::Error;
use crate::request::{self, Answer, Asked, Outcome};
use crate::space::{Running, Space};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The most connections that are served at a time.
const CONNECTIONS_MAX: usize = 64;
/// The most further connections that are heard once, at the same time.
const HEARD_MAX: usize = 64;
/// How long one that is heard once may take to say what it wants.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

/// How long a connection may ask nothing before another one may take its place.
const IDLE_MIN: Duration = Duration::from_millis(100);
/// How often whoever waits for an answer is told that it is being worked on.
const SIGN_EVERY: Duration = Duration::from_secs(1);

/// A bound socket; its name is gone when it is dropped.
pub struct Listener {
    listener: UnixListener,
    place: Place,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.place.path) {
            tracing::debug!(%error, "the socket's name stays");
        }
    }
}

impl Listener {
    /// Binds the socket of a store that this process holds. One that a dead process left behind is replaced.
    ///
    /// # Errors
    /// What the system says.
    pub fn bind(store: &Path) -> Result<Self, Error> {
        let bind = || {
            let place = Place::of(store)?;
            match std::fs::remove_file(&place.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let listener = UnixListener::bind(&place.path)?;
            // The store's folder is its owner's alone, so that nobody connects before the mode is set.
            std::fs::set_permissions(&place.path, std::fs::Permissions::from_mode(0o600))?;
            Ok(Self { listener, place })
        };
        bind().map_err(Error::io(format!("binding {}", store.join(super::NAME).display())))
    }

    /// Serves until it is dropped.
    pub async fn serve(self, space: Arc<Running>) {
        let (mut served, mut heard) = (JoinSet::new(), JoinSet::new());
        let idle = Arc::new(Idle::default());
        loop {
            while heard.len() >= HEARD_MAX {
                heard.join_next().await;
            }
            while heard.try_join_next().is_some() || served.try_join_next().is_some() {}
            match self.listener.accept().await {
                Ok((stream, _)) if !is_own(&stream) => tracing::warn!("a connection of another user was turned away"),
                Ok((stream, _)) if served.len() < CONNECTIONS_MAX || idle.end_oldest() => {
                    served.spawn(connection(BufReader::new(stream), Arc::clone(&space), Arc::clone(&idle)));
                }
                Ok((stream, _)) => {
                    heard.spawn(hear(BufReader::new(stream), Arc::clone(&space)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// Whether the peer is the user that runs this process; the kernel says so. Nobody else is served.
fn is_own(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::getuid().as_raw())
}

/// The connections that ask nothing at the moment, by when they began to: the first to give way where others come.
#[derive(Default)]
struct Idle {
    connections: Mutex<(u64, Waiting)>,
}

/// By place: since when, and what tells it to give way.
type Waiting = BTreeMap<u64, (Instant, Arc<Notify>)>;

impl Idle {
    /// A connection begins to wait for its next request.
    fn enter(&self) -> (u64, Arc<Notify>) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, waiting) = &mut *connections;
        *next += 1;
        let ended = Arc::new(Notify::new());
        waiting.insert(*next, (Instant::now(), Arc::clone(&ended)));
        (*next, ended)
    }

    /// It waits no more; false where it was told to give way meanwhile.
    fn leave(&self, place: u64) -> bool {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.1.remove(&place).is_some()
    }

    /// Tells the one that has waited longest to give way, where it has waited long enough.
    fn end_oldest(&self) -> bool {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = connections.1.first_entry().filter(|oldest| oldest.get().0.elapsed() >= IDLE_MIN);
        oldest.map(|oldest| oldest.remove().1.notify_one()).is_some()
    }
}

/// Answers a connection's requests one after another, until it ends or has to give way.
async fn connection(mut stream: BufReader<UnixStream>, space: Arc<Running>, idle: Arc<Idle>) {
    loop {
        let (place, ended) = idle.enter();
        let asked = tokio::select! {
            asked = next(&mut stream) => asked,
            () = ended.notified() => None,
        };
        let (true, Some(asked)) = (idle.leave(place), asked) else { return };
        let (answer, broken) = match asked {
            Ok(asked) => (attended(&mut stream, &space, asked).await, false),
            Err(Unread { answer, broken }) => (answer, broken),
        };
        if tell(&mut stream, &answer).await.is_err() || broken {
            return;
        }
    }
}

/// Works on a request, and gives whoever waits for the answer an empty line as a sign of life now and then: a process that is
/// stopped gives none.
async fn attended(stream: &mut BufReader<UnixStream>, space: &Arc<Running>, asked: Asked) -> Answer {
    let mut working = JoinSet::new();
    let space = Arc::clone(space);
    working.spawn(async move { answer(&space, asked).await });
    let mut signs = tokio::time::interval_at(tokio::time::Instant::now() + SIGN_EVERY, SIGN_EVERY);
    loop {
        tokio::select! {
            answered = working.join_next() => {
                let broken = || malformed("its answer broke off");
                return answered.and_then(Result::ok).unwrap_or_else(broken);
            }
            _ = signs.tick() => {
                if stream.write_all(b"\n").await.is_err() {
                    tracing::debug!("whoever asked went away; what was asked is done all the same");
                }
            }
        }
    }
}

/// Hears one request of a connection beyond the bound.
async fn hear(mut stream: BufReader<UnixStream>, space: Arc<Running>) {
    let Ok(Some(asked)) = tokio::time::timeout(HEARD_WITHIN, next(&mut stream)).await else {
        return;
    };
    let answer = match asked {
        Ok(asked) if asked.request.is_urgent(&space.view()) => attended(&mut stream, &space, asked).await,
        Ok(_) => Answer::failed(&Error::Actors(closer_actors::Error::Busy)),
        Err(Unread { answer, .. }) => answer,
    };
    if tell(&mut stream, &answer).await.is_err() {
        tracing::debug!("whoever asked went away");
    }
}

/// Bytes that are no request, with what is said to them; `broken` where nothing more can be read after them.
struct Unread {
    answer: Answer,
    broken: bool,
}

/// The next request; nothing at the end of the connection.
async fn next(stream: &mut BufReader<UnixStream>) -> Option<Result<Asked, Unread>> {
    let mut line = Vec::new();
    match stream.take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await {
        Ok(0) | Err(_) => None,
        Ok(_) if line.ends_with(b"\n") => Some(
            serde_json::from_slice(&line)
                .map_err(|error| Unread { answer: malformed(&error.to_string()), broken: false }),
        ),
        Ok(_) => {
            let reason = "a request is one line of JSON that ends with a line break, of at most 16 MiB";
            Some(Err(Unread { answer: malformed(reason), broken: true }))
        }
    }
}

async fn tell(stream: &mut BufReader<UnixStream>, answer: &Answer) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    stream.write_all(&line).await
}

fn malformed(reason: &str) -> Answer {
    let reason = format!("the request cannot be read: {reason}");
    Answer::new(Outcome::Failed, serde_json::json!({ "error": reason }), vec![reason])
}

async fn answer(space: &Running, asked: Asked) -> Answer {
    let identity = asked.identity.unwrap_or_else(|| request::default_identity(&space.view()));
    match request::answer(space, &identity, asked.request).await {
        Ok(answer) => answer,
        Err(error) => Answer::failed(&error),
    }
}
