//! Sessions of this runtime, and the authentication of what is submitted. Who may do what is decided elsewhere.

use closer_contracts::Fault;
use closer_contracts::auth::{Accepted, Authenticated, Credential, Session, Sessions, Subject, authenticate};
use closer_contracts::id::{ActorId, SessionId};
use closer_contracts::refusal::RefusalCode;
use closer_contracts::time::Timestamp;
use closer_protocol::View;
use std::sync::{PoisonError, RwLock};

/// The sessions that this runtime issued.
#[derive(Default)]
pub(crate) struct Identities {
    sessions: RwLock<Sessions>,
}

impl Identities {
    /// Opens a session for an identity that the registry holds.
    pub(crate) fn open(&self, view: &View, actor: &ActorId, id: SessionId, at: &Timestamp) -> Result<Session, Fault> {
        let unknown = || Fault::new(RefusalCode::Unauthenticated, "the identity is not in the registry").within(actor);
        let identity = view.state.identity(actor).ok_or_else(unknown)?;
        self.sessions.write().unwrap_or_else(PoisonError::into_inner).issue(id, identity, at)
    }

    /// Judges whether the subject's claimed producer is established by what the caller shows.
    pub(crate) fn authenticate(
        &self,
        view: &View,
        subject: &Subject,
        credential: Credential<'_>,
        at: &Timestamp,
    ) -> Result<Authenticated, Fault> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        let mechanisms = view.state.profile().map_or(&[][..], |profile| &profile.mechanisms);
        let accepted = Accepted { mechanisms, sessions: &sessions };
        authenticate(accepted, view.state.identity(&subject.producer), subject, credential, at)
    }
}
