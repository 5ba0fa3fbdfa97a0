//! Exit codes. `docs/cli.md` lists them; they do not change their meaning.

use crate::request::{Answer, Outcome};

/// How a call of the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// As asked.
    Ok = 0,
    /// It failed.
    Error = 1,
    /// The call itself was wrong.
    Usage = 2,
    /// The protocol declined; the code is printed.
    Refused = 3,
    /// There is no such thing.
    NotFound = 4,
    /// Bytes on disk are not what was written.
    Corruption = 5,
    /// The run stopped at The Bench: somebody has to answer.
    AwaitingUser = 6,
    /// Another process holds the store and does not answer.
    Unreachable = 7,
    /// The run came to rest with obligations open and nobody asked.
    Open = 8,
}

impl From<&Answer> for Exit {
    fn from(answer: &Answer) -> Self {
        match answer.outcome {
            Outcome::Done => Self::Ok,
            Outcome::Refused => Self::Refused,
            Outcome::NotFound => Self::NotFound,
            Outcome::Corruption => Self::Corruption,
            Outcome::Failed => Self::Error,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
