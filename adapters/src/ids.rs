//! Fresh ids.

use closer_protocol::port::Ids;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ids that are new everywhere: `PREFIX-` and a UUID of version 7, whose beginning is its time of birth.
#[derive(Debug, Clone, Copy, Default)]
pub struct UuidIds;

impl Ids for UuidIds {
    fn fresh(&self, prefix: &str) -> String {
        format!("{prefix}-{}", uuid::Uuid::now_v7())
    }

    fn nonce(&self) -> String {
        // 122 random bits in each.
        format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
    }
}

/// Ids that count up from 1, the same in every run. New within one run only: for tests and rehearsals.
#[derive(Debug, Default)]
pub struct CountedIds {
    last: AtomicU64,
}

impl Ids for CountedIds {
    fn fresh(&self, prefix: &str) -> String {
        let number = self.last.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        format!("{prefix}-{number}")
    }

    fn nonce(&self) -> String {
        format!("{:032x}", self.last.fetch_add(1, Ordering::Relaxed).saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use closer_contracts::Check;
    use closer_contracts::id::Id;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_well_formed_and_differ() {
        let counted = CountedIds::default();
        for ids in [&UuidIds as &dyn Ids, &counted] {
            let fresh: BTreeSet<String> = (0..2_000).map(|_| ids.fresh("attempt")).collect();
            assert_eq!(fresh.len(), 2_000);
            for id in fresh {
                assert!(id.starts_with("attempt-"));
                Id::new(id).check().unwrap();
            }
        }
    }

    #[test]
    fn counted_ids_are_the_same_in_every_run() {
        let run = || {
            let ids = CountedIds::default();
            [ids.fresh("a"), ids.fresh("b"), ids.fresh("a")]
        };
        assert_eq!(run(), ["a-1", "b-2", "a-3"]);
        assert_eq!(run(), run());
    }
}
