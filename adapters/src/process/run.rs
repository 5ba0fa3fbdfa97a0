//! One process, start to end.

use super::ledger::{ProcessLedger, TaskProcess};
use super::table::{MARK, boot_id, row};
use super::terminate::terminate;
use closer_contracts::id::AttemptId;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long output is waited for once all processes have ended.
const OUTPUT_WAIT: Duration = Duration::from_millis(500);

/// What to start.
#[derive(Debug)]
pub(crate) struct Spawn<'a> {
    pub(crate) program: &'a str,
    pub(crate) arguments: &'a [String],
    /// The whole environment.
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) working_directory: &'a Path,
    pub(crate) deadline: Duration,
    pub(crate) output_bytes_max: usize,
    pub(crate) attempt_id: &'a AttemptId,
}

/// What a stream of output held, as far as it was kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Capture {
    pub(crate) bytes: Vec<u8>,
    /// How many bytes there were altogether.
    pub(crate) total: u64,
}

impl Capture {
    /// Whether something was left out.
    pub(crate) const fn is_cut(&self) -> bool {
        self.total > self.bytes.len() as u64
    }
}

/// How a process came to its end.
#[derive(Debug)]
pub(crate) enum Finished {
    /// It could not be started, or was ended before it was left to run.
    NotStarted(String),
    /// It ended by itself.
    Exited {
        status: i32,
        stdout: Capture,
        stderr: Capture,
        /// Descendants it left behind, which were ended.
        left_behind: u32,
    },
    /// It was ended, by its deadline or from outside.
    Killed(String),
}

/// Starts a process and waits for its end, at most until its deadline. Blocks.
pub(crate) fn run(spawn: &Spawn<'_>, ledger: &dyn ProcessLedger) -> Finished {
    let deadline = Instant::now() + spawn.deadline;
    // Before there is a process: should this one end right after the start, what carries the mark is still found.
    let announced = match announce(spawn.attempt_id, ledger) {
        Ok(announced) => announced,
        Err(error) => return Finished::NotStarted(format!("the attempt could not be put on record: {error}")),
    };
    let mut child = match command(spawn).spawn() {
        Ok(child) => child,
        Err(error) => {
            strike(spawn.attempt_id, ledger);
            return Finished::NotStarted(format!("`{}` could not be started: {error}", spawn.program));
        }
    };
    let process = match put_on_record(&child, spawn.attempt_id, ledger) {
        Ok(process) => process,
        Err(error) => {
            // Not on record means not left to run. It may have begun, so this is not "not started".
            let _: std::io::Result<()> = child.kill();
            let _: std::io::Result<std::process::ExitStatus> = child.wait();
            terminate(&announced);
            strike(spawn.attempt_id, ledger);
            return Finished::Killed(format!("the process could not be put on record and was ended: {error}"));
        }
    };
    let stdout = child.stdout.take().map(|stream| collect(stream, spawn.output_bytes_max));
    let stderr = child.stderr.take().map(|stream| collect(stream, spawn.output_bytes_max));
    let in_time = has_exited_by(&process, deadline);
    // The leader is not collected yet, so its number cannot be another's while the family is ended.
    let end = terminate(&process);
    let status = child.wait();
    let captured = |stream: Option<mpsc::Receiver<Capture>>| {
        stream.and_then(|stream| stream.recv_timeout(OUTPUT_WAIT).ok()).unwrap_or_default()
    };
    let (stdout, stderr) = (captured(stdout), captured(stderr));
    let remains = matches!(end, super::ProcessEnd::Remains { .. });
    if !remains {
        strike(spawn.attempt_id, ledger);
    }
    match (in_time, status) {
        (false, _) => Finished::Killed(format!(
            "`{}` had not ended after {} ms and was ended with its descendants",
            spawn.program,
            spawn.deadline.as_millis()
        )),
        (true, Ok(status)) => match status.code() {
            Some(code) => Finished::Exited {
                status: code,
                stdout,
                stderr,
                left_behind: match end {
                    super::ProcessEnd::Ended { ended }
                    | super::ProcessEnd::Reused { ended }
                    | super::ProcessEnd::Remains { ended } => ended,
                },
            },
            None => Finished::Killed(format!(
                "`{}` was ended by signal {}",
                spawn.program,
                status.signal().unwrap_or_default()
            )),
        },
        (true, Err(error)) => Finished::Killed(format!("the end of `{}` could not be seen: {error}", spawn.program)),
    }
}

/// The process as it is to be: its own group, nothing inherited but what is named.
fn command(spawn: &Spawn<'_>) -> Command {
    let mut command = Command::new(spawn.program);
    command
        .args(spawn.arguments)
        .env_clear()
        .envs(spawn.environment)
        .env(MARK, spawn.attempt_id.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir(spawn.working_directory)
        .process_group(0);
    command
}

fn announce(attempt_id: &AttemptId, ledger: &dyn ProcessLedger) -> std::io::Result<TaskProcess> {
    let process = TaskProcess { attempt_id: attempt_id.clone(), pid: 0, start_time_ticks: 0, boot_id: boot_id()? };
    ledger.record(&process).map(|()| process)
}

fn strike(attempt_id: &AttemptId, ledger: &dyn ProcessLedger) {
    if let Err(error) = ledger.strike(attempt_id) {
        tracing::warn!(%attempt_id, %error, "an ended process stays on record");
    }
}

fn put_on_record(child: &Child, attempt_id: &AttemptId, ledger: &dyn ProcessLedger) -> std::io::Result<TaskProcess> {
    let missing = || std::io::Error::other("the process is not in the machine's table");
    let pid = i32::try_from(child.id()).map_err(|_| missing())?;
    let process = TaskProcess {
        attempt_id: attempt_id.clone(),
        pid,
        start_time_ticks: row(pid).ok_or_else(missing)?.start_time_ticks,
        boot_id: boot_id()?,
    };
    ledger.record(&process)?;
    Ok(process)
}

/// Reads a stream to its end, keeping its beginning, so that the process never waits for a full pipe.
fn collect(mut stream: impl Read + Send + 'static, bytes_max: usize) -> mpsc::Receiver<Capture> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut capture = Capture::default();
        let mut buffer = [0u8; 8192];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    let chunk = buffer.get(..length).unwrap_or_default();
                    let room = bytes_max.saturating_sub(capture.bytes.len());
                    capture.bytes.extend_from_slice(chunk.get(..room.min(length)).unwrap_or_default());
                    capture.total = capture.total.saturating_add(length as u64);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // Nobody waits any more where the output came too late.
        let _: Result<(), mpsc::SendError<Capture>> = sender.send(capture);
    });
    receiver
}

/// Waits until the process has exited, without collecting it, or until the deadline.
fn has_exited_by(process: &TaskProcess, deadline: Instant) -> bool {
    let handle = Pid::from_raw(process.pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    loop {
        if row(process.pid).is_none_or(|row| row.has_ended) {
            return true;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        match &handle {
            Some(handle) => {
                let timeout = Timespec {
                    tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                    tv_nsec: i64::from(left.subsec_nanos()),
                };
                let mut fds = [PollFd::new(handle, PollFlags::IN)];
                // Ready or interrupted: the table is looked at again either way.
                let _: Result<usize, rustix::io::Errno> = rustix::event::poll(&mut fds, Some(&timeout));
            }
            None => std::thread::sleep(left.min(Duration::from_millis(5))),
        }
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
