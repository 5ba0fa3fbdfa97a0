//! Starts a participant, hands it its packet, and takes what it writes, until its deadline.

use super::{Command, Participant};
use closer_contracts::canonical;
use closer_contracts::word_enum;
use closer_contracts::work::Work;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// The most bytes kept of what a participant says about itself.
const STDERR_BYTES_MAX: u64 = 4096;

/// How the participants of a study are started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// What starts a participant of our own; the file with its declaration is the last argument.
    pub own: Vec<OsString>,
    /// The plan's folder.
    pub folder: PathBuf,
    /// The file with the participant's declaration.
    pub declaration: PathBuf,
}

word_enum! {
    /// Why there is no answer.
    pub enum NoAnswer {
        /// The program could not be started, or ended with a failure.
        Failed = "failed",
        /// It did not answer in time, and was ended.
        TimedOut = "timed_out",
        /// It wrote more than an answer may have.
        TooLong = "too_long",
    }
}

/// What came of asking.
#[derive(Debug)]
pub struct Asked {
    /// The bytes, or why there are none.
    pub answer: Result<Vec<u8>, (NoAnswer, String)>,
    /// How long it took.
    pub wall_ms: u64,
    /// The process's id: two worlds have two.
    pub process: Option<u32>,
}

/// Starts the participant afresh and asks it.
#[must_use]
pub fn ask(participant: &Participant, launch: &Launch, work: &Work, seed: u64) -> Asked {
    let began = Instant::now();
    let (mut command, deadline_ms) = prepared(participant, launch);
    command.env("CLOSER_EVAL_SEED", seed.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let failed = |reason: String| (NoAnswer::Failed, reason);
    let packet = match canonical::to_bytes(work) {
        Ok(packet) => packet,
        Err(fault) => return Asked { answer: Err(failed(fault.to_string())), wall_ms: 0, process: None },
    };
    let (answer, process) = match command.spawn() {
        Err(error) => (Err(failed(format!("it cannot be started: {error}"))), None),
        Ok(child) => {
            let process = child.id();
            (converse(child, packet, began + Duration::from_millis(deadline_ms)), Some(process))
        }
    };
    Asked { answer, wall_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX), process }
}

fn prepared(participant: &Participant, launch: &Launch) -> (std::process::Command, u64) {
    let own = || {
        let mut command = std::process::Command::new(launch.own.first().map_or(Path::new(""), Path::new));
        command.args(launch.own.iter().skip(1)).arg(&launch.declaration).env_clear();
        (command, 60_000)
    };
    match participant {
        Participant::Command(Command { command, environment, folder, deadline_ms, .. }) => {
            let mut program = std::process::Command::new(command.first().map_or("", String::as_str));
            program.args(command.iter().skip(1)).env_clear().envs(environment).current_dir(launch.folder.join(folder));
            (program, *deadline_ms)
        }
        Participant::Policy(_) | Participant::Synthetic(_) | Participant::Floor { .. } => own(),
    }
}

/// Writes, reads and waits on threads of their own, so that no pipe that is full keeps anybody waiting.
fn converse(mut child: Child, packet: Vec<u8>, deadline: Instant) -> Result<Vec<u8>, (NoAnswer, String)> {
    let stdin = child.stdin.take();
    std::thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // A participant that closes its stdin early has said all it wants to; its answer tells.
            let _ = stdin.write_all(&packet).and_then(|()| stdin.write_all(b"\n"));
        }
    });
    let answer = reading(child.stdout.take(), ANSWER_BYTES_MAX + 1);
    let said = reading(child.stderr.take(), STDERR_BYTES_MAX);
    let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
    let bytes = match answer.recv_timeout(left(deadline)) {
        Ok(bytes) => bytes,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            end(&mut child);
            return Err((NoAnswer::TimedOut, "it did not answer in time".to_owned()));
        }
    };
    if bytes.len() as u64 > ANSWER_BYTES_MAX {
        end(&mut child);
        return Err((NoAnswer::TooLong, format!("an answer has at most {ANSWER_BYTES_MAX} bytes")));
    }
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if left(deadline).is_zero() => {
                end(&mut child);
                return Err((NoAnswer::TimedOut, "it answered and did not end in time".to_owned()));
            }
            Ok(None) => std::thread::sleep(Duration::from_micros(200)),
            Err(error) => return Err((NoAnswer::Failed, error.to_string())),
        }
    };
    if status.success() {
        return Ok(bytes);
    }
    let said = said.recv_timeout(Duration::from_millis(100)).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    Err((NoAnswer::Failed, format!("it ended with {status}: {said}")))
}

fn reading(from: Option<impl Read + Send + 'static>, bytes_max: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(from) = from {
            // What was read before an error is what there is.
            let _ = from.take(bytes_max).read_to_end(&mut bytes);
        }
        // Nobody listens any more once the deadline is over.
        let _ = sender.send(bytes);
    });
    receiver
}

/// Ends the participant and whatever it started.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // It may have ended meanwhile.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}
