//! Bounded work: a packet to one participant, and the answer that comes back. Spec: §4.1, §4.3, C5, C6.

mod question;

use crate::batch::Batch;
use crate::conference::{self, Round};
use crate::disclose::{self, Asked, Candidates, Projection, work_purpose};
use crate::incident;
use crate::input::Reply;
use crate::ledger::{self, Ledger};
use crate::sequence::{Deciding, record_payload, record_payload_in};
use crate::services::{self, Lineage};
use crate::streams;
use crate::view::{Episode, View};
use closer_contracts::audit::DisclosureReceipt;
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::canonical::Canonical;
use closer_contracts::conference::Seat;
use closer_contracts::contract::Check;
use closer_contracts::id::{ActorId, CoalitionId, Id, Key, OperationId, PayloadId, WorkId};
use closer_contracts::refs::{Amounts, ProducerRole, VersionedRef};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{StopCondition, Work, WorkResult};
use closer_contracts::{Fault, Payload};
use closer_monitor::Reservation;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The output contract that every participant's answer meets.
#[must_use]
pub fn output_contract() -> VersionedRef {
    VersionedRef { id: Id::from("contract.result"), version: 1 }
}

/// The vocabulary of proposals: the operations in the registry.
#[must_use]
pub fn vocabulary() -> VersionedRef {
    VersionedRef { id: Id::from("vocabulary.registry"), version: 1 }
}

/// What a packet may be used for.
#[must_use]
pub fn packet_use() -> Key {
    Key::from("answer this work")
}

/// A drafted packet: the work and the receipt of what it releases.
#[derive(Debug, Clone)]
pub struct Packet {
    /// The WORK payload.
    pub work: Payload,
    /// What it releases.
    pub disclosure: DisclosureReceipt,
}

/// Drafts the work of an episode for one participant: the obligation, the claims and constraints that bear on it, the
/// grants that bound it and the evidence at hand, each as far as policy releases it to this recipient.
///
/// # Errors
/// The codes of the contracts; `unresolved_ref` when the obligation is gone.
pub fn draft(
    view: &View,
    episode: &Episode,
    recipient: &ActorId,
    role: &Key,
    now: &Timestamp,
) -> Result<Packet, Fault> {
    packet(view, episode, recipient, role, None, now)
}

/// Drafts the work that a conference asks one of its seats with: its declared subjects, on its declared evidence (§4.1).
///
/// # Errors
/// As [`draft`].
pub fn draft_for_seat(
    view: &View,
    episode: &Episode,
    round: &Round,
    seat: &Seat,
    now: &Timestamp,
) -> Result<Packet, Fault> {
    packet(view, episode, &seat.actor, &seat.role, Some(round), now)
}

fn packet(
    view: &View,
    episode: &Episode,
    recipient: &ActorId,
    role: &Key,
    round: Option<&Round>,
    now: &Timestamp,
) -> Result<Packet, Fault> {
    let obligation = view.state.obligation(&episode.obligation_id).ok_or_else(|| {
        Fault::new(Code::UnresolvedRef, "the episode's obligation is not accepted").within(&episode.obligation_id)
    })?;
    let seed = format!("{}.{}", episode.episode_id, episode.work.len() + 1);
    let asked =
        Asked { recipient, purpose: &work_purpose(), required: disclose::required(view, obligation, role), all: false };
    let candidates = Candidates::for_work(view, episode, obligation, round)?;
    let projection = Projection::of(view, &asked, &candidates);
    let (items, disclosure) = projection.release(view, &asked, &seed, vec![packet_use()], now)?;
    let disclosure_ref = disclose::reference(&disclosure)?;
    let coalition = CoalitionId::new(crate::derived_id("coalition", episode.episode_id.as_str()));
    let left_ms = u64::try_from(episode.stops_at.unix_ms().saturating_sub(now.unix_ms())).unwrap_or(0).max(1);
    let work = Work {
        work_id: WorkId::new(crate::derived_id("work", &seed)),
        question: question::of(obligation, role, round),
        role: role.clone(),
        coalition_ref: round.map_or(coalition, Round::coalition),
        membership_version: 1,
        context_items: items,
        proposal_vocabulary_ref: vocabulary(),
        output_contract_ref: output_contract(),
        stop_condition: StopCondition { rounds_max: 1, calls_max: 1, time_ms_max: left_ms },
        deadline: Some(episode.stops_at.clone()),
        extensions: None,
    };
    let work = services::write(
        view,
        PayloadId::new(crate::derived_id("pl.work", &seed)),
        services::actor_ref(ProducerRole::Coordinator),
        lineage(episode, cause_payloads(view, episode)),
        disclosure_ref,
        work,
        now,
    )?;
    Ok(Packet { work, disclosure })
}

