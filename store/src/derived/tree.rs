//! The one door to sled: every call may fail or panic, and both are trouble.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

const CACHE_BYTES: u64 = 64 << 20;
const FLUSH_EVERY_MS: u64 = 500;
const OPEN_TRIES: u32 = 100;
const OPEN_PAUSE: Duration = Duration::from_millis(10);

/// Rows to write: a value, or nothing for a row that goes. Later writes of a key replace earlier ones.
pub(super) type Rows = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// sled failed or panicked.
#[derive(Debug)]
pub(super) struct Trouble(pub(super) String);

/// The tree, open.
pub(super) struct Tree(sled::Db);

fn guarded<T>(work: impl FnOnce() -> sled::Result<T>) -> Result<T, Trouble> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Trouble(error.to_string())),
        Err(_) => Err(Trouble("the index panicked".into())),
    }
}

impl Tree {
    pub(super) fn open(folder: &Path) -> Result<Self, Trouble> {
        let config = sled::Config::new()
            .path(folder)
            .cache_capacity(CACHE_BYTES)
            .flush_every_ms(Some(FLUSH_EVERY_MS))
            .mode(sled::Mode::HighThroughput);
        // Its lock outlives the last holder for a moment: threads of its own, or a child process being started.
        let mut tries = 0;
        loop {
            match guarded(|| config.open()) {
                Ok(tree) => return Ok(Self(tree)),
                Err(trouble) if tries == OPEN_TRIES || !trouble.0.contains("acquire lock") => return Err(trouble),
                Err(_) => std::thread::sleep(OPEN_PAUSE),
            }
            tries += 1;
        }
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Trouble> {
        guarded(|| self.0.get(key)).map(|value| value.map(|value| value.to_vec()))
    }

    /// The value of the first row with a key in a range.
    pub(super) fn first(&self, from: &[u8], to: &[u8]) -> Result<Option<Vec<u8>>, Trouble> {
        guarded(|| self.0.range(from..to).next().transpose()).map(|row| row.map(|(_, value)| value.to_vec()))
    }

    pub(super) fn is_empty(&self) -> Result<bool, Trouble> {
        guarded(|| Ok(self.0.is_empty()))
    }

    /// Writes all rows as one batch, then reads one back: a load without reads lets the cache outgrow its cap.
    pub(super) fn apply(&self, rows: Rows) -> Result<(), Trouble> {
        let probe = rows.keys().next().cloned();
        let mut batch = sled::Batch::default();
        for (key, value) in rows {
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        guarded(|| self.0.apply_batch(batch))?;
        match probe {
            Some(key) => self.get(&key).map(|_| ()),
            None => Ok(()),
        }
    }

    pub(super) fn flush(&self) -> Result<(), Trouble> {
        guarded(|| self.0.flush()).map(|_| ())
    }
}
