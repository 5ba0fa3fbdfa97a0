//! The record of task-owned processes.

use closer_contracts::id::AttemptId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// One process that an attempt started: which it is, told apart from any later one with the same number (DEC-92).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskProcess {
    /// The attempt it belongs to; its descendants carry the same mark in their environment.
    pub attempt_id: AttemptId,
    /// Its number, which is also that of its process group; 0 while it is about to be started and known by its mark alone.
    pub pid: i32,
    /// When it started, in clock ticks since the machine did.
    pub start_time_ticks: u64,
    /// The run of the machine that the ticks count in.
    pub boot_id: String,
}

/// Where task-owned processes are put on record before they are left to run.
pub trait ProcessLedger: Send + Sync {
    /// Puts a process on record, durably.
    ///
    /// # Errors
    /// When it could not; the process is then ended at once.
    fn record(&self, process: &TaskProcess) -> io::Result<()>;

    /// Strikes the process of an attempt off: it and its descendants have ended.
    ///
    /// # Errors
    /// When it could not. A process struck off too rarely is looked for in vain later, which does no harm.
    fn strike(&self, attempt_id: &AttemptId) -> io::Result<()>;

    /// The processes on record, by attempt.
    fn on_record(&self) -> Vec<TaskProcess>;
}

/// A ledger in memory: nothing of it outlives the runtime. For tests and rehearsals.
#[derive(Debug, Default)]
pub struct MemoryLedger {
    processes: Mutex<BTreeMap<AttemptId, TaskProcess>>,
}

impl ProcessLedger for MemoryLedger {
    fn record(&self, process: &TaskProcess) -> io::Result<()> {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.insert(process.attempt_id.clone(), process.clone());
        Ok(())
    }

    fn strike(&self, attempt_id: &AttemptId) -> io::Result<()> {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.remove(attempt_id);
        Ok(())
    }

    fn on_record(&self) -> Vec<TaskProcess> {
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.values().cloned().collect()
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Recorded(TaskProcess),
    Struck(AttemptId),
}

/// A ledger in a file of one line per entry, flushed before a process is left to run. Rewritten when opened.
#[derive(Debug)]
pub struct FileLedger {
    file: Mutex<File>,
    known: MemoryLedger,
}

/// Why a ledger file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BrokenLedger {
    /// It could not be read or written.
    #[error("cannot use the process ledger {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line other than the last is not an entry, so processes may be missing.
    #[error("line {line} of the process ledger {path} is no entry")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Which, from 1.
        line: usize,
    },
}

impl FileLedger {
    /// Opens a ledger, or begins one. A last line that was cut off by a crash was never acted on and is dropped.
    ///
    /// # Errors
    /// [`BrokenLedger`], naming the file.
    pub fn open(path: &Path) -> Result<Self, BrokenLedger> {
        let at = |source: io::Error| BrokenLedger::File { path: path.to_owned(), source };
        let known = MemoryLedger::default();
        let lines: Vec<String> = match File::open(path) {
            Ok(file) => BufReader::new(file).lines().collect::<io::Result<_>>().map_err(at)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(at(error)),
        };
        for (index, line) in lines.iter().enumerate() {
            match serde_json::from_str(line) {
                Ok(Line::Recorded(process)) => known.record(&process).map_err(at)?,
                Ok(Line::Struck(attempt_id)) => known.strike(&attempt_id).map_err(at)?,
                Err(_) if index + 1 == lines.len() => {}
                Err(_) => {
                    return Err(BrokenLedger::Malformed { path: path.to_owned(), line: index + 1 });
                }
            }
        }
        let fresh = path.with_extension("new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&fresh).map_err(at)?;
        for process in known.on_record() {
            write_line(&mut file, &Line::Recorded(process)).map_err(at)?;
        }
        file.sync_all().and_then(|()| std::fs::rename(&fresh, path)).map_err(at)?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(at)?;
        }
        Ok(Self { file: Mutex::new(file), known })
    }

    fn append(&self, line: &Line) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        write_line(&mut file, line)?;
        file.sync_data()
    }
}

fn write_line(file: &mut File, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

impl ProcessLedger for FileLedger {
    fn record(&self, process: &TaskProcess) -> io::Result<()> {
        self.append(&Line::Recorded(process.clone()))?;
        self.known.record(process)
    }

    fn strike(&self, attempt_id: &AttemptId) -> io::Result<()> {
        self.append(&Line::Struck(attempt_id.clone()))?;
        self.known.strike(attempt_id)
    }

    fn on_record(&self) -> Vec<TaskProcess> {
        self.known.on_record()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(number: i32) -> TaskProcess {
        TaskProcess {
            attempt_id: AttemptId::from(format!("attempt-{number}")),
            pid: number,
            start_time_ticks: 7,
            boot_id: "boot".to_owned(),
        }
    }

    #[test]
    fn a_ledger_opened_again_holds_what_was_not_struck_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("processes");
        let ledger = FileLedger::open(&path).unwrap();
        for number in 1..=3 {
            ledger.record(&process(number)).unwrap();
        }
        ledger.strike(&AttemptId::from("attempt-2")).unwrap();
        drop(ledger);
        for _ in 0..2 {
            let ledger = FileLedger::open(&path).unwrap();
            assert_eq!(ledger.on_record(), [process(1), process(3)]);
        }
    }

    #[test]
    fn a_line_cut_off_at_the_end_is_dropped_and_elsewhere_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("processes");
        let ledger = FileLedger::open(&path).unwrap();
        ledger.record(&process(1)).unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{whole}{}", &whole[..20])).unwrap();
        assert_eq!(FileLedger::open(&path).unwrap().on_record(), [process(1)]);
        std::fs::write(&path, format!("{}\n{whole}", &whole[..20])).unwrap();
        assert!(matches!(FileLedger::open(&path), Err(BrokenLedger::Malformed { line: 1, .. })));
    }
}
