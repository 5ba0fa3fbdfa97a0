//! The ordinary trace: from what made the obligation due to the receipt of what was accepted. Spec: C15, DEC-108.

use super::chain::{Chain, Located};
use super::{Fault, From, Gap, Stage, Trace};
use crate::entry::{Activation, ArtifactBody, Cause};
use crate::view::{OnRecord, View};
use closer_contracts::Payload;
use closer_contracts::adjudication::{Adjudication, Phase};
use closer_contracts::audit::UserDecision;
use closer_contracts::branch;
use closer_contracts::canonical;
use closer_contracts::delta::{AdmissionPath, Change, ChangeClass, Delta};
use closer_contracts::digest::Digest;
use closer_contracts::envelope::Body;
use closer_contracts::evidence::Evidence;
use closer_contracts::id::{AttemptId, EpisodeId, EventId, EvidenceId, PayloadId};
use closer_contracts::item::ItemKind;
use closer_contracts::refs::ArtifactRef;
use std::sync::Arc;

/// Walks the trace of an ordinary commit from its receipt.
///
/// # Errors
/// The first gap, with the citation that led to it.
pub fn check_ordinary(chain: &Chain, version: u64) -> Result<Trace, Gap> {
    let nothing = |missing, fault| Gap { missing, cited_by: None, citation: format!("version {version}"), fault };
    let (receipt, digest, position) = chain.receipt(version).ok_or_else(|| nothing(Stage::Receipt, Fault::Missing))?;
    let mut trace = Trace::default();
    let from = From::new(Stage::Receipt, &receipt.receipt_id, position);
    from.demand(
        receipt.admission_path == AdmissionPath::Ordinary,
        Stage::Receipt,
        &receipt.receipt_id,
        "is the receipt of an urgent commit",
    )?;
    let commit = from.follow(Stage::Commit, version, chain.commits.get(&version))?;
    let same =
        commit.content.delta.proposal_digest == receipt.proposal_digest && commit.content.after == receipt.after_state;
    from.demand(branch!("trace.receipt_fits_commit", same), Stage::Commit, version, "is another transition")?;
    // The endorsements that the receipt cites stand before the commit itself.
    let cited = From::new(Stage::Receipt, &receipt.receipt_id, commit.position);
    let mut endorsed = None;
    for reference in &receipt.adjudication_refs {
        let located = cited.follow(Stage::Endorsement, &reference.id, chain.cited(reference))?;
        let endorsement =
            adjudication(located).filter(|body| body.phase == Phase::SemanticCommit && body.disposition.is_positive());
        let endorses = endorsement.is_some_and(|body| body.subject.digest == receipt.proposal_digest);
        if branch!("trace.endorses_proposal", endorses) {
            endorsed = Some(located);
        }
    }
    let unendorsed =
        || from.gap(Stage::Endorsement, receipt.proposal_digest, Fault::Differs("no cited adjudication endorses"));
    let endorsement = endorsed.ok_or_else(unendorsed)?;
    endorsed_delta(chain, endorsement, &mut trace)?;
    let text = format!("committed as version {version}");
    trace.push(Stage::Receipt, &receipt.receipt_id, digest, text);
    Ok(trace)
}

/// Walks the trace of a delta that is about to be committed, from its endorsement.
///
/// # Errors
/// The first gap, with the citation that led to it.
pub fn check_delta(view: &View, delta: &OnRecord<Delta>, endorsement: &OnRecord<Adjudication>) -> Result<Trace, Gap> {
    let chain = &view.chain;
    let from = From::new(Stage::Commit, &delta.body.delta_id, chain.next());
    let located = from.follow(Stage::Endorsement, endorsement.payload.id(), chain.payload(endorsement.payload.id()))?;
    let endorses = endorsement.body.subject.digest == delta.body.proposal_digest;
    from.demand(endorses, Stage::Endorsement, endorsement.payload.id(), "endorses another proposal")?;
    let mut trace = Trace::default();
    endorsed_delta(chain, located, &mut trace)?;
    Ok(trace)
}

