//! Events: their source is verified, repeats are recognised, and only a match makes work eligible.

use crate::support::{changed, claimed, recorded, refused, since, space, status};
use closer_contracts::RefusalCode as Code;
use closer_contracts::audit::RestrictiveAction;
use closer_contracts::envelope::Body;
use closer_contracts::event::{Certainty, Event, MatchOutcome};
use closer_contracts::id::ObligationId;
use closer_contracts::item::{AffectedScope, IdentityKind, Item};
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::profile::RestrictiveEvent;
use closer_contracts::refs::ProducerRole;
use closer_contracts::{Payload, shows};
use closer_protocol::entry::{ArtifactBody, Entry};
use closer_scenarios::founding::identity;
use closer_scenarios::{Deployment, Space, worker};

fn with(payload: &Payload, change: impl FnOnce(&mut Event)) -> Payload {
    let Body::Event(event) = payload.body() else { unreachable!("an event") };
    let mut event = (**event).clone();
    change(&mut event);
    changed(payload, |envelope| envelope.body = event.into())
}

fn quiet() -> Space {
    space(Box::new(|work, _| worker::nothing(work)))
}

fn eligible(space: &Space) -> usize {
    space.view().eligible.get(&ObligationId::from("o-1")).map_or(0, Vec::len)
}

#[test]
fn an_event_from_a_source_that_its_producer_may_not_emit_for_is_compared_with_nothing() {
    shows!("CP-1.1-01", "CP-C2-02"; by "event.source_verified");
    let mut space = quiet();
    let payload = space.event_payload("service-a", "price", Vec::new()).unwrap();
    let unknown = with(&payload, |event| event.source.source_id = "nowhere".into());
    refused(&space.submit_payload(unknown).unwrap(), Code::Unauthenticated);
    assert_eq!((space.view().matches.len(), eligible(&space)), (0, 0));
    assert_eq!(space.refusals().unwrap(), [Code::Unauthenticated], "the rejected arrival is on record");
    recorded(&space.submit_payload(payload).unwrap());
    assert_eq!((space.view().matches.len(), eligible(&space)), (1, 1));
}

#[test]
fn a_forged_event_does_not_use_up_the_genuine_ones_deduplication_key() {
    shows!("CP-1.1-03"; by "event.source_verified");
    let stranger = identity("stranger", IdentityKind::Producer, &[ProducerRole::Observer], &[]);
    let deployment = Deployment::default().with(Item::Identity(stranger));
    let mut space = Space::found(&deployment, Box::new(|work, _| worker::nothing(work))).unwrap();
    let genuine = space.event_payload("service-a", "price", Vec::new()).unwrap();
    let forged = changed(&genuine, |envelope| {
        envelope.payload_id = "pl.forged".into();
        envelope.producer.actor_id = "stranger".into();
    });
    refused(&space.submit_payload(forged).unwrap(), Code::Unauthenticated);
    recorded(&space.submit_payload(genuine).unwrap());
    assert_eq!(eligible(&space), 1);
}

#[test]
fn a_second_delivery_activates_nothing_and_is_on_record() {
    shows!("CP-1.1-02", "CP-8.2-01"; by "event.repeat_is_equal");
    let mut space = quiet();
    let payload = space.event_payload("service-a", "price", Vec::new()).unwrap();
    recorded(&space.submit_payload(payload.clone()).unwrap());
    let again = changed(&payload, |envelope| envelope.payload_id = "pl.again".into());
    let again = with(&again, |event| event.event_id = "event-again".into());
    refused(&space.submit_payload(again).unwrap(), Code::Duplicate);
    let conflicting = changed(&payload, |envelope| envelope.payload_id = "pl.conflicting".into());
    let conflicting = with(&conflicting, |event| {
        event.event_id = "event-conflicting".into();
        event.change_kind = "key_revoked".into();
    });
    refused(&space.submit_payload(conflicting).unwrap(), Code::KeyConflict);
    assert_eq!((space.view().matches.len(), eligible(&space)), (1, 1));
    assert_eq!(space.refusals().unwrap(), [Code::Duplicate, Code::KeyConflict]);
}

