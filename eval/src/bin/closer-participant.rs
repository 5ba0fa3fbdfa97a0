//! A participant of our own in a process of its own: `closer-participant DECLARATION`, a packet on stdin, an answer on stdout.

use closer_eval::participant::serve;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(declaration) = std::env::args_os().nth(1) else {
        eprintln!("usage: closer-participant DECLARATION < PACKET");
        return ExitCode::from(2);
    };
    match serve(declaration.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}
