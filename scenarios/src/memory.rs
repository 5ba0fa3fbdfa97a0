//! What a space keeps its records in, and the simplest of it: a log in memory with the store's observable behaviour.

use closer_contracts::Digest;
use closer_contracts::record::{
    Appended, ClaimKey, Conflict, Cursor, Epoch, FencedAppend, Guard, Head, Reads, Record, StreamId,
};
use closer_store::{Declined, StoreError};
use std::collections::BTreeMap;

/// What a space keeps its records in: it takes an append whole or not at all, and tells later what has become durable.
pub trait Ground: Reads + Send {
    /// Offers a decided append. Nothing that depends on it may leave before it has landed.
    ///
    /// # Errors
    /// The guard that failed, or why the store could not take it.
    fn submit(&mut self, append: FencedAppend) -> Result<Appended, Declined>;

    /// How many appends have become durable since this was asked last, the oldest first.
    ///
    /// # Errors
    /// Those that are not durable never will be.
    fn landed(&mut self) -> Result<usize, StoreError>;

    /// Every record as this holder knows the log, in order, those on their way included.
    fn records(&self) -> &[Record];

    /// The epoch that holds the lease now, whoever that is.
    fn lease(&self) -> Epoch;
}

/// Records, heads and claims, in memory: what is taken is durable at once.
#[derive(Debug, Clone, Default)]
pub struct MemoryLog {
    records: Vec<Record>,
    heads: BTreeMap<StreamId, Head>,
    claims: BTreeMap<ClaimKey, Digest>,
    landed: usize,
}

impl Reads for MemoryLog {
    fn head(&self, stream: &StreamId) -> Option<Head> {
        self.heads.get(stream).copied()
    }

    fn claim(&self, key: &ClaimKey) -> Option<Digest> {
        self.claims.get(key).copied()
    }
}

impl MemoryLog {
    /// A log that holds these records, in order.
    #[must_use]
    pub fn of(records: Vec<Record>) -> Self {
        let mut log = Self::default();
        records.into_iter().for_each(|record| log.keep(record));
        log
    }

    /// Says which guard of an append does not hold, if one does not.
    ///
    /// # Errors
    /// The first conflict.
    pub fn check(&self, append: &FencedAppend) -> Result<(), Conflict> {
        for guard in &append.guards {
            match guard {
                Guard::Head { stream, expected } => {
                    let actual = self.head(stream);
                    if actual.map(|head| head.link) != *expected {
                        return Err(Conflict::Head { stream: stream.clone(), actual });
                    }
                }
                Guard::Claim { key, allowed } => {
                    if let Some(actual) = self.claim(key).filter(|actual| Some(*actual) != *allowed) {
                        return Err(Conflict::Claim { key: key.clone(), actual });
                    }
                }
            }
        }
        let mut heads: BTreeMap<&StreamId, Head> = BTreeMap::new();
        let mut claims: BTreeMap<&ClaimKey, Digest> = BTreeMap::new();
        for record in &append.records {
            let digest = record.digest();
            for link in &record.links {
                let actual = heads.get(&link.stream).copied().or_else(|| self.head(&link.stream));
                if actual.map(|head| head.link) != link.previous {
                    return Err(Conflict::Head { stream: link.stream.clone(), actual });
                }
                heads.insert(&link.stream, link.head(digest));
            }
            for claim in &record.claims {
                let known = claims.get(&claim.key).copied().or_else(|| self.claim(&claim.key));
                if let Some(actual) = known.filter(|actual| *actual != claim.digest) {
                    return Err(Conflict::Claim { key: claim.key.clone(), actual });
                }
                claims.insert(&claim.key, claim.digest);
            }
        }
        Ok(())
    }

    /// Appends a batch whole, or says which guard failed.
    ///
    /// # Errors
    /// The first conflict.
    pub fn append(&mut self, append: FencedAppend) -> Result<Appended, Conflict> {
        self.check(&append)?;
        let first = Cursor(self.records.len() as u64 + 1);
        append.records.into_iter().for_each(|record| self.keep(record));
        self.landed += 1;
        Ok(Appended { epoch: Epoch(1), first, last: Cursor(self.records.len() as u64) })
    }

    fn keep(&mut self, record: Record) {
        let digest = record.digest();
        for link in &record.links {
            self.heads.insert(link.stream.clone(), link.head(digest));
        }
        for claim in &record.claims {
            self.claims.insert(claim.key.clone(), claim.digest);
        }
        self.records.push(record);
    }

    /// Every record, in order.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}

impl Ground for MemoryLog {
    fn submit(&mut self, append: FencedAppend) -> Result<Appended, Declined> {
        self.append(append).map_err(Declined::Conflict)
    }

    fn landed(&mut self) -> Result<usize, StoreError> {
        Ok(std::mem::take(&mut self.landed))
    }

    fn records(&self) -> &[Record] {
        &self.records
    }

    fn lease(&self) -> Epoch {
        Epoch(1)
    }
}
