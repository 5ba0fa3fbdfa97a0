//! The conference: everybody is asked the same, nobody sees another's position before all are fixed, and what was seen
//! stays seen.

use crate::conferring::{Inquiry, agreeing, seats, subject};
use crate::support::{changed, codes, recorded, refused};
use closer_contracts::RefusalCode as Code;
use closer_contracts::conference::{Conference, FollowKind, Follows, MoveKind};
use closer_contracts::envelope::Body;
use closer_contracts::id::ActorId;
use closer_contracts::record::CustodyClass;
use closer_contracts::refs::{ArtifactRef, ProducerRole};
use closer_contracts::shows;
use closer_protocol::conference::{
    Claim, Ending, Label, Proceed, Reach, Turn, What, case_record, independence, participant_record, sealed_digest,
};
use closer_protocol::entry::{ArtifactBody, Entry};
use closer_protocol::input::Input;
use closer_scenarios::Deployment;
use closer_scenarios::founding::plan_target;

/// What the record holds of conferences, in order.
fn proceedings(inquiry: &Inquiry) -> Vec<What> {
    let entries = inquiry.space.entries().unwrap().into_iter();
    let artifacts = entries.filter_map(|(_, entry)| if let Entry::Artifact(body) = entry { Some(body) } else { None });
    artifacts
        .filter_map(|body| {
            if let ArtifactBody::Proceeding(proceeding) = &*body { Some(proceeding.what.clone()) } else { None }
        })
        .collect()
}

fn reaches(inquiry: &Inquiry) -> Vec<(String, Reach, ArtifactRef)> {
    let accesses = proceedings(inquiry).into_iter();
    accesses
        .filter_map(|what| if let What::Accessed(access) = what { Some(access) } else { None })
        .map(|access| (access.reader.to_string(), access.reach, access.item))
        .collect()
}

#[test]
fn its_steps_follow_one_another_and_none_comes_early() {
    shows!(
        "CP-4.1-09"; by "conference.sealed_before_start", "conference.sealed_too_early",
        "conference.moved_before_release", "conference.concluded_before_release"
    );
    let mut inquiry = Inquiry::agreeing();
    refused(&inquiry.seal(), Code::NotReleased);
    inquiry.asked();
    refused(&inquiry.seal(), Code::NotReleased);
    refused(&inquiry.release(), Code::NotReleased);
    inquiry.until(&Turn::Seal);
    refused(&inquiry.release(), Code::NotReleased);
    refused(&inquiry.conclude(), Code::NotReleased);
    recorded(&inquiry.seal());
    let early = inquiry.a_move("regulator", MoveKind::Challenge);
    refused(&inquiry.make(early), Code::NotReleased);
    refused(&inquiry.conclude(), Code::NotReleased);
    recorded(&inquiry.release());
    let challenge = inquiry.a_move("regulator", MoveKind::Challenge);
    recorded(&inquiry.make(challenge));
    assert_eq!(inquiry.concluded().ending, Ending::RuleApplied);
    let order: Vec<&str> = proceedings(&inquiry)
        .iter()
        .map(|what| match what {
            What::Sealed(_) => "sealed",
            What::Released(_) => "released",
            What::Accessed(_) => "accessed",
            What::Concluded(_) => "concluded",
        })
        .collect();
    assert_eq!(order, ["sealed", "released", "concluded"]);
}

#[test]
fn everybody_is_asked_the_same_on_the_same_evidence_or_nothing_starts() {
    shows!(
        "CP-4.1-08"; by "conference.other_subject_asked", "conference.other_evidence_given", "conference.not_started"
    );
    let mut inquiry = Inquiry::agreeing();
    let round = inquiry.round();
    let [first, second, third] = round.contract.seats.as_slice() else { unreachable!("three seats") };
    recorded(&inquiry.space.ask_seat(&round, first).unwrap());
    let view = inquiry.space.view().clone();
    let episode = view.episodes.get(&inquiry.episode_id).expect("the episode");
    let now = inquiry.space.moment().now;
    let packet = closer_protocol::work::draft_for_seat(&view, episode, &round, second, &now).unwrap();
    for dropped in ["p-o-1", "ev-plan.read"] {
        let other = changed(&packet.work, |envelope| {
            let Body::Work(work) = &envelope.body else { unreachable!("work") };
            let mut work = (**work).clone();
            work.context_items.retain(|item| !item.reference.id.as_str().starts_with(dropped));
            envelope.payload_id = format!("pl.other.{dropped}").as_str().into();
            envelope.body = work.into();
        });
        let work = inquiry.space.submission(other).unwrap();
        let reply = inquiry.space.submit(Input::Issue { work, disclosure: packet.disclosure.clone() }).unwrap();
        assert!(codes(&reply).contains(&Code::SubjectMismatch), "without {dropped}: {reply:?}");
    }
    refused(&inquiry.space.answer_late(&inquiry.id.clone(), first.actor.as_str()).unwrap(), Code::NotReleased);
    refused(&inquiry.seal(), Code::NotReleased);
    recorded(&inquiry.space.ask_seat(&round, second).unwrap());
    recorded(&inquiry.space.ask_seat(&round, third).unwrap());
    recorded(&inquiry.space.answer_late(&inquiry.id.clone(), first.actor.as_str()).unwrap());
}

