//! The actor.

use super::Message;
use crate::error::Error;
use crate::lanes::Answer;
use crate::service::{self, Charge};
use crate::space::{Space, answered, until};
use closer_contracts::id::{ActorId, EpisodeId, WorkId};
use closer_contracts::refs::Amounts;
use closer_contracts::refusal::{Denial, foremost};
use closer_contracts::time::Timestamp;
use closer_protocol::conference::Turn;
use closer_protocol::episode::{self, Next};
use closer_protocol::view::Episode;
use closer_protocol::{Input, Reply, View};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long it waits to look again at answers whose time is over.
const PAUSE: Duration = Duration::from_millis(250);

/// The actor.
pub(crate) struct Coordinator;

/// What it works with: its episode, the refusal of its last draft, and whose answers of a conference are out.
pub(crate) struct Desk {
    space: Arc<Space>,
    episode_id: EpisodeId,
    rung: Arc<AtomicBool>,
    refused: Option<(Next, u32, Vec<Denial>)>,
    out: BTreeSet<WorkId>,
    alarm: Option<JoinHandle<Result<(), ractor::MessagingErr<Message>>>>,
}

/// Where a charge leads.
enum Path {
    /// Somebody was charged: their answer is awaited.
    Charged(Answer),
    /// Several are asked side by side: their answers are told one by one, and this is how long they are waited for.
    Asked(Vec<(WorkId, Answer)>, Timestamp),
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

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        desk: &mut Desk,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Advance => desk.rung.store(false, Ordering::Release),
            Message::Answered(work_id, outcome) => {
                desk.out.remove(&work_id);
                match outcome {
                    Ok(Reply::Recorded(_)) => {}
                    Ok(Reply::Refused(denials)) => desk.failed(work_id, &denials).await?,
                    Err(error) => return pause(&myself, error),
                }
            }
        }
        loop {
            desk.space.probe("coordinator");
            let (stage, path) = desk.charge();
            match path {
                Path::Charged(answer) => match answered(answer).await {
                    Ok(reply) => desk.replied(stage, reply).await?,
                    Err(error) => return pause(&myself, error),
                },
                Path::Asked(asked, by) => {
                    desk.listen(&myself, asked, &by);
                    return Ok(());
                }
                Path::Wait => return Ok(()),
                Path::Stop => {
                    myself.stop(None);
                    return Ok(());
                }
            }
        }
    }
}

/// An actor that died leaves a question open: its successor asks again. Anything else ends what can be done here.
fn pause(myself: &ActorRef<Message>, error: Error) -> Result<(), ActorProcessingErr> {
    if let Error::Interrupted = error {
        return Err(error.into());
    }
    tracing::info!(%error, "an episode pauses");
    myself.stop(None);
    Ok(())
}

impl Desk {
    pub(crate) const fn new(space: Arc<Space>, episode_id: EpisodeId, rung: Arc<AtomicBool>) -> Self {
        Self { space, episode_id, rung, refused: None, out: BTreeSet::new(), alarm: None }
    }

    /// A refused answer is a failed one: nobody is asked again. A refused draft is drafted again, so often.
    async fn replied(&mut self, stage: Next, reply: Reply) -> Result<(), ActorProcessingErr> {
        match (stage, reply) {
            (Next::Ask { work_id, .. }, Reply::Refused(denials)) => self.failed(work_id, &denials).await,
            (stage, reply) => {
                self.note(stage, reply);
                Ok(())
            }
        }
    }

    /// Keeps how often the same stage was refused in a row.
    fn note(&mut self, stage: Next, reply: Reply) {
        let before = self.refused.take().filter(|(refused, _, _)| *refused == stage).map_or(0, |(_, times, _)| times);
        self.refused = match reply {
            Reply::Recorded(_) => None,
            Reply::Refused(denials) => Some((stage, before + 1, denials)),
        };
    }

    /// Says that an answer in a conference does not count. Where the records know that already, nothing is added.
    async fn failed(&self, work_id: WorkId, denials: &[Denial]) -> Result<(), ActorProcessingErr> {
        if self.space.view().failed.contains_key(&work_id) {
            return Ok(());
        }
        if let Some(denial) = foremost(denials).cloned() {
            let input = Input::Unanswered { work_id, denial, used: Amounts::default(), handed_in_by: None };
            let _: Reply = answered(self.space.ask(input)).await?;
        }
        Ok(())
    }

    /// Is told each answer when it comes, and looks again when the time for them is over.
    fn listen(&mut self, myself: &ActorRef<Message>, asked: Vec<(WorkId, Answer)>, by: &Timestamp) {
        for (work_id, answer) in asked {
            self.out.insert(work_id.clone());
            let coordinator = myself.clone();
            tokio::spawn(async move {
                let outcome = answered(answer).await;
                let _ = coordinator.send_message(Message::Answered(work_id, outcome));
            });
        }
        self.quiet();
        // A time that is over and changes nothing, by a clock that cannot be trusted, is looked at again after a pause.
        let left = match until(&self.space.moment().now, by) {
            Duration::ZERO => PAUSE,
            left => left + Duration::from_millis(1),
        };
        self.alarm = Some(myself.send_after(left, || Message::Advance));
    }

    fn quiet(&mut self) {
        if let Some(alarm) = self.alarm.take() {
            alarm.abort();
        }
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
            Next::Route { .. } => &desks.routing,
            Next::Work { .. } => &desks.disclosure,
            Next::Confer { turn: Turn::Answers { asked, by }, .. } => {
                return (next, Path::Asked(self.ask(asked, &episode, &view), by.clone()));
            }
            Next::Convene { .. } | Next::Confer { .. } => &desks.conference,
            Next::Ask { .. } => &desks.participants,
            Next::Act { .. } | Next::Again { .. } | Next::HandOver { .. } => &desks.planner,
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
            Next::Await { .. } => return (next, Path::Wait),
            Next::Ended => return (next, Path::Stop),
        };
        let (reply, answer) = oneshot::channel();
        desk.cast(service::Message::Attend(Charge { stage, episode, view }, reply));
        (next, Path::Charged(answer))
    }

    /// Asks everybody whose answer is awaited and not out already.
    fn ask(&self, asked: &[(WorkId, ActorId)], episode: &Arc<Episode>, view: &Arc<View>) -> Vec<(WorkId, Answer)> {
        let waiting = asked.iter().filter(|(work_id, _)| !self.out.contains(work_id));
        let ask = |(work_id, participant): &(WorkId, ActorId)| {
            let stage = Next::Ask { work_id: work_id.clone(), participant: participant.clone() };
            let charge = Charge { stage, episode: Arc::clone(episode), view: Arc::clone(view) };
            let (reply, answer) = oneshot::channel();
            self.space.directory.desks.participants.cast(service::Message::Attend(charge, reply));
            (work_id.clone(), answer)
        };
        waiting.map(ask).collect()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.quiet();
    }
}
