//! Writes that are sent twice under one `Idempotency-Key`: carried out once, told twice.
//!
//! Kept in memory for as long as the process lives. Beyond that the record itself makes a repeat harmless: an event has its
//! deduplication key, a packet is answered once, a restriction that is in force is not made again.

use axum::body::Bytes;
use axum::http::StatusCode;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// The most answers that are remembered; the oldest give way.
const REMEMBERED_MAX: usize = 10_000;

/// An answer as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) status: StatusCode,
    pub(super) content_type: String,
    pub(super) body: Bytes,
}

/// What is known of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing: the request is to be carried out, and is under way from now on.
    Nothing,
    /// The same request is under way.
    UnderWay,
    /// The same request was answered.
    Answered(Told),
    /// Another request had this key.
    Other,
}

struct Kept {
    request: [u8; 32],
    told: Option<Told>,
}

#[derive(Default)]
struct Inside {
    kept: HashMap<String, Kept>,
    order: VecDeque<String>,
}

/// The answers of this process.
#[derive(Default)]
pub(super) struct Replies {
    inside: Mutex<Inside>,
}

impl Replies {
    /// Asks for a key of one caller, and takes it where it is new.
    pub(super) fn begin(&self, key: &str, request: &[&[u8]]) -> Known {
        let mut digest = Sha256::new();
        for part in request {
            digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part);
        }
        let request: [u8; 32] = digest.finalize().into();
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        match inside.kept.get(key) {
            Some(kept) if kept.request != request => Known::Other,
            Some(Kept { told: Some(told), .. }) => Known::Answered(told.clone()),
            Some(_) => Known::UnderWay,
            None => {
                while inside.order.len() >= REMEMBERED_MAX {
                    if let Some(oldest) = inside.order.pop_front() {
                        inside.kept.remove(&oldest);
                    }
                }
                inside.order.push_back(key.to_owned());
                inside.kept.insert(key.to_owned(), Kept { request, told: None });
                Known::Nothing
            }
        }
    }

    /// Notes the answer, or forgets the key where the request may be sent again.
    pub(super) fn end(&self, key: &str, told: Option<Told>) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        match told {
            Some(told) => {
                if let Some(kept) = inside.kept.get_mut(key) {
                    kept.told = Some(told);
                }
            }
            None => {
                inside.kept.remove(key);
                inside.order.retain(|kept| kept != key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_for_one_request_and_its_answer() {
        let replies = Replies::default();
        let told = Told { status: StatusCode::OK, content_type: "a".to_owned(), body: Bytes::from_static(b"b") };
        assert_eq!(replies.begin("k", &[b"one"]), Known::Nothing);
        assert_eq!(replies.begin("k", &[b"one"]), Known::UnderWay);
        assert_eq!(replies.begin("k", &[b"two"]), Known::Other);
        replies.end("k", Some(told.clone()));
        assert_eq!(replies.begin("k", &[b"one"]), Known::Answered(told));
        assert_eq!(replies.begin("l", &[b"on", b"e"]), Known::Nothing);
        replies.end("l", None);
        assert_eq!(replies.begin("l", &[b"one"]), Known::Nothing, "a failed request may be sent again, changed too");
    }
}