#[test]
fn each_role_is_asked_for_its_own_part_of_the_same_question() {
    shows!("CP-4.1-01", "CP-4.1-02", "CP-4.1-03"; by "work.role_charged");
    let mut inquiry = Inquiry::agreeing();
    inquiry.asked();
    for (role, part) in [("remainder", "left out"), ("investigator", "inference"), ("regulator", "authority")] {
        let work = inquiry.space.view().works.values().find(|work| work.body.role.as_str() == role).expect("its work");
        let question = work.body.question.text.as_str();
        assert!(question.contains(part) && question.ends_with("Is the plan changed?"), "{role}: {question}");
        assert_eq!(work.body.output_contract_ref, closer_protocol::work::output_contract());
        let held = |id: &str| work.body.context_items.iter().any(|item| item.reference.id.as_str() == id);
        assert!(role != "regulator" || held("grant-1"), "the regulator has the authority boundaries before it");
    }
}

#[test]
fn nobody_reads_another_position_before_its_release_and_every_attempt_is_on_record() {
    shows!("CP-4.1-10", "CP-4.1-15"; by "conference.read_before_release");
    let mut inquiry = Inquiry::agreeing();
    inquiry.asked();
    inquiry.until(&Turn::Seal);
    let item = inquiry.position("remainder");
    refused(&inquiry.read("regulator", item.clone()), Code::NotReleased);
    recorded(&inquiry.read("remainder", item.clone()));
    assert_eq!(reaches(&inquiry), [("regulator".to_owned(), Reach::Refused, item.clone())]);
    let refusals: Vec<String> = inquiry
        .space
        .entries()
        .unwrap()
        .into_iter()
        .filter_map(|(_, entry)| if let Entry::Refusal(refusal) = entry { Some(refusal) } else { None })
        .filter(|refusal| refusal.code == Code::NotReleased && refusal.subject_digest == Some(item.digest))
        .map(|refusal| format!("{} {}", refusal.reason, refusal.refused_at.as_str()))
        .collect();
    assert!(refusals.len() == 1 && refusals[0].contains("`regulator`"), "reader, item and time: {refusals:?}");
    inquiry.released();
    recorded(&inquiry.read("regulator", item.clone()));
    assert_eq!(inquiry.label("regulator"), Label::Independent, "what is refused was not seen");
}

#[test]
fn a_released_position_is_read_by_the_seats_and_by_nobody_else() {
    shows!("CP-4.1-10"; by "conference.reader_not_seated");
    let mut inquiry = Inquiry::agreeing();
    inquiry.released();
    let item = inquiry.position("remainder");
    refused(&inquiry.read("worker", item), Code::DisclosureDenied);
}

#[test]
fn snapshot_participants_and_digests_are_on_record_before_the_release() {
    shows!("CP-4.1-11"; by "conference.not_as_sealed");
    let mut inquiry = Inquiry::agreeing();
    inquiry.until(&Turn::Release);
    let round = inquiry.round();
    let seal = round.seal.as_ref().expect("the seal").body.clone();
    assert_eq!(seal.basis, inquiry.space.view().state.reference());
    let sealed: Vec<&str> = seal.sealed.iter().map(|sealed| sealed.actor.as_str()).collect();
    assert_eq!(sealed, ["remainder", "investigator", "regulator"]);
    for sealed in &seal.sealed {
        let position = inquiry.position(sealed.actor.as_str());
        assert_eq!(sealed.digest, sealed_digest(&seal.nonce, &sealed.actor, position.digest));
        assert_ne!(sealed.digest, position.digest, "who knows the content cannot recognize the digest");
    }
    recorded(&inquiry.release());
}

