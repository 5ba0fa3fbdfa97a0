//! A deployment in a folder of its own, and the binary run on it.

use closer_contracts::delta::Change;
use closer_contracts::envelope::Body;
use closer_contracts::record::Cursor;
use closer_contracts::refusal::Refusal;
use closer_protocol::Entry;
use closer_protocol::entry::Notice;
use closer_store::Log;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The compiled binary.
pub(crate) const CLOSER: &str = env!("CARGO_BIN_EXE_closer");

/// How one call went.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Called {
    /// The one JSON value on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }
}

/// A deployment's folder, gone with its test.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// A deployment with this file.
    pub(crate) fn with(closer_toml: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::write(place.path().join("closer.toml"), closer_toml).unwrap();
        place
    }

    /// A copy of an example, without what a run of it has left.
    pub(crate) fn example(name: &str, change: impl Fn(String) -> String) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
        Self::with(&change(fs::read_to_string(root.join("closer.toml")).unwrap()))
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path().join("var/store")
    }

    /// The binary with a verb on this deployment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(CLOSER);
        command.arg("-C").arg(self.path()).args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs a verb to its end.
    pub(crate) fn call(&self, arguments: &[&str]) -> Called {
        called(self.command(arguments))
    }

    /// `closer run` on this deployment.
    pub(crate) fn run(&self, options: &[&str]) -> Called {
        self.run_with(options, &[])
    }

    pub(crate) fn run_with(&self, options: &[&str], environment: &[(&str, &str)]) -> Called {
        let mut command = Command::new(CLOSER);
        command.arg("run").arg(self.path()).args(options).stdin(Stdio::null());
        command.envs(environment.iter().copied());
        called(command)
    }

    /// `closer run` in the background, until it is dropped.
    pub(crate) fn running(&self, options: &[&str]) -> Background {
        let mut command = Command::new(CLOSER);
        command.arg("run").arg(self.path()).args(options);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let background = Background(command.spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.store().join("closer.sock").exists() {
            assert!(Instant::now() < deadline, "the run did not open its socket");
            std::thread::sleep(Duration::from_millis(20));
        }
        background
    }
}

/// The binary, on no deployment of its own.
pub(crate) fn call(arguments: &[&str]) -> Called {
    let mut command = Command::new(CLOSER);
    command.args(arguments).stdin(Stdio::null());
    called(command)
}

