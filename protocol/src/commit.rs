//! The semantic commit: an endorsed delta becomes accepted state, with its receipt in the same append. Spec: §5, C10, C14.
//!
//! A delta whose endorser is a registered deterministic rule is completed with the current parent, endorsed and committed
//! in one step. Any other is reissued mechanically when its parent has moved and nothing in between touched what it reads
//! or writes (`rebase@1`), else it is `stale_parent` and needs a fresh assessment. Spec: design §4.

use crate::entry::{ArtifactBody, Entry};
use crate::input::{Effect, Reply};
use crate::sequence::Deciding;
use crate::services::{self, Lineage};
use crate::view::{OnRecord, View};
use crate::work::suspended;
use crate::{adjudicate, cancel, people, review, streams, trace};
use closer_contracts::Payload;
use closer_contracts::adjudication::{Adjudication, Disposition, Phase, RolePosition, Stance};
use closer_contracts::audit::UrgentDetails;
use closer_contracts::auth::{AuthRecord, Proof, SigningScope};
use closer_contracts::branch;
use closer_contracts::delta::{AdmissionPath, AuthorityKind, AuthorityRef, Change, ChangeClass, Delta};
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{
    ActorId, AdjudicationId, ArtifactId, DeltaId, Id, ObligationId, PayloadId, ReceiptId, SessionId, Text,
};
use closer_contracts::item::{AffectedScope, Appointment, Item, RuleBody};
use closer_contracts::record::StreamId;
use closer_contracts::refs::{ArtifactRef, EvidenceSnapshot, ProducerRole, SubjectType, TypedRef, VersionedRef};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::review::ReviewDecision;
use closer_contracts::work::EvidenceRelation;
use closer_state::{Commit, Denied, Derivation, ReceiptFacts};
use std::sync::Arc;

/// The registered rule under which the service endorses routine changes itself (DEC-27).
#[must_use]
pub fn mechanical_rule() -> VersionedRef {
    VersionedRef { id: Id::from("rule.mechanical"), version: 1 }
}

/// The registered rule under which a delta is reissued on a newer parent.
#[must_use]
pub fn rebase_rule() -> VersionedRef {
    VersionedRef { id: Id::from("rule.rebase"), version: 1 }
}

pub(crate) fn denial(denied: Denied) -> Denial {
    const SCHEMA: [Code; 3] = [Code::SchemaInvalid, Code::DigestMismatch, Code::Oversize];
    let check = match denied.code == Code::UnsupportedPromotion {
        true => CheckKind::Support,
        false if denied.code == Code::UnresolvedRef => CheckKind::Resolution,
        false if SCHEMA.contains(&denied.code) => CheckKind::Schema,
        false => CheckKind::Authority,
    };
    let plain = Denial::new(denied.code, check, denied.reason.to_string());
    match denied.offending {
        Some(offending) => plain.of(offending),
        None => plain,
    }
}

/// Asks for the commit of an endorsed ordinary delta.
pub(crate) fn admit(deciding: &mut Deciding<'_>, delta_id: &DeltaId) -> Result<Reply, Fault> {
    let reply = admit_endorsed(deciding, delta_id)?;
    deciding.fire()?;
    Ok(reply)
}

fn admit_endorsed(deciding: &mut Deciding<'_>, delta_id: &DeltaId) -> Result<Reply, Fault> {
    let view = deciding.view;
    let Some(on_record) = view.deltas.get(delta_id) else {
        let denial = Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "no such delta is on record").of(delta_id);
        return deciding.refuse(delta_id.into(), None, vec![denial]);
    };
    let digest = Some(on_record.body.proposal_digest);
    if view.committed.contains_key(delta_id) {
        let denial = Denial::new(Code::Duplicate, CheckKind::Resolution, "the delta is committed").of(delta_id);
        return deciding.refuse(delta_id.into(), digest, vec![denial]);
    }
    let endorsement = match endorsement(view, &on_record.body) {
        Ok(endorsement) => endorsement,
        Err(denial) => {
            let denials = other_phase_offered(view, on_record).into_iter().chain([denial]).collect();
            return deciding.refuse(delta_id.into(), digest, denials);
        }
    };
    if let Some(denial) = stale_snapshot(view, &endorsement.body).or_else(|| suspended(view, &on_record.payload)) {
        return deciding.refuse(delta_id.into(), digest, vec![denial]);
    }
    if let Some(denial) = not_borne_out(view, on_record) {
        return deciding.refuse(delta_id.into(), digest, vec![denial]);
    }
    if let Some(denial) = reassigns(view, &on_record.body).or_else(|| orphans(view, &on_record.body)) {
        return deciding.refuse(delta_id.into(), digest, vec![denial]);
    }
    if let Err(gap) = trace::check_delta(view, on_record, endorsement) {
        let denial = Denial::new(Code::UnresolvedRef, CheckKind::Resolution, gap.to_string()).of(delta_id);
        return deciding.refuse(delta_id.into(), digest, vec![denial]);
    }
    let derivation = derivation(view, &on_record.body, Some(&endorsement.body), deciding.at.now.clone());
    let endorsed = vec![endorsement.reference()];
    if on_record.body.parent_state == view.state.reference() {
        return land(deciding, (*on_record.body).clone(), derivation, endorsed, None, lineage_of(on_record));
    }
    reissue(deciding, on_record, endorsement, derivation)
}

