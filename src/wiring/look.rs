//! Looking at declared targets again and again. What changed is handed in as evidence, and as an event where one is
//! declared; what it means is decided elsewhere.
//!
//! A target has one looker, however many observations name it: what it sees is one item of evidence for all of them, so
//! that no two looks race for the same number and no change is announced to one obligation alone.

use crate::deployment::{Observation, ObservedEvent};
use crate::error::Error;
use crate::space::{Running, Space};
use closer_contracts::envelope::{Body, Payload};
use closer_contracts::event::{Certainty, Event};
use closer_contracts::evidence::Evidence;
use closer_contracts::id::{EventId, EvidenceId, Id, Key, ObligationId, PayloadId, ReadbackMethodId, Text};
use closer_contracts::item::{Item, ItemKind, ReadbackMethod};
use closer_contracts::refs::{ArtifactRef, ProducerRole, SourceRef, Target, TypedValue};
use closer_contracts::refusal::RefusalCode;
use closer_contracts::work::TargetVersion;
use closer_protocol::port::{Observed, Observer, ReadbackOrder};
use closer_protocol::services::{self, Lineage};
use closer_protocol::view::OnRecord;
use closer_protocol::{Input, View, readback};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How often each target was looked at, by looker.
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

/// All observations of one target by one method, in the order they are declared in; there is at least one.
#[derive(Debug)]
struct Looker {
    method: ReadbackMethodId,
    target: Target,
    every: Duration,
    /// The obligations that wait for what is seen.
    obligations: BTreeSet<ObligationId>,
    /// What a change is announced as, each once.
    events: Vec<ObservedEvent>,
    /// What was seen last and refused, and the events that were tried: neither is offered a second time.
    refused: Option<(TypedValue, TargetVersion)>,
    tried: BTreeSet<EventId>,
}

/// One looker for each target and method; it looks as often as the most impatient observation asks.
fn lookers(observations: &[Observation]) -> Vec<Looker> {
    let mut lookers: Vec<Looker> = Vec::new();
    for observation in observations {
        let same = |looker: &Looker| looker.method == observation.method && looker.target == observation.target;
        let index = lookers.iter().position(same).unwrap_or_else(|| {
            lookers.push(Looker {
                method: observation.method.clone(),
                target: observation.target.clone(),
                every: Duration::MAX,
                obligations: BTreeSet::new(),
                events: Vec::new(),
                refused: None,
                tried: BTreeSet::new(),
            });
            lookers.len().saturating_sub(1)
        });
        let Some(looker) = lookers.get_mut(index) else { continue };
        looker.every = looker.every.min(Duration::from_millis(observation.every_ms));
        looker.obligations.insert(observation.obligation_id.clone());
        let event = observation.event.clone().filter(|event| !looker.events.contains(event));
        looker.events.extend(event);
    }
    lookers
}

/// Begins to look.
pub(super) fn start(
    tasks: &mut JoinSet<()>,
    space: &Arc<Running>,
    observer: &Arc<dyn Observer>,
    observations: &[Observation],
) -> watch::Receiver<Rounds> {
    let lookers = lookers(observations);
    let (rounds, told) = watch::channel(Rounds(vec![0; lookers.len()]));
    let rounds = Arc::new(rounds);
    for (index, mut looker) in lookers.into_iter().enumerate() {
        let (space, observer, rounds) = (Arc::clone(space), Arc::clone(observer), Arc::clone(&rounds));
        tasks.spawn(async move {
            loop {
                if let Err(error) = looker.look(&space, observer.as_ref()).await {
                    tracing::warn!(%error, address = %looker.target.address, "a look could not be recorded");
                }
                rounds.send_modify(|rounds| {
                    if let Some(round) = rounds.0.get_mut(index) {
                        *round = round.saturating_add(1);
                    }
                });
                tokio::time::sleep(looker.every).await;
            }
        });
    }
    told
}

impl Looker {
    /// Looks once, and hands in what changed. While an attempt on the target is not settled, its readback has the word.
    async fn look(&mut self, space: &Running, observer: &dyn Observer) -> Result<(), Error> {
        let view = space.view();
        if self.is_being_changed(&view) {
            return Ok(());
        }
        let Some(method) = self.registered(&view) else {
            return self.unseen(space, "no such readback method is registered").await;
        };
        let order = ReadbackOrder {
            method: Arc::new(method.clone()),
            target: self.target.clone(),
            action_id: None,
            attempt_id: None,
        };
        let observed = observer.observe(&order).await;
        let view = space.view();
        if self.is_being_changed(&view) {
            return Ok(());
        }
        let shown = match &observed {
            Observed::Unavailable { reason, .. } => return self.unseen(space, reason.as_str()).await,
            Observed::Seen { observation, target_version, .. } => (observation.clone(), target_version.clone()),
        };
        match self.known(&view, &method, &shown) {
            // What a readback has shown is told by what became of its attempt.
            Some(newest) if newest.body.readback.is_some() => self.seen_again(space, &view).await,
            Some(newest) => {
                self.seen_again(space, &view).await?;
                let reference = reference(&newest.body.evidence_id, &newest.payload);
                self.announce(space, &view, &reference).await
            }
            None if self.refused.as_ref() == Some(&shown) => Ok(()),
            None => self.tell(space, &view, &method, &observed, shown).await,
        }
    }

