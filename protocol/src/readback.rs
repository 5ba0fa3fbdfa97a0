//! Readback: what the target itself shows after an attempt, recorded and compared, never taken from the call's response.
//!
//! Spec: SR14, §6.3, C8, DEC-49, DEC-50.

mod looks;

pub use looks::{is_unseen, unseen_by};
pub(crate) use looks::{seen_again, unseen};

use crate::dispatch::{record_outcome, settled_by};
use crate::entry::AttemptStatus;
use crate::input::{Input, Reply};
use crate::ledger;
use crate::port::Observed;
use crate::sequence::{Deciding, record_payload};
use crate::services::{self, Lineage};
use crate::streams;
use crate::view::{Attempt, View};
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::canonical;
use closer_contracts::envelope::DisclosureRef;
use closer_contracts::evidence::{Evidence, Readback, ReadbackOutcome, TargetBinding};
use closer_contracts::id::{
    ArtifactId, AttemptId, EvidenceId, Key, ObligationId, ObservationStreamId, PayloadId, ReadbackMethodId, Text,
};
use closer_contracts::item::{ReadbackMethod, RepeatSafety, Standing};
use closer_contracts::refs::{Amounts, ArtifactRef, Plain, ProducerRole, SourceRef, Target, TypedValue, VersionedRef};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{Comparison, Expectation, Postcondition, TargetVersion};
use closer_contracts::{Fault, Payload};
use std::sync::Arc;

/// Whether an observation shows one expected thing; `None` where it does not show the field at all.
pub(crate) fn meets(expectation: &Expectation, observation: &TypedValue) -> Option<bool> {
    let shown = Plain(observation.value.0.get(expectation.field.as_str())?.clone());
    let expected = &expectation.value;
    let times = || {
        let time = |plain: &Plain| plain.as_text().and_then(|text| Timestamp::parse(text).ok());
        Some((time(&shown)?, time(expected)?))
    };
    let integers = || Some((shown.as_integer()?, expected.as_integer()?));
    match expectation.comparison {
        Comparison::Equals => Some(shown == *expected),
        Comparison::AtLeast => integers().map(|(shown, expected)| shown >= expected),
        Comparison::AtMost => integers().map(|(shown, expected)| shown <= expected),
        Comparison::NotBefore => times().map(|(shown, expected)| shown >= expected),
        Comparison::NotAfter => times().map(|(shown, expected)| shown <= expected),
    }
}

/// Compares an observation with the postcondition: `matched` only when every expectation is shown to hold on the exact
/// target; a mismatch before the settle time is `unknown`; another account establishes nothing (C8, DEC-50).
#[must_use]
pub fn compare(
    postcondition: &Postcondition,
    target: &Target,
    binding: &TargetBinding,
    observation: &TypedValue,
    settled: bool,
) -> ReadbackOutcome {
    if branch!("readback.other_target", binding.target != *target) {
        return ReadbackOutcome::Unknown;
    }
    let results: Vec<Option<bool>> =
        postcondition.expectations.iter().map(|expectation| meets(expectation, observation)).collect();
    if branch!(
        "readback.all_expectations_hold",
        !results.is_empty() && results.iter().all(|result| *result == Some(true))
    ) {
        return ReadbackOutcome::Matched;
    }
    let shown_otherwise = results.contains(&Some(false));
    match branch!("readback.settled_mismatch", settled && shown_otherwise) {
        true => ReadbackOutcome::NotMatched,
        false => ReadbackOutcome::Unknown,
    }
}

/// Whether the registered settle time of an attempt is over.
#[must_use]
pub fn is_settled(view: &View, attempt: &Attempt, observed_at: &Timestamp) -> bool {
    let settle_ms = view.state.operation(&attempt.action.operation).map_or(0, |entry| entry.settle_time_ms);
    attempt.sent_by().plus_ms(settle_ms) <= *observed_at
}