#[test]
fn a_seal_cannot_be_guessed() {
    shows!("CP-4.1-11"; by "conference.nonce_too_short");
    let mut inquiry = Inquiry::agreeing();
    inquiry.asked();
    inquiry.until(&Turn::Seal);
    for nonce in ["0011", "not hexadecimal, though it is long enough"] {
        let proceed = Proceed::Seal { conference_id: inquiry.id.clone(), nonce: nonce.into() };
        refused(&inquiry.proceed(proceed), Code::SchemaInvalid);
    }
    recorded(&inquiry.seal());
}

#[test]
fn a_sealed_position_is_neither_readable_nor_changed() {
    shows!("CP-4.1-12"; by "conference.recorded_sealed", "work.answered_before");
    let mut inquiry = Inquiry::agreeing();
    inquiry.until(&Turn::Release);
    let id = inquiry.id.clone();
    assert!(codes(&inquiry.space.answer_late(&id, "remainder").unwrap()).contains(&Code::Duplicate));
    let item = inquiry.position("remainder");
    let work_id = inquiry.round().asked.get(&ActorId::from("remainder")).cloned().expect("its work");
    let view = inquiry.space.view().clone();
    let episode = view.episodes.get(&inquiry.episode_id).expect("the episode");
    let work = view.works.get(&work_id).expect("its work");
    let revised = closer_scenarios::worker::nothing(&work.body);
    let now = inquiry.space.moment().now;
    let actor = ActorId::from("remainder");
    let overwrite = closer_protocol::work::draft_result(&view, episode, &actor, &work_id, revised, &now).unwrap();
    assert!(codes(&inquiry.space.submit_payload(overwrite).unwrap()).contains(&Code::KeyConflict));
    refused(&inquiry.answer_anew("remainder"), Code::Duplicate);
    assert_eq!(inquiry.position("remainder"), item);
    let records = inquiry.space.records().iter();
    let classes: Vec<CustodyClass> =
        records.filter(|record| record.id == item.id.as_str()).map(|record| record.custody).collect();
    assert_eq!(classes, [CustodyClass::Sealed]);
}

#[test]
fn who_says_nothing_in_time_is_absent_and_the_others_go_on() {
    shows!("CP-4.1-13"; by "conference.seal_due", "conference.sealed_too_early");
    let mut inquiry = Inquiry::agreeing();
    inquiry.space.silent.insert("regulator".into());
    inquiry.asked();
    for actor in ["remainder", "investigator"] {
        recorded(&inquiry.space.answer_late(&inquiry.id.clone(), actor).unwrap());
    }
    inquiry.space.pass(59_999).unwrap();
    refused(&inquiry.seal(), Code::NotReleased);
    inquiry.space.pass(1).unwrap();
    recorded(&inquiry.seal());
    let seal = inquiry.round().seal.as_ref().expect("the seal").body.clone();
    assert_eq!(seal.sealed.len(), 2);
    assert_eq!(seal.absent, [ActorId::from("regulator")]);
    recorded(&inquiry.release());
    let report = inquiry.concluded();
    assert_eq!(report.attendance.last().map(|seat| (seat.label, seat.order)), Some((Label::Absent, None)));
    assert_eq!(report.independence.count, 2);
}

#[test]
fn who_comes_late_is_informed_and_does_not_count() {
    shows!("CP-4.1-14"; by "conference.informed");
    let mut inquiry = Inquiry::agreeing();
    inquiry.space.silent.insert("regulator".into());
    inquiry.released();
    recorded(&inquiry.space.answer_late(&inquiry.id.clone(), "regulator").unwrap());
    assert_eq!(inquiry.label("regulator"), Label::Informed);
    let report = inquiry.concluded();
    assert_eq!((report.independence.claim, report.independence.count), (Claim::Held, 2));
}

