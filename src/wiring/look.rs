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
use closer_contracts::id::{EventId, Id, Key, PayloadId, ReadbackMethodId, Text};
use closer_contracts::item::{Item, ItemKind, ReadbackMethod};
use closer_contracts::refs::{ArtifactRef, ProducerRole, SourceRef, Target};
use closer_contracts::refusal::RefusalCode;
use closer_protocol::port::{Observed, Observer, ReadbackOrder};
use closer_protocol::services::{self, Lineage};
use closer_protocol::view::OnRecord;
use closer_protocol::{Input, Reply, View, readback};
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
#[derive(Debug, Clone)]
struct Looker {
    method: ReadbackMethodId,
    target: Target,
    every: Duration,
    observations: Vec<Observation>,
}

/// One looker for each target and method; it looks as often as the most impatient observation asks.
fn lookers(observations: &[Observation]) -> Vec<Looker> {
    let mut lookers: Vec<Looker> = Vec::new();
    for observation in observations {
        let same = |looker: &&mut Looker| looker.method == observation.method && looker.target == observation.target;
        let every = Duration::from_millis(observation.every_ms);
        match lookers.iter_mut().find(same) {
            Some(looker) => {
                looker.every = looker.every.min(every);
                looker.observations.push(observation.clone());
            }
            None => lookers.push(Looker {
                method: observation.method.clone(),
                target: observation.target.clone(),
                every,
                observations: vec![observation.clone()],
            }),
        }
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
    for (index, looker) in lookers.into_iter().enumerate() {
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
    async fn look(&self, space: &Running, observer: &dyn Observer) -> Result<(), Error> {
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
        let (seen, version) = match &observed {
            Observed::Unavailable { reason, .. } => return self.unseen(space, reason.as_str()).await,
            Observed::Seen { observation, target_version, .. } => (observation, target_version),
        };
        let newest = readback::observation_stream(&method, &self.target);
        let newest =
            view.observed.get(&newest).and_then(|(_, id)| view.evidence.get(id)).filter(|newest| {
                newest.body.observation == *seen && newest.body.target_binding.target_version == *version
            });
        let is_news = |observation: &&Observation| {
            let told = |newest: &OnRecord<Evidence>| {
                newest.payload.envelope().obligation_ids.contains(&observation.obligation_id)
            };
            !newest.is_some_and(told)
        };
        let news: Vec<&Observation> = self.observations.iter().filter(is_news).collect();
        match news.is_empty() {
            true => Ok(()),
            false => self.tell(space, &view, &method, &observed, &news).await,
        }
    }

    /// Hands in what was seen, for every observation of the target; announces it where it is news.
    async fn tell(
        &self,
        space: &Running,
        view: &View,
        method: &ReadbackMethod,
        observed: &Observed,
        news: &[&Observation],
    ) -> Result<(), Error> {
        let obligations: BTreeSet<_> =
            self.observations.iter().map(|observation| observation.obligation_id.clone()).collect();
        let obligations: Vec<_> = obligations.into_iter().collect();
        let now = space.moment().now;
        let evidence = readback::draft(view, method, observed, &self.target, None, &obligations, &now)?;
        let Body::Evidence(body) = evidence.body() else {
            return Ok(());
        };
        let id = Id::from(&body.evidence_id);
        let reference = ArtifactRef { id: id.as_str().into(), digest: evidence.content_digest() };
        if !hand_in(space, evidence).await? {
            return Ok(());
        }
        let mut announced: Vec<&ObservedEvent> = Vec::new();
        for event in news.iter().filter_map(|observation| observation.event.as_ref()) {
            if !announced.contains(&event) {
                announce(space, event, reference.clone(), announced.len()).await?;
                announced.push(event);
            }
        }
        Ok(())
    }

    /// Has it recorded, once, that nobody can look.
    async fn unseen(&self, space: &Running, reason: &str) -> Result<(), Error> {
        for observation in &self.observations {
            let (target, method) = (self.target.clone(), self.method.clone());
            let (obligation_id, reason) = (observation.obligation_id.clone(), Text::from(reason));
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

/// Announces a change; `number` tells the events of one observation apart.
async fn announce(
    space: &Running,
    declared: &ObservedEvent,
    evidence: ArtifactRef,
    number: usize,
) -> Result<(), Error> {
    let (view, now) = (space.view(), space.moment().now);
    let intake = services::intake_disclosure(declared.source_id.as_str());
    let Some(disclosure) = view.disclosure(&intake).cloned() else {
        return Err(Error::World(format!("no source is called `{}`", declared.source_id)));
    };
    let prefix = if number == 0 { "event".to_owned() } else { format!("event.{number}") };
    let event_id = closer_protocol::derived_id(&prefix, evidence.id.as_str());
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
