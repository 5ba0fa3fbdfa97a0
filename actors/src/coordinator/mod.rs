//! The coordinator of one episode: asks what the records show to be next, and charges the desk of that stage with it.
//!
//! ```text
//! Advance ─► view ─► episode::next ─► desk drafts, sequence decides ─► answer, durable ─► view ─► ...
//!                          │
//!                          ├─ Await: dormant until the records show what became of the effect
//!                          └─ Ended: stops
//! ```
//!
//! It keeps nothing that the records do not hold but the refusal of its last draft, so whoever takes its place goes on
//! where they stand.

mod actor;
mod message;

pub(crate) use actor::{Coordinator, Desk};
pub(crate) use message::Message;
