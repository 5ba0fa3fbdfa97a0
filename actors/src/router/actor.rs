//! The actor.

use super::Message;
use crate::coordinator::{self, Coordinator, Desk};
use crate::space::Space;
use crate::{reconciler, scheduler};
use closer_contracts::id::EpisodeId;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a coordinator is started again before its episode is left to its bound.
const RESTARTS_MAX: u32 = 8;
/// The pause before the first restart; it doubles with each.
const RESTART_PAUSE: Duration = Duration::from_millis(10);

/// The actor.
pub(crate) struct Router;

/// One episode's coordinator.
struct Place {
    actor: Option<ActorRef<coordinator::Message>>,
    rung: Arc<AtomicBool>,
    restarts: u32,
}

/// What it keeps: who coordinates which episode.
pub(crate) struct Routes {
    space: Arc<Space>,
    places: HashMap<EpisodeId, Place>,
    episodes: HashMap<ActorId, EpisodeId>,
    rests: bool,
}

impl Actor for Router {
    type Msg = Message;
    type State = Routes;
    type Arguments = Arc<Space>;

    /// Takes up every episode that is under way.
    async fn pre_start(&self, myself: ActorRef<Message>, space: Arc<Space>) -> Result<Routes, ActorProcessingErr> {
        for episode_id in space.view().under_way.values() {
            myself.send_message(Message::Advance(episode_id.clone()))?;
        }
        Ok(Routes { space, places: HashMap::new(), episodes: HashMap::new(), rests: false })
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        routes: &mut Routes,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Advance(episode_id) => routes.advance(&myself, episode_id).await,
            Message::Rest => {
                routes.rests = true;
                myself.stop_children(None);
                Ok(())
            }
        }
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Message>,
        event: SupervisionEvent,
        routes: &mut Routes,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(actor, _, _) => routes.ended(actor.get_id()),
            SupervisionEvent::ActorFailed(actor, error) => {
                tracing::warn!(%error, "a coordinator died");
                routes.died(&myself, actor.get_id());
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl Routes {
    async fn advance(&mut self, myself: &ActorRef<Message>, episode_id: EpisodeId) -> Result<(), ActorProcessingErr> {
        let under_way = self.space.view().episodes.get(&episode_id).is_some_and(|episode| episode.end.is_none());
        if !under_way || self.rests {
            return Ok(());
        }
        let place = self.places.entry(episode_id.clone()).or_insert_with(|| Place {
            actor: None,
            rung: Arc::new(AtomicBool::new(false)),
            restarts: 0,
        });
        let actor = match &place.actor {
            Some(actor) => actor,
            None => {
                let desk = Desk::new(Arc::clone(&self.space), episode_id.clone(), Arc::clone(&place.rung));
                place.rung.store(false, Ordering::Release);
                let (actor, _) = Actor::spawn_linked(None, Coordinator, desk, myself.get_cell()).await?;
                self.episodes.insert(actor.get_id(), episode_id);
                place.actor.insert(actor)
            }
        };
        if !place.rung.swap(true, Ordering::AcqRel) {
            let _ = actor.send_message(coordinator::Message::Advance);
        }
        Ok(())
    }

    /// A coordinator has done its work.
    fn ended(&mut self, actor: ActorId) {
        if let Some(episode_id) = self.episodes.remove(&actor) {
            self.places.remove(&episode_id);
        }
        scheduler::ring(&self.space);
        self.space.directory.reconciler.cast(reconciler::Message::Look(self.space.activity.begin()));
    }

    /// A coordinator died: its successor goes on from the records.
    fn died(&mut self, myself: &ActorRef<Message>, actor: ActorId) {
        let Some(episode_id) = self.episodes.remove(&actor) else {
            return;
        };
        let Some(place) = self.places.get_mut(&episode_id) else {
            return;
        };
        place.actor = None;
        place.restarts += 1;
        match place.restarts <= RESTARTS_MAX {
            true => {
                let pause = RESTART_PAUSE * 2_u32.saturating_pow(place.restarts - 1);
                myself.send_after(pause, move || Message::Advance(episode_id));
            }
            false => tracing::error!(%episode_id, "its coordinator keeps dying: the episode is left to its bound"),
        }
    }
}
