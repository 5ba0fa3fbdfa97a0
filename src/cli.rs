//! The command line: verbs to requests, answers to lines or JSON, outcomes to exit codes.
//!
//! Data goes to stdout, talk to stderr. Every verb asks the process that runs the space, over its socket; where nobody
//! holds the store, it opens the store itself for that one request.

mod arguments;
mod eval;
mod exit;
mod incident;
mod init;
mod keys;
mod progress;
mod run;
mod talk;

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
    trace_to_stderr();
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
fn trace_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("CLOSER_LOG");
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn,sled=error"));
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().finish();
    if tracing::subscriber::set_global_default(subscriber).is_err() {
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
        Verb::Restore { backup, destination } => init::restore(&backup, &destination, talk),
        Verb::Eval(verb) => eval::perform(&verb, talk),
        Verb::Keys(Keys::New { file }) => keys::new(&file, talk),
        Verb::Keys(Keys::Sign { file, payload }) => keys::sign(&file, &payload, talk),
        Verb::Event(_)
        | Verb::Obligation(_)
        | Verb::Reentry(_)
        | Verb::Bench(_)
        | Verb::Restrict(_)
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