/// The stream of observations of a target by a method.
#[must_use]
pub fn observation_stream(method: &ReadbackMethod, target: &Target) -> ObservationStreamId {
    stream_of(&method.method, target)
}

fn stream_of(method: &ReadbackMethodId, target: &Target) -> ObservationStreamId {
    let stream = streams::target(target);
    ObservationStreamId::new(format!(
        "{method}.{}",
        stream.as_str().trim_start_matches("target:").get(..16).unwrap_or("all")
    ))
}

/// The attempts that block others on their target and that no episode reads back any more: their calls are over, their
/// episodes have ended, and what became of them is not settled (§8.2).
#[must_use]
pub fn unreconciled(view: &View) -> Vec<AttemptId> {
    let left = |attempt: &&Attempt| {
        let ended = view.episodes.get(&attempt.intent.episode_id).is_none_or(|episode| episode.end.is_some());
        !attempt.status.is_settled()
            && attempt.status != AttemptStatus::Intended
            && branch!("readback.episode_ended", ended)
    };
    let unsettled = view.unsettled.values().filter_map(|attempt_id| view.attempts.get(attempt_id));
    unsettled.filter(left).map(|attempt| attempt.intent.attempt_id.clone()).collect()
}

/// The readback method registered for an action's operation.
#[must_use]
pub fn method_for<'a>(view: &'a View, attempt: &Attempt) -> Option<&'a ReadbackMethod> {
    let entry = view.state.operation(&attempt.action.operation)?;
    view.state.readback_method_at(&entry.readback_method)
}

