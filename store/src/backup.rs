//! Backup while running, and restoring it byte for byte.
//!
//! A backup is the closed segments and the synced prefix of the open one, with a manifest of digests. The derived state
//! is never part of it: it is rebuilt.

use crate::disk::{Disk, DiskFile, RealDisk, read_full};
use crate::error::StoreError;
use crate::log::Log;
use crate::segment;
use closer_contracts::Digest;
use serde::{Deserialize, Serialize};
use std::path::Path;

const MANIFEST: &str = "manifest.json";
const COPY_BYTES: usize = 1 << 20;

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The store format.
    pub format_version: u32,
    /// The segments, in order.
    pub files: Vec<ManifestFile>,
}

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// The digest of its content.
    pub digest: Digest,
}

impl Log {
    /// Copies everything durable to an empty or new folder, beside whatever the log does meanwhile.
    ///
    /// # Errors
    /// `NotEmpty`, `NoRoom`, and whatever the system says; then nothing of it is left behind.
    pub fn backup(&self, destination: &Path, progress: &mut dyn FnMut(u64)) -> Result<Manifest, StoreError> {
        self.undamaged()?;
        let was_there = destination.exists();
        let target = empty(destination)?;
        self.copy_to(&target, progress).map_err(|error| match discard(destination, was_there) {
            Ok(()) => roomless(error, destination),
            Err(undone) => undone,
        })
    }

    fn copy_to(&self, target: &RealDisk, progress: &mut dyn FnMut(u64)) -> Result<Manifest, StoreError> {
        let mut manifest = Manifest { format_version: segment::FORMAT_VERSION, files: Vec::new() };
        let mut done = 0;
        for (number, file, end, closed) in self.durable_segments() {
            let reading = StoreError::io(format!("reading segment {number}"));
            let bytes = if closed { file.len().map_err(reading)? } else { end };
            let name = segment::name(number);
            let digest = copy(&*file, bytes, target, &name)?;
            manifest.files.push(ManifestFile { name, bytes, digest });
            done += bytes;
            progress(done);
        }
        let text = serde_json::to_vec_pretty(&manifest).map_err(|error| StoreError::Manifest(error.to_string()))?;
        let file = target.create(MANIFEST).map_err(StoreError::io("writing the manifest"))?;
        file.write_at(&text, 0).and_then(|()| file.sync_data()).map_err(StoreError::io("writing the manifest"))?;
        target.sync_dir().map_err(StoreError::io("writing the backup"))?;
        Ok(manifest)
    }
}

/// Whether a backup lies here, as far as its manifest tells.
#[must_use]
pub fn is_backup(folder: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let manifest = std::fs::metadata(folder.join(MANIFEST));
    !manifest.is_err_and(|error| matches!(error.kind(), NotFound | NotADirectory))
}

/// Restores a backup as a new store in an empty or new folder, byte for byte, checking every file against the manifest.
///
/// # Errors
/// `NotEmpty`; `Manifest` when a file is missing, added or altered, and then nothing is left behind; `NewerVersion`.
pub fn restore(source: &Path, destination: &Path, progress: &mut dyn FnMut(u64)) -> Result<Manifest, StoreError> {
    const PART: &str = "log.part";
    let text = std::fs::read(source.join(MANIFEST)).map_err(StoreError::io("reading the manifest"))?;
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| StoreError::Manifest(format!("it is not readable: {error}")))?;
    if manifest.format_version > segment::FORMAT_VERSION {
        return Err(StoreError::NewerVersion { found: manifest.format_version, known: segment::FORMAT_VERSION });
    }
    let from = RealDisk::at(source).map_err(StoreError::io("opening the backup"))?;
    let held = from.list().map_err(StoreError::io("listing the backup"))?;
    let named = |name: &String| name == MANIFEST || manifest.files.iter().any(|file| file.name == *name);
    if let Some(stranger) = held.iter().find(|name| !named(name)) {
        return Err(StoreError::Manifest(format!("`{stranger}` is not in it")));
    }
    let was_there = destination.exists();
    let root = empty(destination)?;
    let part = destination.join(PART);
    let target = RealDisk::at(&part).map_err(StoreError::io("creating the store"))?;
    if let Err(error) = restore_files(&manifest, &from, &target, progress) {
        discard(destination, was_there)?;
        return Err(roomless(error, destination));
    }
    root.rename(PART, "log").and_then(|()| root.sync_dir()).map_err(StoreError::io("finishing the restore"))?;
    Ok(manifest)
}

fn restore_files(
    manifest: &Manifest,
    from: &RealDisk,
    target: &RealDisk,
    progress: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    let mut done = 0;
    for (index, expected) in manifest.files.iter().enumerate() {
        if segment::number(&expected.name) != Some(index as u64 + 1) {
            return Err(StoreError::Manifest(format!("`{}` is out of order", expected.name)));
        }
        let missing = |error: std::io::Error| StoreError::Manifest(format!("`{}`: {error}", expected.name));
        let file = from.open(&expected.name).map_err(missing)?;
        let bytes = file.len().map_err(missing)?;
        if bytes != expected.bytes || copy(&*file, bytes, target, &expected.name)? != expected.digest {
            return Err(StoreError::Manifest(format!("`{}` has other content", expected.name)));
        }
        done += bytes;
        progress(done);
    }
    target.sync_dir().map_err(StoreError::io("writing the store"))
}

/// Takes back what was begun in a folder that was empty or new; the folder too where it was new.
fn discard(folder: &Path, was_there: bool) -> Result<(), StoreError> {
    let emptied = || -> std::io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => std::fs::remove_dir_all(entry.path())?,
                false => std::fs::remove_file(entry.path())?,
            }
        }
        if was_there { Ok(()) } else { std::fs::remove_dir(folder) }
    };
    emptied().map_err(StoreError::io(format!("removing what was begun in {}", folder.display())))
}

/// A full disk under the destination, told as such: the store itself may have room.
fn roomless(error: StoreError, destination: &Path) -> StoreError {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let kind = if let StoreError::Io { source, .. } = &error { Some(source.kind()) } else { None };
    match kind.is_some_and(|kind| matches!(kind, StorageFull | QuotaExceeded | FileTooLarge)) {
        true => StoreError::NoRoom(destination.display().to_string()),
        false => error,
    }
}

/// The folder, if it is new or empty.
fn empty(folder: &Path) -> Result<RealDisk, StoreError> {
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(StoreError::NotEmpty(folder.display().to_string()));
    }
    RealDisk::at(folder).map_err(StoreError::io("creating the destination"))
}

/// Copies the first `bytes` of a file durably and returns their digest.
fn copy(file: &dyn DiskFile, bytes: u64, target: &dyn Disk, name: &str) -> Result<Digest, StoreError> {
    use sha2::{Digest as _, Sha256};
    let copying = || StoreError::io(format!("copying `{name}`"));
    let out = target.create(name).map_err(copying())?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < bytes {
        let wanted = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(COPY_BYTES);
        let slot = buffer.get_mut(..wanted).unwrap_or_default();
        let count = read_full(file, slot, at).map_err(copying())?;
        if count == 0 {
            return Err(copying()(std::io::ErrorKind::UnexpectedEof.into()));
        }
        let copied = slot.get(..count).unwrap_or_default();
        hasher.update(copied);
        out.write_at(copied, at).map_err(copying())?;
        at += count as u64;
    }
    out.sync_data().map_err(copying())?;
    Ok(Digest::from_raw(hasher.finalize().into()))
}
