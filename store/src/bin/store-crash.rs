//! Crash runs of the store on the real disk: `kill RUNS [FOLDER]` and, as root, `power RUNS`.
//!
//! A child appends and says on its standard output what is durable; the parent ends it at a random moment, half of the
//! time while it opens, and then demands every record the child acknowledged.

use closer_contracts::Digest;
use closer_contracts::record::{Cursor, CustodyClass, Epoch, FencedAppend, Lane, Link, Record, RecordKind, StreamId};
use closer_contracts::time::Timestamp;
use closer_store::{Drive, Log, Reader, RealDisk, RecordLog, Settings};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Appends in flight in the child.
const IN_FLIGHT: usize = 16;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["child", folder, bytes] => child(Path::new(folder), bytes),
        ["kill", runs] => kill_in_passing(runs),
        ["kill", runs, folder] => kill(runs, Path::new(folder)),
        ["power", runs] => power(runs),
        _ => Err("usage: store-crash kill RUNS [FOLDER] | power RUNS".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("store-crash: {error}");
            ExitCode::FAILURE
        }
    }
}

fn open(folder: &Path) -> Outcome<Log> {
    let disk = RealDisk::at(folder.join("log"))?;
    let settings = Settings {
        segment_bytes: 2 << 20,
        drive: Drive::Thread,
        derived: Some(folder.join("derived")),
        ..Settings::default()
    };
    Ok(Log::open_on(Arc::new(disk), settings, None)?)
}

/// The record that stands at a cursor: everything about it follows from the cursor, so that anyone can check it.
fn record_at(cursor: Cursor, bytes: usize, log: &Log) -> Outcome<Record> {
    let id = format!("r-{}-{bytes}", cursor.0);
    let body: Arc<[u8]> = id.bytes().cycle().take(bytes).collect();
    let stream = StreamId::new(format!("stream:{}", cursor.0 % 3));
    let head = log.head(&stream)?;
    Ok(Record {
        kind: RecordKind::Payload,
        id,
        admitted_at: Timestamp::from_unix_ms(0),
        custody: CustodyClass::Open,
        links: vec![Link::after(stream, head)],
        claims: Vec::new(),
        body_digest: Digest::of(&body),
        body: Some(body),
    })
}

/// Appends for ever, saying `durable N` for each.
fn child(folder: &Path, bytes: &str) -> Outcome<()> {
    let bytes = bytes.parse()?;
    let log = open(folder)?;
    let epoch: Epoch = log.acquire()?;
    let mut next = log.durable();
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut in_flight = 0;
    loop {
        while in_flight < IN_FLIGHT {
            next = Cursor(next.0 + 1);
            let records = vec![record_at(next, bytes, &log)?];
            let ticket = log.submit(epoch, FencedAppend { lane: Lane::Reserved, guards: Vec::new(), records })?;
            let sender = sender.clone();
            ticket.on_durable(move |done| drop(sender.send(done)));
            in_flight += 1;
        }
        let landed = receiver.recv()??;
        in_flight -= 1;
        let mut out = std::io::stdout().lock();
        writeln!(out, "durable {}", landed.last.0)?;
        out.flush()?;
    }
}

/// Numbers from the clock's nanoseconds: crashes need variety, not repeatability.
fn random(below: u64) -> u64 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| u64::from(elapsed.subsec_nanos()));
    (nanos ^ (nanos >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15) % below.max(1)
}

fn spawn(folder: &Path, bytes: usize) -> Outcome<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").arg(folder).arg(bytes.to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command.spawn()?)
}

/// Reads what the child said until it ended: the last cursor it called durable.
fn last_durable(child: &mut Child) -> Outcome<u64> {
    let out = child.stdout.take().ok_or("the child has no output")?;
    let mut last = 0;
    for line in BufReader::new(out).lines() {
        let line = line?;
        // The last line may be cut short by the kill.
        if let Some(cursor) = line.strip_prefix("durable ").and_then(|word| word.parse().ok()) {
            last = last.max(cursor);
        }
    }
    child.wait()?;
    Ok(last)
}

/// Opens after a crash and demands every record up to `acknowledged`.
fn check(folder: &Path, acknowledged: u64) -> Outcome<u64> {
    let log = open(folder)?;
    let durable = log.durable().0;
    if durable < acknowledged {
        return Err(format!("{acknowledged} was acknowledged, the log ends at {durable}").into());
    }
    let verified = log.verify(&mut |_| {})?;
    if verified.records != durable {
        return Err(format!("{} records verified of {durable}", verified.records).into());
    }
    // A kill before the first append leaves an empty log: nothing was acknowledged, so there is nothing to demand.
    for cursor in [1, acknowledged / 2, acknowledged, durable].into_iter().filter(|at| (1..=durable).contains(at)) {
        let entry = log.record(Cursor(cursor), &Reader::SERVICE)?;
        if !entry.record.id.starts_with(&format!("r-{cursor}-")) {
            return Err(format!("record {cursor} is {}", entry.record.id).into());
        }
        let found = log.find(RecordKind::Payload, &entry.record.id, &Reader::SERVICE)?;
        if found.map(|found| found.cursor) != Some(Cursor(cursor)) {
            return Err(format!("record {cursor} is not found by its id").into());
        }
    }
    Ok(durable)
}

