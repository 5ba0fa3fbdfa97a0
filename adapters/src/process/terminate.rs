//! Ending the processes on record, with their descendants, and no others.

use super::ledger::{ProcessLedger, TaskProcess};
use super::table::{Row, boot_id, family, row};
use closer_contracts::branch;
use closer_contracts::id::AttemptId;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::time::Duration;

/// How often the family is looked for and ended; processes that fork meanwhile are found in the next round.
const ROUNDS_MAX: u32 = 200;

/// How long to wait between two rounds.
const PAUSE: Duration = Duration::from_millis(5);

/// What became of one process on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// Everything of it has ended; so many processes were ended for that.
    Ended {
        /// How many were ended.
        ended: u32,
    },
    /// The number now belongs to another process, which was left alone; so many descendants were ended.
    Reused {
        /// How many were ended.
        ended: u32,
    },
    /// Some of it could not be ended in time.
    Remains {
        /// How many were ended.
        ended: u32,
    },
}

/// What became of the process of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The process as it was recorded.
    pub process: TaskProcess,
    /// What became of it.
    pub end: ProcessEnd,
}

/// Ends what a crash left running: the processes on record that are still the same, with their descendants. What has
/// ended is struck off. Blocks while it waits for them.
pub fn terminate_recorded(ledger: &dyn ProcessLedger) -> Vec<Ended> {
    let all = ledger.on_record().into_iter().map(|process| {
        let end = terminate(&process);
        match end {
            ProcessEnd::Ended { .. } | ProcessEnd::Reused { .. } => {
                if let Err(error) = ledger.strike(&process.attempt_id) {
                    tracing::warn!(attempt_id = %process.attempt_id, %error, "an ended process stays on record");
                }
            }
            ProcessEnd::Remains { .. } => {}
        }
        Ended { process, end }
    });
    all.collect()
}

/// Whether the number still belongs to the process on record.
enum Leader {
    Same,
    Gone,
    Another,
}

fn leader(process: &TaskProcess) -> Leader {
    match row(process.pid) {
        None => Leader::Gone,
        Some(now) => {
            let is_same_run = boot_id().is_ok_and(|boot_id| boot_id == process.boot_id);
            let is_same = is_same_run && now.start_time_ticks == process.start_time_ticks;
            match branch!("process.start_time_agrees", is_same) {
                true => Leader::Same,
                false => Leader::Another,
            }
        }
    }
}

/// Ends one process on record with its descendants. Blocks until they are gone or [`ROUNDS_MAX`] is reached.
pub(crate) fn terminate(process: &TaskProcess) -> ProcessEnd {
    let mut count = 0;
    let mut was_reused = false;
    for _ in 0..ROUNDS_MAX {
        let pid = match leader(process) {
            Leader::Same => Some(process.pid),
            Leader::Gone => None,
            Leader::Another => {
                was_reused = true;
                None
            }
        };
        let family = family(pid, process.attempt_id.as_str());
        if family.is_empty() {
            return match was_reused {
                true => ProcessEnd::Reused { ended: count },
                false => ProcessEnd::Ended { ended: count },
            };
        }
        count += family.iter().map(|row| u32::from(end(row))).sum::<u32>();
        std::thread::sleep(PAUSE);
    }
    ProcessEnd::Remains { ended: count }
}

/// Ends the process of one attempt, where it is on record.
pub(crate) fn terminate_attempt(ledger: &dyn ProcessLedger, attempt_id: &AttemptId) {
    for process in ledger.on_record().iter().filter(|process| process.attempt_id == *attempt_id) {
        terminate(process);
    }
}

/// Sends the signal through a handle that names this very process, so that a number reused in between is not hit.
fn end(seen: &Row) -> bool {
    let Some(pid) = Pid::from_raw(seen.pid) else {
        return false;
    };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    let is_same = row(seen.pid).is_some_and(|now| now.start_time_ticks == seen.start_time_ticks);
    is_same && pidfd_send_signal(&handle, Signal::KILL).is_ok()
}
