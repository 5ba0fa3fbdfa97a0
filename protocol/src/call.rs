//! A call: somebody outside asks for exactly one action, without having been given work first. Spec: §6.4, §8.2, C6, C7.
//!
//! The call is put on record and makes its obligation eligible; the episode that takes it up asks nobody, because what is
//! proposed is on record already, and goes on as any other: planned, assessed, judged, dispatched, read back. What is
//! decided here is only whether a call is a new one. A message that comes again is known by its transport key. An effect
//! that is asked for again is known by its intent: the obligation, or the session where the caller names none, the
//! operation, the target and the parameters that the registry entry lists as identifying; never by wording, time or a key
//! that a model chose.

mod fate;
mod known;

pub use fate::{Fate, fate};
pub use known::{Calls, Known};

use crate::entry::{ActivationEntry, ArtifactBody, Cause, Entry, Fired};
use crate::input::{Effect, Reply, Submission};
use crate::intake;
use crate::sequence::Deciding;
use crate::view::{Attempt, Episode, View};
use crate::{bench, streams};
use closer_contracts::audit::DecisionType;
use closer_contracts::branch;
use closer_contracts::canonical;
use closer_contracts::contract::Check;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{
    ActorId, ArtifactId, AttemptId, DecisionId, EpisodeId, Id, Key, ObligationId, OperationId, WorkId,
};
use closer_contracts::item::{EffectClass, OperationEntry, Standing as Registered};
use closer_contracts::refs::{ArtifactRef, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{ActionProposal, WorkResult};
use closer_state::State;
use serde::{Deserialize, Serialize};

/// The member of an operation's contract that says how long after its settlement an effect answers for a call with the same
/// intent, in milliseconds. Where it is missing or 0, each call is new.
pub const REPEAT_WINDOW: &str = "repeat_window_ms";

/// One exact action that somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its id.
    pub call_id: ArtifactId,
    /// Who calls.
    pub caller: ActorId,
    /// The obligation it is for.
    pub obligation_id: ObligationId,
    /// The session it is made in, where the caller names no obligation: then its intents are those of the session.
    pub session: Option<Key>,
    /// What makes a repeat of the same message the same call.
    pub transport_key: Option<Key>,
    /// The action.
    pub proposal: ActionProposal,
    /// The digest of the operation's contract as its endpoint shows itself now.
    pub endpoint: Digest,
    /// The packet whose stored action this is, where it is redeemed.
    pub redeems: Option<DecisionId>,
}

impl Check for Call {
    fn check(&self) -> Result<(), Fault> {
        self.call_id.check().map_err(|fault| fault.within("call_id"))?;
        self.caller.check().map_err(|fault| fault.within("caller"))?;
        self.obligation_id.check().map_err(|fault| fault.within("obligation_id"))?;
        self.session.check().map_err(|fault| fault.within("session"))?;
        self.transport_key.check().map_err(|fault| fault.within("transport_key"))?;
        self.proposal.check().map_err(|fault| fault.within("proposal"))
    }
}

impl Call {
    /// What a repeat of the message must be equal in.
    fn content(&self) -> Result<Digest, Fault> {
        canonical::digest_of(&(&self.caller, &self.obligation_id, &self.proposal, &self.redeems))
    }

    /// What the caller is after, by the entry's identifying parameters; by all of them where there is no entry.
    pub(crate) fn intent(&self, state: &State) -> Result<Digest, Fault> {
        let entry = state.operation(&self.proposal.operation);
        let counts = |name: &Key| entry.is_none_or(|entry| entry.identifying_parameters.contains(name));
        let identifying: Vec<_> = self.proposal.parameters.iter().filter(|(name, _)| counts(name)).collect();
        let scope = self.session.as_ref().map_or(self.obligation_id.as_str(), Key::as_str);
        let named = self.session.is_none();
        canonical::digest_of(&(named, scope, &self.proposal.operation, &self.proposal.target, identifying))
    }
}

/// How long after settlement an effect answers for a call with the same intent, in milliseconds.
#[must_use]
pub fn repeat_window_ms(entry: &OperationEntry) -> u64 {
    entry.contract.0.get(REPEAT_WINDOW).and_then(serde_json::Value::as_u64).unwrap_or(0)
}

