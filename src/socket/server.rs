//! Answering whoever the kernel vouches for.

use super::{LINE_BYTES_MAX, Place};
use crate::error::Error;
use crate::request::{self, Answer, Asked, Outcome};
use crate::space::{Running, Space};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// The most connections that are served at once; further ones wait.
const CONNECTIONS_MAX: usize = 64;

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
        let mut connections = JoinSet::new();
        loop {
            while connections.len() >= CONNECTIONS_MAX {
                connections.join_next().await;
            }
            while connections.try_join_next().is_some() {}
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&space)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// Whether the peer is the user that runs this process; the kernel says so. Nobody else is served.
fn is_own(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::getuid().as_raw())
}

async fn connection(stream: UnixStream, space: Arc<Running>) {
    if !is_own(&stream) {
        tracing::warn!("a connection of another user was turned away");
        return;
    }
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let read = (&mut stream).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await;
        let answer = match read {
            Ok(0) | Err(_) => return,
            Ok(_) if line.ends_with(b"\n") => reply(&space, &line).await,
            Ok(_) => malformed("a request is one line of JSON that ends with a line break, of at most 16 MiB"),
        };
        let ended = !line.ends_with(b"\n");
        let mut line = serde_json::to_vec(&answer).unwrap_or_default();
        line.push(b'\n');
        if stream.write_all(&line).await.is_err() || ended {
            return;
        }
    }
}

fn malformed(reason: &str) -> Answer {
    let reason = format!("the request cannot be read: {reason}");
    Answer { outcome: Outcome::Failed, code: None, data: serde_json::json!({ "error": reason }), text: vec![reason] }
}

async fn reply(space: &Running, line: &[u8]) -> Answer {
    let asked: Asked = match serde_json::from_slice(line) {
        Ok(asked) => asked,
        Err(error) => return malformed(&error.to_string()),
    };
    let identity = asked.identity.unwrap_or_else(|| request::default_identity(&space.view()));
    match request::answer(space, &identity, asked.request).await {
        Ok(answer) => answer,
        Err(error) => Answer::failed(&error),
    }
}
