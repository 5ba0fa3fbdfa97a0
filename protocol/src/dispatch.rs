//! Dispatch: the monitor judges one attempt, its intent becomes durable, and what the call came to is recorded.
//!
//! Spec: §4.2, §8.1, §8.2, C7, DEC-46 to DEC-49.

use crate::entry::{AttemptStatus, Entry, Intent, Outcome};
use crate::input::{Effect, Reply};
use crate::ledger::{self, Ledger};
use crate::port::{Order, Performed};
use crate::sequence::Deciding;
use crate::streams;
use crate::view::{Attempt, OnRecord, View};
use closer_contracts::action::Action;
use closer_contracts::adjudication::Adjudication;
use closer_contracts::branch;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{AdjudicationId, ArtifactId, AttemptId, EvidenceId, Id, Key, ObligationId, PayloadId, Text};
use closer_contracts::item::{EffectClass, ItemKind};
use closer_contracts::record::{Reads, StreamId};
use closer_contracts::refs::{ArtifactRef, VersionedRef};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_monitor::{
    Admission, AttemptStanding, KeyStanding, MovedFact, Offered, Reservation, Situation, Verdict, judge,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The streams whose heads an assessment of an action reads: its grant, obligation, registry entry, constraints, every
/// scope it lies in, and the evidence and propositions it relies on (DEC-46). Absence is read too: an empty stream is one.
#[must_use]
pub fn read_set(view: &View, action: &Action, obligation_id: &ObligationId, evidence: &[ArtifactRef]) -> Vec<StreamId> {
    let mut read = streams::scopes_of(action, obligation_id);
    read.push(streams::item(ItemKind::Grant, action.authority_ref.as_str()));
    read.push(streams::item(ItemKind::Obligation, obligation_id.as_str()));
    read.push(streams::item(ItemKind::Operation, action.operation.as_str()));
    let constraints = view.state.constraints_in_force();
    read.extend(constraints.map(|constraint| streams::item(ItemKind::Constraint, constraint.constraint_id.as_str())));
    let propositions = view.state.obligation(obligation_id).map(|obligation| obligation.gap.propositions.clone());
    for proposition in propositions.into_iter().flatten() {
        read.extend(
            view.state.claims_on(&proposition).map(|claim| streams::item(ItemKind::Claim, claim.item.id().as_str())),
        );
        read.push(streams::proposition(&proposition));
    }
    for cited in evidence {
        let id = EvidenceId::new(cited.id.as_str());
        if let Some(evidence) = view.evidence.get(&id) {
            read.push(streams::target(&evidence.body.target_binding.target));
        }
        read.push(streams::evidence(&id));
    }
    read.sort();
    read.dedup();
    read
}

/// The facts of an adjudication's read set whose heads have moved since.
pub(crate) fn moved(view: &View, adjudication_id: &AdjudicationId, reads: &dyn Reads) -> Vec<MovedFact> {
    let Some(read_set) = view.read_sets.get(adjudication_id) else {
        return vec![MovedFact {
            fact: format!("read_set:{adjudication_id}"),
            change: "the assessment has no read set on record".into(),
        }];
    };
    let differs = |(stream, head): &&(StreamId, Option<Digest>)| reads.head(stream).map(|head| head.link) != *head;
    read_set
        .heads
        .iter()
        .filter(differs)
        .map(|(stream, head)| MovedFact {
            fact: stream.to_string(),
            change: match head {
                Some(_) => "it has changed since the action was assessed".into(),
                None => "it has come to be since the action was assessed".into(),
            },
        })
        .collect()
}

/// The newest pre-action adjudication of an action's content, as far as there is one.
#[must_use]
pub fn newest_assessment<'a>(view: &'a View, action: &Action) -> Option<&'a OnRecord<Adjudication>> {
    let newest = view.assessments.get(&action.logical_digest)?.last()?;
    view.adjudications.get(newest)
}

