//! A space on one thread: the sequence over an in-memory log, a simulated world, and every stage's drafting function in
//! turn. It does what the actors do and nothing else.

mod conferences;
mod handoffs;
mod stages;
mod voices;

use crate::founding::{BEGINNING, Deployment};
use crate::memory::MemoryLog;
use crate::world::World;
use closer_contracts::auth::{
    Accepted, Authenticated, Credential, Session, Sessions, SigningScope, Subject, authenticate,
};
use closer_contracts::id::{ActorId, EpisodeId, SessionId};
use closer_contracts::item::Mechanism;
use closer_contracts::record::{Appended, Conflict, Cursor, Epoch, Reads, Record};
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
use closer_protocol::sequence::Sequence;
use closer_protocol::view::{Divergence, View};
use std::collections::BTreeMap;
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

/// A deterministic space.
pub struct Space {
    sequence: Sequence,
    log: MemoryLog,
    sessions: Sessions,
    handles: BTreeMap<ActorId, Session>,
    effects: Vec<Effect>,
    refused: BTreeMap<EpisodeId, Refused>,
    now: Timestamp,
    clock: ClockStanding,
    counter: u64,
    answer: Answer,
    /// The world.
    pub world: World,
    /// Participants that give no answer in a conference.
    pub silent: std::collections::BTreeSet<ActorId>,
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
    #[error("the log refused a decided append: {0:?}")]
    Conflict(Conflict),
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
        let now = Timestamp::parse(BEGINNING)?;
        let mut space = Self {
            sequence: Sequence::new(View::default()),
            log: MemoryLog::default(),
            sessions: Sessions::default(),
            handles: BTreeMap::new(),
            effects: Vec::new(),
            refused: BTreeMap::new(),
            now,
            clock: ClockStanding::Reliable,
            counter: 0,
            answer,
            world: World::default(),
            silent: std::collections::BTreeSet::new(),
            sends_at_once: true,
        };
        let step = genesis::found(&deployment.founding, &space.moment(), &space.log)?;
        let mut view = View::default();
        for entry in &step.entries {
            view.fold(entry, &space.now)?;
        }
        if let Some(append) = step.append {
            space.log.append(append).map_err(Broken::Conflict)?;
        }
        space.effects = step.effects;
        space.sequence = Sequence::new(view);
        Ok(space)
    }

    /// Goes on from records that a space has left: its log, its world and its clock.
    ///
    /// # Errors
    /// Records that do not link or fold.
    pub fn resume(records: Vec<Record>, world: World, now: Timestamp, answer: Answer) -> Result<Self, Broken> {
        let mut log = MemoryLog::default();
        let counter = records.len() as u64;
        let append = FencedAppend { lane: Lane::Ordinary, guards: Vec::new(), records };
        log.append(append).map_err(Broken::Conflict)?;
        let mut space = Self {
            sequence: Sequence::new(View::default()),
            log,
            sessions: Sessions::default(),
            handles: BTreeMap::new(),
            effects: Vec::new(),
            refused: BTreeMap::new(),
            now,
            clock: ClockStanding::Reliable,
            counter,
            answer,
            world,
            silent: std::collections::BTreeSet::new(),
            sends_at_once: true,
        };
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

    /// The log, for reads of heads and claims.
    #[must_use]
    pub const fn log(&self) -> &MemoryLog {
        &self.log
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

    /// Puts the clock in doubt, or out of it.
    pub const fn set_clock(&mut self, clock: ClockStanding) {
        self.clock = clock;
    }

    /// Submits an input: decided, appended, acknowledged; its effects follow.
    ///
    /// # Errors
    /// See [`Broken`]; a refusal is a reply.
    pub fn submit(&mut self, input: Input) -> Result<Reply, Broken> {
        let at = self.moment();
        let step = self.sequence.take(input, at, &self.log)?;
        if let Some(append) = step.append {
            self.log.append(append).map_err(Broken::Conflict)?;
            self.sequence.acknowledged();
        }
        self.effects.extend(step.effects);
        if self.sends_at_once {
            self.send()?;
        }
        Ok(step.reply)
    }

    /// Sends every admitted effect, under its permit and after the last look.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn send(&mut self) -> Result<(), Broken> {
        let effects = std::mem::take(&mut self.effects);
        let mut performed = Vec::new();
        for effect in effects {
            let (admission, order, restriction_cursor) = match effect {
                Effect::Perform { admission, order, restriction_cursor } => (admission, order, restriction_cursor),
                Effect::Cancel { attempt_id, .. } => {
                    self.world.cancelled.push(attempt_id);
                    continue;
                }
                Effect::Eligible(_) | Effect::Advance(_) | Effect::OnTheBench(_) => {
                    self.effects.push(effect);
                    continue;
                }
            };
            let appended = Appended { epoch: Epoch(1), first: Cursor(1), last: Cursor(1) };
            let permit =
                release(admission, Durable { record: appended.last, epoch: appended.epoch, restriction_cursor });
            let attempt_id = permit.attempt_id().clone();
            let last =
                LastCheck { now: &self.now, restriction_cursor: self.view().restrictions_decided, epoch: Epoch(1) };
            let answer = match permit.check(last) {
                Ok(_permit) => self.world.perform(&order.action, &self.now),
                Err(not_sent) => Performed::NotSent { reason: not_sent.as_str().into() },
            };
            performed.push(Input::Performed { attempt_id, performed: answer });
        }
        for input in performed {
            self.submit(input)?;
        }
        Ok(())
    }

    /// Forgets every effect that was admitted and not sent, as a crash would, and starts again from the log.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn crash(&mut self) -> Result<(), Broken> {
        self.effects.clear();
        self.refused.clear();
        self.sequence = Sequence::new(self.replay()?);
        self.submit(Input::Recover { running: std::collections::BTreeSet::new() }).map(|_| ())
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
