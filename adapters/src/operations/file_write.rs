//! Writing a file so that no foreign write is lost.
//!
//! The new content is made ready under a private name in the target's own folder and **exchanged** with the target in
//! one step. Only then can it be known what was really there; it now stands under the private name and is compared with
//! what the action expected.
//!
//! ```text
//!          target   private        as expected → done; what was there is kept aside or removed
//! before   old      new            otherwise   → exchanged back, and what *that* took out is looked at again:
//! after    new      old            ours, untouched → done, nothing changed;  anything else is a newer foreign write,
//!                                  which goes back in turn
//! ```
//!
//! An exchange back that takes out a newer foreign write has put an older one in its place, so it is undone by the next
//! exchange, until what comes out is what was put in last. Each further round needs another writer to hit a window of
//! microseconds; after [`ROUNDS_MAX`] the file that is out is left where it is, named in the outcome, and nothing is
//! removed. What was put in counts as untouched only if it is the same file with the same content: a writer may have
//! opened ours and changed it in place.
//!
//! Two intervals remain, and the response states them. Between exchange and check (`residual_interval_us`) the target
//! shows content whose precondition is not yet verified. And a writer that opened the old file before the exchange may go
//! on writing into it in place; by default the old file is therefore kept beside the target and never removed.

use super::permitted::Permitted;
use super::report::{not_sent, responded, unknown};
use crate::confine::{Found, Place, Root};
use crate::declared::{Names, absolute};
use closer_contracts::branch;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::item::RepeatSafety;
use closer_protocol::port::{Clock, Performed};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

/// How often an exchange is followed by another before the file that is out is left aside.
const ROUNDS_MAX: u32 = 64;

/// The word that stands for "no file" where a digest of the expected content would stand.
pub const ABSENT: &str = "absent";

/// Contract `file_write`: replaces one file beneath a root folder by an atomic exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileWrite {
    /// The folder that targets lie beneath, as an absolute path. The target's address is relative to it.
    pub root: String,
    /// Whose files these are; the target's account must be the same.
    pub account: String,
    /// The parameter that holds the new content, as text.
    #[serde(default = "content")]
    pub content_parameter: String,
    /// The parameter that holds the digest of the content expected before, or `absent`.
    #[serde(default = "expected_previous")]
    pub expected_parameter: String,
    /// The new file's permissions in octal, such as `0644`. Default: those of the old file, or `0600`.
    #[serde(default)]
    pub mode: Option<String>,
    /// Whether the file that was taken out is kept beside the target under a hidden name, so that nothing is ever
    /// removed. Default: yes.
    #[serde(default = "yes")]
    pub keep_displaced: bool,
    /// The largest old file that is compared, in bytes. Default 16 MiB.
    #[serde(default = "previous_bytes_max")]
    pub previous_bytes_max: u64,
}

fn content() -> String {
    "content".to_owned()
}

fn expected_previous() -> String {
    "expected_previous".to_owned()
}

const fn yes() -> bool {
    true
}

const fn previous_bytes_max() -> u64 {
    16 << 20
}

impl FileWrite {
    pub(super) fn check(&self, names: Names<'_>) -> Result<(), Fault> {
        absolute(&self.root, "root")?;
        for (parameter, member) in
            [(&self.content_parameter, "content_parameter"), (&self.expected_parameter, "expected_parameter")]
        {
            names.parameter(parameter).map_err(|reason| Fault::schema(reason).within(member))?;
        }
        let mode = self.mode.as_ref().map_or(Ok(0), |octal| permissions(octal));
        mode.map(drop).map_err(|reason| Fault::schema(reason).within("mode"))
    }
}

fn permissions(octal: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(octal, 8).map_err(|_| format!("the mode `{octal}` is not an octal number"))?;
    Ok(mode & 0o777)
}

