//! An in-memory log with the store's observable behaviour: all guards hold and all records land, or nothing does.

use closer_contracts::Digest;
use closer_contracts::record::{ClaimKey, Conflict, FencedAppend, Guard, Head, Reads, Record, StreamId};
use std::collections::BTreeMap;

/// Records, heads and claims, in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryLog {
    records: Vec<Record>,
    heads: BTreeMap<StreamId, Head>,
    claims: BTreeMap<ClaimKey, Digest>,
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
    /// Appends a batch whole, or says which guard failed.
    ///
    /// # Errors
    /// The first conflict.
    pub fn append(&mut self, append: FencedAppend) -> Result<(), Conflict> {
        let mut next = self.clone_tables();
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
        for record in &append.records {
            let digest = record.digest();
            for link in &record.links {
                let actual = next.0.get(&link.stream).copied();
                if actual.map(|head| head.link) != link.previous {
                    return Err(Conflict::Head { stream: link.stream.clone(), actual });
                }
                next.0.insert(link.stream.clone(), link.head(digest));
            }
            for claim in &record.claims {
                next.1.insert(claim.key.clone(), claim.digest);
            }
        }
        (self.heads, self.claims) = next;
        self.records.extend(append.records);
        Ok(())
    }

    fn clone_tables(&self) -> (BTreeMap<StreamId, Head>, BTreeMap<ClaimKey, Digest>) {
        (self.heads.clone(), self.claims.clone())
    }

    /// Every record, in order.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}
