//! The root of the tree: starts every actor, and starts one again that dies.
//!
//! What a dead actor knew is in the records, so its successor starts from them. A semantic service that cannot start again
//! (the log takes no more) ends the runtime: every offer is told that it has stopped.

mod actor;
mod message;

pub(crate) use actor::Root;
pub(crate) use message::Message;
