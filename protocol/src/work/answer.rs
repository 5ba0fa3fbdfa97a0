//! What comes back for a unit of work: an answer that is held to its contract, or a failure that is counted. Spec: C6.

use super::{lineage, move_contract, suspended, work_purpose};
use crate::conference::{self, answer_denials, custody_of};
use crate::input::{Effect, Reply};
use crate::ledger;
use crate::sequence::{Deciding, record_payload_in};
use crate::services;
use crate::streams;
use crate::view::{Episode, View};
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::canonical::{self, Canonical};
use closer_contracts::conference::ConferenceMove;
use closer_contracts::contract::Check;
use closer_contracts::envelope::Body;
use closer_contracts::id::{ActorId, Id, Key, OperationId, PayloadId, WorkId};
use closer_contracts::refs::{Amounts, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_contracts::work::WorkResult;
use closer_contracts::{Digest, Fault, Payload};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Reads a participant's answer: untrusted bytes, held to the output contract strictly (DEC-88).
///
/// # Errors
/// `schema_invalid`, `oversize`: a counted failure; no repair makes it an accepted result.
pub fn read_answer(bytes: &[u8]) -> Result<WorkResult, Fault> {
    let result = Canonical::<WorkResult>::read(bytes)?.into_value();
    result.check()?;
    Ok(result)
}

/// Drafts the RESULT payload of a participant's answer.
///
/// # Errors
/// The codes of the contracts.
pub fn draft_result(
    view: &View,
    episode: &Episode,
    participant: &ActorId,
    work_id: &WorkId,
    result: WorkResult,
    now: &Timestamp,
) -> Result<Payload, Fault> {
    let work = view
        .works
        .get(work_id)
        .ok_or_else(|| Fault::new(Code::UnresolvedRef, "no such work was issued").within(work_id))?;
    if branch!("work.answers_other_work", result.work_id != *work_id) {
        return Err(Fault::new(Code::UnresolvedRef, "the answer is to other work").within("work_id"));
    }
    let producer = closer_contracts::refs::ActorRef { actor_id: participant.clone(), role: ProducerRole::Participant };
    services::write(
        view,
        PayloadId::new(crate::derived_id("pl.result", work_id.as_str())),
        producer,
        lineage(episode, vec![work.payload.id().clone()]),
        work.payload.envelope().disclosure.clone(),
        result,
        now,
    )
}

/// Records a participant's answer to work that was issued to it; what it cites must be there.
pub(crate) fn answer(
    deciding: &mut Deciding<'_>,
    result: &WorkResult,
    payload: &Arc<Payload>,
    auth: &AuthRecord,
) -> Result<Reply, Fault> {
    let denials = unfounded(deciding.view, result, payload);
    if !denials.is_empty() {
        return deciding.refuse(payload.id().into(), Some(payload.content_digest()), denials);
    }
    let malformed = malformed(deciding.view, result, payload);
    if branch!("work.answer_cites_nothing_there", !malformed.is_empty()) {
        return fail(deciding, &result.work_id, Some(payload.content_digest()), malformed);
    }
    let mut propositions: Vec<_> =
        result.assessments.iter().map(|relation| streams::proposition(&relation.proposition_id)).collect();
    propositions.extend(result.claims.iter().map(|claim| streams::proposition(&claim.proposition.proposition_id)));
    let custody = custody_of(deciding.view, result);
    let reference = record_payload_in(custody, deciding, payload, auth, propositions, Vec::new())?;
    settle(deciding, &result.work_id)?;
    Ok(Reply::Recorded(vec![reference]))
}

/// Settles what was reserved for a unit of work with what it used: one call, the time since it was issued, and what whoever
/// answered it measured besides. What nobody measured stays unknown (§8.3).
pub(crate) fn settle(deciding: &mut Deciding<'_>, work_id: &WorkId) -> Result<(), Fault> {
    let issued_at = deciding.view.works.get(work_id).map(|work| work.admitted_at.unix_ms());
    let took = issued_at.map(|issued_at| deciding.at.now.unix_ms().saturating_sub(issued_at));
    let time_ms = took.and_then(|took| took.try_into().ok());
    let used = Amounts { calls: Some(1), time_ms, concurrency: None, ..deciding.used.clone() };
    ledger::settle(deciding, Key::new(work_id.as_str()), used)
}

/// Whether work was issued, and is neither answered nor failed.
fn is_open(view: &View, work_id: &WorkId) -> bool {
    view.issued_to.contains_key(work_id) && !view.answered.contains_key(work_id) && !view.failed.contains_key(work_id)
}

/// What a failed answer is recorded under; its work stands behind it.
const ANSWER: &str = "answer";

/// The work that a record of a failed answer is about.
#[must_use]
pub fn failed_work(subject: &Id) -> Option<WorkId> {
    let id = subject.as_str().strip_prefix(ANSWER)?.strip_prefix('-')?;
    Some(WorkId::new(id))
}

/// Records that an answer failed: a failure of its participant, counted; its reservation is settled (C6).
fn fail(
    deciding: &mut Deciding<'_>,
    work_id: &WorkId,
    digest: Option<Digest>,
    denials: Vec<Denial>,
) -> Result<Reply, Fault> {
    let reply = deciding.refuse(Id::new(format!("{ANSWER}-{work_id}")), digest, denials)?;
    settle(deciding, work_id)?;
    let episode = deciding.view.works.get(work_id).and_then(|work| work.payload.envelope().episode_id.clone());
    deciding.effects.extend(episode.map(Effect::Advance));
    Ok(reply)
}

/// A participant gave no answer that counts. Nothing repairs it, and nobody asks again (C6). Nobody fails for another.
pub(crate) fn unanswered(
    deciding: &mut Deciding<'_>,
    work_id: &WorkId,
    denial: &Denial,
    handed_in_by: Option<&ActorId>,
) -> Result<Reply, Fault> {
    if let Some(foreign) = handed_in_by.and_then(|by| foreign(deciding.view, work_id, by)) {
        return deciding.refuse(work_id.into(), None, vec![foreign]);
    }
    if branch!("work.failed_once", !is_open(deciding.view, work_id)) {
        let reason = "no such work is waiting for its answer";
        let denial = Denial::new(Code::Duplicate, CheckKind::Resolution, reason).of(work_id);
        return deciding.refuse(work_id.into(), None, vec![denial]);
    }
    fail(deciding, work_id, None, vec![denial.clone()])
}

/// Why work is not this participant's: it was issued to somebody else, or never.
pub(super) fn foreign(view: &View, work_id: &WorkId, participant: &ActorId) -> Option<Denial> {
    let issued = view.issued_to.get(work_id) == Some(participant);
    let reason = "no such work was issued to this participant";
    branch!("work.not_issued_to_producer", !issued)
        .then(|| Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(work_id))
}

fn answered_before(view: &View, work_id: &WorkId) -> Option<Denial> {
    let result = view.answered.get(work_id)?;
    let reason = format!("the work has been answered, by `{result}`");
    branch!("work.answered_before", true)
        .then(|| Denial::new(Code::Duplicate, CheckKind::Resolution, reason).of(work_id))
}

/// A RESULT that is handed in again by whom its work was issued to: the same work is not answered twice, whatever it says.
pub(crate) fn repeated(view: &View, payload: &Payload) -> Option<Denial> {
    let Body::Result(result) = payload.body() else { return None };
    let own = view.issued_to.get(&result.work_id) == Some(&payload.envelope().producer.actor_id);
    answered_before(view, &result.work_id).filter(|_| own)
}

/// What an agent outside handed in comes to, before it is authenticated and decided.
#[derive(Debug, Clone, PartialEq)]
pub enum HandedIn {
    /// A RESULT.
    Result(Box<Payload>),
    /// Its move in a conference.
    Move(Box<ConferenceMove>),
    /// Something that meets no contract, or an answer to work that is not its own.
    Nothing(Denial),
}

/// Reads what an agent outside hands in to a unit of work: text in strict JSON, in whatever spacing and order, held to the
/// work's output contract. Nothing in it is completed or mended (C6).
#[must_use]
pub fn hand_in(view: &View, participant: &ActorId, work_id: &WorkId, text: &[u8], now: &Timestamp) -> HandedIn {
    if let Some(foreign) = foreign(view, work_id, participant) {
        return HandedIn::Nothing(foreign);
    }
    read_handed_in(view, participant, work_id, text, now).unwrap_or_else(|fault| HandedIn::Nothing(fault.into()))
}

fn read_handed_in(
    view: &View,
    participant: &ActorId,
    work_id: &WorkId,
    text: &[u8],
    now: &Timestamp,
) -> Result<HandedIn, Fault> {
    let missing = |what: &'static str| Fault::new(Code::UnresolvedRef, what).within(work_id);
    let work = view.works.get(work_id).ok_or_else(|| missing("no such work was issued"))?;
    canonical::check_size(text)?;
    let bytes = canonical::to_bytes(&canonical::read_value(text)?)?;
    if work.body.output_contract_ref == move_contract() {
        let round = view.conferences.of_coalition(&work.body.coalition_ref);
        let round = round.ok_or_else(|| missing("the conference is not on record"))?;
        let answer = conference::read_move(&bytes)?;
        return Ok(HandedIn::Move(Box::new(conference::draft_move(round, participant, work_id, answer)?)));
    }
    let episode = work.payload.envelope().episode_id.as_ref().and_then(|id| view.episodes.get(id));
    let episode = episode.ok_or_else(|| missing("the episode of the work is not on record"))?;
    let result = read_answer(&bytes)?;
    Ok(HandedIn::Result(Box::new(draft_result(view, episode, participant, work_id, result, now)?)))
}

/// Why an answer is not this work's: nobody else, no other packet and no other time will do.
fn unfounded(view: &View, result: &WorkResult, payload: &Payload) -> Vec<Denial> {
    let producer = &payload.envelope().producer.actor_id;
    let mut denials = answer_denials(view, result);
    denials.extend(foreign(view, &result.work_id, producer));
    let cited = &payload.envelope().disclosure;
    let worked_from = view.works.get(&result.work_id).map(|work| &work.payload.envelope().disclosure);
    if branch!("work.other_packet_cited", worked_from.is_some_and(|packet| packet != cited)) {
        let reason = "the answer does not cite the receipt of the packet that it worked from";
        denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&cited.id));
    }
    let holder = view.released.get(&Key::new(cited.id.as_str())).filter(|receipt| receipt.purpose == work_purpose());
    if branch!("work.packet_passed_on", holder.is_some_and(|receipt| receipt.recipient != *producer)) {
        let reason = "the packet was released to somebody else, who had no right to pass it on";
        denials.push(Denial::new(Code::RedistributionDenied, CheckKind::Authority, reason).of(&cited.id));
    }
    denials.extend(suspended(view, payload));
    denials.extend(answered_before(view, &result.work_id));
    let failed = view.failed.get(&result.work_id).filter(|(code, _)| *code != Code::NoAnswer);
    if branch!("work.second_answer", failed.is_some()) {
        let reason = "the work was answered with something that does not count, and is not answered again";
        denials.push(Denial::new(Code::Duplicate, CheckKind::Resolution, reason).of(&result.work_id));
    }
    denials
}

