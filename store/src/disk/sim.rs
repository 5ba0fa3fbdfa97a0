//! A disk in memory with the faults of a real one, for tests and the simulator.
//!
//! It decides nothing at random: the caller says, from its own seed, which sync fails, how much space there is, which
//! byte flips and which unsynced sectors survive a crash. Spec: design §10.

use super::{Disk, DiskFile};
use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The unit in which a power cut tears a write, in bytes.
pub const SECTOR_BYTES: usize = 512;

/// One sector written since the last sync: its place and what it held before on the platter.
#[derive(Debug, Clone)]
struct Unsynced {
    sector: usize,
    bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Inode {
    /// What a reader sees.
    current: Vec<u8>,
    /// What a crash leaves for sure.
    durable: Vec<u8>,
    /// Sectors on their way, in the order they were written. A crash may keep any of them.
    unsynced: Vec<Unsynced>,
    /// Bytes of real space taken.
    allocated: u64,
}

#[derive(Debug, Default)]
struct State {
    inodes: BTreeMap<u64, Inode>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    next_inode: u64,
    generation: u64,
    locked: bool,
    capacity_bytes: Option<u64>,
    syncs_until_failure: Option<u64>,
    syncs: u64,
    holds_syncs: bool,
}

/// A simulated disk. Clones share it, so a test can keep a handle while a log owns another.
#[derive(Debug, Clone, Default)]
pub struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    /// An empty disk of unlimited size.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Limits the disk's size; `None` lifts the limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity_bytes = bytes;
    }

    /// Bytes of space taken by all files.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.state().inodes.values().map(|inode| inode.allocated).sum()
    }

    /// Lets the sync after `passing` more of them fail, once. What it should have made durable never will be.
    pub fn fail_sync_after(&self, passing: u64) {
        self.state().syncs_until_failure = Some(passing);
    }

    /// From now until the next crash, syncs report success and make nothing durable, as a lying drive does: a test can
    /// look at what a crash in the middle of one would leave.
    pub fn hold_syncs(&self) {
        self.state().holds_syncs = true;
    }

    /// How many file syncs have been asked for.
    #[must_use]
    pub fn sync_count(&self) -> u64 {
        self.state().syncs
    }

    /// Flips bits of one byte, in what readers see and on the platter. False if there is no such byte.
    #[must_use]
    pub fn flip(&self, name: &str, offset: u64, mask: u8) -> bool {
        let mut state = self.state();
        let Some(inode) = state.names.get(name).copied().and_then(|id| state.inodes.get_mut(&id)) else {
            return false;
        };
        let Ok(offset) = usize::try_from(offset) else {
            return false;
        };
        if let Some(byte) = inode.durable.get_mut(offset) {
            *byte ^= mask;
        }
        inode.current.get_mut(offset).is_some_and(|byte| {
            *byte ^= mask;
            true
        })
    }

    /// The bytes of a file as a reader sees them.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.get(name).and_then(|id| state.inodes.get(id)).map(|inode| inode.current.clone())
    }

    /// Cuts the power. Synced content stays; for each unsynced sector write `survives(file, index, count)` decides, with
    /// the index in the order of writing, so that `index < k` is a torn prefix. Names not synced are forgotten, every
    /// open file is dead, and the lock is free.
    pub fn crash(&self, survives: &mut dyn FnMut(&str, usize, usize) -> bool) {
        let mut state = self.state();
        state.generation += 1;
        state.locked = false;
        state.syncs_until_failure = None;
        state.holds_syncs = false;
        let names = state.durable_names.clone();
        let mut kept = BTreeMap::new();
        for (name, id) in &names {
            let Some(mut inode) = state.inodes.remove(id) else {
                continue;
            };
            let unsynced = std::mem::take(&mut inode.unsynced);
            let count = unsynced.len();
            for (index, write) in unsynced.into_iter().enumerate() {
                if survives(name, index, count) {
                    place(&mut inode.durable, write.sector * SECTOR_BYTES, &write.bytes);
                }
            }
            inode.current.clone_from(&inode.durable);
            inode.allocated = inode.current.len() as u64;
            kept.insert(*id, inode);
        }
        state.inodes = kept;
        state.names = names;
    }
}

fn place(target: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if target.len() < at + bytes.len() {
        target.resize(at + bytes.len(), 0);
    }
    if let Some(slot) = target.get_mut(at..at + bytes.len()) {
        slot.copy_from_slice(bytes);
    }
}