/// What is known of attempts on the action's operation and target.
fn attempt_standing(view: &View, action: &Action) -> AttemptStanding {
    if view.attempts.contains_key(&action.attempt_id) {
        return AttemptStanding::Reused;
    }
    let entry = view.state.operation(&action.operation);
    let reads = entry.is_some_and(|entry| entry.effect_class == EffectClass::ReadOnly);
    let unsettled = view.unsettled.get(&streams::unsettled(&action.target));
    if let Some(unsettled) = unsettled.filter(|_| !branch!("dispatch.reads_run", reads)) {
        return AttemptStanding::Unsettled(unsettled.clone());
    }
    let ids = view.attempts_of.get(&action.logical_digest).map(Vec::as_slice).unwrap_or_default();
    let earlier = || ids.iter().filter_map(|id| view.attempts.get(id));
    match earlier().find(|attempt| attempt.status == AttemptStatus::EffectConfirmed) {
        Some(done) => AttemptStanding::Done(done.intent.attempt_id.clone()),
        None if earlier().any(|attempt| attempt.outcome.as_ref().is_none_or(|outcome| outcome.sent_at.is_some())) => {
            AttemptStanding::Again
        }
        None => AttemptStanding::First,
    }
}

/// Asks the monitor for the admission of one attempt; admitted, its intent and reservation land in one append.
pub(crate) fn admit(
    deciding: &mut Deciding<'_>,
    payload_id: &PayloadId,
    adjudication_id: Option<&AdjudicationId>,
    reads: &dyn Reads,
) -> Result<Reply, Fault> {
    let view = deciding.view;
    let Some(on_record) = view.actions.get(payload_id) else {
        let denial =
            Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "no such action is on record").of(payload_id);
        return deciding.refuse(payload_id.into(), None, vec![denial]);
    };
    let (action, envelope) = (&on_record.body, on_record.payload.envelope());
    let Some(obligation_id) = envelope.obligation_ids.first() else {
        let fault = Fault::schema("an action names its obligation");
        return deciding.refuse(payload_id.into(), Some(action.logical_digest), vec![fault.into()]);
    };
    let offered = match adjudication_id {
        Some(id) => view.adjudications.get(id),
        None => newest_assessment(view, action),
    };
    let mut moved = offered.map_or_else(Vec::new, |offered| moved(view, &offered.body.adjudication_id, reads));
    moved.extend(crate::bench::changed_since_asked(view, &action.authority_ref));
    let assessed = offered.and_then(|offered| {
        let id = closer_contracts::id::ActionId::new(offered.body.subject.id.as_str());
        view.logical.get(&id).and_then(|payload_id| view.actions.get(payload_id))
    });
    let Some(ownership) = view.ownership(obligation_id) else {
        let denial =
            Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "the obligation is not accepted").of(obligation_id);
        return deciding.refuse(payload_id.into(), Some(action.logical_digest), vec![denial]);
    };
    let (path, lane) = (Ledger::path(obligation_id), ledger::lane_of(view, obligation_id));
    let reservation = view
        .state
        .operation(&action.operation)
        .map_or(Reservation::Fits, |entry| view.ledger.room(&path, &entry.reserved(), lane));
    let situation = Situation {
        now: &deciding.at.now,
        clock: deciding.at.clock,
        state: &view.state,
        producer: &envelope.producer,
        proposer: proposer(view, on_record),
        obligation_id,
        action,
        offered: offered
            .map(|offered| Offered { adjudication: &offered.body, assessed: assessed.map(|assessed| &*assessed.body) }),
        moved: &moved,
        ownership: &ownership,
        grant_calls: view.calls_under.get(&action.authority_ref).copied().unwrap_or(0),
        key: reads
            .claim(&streams::key_claim(&action.idempotency_key))
            .map_or(KeyStanding::Unused, KeyStanding::StandsFor),
        attempt: attempt_standing(view, action),
        disclosure: crate::disclose::inputs(view, &on_record.payload, action),
        reservation,
    };
    match (judge(&situation), offered) {
        (Verdict::Refused(denials), _) => deciding.refuse(payload_id.into(), Some(action.logical_digest), denials),
        (Verdict::Admitted(admission), Some(offered)) => intend(deciding, on_record, offered, admission),
        (Verdict::Admitted(_), None) => {
            let denial = Denial::new(Code::Unassessed, CheckKind::Authority, "no pre-action adjudication is on record");
            deciding.refuse(payload_id.into(), Some(action.logical_digest), vec![denial])
        }
    }
}

