//! Where each actor of the tree is to be found. An actor that was started again takes its predecessor's place.

use crate::{dispatcher, matcher, notifier, reconciler, router, scheduler, service};
use ractor::{ActorId, ActorRef, Message};
use std::sync::{PoisonError, RwLock};

/// The place of one actor.
pub(crate) struct Place<T>(RwLock<Option<ActorRef<T>>>);

impl<T> Default for Place<T> {
    fn default() -> Self {
        Self(RwLock::new(None))
    }
}

impl<T: Message> Place<T> {
    pub(crate) fn take(&self, actor: ActorRef<T>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(actor);
    }

    /// Who holds the place.
    pub(crate) fn holder(&self) -> Option<ActorId> {
        let place = self.0.read().unwrap_or_else(PoisonError::into_inner);
        place.as_ref().map(|actor| actor.get_id())
    }

    /// Sends to whoever holds the place. What is lost while nobody does is in the records, and is found there.
    pub(crate) fn cast(&self, message: T) {
        let place = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let sent = place.as_ref().map(|actor| actor.send_message(message));
        if !matches!(sent, Some(Ok(()))) {
            tracing::debug!(of = std::any::type_name::<T>(), "a message found its actor gone");
        }
    }
}

/// The desks, by the stage they attend to.
#[derive(Default)]
pub(crate) struct Desks {
    pub(crate) disclosure: Place<service::Message>,
    pub(crate) routing: Place<service::Message>,
    pub(crate) conference: Place<service::Message>,
    pub(crate) participants: Place<service::Message>,
    pub(crate) planner: Place<service::Message>,
    pub(crate) assessor: Place<service::Message>,
    pub(crate) monitor: Place<service::Message>,
    pub(crate) observer: Place<service::Message>,
    pub(crate) briefcase: Place<service::Message>,
    pub(crate) distiller: Place<service::Message>,
    pub(crate) semantic: Place<service::Message>,
}

/// The actors of one space.
#[derive(Default)]
pub(crate) struct Directory {
    pub(crate) matcher: Place<matcher::Message>,
    pub(crate) scheduler: Place<scheduler::Message>,
    pub(crate) router: Place<router::Message>,
    pub(crate) dispatcher: Place<dispatcher::Message>,
    pub(crate) reconciler: Place<reconciler::Message>,
    pub(crate) notifier: Place<notifier::Message>,
    pub(crate) desks: Desks,
}
