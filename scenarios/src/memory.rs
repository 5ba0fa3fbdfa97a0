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
        let mut moved: BTreeMap<StreamId, Head> = BTreeMap::new();
        for record in &append.records {
            let digest = record.digest();
            for link in &record.links {
                let actual = moved.get(&link.stream).copied().or_else(|| self.head(&link.stream));
                if actual.map(|head| head.link) != link.previous {
                    return Err(Conflict::Head { stream: link.stream.clone(), actual });
                }
                moved.insert(link.stream.clone(), link.head(digest));
            }
        }
        let claims = append.records.iter().flat_map(|record| &record.claims);
        self.claims.extend(claims.map(|claim| (claim.key.clone(), claim.digest)));
        self.heads.extend(moved);
        self.records.extend(append.records);
        Ok(())
    }

    /// Every record, in order.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}
