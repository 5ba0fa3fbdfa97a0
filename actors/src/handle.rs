//! A handle to a running space: submit, look, wait.

use crate::error::Error;
use crate::lanes::Answer;
use crate::space::{Space, answered};
use closer_contracts::auth::{Credential, Session, Subject};
use closer_contracts::id::{ActorId, SessionId};
use closer_contracts::record::Lane;
use closer_contracts::refs::ActorRef;
use closer_contracts::{Fault, Payload};
use closer_protocol::disclose::Request;
use closer_protocol::entry::ArtifactBody;
use closer_protocol::{Input, Moment, Reply, Submission, View, episode, sequence};
use std::sync::Arc;
use tokio::sync::{TryAcquireError, oneshot, watch};

/// A handle to a running space. Cloning is cheap.
#[derive(Clone)]
pub struct Handle {
    space: Arc<Space>,
}

impl Handle {
    pub(crate) const fn new(space: Arc<Space>) -> Self {
        Self { space }
    }

    /// Submits an input to the sequence. Resolves once what the reply tells is durable; a refusal is a reply.
    ///
    /// # Errors
    /// [`Error::Busy`] at the admission bound, never for the reserved lane; [`Error::Stopped`]; [`Error::Interrupted`];
    /// [`Error::Fenced`]; [`Error::Store`].
    pub async fn submit(&self, input: Input) -> Result<Reply, Error> {
        answered(self.admit(input)?).await
    }

    fn admit(&self, input: Input) -> Result<Answer, Error> {
        let lane = sequence::lane(&input, &self.space.view());
        let place = match lane {
            Lane::Reserved => None,
            Lane::Ordinary => {
                let place = Arc::clone(&self.space.admitted).try_acquire_owned();
                Some(place.map_err(|error| match error {
                    TryAcquireError::NoPermits => Error::Busy,
                    TryAcquireError::Closed => Error::Stopped,
                })?)
            }
        };
        let (reply, answer) = oneshot::channel();
        self.space.lanes.offer(lane, input, reply, place);
        Ok(answer)
    }

    /// The newest durable view.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.space.view()
    }

    /// Follows the newest durable view.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<View>> {
        self.space.subscribe()
    }

    /// Waits for a durable view other than this one.
    pub async fn changed(&self, than: &Arc<View>) -> Arc<View> {
        let mut views = self.space.subscribe();
        match views.wait_for(|view| !Arc::ptr_eq(view, than)).await {
            Ok(view) => Arc::clone(&view),
            Err(_) => self.view(),
        }
    }

    /// Resolves when no episode is under way, none may be opened, and nothing offered is unsettled. What waits for a
    /// later time or for the user does not count.
    pub async fn idle(&self) {
        let mut views = self.space.subscribe();
        loop {
            let quiet = self.space.activity.quiet();
            let is_idle = {
                let view = views.borrow_and_update();
                view.under_way.is_empty() && episode::openable(&view).is_empty()
            };
            if is_idle && self.space.activity.is_quiet() {
                return;
            }
            tokio::select! {
                () = quiet => {}
                changed = views.changed() => if changed.is_err() { return },
            }
        }
    }

    /// The runtime's time now.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.space.moment()
    }

    /// Opens an in-process session for a registered identity; whoever holds it submits in that identity's name.
    ///
    /// # Errors
    /// `unauthenticated`, as [`Error::Refused`], for an identity that is not registered, not current or without sessions.
    pub fn session(&self, actor: &ActorId) -> Result<Session, Error> {
        let id = SessionId::new(self.space.ports.ids.fresh("session"));
        self.space.identities.open(&self.view(), actor, id, &self.moment().now).map_err(Error::Refused)
    }

    /// Authenticates a payload as its producer's by what the caller shows.
    ///
    /// # Errors
    /// `unauthenticated`, with the reason.
    pub fn authenticate_payload(
        &self,
        payload: Payload,
        credential: Credential<'_>,
    ) -> Result<Submission<Payload>, Fault> {
        let producer = payload.envelope().producer.clone();
        let auth = self.space.identities.authenticate(
            &self.view(),
            &Subject::payload(&payload),
            credential,
            &self.moment().now,
        )?;
        Ok(Submission { content: Arc::new(payload), producer, auth })
    }

    /// Authenticates an artifact as this producer's by what the caller shows.
    ///
    /// # Errors
    /// `unauthenticated`, with the reason; `missing_authority` for what only the runtime writes.
    pub fn authenticate_artifact(
        &self,
        artifact: ArtifactBody,
        producer: ActorRef,
        credential: Credential<'_>,
    ) -> Result<Submission<ArtifactBody>, Fault> {
        let subject = artifact.subject(&producer)?;
        let auth = self.space.identities.authenticate(&self.view(), &subject, credential, &self.moment().now)?;
        Ok(Submission { content: Arc::new(artifact), producer, auth })
    }

    /// Authenticates a request for a part of the record as this producer's by what the caller shows.
    ///
    /// # Errors
    /// `unauthenticated`, with the reason.
    pub fn authenticate_request(
        &self,
        request: Request,
        producer: ActorRef,
        credential: Credential<'_>,
    ) -> Result<Submission<Request>, Fault> {
        let subject = request.subject(&producer)?;
        let auth = self.space.identities.authenticate(&self.view(), &subject, credential, &self.moment().now)?;
        Ok(Submission { content: Arc::new(request), producer, auth })
    }
}
