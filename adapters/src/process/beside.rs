//! Processes that run beside a space and belong to no attempt of it: on record by their mark before they start, so that
//! what outlives a killed runtime is found and ended when the next one starts.

use super::ledger::{ProcessLedger, TaskProcess};
use super::table::{MARK, boot_id};
use super::terminate::terminate;
use crate::ids::UuidIds;
use closer_contracts::id::AttemptId;
use closer_protocol::port::Ids;
use std::fmt;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

/// Those that run, of this whole process.
static RUNNING: Mutex<Vec<TaskProcess>> = Mutex::new(Vec::new());

/// One process beside the space; it is ended with all its descendants and struck off when this is dropped.
pub struct Beside {
    ledger: Arc<dyn ProcessLedger>,
    process: TaskProcess,
}

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").field("process", &self.process).finish_non_exhaustive()
    }
}

impl Beside {
    /// Puts the process that `command` is about to start on record, and marks it.
    ///
    /// # Errors
    /// When it could not be put on record; it is not to be started then.
    pub fn announce(ledger: Arc<dyn ProcessLedger>, command: &mut Command) -> std::io::Result<Self> {
        let mark = AttemptId::from(UuidIds.fresh("companion"));
        command.env(MARK, mark.as_str());
        let process = TaskProcess { attempt_id: mark, pid: 0, start_time_ticks: 0, boot_id: boot_id()? };
        ledger.record(&process)?;
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(process.clone());
        Ok(Self { ledger, process })
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        terminate(&self.process);
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|running| *running != self.process);
        if let Err(error) = self.ledger.strike(&self.process.attempt_id) {
            tracing::warn!(%error, "an ended process stays on record");
        }
    }
}

/// Ends all of them at once, where this process is about to end without going through its drops. They stay on record.
pub fn end_all_beside() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for process in &running {
        terminate(process);
    }
}
