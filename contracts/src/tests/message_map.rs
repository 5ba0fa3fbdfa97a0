//! Who produces which payload and who acts on it. Spec: §6.2.

use super::support::refused;
use crate::delta::AdmissionPath;
use crate::envelope::Body;
use crate::example::{self, Extent};
use crate::payload_type::{PayloadType, check_producer};
use crate::refs::ProducerRole as R;
use crate::refusal::RefusalCode;
use crate::shows;

/// Demands that exactly these roles emit the type and exactly these act on it.
#[track_caller]
fn mapped(payload_type: PayloadType, producers: &[R], consumers: &[R]) {
    for role in R::ALL {
        let mut envelope = example::envelope(example::body(payload_type, Extent::Full), Extent::Full);
        envelope.producer.role = *role;
        if let Body::Delta(delta) = &mut envelope.body {
            std::sync::Arc::make_mut(delta).admission_path = match *role == R::Issuer {
                true => AdmissionPath::UrgentRestrictive,
                false => AdmissionPath::Ordinary,
            };
        }
        match producers.contains(role) {
            true => assert!(check_producer(&envelope).is_ok(), "{role} produces {payload_type}"),
            false => refused(check_producer(&envelope), RefusalCode::MissingAuthority),
        }
        match consumers.contains(role) {
            true => assert!(payload_type.check_consumer(*role).is_ok(), "{role} acts on {payload_type}"),
            false => refused(payload_type.check_consumer(*role), RefusalCode::MissingAuthority),
        }
    }
}

#[test]
fn event() {
    shows!("CP-6.2-01"; by "payload_type.producer_unmapped", "payload_type.consumer_unmapped");
    mapped(PayloadType::Event, &[R::Observer], &[R::Matcher]);
}

#[test]
fn obligation() {
    shows!("CP-6.2-02"; by "payload_type.producer_unmapped", "payload_type.consumer_unmapped");
    mapped(PayloadType::Obligation, &[R::Planner], &[R::Semantic, R::Scheduler]);
}

#[test]
fn route() {
    shows!("CP-6.2-03"; by "payload_type.producer_unmapped", "payload_type.consumer_unmapped");
    mapped(PayloadType::Route, &[R::Router], &[R::Coordinator]);
}

#[test]
fn work() {
    shows!("CP-6.2-04"; by "payload_type.producer_unmapped", "payload_type.consumer_unmapped");
    mapped(PayloadType::Work, &[R::Coordinator], &[R::Participant]);
}

#[test]
fn result() {
    shows!("CP-6.2-05"; by "payload_type.producer_unmapped", "payload_type.consumer_unmapped");
    mapped(PayloadType::Result, &[R::Participant], &[R::Assessor]);
}

#[test]
fn action() {
    shows!("CP-6.2-06"; by "payload_type.producer_unmapped", "payload_type.consumer_unmapped");
    mapped(PayloadType::Action, &[R::Planner], &[R::Monitor]);
}

#[test]
fn evidence() {
    shows!("CP-6.2-07"; by "payload_type.producer_unmapped", "payload_type.consumer_unmapped");
    mapped(PayloadType::Evidence, &[R::Observer], &[R::Assessor]);
    let mut unbound = super::support::json_of(example::payload(PayloadType::Evidence, Extent::Full).envelope());
    unbound["body"].as_object_mut().expect("an object").remove("target_binding");
    let read = crate::Payload::read(&super::support::resealed(unbound));
    refused(read, RefusalCode::SchemaInvalid);
}

#[test]
fn adjudication() {
    shows!("CP-6.2-08"; by "payload_type.producer_unmapped", "payload_type.consumer_unmapped");
    mapped(PayloadType::Adjudication, &[R::Assessor], &[R::Planner, R::Distiller]);
}

#[test]
fn delta() {
    shows!("CP-6.2-09"; by "payload_type.path_of_another_role");
    mapped(PayloadType::Delta, &[R::Distiller, R::Issuer], &[R::Semantic]);
    for (role, path) in [(R::Distiller, AdmissionPath::UrgentRestrictive), (R::Issuer, AdmissionPath::Ordinary)] {
        let mut envelope = example::envelope(example::body(PayloadType::Delta, Extent::Full), Extent::Full);
        envelope.producer.role = role;
        if let Body::Delta(delta) = &mut envelope.body {
            std::sync::Arc::make_mut(delta).admission_path = path;
        }
        refused(check_producer(&envelope), RefusalCode::MissingAuthority);
    }
}

#[test]
fn reentry() {
    shows!("CP-6.2-10"; by "payload_type.producer_unmapped", "payload_type.consumer_unmapped");
    mapped(PayloadType::Reentry, &[R::Scheduler, R::Assessor], &[R::Matcher]);
}

#[test]
fn handoff() {
    shows!("CP-6.2-11"; by "payload_type.producer_unmapped", "payload_type.consumer_unmapped");
    mapped(PayloadType::Handoff, &[R::Coordinator], &[R::Participant, R::Ownership]);
}

#[test]
fn briefcase() {
    shows!("CP-6.2-12"; by "payload_type.producer_unmapped", "payload_type.consumer_unmapped");
    mapped(PayloadType::Briefcase, &[R::Coordinator], &[R::User]);
}

#[test]
fn the_whole_matrix_denies_by_default() {
    shows!("CP-6.2-14"; by "payload_type.producer_unmapped", "payload_type.consumer_unmapped");
    let mut matrix = String::from("producer -> type -> consumer\n");
    for payload_type in PayloadType::ALL {
        mapped(*payload_type, payload_type.producers(), payload_type.consumers());
        let names = |roles: &[R]| roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ");
        let (producers, consumers) = (names(payload_type.producers()), names(payload_type.consumers()));
        matrix.push_str(&format!("{producers} -> {payload_type} -> {consumers}\n"));
    }
    insta::assert_snapshot!(matrix, @r"
    producer -> type -> consumer
    observer -> EVENT -> matcher
    planner -> OBLIGATION -> semantic, scheduler
    router -> ROUTE -> coordinator
    coordinator -> WORK -> participant
    participant -> RESULT -> assessor
    planner -> ACTION -> monitor
    observer -> EVIDENCE -> assessor
    assessor -> ADJUDICATION -> planner, distiller
    distiller, issuer -> DELTA -> semantic
    scheduler, assessor -> REENTRY -> matcher
    coordinator -> HANDOFF -> participant, ownership
    coordinator -> BRIEFCASE -> user
    ");
}
