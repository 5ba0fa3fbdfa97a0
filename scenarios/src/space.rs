//! A space on one thread: the sequence over an in-memory log, a simulated world, and every stage's drafting function in
//! turn. It does what the actors do and nothing else.

mod conferences;
mod handoffs;
mod stages;
mod voices;

use crate::founding::{BEGINNING, Deployment};
use crate::memory::{Ground, MemoryLog};
use crate::world::World;
use closer_contracts::auth::{
    Accepted, Authenticated, Credential, Session, Sessions, SigningScope, Subject, authenticate,
};
use closer_contracts::branch;
use closer_contracts::id::{ActorId, EpisodeId, SessionId};
use closer_contracts::item::Mechanism;
use closer_contracts::record::{Appended, Cursor, FencedAppend, Lane, Record};
use closer_contracts::refs::ActorRef;
use closer_contracts::refusal::{Denial, RefusalCode};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{Work, WorkResult};
use closer_contracts::{Fault, Payload};
use closer_monitor::{Appended as Durable, ClockStanding, LastCheck, release};
use closer_protocol::entry::{ArtifactBody, Entry};
use closer_protocol::episode::Next;
use closer_protocol::genesis;
use closer_protocol::input::{Effect, Input, Moment, Reply, Submission};
use closer_protocol::port::Performed;
use closer_protocol::readback;
use closer_protocol::sequence::Sequence;
use closer_protocol::view::{Divergence, View};
use closer_store::{Declined, StoreError};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How the one participant answers its work.
pub type Answer = Box<dyn FnMut(&Work, &View) -> WorkResult + Send>;

/// The stage of an episode whose payload was refused last, how often in a row, and why.
#[derive(Debug)]
struct Refused {
    stage: Next,
    times: u32,
    denials: Vec<Denial>,
}

/// What may follow once its records are durable.
#[derive(Debug)]
struct Held {
    appended: Option<Appended>,
    effects: Vec<Effect>,
}

/// An effect whose records are durable, with where its append stands.
#[derive(Debug)]
struct Allowed {
    effect: Effect,
    appended: Appended,
}

/// A deterministic space.
pub struct Space {
    sequence: Sequence,
    log: Box<dyn Ground>,
    sessions: Sessions,
    handles: BTreeMap<ActorId, Session>,
    held: VecDeque<Held>,
    effects: Vec<Allowed>,
    reports: VecDeque<Input>,
    caught: Option<Vec<Input>>,
    refused: BTreeMap<EpisodeId, Refused>,
    now: Timestamp,
    clock: ClockStanding,
    counter: u64,
    answer: Answer,
    /// The world.
    pub world: World,
    /// Participants that give no answer in a conference.
    pub silent: BTreeSet<ActorId>,
    /// Whether admitted effects are sent at once; otherwise they wait for [`Space::send`].
    pub sends_at_once: bool,
}

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Space")
            .field("now", &self.now)
            .field("records", &self.log.records().len())
            .finish_non_exhaustive()
    }
}

