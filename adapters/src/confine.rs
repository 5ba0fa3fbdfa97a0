//! Files beneath a root folder and nowhere else.
//!
//! A contract names the root, an action's target the address below it. The address is a plain relative path; `..`, empty
//! parts and symbolic links in any part are refused. The kernel does the walk (`openat2` with `RESOLVE_BENEATH` and
//! `RESOLVE_NO_SYMLINKS`), so that nobody can swap a part between check and use; where that call is missing, each part
//! is opened by itself without following links.

use closer_contracts::digest::Digest;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::Read;

/// A folder that targets lie beneath.
#[derive(Debug)]
pub(crate) struct Root {
    folder: OwnedFd,
    path: String,
}

/// Where one target lies: its folder, held open, and its name in it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) folder: OwnedFd,
    pub(crate) name: String,
    /// The whole path, for programs that take one. It may lead elsewhere by the time it is used.
    pub(crate) path: String,
}

/// A regular file that was read.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) digest: Digest,
    pub(crate) stat: Stat,
    /// How many bytes were read.
    pub(crate) count: u64,
    /// Its bytes, where there are no more than asked for.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// What stands at a name.
#[derive(Debug)]
pub(crate) enum Found {
    /// Nothing.
    Absent,
    /// A regular file.
    File(Box<Content>),
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Root {
    /// Opens the root that a contract names by an absolute path.
    pub(crate) fn open(path: &str) -> Result<Self, String> {
        if !path.starts_with('/') {
            return Err(format!("the root `{path}` is not an absolute path"));
        }
        let folder = rustix::fs::open(path, FOLDER, Mode::empty())
            .map_err(|errno| format!("the root `{path}` cannot be opened: {errno}"))?;
        Ok(Self { folder, path: path.trim_end_matches('/').to_owned() })
    }

    /// Finds the folder that an address lies in. The name itself need not exist.
    pub(crate) fn place(&self, address: &str) -> Result<Place, String> {
        self.place_by(address, open_beneath)
    }

    fn place_by(&self, address: &str, open: Opener) -> Result<Place, String> {
        let outside = |part: &str| matches!(part, "" | "." | "..") || part.contains('\0');
        if address.split('/').any(outside) {
            return Err(format!("the address `{address}` is not a plain relative path"));
        }
        let (folder, name) = match address.rsplit_once('/') {
            Some((folder, name)) => (open(&self.folder, folder), name),
            None => (open(&self.folder, "."), address),
        };
        let folder = folder.map_err(|errno| match errno {
            Errno::LOOP | Errno::NOTDIR | Errno::XDEV => {
                format!("the address `{address}` goes through a symbolic link or something that is no folder")
            }
            errno => format!("the folder of `{address}` cannot be opened: {errno}"),
        })?;
        Ok(Place { folder, name: name.to_owned(), path: format!("{}/{address}", self.path) })
    }
}

type Opener = fn(&OwnedFd, &str) -> Result<OwnedFd, Errno>;

/// Opens a folder beneath another, by the kernel's own confined walk where there is one.
fn open_beneath(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(root, path, FOLDER, Mode::empty(), resolve) {
        // Old kernels lack the call; some sandboxes forbid it.
        Err(Errno::NOSYS | Errno::PERM) => open_by_parts(root, path),
        opened => opened,
    }
}

/// Opens a folder beneath another part by part, following no link.
fn open_by_parts(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    let mut folder = rustix::fs::openat(root, ".", FOLDER, Mode::empty())?;
    for part in path.split('/').filter(|part| *part != ".") {
        folder = rustix::fs::openat(&folder, part, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(folder)
}

impl Place {
    /// Opens what stands at a name of this folder, anew, and reads it through.
    ///
    /// More than `bytes_max` is not read. Links, folders and devices are refused.
    pub(crate) fn read(&self, name: &str, keep_bytes_max: u64, bytes_max: u64) -> Result<Found, String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.folder, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(Found::Absent),
            Err(Errno::LOOP) => return Err(format!("`{name}` is a symbolic link")),
            Err(errno) => return Err(format!("`{name}` cannot be opened: {errno}")),
        };
        let stat = rustix::fs::fstat(&fd).map_err(|errno| format!("`{name}` cannot be looked at: {errno}"))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(format!("`{name}` is not a regular file"));
        }
        let mut file = File::from(fd);
        let mut hasher = Sha256::new();
        let mut kept = Vec::new();
        let mut count: u64 = 0;
        let mut buffer = vec![0u8; 65_536];
        loop {
            let length = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(format!("`{name}` cannot be read: {error}")),
            };
            let chunk = buffer.get(..length).unwrap_or_default();
            count = count.saturating_add(length as u64);
            if count > bytes_max {
                return Err(format!("`{name}` has more than {bytes_max} bytes"));
            }
            hasher.update(chunk);
            if count <= keep_bytes_max {
                kept.extend_from_slice(chunk);
            }
        }
        Ok(Found::File(Box::new(Content {
            digest: Digest::from_raw(hasher.finalize().into()),
            stat,
            count,
            bytes: (count <= keep_bytes_max).then_some(kept),
        })))
    }

    /// Refuses a name that is there and is no regular file, without opening it.
    pub(crate) fn require_regular(&self) -> Result<(), String> {
        match rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => Ok(()),
            Ok(_) => Err(format!("`{}` is a symbolic link or no regular file", self.name)),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(format!("`{}` cannot be looked at: {errno}", self.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const OPENERS: [Opener; 2] = [open_beneath, open_by_parts];

    fn scene() -> (tempfile::TempDir, Root) {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "inside").unwrap();
        std::fs::create_dir(outer.path().join("outside")).unwrap();
        std::fs::write(outer.path().join("outside/file"), "outside").unwrap();
        symlink("../../outside", root.join("a/link")).unwrap();
        symlink("b", root.join("a/inner")).unwrap();
        symlink("b/file", root.join("a/file")).unwrap();
        let opened = Root::open(root.to_str().unwrap()).unwrap();
        (outer, opened)
    }

    #[test]
    fn a_plain_address_is_read_by_both_walks() {
        let (_outer, root) = scene();
        for open in OPENERS {
            let place = root.place_by("a/b/file", open).unwrap();
            let Found::File(content) = place.read(&place.name, 100, 100).unwrap() else {
                panic!("the file is there");
            };
            assert_eq!(content.bytes.as_deref(), Some(&b"inside"[..]));
            assert_eq!(content.digest, Digest::of(b"inside"));
            let absent = root.place_by("a/b/none", open).unwrap();
            assert!(matches!(absent.read("none", 0, 100), Ok(Found::Absent)));
        }
    }

    #[test]
    fn an_address_that_leaves_the_root_is_refused() {
        let (_outer, root) = scene();
        for address in [
            "../outside/file",
            "a/../../outside/file",
            "/etc/passwd",
            "a//b/file",
            "./a/b/file",
            "a/b/",
            "",
            ".",
            "..",
            "a/b/fi\0le",
        ] {
            for open in OPENERS {
                let refused = root.place_by(address, open).unwrap_err();
                assert!(refused.contains("plain relative path"), "{address}: {refused}");
            }
        }
    }

    #[test]
    fn a_symbolic_link_in_any_part_is_refused() {
        let (_outer, root) = scene();
        for open in OPENERS {
            for address in ["a/link/file", "a/inner/file"] {
                let refused = root.place_by(address, open).unwrap_err();
                assert!(refused.contains("symbolic link"), "{address}: {refused}");
            }
            let place = root.place_by("a/file", open).unwrap();
            assert!(place.read("file", 100, 100).unwrap_err().contains("symbolic link"));
            assert!(place.require_regular().unwrap_err().contains("symbolic link"));
        }
    }

    #[test]
    fn folders_pipes_and_oversized_files_are_refused() {
        let (_outer, root) = scene();
        let place = root.place("a/b/file").unwrap();
        assert!(place.read("file", 3, 5).unwrap_err().contains("more than 5 bytes"));
        let Found::File(content) = place.read("file", 3, 6).unwrap() else {
            panic!("the file is there");
        };
        assert_eq!(content.bytes, None);
        let above = root.place("a/b").unwrap();
        assert!(above.read("b", 0, 10).unwrap_err().contains("regular file"));
        rustix::fs::mknodat(&place.folder, "pipe", FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(place.read("pipe", 0, 10).unwrap_err().contains("regular file"));
    }

    #[test]
    fn a_root_that_is_not_absolute_or_not_there_is_refused() {
        assert!(Root::open("relative").unwrap_err().contains("absolute"));
        assert!(Root::open("/nonexistent-closer-root").is_err());
    }
}
