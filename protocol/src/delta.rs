//! Distillation: what an episode established becomes one delta of supported changes. Spec: §7.2, C10, DEC-78.

use crate::input::{Moment, Reply};
use crate::sequence::{Deciding, record_payload};
use crate::view::{Episode, OnRecord, View};
use crate::work::lineage;
use crate::{conference, services, streams, sufficiency};
use closer_contracts::adjudication::{Disposition, Phase};
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::delta::{AdmissionPath, Change, Delta};
use closer_contracts::digest::Digest;
use closer_contracts::evidence::{Evidence, ReadbackOutcome};
use closer_contracts::id::{ClaimId, DeltaId, ObligationId, PayloadId, PropositionId, Text};
use closer_contracts::item::{Claim, Item, Standing};
use closer_contracts::obligation::{AssessmentStatus, Condition, Obligation, ObligationStatus};
use closer_contracts::refs::{ProducerRole, VersionedRef};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::work::{
    EvidenceRelation, ProposedClaim, Proposition, ReferenceStatus, Relation, ScopeMatch, ValidAt,
};
use closer_contracts::{Fault, Payload};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a readback that was adjudicated says about the proposition its postcondition is named after.
#[must_use]
pub fn relation_of(readback: &OnRecord<Evidence>) -> Option<EvidenceRelation> {
    let body = &readback.body;
    let about = body.readback.as_ref()?;
    let relation = match about.outcome {
        ReadbackOutcome::Matched => Relation::Supports,
        ReadbackOutcome::NotMatched => Relation::Contradicts,
        ReadbackOutcome::Unknown => Relation::Unresolved,
    };
    Some(EvidenceRelation {
        proposition_id: PropositionId::new(about.expected_postcondition_ref.as_str()),
        evidence_id: body.evidence_id.clone(),
        reference_status: ReferenceStatus::Resolved,
        scope_match: ScopeMatch::Applicable,
        relation,
        valid_at: ValidAt {
            observed_at: body.observed_at.clone(),
            observation_sequence_ref: body.target_binding.observation_sequence_ref.clone(),
            observation_version: body.target_binding.observation_version,
            target_version: body.target_binding.target_version.clone(),
        },
        limitations: body.limitations.clone(),
    })
}

/// Everything an episode has to say, by proposition: relations of its results, resolved by the system itself, and of its
/// established readbacks.
#[must_use]
pub fn relations(view: &View, episode: &Episode) -> BTreeMap<PropositionId, Vec<EvidenceRelation>> {
    let mut found: BTreeMap<PropositionId, Vec<EvidenceRelation>> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for relation in said(view, episode) {
        let relation = borne_out(view, &episode.obligation_id, &relation);
        if branch!("delta.said_once", known.insert(sufficiency::digest_of(&relation))) {
            found.entry(relation.proposition_id.clone()).or_default().push(relation);
        }
    }
    for adjudication in episode.adjudications.iter().filter_map(|id| view.adjudications.get(id)) {
        if adjudication.body.phase != Phase::PostOutcome || adjudication.body.disposition == Disposition::Unknown {
            continue;
        }
        let evidence_id = closer_contracts::id::EvidenceId::new(adjudication.body.subject.id.as_str());
        let readback = view.evidence.get(&evidence_id).filter(|readback| is_newest(view, &readback.body));
        if let Some(relation) = readback.and_then(relation_of) {
            found.entry(relation.proposition_id.clone()).or_default().push(relation);
        }
    }
    found
}

/// The relations that an episode's participants pointed out: those of its results, or of its conference where it had one.
fn said(view: &View, episode: &Episode) -> Vec<EvidenceRelation> {
    if let Some(round) = view.conferences.of_episode(&episode.episode_id) {
        return conference::relations(view, round);
    }
    let results = episode.results.iter().filter_map(|id| view.results.get(id));
    results.flat_map(|result| result.body.assessments.clone()).collect()
}

/// A relation as the record and the rule for its proposition bear it out.
#[must_use]
pub fn borne_out(view: &View, obligation_id: &ObligationId, relation: &EvidenceRelation) -> EvidenceRelation {
    let obligation = view.state.obligation(obligation_id);
    let rule = obligation.map(|obligation| rule_for(view, obligation, &relation.proposition_id));
    match rule.and_then(|reference| view.state.rule(&reference)) {
        Some(rule) => sufficiency::borne_out(relation, rule, view),
        None => sufficiency::resolve(relation, view),
    }
}

/// Whether nothing newer was observed in the same stream: what an earlier attempt left behind no longer bears on anything.
fn is_newest(view: &View, evidence: &Evidence) -> bool {
    let binding = &evidence.target_binding;
    let newest = view.observed.get(&binding.observation_sequence_ref).map(|(number, _)| *number);
    !branch!("delta.readback_superseded", newest.is_some_and(|newest| newest > binding.observation_version))
}