/// Walks the trace of an attempt, also of one that no commit rests on: what made it due, its admission, and what was read
/// back of it.
///
/// # Errors
/// The first gap, with the citation that led to it.
pub fn check_attempt(view: &View, attempt_id: &AttemptId) -> Result<Trace, Gap> {
    let chain = &view.chain;
    let nothing =
        || Gap { missing: Stage::Dispatch, cited_by: None, citation: attempt_id.to_string(), fault: Fault::Missing };
    let located = chain.intents.get(attempt_id).ok_or_else(nothing)?;
    let mut trace = Trace::default();
    dispatch(chain, located, &mut trace)?;
    let of_it = |evidence: &&OnRecord<Evidence>| {
        evidence.body.readback.as_ref().is_some_and(|readback| readback.attempt_id == *attempt_id)
    };
    let mut looks: Vec<_> = view.evidence.values().filter(of_it).collect();
    looks.sort_by_key(|look| look.body.target_binding.observation_version);
    let from = From::new(Stage::Readback, attempt_id, chain.next());
    for look in looks {
        let id = &look.body.evidence_id;
        readback(chain, from.follow(Stage::Readback, id, chain.evidence(id))?, &mut trace)?;
    }
    Ok(trace)
}

fn adjudication(located: &Located<Arc<Payload>>) -> Option<&Adjudication> {
    if let Body::Adjudication(body) = located.content.body() { Some(body) } else { None }
}

/// The endorsement cites a delta that stood before it.
fn endorsed_delta(chain: &Chain, endorsement: &Located<Arc<Payload>>, trace: &mut Trace) -> Result<(), Gap> {
    let payload = &endorsement.content;
    let from = From::new(Stage::Endorsement, payload.id(), endorsement.position);
    let Some(body) = adjudication(endorsement) else {
        return Err(from.gap(Stage::Endorsement, payload.id(), Fault::Differs("is no adjudication")));
    };
    let delta_id = closer_contracts::id::DeltaId::new(body.subject.id.as_str());
    let located = from.follow(Stage::Delta, &delta_id, chain.delta(&delta_id))?;
    delta(chain, located, &from, body.subject.digest, trace)?;
    trace.push(
        Stage::Endorsement,
        payload.id(),
        payload.content_digest(),
        format!("{} under {}", body.disposition, body.decision_rule_ref.id),
    );
    Ok(())
}

fn delta(
    chain: &Chain,
    located: &Located<Arc<Payload>>,
    from: &From,
    proposal_digest: Digest,
    trace: &mut Trace,
) -> Result<(), Gap> {
    let payload = &located.content;
    let Body::Delta(body) = payload.body() else {
        return Err(from.gap(Stage::Delta, payload.id(), Fault::Differs("is no delta")));
    };
    let same = body.proposal_digest == proposal_digest;
    from.demand(branch!("trace.delta_is_the_proposal", same), Stage::Delta, &body.delta_id, "is another proposal")?;
    let own = From::new(Stage::Delta, payload.id(), located.position);
    let mut founded = false;
    for parent in &payload.envelope().parents {
        founded |= predecessor(chain, &own, parent, payload.envelope().episode_id.as_ref(), trace)?;
    }
    if branch!("trace.delta_unfounded", !founded && rests_on_work(payload, body)) {
        return Err(own.gap(Stage::Work, &body.delta_id, Fault::Differs("rests on no work")));
    }
    for relation in &body.support_relations {
        own.follow(Stage::Evidence, &relation.evidence_id, chain.evidence(&relation.evidence_id))?;
    }
    trace.push(
        Stage::Delta,
        &body.delta_id,
        body.proposal_digest,
        format!("{} changes on version {}", body.changes.len(), body.parent_state.version),
    );
    Ok(())
}

/// One predecessor of a delta; gives whether work stands behind it.
fn predecessor(
    chain: &Chain,
    own: &From,
    parent: &PayloadId,
    episode_id: Option<&EpisodeId>,
    trace: &mut Trace,
) -> Result<bool, Gap> {
    let expected = match chain.acted(episode_id) {
        true => Stage::PostOutcome,
        false => Stage::Result,
    };
    let located = own.follow(expected, parent, chain.payload(parent))?;
    match located.content.body() {
        Body::Adjudication(body) if body.phase == Phase::PostOutcome => {
            action_block(chain, located, trace).map(|()| true)
        }
        // What was reissued on a newer parent follows from the original, whose own endorsement it cites beside it.
        Body::Delta(original) => delta(chain, located, own, original.proposal_digest, trace).map(|()| true),
        Body::Adjudication(body) if body.phase == Phase::SemanticCommit => Ok(false),
        Body::Result(_) => result(chain, located, trace).map(|()| true),
        Body::Action(_) | Body::Adjudication(_) => {
            Err(own.gap(Stage::PostOutcome, parent, Fault::Differs("is only part of an action's trace")))
        }
        Body::Evidence(body) if body.readback.is_some() => {
            Err(own.gap(Stage::PostOutcome, parent, Fault::Differs("is only part of an action's trace")))
        }
        Body::Event(_)
        | Body::Obligation(_)
        | Body::Route(_)
        | Body::Work(_)
        | Body::Evidence(_)
        | Body::Reentry(_)
        | Body::Handoff(_)
        | Body::Briefcase(_) => Ok(false),
    }
}

