//! The record log beside the raw limit of the same disk and SQLite by hand.

use crate::load::Load;
use crate::report::{Report, median};
use crate::{ours, raw, reopen, sqlite};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each sustained run of the log with derived state
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seconds of each other measurement
    #[arg(long, default_value_t = 5)]
    short_seconds: u64,
    /// Rounds, of which the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Records of the store that is opened after a kill; 0 leaves it out
    #[arg(long, default_value_t = 1_000_000)]
    reopen: u64,
    /// Where to measure; a temporary folder inside it is used and removed
    #[arg(long, default_value = ".")]
    folder: PathBuf,
}

/// The engines of the short rounds.
const ENGINES: [(&str, Engine); 3] = [("raw", raw::run), ("sqlite", sqlite::run), ("log", log_alone)];

type Engine = fn(&Path, Load) -> Result<f64>;

fn log_alone(folder: &Path, load: Load) -> Result<f64> {
    Ok(ours::run(folder, load, false)?.rate)
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut report = Report::default();
    // Files stay until the end: removing them makes the file system discard blocks under the next engine.
    let mut folders = Vec::new();
    let short = Duration::from_secs(options.short_seconds);
    for in_flight in [1, 64] {
        let mut medians = Vec::new();
        let mut measured = vec![Vec::new(); ENGINES.len()];
        // Engines take turns within a round, so that a slow minute of the disk hits all of them.
        for _ in 0..options.rounds {
            for ((_, engine), rates) in ENGINES.iter().zip(&mut measured) {
                let folder = tempfile::tempdir_in(&options.folder)?;
                rates.push(engine(folder.path(), Load { in_flight, duration: short })?);
                folders.push(folder);
            }
        }
        for ((name, _), rates) in ENGINES.iter().zip(measured) {
            let rate = median(rates);
            report.row(&format!("{name}_{in_flight}_per_s"), rate, "appends of 3 records on 4 streams, durable");
            medians.push(rate);
        }
        folders.push(sustained(options, in_flight, medians.first().copied().unwrap_or(f64::NAN), &mut report)?);
        if let [raw, sqlite, log] = medians.as_slice() {
            report.row(&format!("log_{in_flight}_of_raw"), log / raw, "target with 64 in flight: at least 0.3");
            report.row(&format!("log_{in_flight}_of_sqlite"), log / sqlite, "");
        }
    }
    if options.reopen > 0 {
        let folder = tempfile::tempdir_in(&options.folder)?;
        reopen::run(folder.path(), options.reopen, &mut report)?;
    }
    report.finish()
}

/// The log with derived state for long enough that nothing can hide in a queue.
fn sustained(options: &Options, in_flight: usize, raw: f64, report: &mut Report) -> Result<TempDir> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let load = Load { in_flight, duration: Duration::from_secs(options.seconds) };
    let run = ours::run(folder.path(), load, true)?;
    report.row(&format!("derived_{in_flight}_per_s"), run.rate, "the log with derived state, sustained");
    report.row(&format!("derived_{in_flight}_of_raw"), run.rate / raw, "target with 64 in flight: at least 0.1");
    if let (Some(lag), Some(caught_up)) = (run.lag, run.caught_up) {
        report.row(&format!("derived_{in_flight}_lag_bytes"), lag.lag_bytes as f64, "at the end");
        report.row(&format!("derived_{in_flight}_caught_up_s"), caught_up.as_secs_f64(), "after the end");
        report.row(&format!("derived_{in_flight}_set_aside"), f64::from(lag.set_aside_count), "");
    }
    Ok(folder)
}
