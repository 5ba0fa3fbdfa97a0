//! The runtime's own services: one identity per producer role, and how they write a payload.

use crate::view::View;
use closer_contracts::Digest;
use closer_contracts::envelope::{Body, DisclosureRef, Envelope, PROTOCOL_VERSION, Payload};
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, BudgetId, EpisodeId, EventId, Key, ObligationId, PayloadId};
use closer_contracts::item::{Identity, IdentityKind, Mechanism, Standing};
use closer_contracts::refs::{ActorRef, ProducerRole};
use closer_contracts::time::Timestamp;

/// The roles that the runtime fills itself.
pub const ROLES: &[ProducerRole] = &[
    ProducerRole::Matcher,
    ProducerRole::Planner,
    ProducerRole::Router,
    ProducerRole::Coordinator,
    ProducerRole::Assessor,
    ProducerRole::Distiller,
    ProducerRole::Scheduler,
    ProducerRole::Ownership,
    ProducerRole::Monitor,
    ProducerRole::Semantic,
    ProducerRole::Observer,
];

/// The standing disclosure under which services talk to each other.
pub const INTERNAL_DISCLOSURE: &str = "disclosure.internal";

/// The identity of the service in a role.
#[must_use]
pub fn actor(role: ProducerRole) -> ActorId {
    ActorId::new(format!("closer.{role}"))
}

/// The reference to the service in a role.
#[must_use]
pub fn actor_ref(role: ProducerRole) -> ActorRef {
    ActorRef { actor_id: actor(role), role }
}

/// The service identities that a space is founded with, appointed by its user.
#[must_use]
pub fn identities(user: &ActorId) -> Vec<Identity> {
    ROLES
        .iter()
        .map(|&role| Identity {
            actor_id: actor(role),
            kind: IdentityKind::Service,
            roles: vec![role],
            capabilities: Vec::new(),
            mechanisms: vec![Mechanism::Session],
            keys: Vec::new(),
            appointed_by: user.clone(),
            revoked_at: None,
            standing: Standing::Current,
            worst_case: None,
        })
        .collect()
}

/// The standing disclosure under which a source's events reach the matcher (DEC-19).
#[must_use]
pub fn intake_disclosure(source: &str) -> String {
    crate::derived_id("disclosure.intake", source)
}

/// The lineage of a payload: what it belongs to and what it follows from.
#[derive(Debug, Clone)]
pub struct Lineage {
    /// The payloads it follows from.
    pub parents: Vec<PayloadId>,
    /// The obligations it concerns.
    pub obligation_ids: Vec<ObligationId>,
    /// The episode it belongs to.
    pub episode_id: Option<EpisodeId>,
    /// The event that caused it.
    pub causation_event_id: Option<EventId>,
    /// The budget it draws on.
    pub budget_ref: Option<BudgetId>,
}

/// Writes a service's payload on the current state.
///
/// # Errors
/// The codes of the body's contract.
pub fn write(
    view: &View,
    payload_id: PayloadId,
    producer: ActorRef,
    lineage: Lineage,
    disclosure: DisclosureRef,
    body: impl Into<Body>,
    now: &Timestamp,
) -> Result<Payload, Fault> {
    let body = body.into();
    Payload::seal(Envelope {
        protocol_version: Key::from(PROTOCOL_VERSION),
        payload_id,
        r#type: body.payload_type(),
        created_at: now.clone(),
        producer,
        parents: lineage.parents,
        obligation_ids: lineage.obligation_ids,
        episode_id: lineage.episode_id,
        semantic_basis: Some(view.state.reference()),
        disclosure,
        budget_ref: lineage.budget_ref,
        causation_event_id: lineage.causation_event_id,
        body,
        content_digest: Digest::of(b""),
        extensions: None,
    })
}

/// The internal disclosure, or a refusal that the space has none.
///
/// # Errors
/// `disclosure_denied`.
pub fn internal_disclosure(view: &View) -> Result<DisclosureRef, Fault> {
    view.disclosure(INTERNAL_DISCLOSURE).cloned().ok_or_else(|| {
        Fault::new(closer_contracts::RefusalCode::DisclosureDenied, "the space has no internal disclosure receipt")
    })
}
