//! Confessions: about something on record, no evidence for themselves, and corrected only by adjudication.

use crate::support::{begun, commit, delta, endorse, propose, recorded, refused, space, until};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::audit::{Confession, ConfessionStatus, Reconsideration};
use closer_contracts::auth::SigningScope;
use closer_contracts::delta::Change;
use closer_contracts::item::ItemKind;
use closer_contracts::reentry::{TimeReached, TypedPredicate};
use closer_contracts::refs::{ActorRef, Amounts, ArtifactRef, ProducerRole};
use closer_contracts::{Digest, shows};
use closer_protocol::entry::payload_ref;
use closer_protocol::episode::Next;
use closer_scenarios::{Space, worker};

fn confession(affected: ArtifactRef, obligation: &str) -> Confession {
    Confession {
        confession_id: "confession-1".into(),
        affected,
        affected_obligation: obligation.into(),
        omitted_check_or_deviation: "I reported completion after the response alone.".into(),
        supporting_evidence: Vec::new(),
        effects: Vec::new(),
        unknowns: vec!["whether the plan was changed".into()],
        cost: Amounts::default(),
        consequence: "The report cannot be relied on.".into(),
        status: ConfessionStatus::Open,
        reconsideration: Reconsideration::When(TypedPredicate::TimeReached(TimeReached {
            at: closer_contracts::Timestamp::parse("2026-01-02T00:00:00Z").unwrap(),
        })),
    }
}

#[test]
fn a_confession_is_about_something_on_record_and_hides_nothing() {
    shows!("CP-8.1-01", "CP-8.1-03"; by "bench.confesses_nothing_on_record");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    until(&mut space, &episode_id, |next| matches!(next, Next::Judge { .. }));
    let worker = || ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant };
    let result = space.view().results.values().next().expect("the result").payload.clone();
    let nothing = ArtifactRef { id: "pl.nothing".into(), digest: Digest::of(b"nothing") };
    for unresolved in [confession(nothing, "o-1"), confession(payload_ref(&result), "o-none")] {
        refused(&space.submit_artifact(unresolved, worker(), SigningScope::Confession).unwrap(), Code::UnresolvedRef);
    }
    let attempt = space.view().attempts.values().next().expect("the attempt").intent_ref.clone();
    let mut of_attempt = confession(attempt, "o-1");
    of_attempt.confession_id = "confession-2".into();
    recorded(&space.submit_artifact(of_attempt, worker(), SigningScope::Confession).unwrap());
    recorded(
        &space.submit_artifact(confession(payload_ref(&result), "o-1"), worker(), SigningScope::Confession).unwrap(),
    );
    assert_eq!(
        space.view().results.values().next().map(|on_record| on_record.payload.clone()),
        Some(result.clone()),
        "the assertion stays as it was"
    );
    let again = confession(payload_ref(&result), "o-1");
    refused(&space.submit_artifact(again, worker(), SigningScope::Confession).unwrap(), Code::Duplicate);
}

#[test]
fn a_confessions_own_explanation_is_no_evidence() {
    shows!("CP-8.1-04", "CP-C14-14"; by "work.unknown_evidence_cited");
    let cites: closer_scenarios::space::Answer = Box::new(|work, view| {
        let assessments =
            vec![worker::relation(view, "p-o-1", &"confession-1".into(), closer_contracts::work::Relation::Supports)];
        closer_contracts::work::WorkResult { assessments, ..worker::nothing(work) }
    });
    let mut space = space(cites);
    recorded(&space.event("service-a", "price").unwrap());
    let event = space.view().events.values().next().expect("the event").payload.clone();
    let worker = ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant };
    recorded(&space.submit_artifact(confession(payload_ref(&event), "o-1"), worker, SigningScope::Confession).unwrap());
    space.run().unwrap();
    assert!(space.refusals().unwrap().contains(&Code::UnresolvedRef));
    assert!(!crate::support::claimed(&space) && space.view().results.is_empty());
}

