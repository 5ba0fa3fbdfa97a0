//! The semantic service: drives the one sequence of the space.
//!
//! ```text
//!   lanes ──► take ──► Step ──► log.submit ──► in flight ──► durable ──► publish view ──► effects, replies
//!     ▲                              │ declined
//!     └────── decided again ◄── discard, once what is in flight has landed
//! ```
//!
//! It decides nothing itself: [`closer_protocol::sequence::Sequence`] does. It takes inputs while the decided, unflushed
//! suffix has room, the reserved lane first; it lets nothing leave before the log's writer has settled the append, in log
//! order. A step that the log declines is withdrawn once everything before it has landed: on a conflict the log is read
//! again, and the input is decided again on what it shows. A failed write ends the service's work: the log must be opened
//! again.

mod actor;
mod in_flight;
mod message;

pub(crate) use actor::Semantic;
pub(crate) use message::Message;
