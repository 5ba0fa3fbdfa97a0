//! A space at rest: the store is held for one request and nothing outside is touched.

use super::Space;
use crate::error::Error;
use closer_adapters::McpServers;
use closer_adapters::clock::{ClockBounds, SystemClock};
use closer_adapters::ids::UuidIds;
use closer_contracts::auth::{Accepted, Authenticated, Credential, Session, Sessions, Subject, authenticate};
use closer_contracts::envelope::Payload;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, Key, KeyId, SessionId};
use closer_contracts::record::{Epoch, FencedAppend};
use closer_contracts::refs::ActorRef;
use closer_protocol::disclose::Request;
use closer_protocol::entry::ArtifactBody;
use closer_protocol::port::{Clock, Ids, Pending};
use closer_protocol::sequence::Sequence;
use closer_protocol::{Input, Moment, Reply, Submission, View};
use closer_store::{Declined, Log, RecordLog, StoreError};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A space at rest.
pub struct Resting {
    log: Arc<Log>,
    epoch: Mutex<Option<Epoch>>,
    clock: SystemClock,
    sequence: Mutex<Sequence>,
    sessions: Mutex<(Sessions, BTreeMap<ActorId, Session>)>,
}

impl std::fmt::Debug for Resting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resting").finish_non_exhaustive()
    }
}

fn append(log: &Log, epoch: Epoch, append: FencedAppend) -> Result<(), Error> {
    let ticket = log.submit(epoch, append).map_err(|declined| match declined {
        Declined::Store(error) => Error::from(error),
        Declined::Conflict(conflict) => Error::Runtime(format!("a guard failed: {conflict:?}")),
    })?;
    ticket.wait()?;
    Ok(())
}

/// Whether the store lies where nothing can be written; it can be read all the same.
fn is_unwritable(store: &Path) -> bool {
    use rustix::io::Errno;
    let log = rustix::fs::access(store.join("log"), rustix::fs::Access::WRITE_OK);
    matches!(log, Err(Errno::ROFS | Errno::ACCESS | Errno::PERM))
}

impl Resting {
    /// Opens the store and folds what it holds.
    ///
    /// # Errors
    /// `Locked` where another process holds it; what cannot be read or folded.
    pub fn open(store: &Path) -> Result<Self, Error> {
        crate::wiring::warn_if_shared(store);
        let log = if is_unwritable(store) { Log::open_reading(store)? } else { Log::open(store, None)? };
        let log = Arc::new(log);
        let view = closer_actors::replay(&log)?;
        Ok(Self {
            clock: SystemClock::start(ClockBounds::default(), view.latest.as_ref()),
            sequence: Mutex::new(Sequence::new(view)),
            sessions: Mutex::default(),
            log,
            epoch: Mutex::default(),
        })
    }

    /// Takes the lease for the first record: whoever records nothing leaves no trace.
    fn epoch(&self) -> Result<Epoch, Error> {
        let mut held = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        match *held {
            Some(epoch) => Ok(epoch),
            None => Ok(*held.insert(self.log.acquire()?)),
        }
    }

    fn decide(&self, input: Input) -> Result<Reply, Error> {
        let mut sequence = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        let step = sequence.take(input, self.moment(), &*self.log)?;
        let Some(records) = step.append else { return Ok(step.reply) };
        match self.epoch().and_then(|epoch| append(&self.log, epoch, records)) {
            Ok(()) => {
                sequence.acknowledged();
                Ok(step.reply)
            }
            Err(error) => {
                sequence.discard();
                match matches!(error, Error::Store(StoreError::StoreFull)) {
                    true => Ok(Reply::Refused(vec![closer_actors::storage_full()])),
                    false => Err(error),
                }
            }
        }
    }
}

impl Resting {
    fn authenticate(&self, subject: &Subject, signature: Option<&(KeyId, Key)>) -> Result<Authenticated, Fault> {
        let view = self.view();
        let identity = view.state.identity(&subject.producer);
        let now = self.moment().now;
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let (registry, held) = &mut *sessions;
        if let (None, Some(identity), false) = (signature, identity, held.contains_key(&subject.producer)) {
            let session = registry.issue(SessionId::new(UuidIds.fresh("session")), identity, &now)?;
            held.insert(subject.producer.clone(), session);
        }
        let credential = match (signature, held.get(&subject.producer)) {
            (Some((key_id, signature)), _) => Credential::Ed25519 { key_id, signature },
            (None, Some(session)) => Credential::Session(session),
            (None, None) => Credential::None,
        };
        let mechanisms = view.state.profile().map(|profile| profile.mechanisms.clone()).unwrap_or_default();
        authenticate(Accepted { mechanisms: &mechanisms, sessions: registry }, identity, subject, credential, &now)
    }
}

impl Space for Resting {
    fn log(&self) -> &Arc<Log> {
        &self.log
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(self.sequence.lock().unwrap_or_else(PoisonError::into_inner).durable())
    }

    fn moment(&self) -> Moment {
        let (now, clock) = self.clock.now();
        Moment { now, clock }
    }

    fn fresh(&self, prefix: &str) -> String {
        UuidIds.fresh(prefix)
    }

    fn payload(&self, payload: Payload, signature: Option<&(KeyId, Key)>) -> Result<Submission<Payload>, Fault> {
        let producer = payload.envelope().producer.clone();
        let auth = self.authenticate(&Subject::payload(&payload), signature)?;
        Ok(Submission { content: Arc::new(payload), producer, auth })
    }

    fn artifact(
        &self,
        artifact: ArtifactBody,
        producer: ActorRef,
        signature: Option<&(KeyId, Key)>,
    ) -> Result<Submission<ArtifactBody>, Fault> {
        let auth = self.authenticate(&artifact.subject(&producer)?, signature)?;
        Ok(Submission { content: Arc::new(artifact), producer, auth })
    }

    fn request(&self, request: Request, producer: ActorRef) -> Result<Submission<Request>, Fault> {
        let auth = self.authenticate(&request.subject(&producer)?, None)?;
        Ok(Submission { content: Arc::new(request), producer, auth })
    }

    fn submit(&self, input: Input) -> Pending<'_, Result<Reply, Error>> {
        Box::pin(async move { self.decide(input) })
    }

    fn servers(&self) -> Option<&McpServers> {
        None
    }

    /// Nothing changes by itself.
    fn changed<'a>(&'a self, _: &'a Arc<View>) -> Pending<'a, ()> {
        Box::pin(std::future::pending())
    }
}
