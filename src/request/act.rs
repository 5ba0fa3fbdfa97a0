//! What comes from outside: events, and payloads written elsewhere.

use super::{Answer, EventDraft, change};
use crate::error::Error;
use crate::space::Space;
use closer_contracts::envelope::{Body, Payload};
use closer_contracts::event::{Certainty, Event};
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, EventId, Key, KeyId, PayloadId, Text};
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole, SourceRef};
use closer_contracts::refusal::Denial;
use closer_protocol::services::{self, Lineage};
use closer_protocol::{Input, Reply};
use serde_json::json;

/// Announces a change as one of the source's emitters.
pub(super) async fn send(space: &dyn Space, identity: &ActorId, draft: EventDraft) -> Result<Answer, Error> {
    let payload = match written(space, identity, draft) {
        Ok(payload) => payload,
        Err(answer) => return Ok(answer),
    };
    let reply = change::submit(space, payload).await?;
    Ok(Answer::replied(&reply, "recorded"))
}

/// The payload that would announce a change, disclosure receipt and digest filled in, for a producer who signs elsewhere.
pub(super) fn draft(space: &dyn Space, identity: &ActorId, draft: EventDraft) -> Result<Answer, Error> {
    let payload = match written(space, identity, draft) {
        Ok(payload) => payload,
        Err(answer) => return Ok(answer),
    };
    let told: serde_json::Value = serde_json::from_slice(payload.bytes())
        .map_err(|error| Error::Runtime(format!("the payload cannot be read again: {error}")))?;
    let text = "nothing is recorded; sign it with `keys sign` and hand it in with `event send --file`".to_owned();
    Ok(Answer::done(json!({ "payload": told }), vec![text]))
}

fn written(space: &dyn Space, identity: &ActorId, draft: EventDraft) -> Result<Payload, Answer> {
    let view = space.view();
    let now = space.moment().now;
    let event_id = EventId::new(space.fresh("event"));
    let mut cited = Vec::new();
    for id in &draft.evidence {
        let Some(evidence) = view.evidence.get(id) else {
            return Err(Answer::not_found("evidence", id.as_str()));
        };
        cited.push(ArtifactRef { id: id.as_str().into(), digest: evidence.payload.content_digest() });
    }
    let intake = services::intake_disclosure(draft.source_id.as_str());
    let Some(disclosure) = view.disclosure(&intake).cloned() else {
        return Err(Answer::not_found("source", draft.source_id.as_str()));
    };
    let event = Event {
        deduplication_key: draft.deduplication_key.unwrap_or_else(|| Key::from(event_id.as_str())),
        event_id,
        source: SourceRef { source_id: draft.source_id },
        observed_at: now.clone(),
        received_at: now.clone(),
        entity_ref: draft.entity_ref,
        change_kind: draft.change_kind,
        evidence_refs: cited,
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
    let producer = ActorRef { actor_id: identity.clone(), role: ProducerRole::Observer };
    let id = PayloadId::new(space.fresh("pl"));
    services::write(&view, id, producer, lineage, disclosure, event, &now)
        .map_err(|fault| Answer::refused(&[fault.into()]))
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
