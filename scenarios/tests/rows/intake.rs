//! What every payload must pass: who produced it, what its ids stand for, what its references resolve to.

use crate::support::{begun, changed, codes, recorded, refused, space, until};
use closer_contracts::RefusalCode as Code;
use closer_contracts::envelope::{Body, DisclosureRef};
use closer_contracts::example::{self, Extent};
use closer_contracts::id::{ActorId, ObligationId, Text};
use closer_contracts::item::{IdentityKind, Item};
use closer_contracts::payload_type::PayloadType as Type;
use closer_contracts::refs::{ActorRef, ProducerRole as Role, StateRef};
use closer_contracts::refusal::{CheckKind, Denial};
use closer_contracts::{Digest, Payload, shows};
use closer_protocol::episode::Next;
use closer_protocol::input::{Input, Submission};
use closer_protocol::services;
use closer_scenarios::founding::{identity, plan_target};
use closer_scenarios::{Deployment, Space, worker};
use std::sync::Arc;

/// The message map of §6.2, written down again.
const MAP: [(Type, &[Role]); 12] = [
    (Type::Event, &[Role::Observer]),
    (Type::Obligation, &[Role::Planner]),
    (Type::Route, &[Role::Router]),
    (Type::Work, &[Role::Coordinator]),
    (Type::Result, &[Role::Participant]),
    (Type::Action, &[Role::Planner]),
    (Type::Evidence, &[Role::Observer]),
    (Type::Adjudication, &[Role::Assessor]),
    // The example is an ordinary delta; an issuer's are urgent and completed by the service.
    (Type::Delta, &[Role::Distiller]),
    (Type::Reentry, &[Role::Scheduler, Role::Assessor]),
    (Type::Handoff, &[Role::Coordinator]),
    (Type::Briefcase, &[Role::Coordinator]),
];

fn actor_in(role: Role) -> ActorId {
    let people = [(Role::User, "user"), (Role::Participant, "worker"), (Role::Issuer, "issuer-1")];
    let known = people.iter().find(|(known, _)| *known == role);
    known.map_or_else(|| services::actor(role), |(_, actor)| (*actor).into())
}

/// Something changed in an envelope.
type Change = fn(&mut closer_contracts::envelope::Envelope);

fn event(space: &mut Space) -> Payload {
    space.event_payload("service-a", "price", Vec::new()).unwrap()
}

#[test]
fn each_type_is_refused_from_every_role_that_does_not_produce_it() {
    shows!("CP-6.2-14", "CP-6.2-05", "CP-6.2-08"; by "payload_type.producer_unmapped");
    let mut space = space(Box::new(|work, _| worker::nothing(work)));
    for (payload_type, producers) in MAP {
        for role in Role::ALL {
            let producer = ActorRef { actor_id: actor_in(*role), role: *role };
            let payload =
                changed(&example::payload(payload_type, Extent::Minimal), |envelope| envelope.producer = producer);
            let before = space.view().state.reference();
            let reply = space.submit_payload(payload).unwrap();
            assert_eq!(
                codes(&reply).contains(&Code::MissingAuthority),
                !producers.contains(role),
                "{payload_type} by {role}: {reply:?}"
            );
            assert_eq!(space.view().state.reference(), before);
        }
    }
}

#[test]
fn a_repeated_payload_is_a_duplicate_and_its_id_never_stands_for_other_content() {
    shows!("CP-B-01", "CP-8.2-01"; by "intake.payload_repeated");
    let mut space = space(Box::new(|work, _| worker::nothing(work)));
    let payload = event(&mut space);
    recorded(&space.submit_payload(payload.clone()).unwrap());
    let matched = space.view().matches.len();
    refused(&space.submit_payload(payload.clone()).unwrap(), Code::Duplicate);
    let rebound = changed(&payload, |envelope| envelope.created_at = envelope.created_at.plus_ms(1));
    refused(&space.submit_payload(rebound).unwrap(), Code::KeyConflict);
    assert_eq!(space.view().matches.len(), matched, "nothing is matched a second time");
    assert_eq!(space.view().eligible.get(&ObligationId::from("o-1")).map(Vec::len), Some(1));
}