fn lineage_of(delta: &OnRecord<Delta>) -> (Vec<ObligationId>, Option<closer_contracts::id::EpisodeId>) {
    let envelope = delta.payload.envelope();
    (envelope.obligation_ids.clone(), envelope.episode_id.clone())
}

/// The endorsing semantic-commit adjudication of this exact proposal, the newest first.
fn endorsement<'a>(view: &'a View, delta: &Delta) -> Result<&'a OnRecord<Adjudication>, Denial> {
    let ids = view.endorsements.get(&delta.proposal_digest).cloned().unwrap_or_default();
    let newest = ids.iter().rev().find_map(|id| view.adjudications.get(id));
    let missing =
        |reason: &str| Denial::new(Code::MissingEndorsement, CheckKind::Authority, reason).of(&delta.delta_id);
    match newest {
        None => Err(missing("no semantic-commit adjudication endorses this delta")),
        Some(newest) if branch!("commit.not_endorsed", newest.body.disposition != Disposition::Endorsed) => {
            Err(missing("the newest semantic-commit adjudication did not endorse this delta"))
        }
        Some(newest) => Ok(newest),
    }
}

/// An adjudication of another phase that the delta offers in place of an endorsement (§4.2, C9).
fn other_phase_offered(view: &View, delta: &OnRecord<Delta>) -> Option<Denial> {
    let offered = adjudicate::cited_by(view, &delta.payload);
    offered
        .into_iter()
        .find(|adjudication| branch!("commit.other_phase_offered", adjudication.phase != Phase::SemanticCommit))
        .map(|other| {
            let reason = format!("a `{}` adjudication endorses no delta", other.phase);
            Denial::new(Code::WrongPhase, CheckKind::Authority, reason).of(&other.adjudication_id)
        })
}

/// An endorsement holds for the evidence it saw: newer evidence in a stream it read asks for a fresh one (C9).
fn stale_snapshot(view: &View, endorsement: &Adjudication) -> Option<Denial> {
    let snapshot = &endorsement.evidence_snapshot.refs;
    snapshot.iter().find_map(|cited| {
        let id = closer_contracts::id::EvidenceId::new(cited.id.as_str());
        let binding = &view.evidence.get(&id)?.body.target_binding;
        let (_, newest_id) = view.observed.get(&binding.observation_sequence_ref)?;
        // An older observation beside the newest of its stream is no ignorance.
        let seen = snapshot.iter().any(|other| other.id.as_str() == newest_id.as_str());
        branch!("commit.snapshot_outdated", !seen).then(|| {
            let reason = "newer evidence has come since the delta was endorsed";
            Denial::new(Code::StaleVersion, CheckKind::Support, reason).of(newest_id)
        })
    })
}

/// Support that a delta claims and that the record does not bear out: the system resolves every relation itself, whoever
/// has endorsed it (§6.3).
fn not_borne_out(view: &View, delta: &OnRecord<Delta>) -> Option<Denial> {
    let obligation_id = delta.payload.envelope().obligation_ids.first()?;
    let claimed = delta.body.changes.iter().filter_map(|change| {
        if let Change::Add { item } | Change::Revise { item, .. } = change { item.as_claim() } else { None }
    });
    let mut related = delta.body.support_relations.iter().chain(claimed.flat_map(|claim| &claim.relations));
    let other = related.find(|relation| {
        let borne_out = crate::delta::borne_out(view, obligation_id, relation) == **relation;
        branch!("commit.support_not_borne_out", !borne_out)
    })?;
    let reason = "the record does not bear out what the delta says of its evidence";
    Some(Denial::new(Code::UnsupportedPromotion, CheckKind::Support, reason).of(&other.evidence_id))
}

