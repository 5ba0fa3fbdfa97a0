//! Responsibility: who holds it, how it is handed over, and what a handoff does not change.

use crate::actions::{again, assess, readback_now, ready};
use crate::support::{codes, commit, delta, dispatch, endorse, grants, propose, recorded, refused, space};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::delta::Change;
use closer_contracts::handoff::{HandoffConsent, Owed};
use closer_contracts::id::HandoffId;
use closer_contracts::item::{IdentityKind, Item};
use closer_contracts::reentry::{All, HandoffAccepted, TimeReached, TypedPredicate};
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole};
use closer_contracts::{Digest, shows};
use closer_monitor::OwnershipStanding;
use closer_protocol::entry::{ArtifactBody, AttemptStatus, Entry, NoticeKind};
use closer_protocol::handoff::{self, Terms};
use closer_protocol::input::Reply;
use closer_scenarios::founding::identity;
use closer_scenarios::{Deployment, Mode, Space, worker};

/// A space with two participants that could take the obligation over, of which one can change the plan.
fn two() -> Space {
    let helper = identity("helper", IdentityKind::Producer, &[ProducerRole::Participant], &[]);
    Space::found(&Deployment::default().with(Item::Identity(helper)), worker::proposes("basic")).unwrap()
}

fn owner(space: &Space) -> (String, u64) {
    let held = space.view().ownership(&"o-1".into()).expect("the obligation");
    (held.owner.to_string(), held.epoch)
}

/// Offers `o-1` to a recipient on a contract of nothing, changed as told; gives the handoff and what was replied.
fn offered(space: &mut Space, recipient: &str, change: impl FnOnce(&mut Terms)) -> (HandoffId, Reply) {
    let contract = space.contract(&[], &[], &[]).unwrap();
    let mut terms = space.terms("o-1", recipient, &contract).unwrap();
    change(&mut terms);
    (terms.handoff_id.clone(), space.offer(terms).unwrap())
}

fn accepted(space: &mut Space, handoff: &HandoffId, by: &str) -> Reply {
    let consent = space.consent_to(handoff).unwrap();
    space.consent(consent, by).unwrap()
}

#[test]
fn nothing_is_handed_over_without_the_recipients_own_consent_to_exactly_this() {
    shows!("CP-C12-02"; by "handoff.consent_not_exact");
    let mut space = two();
    let (handoff, offer) = offered(&mut space, "worker", |_| {});
    recorded(&offer);
    let exact = space.consent_to(&handoff).unwrap();
    refused(&space.consent(exact.clone(), "helper").unwrap(), Code::ConsentMissing);
    let other = Digest::of(b"another contract");
    for inexact in [
        HandoffConsent { contract_digest: other, ..exact.clone() },
        HandoffConsent { ownership_epoch: 7, ..exact.clone() },
        HandoffConsent { recipient_ref: "helper".into(), ..exact.clone() },
    ] {
        refused(&space.consent(inexact, "worker").unwrap(), Code::ConsentMissing);
    }
    let unknown = HandoffConsent { handoff_ref: "handoff-none".into(), ..exact.clone() };
    refused(&space.consent(unknown, "worker").unwrap(), Code::UnresolvedRef);
    assert_eq!(owner(&space), ("closer.coordinator".into(), 0), "and nothing has moved");
    recorded(&space.consent(exact, "worker").unwrap());
    assert_eq!(owner(&space), ("worker".into(), 1));
}

#[test]
fn a_recipient_that_cannot_meet_the_contract_gets_nothing() {
    shows!("CP-C12-03"; by "handoff.recipient_unfit");
    let mut space = two();
    let contract = space.contract(&["plan.change"], &[], &[]).unwrap();
    let terms = space.terms("o-1", "helper", &contract).unwrap();
    refused(&space.offer(terms).unwrap(), Code::ContractIncompatible);
    let terms = space.terms("o-1", "worker", &contract).unwrap();
    let as_observer = ActorRef { role: ProducerRole::Observer, ..terms.recipient.clone() };
    refused(&space.offer(Terms { recipient: as_observer, ..terms.clone() }).unwrap(), Code::ContractIncompatible);
    let handoff = terms.handoff_id.clone();
    recorded(&space.offer(terms).unwrap());
    recorded(&accepted(&mut space, &handoff, "worker"));
    assert_eq!(owner(&space), ("worker".into(), 1));
}

