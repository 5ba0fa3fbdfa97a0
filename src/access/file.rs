//! The file itself: read where it is its owner's alone, changed under a lock, replaced as a whole.

use super::Held;
use crate::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// By what a changed file is told from the one that was read; nothing where there is none.
pub(super) type Stamp = Option<(u64, i64, i64, u64)>;

pub(super) fn stamp(path: &Path) -> Result<Stamp, Error> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some((found.ino(), found.mtime(), found.mtime_nsec(), found.len()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(format!("looking at {}", path.display()))(error)),
    }
}

/// What the file holds; nothing where there is none.
pub(super) fn read(path: &Path) -> Result<Held, Error> {
    let reading = || Error::io(format!("reading {}", path.display()));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Held::default()),
        Err(error) => return Err(reading()(error)),
    };
    let mode = file.metadata().map_err(reading())?.mode();
    if mode & 0o077 != 0 {
        let reason = format!("{} can be read by others; make it its owner's alone (chmod 600)", path.display());
        return Err(Error::World(reason));
    }
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(reading())?;
    serde_json::from_slice(&text).map_err(|error| Error::World(format!("{}: {error}", path.display())))
}

/// Changes what the file holds while nobody else does; the new content is on disk as a whole or not at all.
pub(super) fn change<T>(path: &Path, how: impl FnOnce(&mut Held) -> T) -> Result<T, Error> {
    let writing = || Error::io(format!("writing {}", path.display()));
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path.with_extension("lock"))
        .map_err(writing())?;
    lock.lock().map_err(writing())?;
    let mut held = read(path)?;
    let told = how(&mut held);
    let text = serde_json::to_vec_pretty(&held).map_err(|error| Error::World(error.to_string()))?;
    let beside = path.with_extension("new");
    let written = || {
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&beside)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    written().map_err(writing())?;
    Ok(told)
}

/// The longest secret that is read from a file, in bytes.
const SECRET_BYTES_MAX: u64 = 8 * 1024;

/// A secret from a file that is its owner's alone.
pub(crate) fn secret_file(path: &Path) -> Result<String, Error> {
    let reading = || Error::io(format!("reading {}", path.display()));
    let found = std::fs::metadata(path).map_err(reading())?;
    if found.mode() & 0o077 != 0 {
        let reason = format!("{} can be read by others; make it its owner's alone (chmod 600)", path.display());
        return Err(Error::World(reason));
    }
    if found.len() > SECRET_BYTES_MAX {
        return Err(Error::World(format!("{}: a secret has at most {SECRET_BYTES_MAX} bytes", path.display())));
    }
    let text = std::fs::read_to_string(path).map_err(reading())?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