impl State {
    /// Takes space for a file of `len` bytes, if there is any.
    fn allocate(&mut self, id: u64, len: u64) -> io::Result<()> {
        let used: u64 = self.inodes.values().map(|inode| inode.allocated).sum();
        let inode = self.inodes.get_mut(&id).ok_or(io::ErrorKind::NotFound)?;
        let more = len.saturating_sub(inode.allocated);
        match self.capacity_bytes {
            Some(capacity) if more > 0 && used + more > capacity => Err(io::ErrorKind::StorageFull.into()),
            Some(_) | None => {
                inode.allocated += more;
                Ok(())
            }
        }
    }
}

impl Disk for SimDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        let id = state.next_inode;
        state.next_inode += 1;
        state.inodes.insert(id, Inode::default());
        if let Some(old) = state.names.insert(name.to_owned(), id)
            && !state.durable_names.values().any(|durable| *durable == old)
        {
            state.inodes.remove(&old);
        }
        Ok(Arc::new(SimFile { disk: self.clone(), id, generation: state.generation }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.state();
        let id = *state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(SimFile { disk: self.clone(), id, generation: state.generation }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        let id = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), id);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        let id = state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        if let Some(inode) = state.inodes.get_mut(&id) {
            inode.allocated = 0;
        }
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.state();
        state.durable_names = state.names.clone();
        let named: Vec<u64> = state.names.values().copied().collect();
        state.inodes.retain(|id, _| named.contains(id));
        Ok(())
    }

    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        let mut state = self.state();
        if std::mem::replace(&mut state.locked, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimLock { disk: self.clone(), generation: state.generation }))
    }
}

struct SimLock {
    disk: SimDisk,
    generation: u64,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.generation == self.generation {
            state.locked = false;
        }
    }
}

struct SimFile {
    disk: SimDisk,
    id: u64,
    generation: u64,
}

impl SimFile {
    /// Runs `work` on the file, unless a crash has ended this handle.
    fn with<T>(&self, work: impl FnOnce(&mut State, u64) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.disk.state();
        match state.generation == self.generation && state.inodes.contains_key(&self.id) {
            true => work(&mut state, self.id),
            false => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the disk lost power since this file was opened")),
        }
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|state, id| {
            let inode = state.inodes.get(&id).ok_or(io::ErrorKind::NotFound)?;
            let offset = usize::try_from(offset).unwrap_or(usize::MAX).min(inode.current.len());
            let available = inode.current.get(offset..).unwrap_or_default();
            let count = available.len().min(buffer.len());
            if let (Some(to), Some(from)) = (buffer.get_mut(..count), available.get(..count)) {
                to.copy_from_slice(from);
            }
            Ok(count)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(|state, id| {
            state.allocate(id, offset + bytes.len() as u64)?;
            let inode = state.inodes.get_mut(&id).ok_or(io::ErrorKind::NotFound)?;
            let start = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
            place(&mut inode.current, start, bytes);
            for sector in start / SECTOR_BYTES..(start + bytes.len()).div_ceil(SECTOR_BYTES) {
                let from = sector * SECTOR_BYTES;
                let to = (from + SECTOR_BYTES).min(inode.current.len());
                let bytes = inode.current.get(from..to).unwrap_or_default().to_vec();
                inode.unsynced.push(Unsynced { sector, bytes });
            }
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with(|state, id| {
            state.syncs += 1;
            let fails = match &mut state.syncs_until_failure {
                Some(0) => true,
                Some(passing) => {
                    *passing -= 1;
                    false
                }
                None => false,
            };
            if state.holds_syncs {
                return Ok(());
            }
            let inode = state.inodes.get_mut(&id).ok_or(io::ErrorKind::NotFound)?;
            let unsynced = std::mem::take(&mut inode.unsynced);
            if fails {
                // As on Linux: the pages are clean now, readers see them, and no later sync will write them.
                state.syncs_until_failure = None;
                return Err(io::Error::other("simulated failure of a sync"));
            }
            for write in unsynced {
                place(&mut inode.durable, write.sector * SECTOR_BYTES, &write.bytes);
            }
            inode.durable.resize(inode.current.len(), 0);
            Ok(())
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.with(|state, id| Ok(state.inodes.get(&id).map_or(0, |inode| inode.current.len() as u64)))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.with(|state, id| {
            let inode = state.inodes.get_mut(&id).ok_or(io::ErrorKind::NotFound)?;
            let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
            inode.current.resize(len, 0);
            inode.durable.truncate(len);
            inode.unsynced.retain_mut(|write| {
                write.bytes.truncate(len.saturating_sub(write.sector * SECTOR_BYTES));
                !write.bytes.is_empty()
            });
            inode.allocated = inode.allocated.min(len as u64);
            Ok(())
        })
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        self.with(|state, id| {
            state.allocate(id, len)?;
            let inode = state.inodes.get_mut(&id).ok_or(io::ErrorKind::NotFound)?;
            let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
            if inode.current.len() < len {
                inode.current.resize(len, 0);
            }
            Ok(())
        })
    }
}