/// What broke a scenario: not a refusal, but the runtime itself.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// A payload or artifact could not be written.
    #[error("{0}")]
    Fault(#[from] Fault),
    /// The log did not take a decided append.
    #[error("the log declined a decided append: {0}")]
    Declined(#[from] Declined),
    /// What was on its way to the disk never will be there.
    #[error("what was decided is lost: {0}")]
    Lost(#[from] StoreError),
    /// The records do not fold.
    #[error("{0}")]
    Divergence(#[from] Divergence),
    /// A stage came that cannot come here.
    #[error("no progress: {0}")]
    Stuck(String),
}

impl Space {
    /// Founds a space at [`BEGINNING`].
    ///
    /// # Errors
    /// What makes the deployment inadmissible.
    pub fn found(deployment: &Deployment, answer: Answer) -> Result<Self, Broken> {
        let mut space = Self::on(Box::new(MemoryLog::default()), View::default(), answer)?;
        space.begin(deployment)?;
        Ok(space)
    }

    /// A space on this ground, gone on from what its records fold to. Ids and sessions begin anew.
    ///
    /// # Errors
    /// None on its own.
    pub fn on(log: Box<dyn Ground>, view: View, answer: Answer) -> Result<Self, Broken> {
        let now = view.latest.clone().map_or_else(|| Timestamp::parse(BEGINNING), Ok)?;
        Ok(Self {
            sequence: Sequence::new(view),
            log,
            sessions: Sessions::default(),
            handles: BTreeMap::new(),
            held: VecDeque::new(),
            effects: Vec::new(),
            reports: VecDeque::new(),
            caught: None,
            refused: BTreeMap::new(),
            now,
            clock: ClockStanding::Reliable,
            counter: 0,
            answer,
            world: World::default(),
            silent: BTreeSet::new(),
            sends_at_once: true,
        })
    }

    /// Appends the first record.
    ///
    /// # Errors
    /// What makes the deployment inadmissible.
    pub fn begin(&mut self, deployment: &Deployment) -> Result<(), Broken> {
        let step = genesis::found(&deployment.founding, &self.moment(), &*self.log)?;
        let mut view = View::default();
        for entry in &step.entries {
            view.fold(entry, &self.now)?;
        }
        self.sequence = Sequence::new(view);
        if let Some(append) = step.append {
            self.log.submit(append)?;
            self.log.landed()?;
        }
        Ok(())
    }

    /// Goes on from records that a space has left: its log, its world and its clock.
    ///
    /// # Errors
    /// Records that do not link or fold.
    pub fn resume(records: Vec<Record>, world: World, now: Timestamp, answer: Answer) -> Result<Self, Broken> {
        let counter = records.len() as u64;
        let mut log = MemoryLog::default();
        log.append(FencedAppend { lane: Lane::Ordinary, guards: Vec::new(), records }).map_err(Declined::Conflict)?;
        let mut space = Self::on(Box::new(log), View::default(), answer)?;
        (space.now, space.counter, space.world) = (now, counter, world);
        space.sequence = Sequence::new(space.replay()?);
        Ok(space)
    }

    /// The moment now.
    #[must_use]
    pub fn moment(&self) -> Moment {
        Moment { now: self.now.clone(), clock: self.clock }
    }

    /// The view.
    #[must_use]
    pub fn view(&self) -> &View {
        self.sequence.view()
    }

    /// Every record, in order.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        self.log.records()
    }

    /// Every entry, in order.
    ///
    /// # Errors
    /// A record that this version cannot read.
    pub fn entries(&self) -> Result<Vec<(String, Entry)>, Broken> {
        self.records().iter().map(|record| Ok((record.id.clone(), Entry::read(record)?))).collect()
    }

    /// Moves the clock and lets what is due happen.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn pass(&mut self, duration_ms: u64) -> Result<(), Broken> {
        self.now = self.now.plus_ms(duration_ms);
        self.submit(Input::Tick).map(|_| ())
    }

    /// Sets the clock, never back, and lets nothing happen yet.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = self.now.clone().max(now);
    }

    /// Ids are numbered from here on: apart from those that another process has given.
    pub const fn number_ids_from(&mut self, counter: u64) {
        self.counter = counter;
    }

    /// Puts the clock in doubt, or out of it.
    pub const fn set_clock(&mut self, clock: ClockStanding) {
        self.clock = clock;
    }

    /// Submits an input: decided and appended; its effects follow once that is durable.
    ///
    /// # Errors
    /// See [`Broken`]; a refusal is a reply.
    pub fn submit(&mut self, input: Input) -> Result<Reply, Broken> {
        if let Some(caught) = &mut self.caught {
            caught.push(input);
            return Ok(Reply::Recorded(Vec::new()));
        }
        let at = self.moment();
        let step = self.sequence.take(input, at, &*self.log)?;
        let appended = step.append.map(|append| self.log.submit(append)).transpose()?;
        self.held.push_back(Held { appended, effects: step.effects });
        self.land()?;
        if self.sends_at_once {
            self.send()?;
        }
        Ok(step.reply)
    }

    /// What would be submitted while `work` runs, in place of submitting it: messages on their way.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn catch<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Broken>) -> Result<(T, Vec<Input>), Broken> {
        self.caught = Some(Vec::new());
        let done = work(self);
        let caught = self.caught.take().unwrap_or_default();
        Ok((done?, caught))
    }

    /// Lets the effects of everything that has become durable leave.
    ///
    /// # Errors
    /// [`Broken::Lost`]: what is not durable never will be.
    pub fn land(&mut self) -> Result<(), Broken> {
        let mut landed = self.log.landed()?;
        let mut newest = Appended { epoch: self.log.lease(), first: Cursor(0), last: Cursor(0) };
        while let Some(held) = self.held.front() {
            if let Some(appended) = held.appended {
                if branch!("space.not_durable_yet", landed == 0) {
                    break;
                }
                landed = landed.saturating_sub(1);
                self.sequence.acknowledged();
                newest = appended;
            }
            let effects = self.held.pop_front().map(|held| held.effects).unwrap_or_default();
            self.effects.extend(effects.into_iter().map(|effect| Allowed { effect, appended: newest }));
        }
        Ok(())
    }

    /// Takes back the newest decided step, which the log declined. Everything before it must be durable.
    pub fn withdraw(&mut self) {
        self.sequence.discard();
    }

    /// Decided steps whose records are not durable yet.
    #[must_use]
    pub fn undurable(&self) -> usize {
        self.held.iter().filter(|held| held.appended.is_some()).count()
    }

    /// The attempts whose effects are admitted, durable, and on their way in this process.
    #[must_use]
    pub fn running(&self) -> BTreeSet<closer_contracts::id::AttemptId> {
        let leaving = self.effects.iter().filter_map(|allowed| match &allowed.effect {
            Effect::Perform { order, .. } => Some(order.action.attempt_id.clone()),
            Effect::Cancel { .. } | Effect::Eligible(_) | Effect::Advance(_) | Effect::OnTheBench(_) => None,
        });
        leaving.chain(self.world.slow().map(|action| action.attempt_id.clone())).collect()
    }

    /// Sends every admitted effect, under its permit and after the last look.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn send(&mut self) -> Result<(), Broken> {
        let effects = std::mem::take(&mut self.effects);
        let now = self.moment().now;
        for Allowed { effect, appended } in effects {
            let (admission, order, restriction_cursor) = match effect {
                Effect::Perform { admission, order, restriction_cursor } => (admission, order, restriction_cursor),
                Effect::Cancel { attempt_id, .. } => {
                    self.world.cancelled.push(attempt_id);
                    continue;
                }
                Effect::Eligible(_) | Effect::Advance(_) | Effect::OnTheBench(_) => continue,
            };
            let durable = Durable { record: appended.last, epoch: appended.epoch, restriction_cursor };
            let permit = release(admission, durable);
            let attempt_id = permit.attempt_id().clone();
            let last =
                LastCheck { now: &now, restriction_cursor: self.view().restrictions_decided, epoch: self.log.lease() };
            let answer = match permit.check(last) {
                Ok(_permit) => self.world.perform(&order.action, &now),
                Err(not_sent) => Some(Performed::NotSent { reason: not_sent.as_str().into() }),
            };
            self.reports.extend(answer.map(|performed| Input::Performed { attempt_id, performed }));
        }
        while let Some(report) = self.reports.pop_front() {
            self.submit(report)?;
        }
        Ok(())
    }

    /// The target of an attempt that its episode has left is looked at.
    ///
    /// # Errors
    /// See [`Broken`]; no such attempt, or nothing reads its target.
    pub fn read_back(&mut self, attempt_id: &closer_contracts::id::AttemptId) -> Result<Reply, Broken> {
        let stuck = |what: &str| Broken::Stuck(format!("{what} is not on record"));
        let view = View::clone(self.view());
        let attempt = view.attempts.get(attempt_id).ok_or_else(|| stuck("the attempt"))?;
        let method = readback::method_for(&view, attempt).ok_or_else(|| stuck("the readback method"))?;
        let observed = self.world.observe(&attempt.action.target, &self.now);
        let target = &attempt.action.target;
        let payload = readback::draft(&view, method, &observed, target, Some(attempt), &[], &self.now)?;
        self.submit_payload(payload)
    }

    /// The oldest call that is still running returns.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn hear(&mut self) -> Result<(), Broken> {
        let now = self.moment().now;
        match self.world.return_slow(&now) {
            Some((attempt_id, performed)) => self.submit(Input::Performed { attempt_id, performed }).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The part of the process that sends effects ends and begins again: what had not left is forgotten, what is running
    /// is heard of later.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn lose_effects(&mut self) -> Result<(), Broken> {
        self.effects.clear();
        let running = self.running();
        self.submit(Input::Recover { running }).map(|_| ())
    }

    /// Forgets every effect that was admitted and not sent, as a crash would, and starts again from the log.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn crash(&mut self) -> Result<(), Broken> {
        self.effects.clear();
        self.held.clear();
        self.refused.clear();
        self.sequence = Sequence::new(self.replay()?);
        self.submit(Input::Recover { running: BTreeSet::new() }).map(|_| ())
    }

    /// The view that the log folds to.
    ///
    /// # Errors
    /// A record that does not read or fold.
    pub fn replay(&self) -> Result<View, Broken> {
        let mut view = View::default();
        for record in self.records() {
            view.fold(&Entry::read(record)?, &record.admitted_at)?;
        }
        Ok(view)
    }

    /// A fresh id.
    pub fn fresh(&mut self, prefix: &str) -> String {
        self.counter += 1;
        format!("{prefix}-{}", self.counter)
    }

    /// Authenticates a subject by the session of its producer.
    ///
    /// # Errors
    /// `unauthenticated`.
    pub fn authenticate(&mut self, subject: &Subject) -> Result<Authenticated, Fault> {
        let actor = subject.producer.clone();
        if !self.handles.contains_key(&actor) {
            let identity = self.sequence.view().state.identity(&actor).cloned();
            if let Some(identity) = identity {
                let id = SessionId::new(format!("session-{}", self.handles.len() + 1));
                let session = self.sessions.issue(id, &identity, &self.now)?;
                self.handles.insert(actor.clone(), session);
            }
        }
        let mechanisms = [Mechanism::Session];
        let accepted = Accepted { mechanisms: &mechanisms, sessions: &self.sessions };
        let credential = self.handles.get(&actor).map_or(Credential::None, Credential::Session);
        authenticate(accepted, self.sequence.view().state.identity(&actor), subject, credential, &self.now)
    }

    /// Authenticates and submits a payload.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn submit_payload(&mut self, payload: Payload) -> Result<Reply, Broken> {
        let submission = self.submission(payload)?;
        self.submit(Input::Payload(submission))
    }

    /// Authenticates a payload.
    ///
    /// # Errors
    /// `unauthenticated`.
    pub fn submission(&mut self, payload: Payload) -> Result<Submission<Payload>, Broken> {
        let auth = self.authenticate(&Subject::payload(&payload))?;
        let producer = payload.envelope().producer.clone();
        Ok(Submission { content: Arc::new(payload), producer, auth })
    }

    /// Authenticates and submits an artifact.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn submit_artifact(
        &mut self,
        body: impl Into<ArtifactBody>,
        producer: ActorRef,
        scope: SigningScope,
    ) -> Result<Reply, Broken> {
        let body = body.into();
        let digest = body.digest()?;
        let subject = Subject {
            id: closer_contracts::id::Id::new(body.id().as_str()),
            content_digest: digest,
            scope,
            producer: producer.actor_id.clone(),
            role: Some(producer.role),
        };
        let auth = self.authenticate(&subject)?;
        self.submit(Input::Artifact(Submission { content: Arc::new(body), producer, auth }))
    }

    /// The codes of every refusal on record, in order.
    ///
    /// # Errors
    /// A record that this version cannot read.
    pub fn refusals(&self) -> Result<Vec<RefusalCode>, Broken> {
        let entries = self.entries()?;
        Ok(entries
            .into_iter()
            .filter_map(|(_, entry)| if let Entry::Refusal(refusal) = entry { Some(refusal.code) } else { None })
            .collect())
    }

    /// The newest head of a stream, for tests that move one by hand.
    #[must_use]
    pub fn head(&self, stream: &closer_contracts::record::StreamId) -> Option<closer_contracts::record::Head> {
        self.log.head(stream)
    }
}