/// How a call stands to those before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing before it answers for it.
    New,
    /// An earlier call answers for it: it is under way, or its effect was settled within the repeat window.
    Answered(ArtifactRef),
    /// An attempt with the same intent is not settled: nobody knows whether its effect took place.
    Unsettled(AttemptId),
}

/// How a call stands to those with the same intent. Reads always run.
///
/// # Errors
/// `schema_invalid` when it has no canonical form.
pub fn standing(view: &View, call: &Call, entry: &OperationEntry, now: &Timestamp) -> Result<Standing, Fault> {
    if branch!("call.reads_run", entry.effect_class == EffectClass::ReadOnly) {
        return Ok(Standing::New);
    }
    let window_ms = repeat_window_ms(entry);
    for earlier in view.calls.with_intent(call.intent(&view.state)?) {
        let reference = || earlier.reference.clone();
        let Some(episode) = view.calls.episode_of(&earlier.call.call_id).and_then(|id| view.episodes.get(id)) else {
            if branch!("call.same_waits", window_ms > 0) {
                return Ok(Standing::Answered(reference()));
            }
            continue;
        };
        match newest_attempt(view, episode) {
            Some(attempt) if branch!("call.attempt_unsettled", is_open(attempt, episode)) => {
                return Ok(Standing::Unsettled(attempt.intent.attempt_id.clone()));
            }
            Some(attempt) if branch!("call.repeated", answers(attempt, window_ms, now)) => {
                return Ok(Standing::Answered(reference()));
            }
            _ if branch!("call.same_under_way", episode.end.is_none() && window_ms > 0) => {
                return Ok(Standing::Answered(reference()));
            }
            Some(_) | None => {}
        }
    }
    Ok(Standing::New)
}

/// The newest attempt that an episode made.
pub(crate) fn newest_attempt<'a>(view: &'a View, episode: &Episode) -> Option<&'a Attempt> {
    let actions = episode.actions.iter().rev().filter_map(|id| view.actions.get(id));
    actions.filter_map(|action| view.attempts.get(&action.body.attempt_id)).next()
}

/// Whether an attempt is unsettled and nothing is under way any more that would settle it by itself.
fn is_open(attempt: &Attempt, episode: &Episode) -> bool {
    !attempt.status.is_settled() && episode.end.is_some()
}

/// Whether the effect of an attempt answers for another call now.
fn answers(attempt: &Attempt, window_ms: u64, now: &Timestamp) -> bool {
    let confirmed = attempt.status == crate::entry::AttemptStatus::EffectConfirmed;
    confirmed && window_ms > 0 && *now <= attempt.sent_by().plus_ms(window_ms)
}

/// Records a call, or says which earlier one answers for it: the reference that is told is that of the call that counts.
pub(crate) fn intake(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    call: &Call,
) -> Result<Reply, Fault> {
    let view = deciding.view;
    let subject = Id::new(call.call_id.as_str());
    let digest = Some(submission.content.digest()?);
    let denials = objections(view, submission, call);
    if !denials.is_empty() {
        return deciding.refuse(subject, digest, denials);
    }
    if let Some(earlier) = call.transport_key.as_ref().and_then(|key| view.calls.under(key)) {
        let same = earlier.call.content()? == call.content()?;
        if branch!("call.key_stands_for_another", !same) {
            let reason = "the key of this message stands for another call";
            let denial = Denial::new(Code::KeyReuseChangedContent, CheckKind::Resolution, reason);
            return deciding.refuse(subject, digest, vec![denial.of(&earlier.call.call_id)]);
        }
        return Ok(Reply::Recorded(vec![earlier.reference.clone()]));
    }
    if let Some(earlier) = call.redeems.as_ref().and_then(|packet| view.calls.redemption_of(packet))
        && branch!("call.redeemed_once", true)
    {
        return Ok(Reply::Recorded(vec![earlier.reference.clone()]));
    }
    let Some(entry) = view.state.operation(&call.proposal.operation) else {
        return Err(Fault::new(Code::UnregisteredOperation, "the operation is not in the registry"));
    };
    match standing(view, call, entry, &deciding.at.now)? {
        Standing::New => record(deciding, submission, call),
        Standing::Answered(earlier) => Ok(Reply::Recorded(vec![earlier])),
        Standing::Unsettled(attempt_id) => {
            let reason = "an attempt with the same intent is not settled; it is read back or confirmed first";
            let denial = Denial::new(Code::OutcomeUnknown, CheckKind::Readback, reason).of(&attempt_id);
            deciding.refuse(subject, digest, vec![denial])
        }
    }
}

