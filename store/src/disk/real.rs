//! A directory of the operating system.

use super::{Disk, DiskFile};
use std::any::Any;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const LOCK: &str = "lock";
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A real directory. Files are readable and writable by their owner alone.
#[derive(Debug, Clone)]
pub struct RealDisk {
    root: PathBuf,
    /// Whether files are opened for reading alone.
    reading: bool,
}

impl RealDisk {
    /// Uses `root`, creating it durably if it is missing.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn at(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        if !root.is_dir() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&root)?;
            if let Some(parent) = root.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                File::open(parent)?.sync_all()?;
            }
        }
        Ok(Self { root, reading: false })
    }

    /// Reads `root` and changes nothing there.
    #[must_use]
    pub fn reading(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), reading: true }
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options
    }
}

impl Disk for RealDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = Self::options().create(true).truncate(true).open(self.root.join(name))?;
        Ok(Arc::new(RealFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.root.join(name);
        let file = if self.reading { File::open(path) } else { Self::options().open(path) };
        Ok(Arc::new(RealFile(file?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.root.join(from), self.root.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.root.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if let (true, Ok(name)) = (entry.file_type()?.is_file(), entry.file_name().into_string()) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.root)?.sync_all()
    }

    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        use rustix::fs::{FlockOperation, flock};
        let path = self.root.join(LOCK);
        let file = match Self::options().create(true).truncate(false).open(&path) {
            // Where nothing can be created there is a lock of whoever wrote the store, or nobody ever held it.
            Err(error) if self.reading && is_unwritable(&error) && path.exists() => File::open(&path)?,
            Err(error) if self.reading && is_unwritable(&error) => File::open(&self.root)?,
            opened => opened?,
        };
        // A child process that is just being started holds a copy of the last holder's lock for a moment.
        let mut tries = 0;
        while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            tries += 1;
            if error != rustix::io::Errno::WOULDBLOCK || tries == LOCK_TRIES {
                return Err(error.into());
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Ok(Box::new(file))
    }
}

/// Whether a file cannot be opened for writing because of where it lies or whose it is.
fn is_unwritable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.0.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        match fallocate(&self.0, FallocateFlags::empty(), 0, len) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::OPNOTSUPP) => self.fill(len),
            Err(error) => Err(error.into()),
        }
    }
}

impl RealFile {
    /// Allocates by writing zeros, where the file system cannot reserve.
    fn fill(&self, len: u64) -> io::Result<()> {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let mut at = self.0.metadata()?.len();
        while at < len {
            let count = usize::try_from(len - at).unwrap_or(usize::MAX).min(ZEROS.len());
            self.0.write_all_at(ZEROS.get(..count).unwrap_or(&ZEROS), at)?;
            at += count as u64;
        }
        Ok(())
    }
}
