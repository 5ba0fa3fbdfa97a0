//! The scheduler: opens episodes, and lets time pass.
//!
//! It is rung for whenever a newer durable view is shown. It then asks [`closer_protocol::episode::openable`] which
//! obligations may begin an episode, [`closer_protocol::timers::due`] what is due now, and
//! [`closer_protocol::timers::next_deadline`] when to look again; until that moment or the next ring it is dormant.

mod actor;
mod message;

pub(crate) use actor::Scheduler;
pub(crate) use message::{Message, ring};
