//! A space on one thread: the sequence over an in-memory log, a simulated world, and every stage's drafting function in
//! turn. It does what the actors do and nothing else.

use crate::founding::{BEGINNING, Deployment};
use crate::memory::MemoryLog;
use crate::world::World;
use closer_contracts::audit::{DecisionType, RestrictionStatement, RestrictiveAction, UserDecision};
use closer_contracts::auth::{Accepted, Authenticated, Credential, Session, Sessions, SigningScope, Subject, authenticate};
use closer_contracts::canonical::to_bytes;
use closer_contracts::envelope::{Body, DisclosureRef, Envelope};
use closer_contracts::event::{Certainty, Event};
use closer_contracts::id::{ActorId, ArtifactId, DecisionId, EpisodeId, EventId, Key, ObligationId, PayloadId, SessionId};
use closer_contracts::item::Mechanism;
use closer_contracts::record::{Appended, Conflict, Cursor, Epoch, Reads, Record};
use closer_contracts::refs::{ActorRef, ArtifactRef, AuthenticatedIssuer, ProducerRole, SourceRef};
use closer_contracts::refusal::RefusalCode;
use closer_contracts::time::Timestamp;
use closer_contracts::work::{Work, WorkResult};
use closer_contracts::{Digest, Fault, Payload};
use closer_monitor::{Appended as Durable, ClockStanding, LastCheck, release};
use closer_protocol::entry::{ArtifactBody, EpisodeEnd, Entry};
use closer_protocol::episode::{self, Next};
use closer_protocol::input::{Effect, Input, Moment, Reply, Submission};
use closer_protocol::port::Performed;
use closer_protocol::sequence::Sequence;
use closer_protocol::view::{Divergence, View};
use closer_protocol::{action, adjudicate, bench, delta, genesis, readback, services, work};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How the one participant answers its work.
pub type Answer = Box<dyn FnMut(&Work, &View) -> WorkResult + Send>;

