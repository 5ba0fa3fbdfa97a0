//! How often a caller may ask: a bucket per caller that fills up again evenly.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The most callers that are told apart; when there are more, those with full buckets are forgotten first.
const CALLERS_MAX: usize = 10_000;

struct Bucket {
    left: f64,
    at: Instant,
}

/// A limit of so many requests a minute for each caller.
pub(crate) struct Limit {
    per_minute: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

impl Limit {
    pub(crate) fn new(per_minute: u32) -> Self {
        Self { per_minute: f64::from(per_minute), buckets: Mutex::default() }
    }

    /// Whether a caller may ask now.
    pub(crate) fn admits(&self, caller: &str, now: Instant) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let filled = |bucket: &Bucket| {
            let grown = now.saturating_duration_since(bucket.at).as_secs_f64() * self.per_minute / 60.0;
            (bucket.left + grown).min(self.per_minute)
        };
        if buckets.len() >= CALLERS_MAX && !buckets.contains_key(caller) {
            buckets.retain(|_, bucket| filled(bucket) < self.per_minute);
            if buckets.len() >= CALLERS_MAX {
                return false;
            }
        }
        let bucket = buckets.entry(caller.to_owned()).or_insert(Bucket { left: self.per_minute, at: now });
        bucket.left = filled(bucket);
        bucket.at = now;
        let admits = bucket.left >= 1.0;
        if admits {
            bucket.left -= 1.0;
        }
        admits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bucket_empties_for_one_caller_and_fills_up_again() {
        let (limit, start) = (Limit::new(60), Instant::now());
        assert_eq!((0..100).filter(|_| limit.admits("a", start)).count(), 60);
        assert!(limit.admits("b", start), "others are not affected");
        assert!(!limit.admits("a", start + Duration::from_millis(900)));
        assert!(limit.admits("a", start + Duration::from_millis(1_900)));
    }

    #[test]
    fn more_callers_than_can_be_told_apart_are_turned_away() {
        let (limit, start) = (Limit::new(1), Instant::now());
        let admitted = (0..CALLERS_MAX + 50).filter(|i| limit.admits(&i.to_string(), start)).count();
        assert_eq!(admitted, CALLERS_MAX);
        assert!(limit.admits("late", start + Duration::from_secs(61)), "whoever is rested is forgotten");
    }
}