/// Whether a delta needs work behind it: what it says to be known, or to be settled. What is wanted or permitted rests on
/// its own authority, and routine changes on an accepted rule.
fn rests_on_work(payload: &Payload, delta: &Delta) -> bool {
    let knowledge = delta.changes.iter().any(|change| match change {
        Change::Add { item } | Change::Revise { item, .. } => matches!(item.kind(), ItemKind::Claim | ItemKind::Method),
        Change::SetConditions { .. } => true,
        Change::SetStatus { .. } => change.class() == ChangeClass::Closing && delta.required_authority_refs.is_empty(),
        Change::Suspend { .. }
        | Change::Retract { .. }
        | Change::RevokeGrant { .. }
        | Change::AdmitObligation { .. }
        | Change::SetTriggers { .. }
        | Change::SetOwner { .. }
        | Change::AddDependency { .. }
        | Change::RemoveDependency { .. }
        | Change::SuspendEligibility { .. }
        | Change::LiftRestriction { .. } => false,
    });
    knowledge || payload.envelope().episode_id.is_some() && delta.required_authority_refs.is_empty()
}

/// From the judgment of an outcome back to the proposal of its action: all of it, or a gap.
fn action_block(chain: &Chain, judged: &Located<Arc<Payload>>, trace: &mut Trace) -> Result<(), Gap> {
    let payload = &judged.content;
    let from = From::new(Stage::PostOutcome, payload.id(), judged.position);
    let Some(body) = adjudication(judged) else {
        return Err(from.gap(Stage::PostOutcome, payload.id(), Fault::Differs("is no adjudication")));
    };
    let read = body.readback_refs.iter().any(|reference| reference.digest == body.subject.digest);
    from.demand(
        branch!("trace.judges_its_readback", read),
        Stage::Readback,
        &body.subject.id,
        "is not among the readbacks it cites",
    )?;
    for reference in &body.readback_refs {
        let located =
            from.follow(Stage::Readback, &reference.id, chain.evidence(&EvidenceId::new(reference.id.as_str())))?;
        let same = located.content.content_digest() == reference.digest;
        from.demand(branch!("trace.readback_is_cited", same), Stage::Readback, &reference.id, "has another digest")?;
        readback(chain, located, trace)?;
    }
    trace.push(Stage::PostOutcome, payload.id(), payload.content_digest(), body.disposition.to_string());
    Ok(())
}

pub(super) fn readback(chain: &Chain, located: &Located<Arc<Payload>>, trace: &mut Trace) -> Result<(), Gap> {
    let payload = &located.content;
    let from = From::new(Stage::Readback, payload.id(), located.position);
    let read = if let Body::Evidence(body) = payload.body() { body.readback.as_ref() } else { None };
    let Some(read) = read else {
        return Err(from.gap(Stage::Readback, payload.id(), Fault::Differs("reads back no attempt")));
    };
    let intent = from.follow(Stage::Dispatch, &read.attempt_id, chain.intents.get(&read.attempt_id))?;
    dispatch(chain, intent, trace)?;
    trace.push(Stage::Readback, payload.id(), payload.content_digest(), format!("the target {}", read.outcome));
    Ok(())
}

