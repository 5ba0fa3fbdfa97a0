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
use closer_contracts::id::{
    ActorId, AdjudicationId, DeclarationId, DeltaId, GoalId, Key, KeyId, ObligationId, PayloadId, Text,
};
use closer_contracts::item::ItemKind;
use closer_contracts::refs::{ActorRef, ArtifactRef, EvidenceSnapshot, ProducerRole, Scope, SubjectType, TypedRef};
use closer_protocol::services::{self, Lineage};
use closer_protocol::{Input, Reply, View, adjudicate, entry};
use serde_json::json;

/// Commits changes under a declaration of `identity`; says `what` where it is done.
pub(super) async fn commit(
    space: &dyn Space,
    identity: &ActorId,
    what: &str,
    obligation_ids: Vec<ObligationId>,
    changes: Vec<Change>,
) -> Result<Answer, Error> {
    let declaration = declaration(space, identity, what, &changes)?;
    let reference = reference(&declaration)?;
    let reply = bench::submit(space, declaration, identity, ProducerRole::User).await?;
    match reply.refusal() {
        Some(_) => Ok(Answer::replied(&reply, what)),
        None => declared(space, what, obligation_ids, changes, reference).await,
    }
}

/// The declaration and the changes it names, for a user who signs it elsewhere.
pub(super) fn draft(space: &dyn Space, identity: &ActorId, what: &str, changes: Vec<Change>) -> Result<Answer, Error> {
    let declaration = declaration(space, identity, what, &changes)?;
    let data = json!({ "declaration": declaration, "changes": changes });
    Ok(Answer::done(data, vec!["nothing is recorded".to_owned()]))
}

/// Hands in a declaration that the user has signed, and has the changes committed that it names.
pub(super) async fn hand_in(
    space: &dyn Space,
    declaration: Declaration,
    changes: Vec<Change>,
    signature: (KeyId, Key),
) -> Result<Answer, Error> {
    let reference = reference(&declaration)?;
    let what = declaration.goal.text.to_string();
    let producer = ActorRef { actor_id: declaration.authenticated_issuer.identity.clone(), role: ProducerRole::User };
    let reply = match space.artifact(declaration.into(), producer, Some(&signature)) {
        Ok(submission) => space.submit(Input::Artifact(submission)).await?,
        Err(fault) => Reply::Refused(vec![fault.into()]),
    };
    match reply.refusal() {
        Some(_) => Ok(Answer::replied(&reply, &what)),
        None => declared(space, &what, Vec::new(), changes, reference).await,
    }
}

/// Commits the changes that a declaration on record names.
async fn declared(
    space: &dyn Space,
    what: &str,
    obligation_ids: Vec<ObligationId>,
    changes: Vec<Change>,
    declaration: ArtifactRef,
) -> Result<Answer, Error> {
    let view = space.view();
    // A change that names no obligation of its own concerns whatever is kept: a delta always says what it concerns.
    let obligation_ids = match obligation_ids.is_empty() {
        true => {
            let kept = view.state.items(ItemKind::Obligation);
            kept.map(|kept| ObligationId::new(kept.item.id().as_str())).collect()
        }
        false => obligation_ids,
    };
    let delta = delta(space, &view, changes, declaration)?;
    let (delta_id, proposal_digest) = (delta.delta_id.clone(), delta.proposal_digest);
    let proposed = write(space, &view, ProducerRole::Distiller, lineage(&obligation_ids, Vec::new()), delta.into())?;
    let (id, receipt) = (proposed.id().clone(), entry::payload_ref(&proposed));
    let reply = submit(space, proposed).await?;
    if reply.refusal().is_some() {
        return Ok(Answer::replied(&reply, what));
    }
    let endorsement = endorsement(space, &view, &delta_id, proposal_digest, receipt)?;
    let endorsed = write(space, &view, ProducerRole::Assessor, lineage(&obligation_ids, vec![id]), endorsement.into())?;
    let reply = submit(space, endorsed).await?;
    if reply.refusal().is_some() {
        return Ok(Answer::replied(&reply, what));
    }
    let reply = space.submit(Input::Commit { delta_id }).await?;
    Ok(Answer::replied(&reply, what))
}

fn lineage(obligation_ids: &[ObligationId], parents: Vec<PayloadId>) -> Lineage {
    Lineage {
        parents,
        obligation_ids: obligation_ids.to_vec(),
        episode_id: None,
        causation_event_id: None,
        budget_ref: None,
    }
}

/// A service's payload, as the service writes it.
fn write(space: &dyn Space, view: &View, role: ProducerRole, lineage: Lineage, body: Body) -> Result<Payload, Error> {
    let id = PayloadId::new(space.fresh("pl"));
    let disclosure = services::internal_disclosure(view)?;
    Ok(services::write(view, id, services::actor_ref(role), lineage, disclosure, body, &space.moment().now)?)
}

fn delta(space: &dyn Space, view: &View, changes: Vec<Change>, declaration: ArtifactRef) -> Result<Delta, Error> {
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
    };
    Ok(delta.sealed()?)
}

/// The validator's position on a delta that a declaration of the user asks for.
fn endorsement(
    space: &dyn Space,
    view: &View,
    delta_id: &DeltaId,
    proposal_digest: Digest,
    receipt: ArtifactRef,
) -> Result<Adjudication, Error> {
    Ok(Adjudication {
        adjudication_id: AdjudicationId::new(space.fresh("adj")),
        phase: Phase::SemanticCommit,
        subject: TypedRef { id: delta_id.into(), digest: proposal_digest, r#type: SubjectType::Delta },
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
        decision_rule_ref: adjudicate::decision_rule(view),
        dissent: Vec::new(),
        unresolved: Vec::new(),
        disposition: Disposition::Endorsed,
        extensions: None,
    })
}

fn reference(declaration: &Declaration) -> Result<ArtifactRef, Error> {
    Ok(ArtifactRef { id: declaration.declaration_id.as_str().into(), digest: digest_of(declaration)? })
}

fn declaration(space: &dyn Space, identity: &ActorId, what: &str, changes: &[Change]) -> Result<Declaration, Error> {
    let view = space.view();
    Ok(Declaration {
        declaration_id: DeclarationId::new(space.fresh("declaration")),
        authenticated_issuer: bench::issuer(&view, identity),
        goal: DeclaredGoal { goal_id: GoalId::new(space.fresh("goal")), text: Text::from(what) },
        scope: view.state.profile().map_or(Scope(Vec::new()), |profile| profile.scope.clone()),
        constraints: Vec::new(),
        success_criteria: vec![Text::from(what), closer_protocol::commit::instruction(changes)?],
        existing_grants: Vec::new(),
        effective_period: EffectivePeriod { from: space.moment().now, to: None },
    })
}

/// Submits a payload as its producer, by a session.
pub(super) async fn submit(space: &dyn Space, payload: Payload) -> Result<Reply, Error> {
    match space.payload(payload, None) {
        Ok(submission) => space.submit(Input::Payload(submission)).await,
        Err(fault) => Ok(Reply::Refused(vec![fault.into()])),
    }
}
