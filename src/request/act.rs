//! What comes from outside: events, and payloads written elsewhere.

use super::{Answer, EventDraft, change};
use crate::error::Error;
use crate::space::Space;
use closer_contracts::Digest;
use closer_contracts::envelope::{Body, Payload};
use closer_contracts::event::{Certainty, Event, Rationale};
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, EventId, Key, KeyId, PayloadId, Text};
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole, SourceRef};
use closer_contracts::refusal::Denial;
use closer_protocol::services::{self, Lineage};
use closer_protocol::{Input, Reply, urgent};
use serde_json::json;

/// The event that a draft announces, or why there is none.
fn event(space: &dyn Space, draft: EventDraft) -> Result<Event, Box<Answer>> {
    let (view, now) = (space.view(), space.moment().now);
    // A repeat under its key is the same event: it has the same id, and was observed when it was observed first.
    let event_id = draft.deduplication_key.as_ref().map_or_else(
        || EventId::new(space.fresh("event")),
        |key| {
            let named = format!("{}\n{key}", draft.source_id);
            EventId::new(closer_protocol::derived_id("event", &Digest::of(named.as_bytes()).to_string()))
        },
    );
    let before = view.events.get(&event_id).map(|known| known.body.observed_at.clone());
    let mut cited = Vec::new();
    for id in &draft.evidence {
        let Some(evidence) = view.evidence.get(id) else {
            return Err(Answer::not_found("evidence", id.as_str()).into());
        };
        cited.push(ArtifactRef { id: id.as_str().into(), digest: evidence.payload.content_digest() });
    }
    Ok(Event {
        deduplication_key: draft.deduplication_key.unwrap_or_else(|| Key::from(event_id.as_str())),
        event_id,
        source: SourceRef { source_id: draft.source_id },
        observed_at: draft.observed_at.or(before).unwrap_or_else(|| now.clone()),
        received_at: now,
        entity_ref: draft.entity_ref,
        change_kind: draft.change_kind,
        evidence_refs: cited,
        certainty: Certainty::Observed,
        extensions: draft.extensions,
    })
}

/// What an event would touch if it were announced now, by the same matching; nothing is recorded.
pub(super) fn test(space: &dyn Space, draft: EventDraft) -> Answer {
    let (view, at) = (space.view(), space.moment());
    let event = match event(space, draft) {
        Ok(event) => event,
        Err(answer) => return *answer,
    };
    let source = view.state.source(&event.source.source_id);
    let declared = source.is_some_and(|source| source.change_kinds.contains(&event.change_kind));
    let reference =
        ArtifactRef { id: event.event_id.as_str().into(), digest: Digest::of(event.event_id.as_str().as_bytes()) };
    let receipt = closer_protocol::matching::match_event(&event, reference, None, &view, &at);
    let restricts = urgent::restrictive_event(&view, &event).map(|listed| listed.action.affected_scope());
    let known = view.events.contains_key(&event.event_id);
    let mut text = vec![format!("`{}` of `{}` from `{}`", event.change_kind, event.entity_ref, event.source.source_id)];
    if !declared {
        text.push(
            "the source is not registered, or has not declared this kind of change: it would be refused".to_owned(),
        );
    }
    if known {
        text.push("it was sent before: it would be a duplicate".to_owned());
    }
    text.extend(restricts.as_ref().map(|scope| format!("it would restrict at once: {}", super::words::scope(scope))));
    let would: Vec<&Rationale> = receipt.rationale.iter().collect();
    text.extend(would.iter().map(|rationale| {
        format!("{}: {}: {}", rationale.obligation_id, super::words::evaluation(rationale.result), rationale.reason)
    }));
    if would.is_empty() {
        text.push("it would concern no obligation".to_owned());
    }
    let data = json!({
        "event": event, "declared": declared, "duplicate": known, "restricts": restricts,
        "matched_obligation_ids": receipt.matched_obligation_ids, "outcome": receipt.outcome, "rationale": receipt.rationale,
    });
    Answer::done(data, text)
}

