//! Packets, answers and outcomes, each under the digest of its bytes: kept once, and never changed.

use crate::file::{self, Misfit};
use closer_contracts::Digest;
use closer_contracts::canonical;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

fn durably(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    std::io::Write::write_all(&mut file, bytes)?;
    file.sync_data()
}

/// A folder of artifacts.
#[derive(Debug, Clone)]
pub struct Artifacts(PathBuf);

impl Artifacts {
    /// In this folder.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// The file of a digest.
    #[must_use]
    pub fn path(&self, digest: Digest) -> PathBuf {
        self.0.join(format!("{}.json", hex::encode(digest.raw())))
    }

    /// Keeps a value.
    ///
    /// # Errors
    /// [`Misfit`] where it has no canonical form or cannot be written.
    pub fn keep<T: Serialize>(&self, value: &T) -> Result<Digest, Misfit> {
        let bytes = canonical::to_bytes(value)
            .map_err(|fault| Misfit::at(&self.0, 0, &fault.path.clone(), fault.reason.into_owned()))?;
        let digest = Digest::of(&bytes);
        let path = self.path(digest);
        if !path.exists() {
            // Under its name only when it is whole; two threads may write the same bytes.
            let thread = format!("{:?}", std::thread::current().id());
            let staging = path.with_extension(thread.replace(|c: char| !c.is_ascii_alphanumeric(), ""));
            std::fs::create_dir_all(&self.0)
                .and_then(|()| durably(&staging, &bytes))
                .and_then(|()| std::fs::rename(&staging, &path))
                .map_err(|source| Misfit::Unreadable { path, source })?;
        }
        Ok(digest)
    }

    /// The value of a digest, if the file still has it.
    ///
    /// # Errors
    /// [`Misfit`] where it is missing, was changed, or is something else.
    pub fn get<T: Serialize + DeserializeOwned>(&self, digest: Digest) -> Result<T, Misfit> {
        let path = self.path(digest);
        let bytes = file::bytes(&path)?;
        if Digest::of(&bytes) != digest {
            return Err(Misfit::at(&path, 1, ".", "its bytes are not those of its name"));
        }
        serde_json::from_slice(&bytes).map_err(|error| Misfit::at(&path, error.line(), ".", error.to_string()))
    }
}