fn dispatch(chain: &Chain, located: &Located<Arc<crate::entry::Intent>>, trace: &mut Trace) -> Result<(), Gap> {
    let intent = &located.content;
    let from = From::new(Stage::Dispatch, &intent.attempt_id, located.position);
    let judged = from.follow(Stage::PreAction, &intent.adjudication_ref.id, chain.cited(&intent.adjudication_ref))?;
    let body = adjudication(judged).filter(|body| body.phase == Phase::PreAction && body.disposition.is_positive());
    let justifies = body.is_some_and(|body| body.subject.digest == intent.logical_digest);
    let citation = &intent.adjudication_ref.id;
    from.demand(
        branch!("trace.assessment_justifies", justifies),
        Stage::PreAction,
        citation,
        "does not justify this action",
    )?;
    let action = from.follow(Stage::Action, &intent.action_ref.id, chain.cited(&intent.action_ref))?;
    let same = if let Body::Action(body) = action.content.body() {
        body.logical_digest == intent.logical_digest
    } else {
        false
    };
    from.demand(
        branch!("trace.dispatched_as_proposed", same),
        Stage::Action,
        &intent.action_ref.id,
        "is another action",
    )?;
    proposal(chain, action, trace)?;
    let assessor = From::new(Stage::PreAction, judged.content.id(), judged.position);
    let proposed = chain.proposal(&intent.action_id);
    assessor.follow(Stage::Action, &intent.action_id, proposed)?;
    trace.push(
        Stage::PreAction,
        judged.content.id(),
        judged.content.content_digest(),
        body.map_or_else(String::new, |body| body.disposition.to_string()),
    );
    let digest = canonical::digest_of(&**intent).unwrap_or(intent.logical_digest);
    trace.push(Stage::Dispatch, &intent.attempt_id, digest, format!("authorized under {}", intent.profile_ref.id));
    Ok(())
}

/// The proposal of an action follows from a result, through its earlier attempts where there are any.
fn proposal(chain: &Chain, located: &Located<Arc<Payload>>, trace: &mut Trace) -> Result<(), Gap> {
    let payload = &located.content;
    let from = From::new(Stage::Action, payload.id(), located.position);
    let mut proposed = false;
    for parent in &payload.envelope().parents {
        let cited = from.follow(Stage::Result, parent, chain.payload(parent))?;
        match cited.content.body() {
            Body::Result(_) => result(chain, cited, trace)?,
            Body::Action(_) => proposal(chain, cited, trace)?,
            Body::Event(_)
            | Body::Obligation(_)
            | Body::Route(_)
            | Body::Work(_)
            | Body::Evidence(_)
            | Body::Adjudication(_)
            | Body::Delta(_)
            | Body::Reentry(_)
            | Body::Handoff(_)
            | Body::Briefcase(_) => continue,
        }
        proposed = true;
    }
    from.demand(
        branch!("trace.action_follows_result", proposed),
        Stage::Result,
        payload.id(),
        "follows from no result",
    )?;
    let text = if let Body::Action(body) = payload.body() {
        format!("{} on {}", body.operation, body.target.address)
    } else {
        String::new()
    };
    trace.push(Stage::Action, payload.id(), payload.content_digest(), text);
    Ok(())
}

fn result(chain: &Chain, located: &Located<Arc<Payload>>, trace: &mut Trace) -> Result<(), Gap> {
    let payload = &located.content;
    let from = From::new(Stage::Result, payload.id(), located.position);
    let Body::Result(body) = payload.body() else {
        return Err(from.gap(Stage::Result, payload.id(), Fault::Differs("is no result")));
    };
    let asked = from.follow(Stage::Work, &body.work_id, chain.work(&body.work_id))?;
    work(chain, asked, trace)?;
    let text = format!("answered by {}", payload.envelope().producer.actor_id);
    trace.push(Stage::Result, payload.id(), payload.content_digest(), text);
    Ok(())
}

/// Work belongs to an episode that took up what made its obligation due.
fn work(chain: &Chain, located: &Located<Arc<Payload>>, trace: &mut Trace) -> Result<(), Gap> {
    let payload = &located.content;
    let envelope = payload.envelope();
    let from = From::new(Stage::Work, payload.id(), located.position);
    let Some(episode_id) = &envelope.episode_id else {
        return Err(from.gap(Stage::Activation, payload.id(), Fault::Differs("belongs to no episode")));
    };
    let begun = from.follow(Stage::Activation, episode_id, chain.activations.get(episode_id))?;
    let same = envelope.obligation_ids.contains(&begun.content.obligation_id);
    from.demand(
        branch!("trace.work_is_on_the_matched_obligation", same),
        Stage::Activation,
        episode_id,
        "is on another obligation",
    )?;
    activation(chain, begun, trace)?;
    trace.push(Stage::Work, payload.id(), payload.content_digest(), "bounded work");
    Ok(())
}