/// Runs a command to its end.
pub(crate) fn called(mut command: Command) -> Called {
    let output = command.output().unwrap();
    Called {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A run in the background.
pub(crate) struct Background(Child);

impl Background {
    /// Asks it to end and gives its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal("-TERM");
        self.0.wait().unwrap().code()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: &str) {
        Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if self.0.try_wait().unwrap().is_none() {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }
}

/// Whether the real openssl is here; says so where it is not.
pub(crate) fn has_openssl() -> bool {
    let found = Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: the command `openssl` is not installed");
    }
    found
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A small deployment: one target file, changed by a declared program that counts its runs in `runs` and takes a while.
pub(crate) fn counting(repeat_safety: &str) -> String {
    taking("0.2", repeat_safety)
}

/// As [`counting`], with a program that takes so many seconds.
pub(crate) fn taking(seconds: &str, repeat_safety: &str) -> String {
    include_str!("counting.toml").replace("REPEAT_SAFETY", repeat_safety).replace("SECONDS", seconds)
}

/// As [`taking`], with so many obligations, each about a file of its own that has something to do once it says `go`.
pub(crate) fn many(count: usize, seconds: &str) -> String {
    let one = taking(seconds, "conditional");
    let (head, rest) = one.split_once("[[obligation]]\n").unwrap();
    let (kept, work) = rest.split_once("[[participant]]\n").unwrap();
    let named = |name: &str, index: usize| format!("{name}-{index}");
    let files: Vec<String> = (0..count).map(|index| format!("\"var/world/{}\"", named("target", index))).collect();
    let mut text = head.replace("arguments = [\"var/world/target\"]", &format!("arguments = [{}]", files.join(", ")));
    text = text.replace("creates = \"var/world/target\"", "creates = \"var/world/target-0\"");
    for index in 0..count {
        let mut kept = format!("[[obligation]]\n{kept}");
        for name in ["obligation.count", "condition.count", "dependency.count", "dependency.word", "reentry.count"] {
            kept = kept.replace(&format!("\"{name}\""), &format!("\"{}\"", named(name, index)));
        }
        for (from, to) in [("\"target\"", "target"), ("\"file.target\"", "file.target"), ("\"file-says-done\"", "done")]
        {
            kept = kept.replace(from, &format!("\"{}\"", named(to, index)));
        }
        text.push_str(&kept);
    }
    let anything = "{ field = \"/observation/type\", comparison = \"equals\", value = \"file\" }";
    let go = "{ field = \"/observation/value/content\", comparison = \"equals\", value = \"go\\n\" }";
    let own = "items.obligation = [{ field = \"/item\", comparison = \"equals\", value = \"obligation\" }]\nitems.file";
    let target = "target = { type = \"file\", account = \"local\", address = \"target\" }";
    let work = work
        .replace(anything, go)
        .replace("items.file", own)
        .replace("file-says-done", "{{obligation/gap/propositions/0}}")
        .replace(target, "target = \"{{file/target_binding/target}}\"");
    text + "[[participant]]\n" + &work
}

/// Everything on record of a deployment that nobody runs, with its sequence number.
pub(crate) fn entries(place: &Place) -> Vec<(u64, Entry)> {
    let log = Log::open(&place.store(), None).unwrap();
    let mut entries = Vec::new();
    log.replay(Cursor(1), &mut |cursor, record| entries.push((cursor.0, Entry::read(record).unwrap()))).unwrap();
    entries
}

/// The payload that an entry holds.
pub(crate) fn body(entry: &Entry) -> Option<&Body> {
    if let Entry::Payload(payload) = entry { Some(payload.body()) } else { None }
}

/// The changes that an entry commits.
pub(crate) fn changes(entry: &Entry) -> &[Change] {
    if let Entry::Commit(commit) = entry { &commit.delta.changes } else { &[] }
}

/// The refusal that an entry is.
pub(crate) fn refusal(entry: &Entry) -> Option<&Refusal> {
    if let Entry::Refusal(refusal) = entry { Some(refusal) } else { None }
}

/// The notice that an entry is.
pub(crate) fn notice(entry: &Entry) -> Option<&Notice> {
    if let Entry::Notice(notice) = entry { Some(notice) } else { None }
}

/// The segments of a store, in order.
pub(crate) fn segments(store: &Path) -> Vec<PathBuf> {
    let log = fs::read_dir(store.join("log")).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<PathBuf> =
        log.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect();
    segments.sort();
    segments
}

/// A file system of its own, mounted for as long as the value lives.
pub(crate) struct Mount(PathBuf);

impl Mount {
    /// Mounts one of this size, or nothing where that is not allowed.
    pub(crate) fn tmpfs(at: &Path, size: &str) -> Option<Self> {
        let options = format!("size={size},mode=700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).status();
        mounted.is_ok_and(|status| status.success()).then(|| Self(at.to_owned()))
    }

    /// Nothing there can be written from now on.
    pub(crate) fn read_only(&self) {
        let again = Command::new("mount").args(["-o", "remount,ro"]).arg(&self.0).status();
        assert!(again.is_ok_and(|status| status.success()), "the file system is mounted again");
    }

    pub(crate) fn resize(&self, size: &str) {
        let resized = Command::new("mount").args(["-o", &format!("remount,size={size}")]).arg(&self.0).status();
        assert!(resized.is_ok_and(|status| status.success()), "the file system is resized");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "the file system is unmounted");
    }
}