/// What is wrong with an answer that is this work's: a failure of whoever gave it, counted and not to be given again.
fn malformed(view: &View, result: &WorkResult, payload: &Payload) -> Vec<Denial> {
    let mut denials = Vec::new();
    let cited = result.assessments.iter().map(|relation| &relation.evidence_id);
    for evidence_id in cited.chain(result.objections.iter().flat_map(|objection| objection.evidence_ids.iter())) {
        if branch!("work.unknown_evidence_cited", !view.evidence.contains_key(evidence_id)) {
            let reason = "the answer cites evidence that is not on record";
            denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(evidence_id));
        }
    }
    let known = propositions(view, result, payload);
    for relation in &result.assessments {
        if branch!("work.unknown_proposition_related", !known.contains(&(&relation.proposition_id).into())) {
            let reason = "the answer relates evidence to a proposition that nothing names";
            denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&relation.proposition_id));
        }
    }
    for proposal in &result.action_proposals {
        let known = view.state.operation(&OperationId::new(proposal.operation.as_str())).is_some();
        if branch!("work.proposal_outside_vocabulary", !known) {
            let reason = "the proposed operation is not in the vocabulary";
            denials
                .push(Denial::new(Code::UnregisteredOperation, CheckKind::Resolution, reason).of(&proposal.operation));
        }
    }
    denials
}

/// The propositions that an answer may relate evidence to: those of its question and obligation, those it claims or would
/// establish itself, and those that something accepted is about.
fn propositions(view: &View, result: &WorkResult, payload: &Payload) -> BTreeSet<Id> {
    let asked = view.works.get(&result.work_id).map(|work| work.body.question.subject_refs.clone());
    let own = result.claims.iter().map(|claim| Id::from(&claim.proposition.proposition_id));
    let proposed = result.action_proposals.iter().map(|proposal| proposal.expected_postcondition.id.clone());
    let obligations = payload.envelope().obligation_ids.iter().filter_map(|id| view.state.obligation(id));
    let open = obligations.flat_map(|obligation| {
        let conditions = obligation.resolution_conditions.iter().map(|condition| &condition.proposition);
        obligation.gap.propositions.iter().chain(conditions).map(Id::from)
    });
    let related = result.assessments.iter().map(|relation| &relation.proposition_id);
    let accepted = related.filter(|id| view.state.claims_on(id).next().is_some()).map(Id::from);
    asked.into_iter().flatten().chain(own).chain(proposed).chain(open).chain(accepted).collect()
}
