//! Files that people write: what does not fit is told with its place.

use closer_contracts::Digest;
use closer_contracts::contract::Check;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Why a file could not be used, and where it does not fit.
#[derive(Debug, thiserror::Error)]
pub enum Misfit {
    /// It could not be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line or field does not fit.
    #[error("{}, line {line}, {field}: {reason}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The field.
        field: String,
        /// Why.
        reason: String,
    },
}

impl Misfit {
    /// What does not fit, and where.
    #[must_use]
    pub fn at(path: &Path, line: usize, field: &str, reason: impl Into<String>) -> Self {
        Self::Field { path: path.to_owned(), line, field: field.to_owned(), reason: reason.into() }
    }
}

/// The bytes of a file.
///
/// # Errors
/// [`Misfit::Unreadable`].
pub fn bytes(path: &Path) -> Result<Vec<u8>, Misfit> {
    std::fs::read(path).map_err(|source| Misfit::Unreadable { path: path.to_owned(), source })
}

/// The digest of a file's bytes.
///
/// # Errors
/// [`Misfit::Unreadable`].
pub fn digest(path: &Path) -> Result<Digest, Misfit> {
    Ok(Digest::of(&bytes(path)?))
}

/// Every line of a file of JSON lines, checked; empty lines are passed over.
///
/// # Errors
/// [`Misfit`] with line and field.
pub fn lines<T: DeserializeOwned + Check>(path: &Path) -> Result<Vec<T>, Misfit> {
    let bytes = bytes(path)?;
    let mut found = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if !line.trim_ascii().is_empty() {
            found.push(read(path, index + 1, line)?);
        }
    }
    Ok(found)
}

fn read<T: DeserializeOwned + Check>(path: &Path, number: usize, line: &[u8]) -> Result<T, Misfit> {
    let mut reader = serde_json::Deserializer::from_slice(line);
    let read: T = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| Misfit::at(path, number, &error.path().to_string(), error.inner().to_string()))?;
    reader.end().map_err(|error| Misfit::at(path, number, ".", error.to_string()))?;
    read.check().map_err(|fault| Misfit::at(path, number, &fault.path.clone(), fault.reason.into_owned()))?;
    Ok(read)
}
