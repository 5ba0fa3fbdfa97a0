//! Who is asked what, and whose answer is a position. Spec: §4.1, C5.

use super::{Round, early, next_mover};
use crate::input::Moment;
use crate::view::View;
use crate::work::move_contract;
use closer_contracts::branch;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, EvidenceId, Id};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::work::{Work, WorkResult};

/// Everybody is asked the same: work of a conference goes to a seat, about the declared subjects, on the declared evidence,
/// and before the release no packet holds anybody's position. A move is asked for in turn, on what the group shares.
pub(crate) fn packet_denials(view: &View, work: &Work, recipient: &ActorId, at: &Moment) -> Result<Vec<Denial>, Fault> {
    let mut denials = sealed_in_packet(view, work)?;
    let Some(round) = view.conferences.of_coalition(&work.coalition_ref) else {
        return Ok(denials);
    };
    let seat = round.contract.seat(recipient).filter(|seat| seat.role == work.role);
    if branch!("conference.work_for_nobody_seated", seat.is_none()) {
        let reason = "the recipient has no seat in this role";
        denials.push(Denial::new(Code::MembershipStale, CheckKind::Resolution, reason).of(recipient));
    }
    let moves = work.output_contract_ref == move_contract();
    let in_turn = round.release.is_some() && next_mover(round, at).is_some_and(|next| next.actor == *recipient);
    if moves && branch!("conference.asked_out_of_turn", !in_turn) {
        denials.push(early(&round.contract.conference_id, "it is not this participant's turn to move"));
    }
    if !moves && branch!("conference.asked_twice", round.asked.contains_key(recipient)) {
        let reason = "the participant has been asked";
        denials.push(Denial::new(Code::Duplicate, CheckKind::Resolution, reason).of(recipient));
    }
    let mismatch = |reason: &str| {
        Denial::new(Code::SubjectMismatch, CheckKind::Resolution, reason).of(&round.contract.conference_id)
    };
    let mut digests = Vec::new();
    for subject in &round.contract.subjects {
        digests.push((subject.id(), subject.digest()?));
    }
    let ids: Vec<&Id> = digests.iter().map(|(id, _)| id).collect();
    let same = work.question.subject_refs.iter().eq(ids.iter().copied())
        && digests.iter().all(|(_, digest)| work.context_items.iter().any(|item| item.reference.digest == *digest));
    if branch!("conference.other_subject_asked", !same) {
        denials.push(mismatch("the packet does not hold exactly the declared subjects"));
    }
    let shared = evidence_shared(round);
    let declared: Vec<&str> = shared.iter().map(EvidenceId::as_str).collect();
    let held = work.context_items.iter().map(|item| item.reference.id.as_str());
    let held: Vec<&str> = held.filter(|id| view.evidence.contains_key(&EvidenceId::from(*id))).collect();
    let agrees = declared.iter().all(|id| held.contains(id)) && held.iter().all(|id| declared.contains(id));
    if branch!("conference.other_evidence_given", !agrees) {
        denials.push(mismatch("the packet does not hold exactly the declared evidence"));
    }
    Ok(denials)
}

/// The evidence that everybody starts from, and what moves have brought since.
pub(crate) fn evidence_shared(round: &Round) -> Vec<EvidenceId> {
    let refs = round.contract.evidence_scope.snapshot.refs.iter();
    let mut shared: Vec<EvidenceId> = refs.map(|cited| EvidenceId::new(cited.id.as_str())).collect();
    for relation in round.moves.iter().flat_map(|made| &made.body.evidence) {
        if !shared.contains(&relation.evidence_id) {
            shared.push(relation.evidence_id.clone());
        }
    }
    shared
}

/// Positions that a packet holds although they are not released.
fn sealed_in_packet(view: &View, work: &Work) -> Result<Vec<Denial>, Fault> {
    let mut denials = Vec::new();
    for round in view.conferences.unreleased() {
        for position in round.positions.values() {
            let content = closer_contracts::canonical::digest_of(&*position.body)?;
            let held = work.context_items.iter().find(|item| {
                let digest = item.reference.digest;
                digest == content
                    || digest == position.digest
                    || item.reference.id.as_str() == position.payload_id.as_str()
            });
            if let Some(item) = held
                && branch!("conference.position_in_packet", true)
            {
                let reason = "the packet holds a position that is not released";
                denials.push(Denial::new(Code::NotReleased, CheckKind::Authority, reason).of(&item.reference.id));
            }
        }
    }
    Ok(denials)
}

/// Why an answer is no position: not everybody has been asked yet, or the conference is over.
pub(crate) fn answer_denials(view: &View, result: &WorkResult) -> Vec<Denial> {
    let Some((round, _)) = view.conferences.of_work(&result.work_id) else {
        return Vec::new();
    };
    let id = &round.contract.conference_id;
    let moves = view.works.get(&result.work_id).is_some_and(|work| work.body.output_contract_ref == move_contract());
    if branch!("conference.move_asked_for", moves) {
        let reason = "the work asks for a move, and a position is none";
        return vec![Denial::new(Code::ContractIncompatible, CheckKind::Resolution, reason).of(&result.work_id)];
    }
    if branch!("conference.not_started", !round.has_started()) {
        return vec![early(id, "the conference has not started: not everybody has been asked the same")];
    }
    match branch!("conference.answered_after_end", round.report.is_some() || round.replaced) {
        true => vec![Denial::new(Code::RoundLimit, CheckKind::Runtime, "the conference is over").of(id)],
        false => Vec::new(),
    }
}