#[test]
fn a_confession_without_proof_of_who_confesses_is_not_recorded() {
    shows!("CP-8.1-01"; by "intake.producer_established");
    let mut space = space(worker::proposes("basic"));
    recorded(&space.event("service-a", "price").unwrap());
    let event = space.view().events.values().next().expect("the event").payload.clone();
    let body: closer_protocol::entry::ArtifactBody = confession(payload_ref(&event), "o-1").into();
    let worker = ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant };
    let auth = space.authenticate(&body.subject(&worker).unwrap()).unwrap();
    let forged = ActorRef { actor_id: "closer.coordinator".into(), role: ProducerRole::Coordinator };
    let submission = closer_protocol::Submission { content: std::sync::Arc::new(body), producer: forged, auth };
    refused(&space.submit(closer_protocol::Input::Artifact(submission)).unwrap(), Code::Unauthenticated);
}

#[test]
fn a_correction_is_adjudicated_before_it_is_applied_and_kept_as_a_gap_where_it_is_not_endorsed() {
    shows!("CP-8.1-05", "CP-8.1-06"; by "commit.not_endorsed");
    let mut space = space(worker::proposes("basic"));
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let attempt = space.view().attempts.values().next().expect("the attempt").intent_ref.clone();
    let worker = ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant };
    recorded(&space.submit_artifact(confession(attempt, "o-1"), worker, SigningScope::Confession).unwrap());
    recorded(
        &space.restrict("issuer-1", closer_contracts::audit::RestrictiveAction::RevokeGrant("grant-1".into())).unwrap(),
    );
    let claim_id = space.view().state.claims_on(&"p-o-1".into()).next().expect("the claim").item.id();
    let current = |space: &Space| {
        space.view().state.item(ItemKind::Claim, &claim_id).is_some_and(|accepted| accepted.is_current())
    };
    let suspend =
        Change::Suspend { kind: ItemKind::Claim, id: claim_id.clone(), reason: "The target was not read back.".into() };
    let correction = delta(&mut space, vec![suspend], Vec::new(), Vec::new());
    recorded(&propose(&mut space, correction.clone()));
    refused(&commit(&mut space, &correction), Code::MissingEndorsement);
    recorded(&endorse(&mut space, &correction, Disposition::Rejected));
    refused(&commit(&mut space, &correction), Code::MissingEndorsement);
    assert!(current(&space), "nothing is applied");
    let open = space.entries().unwrap().into_iter().any(|(_, entry)| {
        matches!(entry, closer_protocol::Entry::Artifact(artifact) if matches!(&*artifact, closer_protocol::entry::ArtifactBody::Confession(kept) if kept.status == ConfessionStatus::Open))
    });
    assert!(open, "the gap stays on record");
    recorded(&endorse(&mut space, &correction, Disposition::Endorsed));
    recorded(&commit(&mut space, &correction));
    assert!(!current(&space));
}

#[test]
fn a_confession_leaves_nothing_out_and_infers_no_intent() {
    shows!("CP-8.1-02", "CP-2-21");
    let about = ArtifactRef { id: "pl.something".into(), digest: Digest::of(b"something") };
    let whole = closer_contracts::canonical::to_value(&confession(about, "o-1")).unwrap();
    let read = |value| closer_contracts::canonical::from_value::<Confession>(value).map_err(|fault| fault.code);
    assert!(read(whole.clone()).is_ok());
    for part in [
        "affected_obligation",
        "affected",
        "omitted_check_or_deviation",
        "supporting_evidence",
        "effects",
        "unknowns",
        "cost",
        "consequence",
        "status",
        "reconsideration",
    ] {
        let mut without = whole.clone();
        without.as_object_mut().expect("an object").remove(part).expect("it is there");
        assert_eq!(read(without), Err(Code::SchemaInvalid), "{part}");
    }
    for inferred in ["intent", "motive"] {
        let mut with = whole.clone();
        with.as_object_mut().expect("an object").insert(inferred.into(), "to mislead".into());
        assert_eq!(read(with), Err(Code::SchemaInvalid), "{inferred}");
    }
}
