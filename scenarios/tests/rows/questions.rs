//! What the answers of a deployment profile lead to, and floods of questions. Spec: Appendix A, §12.

use crate::disclosure::revise;
use crate::support::{begun, dispatch, narrow, recorded, refused, space, status, until, until_dispatch};
use crate::urgent::{appointed, suspend};
use closer_contracts::RefusalCode as Code;
use closer_contracts::auth::{Accepted, Credential, Sessions, SigningScope, Subject, authenticate};
use closer_contracts::briefcase::PacketStatus;
use closer_contracts::id::Key;
use closer_contracts::item::{IdentityKind, Item, Mechanism};
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::refs::{Amounts, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial};
use closer_contracts::work::Need;
use closer_contracts::{Digest, shows};
use closer_protocol::bench::PACKET_MS;
use closer_protocol::briefcase::briefcase;
use closer_protocol::entry::{EpisodeEnd, NoticeKind};
use closer_protocol::episode::Next;
use closer_protocol::input::Input;
use closer_scenarios::founding::identity;
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Space, worker};

#[test]
fn a_channel_that_the_profile_does_not_list_establishes_nobody() {
    shows!("CP-A-04"; by "auth.mechanism_undeclared");
    let space = space(worker::proposes("basic"));
    let (user, now) = (space.view().state.identity(&"user".into()).expect("the user"), space.moment().now);
    let mut sessions = Sessions::default();
    let session = sessions.issue("session-1".into(), user, &now).unwrap();
    let subject = Subject {
        id: "declaration-9".into(),
        content_digest: Digest::of(b"declared"),
        scope: SigningScope::Declaration,
        producer: "user".into(),
        role: Some(ProducerRole::User),
    };
    for (mechanisms, accepted) in
        [(&[Mechanism::Session][..], true), (&[Mechanism::Ed25519][..], false), (&[][..], false)]
    {
        let listed = Accepted { mechanisms, sessions: &sessions };
        let told = authenticate(listed, Some(user), &subject, Credential::Session(&session), &now);
        assert_eq!(told.err().map(|fault| fault.code), (!accepted).then_some(Code::Unauthenticated), "{mechanisms:?}");
    }
}

#[test]
fn a_rule_that_the_profile_does_not_publish_never_activates_work() {
    shows!("CP-A-07"; by "matching.candidate_satisfied");
    for (deployment, activated) in [(Deployment::default().without("rule.matching"), 0), (Deployment::default(), 1)] {
        let mut space = Space::found(&deployment, Box::new(|work, _| worker::nothing(work))).unwrap();
        for _ in 0..3 {
            recorded(&space.event("service-a", "price").unwrap());
        }
        space.run().unwrap();
        assert_eq!(space.view().works.len(), activated);
    }
}

#[test]
fn each_of_five_deadlines_runs_what_is_declared_for_it() {
    shows!("CP-A-13"; by "timers.deadline_passed", "monitor.permit_expired");
    // The Bench: escalated once. Urgent review: told to the independent owner.
    let mut space = space(worker::proposes("large"));
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    space.pass(PACKET_MS).unwrap();
    let told = |space: &Space, kind| space.view().notices.values().filter(|notice| notice.kind == kind).count();
    assert_eq!(told(&space, NoticeKind::Overdue), 1, "the packet");
    assert_eq!(told(&space, NoticeKind::Escalation), 1, "the review");
    // A lease: fenced. A trigger: replaced or left as a gap.
    let until = space.moment().now.plus_ms(60_000);
    space.transfer("o-1", "worker", Some(until)).unwrap();
    space.pass(60_000).unwrap();
    assert_eq!(space.view().ownership(&"o-1".into()).expect("the obligation").owner.as_str(), "closer.coordinator");
    let mut expiring = Deployment::default();
    expiring.founding.obligations[0].1[0].expires_at = Some(space.moment().now);
    let mut other = Space::found(&expiring, worker::proposes("basic")).unwrap();
    other.pass(3 * PACKET_MS).unwrap();
    let obligation = other.view().state.obligation(&"o-1".into()).expect("the obligation");
    assert!(obligation.reentry_refs.is_empty() && obligation.trigger_gap.is_some() && obligation.status.is_open());
    // A budget's reservation that was never sent: given back.
    let mut waiting = crate::support::space(worker::proposes("basic"));
    waiting.sends_at_once = false;
    let episode_id = begun(&mut waiting);
    let payload_id = until_dispatch(&mut waiting, &episode_id);
    recorded(&dispatch(&mut waiting, &payload_id));
    let attempt_id = waiting.view().attempts.keys().next().expect("the attempt").clone();
    let held = |space: &Space| space.view().ledger.held(&Key::new(attempt_id.as_str())).is_some();
    assert!(held(&waiting));
    waiting.set_now(waiting.moment().now.plus_ms(waiting.view().state.limits().permit_ms + 1));
    waiting.send().unwrap();
    assert!(!held(&waiting) && waiting.world.effects().is_empty());
}