#[test]
fn an_event_id_never_stands_for_another_event() {
    shows!("CP-B-01"; by "event.repeat_is_equal");
    let mut space = quiet();
    let payload = space.event_payload("service-a", "price", Vec::new()).unwrap();
    recorded(&space.submit_payload(payload.clone()).unwrap());
    let other = changed(&payload, |envelope| envelope.payload_id = "pl.other".into());
    let other = with(&other, |event| {
        event.deduplication_key = "another key".into();
        event.entity_ref = "service-b".into();
    });
    refused(&space.submit_payload(other).unwrap(), Code::KeyConflict);
    let same = changed(&payload, |envelope| envelope.payload_id = "pl.same".into());
    let same = with(&same, |event| event.deduplication_key = "a third key".into());
    refused(&space.submit_payload(same).unwrap(), Code::Duplicate);
}

#[test]
fn a_reported_event_justifies_investigation_and_is_no_fact() {
    shows!("CP-C2-03"; by "matching.candidate_satisfied");
    let mut space = quiet();
    let payload = space.event_payload("service-a", "price", Vec::new()).unwrap();
    recorded(&space.submit_payload(with(&payload, |event| event.certainty = Certainty::Reported)).unwrap());
    space.run().unwrap();
    assert_eq!(space.view().works.len(), 1, "it is investigated");
    assert!(!claimed(&space), "nothing is accepted from it");
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
}

#[test]
fn an_event_that_may_concern_an_obligation_leaves_a_gap_for_its_owner_once() {
    shows!("CP-1.1-13", "CP-A-08"; by "matching.candidate_unknown", "tick.gap_stands");
    let deployment = Deployment::default().with_obligation("o-2", "service-b").without("rule.matching");
    let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
    let before = space.view().commits.len();
    recorded(&space.event("service-a", "price").unwrap());
    let (_, receipt) = space.view().matches.values().next().expect("a receipt").clone();
    assert_eq!(receipt.outcome, MatchOutcome::Ambiguous);
    assert!(space.view().eligible.is_empty(), "it is not treated as a match");
    let obligation = space.view().state.obligation(&"o-1".into()).expect("the obligation");
    let gap = obligation.trigger_gap.as_ref().expect("nor dropped");
    assert_eq!(gap.responsible_owner, obligation.responsible_owner);
    assert!(gap.reason.as_str().contains("event"), "{gap:?}");
    let other = space.view().state.obligation(&"o-2".into()).expect("the obligation");
    assert!(other.trigger_gap.is_none(), "it concerns service-a alone");
    recorded(&space.event("service-a", "price").unwrap());
    assert_eq!(space.view().commits.len(), before + 1, "being told again changes nothing");
}

#[test]
fn an_irrelevant_event_stays_on_record_and_activates_nothing() {
    shows!("CP-10.2-07", "CP-1.1-15", "CP-1.1-16"; by "matching.candidate_satisfied");
    let mut space = quiet();
    let obligations = space.view().state.open_obligations().count();
    recorded(&space.event("service-b", "price").unwrap());
    recorded(&space.event("service-a", "key_revoked").unwrap());
    space.run().unwrap();
    let outcomes: Vec<MatchOutcome> = space.view().matches.values().map(|(_, receipt)| receipt.outcome).collect();
    assert_eq!(outcomes, [MatchOutcome::Unmatched, MatchOutcome::Unmatched]);
    assert_eq!((space.view().events.len(), space.view().works.len()), (2, 0));
    assert_eq!(space.view().state.open_obligations().count(), obligations);
    recorded(&space.event("service-a", "price").unwrap());
    assert_eq!(eligible(&space), 1);
}

/// A deployment in which the feed's `key_revoked` revokes the grant at once.
fn restrictive() -> Deployment {
    Deployment::default().with_profile(|profile| {
        profile.restrictive_events.push(RestrictiveEvent {
            change_kind: "key_revoked".into(),
            source: "feed".into(),
            entity_ref: None,
            issuer: "issuer-1".into(),
            action: RestrictiveAction::RevokeGrant("grant-1".into()),
            reason: "The account's key is revoked.".into(),
        });
    })
}

