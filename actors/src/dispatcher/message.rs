//! What the dispatcher is told.

use closer_contracts::id::AttemptId;
use closer_monitor::{Admission, Appended};
use closer_protocol::port::{Order, Performed};
use ractor::ActorId;
use tokio::sync::oneshot;

/// An admission whose intent is durable.
pub(crate) struct Admitted {
    pub(crate) admission: Admission,
    pub(crate) order: Order,
    pub(crate) appended: Appended,
}

/// See [`super`].
pub(crate) enum Message {
    /// Send one effect.
    Perform(Box<Admitted>),
    /// Ask for the cancellation of an effect under way.
    Cancel(AttemptId, Box<Order>),
    /// What a call came to.
    Done(ActorId, Performed),
    /// Tell when no effect is under way.
    Drain(oneshot::Sender<()>),
}
