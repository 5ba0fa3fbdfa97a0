//! The notifier: brings a withdrawal's notice to its recipient, and the recipient's answer into the case (§4.3).
//!
//! What is to be delivered is what the records show to be unanswered, so that a notice that nobody answered is delivered
//! again by whoever takes its place. A recipient that does not run in this process is told by its notice on record alone.

mod actor;
mod message;

pub(crate) use actor::Notifier;
pub(crate) use message::Message;