#[test]
fn who_comes_between_sealing_and_release_counts_only_where_the_contract_said_so() {
    shows!("CP-4.1-14"; by "conference.late", "conference.late_counts");
    for (counts, independent) in [(false, 2), (true, 3)] {
        let mut inquiry = Inquiry::under(Deployment::default(), "basic", agreeing(), |contract| {
            contract.late_counts = counts;
        });
        inquiry.space.silent.insert("regulator".into());
        inquiry.until(&Turn::Release);
        recorded(&inquiry.space.answer_late(&inquiry.id.clone(), "regulator").unwrap());
        assert_eq!(inquiry.label("regulator"), Label::LateUnexposed);
        recorded(&inquiry.release());
        let round = inquiry.round();
        let released = &round.release.as_ref().expect("the release").body.positions;
        assert_eq!(released.len(), 3, "it is released with the others");
        assert_eq!(round.seal.as_ref().expect("the seal").body.sealed.len(), 2, "outside the sealed set");
        assert_eq!(inquiry.concluded().independence.count, independent);
    }
}

#[test]
fn a_leak_suspends_independence_and_its_evidence_survives() {
    shows!("CP-4.1-15", "CP-4.1-16", "CP-4.1-17"; by "conference.independence_suspended");
    let mut inquiry = Inquiry::agreeing();
    inquiry.until(&Turn::Release);
    let item = inquiry.position("remainder");
    recorded(&inquiry.leak("regulator", item.clone()));
    recorded(&inquiry.release());
    inquiry.space.crash().unwrap();
    assert_eq!(reaches(&inquiry), [("regulator".to_owned(), Reach::Leaked, item.clone())]);
    let report = inquiry.concluded();
    assert_eq!((report.independence.claim, report.independence.count), (Claim::Suspended, 0));
    let regulator = report.attendance.last().expect("the regulator");
    assert!(regulator.exposures.contains(&item));
    let mut clean = Inquiry::agreeing();
    clean.released();
    assert_eq!(clean.concluded().independence.claim, Claim::Held);
}

#[test]
fn after_the_release_there_is_nothing_left_to_leak() {
    shows!("CP-4.1-16"; by "conference.independence_suspended");
    let mut inquiry = Inquiry::agreeing();
    inquiry.released();
    let item = inquiry.position("remainder");
    recorded(&inquiry.leak("regulator", item));
    assert_eq!(inquiry.concluded().independence.claim, Claim::Held);
}

#[test]
fn a_seat_is_asked_once_and_nobody_else_is() {
    shows!("CP-4.1-08"; by "conference.asked_twice", "conference.work_for_nobody_seated");
    let mut inquiry = Inquiry::agreeing();
    inquiry.asked();
    let round = inquiry.round();
    let seat = round.contract.seats.first().expect("a seat").clone();
    assert_eq!(codes(&inquiry.space.ask_seat(&round, &seat).unwrap()), [Code::Duplicate]);
    let mut inquiry = Inquiry::agreeing();
    let outsider = closer_contracts::conference::Seat { actor: "worker".into(), ..seat };
    let round = inquiry.round();
    assert_eq!(codes(&inquiry.space.ask_seat(&round, &outsider).unwrap()), [Code::MembershipStale]);
}

#[test]
fn roles_share_skills_or_have_their_own() {
    shows!("CP-4.1-04");
    let mut inquiry = Inquiry::under(Deployment::default(), "basic", agreeing(), |contract| {
        for (seat, tools) in contract.seats.iter_mut().zip([&["reader"][..], &["reader"], &["reader", "law"]]) {
            seat.tools = tools.iter().map(|tool| (*tool).into()).collect();
        }
    });
    inquiry.released();
    let report = inquiry.concluded();
    assert!(report.attendance.iter().all(|seat| seat.label == Label::Independent && seat.order.is_some()));
    assert_eq!(report.attendance[2].seat.tools.len(), 2);
}

#[test]
fn one_conference_at_a_time_in_an_episode() {
    shows!("CP-4.1-22"; by "conference.another_under_way");
    let mut inquiry = Inquiry::agreeing();
    let other = after(&mut inquiry, None, "fresh");
    refused(&inquiry.space.convene(other).unwrap(), Code::Duplicate);
    let rebased = after(&mut inquiry, Some(FollowKind::Rebase), "fresh");
    recorded(&inquiry.space.convene(rebased).unwrap());
}

/// The contract of a conference that comes after another one: on the current state, with these contexts.
fn after(inquiry: &mut Inquiry, kind: Option<FollowKind>, contexts: &str) -> Conference {
    let episode_id = inquiry.episode_id.clone();
    let mut seats = seats();
    for seat in &mut seats {
        seat.context = format!("{contexts}-{}", seat.role).into();
    }
    let mut contract = inquiry.space.conference(&episode_id, vec![subject()], seats).unwrap();
    contract.follows = kind.map(|kind| Follows { kind, conference_id: inquiry.id.clone() });
    contract
}

