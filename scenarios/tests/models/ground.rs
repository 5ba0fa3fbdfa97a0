//! A log in memory whose appends become durable when they are told to.

use closer_contracts::Digest;
use closer_contracts::record::{Appended, ClaimKey, Epoch, FencedAppend, Head, Reads, Record, StreamId};
use closer_scenarios::{Ground, MemoryLog};
use closer_store::{Declined, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether what is appended becomes durable at once.
#[derive(Clone)]
pub(crate) struct Switch(Arc<AtomicBool>);

impl Switch {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, durable: bool) {
        self.0.store(durable, Ordering::Relaxed);
    }
}

pub(crate) struct Delayed {
    pub(crate) log: MemoryLog,
    pub(crate) durable: Switch,
}

impl Reads for Delayed {
    fn head(&self, stream: &StreamId) -> Option<Head> {
        self.log.head(stream)
    }

    fn claim(&self, key: &ClaimKey) -> Option<Digest> {
        self.log.claim(key)
    }
}

impl Ground for Delayed {
    fn submit(&mut self, append: FencedAppend) -> Result<Appended, Declined> {
        Ground::submit(&mut self.log, append)
    }

    fn landed(&mut self) -> Result<usize, StoreError> {
        match self.durable.is_on() {
            true => self.log.landed(),
            false => Ok(0),
        }
    }

    fn records(&self) -> &[Record] {
        Ground::records(&self.log)
    }

    fn lease(&self) -> Epoch {
        Ground::lease(&self.log)
    }
}
