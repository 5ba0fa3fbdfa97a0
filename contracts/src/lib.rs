//! The protocol's nouns: what travels, what is recorded, what is refused.
//!
//! Owns the canonical bytes, digests, ids, contracts and refusal codes of the Closer Protocol (v4), and how a payload is
//! authenticated. Deliberately lacks any decision about authority, any clock and any I/O: a value is well-formed or not
//! here; whether it may be acted on is decided in `closer-monitor` and `closer-protocol`.

pub mod mark;

pub mod canonical;
pub mod contract;
pub mod digest;
pub mod fault;
pub mod id;
pub mod time;

pub mod refs;
pub mod refusal;

pub mod payload_type;

pub mod envelope;

pub mod event;
pub mod obligation;
pub mod route;
pub mod work;

pub mod action;
pub mod evidence;

pub mod adjudication;
pub mod conference;

pub mod delta;
pub mod item;

pub mod reentry;

pub mod briefcase;
pub mod handoff;

pub mod audit;
pub mod review;

pub mod auth;
pub mod people;
pub mod profile;

pub mod record;

#[cfg(any(test, feature = "example"))]
#[expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "examples are for tests: one that is not valid is a failing test"
)]
pub mod example;

#[cfg(test)]
mod tests;

pub use canonical::Canonical;
pub use contract::{Check, Contract};
pub use digest::Digest;
pub use envelope::{Body, Envelope, Payload};
pub use fault::Fault;
pub use refusal::{Refusal, RefusalCode};
pub use time::Timestamp;
