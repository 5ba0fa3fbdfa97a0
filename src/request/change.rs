//! Changes that a person asks for by name: the declaration that carries their authority, the delta, its endorsement and
//! its commit, each submitted as the service whose part it is. Spec: §5, C10.

use super::{Answer, ChangeRequest, bench};
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
use closer_protocol::people::{self, Awaited};
use closer_protocol::services::{self, Lineage};
use closer_protocol::{Input, Reply, View, adjudicate, entry};
use serde_json::{Value, json};

/// Answers what is asked about changes.
pub(super) async fn answer(space: &dyn Space, identity: &ActorId, asked: ChangeRequest) -> Result<Answer, Error> {
    match asked {
        ChangeRequest::Send { declaration, changes, key_id, signature } => {
            hand_in(space, *declaration, changes, (key_id, signature)).await
        }
        ChangeRequest::List => Ok(list(space)),
        ChangeRequest::Join { delta_id } => join(space, identity, &delta_id).await,
        ChangeRequest::JoinDraft { person, delta_id } => join_draft(space, &person, &delta_id),
    }
}

/// Commits changes under a declaration of `identity`; says `what` where it is done. Where the profile has several declare
/// it, the first has it proposed and the last it takes has it committed; whoever asks for exactly the same joins.
pub(super) async fn commit(
    space: &dyn Space,
    identity: &ActorId,
    what: &str,
    obligation_ids: Vec<ObligationId>,
    changes: Vec<Change>,
) -> Result<Answer, Error> {
    let view = space.view();
    // Whoever asks again adds nothing: each of the group counts once.
    let known = people::awaited(&view, &changes, &space.moment().now).filter(|it| it.declared.contains(identity));
    if let (Some(awaited), Some(delta)) = (known, waiting_as(&view, space, &changes)) {
        return Ok(waits(space, &delta, &awaited, json!([]), "declared already; nothing is recorded"));
    }
    let declaration = declaration(space, identity, what, &changes)?;
    let reference = reference(&declaration)?;
    let reply = bench::submit(space, declaration, identity, ProducerRole::User).await?;
    match reply.refusal() {
        Some(_) => Ok(Answer::replied(&reply, what)),
        None => declared(space, what, obligation_ids, changes, reference).await,
    }
}

/// What was declared and waits for others of the group to declare the same.
fn list(space: &dyn Space) -> Answer {
    let view = space.view();
    let awaiting = people::awaiting(&view, &space.moment().now);
    let (mut told, mut text) = (Vec::new(), Vec::new());
    for (delta, awaited) in awaiting {
        let what = wish(&view, delta);
        text.push(format!("{} {what}: {}", delta.delta_id, standing(&awaited)));
        text.extend(delta.changes.iter().map(|change| format!("  {}", json!(change))));
        told.push(json!({
            "delta_id": delta.delta_id, "what": what, "declared": awaited.declared, "others": awaited.others,
            "missing": awaited.missing, "changes": delta.changes,
        }));
    }
    if told.is_empty() {
        text.push("no change waits for others to declare the same".to_owned());
    }
    Answer::done(json!({ "changes": told }), text)
}

/// Declares exactly what somebody else has declared, as `identity`; the last one it takes has it committed.
async fn join(space: &dyn Space, identity: &ActorId, delta_id: &DeltaId) -> Result<Answer, Error> {
    match waiting(space, delta_id) {
        Some((what, changes)) => commit(space, identity, &what, Vec::new(), changes).await,
        None => Ok(Answer::not_found("change that waits for others", delta_id.as_str())),
    }
}

/// The declaration by which `person` would join, for a person who signs it elsewhere. Records nothing.
fn join_draft(space: &dyn Space, person: &ActorId, delta_id: &DeltaId) -> Result<Answer, Error> {
    match waiting(space, delta_id) {
        Some((what, changes)) => draft(space, person, &what, changes),
        None => Ok(Answer::not_found("change that waits for others", delta_id.as_str())),
    }
}

fn waiting(space: &dyn Space, delta_id: &DeltaId) -> Option<(String, Vec<Change>)> {
    let view = space.view();
    let awaiting = people::awaiting(&view, &space.moment().now);
    let (delta, _) = awaiting.into_iter().find(|(delta, _)| delta.delta_id == *delta_id)?;
    Some((wish(&view, delta), delta.changes.clone()))
}

