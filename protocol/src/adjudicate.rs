//! Adjudication: three moments, three subjects, one declared rule each. Spec: §4.2, C9, DEC-36 to DEC-38.

use crate::delta::borne_out;
mod voices;

pub(crate) use voices::objections_of;
use voices::{action_known_as, delta_known_as, foreign_positions, objections, stands_in_the_way, with_conference};

use crate::dispatch::read_set;
use crate::entry::{ArtifactBody, ReadSet};
use crate::input::Reply;
use crate::sequence::{Deciding, record_payload};
use crate::view::{Attempt, Episode, OnRecord, View};
use crate::work::lineage;
use crate::{services, sufficiency};
use closer_contracts::action::Action;
use closer_contracts::adjudication::{Adjudication, Disposition, Dissent, Phase, RolePosition, Stance};
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::delta::Delta;
use closer_contracts::digest::Digest;
use closer_contracts::envelope::Body;
use closer_contracts::evidence::{Evidence, ReadbackOutcome};
use closer_contracts::id::{ActionId, AdjudicationId, ArtifactId, DeltaId, EvidenceId, Key, PayloadId, Text};
use closer_contracts::item::{Rule, RuleBody, Standing};
use closer_contracts::refs::{ArtifactRef, EvidenceSnapshot, ProducerRole, SubjectType, TypedRef, VersionedRef};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{ReasonClass, Unresolved, WorkResult};
use closer_contracts::{Fault, Payload};
use closer_monitor::violates;
use std::sync::Arc;

/// The role of a registered deterministic validator (DEC-37).
#[must_use]
pub fn validator_role() -> Key {
    Key::from("validator")
}

/// The decision rule that assessments are made under: the first current one that is not the service's own routine rule.
#[must_use]
pub fn decision_rule(view: &View) -> VersionedRef {
    let declared =
        view.state.items(closer_contracts::item::ItemKind::Rule).filter_map(|accepted| accepted.item.as_rule()).find(
            |rule| {
                let own = ["rule.mechanical", "rule.rebase"].contains(&rule.rule_id.as_str());
                rule.standing == Standing::Current && !own && matches!(rule.body, RuleBody::Decision { .. })
            },
        );
    let declared = declared.map(|rule| VersionedRef { id: (&rule.rule_id).into(), version: rule.version });
    declared.unwrap_or_else(crate::commit::mechanical_rule)
}

/// What a result rests on: the evidence it cites, as references to the payloads on record.
#[must_use]
pub fn evidence_of(view: &View, result: &WorkResult) -> Vec<ArtifactRef> {
    let cited = result.assessments.iter().map(|relation| &relation.evidence_id);
    cited
        .filter_map(|id| view.evidence.get(id).map(|evidence| evidence_ref(id, evidence.payload.content_digest())))
        .collect()
}

/// The reference to an evidence item, as snapshots and events cite it.
#[must_use]
pub fn evidence_ref(id: &EvidenceId, digest: Digest) -> ArtifactRef {
    ArtifactRef { id: ArtifactId::new(id.as_str()), digest }
}

/// The adjudications among the payloads that a payload follows from.
#[must_use]
pub fn cited_by(view: &View, payload: &Payload) -> Vec<Arc<Adjudication>> {
    let parents = payload.envelope().parents.iter().filter_map(|parent| view.chain.body(parent));
    parents.filter_map(|body| if let Body::Adjudication(body) = body { Some(Arc::clone(body)) } else { None }).collect()
}

fn validator(reason: impl Into<Text>, stance: Stance, receipt: ArtifactRef) -> RolePosition {
    RolePosition {
        actor: services::actor(ProducerRole::Assessor),
        role: validator_role(),
        position: stance,
        reason: reason.into(),
        receipt,
    }
}

struct Draft {
    phase: Phase,
    subject: TypedRef,
    snapshot: Vec<ArtifactRef>,
    readbacks: Vec<ArtifactRef>,
    positions: Vec<RolePosition>,
    dissent: Vec<Dissent>,
    unresolved: Vec<Unresolved>,
    disposition: Disposition,
    parents: Vec<PayloadId>,
}

fn write(view: &View, episode: &Episode, draft: Draft, now: &Timestamp) -> Result<Payload, Fault> {
    let seed = format!("{}.{}.{}", draft.phase, episode.episode_id, episode.adjudications.len() + 1);
    let adjudication = Adjudication {
        adjudication_id: AdjudicationId::new(crate::derived_id("adj", &seed)),
        phase: draft.phase,
        subject: draft.subject,
        evidence_snapshot: EvidenceSnapshot::of(draft.snapshot)?,
        readback_refs: draft.readbacks,
        governing_basis: view.state.reference(),
        role_positions: draft.positions,
        decision_rule_ref: decision_rule(view),
        dissent: draft.dissent,
        unresolved: draft.unresolved,
        disposition: draft.disposition,
        extensions: None,
    };
    services::write(
        view,
        PayloadId::new(crate::derived_id("pl.adj", &seed)),
        services::actor_ref(ProducerRole::Assessor),
        lineage(episode, draft.parents),
        services::internal_disclosure(view)?,
        adjudication,
        now,
    )
}

