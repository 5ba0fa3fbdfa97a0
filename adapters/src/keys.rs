//! Ed25519 key files: one signing key each, readable by their owner alone.
//!
//! The file is one line, `ed25519-secret:` and 64 lowercase hexadecimal digits. A file that others may read, that belongs
//! to somebody else or that is reached through a symbolic link is refused: its secret is no secret.

use closer_contracts::auth::{self, SigningScope};
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, Key, KeyId};
use ed25519_dalek::{SigningKey, VerifyingKey};
use rustix::fs::{Mode, OFlags};
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

const PREFIX: &str = "ed25519-secret:";

/// The longest file that is read as a secret, in bytes.
const SECRET_BYTES_MAX: u64 = 4096;

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A new key is written to a new file, and this one is there.
    #[error("{path} is there already; a new key goes to a new file, so that no key is overwritten")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The name is a symbolic link, which may lead elsewhere a moment later.
    #[error("the key file {path} is a symbolic link; name the file itself")]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The file could not be read or written.
    #[error("cannot use the key file {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Others may read or change it.
    #[error("the key file {path} is open to others: its mode is {mode:04o}, at most 0600 is accepted")]
    Loose {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It belongs to another user of the machine.
    #[error("the key file {path} belongs to another user of this machine")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It does not hold a key.
    #[error("the file {path} holds no Ed25519 secret: one line, `{PREFIX}` and 64 lowercase hexadecimal digits")]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness")]
    Randomness,
}

/// A signing key in memory. Its `Debug` does not show the secret.
pub struct SigningKeyFile {
    key: SigningKey,
}

impl fmt::Debug for SigningKeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKeyFile").field("public_key", &self.public_key()).finish_non_exhaustive()
    }
}

impl SigningKeyFile {
    /// Makes a new key and writes it to a new file with mode 0600, durably.
    ///
    /// # Errors
    /// [`KeyError::Exists`] when the file is there already; [`KeyError::File`]; [`KeyError::Randomness`].
    pub fn generate(path: &Path) -> Result<Self, KeyError> {
        let mut seed = [0u8; 32];
        rand::TryRng::try_fill_bytes(&mut rand::rngs::SysRng, &mut seed).map_err(|_| KeyError::Randomness)?;
        let key = SigningKey::from_bytes(&seed);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
        let write = |fd| -> std::io::Result<()> {
            let mut file = File::from(fd);
            file.write_all(format!("{PREFIX}{}\n", hex::encode(seed)).as_bytes())?;
            file.sync_all()?;
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                Some(_) | None => Path::new("."),
            };
            File::open(folder)?.sync_all()
        };
        let fd = opened.map_err(|errno| match errno {
            rustix::io::Errno::EXIST => KeyError::Exists { path: path.to_owned() },
            errno => KeyError::File { path: path.to_owned(), source: errno.into() },
        })?;
        write(fd).map_err(|source| KeyError::File { path: path.to_owned(), source })?;
        Ok(Self { key })
    }

    /// Reads a key from its file.
    ///
    /// # Errors
    /// [`KeyError`], naming the file.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let text = read_secret(path)?;
        let malformed = || KeyError::Malformed { path: path.to_owned() };
        let digits = text.trim_end().strip_prefix(PREFIX).ok_or_else(malformed)?;
        let lowercase = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let mut seed = [0u8; 32];
        match lowercase && hex::decode_to_slice(digits, &mut seed).is_ok() {
            true => Ok(Self { key: SigningKey::from_bytes(&seed) }),
            false => Err(malformed()),
        }
    }

    /// The public key: 32 bytes in lowercase hexadecimal.
    #[must_use]
    pub fn public_key(&self) -> Key {
        Key::from(hex::encode(self.verifying_key().as_bytes()))
    }

    /// The public key itself, as a registry entry is made of it.
    #[must_use]
    pub fn verifying_key(&self) -> VerifyingKey {
        self.key.verifying_key()
    }

    /// The key's id: the digest of its canonical public bytes (DEC-12).
    #[must_use]
    pub fn key_id(&self) -> KeyId {
        auth::key_id(&self.verifying_key())
    }

    /// Signs content for an identity, within a signing scope (DEC-12).
    ///
    /// # Errors
    /// `schema_invalid` when what is signed has no canonical form.
    pub fn sign(&self, content_digest: Digest, scope: SigningScope, identity: &ActorId) -> Result<Key, Fault> {
        auth::sign(&self.key, content_digest, scope, identity)
    }
}

