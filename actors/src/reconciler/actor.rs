//! The actor.

use super::Message;
use crate::service::{self, Call, Calling, Charge};
use crate::space::Space;
use closer_contracts::id::AttemptId;
use closer_protocol::episode::Next;
use closer_protocol::readback;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The pause after the first readback; it doubles with each, up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two readbacks of one attempt.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// The actor.
pub(crate) struct Reconciler;

/// What it keeps: how often each unsettled attempt was read back.
pub(crate) struct Unsettled {
    space: Arc<Space>,
    tries: BTreeMap<AttemptId, u32>,
}

impl Actor for Reconciler {
    type Msg = Message;
    type State = Unsettled;
    type Arguments = Arc<Space>;

    async fn pre_start(&self, _: ActorRef<Message>, space: Arc<Space>) -> Result<Unsettled, ActorProcessingErr> {
        Ok(Unsettled { space, tries: BTreeMap::new() })
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        unsettled: &mut Unsettled,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Look(_under_way) => {
                for attempt_id in readback::unreconciled(&unsettled.space.view()) {
                    if !unsettled.tries.contains_key(&attempt_id) {
                        unsettled.tries.insert(attempt_id.clone(), 0);
                        unsettled.read_back(&myself, attempt_id).await?;
                    }
                }
                Ok(())
            }
            Message::Try(attempt_id) => unsettled.read_back(&myself, attempt_id).await,
            Message::Tried(attempt_id) => {
                unsettled.tried(&myself, attempt_id);
                Ok(())
            }
        }
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Message>,
        event: SupervisionEvent,
        _: &mut Unsettled,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(_, error) = event {
            tracing::error!(%error, "a reconciliation's actor died");
        }
        Ok(())
    }
}

impl Unsettled {
    async fn read_back(&mut self, myself: &ActorRef<Message>, attempt_id: AttemptId) -> Result<(), ActorProcessingErr> {
        let view = self.space.view();
        let episode =
            view.attempts.get(&attempt_id).and_then(|attempt| view.episodes.get(&attempt.intent.episode_id)).cloned();
        let Some(episode) = episode else { return Ok(()) };
        let stage = Next::Readback { attempt_id: attempt_id.clone(), not_before: self.space.moment().now };
        let (reply, answer) = oneshot::channel();
        self.space.directory.desks.observer.cast(service::Message::Attend(Charge { stage, episode, view }, reply));
        let (reconciler, under_way) = (myself.clone(), self.space.activity.begin());
        let calling = Calling {
            call: Box::pin(async move {
                let _ = answer.await;
                under_way
            }),
            tell: Box::new(move |_, _under_way| drop(reconciler.send_message(Message::Tried(attempt_id)))),
        };
        Actor::spawn_linked(None, Call::default(), calling, myself.get_cell()).await?;
        Ok(())
    }

    /// Tries again after a pause where the attempt is still unsettled.
    fn tried(&mut self, myself: &ActorRef<Message>, attempt_id: AttemptId) {
        let unreconciled = readback::unreconciled(&self.space.view()).contains(&attempt_id);
        let tries = self.tries.remove(&attempt_id).unwrap_or(0);
        if unreconciled {
            let pause = PAUSE.saturating_mul(2_u32.saturating_pow(tries.min(16))).min(PAUSE_MAX);
            self.tries.insert(attempt_id.clone(), tries + 1);
            myself.send_after(pause, move || Message::Try(attempt_id));
        }
    }
}