/// The lineage of a stage's payload in an episode.
#[must_use]
pub fn lineage(episode: &Episode, parents: Vec<PayloadId>) -> Lineage {
    Lineage {
        parents,
        obligation_ids: vec![episode.obligation_id.clone()],
        episode_id: Some(episode.episode_id.clone()),
        causation_event_id: episode.causes.iter().find_map(|cause| cause.event_id.clone()),
        budget_ref: Some(crate::ledger::obligation_budget(&episode.obligation_id)),
    }
}

fn cause_payloads(view: &View, episode: &Episode) -> Vec<PayloadId> {
    let events = episode.causes.iter().filter_map(|cause| cause.event_id.as_ref());
    events.filter_map(|event_id| view.events.get(event_id)).map(|event| event.payload.id().clone()).collect()
}

/// The worst case of one unit of work for a participant: its calls and time, in one slot, and what the participant's entry
/// in the registry says that it uses at the most.
#[must_use]
pub fn worst_case(view: &View, work: &Work, participant: &ActorId) -> Amounts {
    let stated = view.state.identity(participant).and_then(|identity| identity.worst_case.clone());
    let calls = u64::from(work.stop_condition.calls_max);
    let (tokens, cost_micros, currency) = match stated {
        Some(stated) => {
            let of_all = |one: Option<u64>| one.map(|one| one.saturating_mul(calls));
            (of_all(stated.tokens), of_all(stated.cost_micros), stated.currency)
        }
        None => (Some(0), Some(0), None),
    };
    Amounts {
        calls: Some(calls),
        tokens,
        cost_micros,
        currency: currency.or_else(|| Some(Key::from("XXX"))),
        time_ms: Some(work.stop_condition.time_ms_max),
        concurrency: Some(1),
    }
}

/// Everything that speaks against issuing this work with this packet under this receipt.
pub(crate) fn objections(
    view: &View,
    batch: &Batch<'_>,
    payload: &Payload,
    work: &Work,
    receipt: &DisclosureReceipt,
) -> Result<Vec<Denial>, Fault> {
    let mut denials = disclose::objections(view, batch, payload.envelope(), work, receipt)?;
    denials.extend(suspended(view, payload));
    denials.extend(conference::packet_denials(view, work, &receipt.recipient)?);
    let known = work.output_contract_ref == output_contract() && work.proposal_vocabulary_ref == vocabulary();
    if branch!("work.contract_incompatible", !known) {
        let reason = "the work asks for an answer under a contract or vocabulary that is not in use";
        denials.push(
            Denial::new(Code::ContractIncompatible, CheckKind::Resolution, reason).of(&work.output_contract_ref.id),
        );
    }
    let obligation_id = payload.envelope().obligation_ids.first();
    let room = obligation_id.map(|id| {
        view.ledger.room(&Ledger::path(id), &worst_case(view, work, &receipt.recipient), ledger::lane_of(view, id))
    });
    denials.extend(room.as_ref().and_then(no_room));
    Ok(denials)
}

