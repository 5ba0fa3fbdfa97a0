//! Real processes: ended with their descendants, and no others.

use super::*;
use crate::process::{MemoryLedger, ProcessEnd, terminate_recorded};
use closer_contracts::shows;
use std::io;

fn attempt() -> AttemptId {
    AttemptId::from(format!("attempt-{}", uuid::Uuid::now_v7()))
}

fn shell(script: &str, deadline_ms: u64, attempt_id: &AttemptId, ledger: &dyn ProcessLedger) -> Finished {
    let path = std::env::var("PATH").unwrap();
    run(
        &Spawn {
            program: "/bin/sh",
            arguments: &["-c".to_owned(), script.to_owned()],
            environment: &BTreeMap::from([("PATH".to_owned(), path)]),
            working_directory: Path::new("/"),
            deadline: Duration::from_millis(deadline_ms),
            output_bytes_max: 4096,
            attempt_id,
        },
        ledger,
    )
}

fn is_alive(pid: i32) -> bool {
    row(pid).is_some_and(|row| !row.has_ended)
}

/// Waits for a file with a process number in it.
fn written_pid(path: &Path) -> i32 {
    for _ in 0..1_000 {
        if let Ok(text) = std::fs::read_to_string(path)
            && text.ends_with('\n')
        {
            return text.trim().parse().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{} was not written", path.display());
}

#[test]
fn the_deadline_ends_children_grandchildren_and_those_that_left_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let script = format!(
        "sh -c 'sleep 300 & echo $! >{grandchild}; wait' & \
         setsid sh -c 'echo $$ >{other_session}; sleep 300; true' & \
         (setsid sh -c 'echo $$ >{orphan}; exec sleep 300' &) ; \
         wait",
        grandchild = at("grandchild").display(),
        other_session = at("session").display(),
        orphan = at("orphan").display(),
    );
    let attempt_id = attempt();
    let ledger = MemoryLedger::default();
    let finished = shell(&script, 1_500, &attempt_id, &ledger);
    assert!(matches!(finished, Finished::Killed(_)), "{finished:?}");
    for name in ["grandchild", "session", "orphan"] {
        assert!(!is_alive(written_pid(&at(name))), "{name} is alive");
    }
    assert_eq!(ledger.on_record(), []);
}

#[test]
fn what_a_program_leaves_behind_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("left");
    let script = format!("sleep 300 & echo $! >{}", left.display());
    let finished = shell(&script, 10_000, &attempt(), &MemoryLedger::default());
    let Finished::Exited { status: 0, left_behind, .. } = finished else {
        panic!("{finished:?}");
    };
    assert_eq!(left_behind, 1);
    assert!(!is_alive(written_pid(&left)));
}

/// A process like those that a crash leaves running: in a group of its own, marked, on record, and nobody waits for it.
struct Stray {
    child: Child,
    process: TaskProcess,
}

impl Stray {
    fn start(attempt_id: &AttemptId) -> Self {
        let child = Command::new("/bin/sleep")
            .arg("300")
            .env_clear()
            .env(MARK, attempt_id.as_str())
            .process_group(0)
            .spawn()
            .unwrap();
        // A new process shows its environment a moment after its parent is told that it runs.
        let environment = format!("/proc/{}/environ", child.id());
        while !std::fs::read_to_string(&environment).is_ok_and(|shown| shown.contains(attempt_id.as_str())) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let process = put_on_record(&child, attempt_id, &MemoryLedger::default()).unwrap();
        Self { child, process }
    }

    fn is_alive(&self) -> bool {
        is_alive(self.process.pid)
    }
}

impl Drop for Stray {
    fn drop(&mut self) {
        let _: io::Result<()> = self.child.kill();
        let _: io::Result<std::process::ExitStatus> = self.child.wait();
    }
}

#[test]
fn after_a_crash_only_recorded_processes_that_are_still_the_same_are_ended() {
    shows!("CP-8.3-20"; by "process.start_time_agrees");
    let (ours, unrelated, reused) = (Stray::start(&attempt()), Stray::start(&attempt()), Stray::start(&attempt()));
    let ledger = MemoryLedger::default();
    ledger.record(&ours.process).unwrap();
    // On record is an earlier process with the number that an unrelated one has now.
    let earlier = TaskProcess {
        attempt_id: attempt(),
        start_time_ticks: reused.process.start_time_ticks - 1,
        ..reused.process.clone()
    };
    ledger.record(&earlier).unwrap();
    let mut ends: Vec<(i32, ProcessEnd)> =
        terminate_recorded(&ledger).into_iter().map(|ended| (ended.process.pid, ended.end)).collect();
    ends.sort_by_key(|(pid, _)| *pid);
    let mut expected =
        vec![(ours.process.pid, ProcessEnd::Ended { ended: 1 }), (reused.process.pid, ProcessEnd::Reused { ended: 0 })];
    expected.sort_by_key(|(pid, _)| *pid);
    assert_eq!(ends, expected);
    assert!(!ours.is_alive());
    assert!(unrelated.is_alive() && reused.is_alive());
    assert_eq!(ledger.on_record(), []);
}

