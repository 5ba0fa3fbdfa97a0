//! An event arrives: its source is verified, its repeats are recognised, it is bound to the obligations it touches.
//!
//! Spec: §1.1, C2, DEC-21, DEC-23, DEC-24.

use crate::entry::ArtifactBody;
use crate::input::{Effect, Reply};
use crate::sequence::{Deciding, record_payload};
use crate::{matching, streams, urgent};
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::digest::Digest;
use closer_contracts::event::{Event, MatchReceipt};
use closer_contracts::id::{ArtifactId, ObligationId};
use closer_contracts::item::Standing;
use closer_contracts::reentry::Evaluation;
use closer_contracts::refs::ArtifactRef;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::{Fault, Payload};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What makes two deliveries of an event the same: everything its observer says, without ids and receipt time.
#[derive(Serialize)]
struct Content<'a> {
    source: &'a closer_contracts::refs::SourceRef,
    observed_at: &'a closer_contracts::Timestamp,
    entity_ref: &'a closer_contracts::id::EntityId,
    change_kind: &'a closer_contracts::id::ChangeKindId,
    evidence_refs: &'a [closer_contracts::refs::ArtifactRef],
    certainty: closer_contracts::event::Certainty,
}

/// The digest by which repeats of an event are recognised.
///
/// # Errors
/// `schema_invalid` when the content has no canonical form.
pub fn content_digest(event: &Event) -> Result<Digest, Fault> {
    closer_contracts::canonical::digest_of(&Content {
        source: &event.source,
        observed_at: &event.observed_at,
        entity_ref: &event.entity_ref,
        change_kind: &event.change_kind,
        evidence_refs: &event.evidence_refs,
        certainty: event.certainty,
    })
}

/// Records an event and what matching it came to; a restrictive one restricts in the same append.
pub(crate) fn intake(
    deciding: &mut Deciding<'_>,
    event: &Event,
    payload: &Arc<Payload>,
    auth: &AuthRecord,
) -> Result<Reply, Fault> {
    let content = content_digest(event)?;
    if let Some(denial) = source(deciding, event, payload) {
        return deciding.refuse((&event.event_id).into(), Some(payload.content_digest()), vec![denial]);
    }
    let key = streams::deduplication_claim(&event.source.source_id, &event.deduplication_key);
    let by_key = deciding.batch.claimed(&key);
    if let Some(known) = by_key.or_else(|| deciding.batch.claimed(&streams::event_claim(&event.event_id))) {
        let repeated = branch!("event.repeat_is_equal", known == content);
        let (code, reason) = match repeated {
            true => (Code::Duplicate, "the source has sent this event before"),
            false => (Code::KeyConflict, "this deduplication key or event id stands for another event"),
        };
        let denial = Denial::new(code, CheckKind::Resolution, reason).of(&event.deduplication_key);
        let reply = deciding.refuse((&event.event_id).into(), Some(payload.content_digest()), vec![denial])?;
        urgent::on_event(deciding, event, payload, auth)?;
        return Ok(reply);
    }
    if let Some(denial) = evidence(deciding, event) {
        return deciding.refuse((&event.event_id).into(), Some(payload.content_digest()), vec![denial]);
    }
    let claims = vec![(key, content), (streams::event_claim(&event.event_id), content)];
    let own = vec![streams::source_events(&event.source.source_id)];
    let event_ref = record_payload(deciding, payload, auth, own, claims)?;
    urgent::on_event(deciding, event, payload, auth)?;
    let view = deciding.so_far()?;
    let receipt = matching::match_event(event, event_ref.clone(), Some(auth_ref(auth)?), &view, deciding.at);
    let matched = receipt.matched_obligation_ids.clone();
    let undecided = undecided(&receipt);
    let histories = matched.iter().map(streams::history).collect();
    let receipt_ref = deciding.batch.artifact(ArtifactBody::from(receipt), histories)?;
    deciding.effects.extend(matched.into_iter().map(Effect::Eligible));
    for obligation_id in undecided {
        let reason = format!("it cannot be told whether the event {} concerns it", event.event_id);
        crate::tick::leave_gap(deciding, &obligation_id, &reason)?;
    }
    deciding.fire()?;
    Ok(Reply::Recorded(vec![event_ref, receipt_ref]))
}

/// The obligations that an event may concern and that nothing of it matched: each gets its follow-up (§1.1, DEC-21).
fn undecided(receipt: &MatchReceipt) -> BTreeSet<ObligationId> {
    let unknown = receipt.rationale.iter().filter(|rationale| rationale.result == Evaluation::Unknown);
    let unmatched = unknown.filter(|rationale| !receipt.matched_obligation_ids.contains(&rationale.obligation_id));
    unmatched.map(|rationale| rationale.obligation_id.clone()).collect()
}

/// The reference to the authentication recorded beside the event.
fn auth_ref(auth: &AuthRecord) -> Result<ArtifactRef, Fault> {
    let id = ArtifactId::new(crate::derived_id("auth", auth.subject_id.as_str()));
    Ok(ArtifactRef { id, digest: closer_contracts::canonical::digest_of(auth)? })
}

/// The source is registered and current, and the producer may emit for it (§1.1).
fn source(deciding: &Deciding<'_>, event: &Event, payload: &Payload) -> Option<Denial> {
    let source =
        deciding.view.state.source(&event.source.source_id).filter(|source| source.standing == Standing::Current);
    let emits = source.is_some_and(|source| source.emitters.contains(&payload.envelope().producer.actor_id));
    if !branch!("event.source_verified", emits) {
        let reason = "the source is not registered, or the producer may not emit for it";
        return Some(Denial::new(Code::Unauthenticated, CheckKind::Authentication, reason).of(&event.source.source_id));
    }
    let declared = source.is_some_and(|source| source.change_kinds.contains(&event.change_kind));
    match branch!("event.change_kind_undeclared", !declared) {
        true => {
            let reason = "the source has not declared this kind of change";
            Some(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&event.change_kind))
        }
        false => None,
    }
}

/// Evidence that an event cites is on record, with the digest it is cited by.
fn evidence(deciding: &Deciding<'_>, event: &Event) -> Option<Denial> {
    event.evidence_refs.iter().find_map(|cited| {
        let known = deciding.view.evidence.get(&closer_contracts::id::EvidenceId::new(cited.id.as_str()));
        match known.map(|evidence| evidence.payload.content_digest() == cited.digest) {
            Some(true) => None,
            Some(false) => {
                let reason = "the cited evidence has another digest";
                Some(Denial::new(Code::DigestMismatch, CheckKind::Resolution, reason).of(&cited.id))
            }
            None => {
                let reason = "the cited evidence is not on record";
                Some(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&cited.id))
            }
        }
    })
}
