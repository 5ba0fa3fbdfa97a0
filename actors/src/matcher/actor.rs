//! The actor.

use super::Message;
use crate::scheduler;
use crate::space::Space;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::sync::Arc;

/// The actor.
pub(crate) struct Matcher;

impl Actor for Matcher {
    type Msg = Message;
    type State = Arc<Space>;
    type Arguments = Arc<Space>;

    async fn pre_start(&self, _: ActorRef<Message>, space: Arc<Space>) -> Result<Arc<Space>, ActorProcessingErr> {
        Ok(space)
    }

    async fn handle(
        &self,
        _: ActorRef<Message>,
        message: Message,
        space: &mut Arc<Space>,
    ) -> Result<(), ActorProcessingErr> {
        let Message::Eligible(obligation_id) = message;
        tracing::debug!(%obligation_id, "eligible");
        scheduler::ring(space);
        Ok(())
    }
}