/// What derives from something that was released wrongly is not used before the incident is reconciled (§4.3).
pub(crate) fn suspended(view: &View, payload: &Payload) -> Option<Denial> {
    let incident = incident::suspended(view, payload)?;
    let reason = "it derives from an over-disclosure that is not reconciled";
    branch!("work.use_suspended", true)
        .then(|| Denial::new(Code::Restricted, CheckKind::Authority, reason).of(incident))
}

/// Work without the receipt of what its packet releases goes nowhere.
pub(crate) fn bare(deciding: &mut Deciding<'_>, work: &Work, payload: &Payload) -> Result<Reply, Fault> {
    let reason = "work comes with the receipt of what it releases";
    let denial = Denial::new(Code::CoverageMissing, CheckKind::Resolution, reason);
    deciding.refuse((&work.work_id).into(), Some(payload.content_digest()), vec![denial])
}

/// Records work to which nothing objects; its worst case is reserved in the same append.
pub(crate) fn issue(
    deciding: &mut Deciding<'_>,
    work: &Work,
    payload: &Arc<Payload>,
    participant: &ActorId,
    auth: &AuthRecord,
) -> Result<Reply, Fault> {
    let reference = record_payload(deciding, payload, auth, Vec::new(), Vec::new())?;
    if let Some(obligation_id) = payload.envelope().obligation_ids.first() {
        let worst_case = worst_case(deciding.view, work, participant);
        ledger::reserve(deciding, Key::new(work.work_id.as_str()), obligation_id, worst_case)?;
    }
    Ok(Reply::Recorded(vec![reference]))
}

fn no_room(room: &Reservation) -> Option<Denial> {
    match room {
        Reservation::Fits => None,
        Reservation::Exceeds(budget) => {
            let reason = "the worst case of the unit does not fit";
            branch!("work.budget_exceeded", true)
                .then(|| Denial::new(Code::BudgetExceeded, CheckKind::Runtime, reason).of(budget))
        }
        Reservation::Uncapped(dimension) => {
            let reason = "the unit states no worst case in a dimension that is capped";
            Some(Denial::new(Code::UncappedRoute, CheckKind::Runtime, reason).of(dimension))
        }
    }
}

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
    let denials = unfounded(deciding, result, payload);
    if !denials.is_empty() {
        return deciding.refuse(payload.id().into(), Some(payload.content_digest()), denials);
    }
    let mut propositions: Vec<_> =
        result.assessments.iter().map(|relation| streams::proposition(&relation.proposition_id)).collect();
    propositions.extend(result.claims.iter().map(|claim| streams::proposition(&claim.proposition.proposition_id)));
    let custody = conference::custody_of(deciding.view, result);
    let reference = record_payload_in(custody, deciding, payload, auth, propositions, Vec::new())?;
    let issued_at = deciding.view.works.get(&result.work_id).map(|work| work.admitted_at.unix_ms());
    let took = issued_at.map(|issued_at| deciding.at.now.unix_ms().saturating_sub(issued_at));
    let used = Amounts { calls: Some(1), time_ms: took.and_then(|took| took.try_into().ok()), ..Amounts::default() };
    ledger::settle(deciding, Key::new(result.work_id.as_str()), used)?;
    Ok(Reply::Recorded(vec![reference]))
}

fn unfounded(deciding: &Deciding<'_>, result: &WorkResult, payload: &Payload) -> Vec<Denial> {
    let view = deciding.view;
    let producer = &payload.envelope().producer.actor_id;
    let mut denials = conference::answer_denials(view, result);
    let issued = view.issued_to.get(&result.work_id) == Some(producer);
    if branch!("work.not_issued_to_producer", !issued) {
        let reason = "no such work was issued to this participant";
        denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&result.work_id));
    }
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
    let answered = view.answered.contains_key(&result.work_id);
    if branch!("work.answered_before", answered) {
        denials.push(
            Denial::new(Code::Duplicate, CheckKind::Resolution, "the work has been answered").of(&result.work_id),
        );
    }
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