fn record(deciding: &mut Deciding<'_>, submission: &Submission<ArtifactBody>, call: &Call) -> Result<Reply, Fault> {
    let streams = vec![streams::history(&call.obligation_id)];
    let reference = deciding.batch.artifact((*submission.content).clone(), streams)?;
    deciding.batch.auth(submission.auth.record())?;
    wake(deciding, &call.call_id, &call.obligation_id, reference.clone())?;
    Ok(Reply::Recorded(vec![reference]))
}

/// Makes the obligation of a call eligible for it.
fn wake(
    deciding: &mut Deciding<'_>,
    call_id: &ArtifactId,
    obligation_id: &ObligationId,
    reference: ArtifactRef,
) -> Result<(), Fault> {
    let cause = Cause {
        event_id: None,
        match_receipt: Some(reference),
        reentry_id: None,
        activation_key: None,
        reason: intake::bounded(&format!("it was called for: {call_id}")),
    };
    let fired = Fired { obligation_id: obligation_id.clone(), cause };
    let id = crate::derived_id("called", call_id.as_str());
    let streams = vec![streams::history(obligation_id)];
    deciding.batch.push(&id, Entry::Activation(ActivationEntry::Fired(fired)), streams, Vec::new())?;
    deciding.effects.push(Effect::Eligible(obligation_id.clone()));
    Ok(())
}

/// Everything that speaks against putting a call on record; whether its action may be done is the monitor's to say.
fn objections(view: &View, submission: &Submission<ArtifactBody>, call: &Call) -> Vec<Denial> {
    let mut denials = Vec::new();
    let own = submission.producer.actor_id == call.caller && submission.producer.role == ProducerRole::Participant;
    if branch!("call.not_the_callers", !own) {
        let reason = "a call is made by a participant, in its own name";
        denials.push(Denial::new(Code::Unauthenticated, CheckKind::Authentication, reason).of(&call.caller));
    }
    denials.extend(unplaced(view, &call.obligation_id, &call.proposal.operation, call.endpoint));
    if branch!("call.was_forwarded", was_forwarded(view, call)) {
        let reason = "this message was forwarded ungoverned while observing; look at the target";
        denials.push(Denial::new(Code::OutcomeUnknown, CheckKind::Readback, reason).of(&call.proposal.operation));
    }
    denials.extend(call.redeems.as_ref().and_then(|packet| unredeemable(view, call, packet)));
    denials
}

/// Whether the message of a call was forwarded already, while observing was on.
fn was_forwarded(view: &View, call: &Call) -> bool {
    call.transport_key.as_ref().is_some_and(|key| view.ungoverned.under(key).is_some())
}

/// Why a call has no place: its obligation is not open, or its operation is not there as it was registered.
pub(crate) fn unplaced(
    view: &View,
    obligation_id: &ObligationId,
    operation: &OperationId,
    endpoint: Digest,
) -> Vec<Denial> {
    let mut denials = Vec::new();
    let obligation = view.state.obligation(obligation_id);
    if branch!("call.obligation_not_open", !obligation.is_some_and(|obligation| obligation.status.is_open())) {
        let reason = "the obligation is not accepted and open";
        denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(obligation_id));
    }
    let entry = view.state.operation(operation);
    let entry = entry.filter(|entry| entry.standing == Registered::Current);
    if branch!("call.operation_unregistered", entry.is_none()) {
        let reason = "the operation is not in the registry";
        let denial = Denial::new(Code::UnregisteredOperation, CheckKind::Resolution, reason);
        denials.push(denial.of(operation));
    }
    if branch!("call.endpoint_differs", entry.is_some_and(|entry| entry.contract_digest != endpoint)) {
        let reason = "what the endpoint shows now is not what was registered; a person has to look at it anew";
        denials.push(Denial::new(Code::EndpointMismatch, CheckKind::Resolution, reason).of(operation));
    }
    denials
}