/// Records the intent and the reservation of an admitted attempt, and allows its effect once they are durable.
fn intend(
    deciding: &mut Deciding<'_>,
    on_record: &OnRecord<Action>,
    offered: &OnRecord<Adjudication>,
    admission: Admission,
) -> Result<Reply, Fault> {
    let (view, action, envelope) = (deciding.view, &on_record.body, on_record.payload.envelope());
    let (Some(obligation_id), Some(episode_id)) = (envelope.obligation_ids.first(), &envelope.episode_id) else {
        return Err(Fault::schema("an action names its obligation and episode"));
    };
    let Some(entry) = view.state.operation(&action.operation) else {
        return Err(Fault::new(Code::UnregisteredOperation, "the operation is not in the registry"));
    };
    let intent = Intent {
        attempt_id: action.attempt_id.clone(),
        action_id: action.action_id.clone(),
        action_ref: on_record.reference(),
        adjudication_ref: offered.reference(),
        logical_digest: action.logical_digest,
        obligation_id: obligation_id.clone(),
        episode_id: episode_id.clone(),
        authorized_at: deciding.at.now.clone(),
        valid_until: admission.valid_until().clone(),
        reserved: admission.worst_case().clone(),
        budget_id: crate::ledger::obligation_budget(obligation_id),
        restriction_cursor: view.restrictions_decided,
        profile_ref: profile_ref(view),
    };
    let intent_ref = record_intent(deciding, action, &offered.body.adjudication_id, intent)?;
    ledger::reserve(deciding, Key::new(action.attempt_id.as_str()), obligation_id, admission.worst_case().clone())?;
    let order = Order { action: action.clone(), entry: Arc::new(entry.clone()) };
    let restriction_cursor = view.restrictions_decided;
    deciding.effects.push(Effect::Perform { admission, order, restriction_cursor });
    Ok(Reply::Recorded(vec![intent_ref]))
}

/// Whose capabilities count: the participant whose result proposed the action, else the planner itself.
fn proposer<'a>(view: &'a View, action: &'a OnRecord<Action>) -> &'a closer_contracts::id::ActorId {
    let mut next = Some(action);
    while let Some(current) = next {
        let envelope = current.payload.envelope();
        if let Some(result) = envelope.parents.iter().find_map(|parent| view.results.get(parent)) {
            return &result.payload.envelope().producer.actor_id;
        }
        next = envelope
            .parents
            .iter()
            .find_map(|parent| view.actions.get(parent))
            .filter(|earlier| earlier.payload != current.payload);
    }
    &action.payload.envelope().producer.actor_id
}

/// The profile in force, for receipts and intents (Appendix A).
#[must_use]
pub fn profile_ref(view: &View) -> VersionedRef {
    view.state.profile().map_or(VersionedRef { id: Id::from("profile"), version: 0 }, |profile| VersionedRef {
        id: (&profile.profile_id).into(),
        version: profile.version,
    })
}

fn record_intent(
    deciding: &mut Deciding<'_>,
    action: &Action,
    adjudication_id: &AdjudicationId,
    intent: Intent,
) -> Result<ArtifactRef, Fault> {
    let heads = deciding.view.read_sets.get(adjudication_id).map(|read_set| read_set.heads.clone()).unwrap_or_default();
    for (stream, _) in heads {
        deciding.batch.guard(stream);
    }
    deciding.batch.guard(streams::owner(&intent.obligation_id));
    let id = crate::derived_id("intent", intent.attempt_id.as_str());
    let streams = vec![
        streams::attempts(action.logical_digest),
        streams::unsettled(&action.target),
        streams::episode(&intent.episode_id),
        streams::history(&intent.obligation_id),
    ];
    let claims = vec![
        (streams::key_claim(&action.idempotency_key), action.logical_digest),
        (streams::attempt_claim(&action.attempt_id), action.logical_digest),
    ];
    let digest = deciding.batch.push(&id, Entry::Intent(Arc::new(intent)), streams, claims)?;
    Ok(ArtifactRef { id: ArtifactId::new(id), digest })
}

/// Records what a call came to. It settles nothing but the certainty that nothing was sent.
pub(crate) fn performed(
    deciding: &mut Deciding<'_>,
    attempt_id: &AttemptId,
    performed: &Performed,
) -> Result<Reply, Fault> {
    let Some(attempt) = deciding.view.attempts.get(attempt_id) else {
        let denial =
            Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "no such attempt is on record").of(attempt_id);
        return deciding.refuse(attempt_id.into(), None, vec![denial]);
    };
    if branch!("dispatch.outcome_on_record", attempt.status != AttemptStatus::Intended) {
        let denial =
            Denial::new(Code::Duplicate, CheckKind::Resolution, "the attempt's outcome is on record").of(attempt_id);
        return deciding.refuse(attempt_id.into(), Some(attempt.intent.logical_digest), vec![denial]);
    }
    let outcome = match performed {
        Performed::Responded { sent_at, responded_at, response } => Outcome {
            sent_at: Some(sent_at.clone()),
            responded_at: Some(responded_at.clone()),
            response: Some(response.clone()),
            ..bare(attempt, AttemptStatus::Responded, "the call returned; the target is still to be read back".into())
        },
        Performed::Unknown { sent_at, reason } => {
            Outcome { sent_at: Some(sent_at.clone()), ..bare(attempt, AttemptStatus::OutcomeUnknown, reason.clone()) }
        }
        Performed::NotSent { reason } => bare(attempt, AttemptStatus::NoEffectConfirmed, reason.clone()),
    };
    let outcome = effectless(deciding.view, attempt, outcome);
    let settled = outcome.status.is_settled();
    let reference = record_outcome(deciding, attempt, outcome)?;
    if branch!("dispatch.nothing_left", settled) {
        ledger::release(deciding, Key::new(attempt_id.as_str()))?;
    }
    Ok(Reply::Recorded(vec![reference]))
}

