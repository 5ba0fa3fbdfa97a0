//! The limit: the same bytes appended to a preallocated file, synced each or in groups. Nothing is checked or encoded.

use crate::load::{BODY_BYTES, Load, RECORDS, measure};
use anyhow::{Result, anyhow};
use closer_store::{Disk, RealDisk};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of one append as the log writes it, headers included.
pub(crate) const APPEND_BYTES: usize = RECORDS * BODY_BYTES + 900;
/// The file is begun again after so many bytes, as the log begins a new segment.
const FILE_BYTES: u64 = 64 << 20;

struct File {
    disk: RealDisk,
    file: Arc<dyn closer_store::disk::DiskFile>,
    offset: u64,
}

impl File {
    fn new(folder: &Path) -> Result<Self> {
        let disk = RealDisk::at(folder)?;
        let file = Self::begin(&disk)?;
        Ok(Self { disk, file, offset: 0 })
    }

    fn begin(disk: &RealDisk) -> Result<Arc<dyn closer_store::disk::DiskFile>> {
        let file = disk.create("raw")?;
        file.preallocate(FILE_BYTES)?;
        file.sync_data()?;
        disk.sync_dir()?;
        Ok(file)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.offset + bytes.len() as u64 > FILE_BYTES {
            self.file = Self::begin(&self.disk)?;
            self.offset = 0;
        }
        self.file.write_at(bytes, self.offset)?;
        self.file.sync_data()?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// Appends per second.
pub(crate) fn run(folder: &Path, load: Load) -> Result<f64> {
    let file = File::new(folder)?;
    match load.in_flight {
        1 => single(file, load),
        _ => group(file, load),
    }
}

fn single(file: File, load: Load) -> Result<f64> {
    let file = Mutex::new(file);
    measure(load, |number| {
        let (file, bytes) = (&file, vec![number as u8 + 1; APPEND_BYTES]);
        move || file.lock().unwrap_or_else(PoisonError::into_inner).append(&bytes)
    })
}

/// One committer writes whatever has queued up in one piece and syncs once.
fn group(mut file: File, load: Load) -> Result<f64> {
    type Queued = (Vec<u8>, Sender<()>);
    let (sender, receiver): (Sender<Queued>, Receiver<Queued>) = channel();
    let committer = std::thread::spawn(move || -> Result<()> {
        let mut bytes = Vec::new();
        while let Ok(first) = receiver.recv() {
            let queued: Vec<Queued> = std::iter::once(first).chain(receiver.try_iter()).collect();
            bytes.clear();
            queued.iter().for_each(|(append, _)| bytes.extend_from_slice(append));
            file.append(&bytes)?;
            for (_, done) in queued {
                done.send(()).map_err(|_| anyhow!("a submitter is gone"))?;
            }
        }
        Ok(())
    });
    let rate = measure(load, |number| {
        let (sender, bytes) = (sender.clone(), vec![number as u8 + 1; APPEND_BYTES]);
        let (done, landed) = channel();
        move || {
            sender.send((bytes.clone(), done.clone())).map_err(|_| anyhow!("the committer is gone"))?;
            Ok(landed.recv()?)
        }
    });
    drop(sender);
    committer.join().map_err(|_| anyhow!("the committer panicked"))??;
    rate
}
