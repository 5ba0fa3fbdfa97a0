//! The actor.

use super::Message;
use crate::error::Error;
use crate::lanes::Answer;
use crate::service::{self, Charge};
use crate::space::{Space, answered};
use closer_contracts::id::EpisodeId;
use closer_contracts::refusal::Denial;
use closer_protocol::episode::{self, Next};
use closer_protocol::{Input, Reply};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

/// The actor.
pub(crate) struct Coordinator;

/// What it works with: its episode, and the refusal of its last draft.
pub(crate) struct Desk {
    space: Arc<Space>,
    episode_id: EpisodeId,
    rung: Arc<AtomicBool>,
    refused: Option<(Next, u32, Vec<Denial>)>,
}

/// Where a charge leads.
enum Path {
    /// Somebody was charged: their answer is awaited.
    Charged(Answer),
    /// The effect is on its way: the records will show more.
    Wait,
    /// There is nothing left to do.
    Stop,
}

impl Actor for Coordinator {
    type Msg = Message;
    type State = Desk;
    type Arguments = Desk;

    async fn pre_start(&self, _: ActorRef<Message>, desk: Desk) -> Result<Desk, ActorProcessingErr> {
        Ok(desk)
    }

    async fn handle(&self, myself: ActorRef<Message>, _: Message, desk: &mut Desk) -> Result<(), ActorProcessingErr> {
        desk.rung.store(false, Ordering::Release);
        loop {
            desk.space.probe("coordinator");
            let (stage, path) = desk.charge();
            match path {
                Path::Charged(answer) => match answered(answer).await {
                    Ok(reply) => desk.note(stage, reply),
                    Err(Error::Interrupted) => return Err(Error::Interrupted.into()),
                    Err(error) => {
                        tracing::info!(%error, "an episode pauses");
                        myself.stop(None);
                        return Ok(());
                    }
                },
                Path::Wait => return Ok(()),
                Path::Stop => {
                    myself.stop(None);
                    return Ok(());
                }
            }
        }
    }
}

impl Desk {
    pub(crate) const fn new(space: Arc<Space>, episode_id: EpisodeId, rung: Arc<AtomicBool>) -> Self {
        Self { space, episode_id, rung, refused: None }
    }

    /// Keeps how often the same stage was refused in a row.
    fn note(&mut self, stage: Next, reply: Reply) {
        let before = self.refused.take().filter(|(refused, _, _)| *refused == stage).map_or(0, |(_, times, _)| times);
        self.refused = match reply {
            Reply::Recorded(_) => None,
            Reply::Refused(denials) => Some((stage, before + 1, denials)),
        };
    }

    /// Charges the desk of the stage that the records show to be next.
    fn charge(&self) -> (Next, Path) {
        let (view, at) = (self.space.view(), self.space.moment());
        let Some(episode) = view.episodes.get(&self.episode_id).cloned() else {
            return (Next::Ended, Path::Stop);
        };
        let next = episode::next(&view, &episode, &at);
        let stage = match &self.refused {
            Some((refused, times, denials)) if *refused == next => {
                episode::after_refusal(next.clone(), *times, denials)
            }
            Some(_) | None => next.clone(),
        };
        let desks = &self.space.directory.desks;
        let desk = match &stage {
            Next::Work { .. } => &desks.disclosure,
            Next::Ask { .. } => &desks.participants,
            Next::Act { .. } | Next::Again { .. } => &desks.planner,
            Next::Assess { .. } | Next::Judge { .. } | Next::Endorse { .. } => &desks.assessor,
            Next::Dispatch { .. } => &desks.monitor,
            Next::Readback { .. } => &desks.observer,
            Next::AskUser { .. } => &desks.briefcase,
            Next::Distil => &desks.distiller,
            Next::Commit { .. } => &desks.semantic,
            Next::End { end, reason } => {
                let input = Input::End { episode_id: self.episode_id.clone(), end: *end, reason: reason.clone() };
                return (next, Path::Charged(self.space.ask(input)));
            }
            // A conference is taken on by what drives it; each of its steps rings here.
            Next::Await { .. } | Next::Confer { .. } => return (next, Path::Wait),
            Next::Ended => return (next, Path::Stop),
        };
        let (reply, answer) = oneshot::channel();
        desk.cast(service::Message::Attend(Charge { stage, episode, view }, reply));
        (next, Path::Charged(answer))
    }
}
