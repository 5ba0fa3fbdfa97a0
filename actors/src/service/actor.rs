//! The actor.

use super::{Call, Calling, Charge, Message};
use crate::lanes::ReplyTo;
use crate::space::Space;
use closer_contracts::auth::{Credential, Session, Subject};
use closer_contracts::id::{ActorId, SessionId, Text};
use closer_contracts::{Fault, Payload};
use closer_protocol::entry::EpisodeEnd;
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
    /// An input of the desk's own.
    Input(Box<Input>),
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
        Draft::Input(Box::new(Input::End {
            episode_id: charge.episode.episode_id.clone(),
            end: EpisodeEnd::NoAnswer,
            reason: Text::from(format!("the {} failed {CALLS_MAX} times", self.desk.name())),
        }))
    }

    /// Authenticates a draft and offers it to the sequence. One that could not be drafted is refused.
    fn offer(&mut self, charge: &Charge, draft: Result<Draft, Fault>, reply: ReplyTo) {
        match draft.and_then(|draft| self.input(charge, draft)) {
            Ok(input) => self.space.offer(input, reply),
            Err(fault) => drop(reply.send(Ok(Reply::Refused(vec![fault.into()])))),
        }
    }

    fn input(&mut self, charge: &Charge, draft: Draft) -> Result<Input, Fault> {
        Ok(match draft {
            Draft::Payload(payload) => Input::Payload(self.submission(charge, *payload)?),
            Draft::Work(packet) => {
                Input::Issue { work: self.submission(charge, packet.work)?, disclosure: packet.disclosure }
            }
            Draft::Input(input) => *input,
        })
    }

    fn submission(&mut self, charge: &Charge, payload: Payload) -> Result<Submission<Payload>, Fault> {
        let at = self.space.moment().now;
        let producer = payload.envelope().producer.clone();
        if !self.sessions.contains_key(&producer.actor_id) {
            let id = SessionId::new(self.space.ports.ids.fresh("session"));
            let session = self.space.identities.open(&charge.view, &producer.actor_id, id, &at)?;
            self.sessions.insert(producer.actor_id.clone(), session);
        }
        let credential = self.sessions.get(&producer.actor_id).map_or(Credential::None, Credential::Session);
        let auth = self.space.identities.authenticate(&charge.view, &Subject::payload(&payload), credential, &at)?;
        Ok(Submission { content: Arc::new(payload), producer, auth })
    }
}
