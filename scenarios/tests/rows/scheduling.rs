//! Episodes: what comes before work is chosen, what an end does not do, and what goes on meanwhile. Spec: abstract, §7.1.

use crate::support::{
    begun, changed, codes, commit, dispatch, grants, recorded, refused, space, status, until, until_dispatch,
};
use closer_contracts::RefusalCode as Code;
use closer_contracts::envelope::Body;
use closer_contracts::id::ObligationId;
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::payload_type::PayloadType;
use closer_contracts::refs::{Amounts, ArtifactRef, Plain};
use closer_contracts::work::{ContextItem, Need};
use closer_contracts::{Payload, Timestamp, shows};
use closer_protocol::entry::{ActivationEntry, ArtifactBody, Entry, EpisodeEnd};
use closer_protocol::episode::{Next, openable};
use closer_protocol::input::Input;
use closer_protocol::work::Packet;
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Space, worker};

/// The packet that the coordinator drafts for the work of an episode that has just begun.
fn packet(space: &Space, episode_id: &closer_contracts::id::EpisodeId) -> Packet {
    let Next::Work { participant, role } = space.next(episode_id).unwrap() else { panic!("work comes first") };
    let episode = space.view().episodes.get(episode_id).expect("the episode").clone();
    closer_protocol::work::draft(space.view(), &episode, &participant, &role, &space.moment().now).unwrap()
}

fn issue(space: &mut Space, work: Payload, packet: &Packet) -> closer_protocol::Reply {
    let work = space.submission(work).unwrap();
    space.submit(Input::Issue { work, disclosure: packet.disclosure.clone() }).unwrap()
}

/// Where in the record something stands first.
#[track_caller]
fn place(space: &Space, wanted: impl Fn(&Entry) -> bool) -> usize {
    space.entries().unwrap().iter().position(|(_, entry)| wanted(entry)).expect("it is on record")
}

