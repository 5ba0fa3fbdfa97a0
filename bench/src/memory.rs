//! What an open obligation costs in memory beyond its own bytes: a space with few and with many, each in a process that
//! only opens it.

use crate::action;
use crate::report::Report;
use anyhow::{Context, Result, ensure};
use closer_contracts::canonical::to_bytes;
use closer_scenarios::founding::obligation;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(clap::Args)]
pub(crate) struct Hold {
    folder: PathBuf,
}

/// Opens the space in a folder and prints the bytes that this process then has in memory.
pub(crate) fn hold(hold: &Hold) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let held = runtime.block_on(action::open(&hold.folder))?;
    println!("{}", resident()?);
    runtime.block_on(action::close(held))
}

/// The bytes of this process that are in memory.
pub(crate) fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib << 10)
}

/// Measures with `count` open obligations.
pub(crate) fn run(folder: &Path, count: usize, report: &mut Report) -> Result<()> {
    let mut held = Vec::new();
    for count in [1, count] {
        let folder = tempfile::tempdir_in(folder)?;
        action::found(folder.path(), count)?;
        let output = Command::new(std::env::current_exe()?).arg("hold").arg(folder.path()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        held.push(String::from_utf8(output.stdout)?.trim().parse::<u64>()?);
    }
    let [few, many] = held.as_slice() else { unreachable!("two were measured") };
    let (obligation, reentries) = obligation("o-10000", "entity-10000");
    let own = to_bytes(&obligation)?.len()
        + reentries.iter().map(to_bytes).map(|bytes| bytes.map_or(0, |b| b.len())).sum::<usize>();
    let each = many.saturating_sub(*few) as f64 / (count - 1) as f64;
    report.row("open_obligations", count as f64, "in one space, opened from its log");
    report.row("obligation_own_bytes", own as f64, "canonical, triggers included");
    report.row("obligation_resident_bytes", each, "state, indexes, heads and claims included");
    report.row("obligation_beyond_own_bytes", each - own as f64, "target at most 2048");
    Ok(())
}