#[test]
fn a_restrictive_event_restricts_only_from_the_source_that_speaks_for_the_issuer() {
    shows!("CP-C2-04", "CP-7.2-18"; by "urgent.source_speaks_for_issuer");
    let mut space = Space::found(&restrictive(), worker::proposes("basic")).unwrap();
    let revoked =
        |space: &Space| space.view().state.grant(&"grant-1".into()).expect("the grant").revocation.revoked_by.is_some();
    let payload = space.event_payload("service-a", "key_revoked", Vec::new()).unwrap();
    let elsewhere = with(&payload, |event| event.source.source_id = "service-a".into());
    recorded(&space.submit_payload(elsewhere).unwrap());
    assert!(!revoked(&space), "on record, and no restriction");
    let before = space.records().len();
    recorded(&space.event("service-a", "key_revoked").unwrap());
    assert!(revoked(&space), "at once, though an event of this kind has just come");
    let kinds = since(&space, before);
    assert!(
        matches!(kinds.first(), Some(Entry::Payload(payload)) if matches!(payload.body(), Body::Event(_))),
        "the event comes first"
    );
    assert!(kinds.iter().any(
        |entry| matches!(entry, Entry::Artifact(artifact) if matches!(**artifact, ArtifactBody::CommitReceipt(_)))
    ));
}

#[test]
fn a_restrictive_event_restricts_what_it_is_listed_for_and_nothing_else() {
    shows!("CP-1.1-16"; by "urgent.event_is_about_the_listed");
    let about =
        restrictive().with_profile(|profile| profile.restrictive_events[0].entity_ref = Some("service-a".into()));
    let mut space = Space::found(&about, worker::proposes("basic")).unwrap();
    let revoked =
        |space: &Space| space.view().state.grant(&"grant-1".into()).expect("the grant").revocation.revoked_by.is_some();
    let obligations = space.view().state.open_obligations().count();
    recorded(&space.event("service-b", "key_revoked").unwrap());
    assert!(!revoked(&space), "on record, and about another entity");
    assert_eq!(space.view().state.open_obligations().count(), obligations, "nor is anything to be reconciled");
    recorded(&space.event("service-a", "key_revoked").unwrap());
    assert!(revoked(&space), "at once");
}

#[test]
fn a_restrictive_event_restricts_however_often_its_key_comes() {
    shows!("CP-7.2-19"; by "urgent.source_speaks_for_issuer");
    let mut space = Space::found(&restrictive(), worker::proposes("basic")).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    let held = space.view().state.grant(&"grant-1".into()).expect("the grant");
    assert!(held.revocation.revoked_by.is_none(), "a price restricts nothing");
    let known = space.view().events.values().next().expect("the event").payload.clone();
    let reused = changed(&known, |envelope| envelope.payload_id = "pl.restrictive".into());
    let reused = with(&reused, |event| {
        event.event_id = "event-restrictive".into();
        event.change_kind = "key_revoked".into();
    });
    refused(&space.submit_payload(reused).unwrap(), Code::KeyConflict);
    let grant = space.view().state.grant(&"grant-1".into()).expect("the grant").clone();
    assert!(grant.revocation.revoked_by.is_some(), "a conflict of keys does not delay it");
    let scope = AffectedScope::Grant { grant_id: "grant-1".into() };
    let receipt = space
        .view()
        .commits
        .values()
        .filter_map(|committed| committed.receipt.clone())
        .find_map(|receipt| receipt.urgent_details.clone());
    assert_eq!(receipt.map(|details| details.affected_scope), Some(scope));
}

#[test]
fn when_it_was_seen_and_when_it_was_received_stay_apart() {
    shows!("CP-C2-06"; by "matching.candidate_satisfied");
    let mut space = quiet();
    let payload = space.event_payload("service-a", "price", Vec::new()).unwrap();
    let early = closer_contracts::Timestamp::parse("2025-12-24T00:00:00Z").unwrap();
    recorded(&space.submit_payload(with(&payload, |event| event.observed_at = early.clone())).unwrap());
    recorded(&space.event("service-a", "price").unwrap());
    let events: Vec<_> = space
        .view()
        .events
        .values()
        .map(|event| (event.body.observed_at.clone(), event.body.received_at.clone()))
        .collect();
    assert_eq!(events.len(), 2);
    let now = space.moment().now;
    assert!(events.contains(&(early, now.clone())) && events.contains(&(now.clone(), now)));
    assert_eq!(eligible(&space), 2, "a late arrival matches like any other");
}

#[test]
fn a_source_announces_only_the_kinds_of_change_it_has_declared() {
    shows!("CP-B-17", "CP-C2-02"; by "event.change_kind_undeclared");
    let mut space = quiet();
    refused(&space.event("service-a", "weather").unwrap(), Code::UnresolvedRef);
    assert_eq!(space.view().matches.len(), 0);
    recorded(&space.event("service-a", "price").unwrap());
}
