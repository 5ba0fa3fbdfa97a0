//! Changes that a person asks for by name: the declaration that carries their authority, the delta, its endorsement and
//! its commit, each submitted as the service whose part it is. Spec: §5, C10.

use super::{Answer, bench};
use crate::error::Error;
use crate::space::Space;
use closer_contracts::adjudication::{Adjudication, Disposition, Phase, RolePosition, Stance};
use closer_contracts::audit::{Declaration, DeclaredGoal, EffectivePeriod};
use closer_contracts::canonical::digest_of;
use closer_contracts::delta::{AdmissionPath, AuthorityKind, AuthorityRef, Change, Delta};
use closer_contracts::digest::Digest;
use closer_contracts::envelope::{Body, Payload};
use closer_contracts::id::{ActorId, AdjudicationId, DeclarationId, DeltaId, GoalId, ObligationId, PayloadId, Text};
use closer_contracts::refs::{ArtifactRef, EvidenceSnapshot, ProducerRole, Scope, SubjectType, TypedRef};
use closer_protocol::services::{self, Lineage};
use closer_protocol::{Input, Reply, adjudicate, entry};

/// Commits changes under a declaration of `identity`; says `what` where it is done.
pub(super) async fn commit(
    space: &dyn Space,
    identity: &ActorId,
    what: &str,
    obligation_ids: Vec<ObligationId>,
    changes: Vec<Change>,
) -> Result<Answer, Error> {
    let (reply, declaration) = declare(space, identity, what).await?;
    if reply.refusal().is_some() {
        return Ok(Answer::replied(&reply, what));
    }
    let (now, view) = (space.moment().now, space.view());
    let lineage = |parents| Lineage {
        parents,
        obligation_ids: obligation_ids.clone(),
        episode_id: None,
        causation_event_id: None,
        budget_ref: None,
    };
    let disclosure = services::internal_disclosure(&view)?;
    let delta = Delta {
        delta_id: DeltaId::new(space.fresh("delta")),
        parent_state: view.state.reference(),
        changes,
        support_relations: Vec::new(),
        dependency_updates: Vec::new(),
        required_authority_refs: vec![AuthorityRef { kind: AuthorityKind::Declaration, reference: declaration }],
        admission_path: AdmissionPath::Ordinary,
        proposal_digest: Digest::of(b""),
        extensions: None,
    }
    .sealed()?;
    let (delta_id, proposal_digest) = (delta.delta_id.clone(), delta.proposal_digest);
    let producer = services::actor_ref(ProducerRole::Distiller);
    let id = PayloadId::new(space.fresh("pl"));
    let proposed = services::write(&view, id, producer, lineage(Vec::new()), disclosure.clone(), delta, &now)?;
    let receipt = entry::payload_ref(&proposed);
    let reply = submit(space, proposed.clone()).await?;
    if reply.refusal().is_some() {
        return Ok(Answer::replied(&reply, what));
    }
    let endorsement = Adjudication {
        adjudication_id: AdjudicationId::new(space.fresh("adj")),
        phase: Phase::SemanticCommit,
        subject: TypedRef { id: (&delta_id).into(), digest: proposal_digest, r#type: SubjectType::Delta },
        evidence_snapshot: EvidenceSnapshot::of(Vec::new())?,
        readback_refs: Vec::new(),
        governing_basis: view.state.reference(),
        role_positions: vec![RolePosition {
            actor: services::actor(ProducerRole::Assessor),
            role: adjudicate::validator_role(),
            position: Stance::For,
            reason: Text::from("a declaration of the user asks for exactly these changes"),
            receipt,
        }],
        decision_rule_ref: adjudicate::decision_rule(&view),
        dissent: Vec::new(),
        unresolved: Vec::new(),
        disposition: Disposition::Endorsed,
        extensions: None,
    };
    let producer = services::actor_ref(ProducerRole::Assessor);
    let id = PayloadId::new(space.fresh("pl"));
    let parents = vec![proposed.id().clone()];
    let endorsed = services::write(&view, id, producer, lineage(parents), disclosure, Body::from(endorsement), &now)?;
    let reply = submit(space, endorsed).await?;
    if reply.refusal().is_some() {
        return Ok(Answer::replied(&reply, what));
    }
    let reply = space.submit(Input::Commit { delta_id }).await?;
    Ok(Answer::replied(&reply, what))
}

async fn declare(space: &dyn Space, identity: &ActorId, what: &str) -> Result<(Reply, ArtifactRef), Error> {
    let view = space.view();
    let declaration = Declaration {
        declaration_id: DeclarationId::new(space.fresh("declaration")),
        authenticated_issuer: bench::issuer(&view, identity),
        goal: DeclaredGoal { goal_id: GoalId::new(space.fresh("goal")), text: Text::from(what) },
        scope: view.state.profile().map_or(Scope(Vec::new()), |profile| profile.scope.clone()),
        constraints: Vec::new(),
        success_criteria: vec![Text::from(what)],
        existing_grants: Vec::new(),
        effective_period: EffectivePeriod { from: space.moment().now, to: None },
    };
    let reference = ArtifactRef { id: declaration.declaration_id.as_str().into(), digest: digest_of(&declaration)? };
    let reply = bench::submit(space, declaration, identity, ProducerRole::User).await?;
    Ok((reply, reference))
}

/// Submits a payload as its producer, by a session.
pub(super) async fn submit(space: &dyn Space, payload: Payload) -> Result<Reply, Error> {
    match space.payload(payload, None) {
        Ok(submission) => space.submit(Input::Payload(submission)).await,
        Err(fault) => Ok(Reply::Refused(vec![fault.into()])),
    }
}
