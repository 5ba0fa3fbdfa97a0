//! The actor.

use super::Message;
use crate::lanes::Answer;
use crate::notifier;
use crate::space::{Space, until};
use closer_contracts::id::{EpisodeId, ObligationId};
use closer_contracts::time::Timestamp;
use closer_protocol::timers::{self, Due};
use closer_protocol::{Input, Moment, View, episode, incident};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::task::JoinHandle;

/// The actor.
pub(crate) struct Scheduler;

/// A message on its way, to be sent when its time comes.
type Sleeping = JoinHandle<Result<(), ractor::MessagingErr<Message>>>;

/// What it keeps: what it has asked for and not been told, and when it wakes.
pub(crate) struct Schedule {
    space: Arc<Space>,
    opening: BTreeMap<ObligationId, Answer>,
    ticking: Option<Answer>,
    ticked: Vec<Due>,
    alarm: Option<(Timestamp, Sleeping)>,
    rests: bool,
}

impl Actor for Scheduler {
    type Msg = Message;
    type State = Schedule;
    type Arguments = Arc<Space>;

    async fn pre_start(&self, _: ActorRef<Message>, space: Arc<Space>) -> Result<Schedule, ActorProcessingErr> {
        space.scheduler_rung.store(false, Ordering::Release);
        Ok(Schedule { space, opening: BTreeMap::new(), ticking: None, ticked: Vec::new(), alarm: None, rests: false })
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        schedule: &mut Schedule,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Look => schedule.look(&myself),
            Message::Rest => schedule.rests = true,
        }
        Ok(())
    }
}

/// Whether an answer is still to come.
fn is_awaited(answer: &mut Answer) -> bool {
    matches!(answer.try_recv(), Err(TryRecvError::Empty))
}

impl Schedule {
    fn look(&mut self, myself: &ActorRef<Message>) {
        self.space.scheduler_rung.store(false, Ordering::Release);
        let (view, at) = (self.space.view(), self.space.moment());
        self.opening.retain(|_, answer| is_awaited(answer));
        self.ticking = self.ticking.take().and_then(|mut answer| is_awaited(&mut answer).then_some(answer));
        if !self.rests {
            self.open(&view);
            self.tick(&view, &at);
            self.set_alarm(&view, &at, myself);
            if !incident::undelivered(&view).is_empty() {
                self.space.directory.notifier.cast(notifier::Message::Look(self.space.activity.begin()));
            }
        }
    }

    fn open(&mut self, view: &View) {
        for obligation_id in episode::openable(view) {
            let space = &self.space;
            self.opening.entry(obligation_id).or_insert_with_key(|obligation_id| {
                let episode_id = EpisodeId::new(space.ports.ids.fresh("episode"));
                space.ask(Input::Open { obligation_id: obligation_id.clone(), episode_id })
            });
        }
    }

    /// Lets time pass where something is due that was not due at the last tick.
    fn tick(&mut self, view: &View, at: &Moment) {
        let due = timers::due(view, at);
        if self.ticking.is_none() && !due.is_empty() && due != self.ticked {
            self.ticking = Some(self.space.ask(Input::Tick));
            self.ticked = due;
        }
    }

    /// Sleeps exactly until something may become due.
    fn set_alarm(&mut self, view: &View, at: &Moment, myself: &ActorRef<Message>) {
        let next = timers::next_deadline(view, &at.now);
        if self.alarm.as_ref().map(|(time, _)| time) == next.as_ref() {
            return;
        }
        if let Some((_, sleeping)) = self.alarm.take() {
            sleeping.abort();
        }
        self.alarm = next.map(|time| {
            let sleeping = myself.send_after(until(&at.now, &time) + Duration::from_millis(1), || Message::Look);
            (time, sleeping)
        });
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        if let Some((_, sleeping)) = self.alarm.take() {
            sleeping.abort();
        }
    }
}