#[test]
fn ids_that_nothing_on_record_has_do_not_resolve() {
    shows!("CP-B-17", "CP-6-02"; by "intake.parent_unknown", "intake.obligation_unknown", "intake.episode_not_under_way", "intake.cause_unmatched");
    let mut space = space(Box::new(|work, _| worker::nothing(work)));
    let unknown: [(&str, Change); 5] = [
        ("pl.nobody", |envelope| envelope.parents = vec!["pl.nobody".into()]),
        ("o-none", |envelope| envelope.obligation_ids = vec!["o-none".into()]),
        ("episode-none", |envelope| envelope.episode_id = Some("episode-none".into())),
        ("event-none", |envelope| envelope.causation_event_id = Some("event-none".into())),
        ("999", |envelope| envelope.semantic_basis = Some(StateRef { version: 999, digest: Digest::of(b"999") })),
    ];
    for (offending, change) in unknown {
        let payload = event(&mut space);
        let reply = space.submit_payload(changed(&payload, change)).unwrap();
        refused(&reply, Code::UnresolvedRef);
        assert_eq!(reply.refusal().and_then(|denial| denial.offending.clone()).as_deref(), Some(offending));
    }
    let payload = event(&mut space);
    recorded(&space.submit_payload(payload).unwrap());
}

#[test]
fn a_state_version_with_another_digest_is_not_the_accepted_one() {
    shows!("CP-B-06"; by "intake.basis_differs");
    let mut space = space(Box::new(|work, _| worker::nothing(work)));
    let accepted = space.view().state.reference();
    let forged = StateRef { digest: Digest::of(b"forged"), ..accepted };
    let payload = event(&mut space);
    refused(
        &space.submit_payload(changed(&payload, |envelope| envelope.semantic_basis = Some(forged))).unwrap(),
        Code::DigestMismatch,
    );
    recorded(&space.submit_payload(changed(&payload, |envelope| envelope.semantic_basis = Some(accepted))).unwrap());
}

#[test]
fn a_disclosure_reference_names_a_receipt_and_nothing_of_another_kind() {
    shows!("CP-B-05"; by "intake.disclosure_unknown");
    let mut space = space(Box::new(|work, _| worker::nothing(work)));
    let payload = event(&mut space);
    let grant = closer_contracts::canonical::digest_of(space.view().state.grant(&"grant-1".into()).expect("the grant"))
        .unwrap();
    let by_grant = DisclosureRef { id: "grant-1".into(), digest: grant };
    refused(
        &space.submit_payload(changed(&payload, |envelope| envelope.disclosure = by_grant)).unwrap(),
        Code::UnresolvedRef,
    );
    recorded(&space.submit_payload(payload).unwrap());
}

#[test]
fn a_disclosure_receipt_with_another_digest_is_not_the_one_on_record() {
    shows!("CP-6.1-04"; by "intake.disclosure_differs");
    let mut space = space(Box::new(|work, _| worker::nothing(work)));
    let payload = event(&mut space);
    let forged = changed(&payload, |envelope| envelope.disclosure.digest = Digest::of(b"forged"));
    refused(&space.submit_payload(forged).unwrap(), Code::DigestMismatch);
    recorded(&space.submit_payload(payload).unwrap());
}

#[test]
fn what_a_packet_released_is_used_for_its_work_and_nothing_else() {
    shows!("CP-C1-09"; by "intake.use_not_permitted");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    until(&mut space, &episode_id, |next| matches!(next, Next::Ask { .. }));
    let packet = space.view().works.values().next().expect("the work").payload.envelope().disclosure.clone();
    let payload = event(&mut space);
    refused(
        &space.submit_payload(changed(&payload, |envelope| envelope.disclosure = packet)).unwrap(),
        Code::DisclosureDenied,
    );
    recorded(&space.advance(&episode_id).unwrap().1);
}

