//! The matcher: tells the scheduler which obligations something has made eligible.
//!
//! Matching itself is a decision and happens in the sequence, with a MATCH_RECEIPT in the same append as its event.

mod actor;
mod message;

pub(crate) use actor::Matcher;
pub(crate) use message::Message;
