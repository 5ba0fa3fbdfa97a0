//! Answering whoever the kernel vouches for.

use super::{Access, LINE_BYTES_MAX, Place};
use crate::error::Error;
use crate::request::{self, Answer, Asked, Outcome};
use crate::space::{Running, Space};
use closer_contracts::id::ActorId;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode};
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
    access: Vec<Access>,
}

impl Listener {
    /// Binds the socket of a store that this process holds. One that a dead process left behind is replaced.
    ///
    /// # Errors
    /// What the system says.
    pub fn bind(store: &Path, access: Vec<Access>) -> Result<Self, Error> {
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
        Ok(Self { listener, access })
    }

    /// Serves until it is dropped.
    pub async fn serve(self, space: Arc<Running>) {
        let access = Arc::new(self.access);
        let mut connections = JoinSet::new();
        loop {
            while connections.len() >= CONNECTIONS_MAX {
                connections.join_next().await;
            }
            while connections.try_join_next().is_some() {}
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&space), Arc::clone(&access)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// Who a peer may speak as: any identity of the deployment's own, or the one it is mapped to.
enum Peer {
    Own,
    Mapped(ActorId),
}

fn peer(stream: &UnixStream, access: &[Access]) -> Option<Peer> {
    let uid = stream.peer_cred().ok()?.uid();
    if uid == rustix::process::getuid().as_raw() {
        return Some(Peer::Own);
    }
    access.iter().find(|access| access.uid == uid).map(|access| Peer::Mapped(access.identity.clone()))
}

async fn connection(stream: UnixStream, space: Arc<Running>, access: Arc<Vec<Access>>) {
    let Some(peer) = peer(&stream, &access) else {
        tracing::warn!("a connection of another user was turned away");
        return;
    };
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let read = (&mut stream).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await;
        let answer = match read {
            Ok(0) | Err(_) => return,
            Ok(_) if line.ends_with(b"\n") => reply(&space, &peer, &line).await,
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

async fn reply(space: &Running, peer: &Peer, line: &[u8]) -> Answer {
    let asked: Asked = match serde_json::from_slice(line) {
        Ok(asked) => asked,
        Err(error) => return malformed(&error.to_string()),
    };
    let identity = match (peer, asked.identity) {
        (Peer::Own, Some(identity)) => identity,
        (Peer::Own, None) => request::default_identity(&space.view()),
        (Peer::Mapped(own), named) => match named.is_none_or(|named| named == *own) {
            true => own.clone(),
            false => {
                let reason = "this user of the machine speaks for one identity only";
                let denial = Denial::new(RefusalCode::Unauthenticated, CheckKind::Authentication, reason).of(own);
                return Answer::refused(&[denial]);
            }
        },
    };
    match request::answer(space, &identity, asked.request).await {
        Ok(answer) => answer,
        Err(error) => Answer::failed(&error),
    }
}