/// How safe repeating `file_write` is beneath this root: conditional where files can be exchanged atomically, otherwise
/// not repeat-safe. Tried out with two files of its own.
///
/// # Errors
/// When the folder cannot be written.
pub fn repeat_safety(root: &Path) -> std::io::Result<RepeatSafety> {
    let folder = rustix::fs::open(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let names = ["one", "two"].map(|which| format!(".closer-probe-{}-{which}", uuid::Uuid::now_v7()));
    let mut made = Ok(());
    for name in &names {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        made = made.and(rustix::fs::openat(&folder, name, flags, Mode::RUSR | Mode::WUSR).map(drop));
    }
    let [one, two] = &names;
    let exchanged = rustix::fs::renameat_with(&folder, one, &folder, two, RenameFlags::EXCHANGE);
    for name in &names {
        let _: Result<(), Errno> = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
    }
    made?;
    match exchanged {
        Ok(()) => Ok(RepeatSafety::Conditional),
        Err(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => Ok(RepeatSafety::NotRepeatSafe),
        Err(errno) => Err(errno.into()),
    }
}

/// The names under which files lie aside, by target: one while the outcome is open, one for the old file afterwards.
pub(crate) fn aside_prefix(name: &str) -> String {
    let digest = hex::encode(Digest::of(name.as_bytes()).raw());
    format!(".closer-{}-", digest.get(..12).unwrap_or_default())
}

/// The end of a name that holds something whose outcome was never settled.
pub(crate) const OPEN_SUFFIX: &str = ".open";
const KEPT_SUFFIX: &str = ".displaced";

/// What the target is expected to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Absent,
    Content(Digest),
}

/// One file as it was put in: which file it is, and its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    digest: Digest,
}

impl Identity {
    fn of(stat: &Stat, digest: Digest) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino, digest }
    }
}

/// One write under way.
struct Write<'a> {
    contract: &'a FileWrite,
    clock: &'a dyn Clock,
    place: Place,
    /// The private name.
    aside: String,
    content: &'a str,
}

/// Carries out one write. Blocks on the disk.
pub(super) fn perform(permitted: &Permitted, contract: &FileWrite, clock: &dyn Clock) -> Performed {
    match prepare(permitted, contract, clock) {
        Err(reason) => not_sent(reason),
        Ok((write, ours, Expected::Absent)) => write.create(ours),
        Ok((write, ours, Expected::Content(expected))) => match permitted.entry().repeat_safety {
            RepeatSafety::RepeatSafe | RepeatSafety::Conditional => write.exchange(ours, expected),
            RepeatSafety::NotRepeatSafe => write.replace(expected),
        },
    }
}

/// Everything up to the one step that others can see; whatever fails here has changed nothing.
fn prepare<'a>(
    permitted: &'a Permitted,
    contract: &'a FileWrite,
    clock: &'a dyn Clock,
) -> Result<(Write<'a>, Identity, Expected), String> {
    let target = permitted.target();
    if target.account.as_str() != contract.account {
        return Err(format!("the account `{}` is not the one this operation writes for", target.account));
    }
    let content = permitted.text(&contract.content_parameter)?;
    let expected = match permitted.text(&contract.expected_parameter)? {
        ABSENT => Expected::Absent,
        digest => Expected::Content(
            Digest::parse(digest).map_err(|fault| format!("`{}`: {fault}", contract.expected_parameter))?,
        ),
    };
    let place = Root::open(&contract.root)?.place(target.address.as_str())?;
    // The cheap look first: most mismatches are found before anything is written.
    let found = place.read(&place.name, 0, contract.previous_bytes_max)?;
    let old = agree(&found, expected)?;
    let mode = match &contract.mode {
        Some(octal) => permissions(octal)?,
        None => old.map_or(0o600, |stat| stat.st_mode & 0o777),
    };
    let aside = format!("{}{}{OPEN_SUFFIX}", aside_prefix(&place.name), permitted.attempt_id());
    let write = Write { contract, clock, place, aside, content };
    let ours = write.make_ready(Mode::from_raw_mode(mode))?;
    Ok((write, ours, expected))
}

fn agree(found: &Found, expected: Expected) -> Result<Option<&Stat>, String> {
    match (found, expected) {
        (Found::Absent, Expected::Absent) => Ok(None),
        (Found::File(content), Expected::Content(digest)) if content.digest == digest => Ok(Some(&content.stat)),
        (Found::File(content), Expected::Content(_) | Expected::Absent) => Err(format!(
            "the target holds {}, which is not what the action expected; it was left alone",
            content.digest
        )),
        (Found::Absent, Expected::Content(_)) => {
            Err("the target is not there, but the action expected content; nothing was written".to_owned())
        }
    }
}

