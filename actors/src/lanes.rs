//! The two lanes into the sequence, and the way back from the log's writer.
//!
//! ractor mailboxes are unbounded and in order, so inputs do not travel in them: they wait here, the reserved lane apart
//! from the ordinary one, and the semantic service's mailbox holds at most one ring of the bell. Whoever offers ordinary
//! work from outside holds a place of a bounded number until it is settled.

use crate::activity::{Activity, UnderWay};
use crate::error::Error;
use crate::semantic::Message;
use closer_contracts::record::{Appended, Lane};
use closer_protocol::{Input, Reply};
use closer_store::StoreError;
use ractor::ActorRef;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Where the answer to an input goes, once what it tells is durable.
pub(crate) type ReplyTo = oneshot::Sender<Result<Reply, Error>>;
/// The answer to an input, to be waited for.
pub(crate) type Answer = oneshot::Receiver<Result<Reply, Error>>;

/// Who offered an input: told once, and counted until then.
pub(crate) struct Caller {
    reply: ReplyTo,
    _admitted: Option<OwnedSemaphorePermit>,
    _under_way: UnderWay,
}

impl Caller {
    /// Tells the caller. One that went away is no error.
    pub(crate) fn tell(self, reply: Result<Reply, Error>) {
        let _ = self.reply.send(reply);
    }
}

/// An input on its way to be decided.
pub(crate) struct Offer {
    pub(crate) input: Input,
    pub(crate) caller: Caller,
}

#[derive(Default)]
struct Queues {
    reserved: VecDeque<Offer>,
    ordinary: VecDeque<Offer>,
    settled: VecDeque<Result<Appended, StoreError>>,
    bell: Option<ActorRef<Message>>,
    closed: bool,
}

/// The lanes of one space.
pub(crate) struct Lanes {
    queues: Mutex<Queues>,
    rung: AtomicBool,
    activity: Arc<Activity>,
}

impl Lanes {
    pub(crate) fn new(activity: Arc<Activity>) -> Self {
        Self { queues: Mutex::default(), rung: AtomicBool::new(false), activity }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an input into its lane; `reply` is told when it is settled.
    pub(crate) fn offer(&self, lane: Lane, input: Input, reply: ReplyTo, admitted: Option<OwnedSemaphorePermit>) {
        let caller = Caller { reply, _admitted: admitted, _under_way: self.activity.begin() };
        let mut queues = self.queues();
        if queues.closed {
            drop(queues);
            return caller.tell(Err(Error::Stopped));
        }
        match lane {
            Lane::Reserved => queues.reserved.push_back(Offer { input, caller }),
            Lane::Ordinary => queues.ordinary.push_back(Offer { input, caller }),
        }
        drop(queues);
        self.ring();
    }

    /// The next input of the reserved lane.
    pub(crate) fn next_reserved(&self) -> Option<Offer> {
        self.queues().reserved.pop_front()
    }

    /// The next input: the reserved lane first, always.
    pub(crate) fn next(&self) -> Option<Offer> {
        let mut queues = self.queues();
        queues.reserved.pop_front().or_else(|| queues.ordinary.pop_front())
    }

    /// The oldest append that is not acknowledged yet has been settled. Called on the log writer's thread, in log order.
    pub(crate) fn settled(&self, outcome: Result<Appended, StoreError>) {
        self.queues().settled.push_back(outcome);
        self.ring();
    }

    /// What the log's writer has settled since, in log order.
    pub(crate) fn take_settled(&self) -> VecDeque<Result<Appended, StoreError>> {
        std::mem::take(&mut self.queues().settled)
    }

    /// Rings for the semantic service, unless it has been rung for and has not come yet.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            let bell = self.queues().bell.clone();
            if let Some(Err(_)) = bell.map(|bell| bell.send_message(Message::Work)) {
                self.rung.store(false, Ordering::Release);
            }
        }
    }

    /// The semantic service has come; a ring from now on calls it again.
    pub(crate) fn answered(&self) {
        self.rung.store(false, Ordering::Release);
    }

    /// Hangs the bell at a semantic service that starts, and forgets what its predecessor had appended.
    pub(crate) fn hang(&self, bell: ActorRef<Message>) {
        let mut queues = self.queues();
        queues.settled.clear();
        queues.bell = Some(bell);
        drop(queues);
        self.answered();
        self.ring();
    }

    /// Takes no more inputs, and gives back those that wait.
    pub(crate) fn close(&self) {
        let mut queues = self.queues();
        queues.closed = true;
        let waiting: Vec<Offer> = queues.reserved.drain(..).collect();
        let waiting: Vec<Offer> = waiting.into_iter().chain(queues.ordinary.drain(..)).collect();
        drop(queues);
        for offer in waiting {
            offer.caller.tell(Err(Error::Stopped));
        }
    }
}