#[test]
fn where_independence_is_required_only_unexposed_contexts_begin_again() {
    shows!("CP-4.1-18"; by "conference.exposed_context_seated");
    let mut inquiry = Inquiry::agreeing();
    inquiry.until(&Turn::Release);
    let item = inquiry.position("remainder");
    recorded(&inquiry.leak("regulator", item));
    let mut again = after(&mut inquiry, Some(FollowKind::Restart), "context");
    again.independence_required = true;
    refused(&inquiry.space.convene(again.clone()).unwrap(), Code::DisclosureDenied);
    let mut derived = after(&mut inquiry, Some(FollowKind::Restart), "fresh");
    derived.independence_required = true;
    derived.seats[2].derives_from = vec!["context-regulator".into()];
    refused(&inquiry.space.convene(derived).unwrap(), Code::DisclosureDenied);
    let mut fresh = after(&mut inquiry, Some(FollowKind::Restart), "fresh");
    fresh.independence_required = true;
    inquiry.id = fresh.conference_id.clone();
    recorded(&inquiry.space.convene(fresh).unwrap());
    inquiry.released();
    let report = inquiry.concluded();
    assert_eq!((report.independence.claim, report.independence.count), (Claim::Held, 3));
    assert!(report.attendance.iter().all(|seat| seat.label == Label::Independent));
}

#[test]
fn exposure_is_inherited_by_whatever_derives_from_a_context() {
    shows!("CP-4.1-22", "CP-4.1-14"; by "conference.seen_before_own");
    let mut inquiry = Inquiry::agreeing();
    inquiry.released();
    recorded(&inquiry.conclude());
    let mut derived = after(&mut inquiry, None, "second");
    derived.seats[0].derives_from = vec!["between".into()];
    inquiry.id = derived.conference_id.clone();
    recorded(&inquiry.space.convene(derived).unwrap());
    let mut between = after(&mut inquiry, Some(FollowKind::Rebase), "third");
    between.seats[0].derives_from = vec!["second-remainder".into()];
    between.seats[1].context = "between".into();
    between.seats[1].derives_from = vec!["context-remainder".into()];
    inquiry.id = between.conference_id.clone();
    recorded(&inquiry.space.convene(between).unwrap());
    inquiry.released();
    let labels = ["remainder", "investigator", "regulator"].map(|actor| inquiry.label(actor));
    assert_eq!(labels, [Label::Informed, Label::Informed, Label::Independent], "over two steps");
}

#[test]
fn a_rebase_keeps_history_names_the_new_basis_and_carries_exposure() {
    shows!(
        "CP-4.1-19", "CP-4.1-20", "CP-4.1-21"; by "conference.other_basis", "conference.basis_not_current",
        "conference.replaced"
    );
    let mut inquiry = Inquiry::agreeing();
    inquiry.released();
    let (first, before) = (inquiry.id.clone(), inquiry.round().contract.basis);
    let stale = after(&mut inquiry, Some(FollowKind::Rebase), "context");
    let change = crate::support::moved("o-1", closer_contracts::obligation::ObligationStatus::AwaitingEvent);
    let delta = crate::support::delta(&mut inquiry.space, vec![change], Vec::new(), Vec::new());
    recorded(&crate::support::propose(&mut inquiry.space, delta.clone()));
    recorded(&inquiry.space.endorse(&delta, closer_contracts::adjudication::Disposition::Endorsed).unwrap());
    recorded(&crate::support::commit(&mut inquiry.space, &delta));
    refused(&inquiry.space.convene(stale).unwrap(), Code::StaleVersion);
    let contract = after(&mut inquiry, Some(FollowKind::Rebase), "context");
    inquiry.id = contract.conference_id.clone();
    recorded(&inquiry.space.convene(contract).unwrap());
    let second = std::mem::replace(&mut inquiry.id, first.clone());
    let old = inquiry.a_move("remainder", MoveKind::Assent);
    refused(&inquiry.make(old), Code::RoundLimit);
    refused(&inquiry.conclude(), Code::RoundLimit);
    inquiry.id = second;
    inquiry.released();
    let mut made = inquiry.a_move("remainder", MoveKind::Assent);
    assert_ne!(made.governing_basis, before);
    made.governing_basis = before;
    refused(&inquiry.make(made.clone()), Code::StaleVersion);
    made.governing_basis = inquiry.space.view().state.reference();
    recorded(&inquiry.make(made));
    let earlier = inquiry.space.round(&first).unwrap();
    assert_eq!((earlier.contract.basis, earlier.positions.len()), (before, 3), "readable under its old basis");
    let report = inquiry.concluded();
    for seat in &report.attendance {
        assert_eq!(seat.label, Label::Informed);
        let own = earlier.positions.get(&seat.seat.actor).expect("its position").reference();
        let others: Vec<_> =
            earlier.positions.values().map(|position| position.reference()).filter(|p| *p != own).collect();
        assert!(others.iter().all(|position| seat.exposures.contains(position)), "prior exposure is listed");
    }
}