/// Drafts the EVIDENCE of an observation for these obligations. With an attempt it is that attempt's readback.
///
/// # Errors
/// The codes of the contract.
pub fn draft(
    view: &View,
    method: &ReadbackMethod,
    observed: &Observed,
    asked: &Target,
    attempt: Option<&Attempt>,
    obligation_ids: &[ObligationId],
    now: &Timestamp,
) -> Result<Payload, Fault> {
    let (target, observed_at, target_version, observation, limitations) = match observed {
        Observed::Seen { target, observed_at, target_version, observation, limitations } => {
            (target.clone(), observed_at.clone(), target_version.clone(), observation.clone(), limitations.clone())
        }
        Observed::Unavailable { observed_at, reason } => (
            asked.clone(),
            observed_at.clone(),
            TargetVersion::Unknown,
            TypedValue { r#type: Key::from("unavailable"), value: Plain(serde_json::Value::Null) },
            vec![reason.clone()],
        ),
    };
    let stream = observation_stream(method, asked);
    let number = view.observed.get(&stream).map_or(1, |(number, _)| number + 1);
    let evidence_id = EvidenceId::new(format!("ev-{stream}.{number}"));
    let binding =
        TargetBinding { target, observation_sequence_ref: stream, observation_version: number, target_version };
    let readback = attempt.map(|attempt| Readback {
        attempt_id: attempt.intent.attempt_id.clone(),
        expected_postcondition_ref: attempt.action.expected_postcondition.id.clone(),
        readback_method_ref: VersionedRef { id: (&method.method).into(), version: method.version },
        outcome: compare(
            &attempt.action.expected_postcondition,
            &attempt.action.target,
            &binding,
            &observation,
            is_settled(view, attempt, &observed_at),
        ),
    });
    let artifact_ref = ArtifactRef {
        id: ArtifactId::new(crate::derived_id("observation", evidence_id.as_str())),
        digest: canonical::digest_of(&observation)?,
    };
    let evidence = Evidence {
        evidence_id: evidence_id.clone(),
        source: SourceRef { source_id: method.source.clone() },
        artifact_ref,
        observed_at,
        target_binding: binding,
        observation,
        limitations,
        action_ref: attempt.map(|attempt| attempt.intent.action_id.clone()),
        readback,
        extensions: None,
    };
    let lineage = Lineage {
        parents: attempt.map(|attempt| PayloadId::new(attempt.intent.action_ref.id.as_str())).into_iter().collect(),
        obligation_ids: match attempt {
            Some(attempt) => vec![attempt.intent.obligation_id.clone()],
            None => obligation_ids.to_vec(),
        },
        episode_id: attempt
            .map(|attempt| attempt.intent.episode_id.clone())
            .filter(|episode_id| view.episodes.get(episode_id).is_some_and(|episode| episode.end.is_none())),
        causation_event_id: None,
        budget_ref: None,
    };
    let id = PayloadId::new(crate::derived_id("pl", evidence_id.as_str()));
    let producer = services::actor_ref(ProducerRole::Observer);
    let disclosure: DisclosureRef = services::internal_disclosure(view)?;
    services::write(view, id, producer, lineage, disclosure, evidence, now)
}

/// Records an observation; as a readback it settles its attempt where it can be settled.
pub(crate) fn intake(
    deciding: &mut Deciding<'_>,
    evidence: &Evidence,
    payload: &Arc<Payload>,
    auth: &AuthRecord,
) -> Result<Reply, Fault> {
    let denials = objections(deciding, evidence, payload);
    if !denials.is_empty() {
        return deciding.refuse((&evidence.evidence_id).into(), Some(payload.content_digest()), denials);
    }
    let own = vec![
        streams::evidence(&evidence.evidence_id),
        streams::target(&evidence.target_binding.target),
        streams::source_events(&evidence.source.source_id),
    ];
    let claim = (streams::artifact_claim("evidence", evidence.evidence_id.as_str()), payload.content_digest());
    let reference = record_payload(deciding, payload, auth, own, vec![claim])?;
    if let Some(readback) = &evidence.readback {
        settle(deciding, readback, &reference)?;
    }
    deciding.fire()?;
    Ok(Reply::Recorded(vec![reference]))
}

fn objections(deciding: &Deciding<'_>, evidence: &Evidence, payload: &Payload) -> Vec<Denial> {
    let view = deciding.view;
    let mut denials = Vec::new();
    let source = view.state.source(&evidence.source.source_id).filter(|source| source.standing == Standing::Current);
    let emits = source.is_some_and(|source| source.emitters.contains(&payload.envelope().producer.actor_id));
    if branch!("readback.source_unknown", !emits) {
        let reason = "the source is not registered, or the producer may not observe for it";
        denials
            .push(Denial::new(Code::Unauthenticated, CheckKind::Authentication, reason).of(&evidence.source.source_id));
    }
    let binding = &evidence.target_binding;
    let repeated = view
        .observed
        .get(&binding.observation_sequence_ref)
        .is_some_and(|(newest, _)| *newest >= binding.observation_version);
    if branch!("readback.observation_not_newer", repeated) {
        let reason = "the observation's number is not above the newest of its stream";
        denials
            .push(Denial::new(Code::KeyConflict, CheckKind::Resolution, reason).of(&binding.observation_sequence_ref));
    }
    let Some(readback) = &evidence.readback else {
        return denials;
    };
    let Some(attempt) = view.attempts.get(&readback.attempt_id) else {
        let reason = "the readback is of an attempt that is not on record";
        denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&readback.attempt_id));
        return denials;
    };
    if branch!("readback.other_action", evidence.action_ref.as_ref() != Some(&attempt.intent.action_id)) {
        let reason = "the readback names another action than its attempt";
        denials.push(Denial::new(Code::SubjectMismatch, CheckKind::Readback, reason).of(&readback.attempt_id));
    }
    if branch!("readback.before_the_attempt", evidence.observed_at < attempt.intent.authorized_at) {
        let reason = "the target was observed before the attempt began";
        denials.push(Denial::new(Code::SchemaInvalid, CheckKind::Readback, reason).of(&evidence.observed_at));
    }
    let registered = method_for(view, attempt).is_some_and(|method| {
        readback.readback_method_ref == VersionedRef { id: (&method.method).into(), version: method.version }
    });
    if branch!("readback.method_unregistered", !registered) {
        let reason = "the readback method is not the one registered for the operation";
        denials.push(
            Denial::new(Code::ContractIncompatible, CheckKind::Readback, reason).of(&readback.readback_method_ref.id),
        );
    }
    // A time that has not come yet ends no wait, whatever the producer's clock says (DEC-59).
    let observed_at = (&evidence.observed_at).min(&deciding.at.now);
    let settled = is_settled(view, attempt, observed_at);
    let outcome = compare(
        &attempt.action.expected_postcondition,
        &attempt.action.target,
        binding,
        &evidence.observation,
        settled,
    );
    if branch!("readback.outcome_misstated", outcome != readback.outcome) {
        let code = match binding.target == attempt.action.target {
            true => Code::SchemaInvalid,
            false => Code::TargetMismatch,
        };
        let reason = format!("what was observed comes to `{outcome}`");
        denials.push(Denial::new(code, CheckKind::Readback, reason).of(&binding.target.address));
    }
    denials
}