fn is_a(entry: &Entry, payload_type: PayloadType) -> bool {
    matches!(entry, Entry::Payload(payload) if payload.envelope().r#type == payload_type)
}

fn is_match(entry: &Entry) -> bool {
    matches!(entry, Entry::Artifact(artifact) if matches!(**artifact, ArtifactBody::MatchReceipt(_)))
}

#[test]
fn evidence_is_bound_to_its_obligation_before_work_follows_from_it() {
    shows!("CP-0-02"; by "intake.cause_unmatched");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let drafted = packet(&space, &episode_id);
    let unmatched = changed(&drafted.work, |envelope| {
        envelope.payload_id = "pl.unmatched".into();
        envelope.causation_event_id = Some("event-unmatched".into());
    });
    assert!(codes(&issue(&mut space, unmatched, &drafted)).contains(&Code::UnresolvedRef));
    assert!(space.view().works.is_empty());
    recorded(&issue(&mut space, drafted.work.clone(), &drafted));
    let cause = drafted.work.envelope().causation_event_id.clone().expect("the event");
    let (_, receipt) = space.view().matches.get(&cause).expect("its match receipt");
    assert_eq!(receipt.matched_obligation_ids, [ObligationId::from("o-1")]);
    assert!(place(&space, is_match) < place(&space, |entry| is_a(entry, PayloadType::Work)));
}

#[test]
fn work_is_chosen_after_state_match_resources_and_context() {
    shows!("CP-7.1-01"; by "work.budget_exceeded", "disclose.item_not_covered");
    let poor = Deployment::default()
        .with_profile(|profile| profile.obligation_budget = Amounts { calls: Some(0), ..Amounts::default() });
    let mut space = Space::found(&poor, worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let drafted = packet(&space, &episode_id);
    assert!(codes(&issue(&mut space, drafted.work.clone(), &drafted)).contains(&Code::BudgetExceeded));
    assert!(space.view().works.is_empty(), "no work without the resources for it");

    let mut space = crate::support::space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let drafted = packet(&space, &episode_id);
    let content = Plain(serde_json::json!("slipped in"));
    let digest = closer_contracts::canonical::digest_of(&content).unwrap();
    let uncovered = changed(&drafted.work, |envelope| {
        let Body::Work(work) = &envelope.body else { unreachable!("work") };
        let mut work = (**work).clone();
        work.context_items.push(ContextItem { reference: ArtifactRef { id: "slipped".into(), digest }, content });
        envelope.payload_id = "pl.uncovered".into();
        envelope.body = work.into();
    });
    assert!(codes(&issue(&mut space, uncovered, &drafted)).contains(&Code::DisclosureDenied));
    assert!(space.view().works.is_empty(), "nor without its context in order");
    recorded(&issue(&mut space, drafted.work.clone(), &drafted));
    assert_eq!(drafted.work.envelope().semantic_basis, Some(space.view().state.reference()), "the state as it is now");
    let order = [
        place(&space, |entry| is_a(entry, PayloadType::Event)),
        place(&space, is_match),
        place(&space, |entry| matches!(entry, Entry::Activation(ActivationEntry::Began(_)))),
        place(&space, |entry| {
            matches!(entry, Entry::Artifact(artifact) if matches!(&**artifact, ArtifactBody::DisclosureReceipt(receipt)
                if receipt.disclosure_id == drafted.disclosure.disclosure_id))
        }),
        place(&space, |entry| is_a(entry, PayloadType::Work)),
    ];
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn an_episode_that_ended_well_has_closed_nothing() {
    shows!("CP-7.1-05"; by "commit.not_endorsed");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let Next::Endorse { delta_id } = until(&mut space, &episode_id, |next| matches!(next, Next::Endorse { .. })) else {
        unreachable!("just matched")
    };
    let proposed = (*space.view().deltas.get(&delta_id).expect("the delta").body).clone();
    recorded(&crate::support::endorse(
        &mut space,
        &proposed,
        closer_contracts::adjudication::Disposition::Insufficient,
    ));
    assert!(codes(&commit(&mut space, &proposed)).contains(&Code::MissingEndorsement));
    assert_eq!(space.world.effects().len(), 1, "the work is done");
    for end in [EpisodeEnd::Committed, EpisodeEnd::NothingToDo] {
        let end = Input::End { episode_id: episode_id.clone(), end, reason: "It went well.".into() };
        space.submit(end).unwrap();
    }
    assert_eq!(space.view().episodes.get(&episode_id).and_then(|it| it.end), Some(EpisodeEnd::Committed));
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
    let again = begun(&mut space);
    assert_ne!(again, episode_id, "and it is worked on further");
}

#[test]
fn when_one_obligation_waits_another_is_worked() {
    shows!("CP-7.1-06"; by "episode.under_way");
    let deployment = Deployment::default().with_obligation("o-2", "service-b");
    let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
    space.sends_at_once = false;
    let waiting = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &waiting);
    recorded(&dispatch(&mut space, &payload_id));
    assert!(matches!(space.next(&waiting).unwrap(), Next::Await { .. }), "it cannot go on");
    recorded(&space.event("service-a", "price").unwrap());
    recorded(&space.event("service-b", "price").unwrap());
    assert_eq!(openable(space.view()), [ObligationId::from("o-2")]);
    let again = Input::Open { obligation_id: "o-1".into(), episode_id: "episode-again".into() };
    refused(&space.submit(again).unwrap(), Code::Duplicate);
    let other = space.open("o-2").unwrap();
    until(&mut space, &other, |next| matches!(next, Next::Ask { .. }));
    assert_eq!(space.view().under_way.len(), 2);
}

#[test]
fn what_waits_keeps_its_triggers_while_other_obligations_are_worked_on() {
    shows!("CP-0-09"; by "matching.trigger_satisfied");
    let asks_about_one: Answer = Box::new(|work, view| match work.question.subject_refs[0].as_str() {
        "p-o-1" => worker::leaves_open(Need::Tradeoff)(work, view),
        _ => worker::nothing(work),
    });
    let deployment = Deployment::default().with_obligation("o-2", "service-b");
    let deployment = deployment.with_profile(|profile| profile.limits.fingerprints_max = 1_000);
    let mut space = Space::found(&deployment, asks_about_one).unwrap();
    let triggers = |space: &Space| space.view().state.reentries_of(&"o-1".into()).cloned().collect::<Vec<_>>();
    let before = triggers(&space);
    assert_eq!(before.len(), 1);
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    assert_eq!(status(&space, "o-1"), ObligationStatus::AwaitingUserJudgment);
    for _ in 0..30 {
        space.pass(3_600_000).unwrap();
        recorded(&space.event("service-b", "price").unwrap());
        assert_eq!(openable(space.view()), [ObligationId::from("o-2")]);
        space.run().unwrap();
    }
    assert_eq!(triggers(&space), before);
    let due = Timestamp::parse("2026-12-31T00:00:00Z").unwrap();
    let left = u64::try_from(due.unix_ms() - space.moment().now.unix_ms()).unwrap();
    space.pass(left).unwrap();
    let causes = space.view().eligible.get(&ObligationId::from("o-1")).expect("it fires").clone();
    assert!(causes.iter().any(|cause| cause.reentry_id == Some("reentry-o-1".into())), "{causes:?}");
}

#[test]
fn a_thousand_episodes_permit_no_more_than_the_first() {
    shows!("CP-7.1-08"; by "monitor.no_such_grant");
    let mut asked = 0;
    let now_and_then: Answer = Box::new(move |work, view| {
        asked += 1;
        match asked % 10 {
            0 => worker::proposes("large")(work, view),
            _ => worker::nothing(work),
        }
    });
    let tireless = Deployment::default().with_profile(|profile| profile.limits.fingerprints_max = 10_000);
    let mut space = Space::found(&tireless, now_and_then).unwrap();
    let before = grants(&space);
    let mut newest = begun(&mut space);
    for number in 1..1_000 {
        space.finish(&newest).unwrap();
        if number == 999 {
            // Until its deadline the question is open once, and nobody is asked again.
            space.pass(closer_protocol::bench::PACKET_MS).unwrap();
        }
        newest = begun(&mut space);
    }
    assert_eq!(space.view().episodes.len(), 1_000);
    let next = until(&mut space, &newest, |next| matches!(next, Next::AskUser { .. } | Next::Act { .. }));
    let Next::AskUser { result, proposal: Some(proposal) } = next else {
        panic!("nothing is allowed by habit: {next:?}")
    };
    let view = space.view().clone();
    let episode = view.episodes.get(&newest).expect("the episode");
    let now = space.moment().now;
    let habit = "grant-of-habit".into();
    let action = closer_protocol::action::draft(&view, episode, &result, &proposal, &habit, 1, &now).unwrap();
    recorded(&space.submit_payload(action.clone()).unwrap());
    refused(&dispatch(&mut space, action.id()), Code::MissingAuthority);
    assert_eq!(grants(&space), before);
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn under_scarcity_who_waits_longest_comes_first_and_nobody_starves() {
    shows!("CP-8.3-16"; by "episode.may_be_opened");
    let deployment = Deployment::default().with_obligation("o-2", "service-b").with_obligation("o-3", "service-c");
    let deployment =
        deployment.with_profile(|profile| (profile.limits.fan_out_max, profile.limits.fingerprints_max) = (1, 1_000));
    let mut space = Space::found(&deployment, Box::new(|work, _| worker::nothing(work))).unwrap();
    let mut served = std::collections::BTreeMap::new();
    for _ in 0..30 {
        // Something comes for each of them all the time, and most often for the first.
        for entity in ["service-a", "service-a", "service-b", "service-c"] {
            recorded(&space.event(entity, "price").unwrap());
        }
        let next = closer_protocol::episode::openable(space.view());
        assert_eq!(next.len(), 1, "one at a time");
        *served.entry(next[0].to_string()).or_insert(0) += 1;
        let episode_id = space.open(next[0].as_str()).unwrap();
        space.finish(&episode_id).unwrap();
    }
    assert_eq!(served.values().copied().collect::<Vec<_>>(), [10, 10, 10], "{served:?}");
}

#[test]
fn what_qualifies_lets_work_be_considered_and_permits_nothing() {
    shows!("CP-C11-17"; by "monitor.grant_revoked");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    let revoked = closer_contracts::audit::RestrictiveAction::RevokeGrant("grant-1".into());
    recorded(&space.restrict("issuer-1", revoked).unwrap());
    refused(&dispatch(&mut space, &payload_id), Code::GrantRevoked);
    space.finish(&episode_id).unwrap();
    let works = space.view().works.len();
    recorded(&space.event("service-a", "price").unwrap());
    let again = space.open("o-1").unwrap();
    space.finish(&again).unwrap();
    assert_eq!(space.view().works.len(), works + 1, "the event makes work eligible");
    assert_eq!(space.world.effects().len(), 0, "and the effect stays without authority");
}