#[test]
fn what_the_contract_asks_for_as_context_is_handed_over_with_it() {
    shows!("CP-C12-04"; by "handoff.context_uncovered");
    let mut space = two();
    let context = space.contract(&[], &[], &[]).unwrap();
    let contract = space.contract(&[], &[context.id.as_str()], &[]).unwrap();
    let terms = space.terms("o-1", "worker", &contract).unwrap();
    refused(&space.offer(terms.clone()).unwrap(), Code::CoverageMissing);
    let forged = ArtifactRef { digest: Digest::of(b"other"), ..context.clone() };
    let reply = space.offer(Terms { context_refs: vec![forged], ..terms.clone() }).unwrap();
    refused(&reply, Code::UnresolvedRef);
    recorded(&space.offer(Terms { context_refs: vec![context], ..terms }).unwrap());
}

#[test]
fn of_two_offers_one_is_taken_up_and_its_receipt_lands_with_the_epoch() {
    shows!("CP-C12-05"; by "handoff.epoch_not_next");
    let mut space = two();
    let (first, one) = offered(&mut space, "worker", |_| {});
    let (second, other) = offered(&mut space, "helper", |_| {});
    recorded(&one);
    recorded(&other);
    let before = space.records().len();
    recorded(&accepted(&mut space, &first, "worker"));
    let after = space.records().len();
    refused(&accepted(&mut space, &second, "helper"), Code::StaleEpoch);
    refused(&accepted(&mut space, &first, "worker"), Code::Duplicate);
    assert_eq!(owner(&space), ("worker".into(), 1));
    // One input is one append: whatever beginning of the record survives a crash, receipt and epoch agree.
    let landed: Vec<Entry> = space.records()[before..after].iter().map(|record| Entry::read(record).unwrap()).collect();
    let receipts = landed.iter().filter(
        |entry| matches!(entry, Entry::Artifact(body) if matches!(&**body, ArtifactBody::AcceptanceReceipt(_))),
    );
    let epochs = landed.iter().filter(|entry| matches!(entry, Entry::Ownership(_)));
    assert_eq!((receipts.count(), epochs.count()), (1, 1));
    let replayed = space.replay().unwrap();
    assert_eq!(replayed.ownership(&"o-1".into()), space.view().ownership(&"o-1".into()));
}

#[test]
fn an_acceptance_is_verified_afterwards_and_the_transfer_never_waits_for_it() {
    shows!("CP-C12-06"; by "handoff.acceptance_holds");
    let mut space = two();
    let later = space.moment().now.plus_ms(60_000);
    let contract = space.contract(&[], &[], &[]).unwrap();
    let terms = space.terms("o-1", "worker", &contract).unwrap();
    let handoff = terms.handoff_id.clone();
    let payload = handoff::draft(space.view(), terms, &space.moment().now).unwrap();
    // The condition takes the receipt of this very handoff, and a minute: neither is there before the transfer.
    let payload = crate::support::changed(&payload, |envelope| {
        let closer_contracts::envelope::Body::Handoff(body) = &mut envelope.body else { unreachable!("a handoff") };
        let body = std::sync::Arc::make_mut(body);
        let receipt = HandoffAccepted {
            handoff_ref: handoff.clone(),
            recipient_ref: "worker".into(),
            contract_digest: contract.digest,
            ownership_epoch: 1,
        };
        let items =
            vec![TypedPredicate::HandoffAccepted(receipt), TypedPredicate::TimeReached(TimeReached { at: later })];
        body.acceptance_condition = TypedPredicate::All(All { items });
    });
    recorded(&space.submit_payload(payload).unwrap());
    recorded(&accepted(&mut space, &handoff, "worker"));
    assert_eq!(owner(&space), ("worker".into(), 1), "the transfer is done");
    let verified = |space: &Space| {
        space.view().notices.values().filter(|notice| notice.kind == NoticeKind::AcceptanceVerified).count()
    };
    assert_eq!(verified(&space), 0);
    space.pass(60_000).unwrap();
    space.pass(60_000).unwrap();
    assert_eq!(verified(&space), 1, "and is told once");
}

