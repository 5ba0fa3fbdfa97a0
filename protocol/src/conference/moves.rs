//! The nine moves: each is its mover's own, within the contract, and bound to eight things. Spec: §4.1, DEC-43.

use super::table::Round;
use crate::entry::{ActivationEntry, ArtifactBody, Cause, Entry, Fired};
use crate::input::{Effect, Reply, Submission};
use crate::sequence::Deciding;
use crate::streams;
use crate::view::View;
use closer_contracts::branch;
use closer_contracts::conference::{ConferenceMove, MoveKind, Subject};
use closer_contracts::fault::Fault;
use closer_contracts::id::{Id, Text};
use closer_contracts::refs::ArtifactRef;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::work::Proposition;

/// Records a move, or refuses it with everything that speaks against it.
pub(crate) fn make(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    made: &ConferenceMove,
) -> Result<Reply, Fault> {
    let view = deciding.view;
    let digest = Some(submission.content.digest()?);
    let id = Id::new(made.move_id.as_str());
    let Some(round) = view.conferences.round(&made.conference_id) else {
        let denial = super::unknown(&made.conference_id);
        return deciding.refuse(id, digest, vec![denial]);
    };
    let foreign = submission.producer.actor_id != made.actor;
    if branch!("conference.move_for_another", foreign) {
        let code = match made.r#move {
            MoveKind::Assent => Code::ForeignAssent,
            MoveKind::Assert
            | MoveKind::Support
            | MoveKind::Challenge
            | MoveKind::Narrow
            | MoveKind::Retract
            | MoveKind::RequestEvidence
            | MoveKind::RetainWithReason
            | MoveKind::Defer => Code::Unauthenticated,
        };
        let reason = "a move is made by its own participant, and by nobody for another";
        let denial = Denial::new(code, CheckKind::Authentication, reason).of(&made.actor);
        return deciding.refuse(id, digest, vec![denial]);
    }
    if branch!("conference.moved_before_release", round.release.is_none()) {
        let reason = "positions are not released: nobody can answer what nobody has seen";
        let denial = Denial::new(Code::NotReleased, CheckKind::Runtime, reason).of(&made.conference_id);
        return deciding.refuse(id, digest, vec![denial]);
    }
    if let Some((denial, ending)) = super::used_up(round, &made.actor, deciding.at) {
        let reply = deciding.refuse(id, digest, vec![denial])?;
        if let Some(ending) = ending {
            super::steps::conclude_as(deciding, round, ending)?;
        }
        return Ok(reply);
    }
    let new_subject = branch!("conference.subject_undeclared", !is_declared(round, made));
    let mut denials = bindings(round, made);
    if new_subject {
        let reason = "the subject is not among those of the contract; it is work of its own";
        denials.push(Denial::new(Code::MoveNotAllowed, CheckKind::Resolution, reason).of(made.subject));
    }
    denials.extend(evidence(view, round, made));
    if !denials.is_empty() {
        let reply = deciding.refuse(id, digest, denials)?;
        if new_subject {
            offer_work(deciding, round, made)?;
        }
        return Ok(reply);
    }
    let mut streams = super::streams_of(round);
    streams.extend(made.evidence.iter().map(|relation| streams::proposition(&relation.proposition_id)));
    let reference = deciding.batch.artifact((*submission.content).clone(), streams)?;
    deciding.batch.auth(submission.auth.record())?;
    if let Some(turned) = super::open_turn(round, &made.actor) {
        crate::work::settle(deciding, &turned.work_id)?;
    }
    deciding.effects.push(Effect::Advance(round.contract.episode_id.clone()));
    Ok(Reply::Recorded(vec![reference]))
}

/// Whether a move is about a declared subject, about an action that a released position proposes to bring one about with,
/// or narrows one to something that lies in it (DEC-43).
fn is_declared(round: &Round, made: &ConferenceMove) -> bool {
    let subjects = &round.contract.subjects;
    let known = subjects.iter().any(|subject| subject.digest().ok() == Some(made.subject))
        || round.moves.iter().any(|known| known.body.narrowed.is_some() && known.body.subject == made.subject);
    let narrows = made.narrowed.as_ref().is_some_and(|narrowed| {
        subjects.iter().any(|subject| matches!(subject, Subject::Proposition(wide) if lies_within(narrowed, wide)))
    });
    known || narrows || branch!("conference.proposed_in_position", is_proposed(round, made))
}

fn is_proposed(round: &Round, made: &ConferenceMove) -> bool {
    let declared = |id: &Id| round.contract.subjects.iter().any(|subject| subject.id() == *id);
    let proposals = round.positions.values().flat_map(|position| &position.body.action_proposals);
    proposals
        .filter(|proposal| declared(&proposal.expected_postcondition.id))
        .any(|proposal| closer_contracts::canonical::digest_of(proposal).ok() == Some(made.subject))
}

