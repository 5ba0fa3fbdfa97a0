//! The Unix socket of a running space, in its store's folder: mode 0600, peers told by the kernel, one JSON request a line.
//!
//! Whoever connects is who the kernel says: the user this process runs as speaks for the deployment's own identities, a
//! mapped one for the identity it is mapped to, anybody else is turned away before a byte is read.

mod client;
mod server;

pub use client::{ask, listens};
pub use server::Listener;

use std::path::{Path, PathBuf};

/// The socket's name in the store's folder.
pub const NAME: &str = "closer.sock";

/// The longest request or answer, in bytes.
pub const LINE_BYTES_MAX: u64 = 16 << 20;

/// The path of a store's socket. A path may have 107 bytes; a longer one is reached through its folder, opened.
struct Place {
    path: PathBuf,
    _folder: Option<std::os::fd::OwnedFd>,
}

const PATH_BYTES_MAX: usize = 100;

impl Place {
    fn of(store: &Path) -> std::io::Result<Self> {
        use std::os::fd::AsRawFd;
        let path = store.join(NAME);
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(Self { path, _folder: None });
        }
        let folder: std::os::fd::OwnedFd = std::fs::File::open(store)?.into();
        Ok(Self { path: PathBuf::from(format!("/proc/self/fd/{}/{NAME}", folder.as_raw_fd())), _folder: Some(folder) })
    }
}
