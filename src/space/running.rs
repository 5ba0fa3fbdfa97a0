//! A space that runs behind the actors of this process.

use super::Space;
use crate::error::Error;
use closer_actors::Handle;
use closer_adapters::McpServers;
use closer_adapters::ids::UuidIds;
use closer_contracts::auth::{Credential, Session};
use closer_contracts::envelope::Payload;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, Key, KeyId};
use closer_contracts::refs::ActorRef;
use closer_contracts::refusal::RefusalCode;
use closer_protocol::disclose::Request;
use closer_protocol::entry::ArtifactBody;
use closer_protocol::port::{Ids, Pending};
use closer_protocol::{Input, Moment, Reply, Submission, View};
use closer_store::Log;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A running space and the sessions that its faces hold.
pub struct Running {
    log: Arc<Log>,
    handle: Handle,
    servers: McpServers,
    sessions: Mutex<BTreeMap<ActorId, Arc<Session>>>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Running {
    /// The faces' side of a running space.
    #[must_use]
    pub fn new(log: Arc<Log>, handle: Handle, servers: McpServers) -> Self {
        Self { log, handle, servers, sessions: Mutex::default() }
    }

    /// The handle behind it.
    #[must_use]
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The session held for an identity; opened at its first use.
    fn session(&self, actor: &ActorId) -> Result<Arc<Session>, Fault> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = sessions.get(actor) {
            return Ok(Arc::clone(session));
        }
        let opened = self.handle.session(actor).map_err(|error| {
            let plain = Fault::new(RefusalCode::Unauthenticated, error.to_string());
            if let closer_actors::Error::Refused(fault) = error { fault } else { plain }
        })?;
        let session = Arc::new(opened);
        sessions.insert(actor.clone(), Arc::clone(&session));
        Ok(session)
    }
}

impl Space for Running {
    fn log(&self) -> &Arc<Log> {
        &self.log
    }

    fn view(&self) -> Arc<View> {
        self.handle.view()
    }

    fn moment(&self) -> Moment {
        self.handle.moment()
    }

    fn fresh(&self, prefix: &str) -> String {
        UuidIds.fresh(prefix)
    }

    fn payload(&self, payload: Payload, signature: Option<&(KeyId, Key)>) -> Result<Submission<Payload>, Fault> {
        if let Some((key_id, signature)) = signature {
            return self.handle.authenticate_payload(payload, Credential::Ed25519 { key_id, signature });
        }
        let session = self.session(&payload.envelope().producer.actor_id)?;
        self.handle.authenticate_payload(payload, Credential::Session(&session))
    }

    fn artifact(
        &self,
        artifact: ArtifactBody,
        producer: ActorRef,
        signature: Option<&(KeyId, Key)>,
    ) -> Result<Submission<ArtifactBody>, Fault> {
        if let Some((key_id, signature)) = signature {
            return self.handle.authenticate_artifact(artifact, producer, Credential::Ed25519 { key_id, signature });
        }
        let session = self.session(&producer.actor_id)?;
        self.handle.authenticate_artifact(artifact, producer, Credential::Session(&session))
    }

    fn request(&self, request: Request, producer: ActorRef) -> Result<Submission<Request>, Fault> {
        let session = self.session(&producer.actor_id)?;
        self.handle.authenticate_request(request, producer, Credential::Session(&session))
    }

    fn submit(&self, input: Input) -> Pending<'_, Result<Reply, Error>> {
        Box::pin(async move { Ok(self.handle.submit(input).await?) })
    }

    fn servers(&self) -> Option<&McpServers> {
        Some(&self.servers)
    }

    fn changed<'a>(&'a self, than: &'a Arc<View>) -> Pending<'a, ()> {
        Box::pin(async move { drop(self.handle.changed(than).await) })
    }
}
