//! Runs one test executable and reads what its runner said.

use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process_group};

/// A test that runs longer counts as red.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of one test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Green,
    Red,
    Hung,
    /// The executable or the test in it does not exist.
    NotFound,
}

/// Runs the command to its end or to the end of patience.
///
/// # Errors
/// When the executable cannot be started or waited for.
pub(super) fn run(mut command: Command) -> Result<Outcome> {
    run_within(&mut command, PATIENCE)
}

/// Standard output goes to a file, not a pipe: a process the test left behind would keep a pipe open for ever.
fn run_within(command: &mut Command, patience: Duration) -> Result<Outcome> {
    let mut written = tempfile::tempfile()?;
    let stdout = Stdio::from(written.try_clone()?);
    let mut child = command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::null()).process_group(0).spawn()?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let deadline = Instant::now() + patience;
    let status = loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= deadline {
            break status;
        }
        thread::sleep(Duration::from_millis(5));
    };
    if let Some(group) = group {
        // What a red test left behind goes with it; an empty group is no error.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let Some(status) = status else {
        child.wait()?;
        return Ok(Outcome::Hung);
    };
    let mut bytes = Vec::new();
    written.rewind()?;
    written.read_to_end(&mut bytes)?;
    Ok(outcome(status.success(), &String::from_utf8_lossy(&bytes)))
}

/// Reads the closing line of the standard test runner. A test that ended the process left none and is red.
fn outcome(is_success: bool, text: &str) -> Outcome {
    match (is_success, text.lines().rev().find(|line| line.starts_with("test result: "))) {
        (true, Some(line)) if line.contains(" 1 passed") => Outcome::Green,
        (_, Some(line)) if line.contains(" 0 passed; 0 failed") => Outcome::NotFound,
        (true, None) => Outcome::NotFound,
        (true, Some(_)) | (false, _) => Outcome::Red,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_passed_test_is_green_and_no_test_is_not() {
        assert_eq!(outcome(true, "\ntest result: ok. 1 passed; 0 failed; 0 ignored\n"), Outcome::Green);
        assert_eq!(outcome(true, "test result: ok. 0 passed; 0 failed; 0 ignored\n"), Outcome::NotFound);
        assert_eq!(outcome(true, ""), Outcome::NotFound);
        assert_eq!(outcome(false, "test result: FAILED. 0 passed; 1 failed; 0 ignored\n"), Outcome::Red);
        assert_eq!(outcome(false, "running 1 test\n"), Outcome::Red);
    }

    #[test]
    fn a_hang_ends_with_patience_and_takes_its_children_along() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 30 & sleep 30"]);
        let started = Instant::now();
        let outcome = run_within(&mut command, Duration::from_millis(50)).expect("runs");
        assert_eq!(outcome, Outcome::Hung);
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_child_left_behind_does_not_hold_the_answer_up() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 30 & echo 'test result: ok. 1 passed; 0 failed'"]);
        assert_eq!(run_within(&mut command, Duration::from_secs(20)).expect("runs"), Outcome::Green);
    }
}
