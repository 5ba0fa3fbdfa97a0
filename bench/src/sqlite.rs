//! The baseline by hand: the same checks, records, claims and heads as rows of SQLite, WAL, synchronous FULL.
//!
//! One connection writes; with many in flight it commits whatever has queued up as one transaction. An intent and its
//! result are two appends.

use crate::load::{Load, Submitter, measure};
use anyhow::{Context, Result, anyhow};
use closer_contracts::record::Record;
use rusqlite::{Connection, OptionalExtension, params};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// The longest that a commit may take: the committer may have ended over an error.
const COMMIT_MAX: Duration = Duration::from_secs(60);

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE record (cursor INTEGER PRIMARY KEY, kind TEXT, id TEXT, admitted_at TEXT, digest BLOB, body BLOB);
    CREATE TABLE head (stream TEXT PRIMARY KEY, position INTEGER, link BLOB) WITHOUT ROWID;
    CREATE TABLE claim (key TEXT PRIMARY KEY, digest BLOB) WITHOUT ROWID;
";

/// Appends per second.
pub(crate) fn run(folder: &Path, load: Load) -> Result<f64> {
    let mut database = Connection::open(folder.join("baseline.sqlite"))?;
    database.execute_batch(SCHEMA)?;
    let (sender, receiver) = channel::<(Vec<Record>, Sender<()>)>();
    let committer = std::thread::spawn(move || -> Result<()> {
        while let Ok(first) = receiver.recv() {
            let transaction = database.transaction()?;
            let mut done = Vec::new();
            for (records, sender) in std::iter::once(first).chain(receiver.try_iter()) {
                append(&transaction, &records)?;
                done.push(sender);
            }
            transaction.commit()?;
            for sender in done {
                sender.send(()).map_err(|_| anyhow!("a submitter is gone"))?;
            }
        }
        Ok(())
    });
    let rate = measure(load, |number| {
        let (sender, mut submitter) = (sender.clone(), Submitter::new(number));
        let (done, landed) = channel();
        move || {
            sender.send((submitter.next(), done.clone())).map_err(|_| anyhow!("the committer is gone"))?;
            landed.recv_timeout(COMMIT_MAX).context("the committer does not commit")
        }
    });
    drop(sender);
    committer.join().map_err(|_| anyhow!("the committer panicked"))??;
    rate
}

/// One fenced append: heads are compared, claims must be new, then everything is written.
fn append(database: &Connection, records: &[Record]) -> Result<()> {
    let mut head = database.prepare_cached("SELECT link FROM head WHERE stream = ?1")?;
    let mut set_head = database.prepare_cached("INSERT OR REPLACE INTO head VALUES (?1, ?2, ?3)")?;
    let mut claim = database.prepare_cached("INSERT INTO claim VALUES (?1, ?2)")?;
    let mut insert = database
        .prepare_cached("INSERT INTO record (kind, id, admitted_at, digest, body) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for record in records {
        let digest = record.digest();
        for link in &record.links {
            let stream = link.stream.as_str();
            let actual: Option<[u8; 32]> = head.query_row([stream], |row| row.get(0)).optional()?;
            if actual.as_ref() != link.previous.as_ref().map(closer_contracts::Digest::raw) {
                return Err(anyhow!("conflict on {stream}"));
            }
            set_head.execute(params![stream, link.position.0 as i64, link.head(digest).link.raw()])?;
        }
        for made in &record.claims {
            claim.execute(params![made.key.as_str(), made.digest.raw()])?;
        }
        let body = record.body.as_deref().context("a new record has a body")?;
        let (kind, time) = (record.kind.as_str(), record.admitted_at.as_str());
        insert.execute(params![kind, record.id, time, record.body_digest.raw(), body])?;
    }
    Ok(())
}