fn lies_within(narrowed: &Proposition, wide: &Proposition) -> bool {
    let same = narrowed.subject == wide.subject
        && narrowed.predicate == wide.predicate
        && narrowed.object == wide.object
        && narrowed.proposition_id != wide.proposition_id;
    same && branch!("conference.narrows", wide.scope.contains(&narrowed.scope))
}

/// What a move is bound to, thing by thing: its seat and role, its own record, the release, the basis, the move it answers.
fn bindings(round: &Round, made: &ConferenceMove) -> Vec<Denial> {
    let mut denials = Vec::new();
    let mut no =
        |code, check, reason: &str, of: &dyn std::fmt::Display| denials.push(Denial::new(code, check, reason).of(of));
    let seated = round.contract.seat(&made.actor).is_some_and(|seat| seat.role == made.role);
    if branch!("conference.mover_not_seated", !seated) {
        no(Code::MissingAuthority, CheckKind::Authority, "the participant has no seat in this role", &made.role);
    }
    if branch!("conference.move_unlisted", !round.contract.allowed_moves.contains(&made.r#move)) {
        no(Code::MoveNotAllowed, CheckKind::Authority, "the contract does not allow this move", &made.r#move);
    }
    let position = round.positions.get(&made.actor).map(super::table::Position::reference);
    let mut own = round.moves.iter().filter(|known| known.body.actor == made.actor).map(|known| &known.reference);
    let receipt = position.as_ref() == Some(&made.local_receipt) || own.any(|known| *known == made.local_receipt);
    if branch!("conference.receipt_not_own", !receipt) {
        let reason = "the local receipt is no record of this participant in this conference";
        no(Code::UnresolvedRef, CheckKind::Resolution, reason, &made.local_receipt.id);
    }
    let released = round.release.as_ref().is_some_and(|release| release.reference == made.shared_snapshot);
    if branch!("conference.other_snapshot", !released) {
        let reason = "the shared snapshot is not the release of this conference";
        no(Code::UnresolvedRef, CheckKind::Resolution, reason, &made.shared_snapshot.id);
    }
    if branch!("conference.other_basis", made.governing_basis != round.contract.basis) {
        let reason = "the conference speaks on another accepted state; a changed state is a rebase";
        no(Code::StaleVersion, CheckKind::Resolution, reason, &made.governing_basis.version);
    }
    let answers = |reference: &ArtifactRef| round.moves.iter().any(|known| known.reference == *reference);
    if let Some(reference) = &made.reply_to
        && branch!("conference.reply_unknown", !answers(reference))
    {
        no(Code::UnresolvedRef, CheckKind::Resolution, "no such move was made in this conference", &reference.id);
    }
    denials
}

/// The evidence that a move brings: on record, within the declared scope, about the move's own subject.
fn evidence(view: &View, round: &Round, made: &ConferenceMove) -> Vec<Denial> {
    let mut denials = Vec::new();
    let scope = &round.contract.evidence_scope;
    let narrowed = made.narrowed.as_ref().map(|narrowed| Id::from(&narrowed.proposition_id));
    let subjects = round.subject_ids();
    for relation in &made.evidence {
        let Some(evidence) = view.evidence.get(&relation.evidence_id) else {
            let reason = "the move cites evidence that is not on record";
            denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&relation.evidence_id));
            continue;
        };
        let listed = scope.snapshot.refs.iter().any(|cited| cited.id.as_str() == relation.evidence_id.as_str());
        let streamed = scope.streams.contains(&evidence.body.target_binding.observation_sequence_ref);
        if branch!("conference.evidence_outside_scope", !listed && !streamed) {
            let reason = "the evidence lies outside the scope that the contract declares";
            denials.push(Denial::new(Code::OutOfBounds, CheckKind::Resolution, reason).of(&relation.evidence_id));
        }
        let about = Id::from(&relation.proposition_id);
        let known = subjects.contains(&about) || narrowed.as_ref() == Some(&about);
        if branch!("conference.relation_off_subject", !known) {
            let reason = "the relation is about a proposition that the conference is not about";
            denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&about));
        }
    }
    denials
}

/// A materially new subject is offered as bounded work of its own (§4.1).
fn offer_work(deciding: &mut Deciding<'_>, round: &Round, made: &ConferenceMove) -> Result<(), Fault> {
    let obligation_id = round.contract.obligation_id.clone();
    let reason = format!("`{}` raised a subject that its conference was not about: {}", made.actor, made.subject);
    let cause = Cause {
        event_id: None,
        match_receipt: None,
        reentry_id: None,
        activation_key: None,
        reason: Text::new(reason),
    };
    let id = crate::derived_id("offered", made.move_id.as_str());
    let fired = Fired { obligation_id: obligation_id.clone(), cause };
    let streams = vec![streams::history(&obligation_id)];
    deciding.batch.push(&id, Entry::Activation(ActivationEntry::Fired(fired)), streams, Vec::new())?;
    deciding.effects.push(Effect::Eligible(obligation_id));
    Ok(())
}
