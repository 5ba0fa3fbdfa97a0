//! A space in a directory of its own, and what tests do with it.

use super::{Acts, Answer, Counted, Scripted, Sees, Wall, World, now};
use closer_actors::{Handle, Options, Ports, Runtime};
use closer_contracts::audit::{DecisionType, RestrictionStatement, RestrictiveAction, UserDecision};
use closer_contracts::auth::Credential;
use closer_contracts::envelope::{Body, Envelope, PROTOCOL_VERSION};
use closer_contracts::event::{Certainty, Event};
use closer_contracts::id::{DecisionId, Key, PayloadId};
use closer_contracts::payload_type::PayloadType;
use closer_contracts::record::{Cursor, Record};
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole, SourceRef};
use closer_contracts::refusal::RefusalCode;
use closer_contracts::{Digest, Payload};
use closer_monitor::ClockStanding;
use closer_protocol::entry::ArtifactBody;
use closer_protocol::genesis::Founding;
use closer_protocol::{Entry, Input, Moment, Reply, View, services};
use closer_scenarios::founding::issuer;
use closer_store::Log;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A founded space on the real disk, the world around it, and the worker in it. Runtimes come and go.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
    pub(crate) world: Arc<World>,
    worker: Arc<Scripted>,
}

/// Opens the log of a directory, waiting until its last holder has let it go.
pub(crate) async fn open(directory: &Path) -> Arc<Log> {
    for _ in 0..500 {
        match Log::open(directory, None) {
            Ok(log) => return Arc::new(log),
            Err(closer_store::StoreError::Locked) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => panic!("the log does not open: {error}"),
        }
    }
    panic!("the log is still held");
}

impl Place {
    pub(crate) async fn found(founding: &Founding, answer: Answer) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = open(directory.path()).await;
        let at = Moment { now: now(), clock: ClockStanding::Reliable };
        closer_actors::found(&log, founding, &at).await.unwrap();
        Self { directory, world: Arc::default(), worker: Arc::new(Scripted(answer)) }
    }

    pub(crate) fn ports(&self) -> Ports {
        Ports {
            clock: Arc::new(Wall),
            ids: Arc::new(Counted::default()),
            operations: Arc::new(Acts(Arc::clone(&self.world))),
            observer: Arc::new(Sees(Arc::clone(&self.world))),
            participants: [("worker".into(), Arc::clone(&self.worker) as _)].into(),
        }
    }

    pub(crate) async fn start(&self, options: Options) -> Runtime {
        Runtime::start(open(self.directory.path()).await, self.ports(), options).await.unwrap()
    }

    /// Every record, in order, once nobody holds the log.
    pub(crate) async fn records(&self) -> Vec<Record> {
        let log = open(self.directory.path()).await;
        let mut records = Vec::new();
        log.replay(Cursor(1), &mut |_, record| records.push(record.clone())).unwrap();
        records
    }

    pub(crate) async fn replay(&self) -> View {
        closer_actors::replay(&*open(self.directory.path()).await).unwrap()
    }

    /// The codes of all refusals on record, in order.
    pub(crate) async fn refusals(&self) -> Vec<RefusalCode> {
        let entries = self.records().await.into_iter().map(|record| Entry::read(&record).unwrap());
        entries
            .filter_map(|entry| if let Entry::Refusal(refusal) = entry { Some(refusal.code) } else { None })
            .collect()
    }
}

/// Waits for quiet, but not for ever.
pub(crate) async fn settle(handle: &Handle) {
    tokio::time::timeout(Duration::from_secs(60), handle.idle()).await.expect("the space comes to rest");
}

/// Waits until the view shows something, but not for ever.
pub(crate) async fn until(handle: &Handle, shows: impl Fn(&View) -> bool) -> Arc<View> {
    let mut views = handle.subscribe();
    let view = tokio::time::timeout(Duration::from_secs(60), views.wait_for(|view| shows(view))).await;
    view.expect("the view comes to show it").unwrap().clone()
}