/// Announces a change as one of the source's emitters.
pub(super) async fn send(space: &dyn Space, identity: &ActorId, draft: EventDraft) -> Result<Answer, Error> {
    let payload = match written(space, identity, draft) {
        Ok(payload) => payload,
        Err(answer) => return Ok(*answer),
    };
    let reply = change::submit(space, payload).await?;
    Ok(Answer::replied(&reply, "recorded"))
}

/// The payload that would announce a change, disclosure receipt and digest filled in, for a producer who signs elsewhere.
pub(super) fn draft(space: &dyn Space, identity: &ActorId, draft: EventDraft) -> Result<Answer, Error> {
    let payload = match written(space, identity, draft) {
        Ok(payload) => payload,
        Err(answer) => return Ok(*answer),
    };
    let told: serde_json::Value = serde_json::from_slice(payload.bytes())
        .map_err(|error| Error::Runtime(format!("the payload cannot be read again: {error}")))?;
    let text = "nothing is recorded; sign it with `keys sign` and hand it in with `event send --file`".to_owned();
    Ok(Answer::done(json!({ "payload": told }), vec![text]))
}

fn written(space: &dyn Space, identity: &ActorId, draft: EventDraft) -> Result<Payload, Box<Answer>> {
    let view = space.view();
    let now = space.moment().now;
    let event = event(space, draft)?;
    let intake = services::intake_disclosure(event.source.source_id.as_str());
    let Some(disclosure) = view.disclosure(&intake).cloned() else {
        return Err(Answer::not_found("source", event.source.source_id.as_str()).into());
    };
    let lineage = Lineage {
        parents: Vec::new(),
        obligation_ids: Vec::new(),
        episode_id: None,
        causation_event_id: None,
        budget_ref: None,
    };
    let producer = ActorRef { actor_id: identity.clone(), role: ProducerRole::Observer };
    let id = PayloadId::new(space.fresh("pl"));
    services::write(&view, id, producer, lineage, disclosure, event, &now)
        .map_err(|fault| Answer::refused(&[fault.into()]).into())
}

/// Hands in a payload as it came. What cannot be read or authenticated is recorded as such, or counted.
pub(super) async fn hand_in(space: &dyn Space, text: &str, signature: Option<(KeyId, Key)>) -> Result<Answer, Error> {
    let payload = match Payload::read(text.as_bytes()) {
        Ok(payload) => payload,
        Err(fault) => return unreadable(space, "bytes", fault).await,
    };
    let producer = payload.envelope().producer.actor_id.clone();
    if let (None, Some(answer)) = (&signature, super::not_to_be_spoken_for(&space.view(), &producer)) {
        return Ok(answer);
    }
    match space.payload(payload, signature.as_ref()) {
        Err(fault) => unreadable(space, producer.as_str(), fault).await,
        Ok(submission) => {
            let reply = space.submit(Input::Payload(submission)).await?;
            Ok(Answer::replied(&reply, "recorded"))
        }
    }
}

/// The event that a payload's text holds, where it holds one.
pub(super) fn event_of(text: &str) -> Option<std::sync::Arc<Event>> {
    let payload = Payload::read(text.as_bytes()).ok()?;
    if let Body::Event(event) = payload.body() { Some(event.clone()) } else { None }
}

async fn unreadable(space: &dyn Space, subject: &str, fault: Fault) -> Result<Answer, Error> {
    let denial = Denial::from(fault);
    let reply: Reply = space.submit(Input::Unreadable { subject: Text::from(subject), denial }).await?;
    Ok(Answer::replied(&reply, "recorded"))
}

/// Who a payload says it is from, where it can be read.
pub(crate) fn producer_of(text: &str) -> Option<ActorId> {
    Payload::read(text.as_bytes()).ok().map(|payload| payload.envelope().producer.actor_id.clone())
}
