//! Bounded work: a packet to one participant, and the answer that comes back. Spec: §4.1, §4.3, C5, C6.

mod answer;
pub mod outside;
mod question;

pub use answer::{HandedIn, draft_result, failed_work, hand_in, read_answer};
pub(crate) use answer::{answer, repeated, settle, unanswered};
pub use outside::WorkTaken;
pub(crate) use outside::take;

use crate::batch::Batch;
use crate::coalition;
use crate::conference::{self, Round};
use crate::disclose::{self, Asked, Candidates, Projection, work_purpose};
use crate::incident;
use crate::input::{Moment, Reply};
use crate::ledger::{self, Ledger};
use crate::route;
use crate::sequence::{Deciding, record_payload};
use crate::services::{self, Lineage};
use crate::view::{Episode, View};
use closer_contracts::audit::DisclosureReceipt;
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::conference::Seat;
use closer_contracts::id::{ActorId, CoalitionId, Id, Key, ObligationId, PayloadId, WorkId};
use closer_contracts::refs::{Amounts, ProducerRole, VersionedRef};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{StopCondition, Work};
use closer_contracts::{Fault, Payload};
use closer_monitor::Reservation;
use std::sync::Arc;

/// The output contract that every participant's answer meets.
#[must_use]
pub fn output_contract() -> VersionedRef {
    VersionedRef { id: Id::from("contract.result"), version: 1 }
}

/// The output contract that an answer to a conference's turn meets: one move.
#[must_use]
pub fn move_contract() -> VersionedRef {
    VersionedRef { id: Id::from("contract.move"), version: 1 }
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
    packet(view, episode, recipient, role, None, output_contract(), now)
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
    packet(view, episode, &seat.actor, &seat.role, Some(round), output_contract(), now)
}

/// Drafts the work that a participant's turn in a conference is asked with: as [`draft_for_seat`], with what the group
/// shares by now, for one move (§4.1).
///
/// # Errors
/// As [`draft`].
pub fn draft_for_turn(
    view: &View,
    episode: &Episode,
    round: &Round,
    seat: &Seat,
    now: &Timestamp,
) -> Result<Packet, Fault> {
    packet(view, episode, &seat.actor, &seat.role, Some(round), move_contract(), now)
}

fn packet(
    view: &View,
    episode: &Episode,
    recipient: &ActorId,
    role: &Key,
    round: Option<&Round>,
    output_contract_ref: VersionedRef,
    now: &Timestamp,
) -> Result<Packet, Fault> {
    let obligation = view.state.obligation(&episode.obligation_id).ok_or_else(|| {
        Fault::new(Code::UnresolvedRef, "the episode's obligation is not accepted").within(&episode.obligation_id)
    })?;
    let seed = format!("{}.{}", episode.episode_id, episode.work.len() + 1);
    let asked =
        Asked { recipient, purpose: &work_purpose(), required: disclose::required(view, obligation, role), all: false };
    let candidates = Candidates::for_work(view, episode, obligation, round, role)?;
    let projection = Projection::of(view, &asked, &candidates);
    let (items, disclosure) = projection.release(view, &asked, &seed, vec![packet_use()], now)?;
    let disclosure_ref = disclose::reference(&disclosure)?;
    let alone = || CoalitionId::new(crate::derived_id("coalition", episode.episode_id.as_str()));
    let registered = coalition::of(view, &episode.obligation_id).map(|coalition| coalition.coalition_id.clone());
    let left_ms = u64::try_from(episode.stops_at.unix_ms().saturating_sub(now.unix_ms())).unwrap_or(0).max(1);
    let work = Work {
        work_id: WorkId::new(crate::derived_id("work", &seed)),
        question: question::of(obligation, role, round),
        role: role.clone(),
        coalition_ref: round.map_or_else(|| registered.unwrap_or_else(alone), Round::coalition),
        membership_version: coalition::membership_version(view, &episode.obligation_id),
        context_items: items,
        proposal_vocabulary_ref: vocabulary(),
        output_contract_ref,
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

/// The worst case of one unit of work: its calls and time in one slot, and for the rest what its coalition declares for the
/// unit, else what the recipient's entry in the registry says of each call.
#[must_use]
pub fn worst_case(view: &View, obligation_id: &ObligationId, work: &Work, recipient: &ActorId) -> Amounts {
    let calls = u64::from(work.stop_condition.calls_max);
    let declared = coalition::worst_case(view, obligation_id, recipient);
    let stated = view.state.identity(recipient).and_then(|identity| identity.worst_case.clone());
    let of_all = |one: Option<u64>| one.map(|one| one.saturating_mul(calls));
    let (tokens, cost_micros, currency) = match stated {
        Some(stated) => (of_all(stated.tokens), of_all(stated.cost_micros), stated.currency),
        None => (Some(0), Some(0), None),
    };
    Amounts {
        calls: Some(calls),
        tokens: declared.tokens.or(tokens),
        cost_micros: declared.cost_micros.or(cost_micros),
        currency: declared.currency.or(currency).or_else(|| Some(Key::from("XXX"))),
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
    at: &Moment,
) -> Result<Vec<Denial>, Fault> {
    let mut denials = disclose::objections(view, batch, payload.envelope(), work, receipt)?;
    denials.extend(suspended(view, payload));
    denials.extend(conference::packet_denials(view, work, &receipt.recipient, at)?);
    let episode = payload.envelope().episode_id.as_ref().and_then(|id| view.episodes.get(id));
    denials
        .extend(episode.into_iter().flat_map(|episode| route::objections(view, episode, work, &receipt.recipient, at)));
    let answered_by = [output_contract(), move_contract()];
    let known = answered_by.contains(&work.output_contract_ref) && work.proposal_vocabulary_ref == vocabulary();
    if branch!("work.contract_incompatible", !known) {
        let reason = "the work asks for an answer under a contract or vocabulary that is not in use";
        denials.push(
            Denial::new(Code::ContractIncompatible, CheckKind::Resolution, reason).of(&work.output_contract_ref.id),
        );
    }
    if let Some(obligation_id) = payload.envelope().obligation_ids.first() {
        let current = coalition::membership_version(view, obligation_id);
        if branch!("work.membership_stale", work.membership_version != current) {
            let reason = "the membership of the coalition has another version";
            denials.push(Denial::new(Code::MembershipStale, CheckKind::Resolution, reason).of(work.membership_version));
        }
        let wanted = worst_case(view, obligation_id, work, &receipt.recipient);
        let room = view.ledger.room(&Ledger::path(obligation_id), &wanted, ledger::lane_of(view, obligation_id));
        denials.extend(no_room(&room));
    }
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
    auth: &AuthRecord,
    recipient: &ActorId,
) -> Result<Reply, Fault> {
    let reference = record_payload(deciding, payload, auth, Vec::new(), Vec::new())?;
    if let Some(obligation_id) = payload.envelope().obligation_ids.first() {
        let wanted = worst_case(deciding.view, obligation_id, work, recipient);
        ledger::reserve(deciding, Key::new(work.work_id.as_str()), obligation_id, wanted)?;
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
