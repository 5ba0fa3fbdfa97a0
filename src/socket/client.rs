//! Asking the process that runs a space.

use super::{LINE_BYTES_MAX, Place};
use crate::error::Error;
use crate::request::{Answer, Asked};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{Error as IoError, ErrorKind};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// How long the other side may be silent. While it works on an answer it gives signs of life much more often.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Sends one request to whoever holds the store, and waits for the answer.
///
/// # Errors
/// [`Error::Unreachable`] where nobody answers, or not in this language.
pub async fn ask(store: &Path, asked: &Asked) -> Result<Answer, Error> {
    exchange(store, asked).await.map_err(|error| Error::Unreachable {
        socket: store.join(super::NAME).display().to_string(),
        reason: error.to_string(),
    })
}

/// Whether somebody listens on the store's socket.
#[must_use]
pub fn listens(store: &Path) -> bool {
    // Without waiting: a process that is stopped still listens, and its queue may be full.
    let connect = |place: Place| {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(&place.path)?)
    };
    match Place::of(store).map(connect) {
        Ok(Ok(()) | Err(Errno::AGAIN)) => true,
        Ok(Err(_)) | Err(_) => false,
    }
}

async fn exchange(store: &Path, asked: &Asked) -> std::io::Result<Answer> {
    let place = Place::of(store)?;
    let mut stream = BufReader::new(heard(UnixStream::connect(&place.path)).await?);
    let mut line = serde_json::to_vec(asked)?;
    line.push(b'\n');
    heard(stream.write_all(&line)).await?;
    loop {
        let mut answer = Vec::new();
        heard((&mut stream).take(LINE_BYTES_MAX).read_until(b'\n', &mut answer)).await?;
        match answer.as_slice() {
            b"\n" => {}
            answer if answer.ends_with(b"\n") => return Ok(serde_json::from_slice(answer)?),
            _ => return Err(IoError::other("the answer broke off")),
        }
    }
}

/// The outcome, or that nothing came of it for too long.
async fn heard<T>(what: impl Future<Output = std::io::Result<T>>) -> std::io::Result<T> {
    let silent = || {
        let seconds = SILENCE_MAX.as_secs();
        IoError::new(ErrorKind::TimedOut, format!("it gave no sign of life for {seconds} s; is it stopped?"))
    };
    tokio::time::timeout(SILENCE_MAX, what).await.map_err(|_| silent())?
}