fn activation(chain: &Chain, located: &Located<Activation>, trace: &mut Trace) -> Result<(), Gap> {
    let begun = &located.content;
    if trace.has(Stage::Activation, begun.episode_id.as_str()) {
        return Ok(());
    }
    let from = From::new(Stage::Activation, &begun.episode_id, located.position);
    let caused = !begun.causes.is_empty();
    from.demand(
        branch!("trace.activation_has_cause", caused),
        Stage::Match,
        &begun.episode_id,
        "names nothing that made it due",
    )?;
    for cause in &begun.causes {
        due(chain, &from, begun, cause, trace)?;
    }
    let digest = canonical::digest_of(begun).unwrap_or_else(|_| Digest::of(b""));
    trace.push(Stage::Activation, &begun.episode_id, digest, format!("an episode on {}", begun.obligation_id));
    Ok(())
}

/// What made the obligation due: a matched event, a trigger that fired, or the loss of what it relies on.
fn due(chain: &Chain, from: &From, begun: &Activation, cause: &Cause, trace: &mut Trace) -> Result<(), Gap> {
    match (&cause.match_receipt, &cause.reentry_id, cause.activation_key) {
        (Some(reference), _, _) => {
            // What made it due without an event is an answer of the user.
            let expected = if cause.event_id.is_some() { Stage::Match } else { Stage::Decision };
            let located = from.follow(expected, &reference.id, chain.artifacts.get(&reference.digest))?;
            if let ArtifactBody::UserDecision(decision) = &*located.content {
                return answered(chain, located.position, begun, reference, decision, trace);
            }
            let ArtifactBody::MatchReceipt(receipt) = &*located.content else {
                return Err(from.gap(Stage::Match, &reference.id, Fault::Differs("is no match receipt")));
            };
            let matched = receipt.matched_obligation_ids.contains(&begun.obligation_id);
            from.demand(
                branch!("trace.obligation_matched", matched),
                Stage::Match,
                &reference.id,
                "does not match the obligation",
            )?;
            let own = From::new(Stage::Match, &receipt.receipt_id, located.position);
            let event = own.follow(
                Stage::Event,
                &receipt.event_ref.id,
                chain.event(&EventId::new(receipt.event_ref.id.as_str())),
            )?;
            let same = event.content.content_digest() == receipt.event_ref.digest;
            own.demand(
                branch!("trace.event_is_cited", same),
                Stage::Event,
                &receipt.event_ref.id,
                "has another digest",
            )?;
            trace.push(Stage::Event, &receipt.event_ref.id, receipt.event_ref.digest, "observed");
            trace.push(
                Stage::Match,
                &receipt.receipt_id,
                reference.digest,
                format!("{} under {}", receipt.outcome, receipt.rule_ref.id),
            );
        }
        (None, Some(reentry_id), Some(key)) => {
            let fired = from.follow(Stage::Trigger, reentry_id, chain.fired.get(&(reentry_id.clone(), key)))?;
            let same = fired.content.obligation_id == begun.obligation_id;
            from.demand(same, Stage::Trigger, reentry_id, "is a trigger of another obligation")?;
            trace.push(Stage::Trigger, reentry_id, key, cause.reason.as_str());
        }
        (None, Some(_) | None, _) => {
            let woken = chain.invalidation(&begun.obligation_id, &cause.reason);
            let commit = from.follow(Stage::Invalidation, cause.reason.as_str(), woken)?;
            let id = format!("version {}", commit.content.version);
            trace.push(Stage::Invalidation, id, commit.content.after.digest, cause.reason.as_str());
        }
    }
    Ok(())
}

/// The user's answer to a packet of the obligation, which makes it due like an event.
fn answered(
    chain: &Chain,
    position: u64,
    begun: &Activation,
    reference: &ArtifactRef,
    decision: &UserDecision,
    trace: &mut Trace,
) -> Result<(), Gap> {
    let from = From::new(Stage::Decision, &decision.decision_id, position);
    let packet = from.follow(Stage::Bench, &decision.briefcase_ref.id, chain.packet(&decision.briefcase_ref))?;
    let asked = if let Body::Briefcase(body) = packet.content.body() {
        body.obligation_ids.contains(&begun.obligation_id)
    } else {
        false
    };
    from.demand(
        branch!("trace.packet_asks_for_obligation", asked),
        Stage::Bench,
        &decision.briefcase_ref.id,
        "is about another obligation",
    )?;
    trace.push(Stage::Bench, packet.content.id(), packet.content.content_digest(), "asked of the user");
    trace.push(Stage::Decision, &decision.decision_id, reference.digest, decision.decision_type.to_string());
    Ok(())
}
