//! The actor.

use super::{Call, Calling, Charge, Message};
use crate::lanes::ReplyTo;
use crate::space::Space;
use closer_contracts::auth::{Authenticated, Credential, Session, Subject};
use closer_contracts::conference::ConferenceMove;
use closer_contracts::id::{ActorId, SessionId, Text};
use closer_contracts::refs::{ActorRef as Producer, Amounts, ProducerRole};
use closer_contracts::{Fault, Payload};
use closer_protocol::entry::{ArtifactBody, EpisodeEnd};
use closer_protocol::input::Answer;
use closer_protocol::port::Pending;
use closer_protocol::work::Packet;
use closer_protocol::{Input, Reply, Submission};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// How often a call that panicked is made again.
const CALLS_MAX: u32 = 3;

/// What a desk has drafted.
pub(crate) enum Draft {
    /// A payload, in the name of its producer.
    Payload(Box<Payload>),
    /// Work, with the receipt of what it releases.
    Work(Box<Packet>),
    /// An artifact, in the name of its producer.
    Artifact(Box<ArtifactBody>, Producer),
    /// A participant's RESULT, and what it used.
    Result(Box<Payload>, Amounts),
    /// A participant's move, and what it used.
    Move(Box<ConferenceMove>, Amounts),
    /// An input of the desk's own.
    Input(Box<Input>),
    /// Nothing: somebody else has put on record what the stage was for.
    OnRecord,
}

/// How a desk attends to a charge.
pub(crate) enum Attended {
    /// The draft, at once.
    Drafted(Result<Draft, Fault>),
    /// The draft, once a port has answered.
    Calling(Pending<'static, Result<Draft, Fault>>),
}

/// A stage's way of drafting.
pub(crate) trait Desk: Send + Sync + 'static {
    /// Its name, for probes and logs.
    fn name(&self) -> &'static str;
    /// Attends to a stage.
    fn attend(&self, charge: &Charge) -> Attended;
    /// What a call that failed so often comes to; `None` ends the episode.
    fn failed(&self, _: &Charge, _: u32) -> Option<Draft> {
        None
    }
}

/// The actor of one desk.
pub(crate) struct Service;

/// What it keeps: its sessions, and the calls that are out.
pub(crate) struct Office {
    space: Arc<Space>,
    desk: Box<dyn Desk>,
    sessions: BTreeMap<ActorId, Session>,
    calls: HashMap<ractor::ActorId, Outstanding>,
}

struct Outstanding {
    charge: Charge,
    reply: ReplyTo,
    calls: u32,
}

impl Actor for Service {
    type Msg = Message;
    type State = Office;
    type Arguments = (Arc<Space>, Box<dyn Desk>);

    async fn pre_start(
        &self,
        _: ActorRef<Message>,
        (space, desk): (Arc<Space>, Box<dyn Desk>),
    ) -> Result<Office, ActorProcessingErr> {
        Ok(Office { space, desk, sessions: BTreeMap::new(), calls: HashMap::new() })
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        office: &mut Office,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Attend(charge, reply) => office.attend(&myself, Outstanding { charge, reply, calls: 0 }).await,
            Message::Called(call, draft) => {
                if let Some(outstanding) = office.calls.remove(&call) {
                    office.offer(&outstanding.charge, draft, outstanding.reply);
                }
                Ok(())
            }
        }
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Message>,
        event: SupervisionEvent,
        office: &mut Office,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(call, error) => {
                tracing::warn!(desk = office.desk.name(), %error, "a call died");
                match office.calls.remove(&call.get_id()) {
                    Some(outstanding) => office.attend(&myself, outstanding).await,
                    None => Ok(()),
                }
            }
            SupervisionEvent::ActorTerminated(..)
            | SupervisionEvent::ActorStarted(_)
            | SupervisionEvent::ProcessGroupChanged(_) => Ok(()),
        }
    }
}