/// A deterministic space.
pub struct Space {
    sequence: Sequence,
    log: MemoryLog,
    sessions: Sessions,
    handles: BTreeMap<ActorId, Session>,
    effects: Vec<Effect>,
    now: Timestamp,
    clock: ClockStanding,
    counter: u64,
    answer: Answer,
    /// The world.
    pub world: World,
    /// Whether admitted effects are sent at once; otherwise they wait for [`Space::send`].
    pub sends_at_once: bool,
}

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Space").field("now", &self.now).field("records", &self.log.records().len()).finish_non_exhaustive()
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
            now,
            clock: ClockStanding::Reliable,
            counter: 0,
            answer,
            world: World::default(),
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

    /// The moment now.
    #[must_use]
    pub fn moment(&self) -> Moment {
        Moment { now: self.now.clone(), clock: self.clock }
    }

    /// The view.
    #[must_use]
    pub const fn view(&self) -> &View {
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
            let Effect::Perform { admission, order, restriction_cursor } = effect else {
                self.effects.push(effect);
                continue;
            };
            let appended = Appended { epoch: Epoch(1), first: Cursor(1), last: Cursor(1) };
            let permit = release(admission, Durable { record: appended.last, epoch: appended.epoch, restriction_cursor });
            let attempt_id = permit.attempt_id().clone();
            let last = LastCheck { now: &self.now, restriction_cursor: self.view().restrictions_decided, epoch: Epoch(1) };
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
        self.sequence = Sequence::new(self.replay()?);
        self.submit(Input::Recover).map(|_| ())
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
    pub fn submit_artifact(&mut self, body: impl Into<ArtifactBody>, producer: ActorRef, scope: SigningScope) -> Result<Reply, Broken> {
        let body = body.into();
        let digest = Digest::of(body.id().as_str().as_bytes());
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

    /// The EVENT of an observer about an entity.
    ///
    /// # Errors
    /// The codes of the contract.
    pub fn event_payload(&mut self, entity: &str, change_kind: &str, evidence: Vec<ArtifactRef>) -> Result<Payload, Fault> {
        let id = self.fresh("event");
        let intake = services::intake_disclosure("feed");
        let disclosure = self.view().disclosure(&intake).cloned();
        let disclosure = disclosure.unwrap_or(DisclosureRef { id: intake.as_str().into(), digest: Digest::of(b"") });
        Payload::seal(Envelope {
            protocol_version: Key::from("closer-draft-4"),
            payload_id: PayloadId::new(format!("pl.{id}")),
            r#type: closer_contracts::payload_type::PayloadType::Event,
            created_at: self.now.clone(),
            producer: ActorRef { actor_id: "observer-1".into(), role: ProducerRole::Observer },
            parents: Vec::new(),
            obligation_ids: Vec::new(),
            episode_id: None,
            semantic_basis: None,
            disclosure,
            budget_ref: None,
            causation_event_id: None,
            body: Body::from(Event {
                event_id: EventId::new(id.as_str()),
                source: SourceRef { source_id: "feed".into() },
                observed_at: self.now.clone(),
                received_at: self.now.clone(),
                entity_ref: entity.into(),
                change_kind: change_kind.into(),
                evidence_refs: evidence,
                deduplication_key: Key::new(id),
                certainty: Certainty::Observed,
                extensions: None,
            }),
            content_digest: Digest::of(b""),
            extensions: None,
        })
    }

    /// An observer sends an event about an entity.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn event(&mut self, entity: &str, change_kind: &str) -> Result<Reply, Broken> {
        let payload = self.event_payload(entity, change_kind, Vec::new())?;
        self.submit_payload(payload)
    }

    /// An issuer restricts.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn restrict(&mut self, issuer: &str, action: RestrictiveAction) -> Result<Reply, Broken> {
        let statement = RestrictionStatement {
            statement_id: ArtifactId::new(self.fresh("statement")),
            issuer: issuer.into(),
            action,
            reason: "The user's key may be known to others.".into(),
            evidence_refs: Vec::new(),
            reconciliation_due_at: Some(self.now.plus_ms(1_000_000)),
        };
        let producer = ActorRef { actor_id: issuer.into(), role: ProducerRole::Issuer };
        self.submit_artifact(statement, producer, SigningScope::RestrictionStatement)
    }

    /// The user answers a packet.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn answer(&mut self, decision_id: &DecisionId, decision_type: DecisionType) -> Result<Reply, Broken> {
        let packet = self.view().packets.get(decision_id).ok_or_else(|| Broken::Stuck(format!("no packet {decision_id}")))?;
        let decision = UserDecision {
            briefcase_ref: ArtifactRef { id: ArtifactId::new(decision_id.as_str()), digest: packet.packet.payload.content_digest() },
            evidence_version: packet.evidence_version,
            selected_option_or_instruction: "allow".into(),
            authenticated_issuer: AuthenticatedIssuer {
                identity: "user".into(),
                auth_ref: ArtifactRef { id: "auth".into(), digest: Digest::of(b"auth") },
            },
            issued_at: self.now.clone(),
            decision_type,
            decision_id: DecisionId::new(self.fresh("answer")),
        };
        let producer = ActorRef { actor_id: "user".into(), role: ProducerRole::User };
        self.submit_artifact(decision, producer, SigningScope::UserDecision)
    }

    /// Opens an episode on an eligible obligation.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn open(&mut self, obligation: &str) -> Result<EpisodeId, Broken> {
        let episode_id = EpisodeId::new(self.fresh("episode"));
        let input = Input::Open { obligation_id: ObligationId::from(obligation), episode_id: episode_id.clone() };
        match self.submit(input)? {
            Reply::Recorded(_) => Ok(episode_id),
            Reply::Refused(denials) => Err(Broken::Stuck(format!("{denials:?}"))),
        }
    }

    /// The next stage of an episode.
    ///
    /// # Errors
    /// No such episode.
    pub fn next(&self, episode_id: &EpisodeId) -> Result<Next, Broken> {
        let episode = self.view().episodes.get(episode_id).ok_or_else(|| Broken::Stuck(format!("no episode {episode_id}")))?;
        Ok(episode::next(self.view(), episode, &self.moment()))
    }

    /// Takes an episode one stage further.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn advance(&mut self, episode_id: &EpisodeId) -> Result<(Next, Reply), Broken> {
        let next = self.next(episode_id)?;
        let reply = self.carry_out(episode_id, next.clone())?;
        Ok((next, reply))
    }

    fn carry_out(&mut self, episode_id: &EpisodeId, next: Next) -> Result<Reply, Broken> {
        let stuck = |what: &str| Broken::Stuck(format!("{what} is not on record"));
        let view = self.view().clone();
        let episode = view.episodes.get(episode_id).ok_or_else(|| stuck("the episode"))?;
        let now = self.now.clone();
        let payload = match next {
            Next::Work { participant, role } => {
                let packet = work::draft(&view, episode, &participant, &role, &now)?;
                let work = self.submission(packet.work)?;
                return self.submit(Input::Issue { work, disclosure: packet.disclosure });
            }
            Next::Ask { work_id, participant } => {
                let work = view.works.get(&work_id).ok_or_else(|| stuck("the work"))?;
                let bytes = to_bytes(&(self.answer)(&work.body, &view))?;
                work::draft_result(&view, episode, &participant, &work_id, work::read_answer(&bytes)?, &now)?
            }
            Next::Act { result, proposal, grant } => action::draft(&view, episode, &result, &proposal, &grant, 1, &now)?,
            Next::Again { earlier, attempt } => action::draft_again(&view, episode, &earlier, attempt, &now)?,
            Next::Assess { payload_id } => {
                let action = view.actions.get(&payload_id).ok_or_else(|| stuck("the action"))?;
                adjudicate::pre_action(&view, episode, action, &now)?
            }
            Next::Dispatch { payload_id } => return self.submit(Input::Dispatch { payload_id, adjudication_id: None }),
            Next::Readback { attempt_id, not_before } => {
                self.now = self.now.clone().max(not_before);
                let attempt = view.attempts.get(&attempt_id).ok_or_else(|| stuck("the attempt"))?;
                let method = readback::method_for(&view, attempt).ok_or_else(|| stuck("the readback method"))?;
                let observed = self.world.observe(&attempt.action.target, &self.now);
                readback::draft(&view, method, &observed, &attempt.action.target, Some(attempt), None, &self.now)?
            }
            Next::Judge { attempt_id, evidence_id } => {
                let attempt = view.attempts.get(&attempt_id).ok_or_else(|| stuck("the attempt"))?;
                let readback = view.evidence.get(&evidence_id).ok_or_else(|| stuck("the readback"))?;
                adjudicate::post_outcome(&view, episode, attempt, readback, &now)?
            }
            Next::AskUser { result, proposal } => {
                let result = view.results.get(&result).ok_or_else(|| stuck("the result"))?;
                bench::draft(&view, episode, result, proposal.as_deref(), &now)?
            }
            Next::Distil => match delta::distill(&view, episode, &self.moment())? {
                Some(payload) => payload,
                None => return self.end(episode_id, EpisodeEnd::NothingToDo, "nothing was established"),
            },
            Next::Endorse { delta_id } => {
                let delta = view.deltas.get(&delta_id).ok_or_else(|| stuck("the delta"))?;
                adjudicate::semantic_commit(&view, episode, delta, &now)?
            }
            Next::Commit { delta_id } => return self.submit(Input::Commit { delta_id }),
            Next::End { end, reason } => return self.end(episode_id, end, reason.as_str()),
            Next::Await { .. } => {
                self.send()?;
                return Ok(Reply::Recorded(Vec::new()));
            }
            Next::Ended => return Ok(Reply::Recorded(Vec::new())),
        };
        self.submit_payload(payload)
    }

    fn end(&mut self, episode_id: &EpisodeId, end: EpisodeEnd, reason: &str) -> Result<Reply, Broken> {
        self.submit(Input::End { episode_id: episode_id.clone(), end, reason: reason.into() })
    }

    /// Runs an episode to its end; gives the stages it went through.
    ///
    /// # Errors
    /// See [`Broken`]; an episode that takes more than 200 stages is stuck.
    pub fn finish(&mut self, episode_id: &EpisodeId) -> Result<Vec<Next>, Broken> {
        let mut stages = Vec::new();
        for _ in 0..200 {
            let (next, _) = self.advance(episode_id)?;
            if next == Next::Ended {
                return Ok(stages);
            }
            stages.push(next);
        }
        Err(Broken::Stuck(format!("the episode goes round: {:?}", stages.last())))
    }

    /// Runs everything that is eligible until nothing is.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn run(&mut self) -> Result<(), Broken> {
        for _ in 0..200 {
            let eligible = self.view().eligible.keys().find(|id| !self.view().under_way.contains_key(*id)).cloned();
            let Some(obligation_id) = eligible else { return Ok(()) };
            let episode_id = self.open(obligation_id.as_str())?;
            self.finish(&episode_id)?;
        }
        Err(Broken::Stuck("obligations are made eligible for ever".into()))
    }

    /// The codes of every refusal on record, in order.
    ///
    /// # Errors
    /// A record that this version cannot read.
    pub fn refusals(&self) -> Result<Vec<RefusalCode>, Broken> {
        let entries = self.entries()?;
        Ok(entries
            .into_iter()
            .filter_map(|(_, entry)| match entry {
                Entry::Refusal(refusal) => Some(refusal.code),
                _ => None,
            })
            .collect())
    }

    /// The newest head of a stream, for tests that move one by hand.
    #[must_use]
    pub fn head(&self, stream: &closer_contracts::record::StreamId) -> Option<closer_contracts::record::Head> {
        self.log.head(stream)
    }
}
