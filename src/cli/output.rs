//! Standard output: every line reaches its reader, or the program says that it did not.
//!
//! A reader that closed the pipe has seen what it wanted and is no fault; a full disk under a redirection is one, and an
//! exit code of 0 would say otherwise.

use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

static LOST: OnceLock<String> = OnceLock::new();

/// Writes one line of data.
pub(super) fn line(text: &str) {
    let mut stdout = std::io::stdout().lock();
    note(writeln!(stdout, "{text}").and_then(|()| stdout.flush()));
}

/// Notes how a write went.
pub(super) fn note(written: std::io::Result<()>) {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => tracing::debug!("nobody reads any more"),
        Err(error) => {
            LOST.get_or_init(|| error.to_string());
        }
        Ok(()) => {}
    }
}

/// Why something that was written to standard output did not get there.
pub(super) fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}
