//! Declared commands: what `init` runs once and what `run` keeps beside itself. Argument lists, never a shell.

use closer_adapters::{Beside, ProcessLedger};
use serde::Deserialize;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A command that runs once.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program: an absolute path, `./` from the deployment's folder, a name on the search path, or `beside:NAME` for
    /// one in the folder that `closer` itself lies in.
    pub program: String,
    /// Its arguments, as they stand.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// What it makes, relative to the deployment's folder: it is not run again where that exists.
    pub creates: Option<String>,
}

/// A process that lives as long as a run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Companion {
    /// As for a [`Command`].
    pub program: String,
    /// Its arguments, as they stand.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// It is ready once something accepts connections here.
    pub ready: Option<SocketAddr>,
    /// How long that may take, in milliseconds. Default 10 s.
    #[serde(default = "ready_ms")]
    pub ready_ms: u64,
}

const fn ready_ms() -> u64 {
    10_000
}

/// The absolute path of a program.
pub(crate) fn absolute_program(text: &str, directory: &Path) -> Result<String, String> {
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    if let Some(name) = text.strip_prefix("beside:") {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let candidate = own.with_file_name(name);
        return match candidate.exists() {
            true => Ok(shown(&candidate)),
            false => {
                Err(format!("`{}` is not there; build it first: cargo build --release --bins", candidate.display()))
            }
        };
    }
    match (text.strip_prefix("./"), text.contains('/')) {
        (Some(inner), _) => Ok(shown(&directory.join(inner))),
        (None, true) => Ok(text.to_owned()),
        (None, false) => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let found = std::env::split_paths(&path).map(|folder| folder.join(text)).find(|program| program.is_file());
            found.map(|program| shown(&program)).ok_or_else(|| format!("the program `{text}` is not installed"))
        }
    }
}

/// Removes whatever lies there, if anything does.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn command(program: &str, arguments: &[String], directory: &Path) -> Result<std::process::Command, String> {
    let mut command = std::process::Command::new(absolute_program(program, directory)?);
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command.env_clear().env("LC_ALL", "C").env("PATH", std::env::var_os("PATH").unwrap_or_default());
    Ok(command)
}

impl Command {
    /// Runs it to its end in the deployment's folder, unless what it makes is there. Tells whether it ran. What a run that
    /// failed or broke off has made is removed, so that nobody takes it for the whole.
    ///
    /// # Errors
    /// What could not be started, or how it ended and what it said.
    pub fn run(&self, directory: &Path) -> Result<bool, String> {
        let Some(creates) = &self.creates else { return self.carry_out(directory).map(|()| true) };
        let made = directory.join(creates);
        let begun = directory.join(format!("{}.preparing", creates.trim_end_matches('/')));
        let told = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        match (begun.exists(), made.exists()) {
            (true, _) => remove(&made).map_err(|error| told(&made, error))?,
            (false, true) => return Ok(false),
            (false, false) => {}
        }
        if let Some(folder) = made.parent() {
            std::fs::create_dir_all(folder).map_err(|error| told(folder, error))?;
        }
        std::fs::write(&begun, "").map_err(|error| told(&begun, error))?;
        let carried_out = self.carry_out(directory);
        if carried_out.is_err() {
            remove(&made).map_err(|error| told(&made, error))?;
        }
        remove(&begun).map_err(|error| told(&begun, error))?;
        carried_out.map(|()| true)
    }

    fn carry_out(&self, directory: &Path) -> Result<(), String> {
        let output = command(&self.program, &self.arguments, directory)?.output();
        let output = output.map_err(|error| format!("`{}` could not be started: {error}", self.program))?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = closer_adapters::said(&output.stderr).map(|said| format!(": {said}")).unwrap_or_default();
                Err(format!("`{}` ended with {}{said}", self.program, output.status))
            }
        }
    }
}

/// A companion that runs; it is ended with its descendants when this is dropped, and by the next run where this one is killed.
#[derive(Debug)]
pub struct Running {
    child: Child,
    _on_record: Beside,
}

impl Companion {
    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// What could not be started, or that it did not become ready in time.
    pub fn start(&self, directory: &Path, ledger: &Arc<dyn ProcessLedger>) -> Result<Running, String> {
        let is_taken = |address: &SocketAddr| TcpStream::connect_timeout(address, Duration::from_millis(200)).is_ok();
        if let Some(address) = self.ready.filter(is_taken) {
            return Err(format!(
                "something else already listens on {address}, where `{}` would; end it, or give the companion another port",
                self.program
            ));
        }
        let mut command = command(&self.program, &self.arguments, directory)?;
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let unstarted = |error: io::Error| format!("`{}` could not be started: {error}", self.program);
        let on_record = Beside::announce(Arc::clone(ledger), &mut command).map_err(unstarted)?;
        let child = command.spawn().map_err(unstarted)?;
        let mut running = Running { child, _on_record: on_record };
        let Some(address) = self.ready else { return Ok(running) };
        let deadline = Instant::now() + Duration::from_millis(self.ready_ms);
        while TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_err() {
            if let Ok(Some(status)) = running.child.try_wait() {
                return Err(format!("`{}` ended at once with {status}", self.program));
            }
            if Instant::now() > deadline {
                return Err(format!("`{}` did not listen on {address} within {} ms", self.program, self.ready_ms));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Ok(Some(status)) = running.child.try_wait() {
            return Err(format!("`{}` ended with {status} while something else listens on {address}", self.program));
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let ended = end(&mut self.child);
        if let Err(error) = ended {
            tracing::warn!(%error, "a companion could not be ended");
        }
    }
}

fn end(child: &mut Child) -> io::Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let (Some(group), None) = (group, child.try_wait()?) {
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL)?;
    }
    child.wait().map(|_| ())
}