impl Write<'_> {
    /// Puts the new content, durably, under the private name.
    fn make_ready(&self, mode: Mode) -> Result<Identity, String> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.place.folder, &self.aside, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| format!("the new content cannot be made ready: {errno}"))?;
        let ready = || -> std::io::Result<Stat> {
            let mut file = File::from(fd);
            file.write_all(self.content.as_bytes())?;
            rustix::fs::fchmod(&file, mode)?;
            file.sync_all()?;
            Ok(rustix::fs::fstat(&file)?)
        };
        match ready() {
            Ok(stat) => Ok(Identity::of(&stat, self.digest())),
            Err(error) => {
                self.discard();
                Err(format!("the new content cannot be made ready: {error}"))
            }
        }
    }

    fn digest(&self) -> Digest {
        Digest::of(self.content.as_bytes())
    }

    /// Removes the private name. Only where what it holds is known to be ours.
    fn discard(&self) {
        if let Err(errno) = rustix::fs::unlinkat(&self.place.folder, &self.aside, AtFlags::empty()) {
            tracing::warn!(name = %self.aside, %errno, "a private file could not be removed");
        }
    }

    fn rename(&self, flags: RenameFlags) -> Result<(), Errno> {
        let folder = &self.place.folder;
        rustix::fs::renameat_with(folder, &self.aside, folder, &self.place.name, flags)
    }

    fn sync_folder(&self) -> Result<(), Errno> {
        rustix::fs::fsync(&self.place.folder)
    }

    /// Puts the new file where none is, or leaves everything alone.
    fn create(&self, ours: Identity) -> Performed {
        let sent_at = self.clock.now().0;
        if let Err(errno) = self.rename(RenameFlags::NOREPLACE) {
            self.discard();
            return not_sent(match errno {
                Errno::EXIST => "a file appeared where the action expected none; it was left alone".to_owned(),
                errno => format!("the new file could not be put in place: {errno}"),
            });
        }
        match self.sync_folder() {
            Ok(()) => responded(
                self.clock,
                sent_at,
                json!({ "outcome": "created", "written": ours.digest, "residual_interval_us": 0 }),
            ),
            Err(errno) => unknown(sent_at, format!("the folder could not be made durable: {errno}")),
        }
    }

    /// What stands under the private name now.
    fn aside_identity(&self) -> Result<Identity, String> {
        match self.place.read(&self.aside, 0, self.contract.previous_bytes_max)? {
            Found::File(content) => Ok(Identity::of(&content.stat, content.digest)),
            Found::Absent => Err(format!("the private file `{}` was taken away", self.aside)),
        }
    }

    /// The exchange and the check of what it took out.
    fn exchange(&self, ours: Identity, expected: Digest) -> Performed {
        let sent_at = self.clock.now().0;
        let exchanged_at = Instant::now();
        if let Err(errno) = self.rename(RenameFlags::EXCHANGE) {
            self.discard();
            return not_sent(format!("the target could not be exchanged, and is as it was: {errno}"));
        }
        let displaced = self.aside_identity();
        let interval_us = u64::try_from(exchanged_at.elapsed().as_micros()).unwrap_or(u64::MAX);
        match displaced {
            Ok(displaced) if branch!("file_write.displaced_as_expected", displaced.digest == expected) => {
                let kept = match self.settle_displaced() {
                    Ok(kept) => kept,
                    Err(reason) => return unknown(sent_at, reason),
                };
                let response = json!({
                    "outcome": "exchanged",
                    "written": ours.digest,
                    "displaced": displaced.digest,
                    "displaced_kept_as": kept,
                    "residual_interval_us": interval_us,
                });
                responded(self.clock, sent_at, response)
            }
            Ok(displaced) => self.give_back(ours, displaced, interval_us, sent_at),
            // Something else than a readable file was swapped out: it is foreign, and goes back.
            Err(reason) => match self.rename(RenameFlags::EXCHANGE) {
                Ok(()) => unknown(
                    sent_at,
                    format!("{reason}; it was put back, and what that took out is in `{}`", self.aside),
                ),
                Err(errno) => unknown(sent_at, format!("{reason}; it is in `{}`: {errno}", self.aside)),
            },
        }
    }

    /// Keeps or removes the file that is out and makes the folder durable.
    fn settle_displaced(&self) -> Result<Option<String>, String> {
        let folder = &self.place.folder;
        let settled = match self.contract.keep_displaced {
            true => {
                let kept = format!("{}{KEPT_SUFFIX}", self.aside.strip_suffix(OPEN_SUFFIX).unwrap_or(&self.aside));
                rustix::fs::renameat_with(folder, &self.aside, folder, &kept, RenameFlags::NOREPLACE)
                    .map(|()| Some(kept))
            }
            false => rustix::fs::unlinkat(folder, &self.aside, AtFlags::empty()).map(|()| None),
        };
        settled
            .and_then(|kept| self.sync_folder().map(|()| kept))
            .map_err(|errno| format!("the exchange took place, but could not be made durable: {errno}"))
    }

    /// Exchanges back until what comes out is what was put in last, so that the newest foreign write stays.
    fn give_back(
        &self,
        ours: Identity,
        found: Identity,
        interval_us: u64,
        sent_at: closer_contracts::time::Timestamp,
    ) -> Performed {
        let mut put_in = ours;
        let mut out = found;
        for round in 1..=ROUNDS_MAX {
            if let Err(errno) = self.rename(RenameFlags::EXCHANGE) {
                return self.left_aside(sent_at, found, &format!("it could not be put back: {errno}"));
            }
            let taken = match self.aside_identity() {
                Ok(taken) => taken,
                Err(reason) => return self.left_aside(sent_at, found, &reason),
            };
            if branch!("file_write.taken_out_was_put_in", taken == put_in) {
                // What is out is ours, or a foreign write that a newer one at the target has replaced.
                return match self.settle_displaced() {
                    Ok(kept) => responded(
                        self.clock,
                        sent_at,
                        json!({
                            "outcome": "given_back",
                            "found": found.digest,
                            "rounds": round,
                            "taken_out_kept_as": kept,
                            "residual_interval_us": interval_us,
                        }),
                    ),
                    Err(reason) => unknown(sent_at, reason),
                };
            }
            put_in = out;
            out = taken;
        }
        self.left_aside(sent_at, found, "other writers kept changing the target")
    }

    fn left_aside(&self, sent_at: closer_contracts::time::Timestamp, found: Identity, why: &str) -> Performed {
        unknown(
            sent_at,
            format!(
                "the target held {}, which was not expected; a file that may be a foreign write is left in `{}`: {why}",
                found.digest, self.aside
            ),
        )
    }

    /// Without the exchange: look, then replace. A write that falls between the two is lost, which is why the operation
    /// is registered as not repeat-safe.
    fn replace(&self, expected: Digest) -> Performed {
        let looked_at = Instant::now();
        let found = self.place.read(&self.place.name, 0, self.contract.previous_bytes_max);
        if let Err(reason) = found.and_then(|found| agree(&found, Expected::Content(expected)).map(drop)) {
            self.discard();
            return not_sent(reason);
        }
        let sent_at = self.clock.now().0;
        if let Err(errno) = self.rename(RenameFlags::empty()) {
            self.discard();
            return not_sent(format!("the target could not be replaced, and is as it was: {errno}"));
        }
        let interval_us = u64::try_from(looked_at.elapsed().as_micros()).unwrap_or(u64::MAX);
        match self.sync_folder() {
            Ok(()) => responded(
                self.clock,
                sent_at,
                json!({
                    "outcome": "replaced_without_exchange",
                    "written": self.digest(),
                    "residual_interval_us": interval_us,
                }),
            ),
            Err(errno) => unknown(sent_at, format!("the folder could not be made durable: {errno}")),
        }
    }
}

#[cfg(test)]
#[path = "file_write_tests.rs"]
mod tests;