/// Pre-action: is this exact effect justified? The deterministic validator is for it when the result that proposed it has
/// no blocking objection to it, cites only evidence that resolves, and leaves nothing open that the effect needs.
///
/// # Errors
/// The codes of the contract.
pub fn pre_action(
    view: &View,
    episode: &Episode,
    action: &OnRecord<Action>,
    now: &Timestamp,
) -> Result<Payload, Fault> {
    let parents = &action.payload.envelope().parents;
    let result = parents.iter().find_map(|parent| view.results.get(parent));
    let subject = action.body.logical_digest;
    let (known_as, about) = action_known_as(&action.body)?;
    let objections = objections(view, episode, &known_as, subject);
    let blocked = objections.iter().any(|objecting| stands_in_the_way(view, objecting));
    let snapshot = result.map_or_else(Vec::new, |result| evidence_of(view, &result.body));
    let unresolved = result.map_or_else(Vec::new, |result| result.body.unresolved.clone());
    let resolves = result.is_none_or(|result| {
        result.body.assessments.iter().all(|relation| {
            sufficiency::resolve(relation, view).reference_status == closer_contracts::work::ReferenceStatus::Resolved
        })
    });
    let forbidden = view.state.constraints_in_force().any(|constraint| violates(constraint, &action.body));
    let (stance, disposition, reason) = match (!blocked, resolves) {
        // The participant may not have been shown the constraint: assessment goes by the whole state (§4.3).
        _ if branch!("adjudicate.constraint_violated", forbidden) => {
            (Stance::Against, Disposition::NotJustified, "the action leaves a constraint in force")
        }
        (true, true) => (Stance::For, Disposition::Justified, "the proposal is supported and nothing blocks it"),
        (false, _) => (Stance::Against, Disposition::NotJustified, "a participant objects to this exact action"),
        (true, false) => (Stance::Against, Disposition::Insufficient, "evidence that it rests on does not resolve"),
    };
    let draft = Draft {
        phase: Phase::PreAction,
        subject: TypedRef { id: (&action.body.action_id).into(), digest: subject, r#type: SubjectType::Action },
        snapshot,
        readbacks: Vec::new(),
        positions: with_conference(view, episode, &known_as, &about, validator(reason, stance, action.reference())),
        dissent: objections.into_iter().map(|objecting| objecting.dissent).collect(),
        unresolved,
        disposition,
        parents: vec![action.payload.id().clone()],
    };
    write(view, episode, draft, now)
}

/// Post-outcome: what did the attempt establish, going by the target itself?
///
/// # Errors
/// The codes of the contract.
pub fn post_outcome(
    view: &View,
    episode: &Episode,
    attempt: &Attempt,
    readback: &OnRecord<Evidence>,
    now: &Timestamp,
) -> Result<Payload, Fault> {
    let outcome = readback.body.readback.as_ref().map_or(ReadbackOutcome::Unknown, |readback| readback.outcome);
    let (stance, disposition, reason) = match outcome {
        ReadbackOutcome::Matched => (Stance::For, Disposition::Established, "the target shows the postcondition"),
        ReadbackOutcome::NotMatched => (Stance::Against, Disposition::NotEstablished, "the target shows another state"),
        ReadbackOutcome::Unknown => {
            (Stance::Against, Disposition::Unknown, "the target does not show what became of the attempt")
        }
    };
    let reference = evidence_ref(&readback.body.evidence_id, readback.payload.content_digest());
    let draft = Draft {
        phase: Phase::PostOutcome,
        subject: TypedRef {
            id: (&readback.body.evidence_id).into(),
            digest: readback.payload.content_digest(),
            r#type: SubjectType::Readback,
        },
        snapshot: vec![reference.clone()],
        readbacks: vec![reference.clone()],
        positions: vec![validator(reason, stance, reference)],
        dissent: Vec::new(),
        unresolved: Vec::new(),
        disposition,
        parents: vec![readback.payload.id().clone(), PayloadId::new(attempt.intent.action_ref.id.as_str())],
    };
    write(view, episode, draft, now)
}

/// Semantic commit: may these changes be accepted? The deterministic validator tries them against the accepted state.
///
/// # Errors
/// The codes of the contract.
pub fn semantic_commit(
    view: &View,
    episode: &Episode,
    delta: &OnRecord<Delta>,
    now: &Timestamp,
) -> Result<Payload, Fault> {
    let (known_as, about) = delta_known_as(&delta.body)?;
    let objections = objections(view, episode, &known_as, delta.body.proposal_digest);
    let blocked = objections.iter().any(|objecting| stands_in_the_way(view, objecting));
    let dissent: Vec<Dissent> = objections.into_iter().map(|objecting| objecting.dissent).collect();
    let carried = episode.adjudications.iter().filter_map(|id| view.adjudications.get(id));
    let carried: Vec<Dissent> = carried
        .filter(|adjudication| branch!("adjudicate.dissent_carried", !adjudication.body.dissent.is_empty()))
        .flat_map(|adjudication| adjudication.body.dissent.clone())
        .collect();
    let mut snapshot: Vec<ArtifactRef> = delta
        .body
        .support_relations
        .iter()
        .filter_map(|relation| {
            let evidence = view.evidence.get(&relation.evidence_id)?;
            Some(evidence_ref(&relation.evidence_id, evidence.payload.content_digest()))
        })
        .collect();
    snapshot.dedup();
    let unsupported = delta
        .body
        .support_relations
        .iter()
        .any(|relation| borne_out(view, &episode.obligation_id, relation) != *relation);
    let (stance, disposition, reason) = match (unsupported, blocked) {
        (false, false) => (Stance::For, Disposition::Endorsed, "every change is supported by evidence on record"),
        (true, _) => {
            (Stance::Against, Disposition::Insufficient, "support that the changes claim is not what the record shows")
        }
        (false, true) => (Stance::Against, Disposition::Rejected, "a blocking objection is open"),
    };
    let draft = Draft {
        phase: Phase::SemanticCommit,
        subject: TypedRef {
            id: (&delta.body.delta_id).into(),
            digest: delta.body.proposal_digest,
            r#type: SubjectType::Delta,
        },
        snapshot,
        readbacks: Vec::new(),
        positions: with_conference(view, episode, &known_as, &about, validator(reason, stance, delta.reference())),
        dissent: dissent.into_iter().chain(carried).collect(),
        unresolved: Vec::new(),
        disposition,
        parents: vec![delta.payload.id().clone()],
    };
    write(view, episode, draft, now)
}

/// Whether an open objection of this class blocks: two classes do under every rule (DEC-38).
fn is_blocking(view: &View, class: ReasonClass) -> bool {
    let always = matches!(class, ReasonClass::NoGrant | ReasonClass::OutsideConstraint);
    let declared = view.state.rule(&decision_rule(view)).is_some_and(|rule| match &rule.body {
        RuleBody::Decision { blocking_classes, .. } => blocking_classes.contains(&class),
        RuleBody::Matching { .. } | RuleBody::Sufficiency { .. } => false,
    });
    always || declared
}

/// Records an adjudication: its subject exists, its rule is registered and satisfied, what it cites resolves. A positive
/// pre-action one is recorded with the heads it read.
pub(crate) fn intake(
    deciding: &mut Deciding<'_>,
    adjudication: &Adjudication,
    payload: &Arc<Payload>,
    auth: &AuthRecord,
) -> Result<Reply, Fault> {
    let mut denials = subject(deciding.view, adjudication, payload);
    denials.extend(rule(deciding.view, adjudication));
    denials.extend(citations(deciding.view, adjudication));
    denials.extend(foreign_positions(deciding.view, adjudication, payload));
    if !denials.is_empty() {
        return deciding.refuse((&adjudication.adjudication_id).into(), Some(payload.content_digest()), denials);
    }
    let claim = crate::streams::artifact_claim("adjudication", adjudication.adjudication_id.as_str());
    let reference = record_payload(deciding, payload, auth, Vec::new(), vec![(claim, payload.content_digest())])?;
    let mut recorded = vec![reference];
    if adjudication.phase == Phase::PreAction {
        recorded.extend(record_read_set(deciding, adjudication, payload)?);
    }
    Ok(Reply::Recorded(recorded))
}

fn record_read_set(
    deciding: &mut Deciding<'_>,
    adjudication: &Adjudication,
    payload: &Payload,
) -> Result<Option<ArtifactRef>, Fault> {
    let view = deciding.view;
    let action_id = ActionId::new(adjudication.subject.id.as_str());
    let action = view.logical.get(&action_id).and_then(|payload_id| view.actions.get(payload_id));
    let (Some(action), Some(obligation_id)) = (action, payload.envelope().obligation_ids.first()) else {
        return Ok(None);
    };
    let read = read_set(view, &action.body, obligation_id, &adjudication.evidence_snapshot.refs);
    let read_set = ReadSet {
        read_set_id: ArtifactId::new(crate::derived_id("reads", adjudication.adjudication_id.as_str())),
        adjudication_id: adjudication.adjudication_id.clone(),
        heads: read
            .into_iter()
            .map(|stream| {
                let head = deciding.batch.head(&stream).map(|head| head.link);
                (stream, head)
            })
            .collect(),
    };
    deciding.batch.artifact(ArtifactBody::from(read_set), Vec::new()).map(Some)
}

/// The subject exists before its adjudication, is of the phase's type, and was not produced by the adjudicator (DEC-37).
fn subject(view: &View, adjudication: &Adjudication, payload: &Payload) -> Vec<Denial> {
    let subject = &adjudication.subject;
    let known = match adjudication.phase {
        Phase::PreAction => view
            .logical
            .get(&ActionId::new(subject.id.as_str()))
            .and_then(|payload_id| view.actions.get(payload_id))
            .map(|action| (action.body.logical_digest, &action.payload)),
        Phase::PostOutcome => view
            .evidence
            .get(&EvidenceId::new(subject.id.as_str()))
            .filter(|evidence| evidence.body.readback.is_some())
            .map(|evidence| (evidence.payload.content_digest(), &evidence.payload)),
        Phase::SemanticCommit => view
            .deltas
            .get(&DeltaId::new(subject.id.as_str()))
            .map(|delta| (delta.body.proposal_digest, &delta.payload)),
    };
    if branch!("adjudicate.subject_unknown", known.is_none()) {
        return vec![
            Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "the subject is not on record").of(&subject.id),
        ];
    }
    match known {
        None => Vec::new(),
        Some((digest, _)) if branch!("adjudicate.other_subject", digest != subject.digest) => {
            vec![
                Denial::new(Code::SubjectMismatch, CheckKind::Resolution, "the subject on record has another digest")
                    .of(&subject.id),
            ]
        }
        Some((_, produced)) => {
            let own = produced.envelope().producer.actor_id == payload.envelope().producer.actor_id;
            match branch!("adjudicate.own_proposal", own) {
                true => vec![
                    Denial::new(Code::MissingAuthority, CheckKind::Authority, "nobody adjudicates what they proposed")
                        .of(&payload.envelope().producer.actor_id),
                ],
                false => Vec::new(),
            }
        }
    }
}