/// An owner who has not taken the obligation over: only an accepted handoff transfers it, under an epoch of its own (C12).
/// A commit may say in the accepted state who answers for it by the ownership records, and nothing else.
fn reassigns(view: &View, delta: &Delta) -> Option<Denial> {
    delta.changes.iter().find_map(|change| {
        let Change::SetOwner { obligation_id, responsible_owner } = change else { return None };
        let answers = view.ownership(obligation_id).is_some_and(|held| held.owner == *responsible_owner);
        branch!("commit.owner_not_handed_over", !answers).then(|| {
            let reason = format!("{responsible_owner} has taken no handoff of this obligation; its owner stays");
            Denial::new(Code::ConsentMissing, CheckKind::Authority, reason).of(obligation_id)
        })
    })
}

/// A coalition that is dissolved while one of it answers for an open obligation: that is handed over first (§8.4).
fn orphans(view: &View, delta: &Delta) -> Option<Denial> {
    let dissolved = delta.changes.iter().filter_map(|change| {
        let (Change::Retract { kind, id, .. } | Change::Suspend { kind, id, .. }) = change else { return None };
        view.state.item(*kind, id)?.item.as_coalition()
    });
    for coalition in dissolved {
        let owned = view.state.open_obligations().find(|obligation| {
            let owner = view.ownership(&obligation.obligation_id).map(|held| held.owner);
            let of_it = coalition.members.iter().any(|member| Some(&member.actor) == owner.as_ref());
            branch!("commit.dissolution_orphans", of_it)
        });
        if let Some(owned) = owned {
            let reason = "one of the coalition answers for this obligation; hand it over first";
            return Some(Denial::new(Code::MissingAuthority, CheckKind::Authority, reason).of(&owned.obligation_id));
        }
    }
    None
}

/// What the protocol has verified for a delta: origins, authorities, closing positions.
pub(crate) fn derivation(
    view: &View,
    delta: &Delta,
    endorsement: Option<&Adjudication>,
    now: closer_contracts::Timestamp,
) -> Derivation {
    let declarations = view.declarations.values();
    let mut origins: Vec<ArtifactRef> = declarations
        .filter(|(_, declaration)| branch!("commit.declaration_in_effect", in_effect(declaration, &now)))
        .map(|(r, _)| r.clone())
        .collect();
    origins.extend(view.genesis.clone());
    origins.extend(view.commits.values().filter_map(|committed| committed.receipt_ref.clone()));
    let authorities =
        delta.required_authority_refs.iter().filter(|authority| authority_holds(view, delta, authority, &now));
    Derivation {
        authorities: authorities.map(|authority| authority.reference.clone()).collect(),
        closing: endorsement.map_or_else(Vec::new, |endorsement| closing(view, delta, endorsement)),
        origins,
        urgent: None,
        now,
    }
}

/// How the user names exact changes in a declaration: the digest of the list, among the success criteria.
///
/// # Errors
/// `schema_invalid` when the changes have no canonical form.
pub fn instruction(changes: &[Change]) -> Result<Text, Fault> {
    Ok(Text::new(closer_contracts::canonical::digest_of(changes)?.to_string()))
}

/// A declaration states a wish; only for the exact normative changes that it names is it their authority.
fn names(declaration: &closer_contracts::audit::Declaration, delta: &Delta) -> bool {
    let named = || instruction(&delta.changes).is_ok_and(|named| declaration.success_criteria.contains(&named));
    !delta.has(ChangeClass::Normative) || named()
}