/// Drafts the episode's delta; `None` when nothing it found is supported well enough to change what is accepted.
///
/// # Errors
/// The codes of the contract.
pub fn distill(view: &View, episode: &Episode, at: &Moment) -> Result<Option<Payload>, Fault> {
    let Some(obligation) = view.state.obligation(&episode.obligation_id) else {
        return Ok(None);
    };
    let relations = relations(view, episode);
    let mut changes = claims(view, episode, obligation, &relations, at);
    let conditions = conditions(view, obligation, &relations, at);
    if conditions != obligation.resolution_conditions {
        changes.push(Change::SetConditions {
            obligation_id: obligation.obligation_id.clone(),
            conditions: conditions.clone(),
        });
    }
    let met = conditions.iter().all(|condition| condition.assessment_status == AssessmentStatus::Met);
    if branch!("delta.every_condition_met", met) {
        changes.push(Change::SetStatus {
            obligation_id: obligation.obligation_id.clone(),
            status: ObligationStatus::Resolved,
            successor: None,
            reason: Text::from("every resolution condition is met by evidence on record"),
        });
    }
    if changes.is_empty() {
        return Ok(None);
    }
    let changed: Vec<PropositionId> = propositions_of(&changes, &conditions);
    let support =
        relations.into_iter().filter(|(id, _)| changed.contains(id)).flat_map(|(_, relations)| relations).collect();
    let seed = format!("{}.{}", episode.episode_id, episode.deltas.len() + 1);
    let delta = Delta {
        delta_id: DeltaId::new(crate::derived_id("delta", &seed)),
        parent_state: view.state.reference(),
        changes,
        support_relations: support,
        dependency_updates: Vec::new(),
        required_authority_refs: Vec::new(),
        admission_path: AdmissionPath::Ordinary,
        proposal_digest: Digest::of(b""),
        extensions: None,
    }
    .sealed()?;
    let payload = services::write(
        view,
        PayloadId::new(crate::derived_id("pl", delta.delta_id.as_str())),
        services::actor_ref(ProducerRole::Distiller),
        lineage(episode, predecessors(view, episode)),
        services::internal_disclosure(view)?,
        delta,
        &at.now,
    )?;
    Ok(Some(payload))
}

fn propositions_of(changes: &[Change], conditions: &[Condition]) -> Vec<PropositionId> {
    let claimed = changes.iter().filter_map(|change| {
        let (Change::Add { item } | Change::Revise { item, .. }) = change else {
            return None;
        };
        item.as_claim().map(|claim| claim.proposition.proposition_id.clone())
    });
    claimed.chain(conditions.iter().map(|condition| condition.proposition.clone())).collect()
}

/// What a delta follows from: the episode's post-outcome adjudications, or its results where nothing was done (DEC-108).
fn predecessors(view: &View, episode: &Episode) -> Vec<PayloadId> {
    let outcomes: Vec<PayloadId> = episode
        .adjudications
        .iter()
        .filter_map(|id| view.adjudications.get(id))
        .filter(|adjudication| adjudication.body.phase == Phase::PostOutcome)
        .map(|adjudication| adjudication.payload.id().clone())
        .collect();
    match outcomes.is_empty() {
        true => episode.results.clone(),
        false => outcomes,
    }
}

/// The claims that results propose and relations support well enough, and those that readbacks establish for the
/// obligation's own propositions.
fn claims(
    view: &View,
    episode: &Episode,
    obligation: &Obligation,
    relations: &BTreeMap<PropositionId, Vec<EvidenceRelation>>,
    at: &Moment,
) -> Vec<Change> {
    let results = episode.results.iter().filter_map(|id| view.results.get(id));
    let mut proposed: BTreeMap<PropositionId, ProposedClaim> = results
        .flat_map(|result| result.body.claims.clone())
        .filter(|claim| {
            let round = view.conferences.of_episode(&episode.episode_id);
            !round.is_some_and(|round| conference::withdrawn(round, &claim.proposition.proposition_id))
        })
        .map(|claim| (claim.proposition.proposition_id.clone(), claim))
        .collect();
    for condition in &obligation.resolution_conditions {
        if relations.get(&condition.proposition).is_some_and(|relations| relations.iter().any(is_support)) {
            proposed.entry(condition.proposition.clone()).or_insert_with(|| ProposedClaim {
                proposition: Proposition {
                    proposition_id: condition.proposition.clone(),
                    subject: (&obligation.obligation_id).into(),
                    predicate: "satisfies".into(),
                    object: closer_contracts::refs::Plain(serde_json::Value::String(condition.id.to_string())),
                    scope: obligation.scope.clone(),
                },
                applicability: vec![Text::from("as observed at the cited versions")],
            });
        }
    }
    proposed
        .into_values()
        .filter_map(|claim| {
            let id = &claim.proposition.proposition_id;
            let rule_ref = rule_for(view, obligation, id);
            let own: Vec<EvidenceRelation> = relations.get(id).cloned().unwrap_or_default();
            let rule = view.state.rule(&rule_ref)?;
            let sufficient = sufficiency::assess(rule, id, &own, view, at) == AssessmentStatus::Met;
            branch!("delta.claim_supported", sufficient).then(|| accepted(view, claim, own, rule_ref))
        })
        .collect()
}

