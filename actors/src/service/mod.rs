//! A service at its desk: the generic actor of every stage that drafts something.
//!
//! A desk says what it drafts for a stage, at once or after a call to a port. The service holds the desk's identity: it
//! authenticates the draft with a session of its own and offers it to the sequence, which tells the coordinator itself.
//! Each call to a port is an actor of its own under the service, so that calls run side by side and one that panics is
//! made again from the same charge.

mod actor;
mod call;
mod message;

pub(crate) use actor::{Attended, Desk, Draft, Service};
pub(crate) use call::{Call, Calling};
pub(crate) use message::{Charge, Message};
