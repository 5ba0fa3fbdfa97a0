//! What is said, where, and how a request finds its space.

use super::exit::Exit;
use super::progress;
use crate::deployment::{Deployment, Misfit};
use crate::error::Error;
use crate::request::{self, Answer, Asked, Request};
use crate::socket;
use crate::space::{Resting, Space};
use crate::wiring::{is_founded, lost_log};
use closer_contracts::id::ActorId;
use closer_store::{Log, StoreError};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a verb waits for another one that holds the store, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// How results are told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Talk {
    pub(super) json: bool,
}

impl Talk {
    /// One line of talk.
    pub(super) fn say(self, line: &str) {
        write_line(std::io::stderr(), &shown(line, false));
    }

    /// One line of data.
    pub(super) fn put(self, line: &str) {
        match self.json {
            true => write_line(std::io::stdout(), line),
            false => write_line(std::io::stdout(), &shown(line, false)),
        }
    }

    /// Tells an answer: data to stdout, what went wrong to stderr too.
    pub(super) fn tell(self, answer: &Answer) -> Exit {
        let exit = Exit::from(answer);
        match (self.json, exit) {
            (true, _) => self.put(&answer.data.to_string()),
            (false, Exit::Ok) => answer.text.iter().for_each(|line| self.put(line)),
            (false, _) => answer.text.iter().for_each(|line| self.say(line)),
        }
        exit
    }

    /// Tells why something failed.
    pub(super) fn failed(self, error: &Error) -> Exit {
        let answer = Answer::failed(error);
        let misfit = if let Error::Deployment(misfit) = error { Some(misfit) } else { None };
        let exit = match (matches!(error, Error::Unreachable { .. }), misfit) {
            (true, _) => Exit::Unreachable,
            (false, Some(misfit)) if misfit.is_absent() => Exit::NotFound,
            (false, _) => Exit::from(&answer),
        };
        let data = misfit.map_or(answer.data, misfit_data);
        if self.json {
            self.put(&data.to_string());
        }
        let mut line = format!("error: {error}");
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            line.push_str(&format!(": {inner}"));
            cause = inner.source();
        }
        write_line(std::io::stderr(), &shown(&line, true));
        exit
    }
}

/// Where the file as a whole is meant, no place in it is told.
fn misfit_data(misfit: &Misfit) -> Value {
    let place =
        [("line", json!(misfit.line)), ("column", json!(misfit.column))].into_iter().filter(|_| misfit.line > 0);
    let field = Some(("field", json!(misfit.field))).filter(|_| misfit.line > 0 || !misfit.field.is_empty());
    let told = [("error", json!(misfit.reason)), ("file", json!(misfit.file))].into_iter().chain(place).chain(field);
    told.map(|(name, value)| (name.to_owned(), value)).collect::<Map<String, Value>>().into()
}

/// A line as a terminal may show it: what controls the terminal or the direction of text is written out. Much of what is told
/// was written by agents and sources, and none of that draws on the place where a person decides.
fn shown(line: &str, keeps_lines: bool) -> String {
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        let directs = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match character {
            '\n' if keeps_lines => shown.push('\n'),
            _ if directs || character.is_control() => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    shown
}

/// A reader that went away is no error of ours.
fn write_line(mut to: impl Write, line: &str) {
    if writeln!(to, "{line}").is_err() {
        tracing::debug!("nobody reads any more");
    }
}

/// Asks the space of a deployment: whoever holds it, or the store itself where nobody does.
pub(super) async fn ask(
    directory: &Path,
    identity: Option<ActorId>,
    request: Request,
    talk: Talk,
) -> Result<Exit, Error> {
    let store = Deployment::store_of(directory)?;
    if let Some(lost) = lost_log(&store) {
        return Err(Error::Store(lost.into()));
    }
    if !is_founded(&store) {
        let text =
            format!("there is no space in {} yet; begin with: closer init {}", store.display(), directory.display());
        return Ok(talk.tell(&Answer::absent(text)));
    }
    let patience = Instant::now() + PATIENCE;
    loop {
        let answer = match at_rest(&store, identity.clone(), request.clone()).await {
            // Whoever holds the store and does not listen is another verb, and soon done.
            Err(Error::Store(StoreError::Locked)) if !socket::listens(&store) && Instant::now() < patience => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(Error::Store(StoreError::Locked)) => {
                let waiting = progress::spinner("waiting for the running process");
                let answer = socket::ask(&store, &Asked { identity, request });
                waiting.finish_and_clear();
                answer?
            }
            answer => answer?,
        };
        return Ok(talk.tell(&answer));
    }
}

/// Answers from a store that nobody holds.
async fn at_rest(store: &Path, identity: Option<ActorId>, request: Request) -> Result<Answer, Error> {
    if matches!(request, Request::Verify) {
        let bar = progress::bar("segments");
        let answer = request::verify_at_rest(store, &mut |at| progress::advance(&bar, at.segments, at.segments_total))?;
        bar.finish_and_clear();
        return Ok(answer);
    }
    if matches!(request, Request::Rebuild) {
        let log = Log::open(store, None)?;
        let bar = progress::bar("records");
        let total = log.durable().0;
        let answer = request::rebuild(&log, &mut |at| progress::advance(&bar, at, total))?;
        bar.finish_and_clear();
        return Ok(answer);
    }
    let reading = progress::spinner("reading the log");
    let space = Resting::open(store)?;
    reading.finish_and_clear();
    let identity = identity.unwrap_or_else(|| request::default_identity(&space.view()));
    if let Request::Backup { destination } = &request {
        let copying = progress::spinner("copying");
        let answer = request::backup(&space, &identity, destination, &mut |bytes| copying.set_position(bytes))?;
        copying.finish_and_clear();
        return Ok(answer);
    }
    request::answer(&space, &identity, request).await
}
