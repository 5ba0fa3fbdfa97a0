//! Answering whoever the kernel vouches for.
//!
//! A bounded number of connections is served for as long as they last. Whoever comes beyond that is still heard, once and
//! within a moment: a restriction is made, anything else is told to come again. So nobody who restricts waits for others.

use super::{LINE_BYTES_MAX, Place};
use crate::error::Error;
use crate::request::{self, Answer, Asked, Outcome};
use crate::space::{Running, Space};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// The most connections that are served for as long as they last.
const CONNECTIONS_MAX: usize = 64;
/// The most further connections that are heard once, at the same time.
const HEARD_MAX: usize = 64;
/// How long one that is heard once may take to say what it wants.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

/// A bound socket.
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
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
            Ok(listener)
        };
        let listener = bind().map_err(Error::io(format!("binding {}", store.join(super::NAME).display())))?;
        Ok(Self { listener })
    }

    /// Serves until it is dropped.
    pub async fn serve(self, space: Arc<Running>) {
        let (mut served, mut heard) = (JoinSet::new(), JoinSet::new());
        loop {
            while heard.len() >= HEARD_MAX {
                heard.join_next().await;
            }
            while heard.try_join_next().is_some() || served.try_join_next().is_some() {}
            match self.listener.accept().await {
                Ok((stream, _)) if !is_own(&stream) => tracing::warn!("a connection of another user was turned away"),
                Ok((stream, _)) if served.len() < CONNECTIONS_MAX => {
                    served.spawn(connection(BufReader::new(stream), Arc::clone(&space)));
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

/// Answers a connection's requests one after another, until it ends.
async fn connection(mut stream: BufReader<UnixStream>, space: Arc<Running>) {
    while let Some(asked) = next(&mut stream).await {
        let (answer, broken) = match asked {
            Ok(asked) => (answer(&space, asked).await, false),
            Err(Unread { answer, broken }) => (answer, broken),
        };
        if tell(&mut stream, &answer).await.is_err() || broken {
            return;
        }
    }
}

/// Hears one request of a connection beyond the bound.
async fn hear(mut stream: BufReader<UnixStream>, space: Arc<Running>) {
    let Ok(Some(asked)) = tokio::time::timeout(HEARD_WITHIN, next(&mut stream)).await else {
        return;
    };
    let answer = match asked {
        Ok(asked) if asked.request.is_urgent(&space.view()) => answer(&space, asked).await,
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
    Answer { outcome: Outcome::Failed, code: None, data: serde_json::json!({ "error": reason }), text: vec![reason] }
}

async fn answer(space: &Running, asked: Asked) -> Answer {
    let identity = asked.identity.unwrap_or_else(|| request::default_identity(&space.view()));
    match request::answer(space, &identity, asked.request).await {
        Ok(answer) => answer,
        Err(error) => Answer::failed(&error),
    }
}