/// The outcome of a read that was called for: by its registered class it leaves no effect, whatever became of the call.
fn effectless(view: &View, attempt: &Attempt, outcome: Outcome) -> Outcome {
    let read = crate::call::reads(view, &attempt.intent.episode_id, &attempt.action.operation);
    match branch!("dispatch.read_leaves_no_effect", read && !outcome.status.is_settled()) {
        true => Outcome { status: AttemptStatus::NoEffectConfirmed, ..outcome },
        false => outcome,
    }
}

fn bare(attempt: &Attempt, status: AttemptStatus, reason: Text) -> Outcome {
    Outcome {
        attempt_id: attempt.intent.attempt_id.clone(),
        intent_ref: attempt.intent_ref.clone(),
        status,
        sent_at: None,
        responded_at: None,
        response: None,
        readback_ref: None,
        reason,
    }
}

/// Records an outcome on the attempt's streams; the unsettled stream moves with every one.
pub(crate) fn record_outcome(
    deciding: &mut Deciding<'_>,
    attempt: &Attempt,
    outcome: Outcome,
) -> Result<ArtifactRef, Fault> {
    let action = &attempt.action;
    let streams = vec![
        streams::attempts(action.logical_digest),
        streams::unsettled(&action.target),
        streams::episode(&attempt.intent.episode_id),
        streams::history(&attempt.intent.obligation_id),
    ];
    let id = crate::derived_id(&format!("outcome.{}", outcome.status), outcome.attempt_id.as_str());
    deciding.effects.push(Effect::Advance(attempt.intent.episode_id.clone()));
    let digest = deciding.batch.push(&id, Entry::Outcome(Arc::new(outcome)), streams, Vec::new())?;
    Ok(ArtifactRef { id: ArtifactId::new(id), digest })
}

/// The settled attempt of a readback: confirmed, or shown not to have taken effect where that can be shown (DEC-49).
pub(crate) fn settled_by(attempt: &Attempt, status: AttemptStatus, readback_ref: ArtifactRef, reason: Text) -> Outcome {
    let before = attempt.outcome.as_deref();
    Outcome {
        sent_at: before.and_then(|outcome| outcome.sent_at.clone()),
        responded_at: before.and_then(|outcome| outcome.responded_at.clone()),
        readback_ref: Some(readback_ref),
        ..bare(attempt, status, reason)
    }
}

/// After a restart every attempt without an outcome is `outcome_unknown`: no permit is made again (design §5). One that is
/// still running in this process is left alone: to call it unknown would let it be repeated beside itself.
pub(crate) fn recover(deciding: &mut Deciding<'_>, running: &BTreeSet<AttemptId>) -> Result<Reply, Fault> {
    let view = deciding.view;
    let mut recovered = Vec::new();
    let intended = view.attempts.values().filter(|attempt| attempt.status == AttemptStatus::Intended);
    let is_running = |attempt: &&Attempt| running.contains(&attempt.intent.attempt_id);
    for attempt in intended.filter(|attempt| !branch!("dispatch.still_running", is_running(attempt))) {
        let reason = "the process ended between intent and outcome".into();
        let outcome = effectless(view, attempt, bare(attempt, AttemptStatus::OutcomeUnknown, reason));
        recovered.push(record_outcome(deciding, attempt, outcome)?);
    }
    let under_way: Vec<_> = view.under_way.values().cloned().collect();
    deciding.effects.extend(under_way.into_iter().map(Effect::Advance));
    deciding.effects.extend(view.eligible.keys().cloned().map(Effect::Eligible));
    Ok(Reply::Recorded(recovered))
}
