//! What a service is told.

use super::Draft;
use crate::lanes::ReplyTo;
use closer_contracts::Fault;
use closer_protocol::View;
use closer_protocol::episode::Next;
use closer_protocol::view::Episode;
use ractor::ActorId;
use std::sync::Arc;

/// One stage of one episode, on the view that showed it to be next.
#[derive(Clone)]
pub(crate) struct Charge {
    pub(crate) stage: Next,
    pub(crate) episode: Arc<Episode>,
    pub(crate) view: Arc<View>,
}

/// See [`super`].
pub(crate) enum Message {
    /// Attend to a stage; the sequence's answer to the draft goes to the coordinator.
    Attend(Charge, ReplyTo),
    /// A call to a port has come back.
    Called(ActorId, Result<Draft, Fault>),
}
