//! The actor.

use super::{Admitted, Message};
use crate::service::{Call, Calling};
use crate::space::Space;
use closer_contracts::id::{AttemptId, Text};
use closer_contracts::time::Timestamp;
use closer_monitor::{LastCheck, release};
use closer_protocol::Input;
use closer_protocol::port::{Order, Performed};
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The actor.
pub(crate) struct Dispatcher;

/// What it keeps: the effects under way.
pub(crate) struct Effects {
    space: Arc<Space>,
    under_way: HashMap<ActorId, (AttemptId, Timestamp)>,
    drained: Vec<oneshot::Sender<()>>,
}

impl Actor for Dispatcher {
    type Msg = Message;
    type State = Effects;
    type Arguments = Arc<Space>;

    async fn pre_start(&self, _: ActorRef<Message>, space: Arc<Space>) -> Result<Effects, ActorProcessingErr> {
        Ok(Effects { space, under_way: HashMap::new(), drained: Vec::new() })
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        effects: &mut Effects,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Perform(admitted) => effects.perform(&myself, *admitted).await,
            Message::Cancel(attempt_id, order) => effects.cancel(&myself, attempt_id, *order).await,
            Message::Done(call, performed) => {
                effects.done(call, |_| performed);
                Ok(())
            }
            Message::Drain(drained) => {
                effects.drained.push(drained);
                effects.tell_drained();
                Ok(())
            }
        }
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Message>,
        event: SupervisionEvent,
        effects: &mut Effects,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(call, error) = event {
            tracing::error!(%error, "an effect's actor died");
            effects.done(call.get_id(), |sent_at| unknown(sent_at, "the call ended before it told what it came to"));
        }
        Ok(())
    }
}

fn unknown(sent_at: Timestamp, reason: &'static str) -> Performed {
    Performed::Unknown { sent_at, reason: Text::from(reason) }
}

impl Effects {
    async fn perform(&mut self, myself: &ActorRef<Message>, admitted: Admitted) -> Result<(), ActorProcessingErr> {
        let attempt_id = admitted.order.action.attempt_id.clone();
        let sent_at = self.space.moment().now;
        let dispatcher = myself.clone();
        let calling = Calling {
            call: Box::pin(send(Arc::clone(&self.space), admitted)),
            tell: Box::new(move |call, performed| drop(dispatcher.send_message(Message::Done(call, performed)))),
        };
        let (call, _) = Actor::spawn_linked(None, Call::default(), calling, myself.get_cell()).await?;
        self.under_way.insert(call.get_id(), (attempt_id, sent_at));
        Ok(())
    }

    /// Asks for a cancellation beside the effect; what became of it the effect's own call tells.
    async fn cancel(
        &self,
        myself: &ActorRef<Message>,
        attempt_id: AttemptId,
        order: Order,
    ) -> Result<(), ActorProcessingErr> {
        let operations = Arc::clone(&self.space.ports.operations);
        let longest = Duration::from_millis(self.space.options.effect_ms_max);
        let call = async move {
            let asked = tokio::time::timeout(longest, operations.cancel(&attempt_id, &order)).await;
            if asked.is_err() {
                tracing::warn!(%attempt_id, "the request to cancel took longer than it may");
            }
        };
        let calling = Calling { call: Box::pin(call), tell: Box::new(|_, ()| ()) };
        Actor::spawn_linked(None, Call::default(), calling, myself.get_cell()).await?;
        Ok(())
    }

    /// Offers what a call came to; the coordinator hears of it by the records.
    fn done(&mut self, call: ActorId, performed: impl FnOnce(Timestamp) -> Performed) {
        if let Some((attempt_id, sent_at)) = self.under_way.remove(&call) {
            let _answer =
                self.space.ask(Input::Performed { attempt_id: attempt_id.clone(), performed: performed(sent_at) });
            self.space.told(&attempt_id);
        }
        self.tell_drained();
    }

    fn tell_drained(&mut self) {
        if self.under_way.is_empty() {
            for drained in self.drained.drain(..) {
                let _ = drained.send(());
            }
        }
    }
}

/// Releases the permit, looks once more, and performs.
async fn send(space: Arc<Space>, admitted: Admitted) -> Performed {
    let Admitted { admission, order, appended } = admitted;
    let permit = release(admission, appended);
    space.probe("dispatcher");
    let now = space.moment().now;
    let last = LastCheck { now: &now, restriction_cursor: space.restrictions_decided(), epoch: space.epoch() };
    match permit.check(last) {
        Err(not_sent) => Performed::NotSent { reason: Text::from(not_sent.as_str()) },
        Ok(permit) => {
            let longest = Duration::from_millis(space.options.effect_ms_max);
            let performed = tokio::time::timeout(longest, space.ports.operations.perform(permit, &order)).await;
            performed.unwrap_or_else(|_| unknown(now, "the call took longer than it may"))
        }
    }
}