/// The rule is registered; its required roles are for it and nothing blocking is open where the disposition is positive.
fn rule(view: &View, adjudication: &Adjudication) -> Vec<Denial> {
    let reference = &adjudication.decision_rule_ref;
    let current = |rule: &&Rule| branch!("adjudicate.rule_current", rule.standing == Standing::Current);
    let Some(rule) = view.state.rule(reference).filter(current) else {
        return vec![
            Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "the decision rule is not registered")
                .of(&reference.id),
        ];
    };
    let RuleBody::Decision { required_roles, .. } = &rule.body else {
        return vec![
            Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "the rule is not a decision rule")
                .of(&reference.id),
        ];
    };
    if !adjudication.disposition.is_positive() {
        return Vec::new();
    }
    let mut denials = Vec::new();
    let present = |role: &Key| {
        adjudication.role_positions.iter().any(|position| position.role == *role && position.position != Stance::Absent)
    };
    for role in required_roles {
        if branch!("adjudicate.required_role_absent", !present(role)) {
            let reason = "the rule needs a position of this role";
            denials.push(Denial::new(Code::MissingEndorsement, CheckKind::Authority, reason).of(role));
        }
    }
    let blocking = adjudication
        .dissent
        .iter()
        .find(|dissent| dissent.subject == adjudication.subject.digest && is_blocking(view, dissent.reason_class));
    if let Some(blocking) = blocking
        && branch!("adjudicate.blocking_objection_open", true)
    {
        let code = match blocking.reason_class {
            ReasonClass::NoGrant => Code::MissingAuthority,
            ReasonClass::OutsideConstraint | ReasonClass::Factual | ReasonClass::Omission | ReasonClass::Risk => {
                Code::MissingEndorsement
            }
        };
        let reason = format!("a blocking objection is open: {}", blocking.text);
        denials.push(Denial::new(code, CheckKind::Authority, reason).of(blocking.reason_class));
    }
    denials
}

/// Every evidence item and readback that it cites is on record with its digest.
fn citations(view: &View, adjudication: &Adjudication) -> Vec<Denial> {
    let cited = adjudication.evidence_snapshot.refs.iter().chain(&adjudication.readback_refs);
    cited
        .filter_map(|cited| {
            let known = view
                .evidence
                .get(&EvidenceId::new(cited.id.as_str()))
                .map(|evidence| evidence.payload.content_digest());
            match known {
                Some(digest) if branch!("adjudicate.citation_agrees", digest == cited.digest) => None,
                Some(_) => {
                    let reason = "the cited evidence has another digest";
                    Some(Denial::new(Code::DigestMismatch, CheckKind::Resolution, reason).of(&cited.id))
                }
                None => {
                    let reason = "the cited evidence is not on record";
                    Some(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&cited.id))
                }
            }
        })
        .collect()
}
