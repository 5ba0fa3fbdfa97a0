//! The dispatcher: turns a durable admission into its permit, looks once more, and sends the effect.
//!
//! ```text
//! intent durable ─► release ─► Permit ─► check: time, restrictions, lease ─► Operations::perform ─► Performed ─► lanes
//!                                             └─ not sent: recorded as such
//! ```
//!
//! Each effect is an actor of its own. One that dies may have sent: its outcome is unknown, and it is never sent again.

mod actor;
mod message;

pub(crate) use actor::Dispatcher;
pub(crate) use message::{Admitted, Message};