/// The EVENT of a price change at a service, with this deduplication key.
pub(crate) fn event(view: &View, service: &str, key: &str) -> Payload {
    Payload::seal(Envelope {
        protocol_version: Key::from(PROTOCOL_VERSION),
        payload_id: PayloadId::new(format!("pl.event.{key}")),
        r#type: PayloadType::Event,
        created_at: now(),
        producer: ActorRef { actor_id: "observer-1".into(), role: ProducerRole::Observer },
        parents: Vec::new(),
        obligation_ids: Vec::new(),
        episode_id: None,
        semantic_basis: None,
        disclosure: view.disclosure(&services::intake_disclosure("feed")).unwrap().clone(),
        budget_ref: None,
        causation_event_id: None,
        body: Body::from(Event {
            event_id: format!("event.{key}").as_str().into(),
            source: SourceRef { source_id: "feed".into() },
            observed_at: now(),
            received_at: now(),
            entity_ref: service.into(),
            change_kind: "price".into(),
            evidence_refs: Vec::new(),
            deduplication_key: Key::new(key),
            certainty: Certainty::Observed,
            extensions: None,
        }),
        content_digest: Digest::of(b""),
        extensions: None,
    })
    .unwrap()
}

/// The input of a price event, sent by the observer.
pub(crate) fn price(handle: &Handle, service: &str, key: &str) -> Input {
    let session = handle.session(&"observer-1".into()).unwrap();
    let payload = event(&handle.view(), service, key);
    Input::Payload(handle.authenticate_payload(payload, Credential::Session(&session)).unwrap())
}

pub(crate) async fn send(handle: &Handle, service: &str, key: &str) {
    let reply = handle.submit(price(handle, service, key)).await.unwrap();
    assert_eq!(reply.refusal(), None);
}

fn artifact(handle: &Handle, body: impl Into<ArtifactBody>, who: &str, role: ProducerRole) -> Input {
    let session = handle.session(&who.into()).unwrap();
    let producer = ActorRef { actor_id: who.into(), role };
    Input::Artifact(handle.authenticate_artifact(body.into(), producer, Credential::Session(&session)).unwrap())
}

/// An issuer's restriction.
pub(crate) fn restriction(handle: &Handle, id: &str, action: RestrictiveAction) -> Input {
    let statement = RestrictionStatement {
        statement_id: id.into(),
        issuer: "issuer-1".into(),
        action,
        reason: "Something is wrong.".into(),
        evidence_refs: Vec::new(),
        reconciliation_due_at: Some(now().plus_ms(1_000_000)),
    };
    artifact(handle, statement, "issuer-1", ProducerRole::Issuer)
}

/// The user's answer to a packet.
pub(crate) fn decision(handle: &Handle, decision_id: &DecisionId, decision_type: DecisionType) -> Input {
    let view = handle.view();
    let packet = view.packets.get(decision_id).unwrap();
    let decision = UserDecision {
        briefcase_ref: ArtifactRef { id: decision_id.as_str().into(), digest: packet.packet.payload.content_digest() },
        evidence_version: packet.evidence_version,
        selected_option_or_instruction: "allow".into(),
        authenticated_issuer: issuer(),
        issued_at: now(),
        decision_type,
        decision_id: format!("answer.{decision_id}").as_str().into(),
        amendment: None,
    };
    artifact(handle, decision, "user", ProducerRole::User)
}

pub(crate) fn is_resolved(view: &View, obligation: &str) -> bool {
    use closer_contracts::obligation::ObligationStatus;
    view.state.obligation(&obligation.into()).is_some_and(|obligation| obligation.status == ObligationStatus::Resolved)
}

pub(crate) fn told(reply: &Reply) -> Option<RefusalCode> {
    reply.refusal().map(|denial| denial.code)
}