/// What is to be recorded of an attempt whose target nobody can look at: no method is registered for its operation.
///
/// # Errors
/// `unregistered_operation` where the operation is gone too.
pub fn blind(view: &View, attempt: &Attempt) -> Result<Input, Fault> {
    let entry = view
        .state
        .operation(&attempt.action.operation)
        .ok_or_else(|| Fault::new(Code::UnregisteredOperation, "the attempt's operation is not registered any more"))?;
    Ok(Input::Unseen {
        target: attempt.action.target.clone(),
        method: ReadbackMethodId::new(entry.readback_method.id.as_str()),
        obligation_id: attempt.intent.obligation_id.clone(),
        reason: Text::from("no readback method of this version is registered for the operation"),
    })
}

/// Settles the attempt: a match confirms the effect; a settled mismatch shows that there is none only where repetition is
/// safe or conditional. Anything else stays unknown.
fn settle(deciding: &mut Deciding<'_>, readback: &Readback, reference: &ArtifactRef) -> Result<(), Fault> {
    let Some(attempt) = deciding.view.attempts.get(&readback.attempt_id).filter(|attempt| !attempt.status.is_settled())
    else {
        return Ok(());
    };
    let repeatable = deciding
        .view
        .state
        .operation(&attempt.action.operation)
        .is_some_and(|entry| entry.repeat_safety != RepeatSafety::NotRepeatSafe);
    let (status, reason) = match readback.outcome {
        ReadbackOutcome::Matched => (AttemptStatus::EffectConfirmed, "the target shows the postcondition"),
        ReadbackOutcome::NotMatched if branch!("readback.absence_shown", repeatable) => {
            (AttemptStatus::NoEffectConfirmed, "the target shows another state after the settle time")
        }
        ReadbackOutcome::NotMatched | ReadbackOutcome::Unknown => {
            (AttemptStatus::OutcomeUnknown, "the target does not show what became of the attempt")
        }
    };
    let changes = status.is_settled() || attempt.status != AttemptStatus::OutcomeUnknown;
    if changes {
        record_outcome(deciding, attempt, settled_by(attempt, status, reference.clone(), Text::from(reason)))?;
    }
    if branch!("readback.settled", status.is_settled()) {
        let used = Amounts { calls: Some(1), time_ms: call_ms(attempt), ..Amounts::default() };
        ledger::settle(deciding, Key::new(readback.attempt_id.as_str()), used)?;
    }
    Ok(())
}

/// How long the call took, where it returned.
fn call_ms(attempt: &Attempt) -> Option<u64> {
    let outcome = attempt.outcome.as_deref()?;
    let (sent_at, responded_at) = (outcome.sent_at.as_ref()?, outcome.responded_at.as_ref()?);
    u64::try_from(responded_at.unix_ms().saturating_sub(sent_at.unix_ms())).ok()
}
