//! The command line: verbs to requests, answers to lines or JSON, outcomes to exit codes.
//!
//! Data goes to stdout, talk to stderr. Every verb asks the process that runs the space, over its socket; where nobody
//! holds the store, it opens the store itself for that one request.

mod arguments;
mod exit;
mod incident;
mod init;
mod keys;
mod progress;
mod run;
mod serve;
mod source;
mod talk;
mod token;

pub use exit::Exit;

use arguments::{Arguments, Keys, Verb};
use clap::Parser;
use talk::Talk;

/// Runs the command line and gives the process's exit code.
#[must_use]
pub fn main() -> Exit {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are asked for; anything else is a mistake in the call.
            let asked_for = !error.use_stderr();
            let printed = error.print();
            return match asked_for && printed.is_ok() {
                true => Exit::Ok,
                false => Exit::Usage,
            };
        }
    };
    trace_to_stderr(matches!(arguments.verb, Verb::Serve { .. }));
    let talk = Talk { json: arguments.json };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return talk.failed(&crate::Error::io("starting the runtime")(error)),
    };
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
    let to_stderr = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let as_json = std::env::var_os("CLOSER_LOG_FORMAT").is_some_and(|format| format == "json");
    let set = match (serves, as_json) {
        (true, true) => tracing::subscriber::set_global_default(to_stderr.json().flatten_event(true).finish()),
        (true, false) => tracing::subscriber::set_global_default(to_stderr.with_ansi(false).finish()),
        (false, _) => tracing::subscriber::set_global_default(to_stderr.without_time().finish()),
    };
    if set.is_err() {
        tracing::debug!("somebody listens already");
    }
}

async fn perform(arguments: Arguments, talk: Talk) -> Exit {
    let directory = match arguments.place() {
        Ok(directory) => directory,
        Err(reason) => {
            talk.say(&reason);
            return Exit::Usage;
        }
    };
    let Arguments { identity, verb, .. } = arguments;
    let done = match verb {
        Verb::Init { .. } => init::init(&directory, talk).await,
        Verb::Run(run) => run::run(&run, &directory, talk).await,
        Verb::Serve { .. } => serve::serve(&directory, talk).await,
        Verb::Token(verb) => token::token(&directory, identity, verb, talk).await,
        Verb::Source(verb) => source::source(&directory, identity, verb, talk).await,
        Verb::Signin => token::signin(&directory, identity, talk).await,
        Verb::Restore { backup, destination } => init::restore(&backup, &destination, talk),
        Verb::Keys(Keys::New { file }) => keys::new(&file, talk),
        Verb::Keys(Keys::Sign { file, payload }) => keys::sign(&file, &payload, talk),
        Verb::Event(_)
        | Verb::Obligation(_)
        | Verb::Reentry(_)
        | Verb::Bench(_)
        | Verb::Restrict(_)
        | Verb::Work
        | Verb::Budgets
        | Verb::Restrictions
        | Verb::Search { .. }
        | Verb::Receipt(_)
        | Verb::Export { .. }
        | Verb::Incident(_)
        | Verb::Verify
        | Verb::Rebuild
        | Verb::Backup { .. }
        | Verb::Keys(Keys::List | Keys::Rotate { .. } | Keys::Revoke { .. }) => match verb.request() {
            Ok(request) => talk::ask(&directory, identity, request, talk).await,
            Err(reason) => {
                talk.say(&reason);
                return Exit::Usage;
            }
        },
    };
    done.unwrap_or_else(|error| talk.failed(&error))
}
