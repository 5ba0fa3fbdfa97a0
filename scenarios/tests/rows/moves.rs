//! The nine moves of a conference: each its mover's own, within the contract, and bound to eight things.

use crate::conferring::{Inquiry, agreeing, seats, subject};
use crate::support::{codes, recorded, refused};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::{Adjudication, Disposition, RolePosition, Stance};
use closer_contracts::auth::SigningScope;
use closer_contracts::conference::{MoveKind, Subject};
use closer_contracts::digest::Digest;
use closer_contracts::id::EvidenceId;
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole};
use closer_contracts::shows;
use closer_contracts::work::Relation;
use closer_protocol::conference::{Ending, Turn};
use closer_protocol::entry::{ActivationEntry, Entry};
use closer_protocol::episode::Next;
use closer_protocol::{adjudicate, services};
use closer_scenarios::founding::proposition;
use closer_scenarios::{Deployment, worker};

fn released() -> Inquiry {
    let mut inquiry = Inquiry::agreeing();
    inquiry.released();
    inquiry
}

#[test]
fn each_of_the_nine_moves_is_taken_and_attributed() {
    shows!("CP-4.1-25", "CP-3.5-01", "CP-3.5-02"; by "conference.move_unlisted");
    let mut inquiry = Inquiry::under(Deployment::default(), "basic", agreeing(), |contract| {
        contract.stop.rounds_max = 9;
    });
    inquiry.until(&Turn::Release);
    let round = inquiry.round();
    assert!(round.seal.as_ref().expect("the seal").body.sealed.iter().all(|sealed| !sealed.actor.as_str().is_empty()));
    inquiry.released();
    for verb in MoveKind::ALL {
        let made = inquiry.a_move("investigator", *verb);
        recorded(&inquiry.make(made));
    }
    let round = inquiry.round();
    let made: Vec<MoveKind> = round.moves.iter().map(|made| made.body.r#move).collect();
    assert_eq!(made, MoveKind::ALL, "commitments, challenges and retractions among them");
    assert!(round.moves.iter().all(|made| made.body.actor.as_str() == "investigator"));
    let released = &round.release.as_ref().expect("the release").body.positions;
    let told: Vec<(&str, &str)> =
        released.iter().map(|released| (released.actor.as_str(), released.role.as_str())).collect();
    assert_eq!(
        told,
        [("remainder", "remainder"), ("investigator", "investigator"), ("regulator", "regulator")],
        "no position is anonymous"
    );
}

#[test]
fn a_move_that_the_contract_does_not_list_is_refused() {
    shows!("CP-4.1-26"; by "conference.move_unlisted");
    let mut inquiry = Inquiry::under(Deployment::default(), "basic", agreeing(), |contract| {
        contract.allowed_moves.retain(|allowed| *allowed != MoveKind::Challenge);
    });
    inquiry.released();
    let challenge = inquiry.a_move("regulator", MoveKind::Challenge);
    assert_eq!(codes(&inquiry.make(challenge)), [Code::MoveNotAllowed]);
    let deferred = inquiry.a_move("regulator", MoveKind::Defer);
    recorded(&inquiry.make(deferred));
}

#[test]
fn a_move_is_bound_to_its_mover_role_and_own_record() {
    shows!(
        "CP-4.1-27"; by "conference.move_for_another", "conference.mover_not_seated", "conference.receipt_not_own"
    );
    let mut inquiry = released();
    let own = inquiry.a_move("regulator", MoveKind::Challenge);
    let mut another = own.clone();
    another.actor = "investigator".into();
    another.role = "investigator".into();
    let producer = ActorRef { actor_id: "regulator".into(), role: ProducerRole::Participant };
    refused(
        &inquiry.space.submit_artifact(another, producer, SigningScope::ConferenceMove).unwrap(),
        Code::Unauthenticated,
    );
    let mut role = own.clone();
    role.role = "investigator".into();
    refused(&inquiry.make(role), Code::MissingAuthority);
    let mut receipt = own.clone();
    receipt.local_receipt = inquiry.position("investigator");
    refused(&inquiry.make(receipt), Code::UnresolvedRef);
    let mut worker = own.clone();
    worker.actor = "worker".into();
    assert!(codes(&inquiry.make(worker)).contains(&Code::MissingAuthority));
    recorded(&inquiry.make(own));
}

#[test]
fn a_move_is_bound_to_release_basis_and_the_move_it_answers() {
    shows!("CP-4.1-27"; by "conference.other_snapshot", "conference.other_basis", "conference.reply_unknown");
    let mut inquiry = released();
    let own = inquiry.a_move("regulator", MoveKind::Challenge);
    let mut snapshot = own.clone();
    snapshot.shared_snapshot = inquiry.round().seal.as_ref().expect("the seal").reference.clone();
    refused(&inquiry.make(snapshot), Code::UnresolvedRef);
    let mut basis = own.clone();
    basis.governing_basis.version += 1;
    refused(&inquiry.make(basis), Code::StaleVersion);
    let mut reply = own.clone();
    reply.reply_to = Some(ArtifactRef { id: "move-unheard-of".into(), digest: Digest::of(b"unheard of") });
    refused(&inquiry.make(reply), Code::UnresolvedRef);
    recorded(&inquiry.make(own));
    let mut answer = inquiry.a_move("remainder", MoveKind::RetainWithReason);
    answer.reply_to = inquiry.round().moves.last().map(|made| made.reference.clone());
    recorded(&inquiry.make(answer));
}

#[test]
fn a_move_is_bound_to_evidence_on_record_within_the_declared_scope() {
    shows!("CP-4.1-27"; by "conference.evidence_outside_scope", "conference.relation_off_subject");
    let mut inquiry = Inquiry::under(Deployment::default(), "basic", agreeing(), |contract| {
        contract.evidence_scope.streams.clear();
    });
    inquiry.released();
    let listed = inquiry.space.newest_evidence().expect("evidence");
    recorded(&inquiry.space.observe(&closer_scenarios::founding::plan_target(), Some("o-1")).unwrap());
    let later = inquiry.space.view().evidence.keys().find(|id| **id != listed).cloned().expect("later evidence");
    for (evidence, proposition, code) in [
        (EvidenceId::from("ev-invented"), "p-o-1", Code::UnresolvedRef),
        (later, "p-o-1", Code::OutOfBounds),
        (listed.clone(), "p-elsewhere", Code::UnresolvedRef),
    ] {
        let mut made = inquiry.a_move("regulator", MoveKind::Support);
        made.evidence = vec![worker::relation(inquiry.space.view(), proposition, &evidence, Relation::Supports)];
        assert_eq!(codes(&inquiry.make(made)), [code], "{evidence} {proposition}");
    }
    let mut made = inquiry.a_move("regulator", MoveKind::Support);
    made.evidence = vec![worker::relation(inquiry.space.view(), "p-o-1", &listed, Relation::Supports)];
    recorded(&inquiry.make(made));
}

#[test]
fn a_new_subject_is_work_of_its_own_and_no_move() {
    shows!("CP-4.1-29"; by "conference.subject_undeclared", "conference.narrows");
    let mut inquiry = released();
    let elsewhere = Subject::Proposition(proposition("o-2", "basic"));
    let new = inquiry.space.a_move(&inquiry.id, "remainder", MoveKind::Assert, &elsewhere).unwrap();
    assert_eq!(codes(&inquiry.make(new)), [Code::MoveNotAllowed]);
    let offered = inquiry.space.entries().unwrap().into_iter().any(|(_, entry)| {
        matches!(entry, Entry::Activation(ActivationEntry::Fired(fired)) if fired.cause.reason.as_str().contains("subject"))
    });
    assert!(offered, "the subject is offered as work");
    let mut wider = inquiry.a_move("remainder", MoveKind::Narrow);
    if let Some(narrowed) = &mut wider.narrowed {
        narrowed.scope.0.remove(0);
        wider.subject = Subject::Proposition(narrowed.clone()).digest().unwrap();
    }
    assert_eq!(codes(&inquiry.make(wider)), [Code::MoveNotAllowed], "it does not lie in the declared one");
    let narrow = inquiry.a_move("remainder", MoveKind::Narrow);
    let narrowed = Subject::Proposition(narrow.narrowed.clone().expect("a narrower proposition"));
    recorded(&inquiry.make(narrow));
    let agreed = inquiry.space.a_move(&inquiry.id, "regulator", MoveKind::Assent, &narrowed).unwrap();
    recorded(&inquiry.make(agreed));
}

#[test]
fn rounds_calls_and_time_are_bounded() {
    shows!(
        "CP-4.1-24"; by "conference.rounds_used_up", "conference.calls_used_up", "conference.time_used_up"
    );
    let bounded = |rounds: u32, calls: u32| {
        let mut inquiry = Inquiry::under(Deployment::default(), "basic", agreeing(), |contract| {
            contract.stop.rounds_max = rounds;
            contract.stop.calls_max = calls;
        });
        inquiry.released();
        inquiry
    };
    let ending = |inquiry: &Inquiry| inquiry.round().report.as_ref().map(|report| report.body.ending);
    let mut inquiry = bounded(1, 20);
    for actor in ["remainder", "investigator", "regulator"] {
        let made = inquiry.a_move(actor, MoveKind::Defer);
        recorded(&inquiry.make(made));
        let again = inquiry.a_move(actor, MoveKind::Defer);
        refused(&inquiry.make(again), Code::RoundLimit);
    }
    assert_eq!(ending(&inquiry), Some(Ending::Rounds), "nobody can move any more");
    let mut inquiry = bounded(1, 20);
    let made = inquiry.a_move("remainder", MoveKind::Defer);
    recorded(&inquiry.make(made));
    let again = inquiry.a_move("remainder", MoveKind::Defer);
    refused(&inquiry.make(again), Code::RoundLimit);
    assert_eq!(ending(&inquiry), None, "one participant ends nothing for the others");
    let mut inquiry = bounded(9, 4);
    let made = inquiry.a_move("remainder", MoveKind::Defer);
    recorded(&inquiry.make(made));
    let made = inquiry.a_move("regulator", MoveKind::Defer);
    refused(&inquiry.make(made), Code::RoundLimit);
    assert_eq!(ending(&inquiry), Some(Ending::Calls));
    let mut inquiry = bounded(9, 20);
    inquiry.space.pass(299_999).unwrap();
    let made = inquiry.a_move("regulator", MoveKind::Defer);
    recorded(&inquiry.make(made));
    inquiry.space.pass(1).unwrap();
    let made = inquiry.a_move("regulator", MoveKind::Defer);
    refused(&inquiry.make(made), Code::RoundLimit);
    assert_eq!(ending(&inquiry), Some(Ending::Time));
}

#[test]
fn what_comes_after_the_end_is_no_part_of_it() {
    shows!("CP-4.1-24"; by "conference.is_over", "conference.answered_after_end");
    let mut inquiry = Inquiry::agreeing();
    inquiry.space.silent.insert("regulator".into());
    inquiry.released();
    recorded(&inquiry.conclude());
    let made = inquiry.a_move("remainder", MoveKind::Retract);
    refused(&inquiry.make(made), Code::RoundLimit);
    refused(&inquiry.space.answer_late(&inquiry.id.clone(), "regulator").unwrap(), Code::RoundLimit);
}

#[test]
fn nobody_assents_for_another() {
    shows!("CP-4.1-30"; by "conference.move_for_another");
    let mut inquiry = released();
    for (who, role) in [("closer.coordinator", ProducerRole::Coordinator), ("remainder", ProducerRole::Participant)] {
        let assent = inquiry.a_move("regulator", MoveKind::Assent);
        let producer = ActorRef { actor_id: who.into(), role };
        let reply = inquiry.space.submit_artifact(assent, producer, SigningScope::ConferenceMove).unwrap();
        refused(&reply, Code::ForeignAssent);
    }
    let own = inquiry.a_move("regulator", MoveKind::Assent);
    recorded(&inquiry.make(own));
}

/// The assessor's draft for the delta of a conference that has been concluded, and how to change and submit it.
fn endorsing(inquiry: &mut Inquiry) -> Adjudication {
    recorded(&inquiry.conclude());
    let episode_id = inquiry.episode_id.clone();
    let next = crate::support::until(&mut inquiry.space, &episode_id, |next| matches!(next, Next::Endorse { .. }));
    let Next::Endorse { delta_id } = next else { unreachable!("just matched") };
    let view = inquiry.space.view();
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let delta = view.deltas.get(&delta_id).expect("the delta");
    let payload = adjudicate::semantic_commit(view, episode, delta, &inquiry.space.moment().now).unwrap();
    let closer_contracts::envelope::Body::Adjudication(body) = payload.body() else { unreachable!("an adjudication") };
    (**body).clone()
}

fn submit(inquiry: &mut Inquiry, adjudication: Adjudication) -> closer_protocol::Reply {
    let view = inquiry.space.view();
    let episode = view.episodes.get(&inquiry.episode_id).expect("the episode");
    let lineage = closer_protocol::work::lineage(episode, Vec::new());
    let payload = inquiry.space.write_in(ProducerRole::Assessor, lineage, adjudication).unwrap();
    inquiry.space.submit_payload(payload).unwrap()
}

#[test]
fn an_adjudication_cannot_put_words_into_anybodys_mouth() {
    shows!("CP-4.1-30"; by "adjudicate.position_not_own", "adjudicate.assent_not_given");
    let mut inquiry = released();
    let challenge = inquiry.a_move("regulator", MoveKind::Challenge);
    recorded(&inquiry.make(challenge));
    let draft = endorsing(&mut inquiry);
    assert_eq!(draft.disposition, Disposition::Endorsed);
    let stances: Vec<(&str, Stance)> =
        draft.role_positions.iter().map(|position| (position.actor.as_str(), position.position)).collect();
    assert_eq!(
        stances,
        [
            ("closer.assessor", Stance::For),
            ("remainder", Stance::For),
            ("investigator", Stance::For),
            ("regulator", Stance::Against)
        ]
    );
    let position = |actor: &str, receipt: ArtifactRef| RolePosition {
        actor: actor.into(),
        role: actor.into(),
        position: Stance::For,
        reason: "It surely agrees.".into(),
        receipt,
    };
    for (actor, receipt) in [
        ("regulator", inquiry.position("regulator")),
        ("regulator", inquiry.position("remainder")),
        ("worker", inquiry.position("remainder")),
    ] {
        let mut foreign = draft.clone();
        foreign.role_positions.retain(|known| known.actor.as_str() != actor);
        foreign.role_positions.push(position(actor, receipt));
        refused(&submit(&mut inquiry, foreign), Code::ForeignAssent);
    }
    assert_eq!(services::actor(ProducerRole::Assessor), draft.role_positions[0].actor);
    recorded(&submit(&mut inquiry, draft));
}

#[test]
fn one_seat_for_one_participant_in_one_context() {
    shows!("CP-4.1-36"; by "conference.seat_taken_twice");
    let mut inquiry = released();
    recorded(&inquiry.conclude());
    let episode_id = inquiry.episode_id.clone();
    for change in [0, 1] {
        let mut doubled = seats();
        match change {
            0 => doubled[1].actor = doubled[0].actor.clone(),
            _ => doubled[1].context = doubled[0].context.clone(),
        }
        let contract = inquiry.space.conference(&episode_id, vec![subject()], doubled).unwrap();
        refused(&inquiry.space.convene(contract).unwrap(), Code::SchemaInvalid);
    }
}
