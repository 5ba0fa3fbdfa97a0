//! The router: one coordinator per episode under way, started when the episode advances and again when it dies.
//!
//! A coordinator that dies is started again from the records after a pause that doubles; one that keeps dying is left,
//! and its episode ends at its bound.

mod actor;
mod message;

pub(crate) use actor::Router;
pub(crate) use message::Message;