    /// The newest observation, where it shows this very thing to everybody who waits for it.
    fn known<'a>(
        &self,
        view: &'a View,
        method: &ReadbackMethod,
        (seen, version): &(TypedValue, TargetVersion),
    ) -> Option<&'a OnRecord<Evidence>> {
        let stream = readback::observation_stream(method, &self.target);
        let newest = view.observed.get(&stream).and_then(|(_, id)| view.evidence.get(id))?;
        let same = newest.body.observation == *seen && newest.body.target_binding.target_version == *version;
        let told = &newest.payload.envelope().obligation_ids;
        (same && self.obligations.iter().all(|obligation_id| told.contains(obligation_id))).then_some(newest)
    }

    /// Hands in what was seen, for every obligation that waits for it, and announces it.
    async fn tell(
        &mut self,
        space: &Running,
        view: &View,
        method: &ReadbackMethod,
        observed: &Observed,
        shown: (TypedValue, TargetVersion),
    ) -> Result<(), Error> {
        let obligations: Vec<_> = self.obligations.iter().cloned().collect();
        let now = space.moment().now;
        let evidence = readback::draft(view, method, observed, &self.target, None, &obligations, &now)?;
        let Body::Evidence(body) = evidence.body() else {
            return Ok(());
        };
        let reference = reference(&body.evidence_id, &evidence);
        match hand_in(space, evidence).await? {
            Handed::Recorded => self.announce(space, view, &reference).await,
            Handed::Known => Ok(()),
            Handed::Refused(why) => {
                self.refused = Some(shown);
                Err(why)
            }
        }
    }

    /// Announces an observation by every declared event that is not on record: also one that a crash came before.
    async fn announce(&mut self, space: &Running, view: &View, evidence: &ArtifactRef) -> Result<(), Error> {
        for (number, declared) in self.events.iter().enumerate() {
            let prefix = if number == 0 { "event".to_owned() } else { format!("event.{number}") };
            let event_id = EventId::new(closer_protocol::derived_id(&prefix, evidence.id.as_str()));
            if view.events.contains_key(&event_id) || self.tried.contains(&event_id) {
                continue;
            }
            let handed = announce(space, declared, evidence, event_id.clone()).await?;
            self.tried.insert(event_id);
            if let Handed::Refused(why) = handed {
                return Err(why);
            }
        }
        Ok(())
    }

    /// Has it recorded that what could not be looked at shows again what it showed before.
    async fn seen_again(&self, space: &Running, view: &View) -> Result<(), Error> {
        let unseen = |id: &&ObligationId| readback::is_unseen(view, &self.target, &self.method, id);
        for obligation_id in self.obligations.iter().filter(unseen) {
            let (target, method, obligation_id) = (self.target.clone(), self.method.clone(), obligation_id.clone());
            space.submit(Input::SeenAgain { target, method, obligation_id }).await?;
        }
        Ok(())
    }

    /// Has it recorded, once for each cause, that nobody can look.
    async fn unseen(&self, space: &Running, reason: &str) -> Result<(), Error> {
        for obligation_id in &self.obligations {
            let (target, method) = (self.target.clone(), self.method.clone());
            let (obligation_id, reason) = (obligation_id.clone(), Text::from(reason));
            space.submit(Input::Unseen { target, method, obligation_id, reason }).await?;
        }
        Ok(())
    }

    fn is_being_changed(&self, view: &View) -> bool {
        let mut unsettled = view.unsettled.values().filter_map(|attempt_id| view.attempts.get(attempt_id));
        unsettled.any(|attempt| attempt.action.target == self.target)
    }

    fn registered(&self, view: &View) -> Option<ReadbackMethod> {
        let accepted = view.state.item(ItemKind::ReadbackMethod, &Id::from(&self.method))?;
        if let Item::ReadbackMethod(method) = &accepted.item { Some(method.clone()) } else { None }
    }
}

/// What became of a payload that was handed in.
enum Handed {
    Recorded,
    /// Another observation was quicker.
    Known,
    /// It may not be recorded, however often it comes.
    Refused(Error),
}

/// Submits a payload of the observer. What may be recorded later is an error, and tried again with the next look.
async fn hand_in(space: &Running, payload: Payload) -> Result<Handed, Error> {
    let submission = space.payload(payload, None)?;
    let reply = space.submit(Input::Payload(submission)).await?;
    let Some(denial) = reply.refusal() else { return Ok(Handed::Recorded) };
    if matches!(denial.code, RefusalCode::Duplicate | RefusalCode::KeyConflict) {
        return Ok(Handed::Known);
    }
    let told = Error::World(format!("{}: {}", denial.code.as_str(), denial.reason));
    match denial.code.is_retryable() {
        true => Err(told),
        false => Ok(Handed::Refused(told)),
    }
}

fn reference(evidence_id: &EvidenceId, payload: &Payload) -> ArtifactRef {
    ArtifactRef { id: evidence_id.as_str().into(), digest: payload.content_digest() }
}

/// Announces one observation as one event.
async fn announce(
    space: &Running,
    declared: &ObservedEvent,
    evidence: &ArtifactRef,
    event_id: EventId,
) -> Result<Handed, Error> {
    let (view, now) = (space.view(), space.moment().now);
    let intake = services::intake_disclosure(declared.source_id.as_str());
    let Some(disclosure) = view.disclosure(&intake).cloned() else {
        return Err(Error::World(format!("no source is called `{}`", declared.source_id)));
    };
    let id = PayloadId::new(closer_protocol::derived_id("pl", event_id.as_str()));
    let event = Event {
        deduplication_key: Key::new(event_id.as_str()),
        event_id,
        source: SourceRef { source_id: declared.source_id.clone() },
        observed_at: now.clone(),
        received_at: now.clone(),
        entity_ref: declared.entity_ref.clone(),
        change_kind: declared.change_kind.clone(),
        evidence_refs: vec![evidence.clone()],
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
    let producer = services::actor_ref(ProducerRole::Observer);
    let payload = services::write(&view, id, producer, lineage, disclosure, event, &now)?;
    hand_in(space, payload).await
}
