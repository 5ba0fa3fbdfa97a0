//! Asking the process that runs a space.

use super::{LINE_BYTES_MAX, Place};
use crate::error::Error;
use crate::request::{Answer, Asked};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Sends one request to whoever holds the store, and waits for the answer.
///
/// # Errors
/// [`Error::Unreachable`] where nobody answers, or not in this language.
pub fn ask(store: &Path, asked: &Asked) -> Result<Answer, Error> {
    exchange(store, asked).map_err(|error| Error::Unreachable {
        socket: store.join(super::NAME).display().to_string(),
        reason: error.to_string(),
    })
}

/// Whether somebody listens on the store's socket.
#[must_use]
pub fn listens(store: &Path) -> bool {
    Place::of(store).is_ok_and(|place| UnixStream::connect(&place.path).is_ok())
}

fn exchange(store: &Path, asked: &Asked) -> std::io::Result<Answer> {
    let place = Place::of(store)?;
    let mut stream = UnixStream::connect(&place.path)?;
    let mut line = serde_json::to_vec(asked)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = Vec::new();
    BufReader::new(stream).take(LINE_BYTES_MAX).read_until(b'\n', &mut answer)?;
    match answer.ends_with(b"\n") {
        true => Ok(serde_json::from_slice(&answer)?),
        false => Err(std::io::Error::other("the answer broke off")),
    }
}
