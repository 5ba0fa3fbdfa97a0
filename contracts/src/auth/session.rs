//! Sessions of in-process actors: handles that only the runtime's own registry of sessions can issue.

use crate::fault::Fault;
use crate::id::{ActorId, SessionId};
use crate::item::{Identity, Mechanism, Standing};
use crate::refusal::RefusalCode;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A handle that binds its holder to one registered identity. It has no constructor but [`Sessions::issue`], and a
/// handle with the same id from another registry is not the same handle.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    identity: Arc<ActorId>,
}

impl Session {
    /// The session's id, as authentication records name it. Knowing the id is not holding the session.
    #[must_use]
    pub const fn id(&self) -> &SessionId {
        &self.id
    }

    /// The identity it is bound to.
    #[must_use]
    pub fn identity(&self) -> &ActorId {
        &self.identity
    }
}

/// The sessions that one runtime issued and has not ended.
#[derive(Debug, Default)]
pub struct Sessions {
    open: BTreeMap<SessionId, Arc<ActorId>>,
}

impl Sessions {
    /// Issues a session for a registered identity. The id is fresh and comes from the shell.
    ///
    /// # Errors
    /// `unauthenticated` for an identity that is not current or does not use sessions; `key_conflict` for an id in use.
    pub fn issue(&mut self, id: SessionId, identity: &Identity, at: &Timestamp) -> Result<Session, Fault> {
        let revoked = identity.revoked_at.as_ref().is_some_and(|revoked_at| revoked_at <= at);
        if revoked || identity.standing != Standing::Current || !identity.mechanisms.contains(&Mechanism::Session) {
            return Err(Fault::new(
                RefusalCode::Unauthenticated,
                "the identity is not current or does not use sessions",
            ));
        }
        if self.open.contains_key(&id) {
            return Err(Fault::new(RefusalCode::KeyConflict, "the session id is in use"));
        }
        let actor = Arc::new(identity.actor_id.clone());
        self.open.insert(id.clone(), Arc::clone(&actor));
        Ok(Session { id, identity: actor })
    }

    /// Ends a session: its handle proves nothing from now on.
    pub fn end(&mut self, session: Session) {
        if self.hold(&session) {
            self.open.remove(&session.id);
        }
    }

    /// Whether this registry issued exactly this handle and has not ended it.
    #[must_use]
    pub fn hold(&self, session: &Session) -> bool {
        self.open.get(&session.id).is_some_and(|identity| Arc::ptr_eq(identity, &session.identity))
    }
}
