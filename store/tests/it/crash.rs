//! Killed processes on the real disk. `cargo run -p closer-store --bin store-crash -- kill 100` runs more of the same,
//! `… power 20` cuts the power of a file system under the writer (root).

use std::process::Command;

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_store-crash")).args(["kill", "12"]).arg(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("12 kills"), "{said}");
}
