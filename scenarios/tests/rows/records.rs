//! What participants say and what they share is kept: each one's own record, the shared case record, and the order of the
//! inquiry before its rule. Spec: SR21 to SR23, §4.

use crate::conferring::{Inquiry, agreeing, by_role};
use crate::support::{codes, recorded, refused};
use closer_contracts::RefusalCode as Code;
use closer_contracts::auth::SigningScope;
use closer_contracts::conference::MoveKind;
use closer_contracts::id::ActorId;
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole};
use closer_contracts::shows;
use closer_contracts::work::{Need, Relation, Unresolved, WorkResult};
use closer_protocol::conference::{Ending, Turn, case_record, participant_record};
use closer_protocol::entry::Entry;
use closer_scenarios::founding::INQUIRY;
use closer_scenarios::{Deployment, worker};
use std::collections::BTreeSet;

/// Who has written something that is on record.
fn author(inquiry: &Inquiry, written: &ArtifactRef) -> String {
    let entries = inquiry.space.entries().unwrap().into_iter();
    let proofs = entries.filter_map(|(_, entry)| if let Entry::Auth(auth) = entry { Some(auth) } else { None });
    let mut authors = proofs.filter(|auth| auth.content_digest == written.digest).map(|auth| auth.identity.to_string());
    authors.next().expect("its author")
}

#[test]
fn each_participant_has_a_record_of_its_own_that_only_grows() {
    shows!("CP-2-22"; by "work.answered_before");
    let mut inquiry = Inquiry::agreeing();
    inquiry.released();
    for (number, actor) in INQUIRY.iter().enumerate() {
        let own = participant_record(&inquiry.round(), &ActorId::from(*actor));
        assert_eq!(own.len(), 1, "its position");
        assert_eq!(author(&inquiry, &own[0]), *actor);
        let mut retraction = inquiry.a_move(actor, MoveKind::Retract);
        retraction.local_receipt = own[0].clone();
        recorded(&inquiry.make(retraction));
        let grown = participant_record(&inquiry.round(), &ActorId::from(*actor));
        assert_eq!((grown.len(), &grown[0]), (2, &own[0]), "a revision is added");
        assert_eq!(author(&inquiry, &grown[1]), *actor);
        assert_eq!(case_record(&inquiry.round()).len(), 3 + number + 1);
        refused(&inquiry.answer_anew(actor), Code::Duplicate);
        assert_eq!(participant_record(&inquiry.round(), &ActorId::from(*actor)), grown);
    }
}

