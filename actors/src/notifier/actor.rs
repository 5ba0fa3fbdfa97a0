//! The actor.

use super::Message;
use crate::service::{Call, Calling};
use crate::space::{Space, answered};
use closer_contracts::Fault;
use closer_contracts::auth::Credential;
use closer_contracts::id::{ActorId, IncidentId, SessionId};
use closer_contracts::refs::{ActorRef as Producer, ProducerRole};
use closer_protocol::entry::ArtifactBody;
use closer_protocol::incident::{self, IncidentStep, ScopedNotice};
use closer_protocol::{Input, Submission};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The actor.
pub(crate) struct Notifier;

/// What it keeps: whom it has told of which incident.
pub(crate) struct Told {
    space: Arc<Space>,
    told: BTreeSet<(IncidentId, ActorId)>,
}

impl Actor for Notifier {
    type Msg = Message;
    type State = Told;
    type Arguments = Arc<Space>;

    async fn pre_start(&self, myself: ActorRef<Message>, space: Arc<Space>) -> Result<Told, ActorProcessingErr> {
        myself.send_message(Message::Look(space.activity.begin()))?;
        Ok(Told { space, told: BTreeSet::new() })
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        Message::Look(_under_way): Message,
        told: &mut Told,
    ) -> Result<(), ActorProcessingErr> {
        for (incident_id, notice) in incident::undelivered(&told.space.view()) {
            told.deliver(&myself, incident_id, notice).await?;
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Message>,
        event: SupervisionEvent,
        _: &mut Told,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(_, error) = event {
            tracing::error!(%error, "the delivery of a notice died; its recipient has not answered");
        }
        Ok(())
    }
}

impl Told {
    async fn deliver(
        &mut self,
        myself: &ActorRef<Message>,
        incident_id: IncidentId,
        notice: ScopedNotice,
    ) -> Result<(), ActorProcessingErr> {
        let recipient = notice.receipt.recipient.clone();
        let Some(port) = self.space.ports.participants.get(&recipient).map(Arc::clone) else {
            return Ok(());
        };
        if !self.told.insert((incident_id.clone(), recipient.clone())) {
            return Ok(());
        }
        let (space, under_way) = (Arc::clone(&self.space), self.space.activity.begin());
        let call = Box::pin(async move {
            let longest = Duration::from_millis(space.options.observe_ms_max);
            let said = tokio::time::timeout(longest, port.withdraw(&notice)).await.ok().flatten();
            if let Some((answer, reason)) = said {
                let step = incident::answered(&incident_id, &recipient, answer, reason);
                match submission(&space, &recipient, step) {
                    Ok(input) => drop(answered(space.ask(input)).await),
                    Err(fault) => {
                        tracing::warn!(%fault, %recipient, "an answer to a notice is not its recipient's own")
                    }
                }
            }
            under_way
        });
        Actor::spawn_linked(None, Call::default(), Calling { call, tell: Box::new(|_, _| ()) }, myself.get_cell())
            .await?;
        Ok(())
    }
}

/// The answer as its recipient's own.
fn submission(space: &Space, recipient: &ActorId, step: IncidentStep) -> Result<Input, Fault> {
    let (view, at) = (space.view(), space.moment().now);
    let producer = Producer { actor_id: recipient.clone(), role: ProducerRole::Participant };
    let body = ArtifactBody::from(step);
    let session = space.identities.open(&view, recipient, SessionId::new(space.ports.ids.fresh("session")), &at)?;
    let credential = Credential::Session(&session);
    let auth = space.identities.authenticate(&view, &body.subject(&producer)?, credential, &at)?;
    Ok(Input::Artifact(Submission { content: Arc::new(body), producer, auth }))
}