/// Reads a file that holds a secret: a regular file of our own that nobody else may read.
pub(crate) fn read_secret(path: &Path) -> Result<String, KeyError> {
    let at = |source: std::io::Error| KeyError::File { path: path.to_owned(), source };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
        rustix::io::Errno::LOOP => KeyError::Link { path: path.to_owned() },
        errno => at(errno.into()),
    })?;
    // The opened file is judged, not its name: the name may lead elsewhere a moment later.
    let stat = rustix::fs::fstat(&fd).map_err(|errno| at(errno.into()))?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
        return Err(KeyError::Malformed { path: path.to_owned() });
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(KeyError::Foreign { path: path.to_owned() });
    }
    let mode = stat.st_mode & 0o7777;
    if mode & 0o177 != 0 {
        return Err(KeyError::Loose { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    File::from(fd).take(SECRET_BYTES_MAX).read_to_string(&mut text).map_err(at)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use closer_contracts::item::SigningKeyEntry;
    use closer_contracts::time::Timestamp;
    use std::os::unix::fs::PermissionsExt;

    const SCOPE: SigningScope = SigningScope::Action;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_generated_key_is_private_and_reads_back_as_itself() {
        let folder = folder();
        let path = folder.path().join("planner.key");
        let made = SigningKeyFile::generate(&path).unwrap();
        let read = SigningKeyFile::load(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!((made.public_key(), made.key_id()), (read.public_key(), read.key_id()));
        let secret = std::fs::read_to_string(&path).unwrap();
        assert!(!format!("{made:?}").contains(secret.trim().trim_start_matches(PREFIX)));
        assert!(matches!(SigningKeyFile::generate(&path), Err(KeyError::Exists { .. })));
    }

    #[test]
    fn a_signature_verifies_under_the_public_key_and_no_other_content() {
        let folder = folder();
        let key = SigningKeyFile::generate(&folder.path().join("key")).unwrap();
        let scope = SCOPE;
        let valid = Timestamp::from_unix_ms(0)..Timestamp::from_unix_ms(1);
        let entry = SigningKeyEntry::of(&key.verifying_key(), vec![scope], valid);
        assert_eq!((&entry.key_id, &entry.public_key), (&key.key_id(), &key.public_key()));
        let identity = "actor-1".into();
        let signature = key.sign(Digest::of(b"content"), scope, &identity).unwrap();
        let verify = |content: &[u8]| {
            let message = auth::signed_message(Digest::of(content), scope, &identity).unwrap();
            auth::verify(&entry, &message, &signature)
        };
        verify(b"content").unwrap();
        verify(b"other").unwrap_err();
    }

    #[test]
    fn the_secret_of_rfc_8032_has_its_public_key() {
        let folder = folder();
        let path = folder.path().join("key");
        let secret = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        std::fs::write(&path, format!("{PREFIX}{secret}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(SigningKeyFile::load(&path).unwrap().public_key().as_str(), public);
    }

    #[test]
    fn loose_linked_and_malformed_files_are_refused() {
        let folder = folder();
        let path = folder.path().join("key");
        SigningKeyFile::generate(&path).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o700] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let refused = SigningKeyFile::load(&path);
            assert!(matches!(refused, Err(KeyError::Loose { mode: found, .. }) if found == mode));
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(SigningKeyFile::load(&link), Err(KeyError::Link { .. })));
        for text in ["", "ed25519-secret:00", "00", &format!("{PREFIX}{}", "A".repeat(64))] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(SigningKeyFile::load(&path), Err(KeyError::Malformed { .. })), "{text}");
        }
        assert!(matches!(SigningKeyFile::load(folder.path()), Err(KeyError::Malformed { .. })));
    }
}
