//! What is said, where, and how a request finds its space.

use super::exit::Exit;
use super::output;
use super::progress;
use crate::deployment::{Deployment, Misfit};
use crate::error::Error;
use crate::request::{self, Answer, Asked, Outcome, Request};
use crate::socket;
use crate::space::{Resting, Space};
use crate::visible::visible;
use crate::wiring::{is_founded, lost_log};
use closer_contracts::canonical;
use closer_contracts::id::ActorId;
use closer_store::{Log, StoreError};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
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
    /// The deployment's folder as it was given, for what is told to be typed next.
    pub(super) directory: &'static Path,
}

impl Talk {
    /// One line of talk.
    pub(super) fn say(self, line: &str) {
        write_line(std::io::stderr(), &visible(&shortened(line), false));
    }

    /// One line of data.
    pub(super) fn put(self, line: &str) {
        match self.json {
            true => output::line(line),
            false => output::line(&visible(line, false)),
        }
    }

    /// A verb as it is typed for this deployment.
    pub(super) fn command(self, arguments: &[&str]) -> String {
        let mut line = "closer".to_owned();
        let names_folder = matches!(arguments.first(), Some(&("init" | "run")));
        if self.directory != Path::new(".") && !names_folder {
            line.push_str(&format!(" -C {}", quoted(&self.directory.to_string_lossy())));
        }
        for argument in arguments {
            line.push_str(&format!(" {}", quoted(argument)));
        }
        line
    }

    /// What may be typed next, for people.
    pub(super) fn next(self, what: &str, arguments: &[&str]) {
        if !self.json {
            self.say(&format!("{what}: {}", self.command(arguments)));
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
        if !self.json {
            for hint in &answer.hints {
                let arguments: Vec<&str> = hint.arguments.iter().map(String::as_str).collect();
                let line = format!("{}: {}", hint.what, self.command(&arguments));
                match exit == Exit::Ok {
                    true => self.put(&line),
                    false => self.say(&line),
                }
            }
        }
        exit
    }

    /// Tells why something failed.
    pub(super) fn failed(self, error: &Error) -> Exit {
        let answer = Answer::failed(error);
        if matches!(error, Error::Store(StoreError::NoRoom(_))) {
            return self.tell(&answer);
        }
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
        write_line(std::io::stderr(), &visible(&shortened(&format!("error: {}", error.told())), true));
        exit
    }

    /// A call that was wrong: said for people, and as a value where one was asked for.
    pub(super) fn misused(self, reason: &str) -> Exit {
        if self.json {
            self.put(&json!({ "error": reason }).to_string());
        }
        self.say(reason);
        Exit::Usage
    }

    /// The process was asked to end before it had an answer.
    pub(super) fn interrupted(self) -> Exit {
        let reason = "interrupted before there was an answer; what is on record stays";
        if self.json {
            self.put(&json!({ "error": reason }).to_string());
        }
        self.say(reason);
        Exit::Error
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

/// The longest stretch without a space that a line shows whole, in characters: no id, stream or key is as long.
const WORD_CHARACTERS_MAX: usize = 300;

/// A line without its overlong words: their beginning and how long they are.
pub(super) fn shortened(line: &str) -> Cow<'_, str> {
    if line.len() <= WORD_CHARACTERS_MAX {
        return Cow::Borrowed(line);
    }
    let word = |word: &str| match word.chars().count() {
        count if count > WORD_CHARACTERS_MAX => {
            let beginning: String = word.chars().take(60).collect();
            format!("{beginning}... ({count} characters)")
        }
        _ => word.to_owned(),
    };
    Cow::Owned(line.split(' ').map(word).collect::<Vec<_>>().join(" "))
}

/// An argument as a shell takes it.
fn quoted(argument: &str) -> Cow<'_, str> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,".contains(character);
    match !argument.is_empty() && argument.chars().all(plain) {
        true => Cow::Borrowed(argument),
        false => Cow::Owned(format!("'{}'", argument.replace('\'', r"'\''"))),
    }
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
    Ok(talk.tell(&asked(directory, identity, request).await?))
}

/// As [`ask`], with the answer untold.
pub(super) async fn asked(directory: &Path, identity: Option<ActorId>, request: Request) -> Result<Answer, Error> {
    let store = Deployment::store_of(directory)?;
    match unfounded(&store, directory)? {
        Some(answer) => Ok(answer),
        None => answered(&store, identity, request).await,
    }
}

/// As [`ask`], for bytes that are to be used as they stand: without `--json` they alone are data, in canonical JSON.
pub(super) async fn fetch(
    directory: &Path,
    identity: Option<ActorId>,
    request: Request,
    member: &str,
    talk: Talk,
) -> Result<Exit, Error> {
    let store = Deployment::store_of(directory)?;
    let answer = match unfounded(&store, directory)? {
        Some(answer) => answer,
        None => answered(&store, identity, request).await?,
    };
    match answer.data.get(member).filter(|_| answer.outcome == Outcome::Done && !talk.json) {
        Some(value) => {
            output::line(&String::from_utf8_lossy(&canonical::to_bytes(value)?));
            answer.text.iter().for_each(|line| talk.say(line));
            Ok(Exit::Ok)
        }
        None => Ok(talk.tell(&answer)),
    }
}

/// What is said of a deployment whose space was never founded.
///
/// # Errors
/// A log that is gone while what was derived from it is still there.
pub(super) fn unfounded(store: &Path, directory: &Path) -> Result<Option<Answer>, Error> {
    if let Some(lost) = lost_log(store) {
        return Err(Error::Store(lost.into()));
    }
    if let Err(error) = std::fs::read_dir(store)
        && error.kind() == std::io::ErrorKind::PermissionDenied
    {
        return Err(Error::io(format!("reading {}", store.display()))(error));
    }
    let absent = || Answer::absent(format!("there is no space in {} yet", store.display()));
    let answer = || absent().hint("begin with", ["init", &directory.to_string_lossy()]);
    Ok((!is_founded(store)).then(answer))
}

/// The answer of whoever holds the store, or of the store itself.
pub(super) async fn answered(store: &Path, identity: Option<ActorId>, request: Request) -> Result<Answer, Error> {
    let patience = Instant::now() + PATIENCE;
    loop {
        match at_rest(store, identity.clone(), request.clone()).await {
            // Whoever holds the store and does not listen is another verb, and soon done.
            Err(Error::Store(StoreError::Locked)) if !socket::listens(store) && Instant::now() < patience => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(Error::Store(StoreError::Locked)) => {
                let waiting = progress::spinner("waiting for the running process");
                let answer = socket::ask(store, &Asked { identity, request }).await;
                waiting.finish_and_clear();
                return answer;
            }
            answer => return answer,
        }
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
