//! The reconciler: reads back what outlived its episode.
//!
//! An attempt whose outcome is not settled blocks every other on its operation and target (§8.2). While its episode is
//! under way the coordinator reads it back; after that this actor does, through the observer, at once and then after
//! pauses that double.

mod actor;
mod message;

pub(crate) use actor::Reconciler;
pub(crate) use message::Message;