#[test]
fn receipts_name_the_version_of_the_profile_that_was_in_force() {
    shows!("CP-A-18");
    let mut space = space(worker::proposes("basic"));
    let versions = |space: &Space| {
        let receipts = space.view().commits.values().filter_map(|committed| committed.receipt.clone());
        receipts.map(|receipt| receipt.profile_ref.version).collect::<Vec<_>>()
    };
    let before = versions(&space);
    assert!(before.iter().all(|version| *version == 1));
    revise(&mut space, |profile| profile.limits.fan_out_max = 7);
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let after = versions(&space);
    assert_eq!(after[..before.len()], before, "what was receipted stays as it was");
    assert_eq!(after.last(), Some(&2));
}

/// Many obligations that one event wakes.
fn many(number: usize) -> Deployment {
    let all = (2..=number).fold(Deployment::default(), |deployment, number| {
        deployment.with_obligation(&format!("o-{number}"), "service-a")
    });
    all.with_profile(|profile| profile.limits.fan_out_max = 64)
}

#[test]
fn a_flood_of_the_same_judgment_is_one_card_that_names_every_obligation() {
    shows!("CP-12-14", "CP-12-16"; by "episode.judgment_is_the_users");
    let says: Answer = Box::new(|work, view| match work.question.subject_refs[0].as_str() {
        "p-o-9" => worker::leaves_open(Need::Preference)(work, view),
        _ => worker::leaves_open(Need::Tradeoff)(work, view),
    });
    let mut space = Space::found(&many(30), says).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    assert_eq!(space.view().waiting.len(), 30);
    let cards = briefcase(space.view()).bench;
    assert_eq!(cards.len(), 2, "one for the flood, and one for the other judgment inside it");
    let sizes: Vec<_> = cards.iter().map(|card| card.obligation_ids.len()).collect();
    assert_eq!((sizes.iter().sum::<usize>(), sizes.iter().min()), (30, Some(&1)), "no obligation is lost");
    assert!(cards.iter().all(|card| card.deadline.is_some() && !card.is_overdue));
    space.pass(PACKET_MS).unwrap();
    assert!(briefcase(space.view()).bench.iter().all(|card| card.is_overdue), "each in its time");
}

#[test]
fn what_is_not_told_again_is_not_resolved() {
    shows!("CP-12-17"; by "timers.told_before");
    let mut space = space(worker::leaves_open(Need::Tradeoff));
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    for _ in 0..5 {
        space.pass(PACKET_MS).unwrap();
    }
    let told = space.view().notices.values().filter(|notice| notice.kind == NoticeKind::Overdue).count();
    assert_eq!(told, 1, "four more were suppressed");
    let packet = space.view().packets.values().next().expect("the packet");
    assert_eq!(packet.status, PacketStatus::Overdue);
    assert_eq!(status(&space, "o-1"), ObligationStatus::AwaitingUserJudgment);
}

#[test]
fn a_participant_gives_itself_no_authority_and_a_malformed_answer_counts_as_failed() {
    shows!("CP-12-03", "CP-12-05"; by "monitor.no_such_grant", "work.failed_once");
    let mut hopeful = space(worker::proposes("large"));
    let episode_id = begun(&mut hopeful);
    until(&mut hopeful, &episode_id, |next| matches!(next, Next::AskUser { .. }));
    let change = worker::proposal("p-o-1", "large");
    let own = crate::separations::hoped_for(&mut hopeful, &episode_id, &change, &"grant-of-the-worker".into());
    refused(&dispatch(&mut hopeful, &own), Code::MissingAuthority);
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let Next::Ask { work_id, participant } = until(&mut space, &episode_id, |next| matches!(next, Next::Ask { .. }))
    else {
        unreachable!("just matched")
    };
    let denial = Denial::new(Code::SchemaInvalid, CheckKind::Schema, "the answer is no object");
    let failed = Input::Unanswered { work_id, denial, used: Amounts::default(), handed_in_by: None };
    refused(&space.submit(failed.clone()).unwrap(), Code::SchemaInvalid);
    refused(&space.submit(failed).unwrap(), Code::Duplicate);
    assert_eq!(space.view().failures.get(&participant), Some(&1));
    space.finish(&episode_id).unwrap();
    assert_eq!(space.view().episodes.get(&episode_id).and_then(|it| it.end), Some(EpisodeEnd::NoAnswer));
}

#[test]
fn nobody_oversees_itself_or_is_overseen_by_its_own_appointee() {
    let mut watch = identity("watch", IdentityKind::User, &[ProducerRole::User], &[]);
    watch.appointed_by = "issuer-1".into();
    for (owner, refused_as) in [("issuer-1", "schema_invalid"), ("watch", "profile_incomplete"), ("user", "")] {
        let deployment = appointed(|appointment| appointment.independent_owner = owner.into());
        let founded = Space::found(&deployment.with(Item::Identity(watch.clone())), worker::proposes("basic"));
        let told = founded.err().map_or_else(String::new, |broken| broken.to_string());
        assert!(told.starts_with(refused_as) && told.is_empty() == refused_as.is_empty(), "{owner}: {told}");
    }
}
