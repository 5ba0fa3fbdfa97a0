//! The accounts of a study: one record per pair from its enrolment on, every attempt, in a file that only grows. Spec: §10.1.
//!
//! Each line cites the one before it, so that none can be taken out; what a line says is durable before anything follows
//! from it. A process that was killed leaves attempts without an end: whoever opens the accounts next enters them as
//! interrupted. Deliberately lacks any way to enrol a pair twice or to leave one out.

mod entry;
mod file;

pub use entry::{Attempt, AttemptEnd, Call, Cause, Class, Entry, Fate, PairRecord, World};
pub use file::{AccountError, Accounts};
