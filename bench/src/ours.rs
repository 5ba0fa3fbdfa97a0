//! The log, alone and with derived state.

use crate::load::{Load, Submitter, measure};
use anyhow::{Result, ensure};
use closer_contracts::record::{FencedAppend, Lane};
use closer_store::derived::{DerivedStatus, LAG_TIME_MAX};
use closer_store::{Declined, Log, RealDisk, RecordLog, Settings, StoreError};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a run of the log shows.
pub(crate) struct Run {
    /// Appends per second.
    pub(crate) rate: f64,
    /// How the derived state stood when the last append was durable.
    pub(crate) lag: Option<DerivedStatus>,
    /// How long it took from there until it held everything.
    pub(crate) caught_up: Option<Duration>,
}

/// Appends through the log for the load's duration, then demands that everything on disk fits.
pub(crate) fn run(folder: &Path, load: Load, derived: bool) -> Result<Run> {
    let settings = Settings { derived: derived.then(|| folder.join("derived")), ..Settings::default() };
    let log = Log::open_on(Arc::new(RealDisk::at(folder.join("log"))?), settings, None)?;
    let epoch = log.acquire()?;
    let rate = measure(load, |number| {
        let (log, mut submitter) = (&log, Submitter::new(number));
        move || {
            let append = FencedAppend { lane: Lane::Ordinary, guards: Vec::new(), records: submitter.next() };
            let _appended = loop {
                match log.submit(epoch, append.clone()) {
                    Ok(ticket) => break ticket.wait()?,
                    Err(Declined::Store(StoreError::Busy(_))) => std::thread::sleep(Duration::from_micros(200)),
                    Err(declined) => return Err(declined.into()),
                }
            };
            Ok(())
        }
    })?;
    let lag = log.derived_status();
    let behind = Instant::now();
    let caught_up = match log.derived() {
        Some(derived) => {
            ensure!(derived.wait_for(log.durable(), LAG_TIME_MAX * 60), "the derived state does not catch up");
            Some(behind.elapsed())
        }
        None => None,
    };
    let verified = log.verify(&mut |_| {})?;
    ensure!(verified.records == log.durable().0, "{} records verified of {}", verified.records, log.durable().0);
    Ok(Run { rate, lag, caught_up })
}
