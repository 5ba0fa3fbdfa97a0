//! Opening a large store after its process was killed, beside reading the same files.

use crate::report::Report;
use anyhow::{Context, Result, ensure};
use closer_contracts::Digest;
use closer_contracts::record::{CustodyClass, FencedAppend, Lane, Link, Record, RecordKind, StreamId};
use closer_contracts::time::Timestamp;
use closer_store::{Log, RecordLog};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of one small record's body.
const BODY_BYTES: usize = 200;
/// Streams that the records are spread over.
const STREAMS: u64 = 10_000;
/// Records per append while filling.
const RECORDS_PER_APPEND: u64 = 100;

#[derive(clap::Args)]
pub(crate) struct Fill {
    folder: PathBuf,
    records: u64,
}

/// Fills a store, says so, and goes on appending until it is killed.
pub(crate) fn fill(fill: &Fill) -> Result<()> {
    let log = Log::open(&fill.folder, None)?;
    let epoch = log.acquire()?;
    let mut next = 0;
    loop {
        let mut records = Vec::new();
        for number in next..next + RECORDS_PER_APPEND {
            let id = format!("record-{number:08}");
            let body: Arc<[u8]> = id.bytes().cycle().take(BODY_BYTES).collect();
            let stream = StreamId::new(format!("stream:{}", number % STREAMS));
            let head = log.head(&stream)?;
            records.push(Record {
                kind: RecordKind::Payload,
                id,
                admitted_at: Timestamp::from_unix_ms(1_700_000_000_000),
                custody: CustodyClass::Open,
                links: vec![Link::after(stream, head)],
                claims: Vec::new(),
                body_digest: Digest::of(&body),
                body: Some(body),
            });
        }
        next += RECORDS_PER_APPEND;
        let ticket = log.submit(epoch, FencedAppend { lane: Lane::Reserved, guards: Vec::new(), records })?;
        let appended = ticket.wait()?;
        if appended.last.0 == fill.records.next_multiple_of(RECORDS_PER_APPEND) {
            ensure!(log.derived().is_some_and(|derived| derived.wait_for(appended.last, Duration::from_secs(300))));
            println!("filled");
            std::io::stdout().flush()?;
        }
    }
}

/// Fills a store in a child, kills it, and measures.
pub(crate) fn run(folder: &Path, records: u64, report: &mut Report) -> Result<()> {
    let arguments = ["fill".into(), folder.to_path_buf().into_os_string(), records.to_string().into()];
    let mut child = Command::new(std::env::current_exe()?).args(arguments).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
    ensure!(line.trim() == "filled", "the child did not fill the store");
    child.kill()?;
    child.wait()?;

    let log_folder = folder.join("log");
    read_all(&log_folder)?;
    let (bytes, reading) = read_all(&log_folder)?;
    let started = Instant::now();
    let log = Log::open(folder, None)?;
    let opening = started.elapsed();
    ensure!(log.durable().0 >= records, "records are missing");
    ensure!(log.derived().is_some_and(|derived| derived.wait_for(log.durable(), Duration::from_secs(300))));
    let following = started.elapsed();
    let rebuilding = Instant::now();
    log.rebuild(&mut |_| {})?;
    let rebuilt = rebuilding.elapsed();
    report.row("reopen_records", log.durable().0 as f64, "");
    report.row("reopen_log_mib", bytes as f64 / f64::from(1 << 20), "segments as read, unwritten space included");
    report.row("reopen_read_files_s", reading.as_secs_f64(), "all segments from the page cache");
    report.row("reopen_after_kill_s", opening.as_secs_f64(), "until appends and reads are served");
    report.row("reopen_ratio", opening.as_secs_f64() / reading.as_secs_f64(), "target at most 3");
    report.row("reopen_index_follows_s", following.as_secs_f64(), "until the derived state follows");
    report.row("rebuild_s", rebuilt.as_secs_f64(), "derived state from nothing, while serving");
    Ok(())
}

/// Reads every segment once.
fn read_all(folder: &Path) -> Result<(u64, Duration)> {
    let started = Instant::now();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let mut file = std::fs::File::open(path)?;
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    count => bytes += count as u64,
                }
            }
        }
    }
    Ok((bytes, started.elapsed()))
}
