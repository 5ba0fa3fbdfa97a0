//! The command line: verbs to requests, answers to lines or JSON, outcomes to exit codes.
//!
//! Data goes to stdout, talk to stderr. Every verb asks the process that runs the space, over its socket; where nobody
//! holds the store, it opens the store itself for that one request.

mod arguments;
mod eval;
mod event;
mod exit;
mod gate;
mod handoff;
mod hook;
mod incident;
mod init;
mod keys;
mod mcp;
mod output;
mod progress;
mod restrict;
mod run;
mod serve;
mod signed;
mod source;
mod talk;
mod token;
mod work;

pub use exit::Exit;

use arguments::{Arguments, Keys, Verb};
use clap::Parser;
use std::io::IsTerminal;
use std::path::Path;
use talk::Talk;

/// Runs the command line and gives the process's exit code.
#[must_use]
pub fn main() -> Exit {
    let exit = match Arguments::try_parse() {
        Ok(arguments) => called(arguments),
        Err(error) => uncalled(&error),
    };
    let Some(lost) = output::lost() else { return exit };
    let talk = Talk { json: false, directory: Path::new(".") };
    talk.say(&format!("error: what was to be told could not be written to standard output: {lost}"));
    match exit == Exit::Ok {
        true => Exit::Error,
        false => exit,
    }
}

/// Help and version are asked for; anything else is a mistake in the call.
fn uncalled(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        output::note(error.print());
        return Exit::Ok;
    }
    let whole = error.render();
    // The arguments could not be read, so that nothing but the word itself says how the answer is wanted.
    let json = std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
    if json {
        let text = whole.to_string();
        let told = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
        let reason = told.collect::<Vec<_>>().join(" ");
        let reason = reason.trim_start_matches("error: ");
        let talk = Talk { json, directory: Path::new(".") };
        talk.put(&serde_json::json!({ "error": talk::shortened(reason) }).to_string());
    }
    let text = match std::io::stderr().is_terminal() {
        true => whole.ansi().to_string(),
        false => whole.to_string(),
    };
    let lines: Vec<_> = text.lines().map(talk::shortened).collect();
    eprintln!("{}", lines.join("\n"));
    Exit::Usage
}

fn called(arguments: Arguments) -> Exit {
    trace_to_stderr(matches!(arguments.verb, Verb::Serve { .. }));
    let (directory, misplaced) = match arguments.place() {
        Ok(directory) => (directory, None),
        Err(reason) => (".".into(), Some(reason)),
    };
    let talk = Talk { json: arguments.json, directory: Box::leak(directory.into_boxed_path()) };
    if let Some(reason) = misplaced {
        return talk.misused(&reason);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return talk.failed(&crate::Error::io("starting the runtime")(error)),
    };
    let listening = {
        let _entered = runtime.enter();
        run::Stop::listen()
    };
    match listening {
        Ok(stop) => drop(runtime.spawn(run::end_early(stop, talk))),
        Err(error) => return talk.failed(&crate::Error::io("waiting for a signal")(error)),
    }
    let exit = runtime.block_on(perform(arguments, talk));
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    exit
}

/// What the program notices about itself, for operators; `CLOSER_LOG` says how much.
/// A service says it as JSON, one object a line, where `CLOSER_LOG_FORMAT` is `json`.
fn trace_to_stderr(serves: bool) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("CLOSER_LOG");
    let default = if serves { "info,sled=error" } else { "warn,sled=error" };
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(default));
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let to_stderr = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours);
    let as_json = std::env::var_os("CLOSER_LOG_FORMAT").is_some_and(|format| format == "json");
    let set = match (serves, as_json) {
        (true, true) => tracing::subscriber::set_global_default(to_stderr.json().flatten_event(true).finish()),
        (true, false) => tracing::subscriber::set_global_default(to_stderr.finish()),
        (false, _) => tracing::subscriber::set_global_default(to_stderr.without_time().finish()),
    };
    if set.is_err() {
        tracing::debug!("somebody listens already");
    }
}

async fn perform(arguments: Arguments, talk: Talk) -> Exit {
    let (directory, Arguments { identity, verb, .. }) = (talk.directory, arguments);
    if let Some(identity) = identity.as_ref().filter(|_| !verb.speaks()) {
        return talk.misused(&format!("this verb speaks for nobody; leave `--as {identity}` out"));
    }
    if let Some(key) = verb.key() {
        let done = match (verb.request(identity.as_ref()), identity) {
            (Ok(request), Some(person)) => signed::signed(directory, person, request, &key, talk).await,
            (Ok(_), None) => return talk.misused("a key is somebody's: name whose with --as"),
            (Err(reason), _) => return talk.misused(&reason),
        };
        return done.unwrap_or_else(|error| talk.failed(&error));
    }
    let done = match verb {
        Verb::Restrict(restrict) => restrict::restrict(directory, identity, restrict, talk).await,
        Verb::Init { .. } => init::init(directory, talk).await,
        Verb::Run(run) => run::run(&run, directory, talk).await,
        Verb::Serve { .. } => serve::serve(directory, talk).await,
        Verb::Gate(arguments) => gate::gate(directory, identity, arguments, talk).await,
        Verb::Token(verb) => token::token(directory, identity, verb, talk).await,
        Verb::Mcp { .. } => mcp::mcp(directory, identity, talk).await,
        Verb::Hook(asking) => return hook::hook(directory, identity, &asking, talk).await,
        Verb::Source(verb) => source::source(directory, identity, verb, talk).await,
        Verb::Signin => token::signin(directory, identity, talk).await,
        Verb::Restore { backup, destination } => init::restore(&backup, &destination, talk),
        Verb::Eval(verb) => eval::perform(&verb, talk),
        Verb::Keys(Keys::New { file }) => keys::new(&file, talk),
        Verb::Keys(Keys::Sign { file, payload }) => keys::sign(&file, &payload, talk),
        Verb::Event(event::Event::Draft { .. }) => match verb.request(identity.as_ref()) {
            Ok(request) => talk::fetch(directory, identity, request, "payload", talk).await,
            Err(reason) => return talk.misused(&reason),
        },
        Verb::Event(_)
        | Verb::Obligation(_)
        | Verb::Reentry(_)
        | Verb::Bench(_)
        | Verb::Grant(_)
        | Verb::Change(_)
        | Verb::Profile(_)
        | Verb::Briefcase
        | Verb::Handoff(_)
        | Verb::Budgets
        | Verb::Restrictions
        | Verb::Lift { .. }
        | Verb::Search { .. }
        | Verb::Receipt(_)
        | Verb::Export { .. }
        | Verb::Incident(_)
        | Verb::Work(_)
        | Verb::Verify
        | Verb::Rebuild
        | Verb::Backup { .. }
        | Verb::Keys(Keys::List | Keys::Rotate { .. } | Keys::Revoke { .. }) => match verb.request(identity.as_ref()) {
            Ok(request) => talk::ask(directory, identity, request, talk).await,
            Err(reason) => return talk.misused(&reason),
        },
    };
    done.unwrap_or_else(|error| talk.failed(&error))
}
