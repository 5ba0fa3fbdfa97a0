//! What all actors of one space share: the log, the ports, the lanes, the newest durable view.

use crate::activity::Activity;
use crate::directory::Directory;
use crate::error::Error;
use crate::identities::Identities;
use crate::lanes::{Answer, Lanes, ReplyTo};
use crate::options::{Options, Ports};
use closer_contracts::id::AttemptId;
use closer_contracts::record::Epoch;
use closer_contracts::time::Timestamp;
use closer_protocol::{Input, Moment, View, sequence};
use closer_store::Log;
use ractor::ActorId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot, watch};

/// One space as its actors see it.
pub(crate) struct Space {
    pub(crate) log: Arc<Log>,
    pub(crate) ports: Ports,
    pub(crate) options: Options,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) identities: Identities,
    pub(crate) directory: Directory,
    pub(crate) admitted: Arc<Semaphore>,
    /// Whether the scheduler has been rung for and has not come yet.
    pub(crate) scheduler_rung: AtomicBool,
    /// The attempts whose effect has left and has not told, each with the dispatcher it left to.
    running: Mutex<BTreeMap<AttemptId, ActorId>>,
    views: watch::Sender<Arc<View>>,
    restrictions_decided: AtomicU64,
}

impl Space {
    pub(crate) fn new(log: Arc<Log>, ports: Ports, options: Options, view: View) -> Self {
        let activity = Arc::<Activity>::default();
        Self {
            log,
            ports,
            lanes: Arc::new(Lanes::new(Arc::clone(&activity))),
            activity,
            identities: Identities::default(),
            directory: Directory::default(),
            admitted: Arc::new(Semaphore::new(options.admitted_max)),
            options,
            scheduler_rung: AtomicBool::new(false),
            running: Mutex::default(),
            restrictions_decided: AtomicU64::new(view.restrictions_decided),
            views: watch::Sender::new(Arc::new(view)),
        }
    }

    /// The newest durable view.
    pub(crate) fn view(&self) -> Arc<View> {
        self.views.borrow().clone()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<View>> {
        self.views.subscribe()
    }

    /// Shows a newer durable view to everybody.
    pub(crate) fn publish(&self, view: &Arc<View>) {
        self.views.send_replace(Arc::clone(view));
    }

    pub(crate) fn moment(&self) -> Moment {
        let (now, clock) = self.ports.clock.now();
        Moment { now, clock }
    }

    /// Offers an input to the sequence from within the runtime.
    pub(crate) fn offer(&self, input: Input, reply: ReplyTo) {
        let lane = sequence::lane(&input, &self.view());
        self.lanes.offer(lane, input, reply, None);
    }

    /// Offers an input and gives the answer to wait for.
    pub(crate) fn ask(&self, input: Input) -> Answer {
        let (reply, answer) = oneshot::channel();
        self.offer(input, reply);
        answer
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<AttemptId, ActorId>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an effect leaves to a dispatcher.
    pub(crate) fn leaves(&self, attempt_id: AttemptId, dispatcher: ActorId) {
        self.running().insert(attempt_id, dispatcher);
    }

    /// Notes that an effect has told what it came to.
    pub(crate) fn told(&self, attempt_id: &AttemptId) {
        self.running().remove(attempt_id);
    }

    /// Notes that a dispatcher is gone, and with it whatever had left to it.
    pub(crate) fn gone(&self, dispatcher: ActorId) {
        self.running().retain(|_, held_by| *held_by != dispatcher);
    }

    /// The input that settles what nobody in this process will tell any more.
    pub(crate) fn recovery(&self) -> Input {
        Input::Recover { running: self.running().keys().cloned().collect() }
    }

    /// Notes the newest restriction that was decided, durable or not (DEC-48).
    pub(crate) fn note_restriction(&self, cursor: u64) {
        self.restrictions_decided.fetch_max(cursor, Ordering::AcqRel);
    }

    /// Notes that restrictions beyond this one were decided and did not land.
    pub(crate) fn reset_restriction(&self, cursor: u64) {
        self.restrictions_decided.store(cursor, Ordering::Release);
    }

    pub(crate) fn restrictions_decided(&self) -> u64 {
        self.restrictions_decided.load(Ordering::Acquire)
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.log.epoch()
    }

    /// Waits until the runtime's clock has reached a time, without looking in between.
    pub(crate) async fn reach(&self, time: &Timestamp) {
        loop {
            match until(&self.moment().now, time) {
                Duration::ZERO => return,
                left => tokio::time::sleep(left).await,
            }
        }
    }

    /// Resolves when nothing offered is unsettled.
    pub(crate) async fn quiet(&self) {
        loop {
            let quiet = self.activity.quiet();
            if self.activity.is_quiet() {
                return;
            }
            quiet.await;
        }
    }

    /// Calls the probe, where there is one.
    pub(crate) fn probe(&self, stage: &'static str) {
        if let Some(probe) = &self.options.probe {
            probe(stage);
        }
    }
}

/// How long it is from one time to a later one.
pub(crate) fn until(now: &Timestamp, time: &Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(time.unix_ms().saturating_sub(now.unix_ms())).unwrap_or(0))
}

/// An answer that never came: its actor died.
pub(crate) async fn answered(answer: Answer) -> Result<closer_protocol::Reply, Error> {
    answer.await.unwrap_or(Err(Error::Interrupted))
}