/// The changes of every proposal that waits for others: what is asked for again may be one of them.
pub(super) fn all_waiting(space: &dyn Space) -> Vec<Vec<Change>> {
    let view = space.view();
    let awaiting = people::awaiting(&view, &space.moment().now);
    awaiting.into_iter().map(|(delta, _)| delta.changes.clone()).collect()
}

fn waiting_as(view: &View, space: &dyn Space, changes: &[Change]) -> Option<DeltaId> {
    let awaiting = people::awaiting(view, &space.moment().now);
    awaiting.into_iter().find(|(delta, _)| delta.changes == changes).map(|(delta, _)| delta.delta_id.clone())
}

/// What a proposal was declared as, in words.
fn wish(view: &View, delta: &Delta) -> String {
    let cited = |reference: &ArtifactRef| delta.required_authority_refs.iter().any(|it| it.reference == *reference);
    let declared = view.declarations.values().find(|(reference, _)| cited(reference));
    declared.map_or_else(String::new, |(_, declaration)| declaration.goal.text.to_string())
}

fn standing(awaited: &Awaited) -> String {
    let named = |people: &[ActorId]| people.iter().map(ActorId::as_str).collect::<Vec<_>>().join(", ");
    let by = match awaited.declared.is_empty() {
        true => "nobody of those it takes".to_owned(),
        false => named(&awaited.declared),
    };
    format!("declared by {by}; it takes {} more of {}", awaited.missing, named(&awaited.others))
}

/// The answer to whoever declared what waits for others: nothing is changed yet, and how one joins.
fn waits(space: &dyn Space, delta_id: &DeltaId, awaited: &Awaited, recorded: Value, what: &str) -> Answer {
    let view = space.view();
    let mut text = vec![what.to_owned(), format!("nothing is changed yet: {}", standing(awaited))];
    let subjects = |delta: &Delta| delta.changes.iter().map(Change::subject).collect::<Vec<_>>();
    let awaiting = people::awaiting(&view, &space.moment().now);
    let own = awaiting.iter().find(|(delta, _)| delta.delta_id == *delta_id).map(|(delta, _)| subjects(delta));
    let others = awaiting.iter().filter(|(delta, _)| delta.delta_id != *delta_id && Some(subjects(delta)) == own);
    for (other, awaited) in others {
        text.push(format!("note: {} of the same waits too, {}", other.delta_id, standing(awaited)));
    }
    let data = json!({
        "recorded": recorded,
        "waits": { "delta_id": delta_id, "declared": awaited.declared, "others": awaited.others, "missing": awaited.missing },
    });
    let answer = Answer::done(data, text).hint("look", ["change", "list"]);
    match awaited.others.first() {
        Some(other) => answer.hint("join", ["--as", other.as_str(), "change", "join", delta_id.as_str()]),
        None => answer,
    }
}

/// The declaration and the changes it names, for a user who signs it elsewhere.
pub(super) fn draft(space: &dyn Space, identity: &ActorId, what: &str, changes: Vec<Change>) -> Result<Answer, Error> {
    let declaration = declaration(space, identity, what, &changes)?;
    let data = json!({ "declaration": declaration, "changes": changes });
    Ok(Answer::done(data, vec!["nothing is recorded".to_owned()]))
}

/// Hands in a declaration that the user has signed, and has the changes committed that it names.
async fn hand_in(
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
    let awaited = people::awaited(&view, &changes, &space.moment().now);
    let recorded = json!([&declaration]);
    if let (Some(awaited), Some(delta_id)) = (&awaited, waiting_as(&view, space, &changes)) {
        return Ok(waits(space, &delta_id, awaited, recorded, &format!("declared: {what}")));
    }
    let delta = delta(space, &view, changes, declaration)?;
    let (delta_id, proposal_digest) = (delta.delta_id.clone(), delta.proposal_digest);
    let proposed = write(space, &view, ProducerRole::Distiller, lineage(&obligation_ids, Vec::new()), delta.into())?;
    let (id, receipt) = (proposed.id().clone(), entry::payload_ref(&proposed));
    let reply = submit(space, proposed).await?;
    if reply.refusal().is_some() {
        return Ok(Answer::replied(&reply, what));
    }
    if let Some(awaited) = awaited {
        return Ok(waits(space, &delta_id, &awaited, recorded, &format!("declared: {what}")));
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