#[test]
fn an_envelope_that_names_another_producer_than_its_sender_is_not_authentic() {
    shows!("CP-6.1-08"; by "intake.producer_differs");
    let mut space = space(worker::proposes("basic"));
    let own = event(&mut space);
    let sender = own.envelope().producer.clone();
    let forged = changed(&own, |envelope| envelope.producer.actor_id = services::actor(Role::Observer));
    let auth = space.authenticate(&closer_contracts::auth::Subject {
        id: forged.id().into(),
        content_digest: forged.content_digest(),
        scope: Type::Event.into(),
        producer: sender.actor_id.clone(),
        role: Some(sender.role),
    });
    let submission = Submission { content: Arc::new(forged), producer: sender, auth: auth.unwrap() };
    refused(&space.submit(Input::Payload(submission)).unwrap(), Code::Unauthenticated);
    recorded(&space.submit_payload(own).unwrap());
}

#[test]
fn a_proof_of_other_content_proves_nothing() {
    shows!("CP-6.1-09"; by "intake.proof_of_this_content");
    let mut space = space(worker::proposes("basic"));
    let own = event(&mut space);
    let proof = space.submission(own.clone()).unwrap();
    let other = changed(&own, |envelope| envelope.created_at = envelope.created_at.plus_ms(1));
    refused(
        &space.submit(Input::Payload(Submission { content: Arc::new(other), ..proof.clone() })).unwrap(),
        Code::Unauthenticated,
    );
    recorded(&space.submit(Input::Payload(proof)).unwrap());
}

#[test]
fn an_identity_revoked_since_it_was_authenticated_is_refused() {
    shows!("CP-6.1-13", "CP-6.1-03"; by "intake.producer_established");
    let mut leaving = identity("observer-1", IdentityKind::Producer, &[Role::Observer], &[]);
    leaving.revoked_at = Some(closer_contracts::Timestamp::parse("2026-01-01T12:00:10Z").unwrap());
    let deployment = Deployment::default().with(Item::Identity(leaving));
    let mut space = Space::found(&deployment, Box::new(|work, _| worker::nothing(work))).unwrap();
    let (early, late) = (event(&mut space), event(&mut space));
    let (early, late) = (space.submission(early).unwrap(), space.submission(late).unwrap());
    recorded(&space.submit(Input::Payload(early)).unwrap());
    space.pass(10_000).unwrap();
    refused(&space.submit(Input::Payload(late)).unwrap(), Code::Unauthenticated);
    let next = event(&mut space);
    assert!(space.submission(next).is_err(), "nor is anything authenticated any more");
}

#[test]
fn an_id_that_a_service_takes_for_a_second_time_is_a_conflict_and_the_log_goes_on() {
    shows!("CP-B-01"; by "sequence.key_taken");
    let mut space = space(worker::proposes("basic"));
    let first = space.observation(&plan_target(), Some("o-1")).unwrap();
    recorded(&space.submit_payload(first.clone()).unwrap());
    space.world.set(&plan_target(), "plan", "gone");
    let second = space.observation(&plan_target(), Some("o-1")).unwrap();
    let Body::Evidence(known) = first.body() else { unreachable!("an observation") };
    let Body::Evidence(body) = second.body() else { unreachable!("an observation") };
    let mut reused = (**body).clone();
    reused.evidence_id = known.evidence_id.clone();
    let reused = changed(&second, |envelope| envelope.body = reused.into());
    refused(&space.submit_payload(reused).unwrap(), Code::KeyConflict);
    assert_eq!(
        space.view().evidence.get(&known.evidence_id).map(|evidence| evidence.payload.id().clone()),
        Some(first.id().clone())
    );
    recorded(&space.submit_payload(second).unwrap());
}