/// Whether an authority that a delta cites is on record and covers a change of its kind (§5, CP-INV-02).
fn authority_holds(view: &View, delta: &Delta, authority: &AuthorityRef, now: &closer_contracts::Timestamp) -> bool {
    match authority.kind {
        AuthorityKind::Declaration => {
            view.declarations.values().any(|(reference, declaration)| {
                *reference == authority.reference
                    && branch!("commit.authority_in_effect", in_effect(declaration, now))
                    && branch!("commit.declaration_names_changes", names(declaration, delta))
            }) && people::declared(view, delta, |it| in_effect(it, now) && names(it, delta))
        }
        AuthorityKind::UserDecision => view.decisions.values().flatten().any(|(reference, decision)| {
            use closer_contracts::audit::DecisionType;
            let takes_back = |change: &Change| {
                change.class() == ChangeClass::Restrictive || change.class() == ChangeClass::Descriptive
            };
            if decision.decision_type == DecisionType::Rejection {
                return *reference == authority.reference && delta.changes.iter().all(takes_back);
            }
            let authorizes = decision.decision_type == DecisionType::ScopedAuthorization;
            *reference == authority.reference
                && branch!("commit.decision_authorizes", authorizes)
                && branch!("commit.quorum_reached", people::missing(view, decision) == 0)
                && delta.changes.iter().all(|change| within_decision(view, decision, change))
        }),
        AuthorityKind::Profile => {
            let own = profile_authority(view).is_some_and(|profile| profile.reference == authority.reference);
            own && delta
                .changes
                .iter()
                .all(|change| branch!("commit.profile_predeclares", suspends_issuer(view, change)))
        }
        AuthorityKind::Appointment => {
            let appointed = view.state.appointment(&ActorId::new(authority.reference.id.as_str())).is_some();
            let restricts = |change: &Change| change.class() == ChangeClass::Restrictive;
            appointed
                && delta.changes.iter().all(|change| branch!("commit.appointment_only_restricts", restricts(change)))
        }
        AuthorityKind::Instruction => authorized_in_review(view, delta, &authority.reference),
    }
}

/// Of all reviews only the user's effect authorization stands behind a commit, and only for the exact changes (DEC-93).
fn authorized_in_review(view: &View, delta: &Delta, reference: &ArtifactRef) -> bool {
    let Some(receipt) = view.reviews.cited(reference) else {
        return false;
    };
    let authorizes = receipt.decision == ReviewDecision::EffectAuthorization;
    let exactly = closer_contracts::canonical::digest_of(&delta.changes).is_ok_and(|d| d == receipt.artifact_digest);
    let stands =
        review::review(view, receipt.artifact_digest, &receipt.subject, receipt.decision) == review::Review::Given;
    branch!("commit.review_authorizes_effect", authorizes)
        && branch!("commit.review_names_changes", exactly)
        && people::instructed(view, receipt)
        && branch!("commit.review_stands", stands)
}

pub(crate) fn in_effect(declaration: &closer_contracts::audit::Declaration, now: &closer_contracts::Timestamp) -> bool {
    let period = &declaration.effective_period;
    period.from <= *now && period.to.as_ref().is_none_or(|to| to > now)
}

/// What the profile itself declares beforehand: an issuer beyond its limits makes no further broad restrictions (§7.2).
fn suspends_issuer(view: &View, change: &Change) -> bool {
    let Change::Revise { item, .. } = change else {
        return false;
    };
    let Item::Appointment(appointment) = &**item else {
        return false;
    };
    let held = view.state.appointment(&appointment.issuer);
    held.is_some_and(|held| *appointment == Appointment { broad_suspended: true, ..held.clone() })
}

/// A grant made from a decision is never wider than what the packet asked for, or than the one action that the user put in
/// its place (DEC-65).
fn within_decision(view: &View, decision: &closer_contracts::audit::UserDecision, change: &Change) -> bool {
    let Some(packet) = view.packets.get(&crate::bench::packet_of(decision)) else {
        return false;
    };
    let Some(asked) = crate::bench::authorized(&packet.packet.body, decision) else {
        return false;
    };
    let Change::Add { item } = change else {
        return change.class() == ChangeClass::Descriptive;
    };
    let Some(grant) = item.as_grant() else { return false };
    branch!(
        "commit.grant_within_request",
        grant.allowed_operations.iter().all(|operation| asked.allowed_operations.contains(operation))
            && grant.targets.iter().all(|targets| asked.targets.contains(targets))
            && asked.parameter_bounds.iter().all(|bound| grant.parameter_bounds.contains(bound))
            && grant.expiry <= asked.expiry
    )
}