#[test]
fn until_it_is_accepted_the_responsibility_stays_with_its_sender() {
    shows!("CP-C12-07", "CP-C12-11"; by "monitor.epoch_stale");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    let (handoff, offer) = offered(&mut space, "worker", |_| {});
    recorded(&offer);
    let early = again(&mut space, &episode_id, &payload_id, |action| action.ownership_epoch = 1);
    refused(&dispatch(&mut space, &early), Code::StaleEpoch);
    recorded(&accepted(&mut space, &handoff, "worker"));
    refused(&dispatch(&mut space, &payload_id), Code::StaleEpoch);
    let actions = [&payload_id, &early].map(|id| space.view().actions.get(id).expect("on record").body.clone());
    assert_eq!(actions[0].logical_digest, actions[1].logical_digest, "one logical operation under two epochs");
    recorded(&dispatch(&mut space, &early));
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn only_its_owner_hands_a_responsibility_over_and_only_to_the_next_epoch() {
    let mut space = two();
    let (_, reply) = offered(&mut space, "worker", |terms| {
        terms.sender = ActorRef { actor_id: "helper".into(), role: ProducerRole::Participant };
    });
    refused(&reply, Code::MissingAuthority);
    let past = space.moment().now;
    let (_, reply) = offered(&mut space, "worker", |terms| terms.lease_expiry = Some(past));
    refused(&reply, Code::LeaseExpired);
    let (handoff, offer) = offered(&mut space, "worker", |_| {});
    recorded(&offer);
    space.transfer("o-1", "helper", None).unwrap();
    refused(&accepted(&mut space, &handoff, "worker"), Code::StaleEpoch);
    assert_eq!(owner(&space), ("helper".into(), 1));
}

#[test]
fn after_a_lease_nobody_dispatches_before_somebody_accepts() {
    shows!("CP-C12-08"; by "monitor.ownership_fenced");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    let until = space.moment().now.plus_ms(60_000);
    space.transfer("o-1", "worker", Some(until)).unwrap();
    let under_lease = again(&mut space, &episode_id, &payload_id, |_| {});
    space.pass(60_000).unwrap();
    assert_eq!(owner(&space), ("closer.coordinator".into(), 2), "the coordinator answers for it");
    refused(&dispatch(&mut space, &under_lease), Code::StaleEpoch);
    let by_coordinator = again(&mut space, &episode_id, &under_lease, |action| action.attempt_id = "attempt-3".into());
    refused(&dispatch(&mut space, &by_coordinator), Code::LeaseExpired);
    assert_eq!(space.world.effects().len(), 0);
    space.transfer("o-1", "worker", None).unwrap();
    let held = space.view().ownership(&"o-1".into()).expect("the obligation");
    assert_eq!((held.epoch, held.standing), (3, OwnershipStanding::Held));
    let renewed = again(&mut space, &episode_id, &under_lease, |action| action.attempt_id = "attempt-4".into());
    recorded(&dispatch(&mut space, &renewed));
    assert_eq!(space.world.effects().len(), 1);
}

/// Proposes, endorses and asks for the commit of a delta that names this owner for `o-1`.
fn named(space: &mut Space, owner: &str) -> Reply {
    let change = Change::SetOwner { obligation_id: "o-1".into(), responsible_owner: owner.into() };
    let delta = delta(space, vec![change], Vec::new(), Vec::new());
    recorded(&propose(space, delta.clone()));
    recorded(&endorse(space, &delta, Disposition::Endorsed));
    commit(space, &delta)
}

#[test]
fn no_commit_makes_somebody_responsible_who_accepted_no_handoff() {
    shows!("CP-C12-02"; by "commit.owner_not_handed_over");
    let (mut space, _, payload_id) = ready(&Deployment::default());
    refused(&named(&mut space, "worker"), Code::ConsentMissing);
    assert_eq!(owner(&space), ("closer.coordinator".into(), 0), "endorsed or not");
    let (handoff, offer) = offered(&mut space, "worker", |_| {});
    recorded(&offer);
    refused(&named(&mut space, "worker"), Code::ConsentMissing);
    recorded(&accepted(&mut space, &handoff, "worker"));
    refused(&named(&mut space, "closer.coordinator"), Code::ConsentMissing);
    assert_eq!(owner(&space), ("worker".into(), 1));
    refused(&dispatch(&mut space, &payload_id), Code::StaleEpoch);
    recorded(&named(&mut space, "worker"));
    let told = space.view().state.obligation(&"o-1".into()).expect("the obligation").responsible_owner.clone();
    assert_eq!((told.as_str(), owner(&space)), ("worker", ("worker".into(), 1)), "the state says what was accepted");
}

#[test]
fn a_new_owner_repeats_nothing_that_may_have_happened() {
    shows!("CP-C12-09"; by "monitor.attempt_refused");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    space.world.effect_mode = Mode::AppliedUnanswered;
    recorded(&dispatch(&mut space, &payload_id));
    space.transfer("o-1", "worker", None).unwrap();
    let renewed = again(&mut space, &episode_id, &payload_id, |_| {});
    assert_eq!(codes(&dispatch(&mut space, &renewed)), [Code::OutcomeUnknown]);
    let read = readback_now(&mut space);
    recorded(&space.submit_payload(read).unwrap());
    let attempt = space.view().attempts.values().next().expect("the attempt");
    assert_eq!(attempt.status, AttemptStatus::EffectConfirmed);
    assert!(codes(&dispatch(&mut space, &renewed)).contains(&Code::Duplicate), "what was done is done");
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn a_new_owner_has_the_authority_there_was_and_no_more() {
    shows!("CP-C12-10"; by "monitor.parameter_beyond_grant");
    let (mut space, episode_id, payload_id) = ready(&Deployment::default());
    let before = grants(&space);
    space.transfer("o-1", "worker", None).unwrap();
    assert_eq!(grants(&space), before);
    let wider = again(&mut space, &episode_id, &payload_id, |action| {
        action.parameters.insert("plan".into(), closer_contracts::refs::Plain(serde_json::json!("large")));
        action.action_id = "action-wider".into();
        action.idempotency_key = "key-wider".into();
    });
    assess(&mut space, &episode_id, &wider);
    refused(&dispatch(&mut space, &wider), Code::OutOfBounds);
    let renewed = again(&mut space, &episode_id, &payload_id, |action| action.attempt_id = "attempt-3".into());
    recorded(&dispatch(&mut space, &renewed));
}

#[test]
fn giving_it_back_takes_what_the_return_contract_asks_for() {
    shows!("CP-C12-12"; by "handoff.given_back");
    let mut space = space(worker::proposes("basic"));
    let owing = space.contract(&[], &[], &[Owed::Results, Owed::Evidence, Owed::UnsettledAttempts]).unwrap();
    let terms = space.terms("o-1", "worker", &owing).unwrap();
    let handoff = terms.handoff_id.clone();
    recorded(&space.offer(terms).unwrap());
    recorded(&accepted(&mut space, &handoff, "worker"));
    space.world.effect_mode = Mode::LostUnanswered;
    space.world.observe_mode = Mode::Unavailable;
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let back = space.terms("o-1", "closer.coordinator", &owing).unwrap();
    let reply = space.offer(back.clone()).unwrap();
    refused(&reply, Code::ContractIncompatible);
    assert_eq!(owner(&space), ("worker".into(), 1), "it stays where it is");
    let Reply::Refused(denials) = reply else { unreachable!("just refused") };
    let view = space.view();
    let results = view.results.values().map(closer_protocol::view::OnRecord::reference);
    let evidence = view.evidence.values().map(closer_protocol::view::OnRecord::reference);
    let attempts = view.attempts.values().map(|attempt| attempt.intent_ref.clone());
    let owed: Vec<ArtifactRef> = results.chain(evidence).chain(attempts).collect();
    assert_eq!(denials.len(), owed.len(), "every result, evidence and open attempt is named: {denials:?}");
    let handoff = back.handoff_id.clone();
    recorded(&space.offer(Terms { context_refs: owed, ..back }).unwrap());
    recorded(&accepted(&mut space, &handoff, "closer.coordinator"));
    assert_eq!(owner(&space), ("closer.coordinator".into(), 2));
}