#[test]
fn a_record_of_an_earlier_run_of_the_machine_ends_nothing() {
    let stray = Stray::start(&attempt());
    let ledger = MemoryLedger::default();
    let earlier = TaskProcess { attempt_id: attempt(), boot_id: "an earlier run".to_owned(), ..stray.process.clone() };
    ledger.record(&earlier).unwrap();
    assert_eq!(terminate_recorded(&ledger)[0].end, ProcessEnd::Reused { ended: 0 });
    assert!(stray.is_alive());
}

#[test]
fn a_process_that_cannot_be_put_on_record_is_not_left_to_run() {
    struct Full;
    impl ProcessLedger for Full {
        fn record(&self, _: &TaskProcess) -> io::Result<()> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }

        fn strike(&self, _: &AttemptId) -> io::Result<()> {
            Ok(())
        }

        fn on_record(&self) -> Vec<TaskProcess> {
            Vec::new()
        }
    }
    let finished = shell("sleep 300", 60_000, &attempt(), &Full);
    assert!(matches!(finished, Finished::NotStarted(why) if why.contains("put on record")));

    /// Takes the announcement and nothing more.
    #[derive(Default)]
    struct Fills(MemoryLedger);
    impl ProcessLedger for Fills {
        fn record(&self, process: &TaskProcess) -> io::Result<()> {
            match process.pid {
                0 => self.0.record(process),
                _ => Err(io::Error::from(io::ErrorKind::StorageFull)),
            }
        }

        fn strike(&self, attempt_id: &AttemptId) -> io::Result<()> {
            self.0.strike(attempt_id)
        }

        fn on_record(&self) -> Vec<TaskProcess> {
            self.0.on_record()
        }
    }
    let begun = Instant::now();
    let ledger = Fills::default();
    let finished = shell("sleep 300 & sleep 300", 60_000, &attempt(), &ledger);
    assert!(matches!(finished, Finished::Killed(why) if why.contains("put on record")));
    assert_eq!(ledger.on_record(), []);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// The attempt is on record before its process exists, so that a crash right after the start leaves no orphan unseen.
#[test]
fn an_attempt_is_on_record_before_its_process_exists() {
    #[derive(Default)]
    struct Watching(std::sync::Mutex<Vec<(bool, usize)>>);
    impl ProcessLedger for Watching {
        fn record(&self, process: &TaskProcess) -> io::Result<()> {
            let running = super::super::table::family(None, process.attempt_id.as_str()).len();
            self.0.lock().unwrap().push((process.pid == 0, running));
            Ok(())
        }

        fn strike(&self, _: &AttemptId) -> io::Result<()> {
            Ok(())
        }

        fn on_record(&self) -> Vec<TaskProcess> {
            Vec::new()
        }
    }
    let ledger = Watching::default();
    assert!(matches!(shell("sleep 0.2", 60_000, &attempt(), &ledger), Finished::Exited { status: 0, .. }));
    let seen = ledger.0.into_inner().unwrap();
    assert!(matches!(seen.as_slice(), [(true, 0), (false, _)]), "{seen:?}");

    // The crash: announced, started, and nobody left to record the number.
    let orphan = Stray::start(&attempt());
    // The kernel shows the environment a moment after the program has begun.
    while super::super::table::family(None, orphan.process.attempt_id.as_str()).is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let ledger = MemoryLedger::default();
    let announced = TaskProcess { pid: 0, start_time_ticks: 0, ..orphan.process.clone() };
    ledger.record(&announced).unwrap();
    assert_eq!(terminate_recorded(&ledger)[0].end, ProcessEnd::Ended { ended: 1 });
    assert!(!orphan.is_alive());
    assert_eq!(ledger.on_record(), []);
}

#[test]
fn a_process_is_on_record_while_it_runs() {
    let ledger = std::sync::Arc::new(MemoryLedger::default());
    let attempt_id = attempt();
    let running = {
        let (ledger, attempt_id) = (std::sync::Arc::clone(&ledger), attempt_id.clone());
        std::thread::spawn(move || shell("sleep 300", 60_000, &attempt_id, ledger.as_ref()))
    };
    while ledger.on_record().iter().all(|process| process.pid == 0) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let on_record = ledger.on_record();
    assert_eq!(on_record[0].attempt_id, attempt_id);
    assert!(is_alive(on_record[0].pid));
    crate::process::terminate_attempt(ledger.as_ref(), &attempt_id);
    assert!(matches!(running.join().unwrap(), Finished::Killed(why) if why.contains("signal 9")));
}
