//! The provider of the cost-candidate example: a process of its own with its own state, over real HTTP on loopback.
//!
//! It knows nothing of Closer. It offers plans, tells which features a plan has, changes an account's plan once per
//! idempotency key and only at the version asked for, and bills accordingly. On request it has bad days: it answers late,
//! applies a change and drops the connection, serves stale reads, or answers for another account.

mod behaviour;
mod provider;
mod serve;
mod state;

#[cfg(test)]
mod tests;

use behaviour::Behaviour;
use provider::Provider;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;

const USAGE: &str =
    "usage: cost-provider STATE_FILE [--port N] [--late-ms N] [--drop-after-apply] [--stale-ms N] [--wrong-account]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("cost-provider: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (path, port, behaviour) = arguments(std::env::args().skip(1))?;
    let provider = Arc::new(Provider::open(&path, behaviour)?);
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port))
            .await
            .map_err(|error| format!("port {port} cannot be used: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        println!("listening on http://{address}");
        serve::serve(listener, provider).await
    })
}

fn arguments(mut given: impl Iterator<Item = String>) -> Result<(PathBuf, u16, Behaviour), String> {
    let (mut path, mut port, mut behaviour) = (None, 0, Behaviour::default());
    while let Some(argument) = given.next() {
        let mut number = |name: &str| {
            let text = given.next().ok_or_else(|| format!("{name} needs a number\n{USAGE}"))?;
            text.parse::<u64>().map_err(|_| format!("`{text}` is no number\n{USAGE}"))
        };
        match argument.as_str() {
            "--port" => port = u16::try_from(number("--port")?).map_err(|_| "a port is at most 65535".to_owned())?,
            "--late-ms" => behaviour.late_ms = number("--late-ms")?,
            "--stale-ms" => behaviour.stale_ms = number("--stale-ms")?,
            "--drop-after-apply" => behaviour.drop_after_apply = true,
            "--wrong-account" => behaviour.wrong_account = true,
            option if option.starts_with('-') => return Err(format!("`{option}` is not known\n{USAGE}")),
            file if path.is_none() => path = Some(PathBuf::from(file)),
            extra => return Err(format!("`{extra}` is one too many\n{USAGE}")),
        }
    }
    path.map(|path| (path, port, behaviour)).ok_or_else(|| USAGE.to_owned())
}