/// The obligations whose closure authority took a positive position in this exact endorsement (DEC-28).
fn closing(view: &View, delta: &Delta, endorsement: &Adjudication) -> Vec<ObligationId> {
    let positive = |authority: &ActorId| {
        endorsement
            .role_positions
            .iter()
            .any(|position| position.actor == *authority && position.position == Stance::For)
    };
    delta
        .changes
        .iter()
        .filter(|change| change.class() == ChangeClass::Closing)
        .filter_map(|change| {
            let (_, id) = change.subject();
            let obligation = view.state.obligation(&ObligationId::new(id.as_str()))?;
            branch!("commit.closure_authority_for", positive(&obligation.closure_authority))
                .then(|| obligation.obligation_id.clone())
        })
        .collect()
}

/// Commits a delta against the current state, or refuses it with everything that speaks against it.
fn land(
    deciding: &mut Deciding<'_>,
    delta: Delta,
    derivation: Derivation,
    adjudication_refs: Vec<ArtifactRef>,
    urgent_details: Option<UrgentDetails>,
    (obligation_ids, episode_id): (Vec<ObligationId>, Option<closer_contracts::id::EpisodeId>),
) -> Result<Reply, Fault> {
    let (subject, digest) = (Id::from(&delta.delta_id), delta.proposal_digest);
    let before = deciding.so_far()?;
    match closer_state::propose(&before.state, delta, &derivation) {
        Err(denials) => deciding.refuse(subject, Some(digest), denials.into_iter().map(denial).collect()),
        Ok((commit, after)) => {
            let facts = ReceiptFacts {
                receipt_id: ReceiptId::new(crate::derived_id("receipt", commit.delta.delta_id.as_str())),
                adjudication_refs,
                committing_authority: services::actor(ProducerRole::Semantic),
                committed_at: deciding.at.now.clone(),
                urgent_details,
            };
            let receipt = match closer_state::receipt::receipt(&commit, &after, facts) {
                Ok(receipt) => receipt,
                Err(fault) => return deciding.refuse(subject, Some(digest), vec![fault.into()]),
            };
            let commit = Arc::new(commit);
            record_commit(deciding, &commit, &obligation_ids, episode_id.as_ref())?;
            let receipt_ref = deciding.batch.artifact(ArtifactBody::from(receipt), vec![StreamId::new("receipts")])?;
            deciding.effects.extend(episode_id.map(Effect::Advance));
            call_back(deciding, &commit)?;
            deciding.effects.extend(
                crate::view::wakes(&commit).into_iter().map(|(obligation_id, _)| Effect::Eligible(obligation_id)),
            );
            Ok(Reply::Recorded(vec![receipt_ref]))
        }
    }
}

/// Whatever is under way and falls under a restriction that the commit brings is asked to be called back, whoever restricts.
fn call_back(deciding: &mut Deciding<'_>, commit: &Commit) -> Result<(), Fault> {
    for change in &commit.delta.changes {
        match change {
            Change::SuspendEligibility { restriction } => cancel::covered(deciding, &restriction.affected_scope)?,
            Change::RevokeGrant { grant_id, .. } => {
                cancel::covered(deciding, &AffectedScope::Grant { grant_id: grant_id.clone() })?;
            }
            Change::Add { .. }
            | Change::Revise { .. }
            | Change::Suspend { .. }
            | Change::Retract { .. }
            | Change::AdmitObligation { .. }
            | Change::SetStatus { .. }
            | Change::SetConditions { .. }
            | Change::SetTriggers { .. }
            | Change::SetOwner { .. }
            | Change::AddDependency { .. }
            | Change::RemoveDependency { .. }
            | Change::LiftRestriction { .. } => {}
        }
    }
    Ok(())
}

/// Links the commit to `state`, to every entity it changes and to every scope its restrictions can bind (design §3).
fn record_commit(
    deciding: &mut Deciding<'_>,
    commit: &Arc<Commit>,
    obligation_ids: &[ObligationId],
    episode_id: Option<&closer_contracts::id::EpisodeId>,
) -> Result<(), Fault> {
    let mut links = vec![streams::state()];
    links.extend(closer_state::touched(commit).iter().map(|(kind, id)| streams::item(*kind, id.as_str())));
    links.extend(closer_state::restricted_scopes(commit).iter().map(streams::scope));
    links.extend(closer_state::propositions(&commit.delta).iter().map(streams::proposition));
    for change in &commit.delta.changes {
        if let Change::RevokeGrant { grant_id, .. } = change {
            links.push(StreamId::new(format!("scope:grant:{grant_id}")));
        }
        if let Change::Add { item } | Change::Revise { item, .. } = change
            && item.kind() == closer_contracts::item::ItemKind::Constraint
        {
            links.push(streams::scope_space());
        }
    }
    links.extend(obligation_ids.iter().map(streams::history));
    links.extend(episode_id.map(streams::episode));
    let id = crate::derived_id("commit", commit.delta.delta_id.as_str());
    let claims = vec![(streams::state_claim(commit.version), commit.after.digest)];
    deciding.batch.push(&id, Entry::Commit(commit.clone()), links, claims)?;
    Ok(())
}

