//! The work every engine does: one fenced append of three records of about 1 KB on four streams.

use anyhow::{Result, anyhow};
use closer_contracts::Digest;
use closer_contracts::record::{Claim, ClaimKey, CustodyClass, Head, Link, Record, RecordKind, StreamId};
use closer_contracts::time::Timestamp;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Records in one append.
pub(crate) const RECORDS: usize = 3;
/// Bytes of one body.
pub(crate) const BODY_BYTES: usize = 1000;
/// Streams each submitter writes to.
pub(crate) const STREAMS: usize = 4;

/// How much at once, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Submitters, each with one append in flight.
    pub(crate) in_flight: usize,
    /// How long the measurement lasts.
    pub(crate) duration: Duration,
}

/// What one submitter appends, one after the other: streams of its own, ids never seen before.
pub(crate) struct Submitter {
    number: usize,
    count: u64,
    heads: Vec<(StreamId, Option<Head>)>,
}

impl Submitter {
    pub(crate) fn new(number: usize) -> Self {
        let stream = |index| (StreamId::new(format!("bench:{number}:{index}")), None);
        Self { number, count: 0, heads: (0..STREAMS).map(stream).collect() }
    }

    /// The records of the next append: the first is linked to two streams, the others to one each.
    pub(crate) fn next(&mut self) -> Vec<Record> {
        self.count += 1;
        let mut heads = self.heads.iter_mut();
        (0..RECORDS)
            .map(|index| {
                let id = format!("record-{:03}-{:010}-{index}", self.number, self.count);
                let body: Arc<[u8]> = id.bytes().cycle().take(BODY_BYTES).collect();
                let body_digest = Digest::of(&body);
                let mut record = Record {
                    kind: RecordKind::Payload,
                    claims: vec![Claim { key: ClaimKey::new(format!("payload:{id}")), digest: body_digest }],
                    id,
                    admitted_at: Timestamp::from_unix_ms(1_700_000_000_000),
                    custody: CustodyClass::Open,
                    links: Vec::new(),
                    body_digest,
                    body: Some(body),
                };
                let digest = record.digest();
                for (stream, head) in heads.by_ref().take(if index == 0 { 2 } else { 1 }) {
                    let link = Link::after(stream.clone(), *head);
                    *head = Some(link.head(digest));
                    record.links.push(link);
                }
                record
            })
            .collect()
    }
}

/// Runs `work` over and over on each submitter's own thread, and counts per second.
pub(crate) fn measure<W>(load: Load, make: impl Fn(usize) -> W + Sync) -> Result<f64>
where
    W: FnMut() -> Result<()>,
{
    let start = Instant::now();
    let deadline = start + load.duration;
    let counts: Vec<Result<u64>> = std::thread::scope(|scope| {
        let submitters: Vec<_> = (0..load.in_flight)
            .map(|number| {
                let make = &make;
                scope.spawn(move || {
                    let mut work = make(number);
                    let mut count = 0;
                    while Instant::now() < deadline {
                        work()?;
                        count += 1;
                    }
                    Ok(count)
                })
            })
            .collect();
        submitters.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a submitter panicked"))?).collect()
    });
    let total: u64 = counts.into_iter().sum::<Result<u64>>()?;
    Ok(total as f64 / start.elapsed().as_secs_f64())
}