#[test]
fn what_is_shared_is_neither_edited_nor_taken_out() {
    shows!("CP-2-23"; by "intake.artifact_repeated");
    let mut inquiry = Inquiry::agreeing();
    inquiry.released();
    let challenge = inquiry.a_move("regulator", MoveKind::Challenge);
    recorded(&inquiry.make(challenge.clone()));
    let assent = inquiry.a_move("remainder", MoveKind::Assent);
    recorded(&inquiry.make(assent));
    let before = case_record(&inquiry.round());
    assert_eq!(before.len(), 5, "three positions, a challenge and a commitment");
    let mut edited = challenge.clone();
    edited.reason = Some("It was meant differently.".into());
    refused(&inquiry.make(edited), Code::KeyConflict);
    refused(&inquiry.make(challenge.clone()), Code::Duplicate);
    let regulator = ActorRef { actor_id: "regulator".into(), role: ProducerRole::Participant };
    let mut replaced = challenge;
    (replaced.r#move, replaced.reason_class) = (MoveKind::Defer, None);
    let reply = inquiry.space.submit_artifact(replaced, regulator, SigningScope::ConferenceMove).unwrap();
    assert!(codes(&reply).contains(&Code::KeyConflict), "{reply:?}");
    let mut taken_back = inquiry.a_move("regulator", MoveKind::Retract);
    taken_back.local_receipt =
        participant_record(&inquiry.round(), &ActorId::from("regulator")).last().expect("its newest").clone();
    recorded(&inquiry.make(taken_back));
    let after = case_record(&inquiry.round());
    assert_eq!(after[..5], before[..], "a retraction stands beside what it retracts");
    inquiry.space.crash().unwrap();
    assert_eq!(case_record(&inquiry.round()), after, "in the same order");
}

#[test]
fn the_rule_is_applied_after_the_inquiry_or_its_time() {
    shows!("CP-2-24"; by "conference.concluded_before_release");
    let mut inquiry = Inquiry::agreeing();
    refused(&inquiry.conclude(), Code::NotReleased);
    inquiry.asked();
    refused(&inquiry.conclude(), Code::NotReleased);
    inquiry.until(&Turn::Release);
    refused(&inquiry.conclude(), Code::NotReleased);
    recorded(&inquiry.release());
    let challenge = inquiry.a_move("regulator", MoveKind::Challenge);
    recorded(&inquiry.make(challenge));
    let retraction = inquiry.a_move("remainder", MoveKind::Retract);
    recorded(&inquiry.make(retraction));
    assert_eq!(inquiry.concluded().ending, Ending::RuleApplied);

    let mut silent = Inquiry::agreeing();
    silent.space.silent.insert("regulator".into());
    silent.asked();
    for actor in ["remainder", "investigator"] {
        recorded(&silent.space.answer_late(&silent.id.clone(), actor).unwrap());
    }
    silent.space.pass(60_000).unwrap();
    refused(&silent.conclude(), Code::NotReleased);
    recorded(&silent.seal());
    recorded(&silent.release());
    recorded(&silent.conclude());
}

#[test]
fn a_participants_context_holds_nothing_of_anothers_unreleased_record() {
    shows!("CP-4-04"; by "conference.read_before_release");
    let marked = by_role(|role, work, view| {
        let subject = work.question.subject_refs[0].clone();
        let open = Unresolved { subject, need: Need::Evidence, text: format!("only {role} says this").as_str().into() };
        WorkResult { unresolved: vec![open], ..worker::claims(work, view, "basic", Relation::Supports) }
    });
    let mut inquiry = Inquiry::of(Deployment::default(), "basic", marked);
    inquiry.asked();
    inquiry.until(&Turn::Seal);
    let round = inquiry.round();
    for seat in &round.contract.seats {
        let work_id = round.asked.get(&seat.actor).expect("its work");
        let context = serde_json::to_string(&*inquiry.space.view().works.get(work_id).expect("it").body).unwrap();
        let others = INQUIRY.iter().filter(|other| **other != seat.actor.as_str());
        for other in others {
            let position = inquiry.position(other);
            assert!(!context.contains(&format!("only {other} says this")), "{context}");
            assert!(!context.contains(position.id.as_str()) && !context.contains(&position.digest.to_string()));
            refused(&inquiry.read(seat.actor.as_str(), position), Code::NotReleased);
        }
    }
    let own = inquiry.position("remainder");
    recorded(&inquiry.read("remainder", own.clone()));
    let on_record = inquiry.round().positions.get(&ActorId::from("remainder")).expect("its position").body.clone();
    let kept = serde_json::to_string(&*on_record).unwrap();
    assert!(kept.contains("only remainder says this"), "it was said");
}

#[test]
fn a_role_is_a_part_of_the_assessment_whoever_fills_it() {
    shows!("CP-2-08"; by "work.role_charged");
    let mut contracts = BTreeSet::new();
    for turned in 0..3 {
        let mut inquiry = Inquiry::under(Deployment::default(), "basic", agreeing(), |contract| {
            let mut actors: Vec<ActorId> = contract.seats.iter().map(|seat| seat.actor.clone()).collect();
            actors.rotate_left(turned);
            for (seat, actor) in contract.seats.iter_mut().zip(actors) {
                (seat.model, seat.actor) = (format!("model-{actor}").as_str().into(), actor);
            }
        });
        inquiry.asked();
        let view = inquiry.space.view().clone();
        for (role, part) in [("remainder", "left out"), ("investigator", "inference"), ("regulator", "authority")] {
            let (work_id, work) =
                view.works.iter().find(|(_, work)| work.body.role.as_str() == role).expect("its work");
            let place = INQUIRY.iter().position(|other| *other == role).expect("a role");
            let who = view.issued_to.get(work_id).expect("whom it was issued to");
            assert_eq!(who.as_str(), INQUIRY[(place + turned) % 3]);
            assert!(work.body.question.text.as_str().contains(part), "{who} as {role}");
            let (answered_under, proposed_in) = (&work.body.output_contract_ref, &work.body.proposal_vocabulary_ref);
            contracts.insert(format!("{answered_under:?} {proposed_in:?}"));
        }
        inquiry.released();
        assert_eq!(inquiry.concluded().ending, Ending::RuleApplied);
    }
    assert_eq!(contracts.len(), 1, "one contract, whoever answers in whichever role");
}
