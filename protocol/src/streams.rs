//! Names of streams and claims: which history a record continues, and which key it takes once.
//!
//! Authority streams and audit streams stay apart: only a change of authority or of a relied-on fact moves a stream that
//! effects guard, so work never invalidates its own permission. Spec: design §3.

use closer_contracts::action::Action;
use closer_contracts::canonical::hash_parts;
use closer_contracts::digest::Digest;
use closer_contracts::id::{
    ActionId, ActorId, AttemptId, EpisodeId, EventId, EvidenceId, HandoffId, IncidentId, Key, ObligationId,
    OperationId, PayloadId, PropositionId, SourceId,
};
use closer_contracts::item::{AffectedScope, ItemKind};
use closer_contracts::record::{ClaimKey, StreamId};
use closer_contracts::refs::Target;

/// The stream of commits.
#[must_use]
pub fn state() -> StreamId {
    StreamId::new("state")
}

/// An accepted item's authority stream, such as `grant:g-1`.
#[must_use]
pub fn item(kind: ItemKind, id: &str) -> StreamId {
    StreamId::new(format!("{kind}:{id}"))
}

/// What is said and observed about a proposition.
#[must_use]
pub fn proposition(id: &PropositionId) -> StreamId {
    StreamId::new(format!("proposition:{id}"))
}

/// What is observed of a target.
#[must_use]
pub fn target(target: &Target) -> StreamId {
    StreamId::new(format!("target:{}", hex_of(target_digest(target))))
}

/// One evidence item.
#[must_use]
pub fn evidence(id: &EvidenceId) -> StreamId {
    StreamId::new(format!("evidence:{id}"))
}

/// Who owns an obligation.
#[must_use]
pub fn owner(id: &ObligationId) -> StreamId {
    StreamId::new(format!("owner:{id}"))
}

/// The unsettled effects on one target: until they are read back nothing else touches it, by whatever operation.
#[must_use]
pub fn unsettled(target: &Target) -> StreamId {
    StreamId::new(format!("unsettled:{}", hex_of(target_digest(target))))
}

/// The attempts at one logical action.
#[must_use]
pub fn attempts(logical: Digest) -> StreamId {
    StreamId::new(format!("attempts:{}", hex_of(logical)))
}

/// Audit: what happened in an episode.
#[must_use]
pub fn episode(id: &EpisodeId) -> StreamId {
    StreamId::new(format!("episode:{id}"))
}

/// Audit: everything recorded for an obligation.
#[must_use]
pub fn history(id: &ObligationId) -> StreamId {
    StreamId::new(format!("history:{id}"))
}

/// Audit: events of a source.
#[must_use]
pub fn source_events(id: &SourceId) -> StreamId {
    StreamId::new(format!("events:{id}"))
}

/// Audit: refusals.
#[must_use]
pub fn refusals() -> StreamId {
    StreamId::new("refusals")
}

/// Audit: movements of the budget ledger.
#[must_use]
pub fn ledger() -> StreamId {
    StreamId::new("ledger")
}

/// Audit: human reviews.
#[must_use]
pub fn reviews() -> StreamId {
    StreamId::new("reviews")
}

/// Audit: the Bench.
#[must_use]
pub fn bench() -> StreamId {
    StreamId::new("bench")
}

/// Audit: what was released to a recipient at its request.
#[must_use]
pub fn disclosures(recipient: &ActorId) -> StreamId {
    StreamId::new(format!("disclosures:{recipient}"))
}

/// Audit: an over-disclosure and what is done about it.
#[must_use]
pub fn incident(id: &IncidentId) -> StreamId {
    StreamId::new(format!("incident:{id}"))
}

/// Restrictions and constraints that can bind the whole space.
#[must_use]
pub fn scope_space() -> StreamId {
    StreamId::new("scope:space")
}

