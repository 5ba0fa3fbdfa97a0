//! What the coordinator writes in a conference: its contract, and a participant's move with what the records say of it.

use super::table::Round;
use crate::adjudicate;
use crate::disclose;
use crate::input::Moment;
use crate::route;
use crate::view::{Episode, View};
use closer_contracts::Check;
use closer_contracts::canonical::Canonical;
use closer_contracts::conference::{Conference, ConferenceMove, EvidenceScope, MoveAnswer, Seat, Subject};
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ArtifactId, ConferenceId, ContextId, Key, PropositionId, WorkId};
use closer_contracts::item::{Coalition, Inquiry, Member};
use closer_contracts::obligation::Obligation;
use closer_contracts::refs::{EvidenceSnapshot, Plain};
use closer_contracts::refusal::RefusalCode as Code;
use closer_contracts::work::Proposition;

/// The contract of a conference that a coalition holds in an episode: on what the obligation leaves open, from the evidence
/// at hand, within the bounds that the coalition declares.
///
/// # Errors
/// `unresolved_ref` when the obligation is gone; `contract_incompatible` when the coalition does not confer; the codes of
/// the contract.
pub fn draft(view: &View, episode: &Episode, coalition: &Coalition, at: &Moment) -> Result<Conference, Fault> {
    let obligation = view
        .state
        .obligation(&episode.obligation_id)
        .ok_or_else(|| Fault::new(Code::UnresolvedRef, "the episode's obligation is not accepted"))?;
    let inquiry = coalition.inquiry.as_ref();
    let inquiry = inquiry.ok_or_else(|| Fault::new(Code::ContractIncompatible, "the coalition does not confer"))?;
    let route = episode.route.as_ref().and_then(|id| view.routes.get(id));
    let route = route.ok_or_else(|| Fault::new(Code::UnresolvedRef, "the episode has no route"))?;
    let conference_id = ConferenceId::new(crate::derived_id("conference", episode.episode_id.as_str()));
    let refs = disclose::at_hand(view, episode).into_iter().filter_map(|id| {
        let digest = view.evidence.get(&id)?.payload.content_digest();
        Some(adjudicate::evidence_ref(&id, digest))
    });
    let streams = view.streams_of.get(&episode.obligation_id).into_iter().flatten().cloned().collect();
    let left_ms = u64::try_from(episode.stops_at.unix_ms().saturating_sub(at.now.unix_ms())).unwrap_or(0).max(1);
    let mut stop = inquiry.stop.clone();
    stop.time_ms_max = stop.time_ms_max.min(left_ms);
    Ok(Conference {
        obligation_id: episode.obligation_id.clone(),
        episode_id: episode.episode_id.clone(),
        basis: view.state.reference(),
        subjects: subjects(view, obligation, inquiry),
        evidence_scope: EvidenceScope { snapshot: EvidenceSnapshot::of(refs.collect())?, streams },
        seats: route::assigned(coalition, route)
            .into_iter()
            .map(|(member, actor)| seat(&conference_id, member, actor))
            .collect(),
        seal_within_ms: inquiry.seal_within_ms.min(stop.time_ms_max),
        stop,
        allowed_moves: inquiry.allowed_moves.clone(),
        decision_rule_ref: inquiry.decision_rule_ref.clone(),
        independence_required: inquiry.independence_required,
        late_counts: inquiry.late_counts,
        follows: None,
        conference_id,
    })
}

fn seat(conference_id: &ConferenceId, member: &Member, actor: &ActorId) -> Seat {
    let fresh = || ContextId::new(crate::derived_id(&format!("context.{actor}"), conference_id.as_str()));
    // A lasting context is the member's own: who stands in for it begins afresh.
    let lasting = member.context.clone().filter(|_| *actor == member.actor);
    Seat {
        actor: actor.clone(),
        role: member.role.clone(),
        context: lasting.unwrap_or_else(fresh),
        derives_from: Vec::new(),
        model: member.model.clone(),
        tools: member.tools.clone(),
    }
}

/// What an obligation leaves open, as the coalition writes it out, as something accepted has it, or as it stands.
fn subjects(view: &View, obligation: &Obligation, inquiry: &Inquiry) -> Vec<Subject> {
    let written = |id: &PropositionId| inquiry.subjects.iter().find(|written| written.proposition_id == *id).cloned();
    let accepted = |id: &PropositionId| {
        let claims = view.state.claims_on(id).filter_map(|accepted| accepted.item.as_claim());
        claims.map(|claim| claim.proposition.clone()).next()
    };
    let open = |id: &PropositionId| Proposition {
        proposition_id: id.clone(),
        subject: (&obligation.obligation_id).into(),
        predicate: Key::from("holds"),
        object: Plain(serde_json::Value::Bool(true)),
        scope: obligation.scope.clone(),
    };
    let ids = obligation.gap.propositions.iter();
    ids.map(|id| Subject::Proposition(written(id).or_else(|| accepted(id)).unwrap_or_else(|| open(id)))).collect()
}

/// Reads a participant's answer to a turn: untrusted bytes, held to their contract strictly (DEC-88).
///
/// # Errors
/// `schema_invalid`, `oversize`: a counted failure; nothing repairs it.
pub fn read_move(bytes: &[u8]) -> Result<MoveAnswer, Fault> {
    let answer = Canonical::<MoveAnswer>::read(bytes)?.into_value();
    answer.check()?;
    Ok(answer)
}

/// The move that a participant answers its turn with, bound to what the records say: its own last record, the release, the
/// basis of the conference.
///
/// # Errors
/// `unresolved_ref` when the answer is to other work; `not_released` when there is nothing to move on.
pub fn draft_move(
    round: &Round,
    participant: &ActorId,
    work_id: &WorkId,
    answer: MoveAnswer,
) -> Result<ConferenceMove, Fault> {
    if answer.work_id != *work_id {
        return Err(Fault::new(Code::UnresolvedRef, "the answer is to other work").within("work_id"));
    }
    let seat = round.contract.seat(participant);
    let seat = seat.ok_or_else(|| Fault::new(Code::MissingAuthority, "the participant has no seat"))?;
    let own = super::participant_record(round, participant).pop();
    let own = own.ok_or_else(|| Fault::new(Code::NotReleased, "the participant has taken no position"))?;
    let release = round.release.as_ref();
    let release = release.ok_or_else(|| Fault::new(Code::NotReleased, "the positions are not released"))?;
    Ok(ConferenceMove {
        move_id: ArtifactId::new(crate::derived_id("move", work_id.as_str())),
        conference_id: round.contract.conference_id.clone(),
        r#move: answer.r#move,
        actor: participant.clone(),
        role: seat.role.clone(),
        local_receipt: own,
        shared_snapshot: release.reference.clone(),
        subject: answer.subject,
        governing_basis: round.contract.basis,
        reply_to: answer.reply_to,
        evidence: answer.evidence,
        reason: answer.reason,
        reason_class: answer.reason_class,
        narrowed: answer.narrowed,
    })
}