#[test]
fn a_disclosure_receipt_never_changes_once_it_is_issued() {
    shows!("CP-C1-08"; by "sequence.key_taken");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let Next::Work { participant, role } = space.next(&episode_id).unwrap() else { panic!("work comes first") };
    let episode = space.view().episodes.get(&episode_id).expect("the episode").clone();
    let now = space.moment().now;
    let packet = closer_protocol::work::draft(space.view(), &episode, &participant, &role, &now).unwrap();
    let mut wider = packet.disclosure.clone();
    wider.permitted_use.push("publish it".into());
    let first = space.submission(packet.work.clone()).unwrap();
    recorded(&space.submit(Input::Issue { work: first, disclosure: packet.disclosure.clone() }).unwrap());
    let digest = closer_contracts::canonical::digest_of(&wider).unwrap();
    let again = changed(&packet.work, |envelope| {
        envelope.payload_id = "pl.work-again".into();
        envelope.disclosure.digest = digest;
    });
    let again = space.submission(again).unwrap();
    refused(&space.submit(Input::Issue { work: again, disclosure: wider }).unwrap(), Code::KeyConflict);
    let held = space.view().disclosure(packet.disclosure.disclosure_id.as_str()).expect("the receipt").digest;
    assert_eq!(held, closer_contracts::canonical::digest_of(&packet.disclosure).unwrap());
}

#[test]
fn the_five_checks_are_reported_apart() {
    shows!("CP-B-14"; by "payload_type.producer_unmapped");
    let mut space = space(worker::proposes("basic"));
    let payload = event(&mut space);
    let coordinator = services::actor_ref(Role::Coordinator);
    let reply = space.submit_payload(changed(&payload, |envelope| envelope.producer = coordinator)).unwrap();
    let closer_protocol::input::Reply::Refused(denials) = reply else { panic!("recorded") };
    let failed: Vec<CheckKind> = closer_protocol::intake::report(&denials)
        .into_iter()
        .filter(|(_, holds)| !holds)
        .map(|(check, _)| check)
        .collect();
    assert_eq!(failed, [CheckKind::Authority]);
}

#[test]
fn a_million_inputs_that_nobody_authenticated_grow_the_log_by_less_than_a_mebibyte() {
    let mut space = space(worker::proposes("basic"));
    let before = space.records().len();
    for number in 0..1_000_000u32 {
        let denial = Denial::new(Code::Unauthenticated, CheckKind::Authentication, "no session and no signature");
        let subject = Text::new(format!("post {number}"));
        refused(&space.submit(Input::Unreadable { subject, denial }).unwrap(), Code::Unauthenticated);
    }
    let grown: usize = space
        .records()
        .iter()
        .skip(before)
        .map(|record| record.body.as_ref().map_or(0, |body| body.len()) + 1024)
        .sum();
    assert!(grown < 1 << 20, "{grown} bytes");
    assert!(space.records().len() > before, "the flood is on record");
    let told = crate::support::since(&space, before);
    assert!(told.iter().all(|entry| matches!(entry, closer_protocol::Entry::Notice(_))), "{told:?}");
}

/// The count goes on from the record: however many processes deliver the flood, only its doublings are written down.
#[test]
fn a_flood_that_comes_in_many_processes_grows_the_log_no_more() {
    let mut space = space(worker::proposes("basic"));
    let before = space.records().len();
    let posts = |space: &mut Space, count: u32| {
        for number in 0..count {
            let denial = Denial::new(Code::Unauthenticated, CheckKind::Authentication, "no session and no signature");
            let subject = Text::new(format!("post {number}"));
            refused(&space.submit(Input::Unreadable { subject, denial }).unwrap(), Code::Unauthenticated);
        }
        space.crash().unwrap();
    };
    posts(&mut space, 5);
    assert_eq!((space.records().len() - before, space.view().unreadable), (3, 4), "1, 2 and 4");
    posts(&mut space, 4);
    assert_eq!((space.records().len() - before, space.view().unreadable), (4, 8));
    for _ in 0..500 {
        posts(&mut space, 1);
    }
    assert_eq!(space.records().len() - before, 4);
}