/// Why a packet cannot be redeemed by this call: it is not this caller's, is of another action, or was not allowed.
fn unredeemable(view: &View, call: &Call, packet_id: &DecisionId) -> Option<Denial> {
    let deny = |code, reason: &str| Some(Denial::new(code, CheckKind::Authority, reason).of(packet_id));
    let Some(packet) = view.packets.get(packet_id) else {
        return deny(Code::UnresolvedRef, "no such packet is on The Bench");
    };
    let asked_by = packet.packet.payload.envelope().episode_id.as_ref().and_then(|id| view.calls.of_episode(id));
    if branch!("call.packet_of_another", asked_by.is_none_or(|asked| asked.call.caller != call.caller)) {
        return deny(Code::Unauthenticated, "the packet does not come from a call of this caller");
    }
    let same = bench::proposed(&packet.packet.body) == Some(&call.proposal);
    if branch!("call.redeems_other_content", !same) {
        return deny(Code::SubjectMismatch, "what is redeemed is not exactly what the packet asks for");
    }
    let newest = view.decisions.get(packet_id).and_then(|decisions| decisions.last());
    let allowed = newest.is_some_and(|(_, decision)| decision.decision_type == DecisionType::ScopedAuthorization);
    match branch!("call.packet_not_allowed", !allowed) {
        true if newest.is_none() => deny(Code::MissingAuthority, "the packet is not answered yet"),
        true => deny(Code::MissingAuthority, "the packet was not allowed"),
        false => None,
    }
}

/// The answer that stands for a participant's where an episode serves a call: exactly the action that was asked for.
#[must_use]
pub fn result(view: &View, episode_id: &EpisodeId, work_id: &WorkId) -> Option<WorkResult> {
    let known = view.calls.of_episode(episode_id)?;
    Some(WorkResult {
        work_id: work_id.clone(),
        claims: Vec::new(),
        action_proposals: vec![known.call.proposal.clone()],
        assessments: Vec::new(),
        objections: Vec::new(),
        unresolved: Vec::new(),
        skill_receipts: Vec::new(),
        extensions: None,
    })
}

/// Whether an episode has nothing to take up: it was woken by the answer to a packet alone, and the packet comes from a
/// call, so that whoever called redeems it.
pub(crate) fn waits_for_redemption(view: &View, episode: &Episode) -> bool {
    let of_a_call = |cause: &Cause| {
        let decision = cause.match_receipt.as_ref().filter(|_| cause.event_id.is_none() && cause.reentry_id.is_none());
        decision.is_some_and(|cited| view.calls.answers_packet_of_call(view, cited))
    };
    !episode.causes.is_empty() && episode.causes.iter().all(of_a_call)
}

/// Whether an episode's operation is a read that was called for: it leaves no effect to be read back.
pub(crate) fn reads(view: &View, episode_id: &EpisodeId, operation: &OperationId) -> bool {
    let entry = view.state.operation(operation);
    view.calls.of_episode(episode_id).is_some()
        && entry.is_some_and(|entry| entry.effect_class == EffectClass::ReadOnly)
}

/// Goes on with the next call that waits on an obligation whose episode has ended.
pub(crate) fn go_on(deciding: &mut Deciding<'_>, obligation_id: &ObligationId) -> Result<(), Fault> {
    let next = deciding.view.calls.next_of(obligation_id).cloned();
    let Some(next) = next.filter(|_| !deciding.view.eligible.contains_key(obligation_id)) else {
        return Ok(());
    };
    let cause = Cause {
        event_id: None,
        match_receipt: Some(next.reference.clone()),
        reentry_id: None,
        activation_key: None,
        reason: intake::bounded(&format!("its turn has come: {}", next.call.call_id)),
    };
    let fired = Fired { obligation_id: obligation_id.clone(), cause };
    let id = crate::derived_id("turn", next.call.call_id.as_str());
    let streams = vec![streams::history(obligation_id)];
    deciding.batch.push(&id, Entry::Activation(ActivationEntry::Fired(fired)), streams, Vec::new())?;
    deciding.effects.push(Effect::Eligible(obligation_id.clone()));
    Ok(())
}