/// Reissues a delta whose parent has moved under `rebase@1`, or refuses it as `stale_parent` (design §4).
fn reissue(
    deciding: &mut Deciding<'_>,
    original: &OnRecord<Delta>,
    endorsement: &OnRecord<Adjudication>,
    derivation: Derivation,
) -> Result<Reply, Fault> {
    let view = deciding.view;
    let delta = &original.body;
    let between: Vec<&Commit> =
        view.commits.range(delta.parent_state.version + 1..).map(|(_, committed)| &*committed.commit).collect();
    let fresh = DeltaId::new(crate::derived_id(
        &format!("rebased.{}", view.state.reference().version),
        delta.delta_id.as_str(),
    ));
    let reissued = match closer_state::rebase(delta, &view.state, between, fresh) {
        Ok(reissued) => reissued,
        Err(denied) => {
            return deciding.refuse((&delta.delta_id).into(), Some(delta.proposal_digest), vec![denial(denied)]);
        }
    };
    let lineage = Lineage {
        parents: vec![original.payload.id().clone(), endorsement.payload.id().clone()],
        obligation_ids: original.payload.envelope().obligation_ids.clone(),
        episode_id: original.payload.envelope().episode_id.clone(),
        causation_event_id: original.payload.envelope().causation_event_id.clone(),
        budget_ref: None,
    };
    let carried = endorsement.body.role_positions.clone();
    let dissent = endorsement.body.dissent.clone();
    let snapshot = endorsement.body.evidence_snapshot.clone();
    let mechanical = Mechanical { rule: rebase_rule(), positions: carried, dissent, snapshot, lineage };
    let endorsed = endorse(deciding, &reissued, mechanical)?;
    let refs = vec![endorsed, endorsement.reference()];
    land(deciding, reissued, derivation, refs, None, lineage_of(original))
}

/// How a registered deterministic rule endorses: under which rule, carrying whose positions, on which evidence.
pub(crate) struct Mechanical {
    pub(crate) rule: VersionedRef,
    pub(crate) positions: Vec<RolePosition>,
    pub(crate) dissent: Vec<closer_contracts::adjudication::Dissent>,
    pub(crate) snapshot: EvidenceSnapshot,
    pub(crate) lineage: Lineage,
}

