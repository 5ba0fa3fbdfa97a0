//! Looking at declared targets again and again. What changed is handed in as evidence, and as an event where one is
//! declared; what it means is decided elsewhere.

use crate::deployment::{Observation, ObservedEvent};
use crate::error::Error;
use crate::space::{Running, Space};
use closer_contracts::envelope::{Body, Payload};
use closer_contracts::event::{Certainty, Event};
use closer_contracts::id::{EventId, Id, Key, PayloadId};
use closer_contracts::item::{Item, ItemKind, ReadbackMethod};
use closer_contracts::refs::{ArtifactRef, ProducerRole, SourceRef};
use closer_contracts::refusal::RefusalCode;
use closer_contracts::work::{Need, WorkResult};
use closer_protocol::port::{Observed, Observer, ReadbackOrder};
use closer_protocol::services::{self, Lineage};
use closer_protocol::view::OnRecord;
use closer_protocol::{Input, Reply, View, readback};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How often each target was looked at, in the order of the observations.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds(Vec<u64>);

impl Rounds {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether each target was looked at twice more: a look that began before may have seen what was.
    pub(super) fn are_past(&self, before: &Self) -> bool {
        self.0.iter().zip(&before.0).all(|(now, before)| *now >= before.saturating_add(2))
    }
}

/// Begins to look.
pub(super) fn start(
    tasks: &mut JoinSet<()>,
    space: &Arc<Running>,
    observer: &Arc<dyn Observer>,
    observations: &[Observation],
) -> watch::Receiver<Rounds> {
    let (rounds, told) = watch::channel(Rounds(vec![0; observations.len()]));
    let rounds = Arc::new(rounds);
    for (index, observation) in observations.iter().cloned().enumerate() {
        let (space, observer, rounds) = (Arc::clone(space), Arc::clone(observer), Arc::clone(&rounds));
        tasks.spawn(async move {
            loop {
                if let Err(error) = look(&space, observer.as_ref(), &observation).await {
                    tracing::warn!(%error, address = %observation.target.address, "a look could not be recorded");
                }
                rounds.send_modify(|rounds| {
                    if let Some(round) = rounds.0.get_mut(index) {
                        *round = round.saturating_add(1);
                    }
                });
                tokio::time::sleep(Duration::from_millis(observation.every_ms)).await;
            }
        });
    }
    told
}

/// Looks once, and hands in what changed. While an attempt on the target is not settled, its readback has the word.
async fn look(space: &Running, observer: &dyn Observer, observation: &Observation) -> Result<(), Error> {
    let view = space.view();
    if is_being_changed(&view, observation) || !is_needed(&view, observation) {
        return Ok(());
    }
    let Some(method) = method(&view, observation) else {
        return Err(Error::World(format!("no readback method is called `{}`", observation.method)));
    };
    let order = ReadbackOrder {
        method: Arc::new(method.clone()),
        target: observation.target.clone(),
        action_id: None,
        attempt_id: None,
    };
    let observed = observer.observe(&order).await;
    let view = space.view();
    if is_being_changed(&view, observation) || !is_news(&view, &method, observation, &observed) {
        return Ok(());
    }
    let now = space.moment().now;
    let evidence =
        readback::draft(&view, &method, &observed, &observation.target, None, Some(&observation.obligation_id), &now)?;
    let Body::Evidence(body) = evidence.body() else {
        return Ok(());
    };
    let id = Id::from(&body.evidence_id);
    let reference = ArtifactRef { id: id.as_str().into(), digest: evidence.content_digest() };
    if !hand_in(space, evidence).await? {
        return Ok(());
    }
    match &observation.event {
        Some(event) => announce(space, event, reference).await,
        None => Ok(()),
    }
}

/// Whether work on the obligation has asked for this look, where it is one on demand.
fn is_needed(view: &View, observation: &Observation) -> bool {
    let Some(subject) = &observation.on_need else {
        return true;
    };
    let own =
        |result: &&OnRecord<WorkResult>| result.payload.envelope().obligation_ids.contains(&observation.obligation_id);
    let mut open = view.results.values().filter(own).flat_map(|result| &result.body.unresolved);
    open.any(|open| open.subject == *subject && open.need == Need::Evidence)
}

fn is_being_changed(view: &View, observation: &Observation) -> bool {
    let mut unsettled = view.unsettled.values().filter_map(|attempt_id| view.attempts.get(attempt_id));
    unsettled.any(|attempt| attempt.action.target == observation.target)
}

fn method(view: &View, observation: &Observation) -> Option<ReadbackMethod> {
    let accepted = view.state.item(ItemKind::ReadbackMethod, &Id::from(&observation.method))?;
    if let Item::ReadbackMethod(method) = &accepted.item { Some(method.clone()) } else { None }
}

/// Whether the target shows something else than it did. What cannot be looked at is no news.
fn is_news(view: &View, method: &ReadbackMethod, observation: &Observation, observed: &Observed) -> bool {
    let Observed::Seen { observation: seen, target_version, .. } = observed else {
        return false;
    };
    let stream = readback::observation_stream(method, &observation.target);
    let newest = view.observed.get(&stream).and_then(|(_, id)| view.evidence.get(id));
    newest.is_none_or(|newest| {
        newest.body.observation != *seen || newest.body.target_binding.target_version != *target_version
    })
}

/// Submits a payload of the observer; false where another observation was quicker.
async fn hand_in(space: &Running, payload: Payload) -> Result<bool, Error> {
    let submission = space.payload(payload, None)?;
    match space.submit(Input::Payload(submission)).await? {
        Reply::Recorded(_) => Ok(true),
        Reply::Refused(denials) => {
            let told = |code: RefusalCode| matches!(code, RefusalCode::Duplicate | RefusalCode::KeyConflict);
            match denials.iter().find(|denial| !told(denial.code)) {
                None => Ok(false),
                Some(denial) => Err(Error::World(format!("{}: {}", denial.code.as_str(), denial.reason))),
            }
        }
    }
}

async fn announce(space: &Running, declared: &ObservedEvent, evidence: ArtifactRef) -> Result<(), Error> {
    let (view, now) = (space.view(), space.moment().now);
    let intake = services::intake_disclosure(declared.source_id.as_str());
    let Some(disclosure) = view.disclosure(&intake).cloned() else {
        return Err(Error::World(format!("no source is called `{}`", declared.source_id)));
    };
    let event_id = closer_protocol::derived_id("event", evidence.id.as_str());
    let event = Event {
        event_id: EventId::new(event_id.as_str()),
        source: SourceRef { source_id: declared.source_id.clone() },
        observed_at: now.clone(),
        received_at: now.clone(),
        entity_ref: declared.entity_ref.clone(),
        change_kind: declared.change_kind.clone(),
        evidence_refs: vec![evidence],
        deduplication_key: Key::new(event_id.as_str()),
        certainty: Certainty::Observed,
        extensions: None,
    };
    let lineage = Lineage {
        parents: Vec::new(),
        obligation_ids: Vec::new(),
        episode_id: None,
        causation_event_id: None,
        budget_ref: None,
    };
    let id = PayloadId::new(closer_protocol::derived_id("pl", &event_id));
    let producer = services::actor_ref(ProducerRole::Observer);
    let payload = services::write(&view, id, producer, lineage, disclosure, event, &now)?;
    hand_in(space, payload).await.map(|_| ())
}