#[test]
fn no_new_name_brings_lost_independence_back() {
    shows!("CP-4.1-22", "CP-4.1-16"; by "conference.independence_suspended", "conference.informed");
    for kind in [None, Some(FollowKind::Rebase)] {
        let mut inquiry = Inquiry::agreeing();
        inquiry.until(&Turn::Release);
        let item = inquiry.position("remainder");
        recorded(&inquiry.leak("regulator", item));
        recorded(&inquiry.release());
        recorded(&inquiry.conclude());
        let renamed = after(&mut inquiry, kind, "context");
        inquiry.id = renamed.conference_id.clone();
        recorded(&inquiry.space.convene(renamed).unwrap());
        inquiry.released();
        assert_eq!(inquiry.label("regulator"), Label::Informed);
        let found = independence(inquiry.space.view(), &inquiry.round());
        assert_eq!((found.claim, found.count), (Claim::Suspended, 0), "{kind:?}");
    }
    let mut inquiry = Inquiry::agreeing();
    inquiry.until(&Turn::Release);
    let item = inquiry.position("remainder");
    recorded(&inquiry.leak("regulator", item));
    let rebased = after(&mut inquiry, Some(FollowKind::Rebase), "fresh");
    inquiry.id = rebased.conference_id.clone();
    recorded(&inquiry.space.convene(rebased).unwrap());
    inquiry.released();
    assert_eq!(inquiry.concluded().independence.claim, Claim::Suspended, "a rebase is the same round");
}

#[test]
fn the_shared_record_holds_what_was_released_and_nothing_else() {
    shows!("CP-4.1-06"; by "conference.moved_before_release");
    let mut inquiry = Inquiry::agreeing();
    inquiry.until(&Turn::Release);
    assert!(case_record(&inquiry.round()).is_empty());
    recorded(&inquiry.release());
    let positions = ["remainder", "investigator", "regulator"].map(|actor| inquiry.position(actor));
    assert_eq!(case_record(&inquiry.round()), positions);
    let made = inquiry.a_move("regulator", MoveKind::Defer);
    recorded(&inquiry.make(made));
    assert_eq!(case_record(&inquiry.round()).len(), 4);
    let round = inquiry.round();
    let release = &round.release.as_ref().expect("the release").body;
    assert!(positions.iter().all(|position| release.positions.iter().any(|released| released.position == *position)));
}

#[test]
fn a_participants_record_keeps_its_position_and_every_revision_in_order() {
    shows!("CP-4.1-05"; by "conference.receipt_not_own");
    let mut inquiry = Inquiry::agreeing();
    inquiry.released();
    let mut revisions = vec![inquiry.position("investigator")];
    for verb in [MoveKind::RequestEvidence, MoveKind::Retract] {
        let mut made = inquiry.a_move("investigator", verb);
        made.local_receipt = revisions.last().expect("its newest").clone();
        recorded(&inquiry.make(made));
        let newest = inquiry.round().moves.last().expect("the move").reference.clone();
        revisions.push(newest);
    }
    assert_eq!(participant_record(&inquiry.round(), &"investigator".into()), revisions);
    let mut foreign = inquiry.a_move("investigator", MoveKind::Defer);
    foreign.local_receipt = inquiry.position("regulator");
    refused(&inquiry.make(foreign), Code::UnresolvedRef);
}