/// The stream of the nearest enclosing exact scope of a restriction (design §3): admissions guard every scope they lie in,
/// so that a restriction that does not exist yet has a head to move.
#[must_use]
pub fn scope(affected: &AffectedScope) -> StreamId {
    match affected {
        AffectedScope::Space {} => scope_space(),
        AffectedScope::Operation { operation } => StreamId::new(format!("scope:operation:{operation}")),
        AffectedScope::Target { operation, targets } if targets.is_exact() => {
            let exact = Target {
                r#type: targets.r#type.clone(),
                account: targets.account.clone(),
                address: targets.address.clone(),
            };
            match operation {
                Some(operation) => scope_target(operation, &exact),
                None => scope_space(),
            }
        }
        AffectedScope::Target { operation: Some(operation), .. } => {
            StreamId::new(format!("scope:operation:{operation}"))
        }
        AffectedScope::Target { operation: None, .. } => scope_space(),
        AffectedScope::Grant { grant_id } => StreamId::new(format!("scope:grant:{grant_id}")),
        AffectedScope::Obligation { obligation_id } => StreamId::new(format!("scope:obligation:{obligation_id}")),
    }
}

fn scope_target(operation: &OperationId, target: &Target) -> StreamId {
    StreamId::new(format!("scope:target:{operation}:{}", hex_of(target_digest(target))))
}

/// Every scope an action lies in.
#[must_use]
pub fn scopes_of(action: &Action, obligation_id: &ObligationId) -> Vec<StreamId> {
    vec![
        scope_space(),
        StreamId::new(format!("scope:operation:{}", action.operation)),
        scope_target(&action.operation, &action.target),
        StreamId::new(format!("scope:grant:{}", action.authority_ref)),
        StreamId::new(format!("scope:obligation:{obligation_id}")),
    ]
}

fn target_digest(target: &Target) -> Digest {
    hash_parts(
        "closer.target.v1",
        &[target.r#type.as_str().as_bytes(), target.account.as_str().as_bytes(), target.address.as_str().as_bytes()],
    )
}

fn hex_of(digest: Digest) -> String {
    digest.to_string().trim_start_matches("sha256:").to_owned()
}

/// A payload's id stands for its content digest (DEC-107).
#[must_use]
pub fn payload_claim(id: &PayloadId) -> ClaimKey {
    ClaimKey::new(format!("payload:{id}"))
}

/// An artifact's id stands for its digest, within its kind (Appendix B).
#[must_use]
pub fn artifact_claim(kind: &str, id: &str) -> ClaimKey {
    ClaimKey::new(format!("artifact:{kind}:{id}"))
}

/// A deduplication key stands for an event's content, per source (DEC-23).
#[must_use]
pub fn deduplication_claim(source: &SourceId, key: &Key) -> ClaimKey {
    ClaimKey::new(format!("dedup:{source}:{key}"))
}

/// A handoff's id stands for what was offered under it.
#[must_use]
pub fn handoff_claim(id: &HandoffId) -> ClaimKey {
    ClaimKey::new(format!("handoff:{id}"))
}

/// An event's id stands for its content.
#[must_use]
pub fn event_claim(id: &EventId) -> ClaimKey {
    ClaimKey::new(format!("event:{id}"))
}

/// An idempotency key stands for one logical digest, for ever (§6.4, DEC-47).
#[must_use]
pub fn key_claim(key: &Key) -> ClaimKey {
    ClaimKey::new(format!("key:{key}"))
}

/// An action's id stands for its logical digest (C7).
#[must_use]
pub fn action_claim(id: &ActionId) -> ClaimKey {
    ClaimKey::new(format!("action:{id}"))
}

/// An attempt's id is used once (§8.2).
#[must_use]
pub fn attempt_claim(id: &AttemptId) -> ClaimKey {
    ClaimKey::new(format!("attempt:{id}"))
}

/// A state version stands for its digest (Appendix B).
#[must_use]
pub fn state_claim(version: u64) -> ClaimKey {
    ClaimKey::new(format!("state:{version}"))
}