fn is_support(relation: &EvidenceRelation) -> bool {
    relation.relation == Relation::Supports
}

pub(crate) fn rule_for(view: &View, obligation: &Obligation, proposition: &PropositionId) -> VersionedRef {
    let own = obligation.resolution_conditions.iter().find(|condition| condition.proposition == *proposition);
    let any = view
        .state
        .items(closer_contracts::item::ItemKind::Rule)
        .filter_map(|accepted| accepted.item.as_rule())
        .find(|rule| matches!(rule.body, closer_contracts::item::RuleBody::Sufficiency { .. }));
    let any = any.map(|rule| VersionedRef { id: (&rule.rule_id).into(), version: rule.version });
    own.map(|condition| condition.evidence_rule_ref.clone())
        .or(any)
        .unwrap_or_else(|| VersionedRef { id: "rule.sufficiency".into(), version: 1 })
}

/// The change that accepts a claim: a new one, or a new revision that keeps the exceptions of the old (§7.2).
fn accepted(view: &View, claim: ProposedClaim, relations: Vec<EvidenceRelation>, rule_ref: VersionedRef) -> Change {
    let id = &claim.proposition.proposition_id;
    let before = view.state.claims_on(id).next();
    let known = before.and_then(|accepted| accepted.item.as_claim());
    let excepted = known.filter(|claim| branch!("delta.exceptions_kept", !claim.exceptions.is_empty()));
    let exceptions = excepted.map_or_else(Vec::new, |claim| claim.exceptions.clone());
    let mut limitations: Vec<Text> = relations.iter().flat_map(|relation| relation.limitations.clone()).collect();
    limitations.sort();
    limitations.dedup();
    let claim_id = before
        .map_or_else(|| ClaimId::new(crate::derived_id("claim", id.as_str())), |b| ClaimId::new(b.item.id().as_str()));
    let item = Box::new(Item::Claim(Claim {
        claim_id,
        proposition: claim.proposition,
        applicability: claim.applicability,
        relations,
        limitations,
        exceptions,
        sufficiency_rule_ref: rule_ref,
        standing: Standing::Current,
    }));
    match before {
        Some(before) => Change::Revise { item, replaces: before.digest },
        None => Change::Add { item },
    }
}

/// The obligation's conditions as far as the relations at hand assess them.
fn conditions(
    view: &View,
    obligation: &Obligation,
    relations: &BTreeMap<PropositionId, Vec<EvidenceRelation>>,
    at: &Moment,
) -> Vec<Condition> {
    let assess = |condition: &Condition| {
        let own = relations.get(&condition.proposition).map(Vec::as_slice).unwrap_or_default();
        let rule = view.state.rule(&condition.evidence_rule_ref)?;
        (!own.is_empty()).then(|| sufficiency::assess(rule, &condition.proposition, own, view, at))
    };
    obligation
        .resolution_conditions
        .iter()
        .map(|condition| Condition {
            assessment_status: assess(condition).unwrap_or(condition.assessment_status),
            ..condition.clone()
        })
        .collect()
}

/// Records a proposed delta on its path: the distiller's are ordinary, an issuer's urgent (§6.2).
pub(crate) fn intake(
    deciding: &mut Deciding<'_>,
    delta: &Delta,
    payload: &Arc<Payload>,
    auth: &AuthRecord,
) -> Result<Reply, Fault> {
    let mut denials = Vec::new();
    if branch!("delta.urgent_is_completed_by_the_service", delta.admission_path == AdmissionPath::UrgentRestrictive) {
        let reason = "an urgent delta is completed by the service from its issuer's statement";
        let denial = Denial::new(Code::MissingAuthority, CheckKind::Authority, reason);
        denials.push(denial.of(&payload.envelope().producer.actor_id));
    }
    let offered = crate::adjudicate::cited_by(deciding.view, payload);
    if let Some(before) =
        offered.iter().find(|offered| branch!("delta.rests_on_pre_action", offered.phase == Phase::PreAction))
    {
        let reason = "what was judged before the action says nothing about what came of it";
        denials.push(Denial::new(Code::WrongPhase, CheckKind::Authority, reason).of(&before.adjudication_id));
    }
    let basis = deciding.batch.claimed(&streams::state_claim(delta.parent_state.version));
    match basis {
        None => denials.push(
            Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "the parent state was never accepted")
                .of(delta.parent_state.version),
        ),
        Some(digest) if branch!("delta.parent_differs", digest != delta.parent_state.digest) => denials.push(
            Denial::new(Code::DigestMismatch, CheckKind::Resolution, "the parent version has another digest")
                .of(delta.parent_state.version),
        ),
        Some(_) => {}
    }
    if !denials.is_empty() {
        return deciding.refuse((&delta.delta_id).into(), Some(delta.proposal_digest), denials);
    }
    let claim = (streams::artifact_claim("delta", delta.delta_id.as_str()), delta.proposal_digest);
    let reference = record_payload(deciding, payload, auth, Vec::new(), vec![claim])?;
    Ok(Reply::Recorded(vec![reference]))
}