#[test]
fn who_saw_what_with_which_model_and_tools_and_in_which_order_is_on_record() {
    shows!("CP-4.1-36"; by "conference.seen_before_own");
    let mut inquiry = Inquiry::agreeing();
    inquiry.space.silent.insert("remainder".into());
    inquiry.released();
    recorded(&inquiry.space.answer_late(&inquiry.id.clone(), "remainder").unwrap());
    let report = inquiry.concluded();
    let told: Vec<_> = report.attendance.iter().map(|seat| (seat.seat.model.as_str(), seat.order)).collect();
    assert_eq!(told, [("model-remainder", Some(3)), ("model-investigator", Some(1)), ("model-regulator", Some(2))]);
    for seat in &report.attendance {
        assert_eq!(seat.seat.tools, ["reader".into()]);
        assert!(!seat.exposures.is_empty());
    }
    assert_eq!(report.attendance[0].label, Label::Informed);
    assert_eq!(report.attendance[1].label, Label::Independent);
}

#[test]
fn one_model_behind_three_roles_is_one_voice() {
    shows!("CP-4.1-37", "CP-12-07"; by "conference.model_shared");
    let mut inquiry = Inquiry::under(Deployment::default(), "basic", agreeing(), |contract| {
        for seat in &mut contract.seats {
            seat.model = "one-model".into();
        }
    });
    inquiry.released();
    let found = inquiry.concluded().independence;
    assert_eq!((found.claim, found.count), (Claim::NotEstablished, 1));
}

#[test]
fn a_packet_holds_no_position_before_its_release() {
    shows!("CP-C5-06"; by "conference.position_in_packet");
    let mut inquiry = Inquiry::agreeing();
    let round = inquiry.round();
    inquiry.until(&Turn::Release);
    let position = inquiry.round().positions.get(&ActorId::from("remainder")).expect("its position").body.clone();
    let content = closer_contracts::refs::Plain(serde_json::to_value(&*position).unwrap());
    let reference =
        ArtifactRef { id: "innocent".into(), digest: closer_contracts::canonical::digest_of(&content).unwrap() };
    let view = inquiry.space.view().clone();
    let episode = view.episodes.get(&inquiry.episode_id).expect("the episode");
    let now = inquiry.space.moment().now;
    let seat = round.contract.seats.last().expect("a seat");
    let mut packet = closer_protocol::work::draft(&view, episode, &seat.actor, &"worker".into(), &now).unwrap();
    let item = closer_contracts::work::ContextItem { reference: reference.clone(), content };
    packet.disclosure.materialized_item_refs.push(reference);
    packet.work = changed(&packet.work, |envelope| {
        let Body::Work(work) = &envelope.body else { unreachable!("work") };
        let mut work = (**work).clone();
        work.context_items.push(item);
        envelope.disclosure.digest = closer_contracts::canonical::digest_of(&packet.disclosure).unwrap();
        envelope.body = work.into();
    });
    let work = inquiry.space.submission(packet.work.clone()).unwrap();
    let issue = Input::Issue { work, disclosure: packet.disclosure.clone() };
    assert!(codes(&inquiry.space.submit(issue.clone()).unwrap()).contains(&Code::NotReleased));
    recorded(&inquiry.release());
    let reply = inquiry.space.submit(issue).unwrap();
    assert_eq!(codes(&reply), [Code::DisclosureDenied], "it is released, and still none of what bears on the work");
}

#[test]
fn a_conference_is_opened_by_the_coordinator_on_what_is_on_record() {
    shows!(
        "CP-4.1-23"; by "conference.not_the_coordinators", "conference.scope_unresolved", "conference.rule_unregistered"
    );
    let mut inquiry = Inquiry::agreeing();
    inquiry.released();
    recorded(&inquiry.conclude());
    let contract = after(&mut inquiry, None, "context");
    let user = closer_contracts::refs::ActorRef { actor_id: "user".into(), role: ProducerRole::User };
    let scope = closer_contracts::auth::SigningScope::Conference;
    refused(&inquiry.space.submit_artifact(contract.clone(), user, scope).unwrap(), Code::MissingAuthority);
    let mut unknown = contract.clone();
    unknown.decision_rule_ref.id = "rule.unheard-of".into();
    refused(&inquiry.space.convene(unknown).unwrap(), Code::UnresolvedRef);
    let mut invented = contract.clone();
    let reference = ArtifactRef { id: "ev-invented".into(), digest: closer_contracts::Digest::of(b"invented") };
    invented.evidence_scope.snapshot = closer_contracts::refs::EvidenceSnapshot::of(vec![reference]).unwrap();
    refused(&inquiry.space.convene(invented).unwrap(), Code::UnresolvedRef);
    recorded(&inquiry.space.convene(contract).unwrap());
    recorded(&inquiry.space.observe(&plan_target(), Some("o-1")).unwrap());
}