/// Runs in a temporary folder, kept if something is lost.
fn kill_in_passing(runs: &str) -> Outcome<()> {
    let folder = std::env::temp_dir().join(format!("store-crash-{}", std::process::id()));
    kill(runs, &folder)?;
    Ok(std::fs::remove_dir_all(&folder)?)
}

fn kill(runs: &str, folder: &Path) -> Outcome<()> {
    let runs: u64 = runs.parse()?;
    std::fs::create_dir_all(folder)?;
    let mut acknowledged = 0;
    for run in 0..runs {
        let while_opening = run % 2 == 1;
        let mut child = spawn(folder, if run % 4 < 2 { 1000 } else { 20_000 })?;
        std::thread::sleep(Duration::from_millis(random(if while_opening { 12 } else { 250 })));
        child.kill()?;
        acknowledged = last_durable(&mut child)?.max(acknowledged);
        if !while_opening {
            acknowledged = check(folder, acknowledged).map_err(|error| format!("run {run}: {error}"))?;
        }
    }
    let records = check(folder, acknowledged)?;
    println!("{runs} kills, half of them while opening: {records} records, none acknowledged lost");
    Ok(())
}

/// Cuts the power of an ext4 file system on a loop device under the writer.
fn power(runs: &str) -> Outcome<()> {
    let runs: u64 = runs.parse()?;
    let work = std::env::temp_dir().join(format!("store-power-{}", std::process::id()));
    let (image, mount) = (work.join("image"), work.join("mount"));
    std::fs::create_dir_all(&mount)?;
    for run in 0..runs {
        let bytes = if run % 2 == 0 { 1000 } else { 20_000 };
        std::fs::File::create(&image)?.set_len(512 << 20)?;
        run_tool("mkfs.ext4", &["-q", "-F", &text(&image)?])?;
        if let Err(error) = run_tool("mount", &["-o", "loop", &text(&image)?, &text(&mount)?]) {
            std::fs::remove_dir_all(&work)?;
            println!("skipped: a loop device cannot be mounted here ({error})");
            return Ok(());
        }
        let cut = one_cut(&mount, &image, bytes);
        let unmounted = run_tool("umount", &[&text(&mount)?]);
        let (durable, acknowledged) = cut.map_err(|error| format!("run {run}: {error}"))?;
        unmounted?;
        println!("run {run}: {bytes} byte records, {acknowledged} acknowledged, {durable} there");
    }
    std::fs::remove_dir_all(&work)?;
    println!("{runs} power cuts, none acknowledged lost");
    Ok(())
}

fn one_cut(mount: &Path, image: &Path, bytes: usize) -> Outcome<(u64, u64)> {
    let store = mount.join("store");
    let mut child = spawn(&store, bytes)?;
    std::thread::sleep(Duration::from_millis(200 + random(600)));
    shut_down(mount)?;
    std::thread::sleep(Duration::from_millis(50));
    child.kill()?;
    let acknowledged = last_durable(&mut child)?;
    let mut said = String::new();
    if let Some(mut errors) = child.stderr.take() {
        errors.read_to_string(&mut said)?;
    }
    if acknowledged == 0 {
        return Err(format!("the child wrote nothing: {said}").into());
    }
    run_tool("umount", &[&text(mount)?])?;
    run_tool("mount", &["-o", "loop", &text(image)?, &text(mount)?])?;
    Ok((check(&store, acknowledged)?, acknowledged))
}

/// `EXT4_IOC_SHUTDOWN` without flushing the journal: from here on nothing reaches the device.
fn shut_down(mount: &Path) -> Outcome<()> {
    const SCRIPT: &str = "import fcntl, os, struct, sys\n\
        fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))";
    run_tool("python3", &["-c", SCRIPT, &text(mount)?])
}

fn run_tool(tool: &str, arguments: &[&str]) -> Outcome<()> {
    let output = Command::new(tool).args(arguments).output().map_err(|error| format!("{tool}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{tool}: {}", String::from_utf8_lossy(&output.stderr).trim()).into()),
    }
}

fn text(path: &Path) -> Outcome<String> {
    let path: PathBuf = path.into();
    Ok(path.into_os_string().into_string().map_err(|path| format!("{}: not a text path", path.display()))?)
}