/// Writes the delta and its endorsement by a registered deterministic rule; gives the reference to the endorsement.
fn endorse(deciding: &mut Deciding<'_>, delta: &Delta, mechanical: Mechanical) -> Result<ArtifactRef, Fault> {
    let view = deciding.so_far()?;
    let seed = delta.delta_id.as_str();
    let disclosure = services::internal_disclosure(&view)?;
    let delta_payload = services::write(
        &view,
        PayloadId::new(crate::derived_id("pl", seed)),
        services::actor_ref(ProducerRole::Distiller),
        mechanical.lineage.clone(),
        disclosure.clone(),
        delta.clone(),
        &deciding.at.now,
    )?;
    record_own(deciding, &delta_payload)?;
    let mut positions = mechanical.positions;
    let validator = services::actor(ProducerRole::Assessor);
    if !positions.iter().any(|position| position.actor == validator) {
        positions.push(RolePosition {
            actor: validator,
            role: adjudicate::validator_role(),
            position: Stance::For,
            reason: Text::new(format!("the registered rule {} holds", mechanical.rule.id)),
            receipt: crate::entry::payload_ref(&delta_payload),
        });
    }
    let adjudication = Adjudication {
        adjudication_id: AdjudicationId::new(crate::derived_id("endorse", seed)),
        phase: Phase::SemanticCommit,
        subject: TypedRef { id: (&delta.delta_id).into(), digest: delta.proposal_digest, r#type: SubjectType::Delta },
        evidence_snapshot: mechanical.snapshot,
        readback_refs: Vec::new(),
        governing_basis: view.state.reference(),
        role_positions: positions,
        decision_rule_ref: mechanical.rule,
        dissent: mechanical.dissent,
        unresolved: Vec::new(),
        disposition: Disposition::Endorsed,
        extensions: None,
    };
    let lineage = Lineage { parents: vec![delta_payload.id().clone()], ..mechanical.lineage };
    let payload = services::write(
        &view,
        PayloadId::new(crate::derived_id("pl.endorse", seed)),
        services::actor_ref(ProducerRole::Assessor),
        lineage,
        disclosure,
        adjudication,
        &deciding.at.now,
    )?;
    record_own(deciding, &payload)
}

/// Records a payload that the sequence itself wrote for a service, under the service's standing session.
pub(crate) fn record_own(deciding: &mut Deciding<'_>, payload: &Payload) -> Result<ArtifactRef, Fault> {
    let envelope = payload.envelope();
    let auth = AuthRecord {
        subject_id: payload.id().into(),
        content_digest: payload.content_digest(),
        scope: SigningScope::from(envelope.r#type),
        identity: envelope.producer.actor_id.clone(),
        proof: Proof::Session { session_id: SessionId::from("closer.sequence") },
        received_at: deciding.at.now.clone(),
    };
    crate::sequence::record_payload(deciding, &Arc::new(payload.clone()), &auth, Vec::new(), Vec::new())
}

/// What the service commits by itself under a registered deterministic rule.
pub(crate) struct Routine {
    pub(crate) delta_id: DeltaId,
    pub(crate) changes: Vec<Change>,
    pub(crate) support_relations: Vec<EvidenceRelation>,
    pub(crate) authorities: Vec<AuthorityRef>,
    pub(crate) lineage: Lineage,
}

/// Completes routine changes with the current parent, endorses and commits them in one step (design §4, DEC-27).
pub(crate) fn by_rule(deciding: &mut Deciding<'_>, routine: Routine) -> Result<Reply, Fault> {
    let view = deciding.so_far()?;
    let delta = Delta {
        delta_id: routine.delta_id,
        parent_state: view.state.reference(),
        changes: routine.changes,
        support_relations: routine.support_relations,
        dependency_updates: Vec::new(),
        required_authority_refs: routine.authorities,
        admission_path: AdmissionPath::Ordinary,
        proposal_digest: Digest::of(b""),
        extensions: None,
    }
    .sealed()?;
    let deterministic = view.state.rule(&mechanical_rule()).is_some_and(|rule| match &rule.body {
        RuleBody::Decision { deterministic, .. } => *deterministic,
        RuleBody::Matching { .. } | RuleBody::Sufficiency { .. } => false,
    });
    if !branch!("commit.rule_is_registered", deterministic) {
        let denial =
            Denial::new(Code::MissingEndorsement, CheckKind::Authority, "no deterministic rule is registered for this");
        return deciding.refuse((&delta.delta_id).into(), Some(delta.proposal_digest), vec![denial]);
    }
    let derivation = derivation(&view, &delta, None, deciding.at.now.clone());
    let whose = (routine.lineage.obligation_ids.clone(), routine.lineage.episode_id.clone());
    let mechanical = Mechanical {
        rule: mechanical_rule(),
        positions: Vec::new(),
        dissent: Vec::new(),
        snapshot: EvidenceSnapshot::of(Vec::new())?,
        lineage: routine.lineage,
    };
    let endorsed = endorse(deciding, &delta, mechanical)?;
    land(deciding, delta, derivation, vec![endorsed], None, whose)
}

/// Commits an urgent restriction: the completed delta and its receipt, in one append (§7.2).
pub(crate) fn urgent(
    deciding: &mut Deciding<'_>,
    delta: Delta,
    derivation: Derivation,
    details: UrgentDetails,
) -> Result<Reply, Fault> {
    land(deciding, delta, derivation, Vec::new(), Some(details), (Vec::new(), None))
}

/// A reference to the profile as an authority.
#[must_use]
pub fn profile_authority(view: &View) -> Option<AuthorityRef> {
    let profile = view.state.profile()?;
    let digest = closer_contracts::canonical::digest_of(profile).ok()?;
    let reference = ArtifactRef { id: ArtifactId::new(profile.profile_id.as_str()), digest };
    Some(AuthorityRef { kind: AuthorityKind::Profile, reference })
}
