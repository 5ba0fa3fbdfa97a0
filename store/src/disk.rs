//! The disk as the log uses it: a flat set of named files in one directory, nothing more.
//!
//! [`RealDisk`] is a directory of the operating system; [`sim::SimDisk`] is memory with the faults of a real disk, for
//! tests and the simulator. Names are single path components.

pub mod real;
pub mod sim;

pub use real::RealDisk;
pub use sim::SimDisk;

use std::any::Any;
use std::io;
use std::sync::Arc;

/// A directory of files. Creations, renames and removals are durable only after [`Disk::sync_dir`].
pub trait Disk: Send + Sync {
    /// Creates an empty file, replacing any of that name.
    ///
    /// # Errors
    /// Whatever the system says.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens an existing file.
    ///
    /// # Errors
    /// `NotFound` and whatever else the system says.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file, replacing any of the new name.
    ///
    /// # Errors
    /// Whatever the system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// Whatever the system says.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// The names of all files, sorted.
    ///
    /// # Errors
    /// Whatever the system says.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals durable.
    ///
    /// # Errors
    /// Whatever the system says.
    fn sync_dir(&self) -> io::Result<()>;
    /// Takes the directory for this process until the returned value is dropped.
    ///
    /// # Errors
    /// `WouldBlock` when another holder has it.
    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>>;
}

/// One file, read and written by position.
pub trait DiskFile: Send + Sync {
    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end of the file.
    ///
    /// # Errors
    /// Whatever the system says.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`, extending the file as needed.
    ///
    /// # Errors
    /// `StorageFull` and whatever else the system says.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the file's content and length durable.
    ///
    /// # Errors
    /// Whatever the system says. After an error the content written since the last sync must be taken as lost.
    fn sync_data(&self) -> io::Result<()>;
    /// The file's length in bytes.
    ///
    /// # Errors
    /// Whatever the system says.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// Whatever the system says.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts or extends the file with zeros.
    ///
    /// # Errors
    /// Whatever the system says.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Allocates real space so that later writes below `len` cannot run out of it; new bytes read as zeros.
    ///
    /// # Errors
    /// `StorageFull` and whatever else the system says.
    fn preallocate(&self, len: u64) -> io::Result<()>;
}

/// Fills the buffer from `offset` as far as the file reaches, and says how far that was.
pub(crate) fn read_full(file: &dyn DiskFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}