impl Office {
    async fn attend(
        &mut self,
        myself: &ActorRef<Message>,
        mut outstanding: Outstanding,
    ) -> Result<(), ActorProcessingErr> {
        if outstanding.calls >= CALLS_MAX {
            let draft = self.given_up(&outstanding.charge);
            self.offer(&outstanding.charge, Ok(draft), outstanding.reply);
            return Ok(());
        }
        self.space.probe(self.desk.name());
        match self.desk.attend(&outstanding.charge) {
            Attended::Drafted(draft) => self.offer(&outstanding.charge, draft, outstanding.reply),
            Attended::Calling(call) => {
                outstanding.calls += 1;
                let office = myself.clone();
                let tell = Box::new(move |call, draft| drop(office.send_message(Message::Called(call, draft))));
                let (call, _) =
                    Actor::spawn_linked(None, Call::default(), Calling { call, tell }, myself.get_cell()).await?;
                self.calls.insert(call.get_id(), outstanding);
            }
        }
        Ok(())
    }

    /// A call that panics whenever it is made has no answer.
    fn given_up(&self, charge: &Charge) -> Draft {
        if let Some(failed) = self.desk.failed(charge, CALLS_MAX) {
            return failed;
        }
        Draft::Input(Box::new(Input::End {
            episode_id: charge.episode.episode_id.clone(),
            end: EpisodeEnd::NoAnswer,
            reason: Text::from(format!("the {} failed {CALLS_MAX} times", self.desk.name())),
        }))
    }

    /// Authenticates a draft and offers it to the sequence. One that could not be drafted is refused.
    fn offer(&mut self, charge: &Charge, draft: Result<Draft, Fault>, reply: ReplyTo) {
        match draft.and_then(|draft| self.input(charge, draft)) {
            Ok(Some(input)) => self.space.offer(input, reply),
            Ok(None) => drop(reply.send(Ok(Reply::Recorded(Vec::new())))),
            Err(fault) => drop(reply.send(Ok(Reply::Refused(vec![fault.into()])))),
        }
    }

    fn input(&mut self, charge: &Charge, draft: Draft) -> Result<Option<Input>, Fault> {
        Ok(Some(match draft {
            Draft::Payload(payload) => Input::Payload(self.submission(charge, *payload)?),
            Draft::Work(packet) => {
                Input::Issue { work: self.submission(charge, packet.work)?, disclosure: packet.disclosure }
            }
            Draft::Artifact(body, producer) => Input::Artifact(self.artifact(charge, *body, producer)?),
            Draft::Result(payload, used) => {
                Input::Answer { answer: Answer::Result(self.submission(charge, *payload)?), used }
            }
            Draft::Move(made, used) => {
                let producer = Producer { actor_id: made.actor.clone(), role: ProducerRole::Participant };
                Input::Answer { answer: Answer::Move(self.artifact(charge, (*made).into(), producer)?), used }
            }
            Draft::Input(input) => *input,
            Draft::OnRecord => return Ok(None),
        }))
    }

    fn submission(&mut self, charge: &Charge, payload: Payload) -> Result<Submission<Payload>, Fault> {
        let producer = payload.envelope().producer.clone();
        let auth = self.authenticate(charge, &Subject::payload(&payload), &producer)?;
        Ok(Submission { content: Arc::new(payload), producer, auth })
    }

    fn artifact(
        &mut self,
        charge: &Charge,
        body: ArtifactBody,
        producer: Producer,
    ) -> Result<Submission<ArtifactBody>, Fault> {
        let auth = self.authenticate(charge, &body.subject(&producer)?, &producer)?;
        Ok(Submission { content: Arc::new(body), producer, auth })
    }

    /// Authenticates something as its producer's, by a session that the service holds for it.
    fn authenticate(
        &mut self,
        charge: &Charge,
        subject: &Subject,
        producer: &Producer,
    ) -> Result<Authenticated, Fault> {
        let at = self.space.moment().now;
        if !self.sessions.contains_key(&producer.actor_id) {
            let id = SessionId::new(self.space.ports.ids.fresh("session"));
            let session = self.space.identities.open(&charge.view, &producer.actor_id, id, &at)?;
            self.sessions.insert(producer.actor_id.clone(), session);
        }
        let credential = self.sessions.get(&producer.actor_id).map_or(Credential::None, Credential::Session);
        self.space.identities.authenticate(&charge.view, subject, credential, &at)
    }
}
