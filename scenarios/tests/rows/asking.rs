//! The Bench over time: what an answer leads to, when a question no longer stands, and what is asked how often.

use crate::actions::again;
use crate::support::{
    begun, changed, codes, dispatch, grants, recorded, refused, space, status, until, until_dispatch,
};
use closer_contracts::RefusalCode as Code;
use closer_contracts::audit::{DecisionType, RestrictiveAction, UserDecision};
use closer_contracts::briefcase::{Briefcase, DecisionClass, PacketStatus};
use closer_contracts::delta::Change;
use closer_contracts::id::DecisionId;
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::reentry::{TimeReached, TypedPredicate};
use closer_contracts::refs::ProducerRole;
use closer_contracts::shows;
use closer_contracts::work::Need;
use closer_protocol::bench::{self, Fate, PACKET_MS};
use closer_protocol::briefcase::briefcase;
use closer_protocol::episode::Next;
use closer_protocol::input::Reply;
use closer_scenarios::founding::plan_target;
use closer_scenarios::{Deployment, Mode, Space, worker};
use serde_json::json;

/// A space with one open packet that asks to allow the large plan, on one observation of the small one.
fn asked() -> (Space, DecisionId) {
    let mut space = space(worker::proposes("large"));
    space.world.set(&plan_target(), "plan", "small");
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let decision_id = newest(&space);
    (space, decision_id)
}

/// The packet that waits.
fn newest(space: &Space) -> DecisionId {
    let waiting: Vec<_> = space.view().waiting.iter().cloned().collect();
    assert_eq!(waiting.len(), 1, "one question is open");
    waiting[0].clone()
}

fn packet_status(space: &Space, id: &DecisionId) -> PacketStatus {
    space.view().packets.get(id).expect("the packet").status
}

fn body(space: &Space, id: &DecisionId) -> Briefcase {
    (*space.view().packets.get(id).expect("the packet").packet.body).clone()
}

fn allow(space: &mut Space, id: &DecisionId) -> UserDecision {
    let decision = space.decision(id, DecisionType::ScopedAuthorization).unwrap();
    recorded(&space.submit_decision(decision.clone()).unwrap());
    decision
}

fn fate(space: &Space, decision: &UserDecision) -> Fate {
    bench::fate(space.view(), decision, &space.moment().now)
}

#[test]
fn an_amended_action_is_another_one_assessed_anew_and_authorized_in_one_step() {
    let (mut space, id) = asked();
    let works = space.view().works.len();
    let mut decision = space.decision(&id, DecisionType::ScopedAuthorization).unwrap();
    decision.amendment = Some(worker::proposal("p-o-1", "medium"));
    recorded(&space.submit_decision(decision.clone()).unwrap());
    assert_eq!(fate(&space, &decision), Fate::Waiting);
    let now = space.moment().now;
    let covered = |plan: &str| {
        closer_protocol::action::covering_grant(space.view(), &worker::proposal("p-o-1", plan), &now).is_some()
    };
    assert!(covered("medium") && !covered("large"), "the user allowed this one, and not what was proposed");
    space.run().unwrap();
    assert_eq!(space.world.get(&plan_target(), "plan"), Some(&json!("medium")));
    assert_eq!(space.world.effects().len(), 1);
    let action = space.view().actions.values().next().expect("the action").body.clone();
    assert!(space.view().assessments.contains_key(&action.logical_digest), "it was assessed as what it is");
    assert_eq!(space.view().works.len(), works, "nobody is asked for a proposal again");
    assert_eq!(status(&space, "o-1"), ObligationStatus::Resolved);
    assert_eq!(fate(&space, &decision), Fate::Ran(action.attempt_id.clone()));
}

#[test]
fn an_amendment_is_of_the_proposed_operation_and_authorizes_it() {
    let (mut space, id) = asked();
    let mut other = space.decision(&id, DecisionType::ScopedAuthorization).unwrap();
    let cancel = closer_contracts::work::ActionProposal {
        operation: "plan.cancel".into(),
        ..worker::proposal("p-o-1", "basic")
    };
    other.amendment = Some(cancel);
    refused(&space.submit_decision(other).unwrap(), Code::SubjectMismatch);
    let mut preference = space.decision(&id, DecisionType::Preference).unwrap();
    preference.amendment = Some(worker::proposal("p-o-1", "basic"));
    refused(&space.submit_decision(preference).unwrap(), Code::SchemaInvalid);
    assert_eq!(packet_status(&space, &id), PacketStatus::Open);
}

#[test]
fn an_answer_after_the_deadline_does_nothing_and_the_question_comes_anew() {
    shows!("CP-7.3-19"; by "bench.answer_late");
    let (mut space, id) = asked();
    let before = grants(&space);
    space.pass(PACKET_MS).unwrap();
    let reply = space.answer(&id, DecisionType::ScopedAuthorization).unwrap();
    refused(&reply, Code::StalePacket);
    let Reply::Refused(denials) = &reply else { unreachable!("just refused") };
    assert!(denials[0].reason.contains("did nothing"), "{denials:?}");
    assert_eq!(grants(&space), before);
    assert_eq!(packet_status(&space, &id), PacketStatus::Withdrawn);
    space.run().unwrap();
    let anew = newest(&space);
    assert_ne!(anew, id);
    assert_eq!(space.world.effects().len(), 0);
    allow(&mut space, &anew);
    space.run().unwrap();
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn of_two_answers_one_counts() {
    let (mut space, id) = asked();
    let second = space.decision(&id, DecisionType::Preference).unwrap();
    allow(&mut space, &id);
    let reply = space.submit_decision(second).unwrap();
    refused(&reply, Code::StalePacket);
    let Reply::Refused(denials) = &reply else { unreachable!("just refused") };
    assert!(denials[0].reason.contains("scoped_authorization by user"), "{denials:?}");
    space.run().unwrap();
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn an_answer_takes_effect_once_however_often_the_process_dies() {
    let (mut space, id) = asked();
    let decision = allow(&mut space, &id);
    space.crash().unwrap();
    space.run().unwrap();
    space.crash().unwrap();
    space.run().unwrap();
    assert_eq!(space.world.effects().len(), 1);
    assert!(matches!(fate(&space, &decision), Fate::Ran(_)));
}

/// Answers, changes something, and goes on: nothing is done, the answer's fate names the fact, and it is asked anew.
fn overtaken(change: impl FnOnce(&mut Space, &UserDecision), fact: &str) {
    let (mut space, id) = asked();
    let decision = allow(&mut space, &id);
    change(&mut space, &decision);
    space.run().unwrap();
    assert_eq!(space.world.effects().len(), 0, "{fact}");
    assert_ne!(newest(&space), id, "{fact}");
    let became = fate(&space, &decision);
    let Fate::Refused(Code::StaleVersion, facts) = &became else { panic!("{fact}: {became:?}") };
    assert!(facts.iter().any(|told| told.contains(fact)), "{facts:?}");
}

#[test]
fn a_target_a_policy_or_an_operation_that_changed_after_the_answer_is_asked_about_anew() {
    overtaken(
        |space, _| {
            space.world.set(&plan_target(), "plan", "huge");
            recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
        },
        "evidence:",
    );
    for (kind, id, fact) in [
        (ItemKind::Operation, "plan.change", "operation:plan.change"),
        (ItemKind::Profile, "profile-1", "profile:profile-1"),
    ] {
        overtaken(|space, _| revise(space, kind, id), fact);
    }
}

/// The user has an item revised to its next version.
fn revise(space: &mut Space, kind: ItemKind, id: &str) {
    let accepted = space.view().state.item(kind, &id.into()).expect("the item").clone();
    let mut item = accepted.item.clone();
    if let Item::Operation(entry) = &mut item {
        entry.version += 1;
    } else if let Item::Profile(profile) = &mut item {
        profile.version += 1;
    }
    let changes = vec![Change::Revise { item: Box::new(item), replaces: accepted.digest }];
    let authority = space.instruct(&changes).unwrap();
    let delta = crate::support::delta(space, changes, Vec::new(), vec![authority]);
    recorded(&crate::support::propose(space, delta.clone()));
    recorded(&crate::support::endorse(space, &delta, closer_contracts::adjudication::Disposition::Endorsed));
    recorded(&crate::support::commit(space, &delta));
}

#[test]
fn what_changes_between_the_assessment_and_the_dispatch_is_named_by_the_refusal() {
    let (mut space, id) = asked();
    let decision = allow(&mut space, &id);
    let episode_id = space.open("o-1").unwrap();
    let payload_id = until_dispatch(&mut space, &episode_id);
    space.world.set(&plan_target(), "plan", "huge");
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    let reply = dispatch(&mut space, &payload_id);
    refused(&reply, Code::StaleVersion);
    let Reply::Refused(denials) = &reply else { unreachable!("just refused") };
    assert!(denials.iter().any(|denial| denial.offending.as_deref().is_some_and(|fact| fact.starts_with("evidence:"))));
    space.finish(&episode_id).unwrap();
    let anew = newest(&space);
    assert!(body(&space, &anew).remaining_uncertainty.iter().any(|told| told.as_str().contains("stale_version")));
    assert!(matches!(fate(&space, &decision), Fate::Refused(Code::StaleVersion, _)));
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn a_grant_revoked_after_the_answer_is_refused_and_asked_about_anew() {
    shows!("CP-4.2-07"; by "episode.answer_overtaken");
    let (mut space, id) = asked();
    let decision = allow(&mut space, &id);
    let episode_id = space.open("o-1").unwrap();
    let payload_id = until_dispatch(&mut space, &episode_id);
    let grant = bench::grant_id(&decision);
    recorded(&space.restrict("issuer-1", RestrictiveAction::RevokeGrant(grant)).unwrap());
    refused(&dispatch(&mut space, &payload_id), Code::GrantRevoked);
    space.finish(&episode_id).unwrap();
    assert_ne!(newest(&space), id);
    assert!(matches!(fate(&space, &decision), Fate::Refused(Code::GrantRevoked, _)));
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn every_answers_fate_is_told() {
    let (mut space, id) = asked();
    let no = space.decision(&id, DecisionType::InvestigationRequest).unwrap();
    recorded(&space.submit_decision(no.clone()).unwrap());
    assert_eq!(fate(&space, &no), Fate::NoAuthority);
    let (mut space, id) = asked();
    space.world.effect_mode = Mode::LostUnanswered;
    space.world.observe_mode = Mode::Unavailable;
    let decision = allow(&mut space, &id);
    assert_eq!(fate(&space, &decision), Fate::Waiting);
    space.run().unwrap();
    assert!(matches!(fate(&space, &decision), Fate::Unknown(_)), "{:?}", fate(&space, &decision));
}

#[test]
fn evidence_that_changes_takes_the_packet_back_and_keeps_its_obligations() {
    shows!("CP-7.3-11", "CP-7.3-12"; by "bench.evidence_changed");
    let (mut space, id) = asked();
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    assert_eq!(packet_status(&space, &id), PacketStatus::Open, "the same was seen again");
    space.world.set(&plan_target(), "plan", "huge");
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    assert_eq!(packet_status(&space, &id), PacketStatus::Withdrawn);
    refused(&space.answer(&id, DecisionType::ScopedAuthorization).unwrap(), Code::StalePacket);
    let obligation = space.view().state.obligation(&"o-1".into()).expect("the obligation");
    assert!(obligation.status.is_open() && (!obligation.reentry_refs.is_empty() || obligation.trigger_gap.is_some()));
    space.run().unwrap();
    assert_ne!(newest(&space), id, "what still has to be judged is asked on what is seen now");
}

#[test]
fn a_refresh_condition_that_comes_true_takes_the_packet_back() {
    shows!("CP-C13-07"; by "bench.refresh_condition_holds");
    let (mut space, id) = asked();
    let at = space.moment().now.plus_ms(60_000);
    let until_then = Briefcase {
        decision_id: "decision-timed".into(),
        refresh_conditions: vec![TypedPredicate::TimeReached(TimeReached { at })],
        ..body(&space, &id)
    };
    let payload = space.write(ProducerRole::Coordinator, &["o-1"], until_then).unwrap();
    recorded(&space.submit_payload(payload).unwrap());
    assert_eq!(packet_status(&space, &id), PacketStatus::Refreshed, "the newer one asks the same in its place");
    space.pass(59_000).unwrap();
    assert_eq!(packet_status(&space, &"decision-timed".into()), PacketStatus::Open);
    space.pass(1_000).unwrap();
    assert_eq!(packet_status(&space, &"decision-timed".into()), PacketStatus::Withdrawn);
}

#[test]
fn the_same_question_is_asked_once_however_many_events_come() {
    shows!("CP-7.3-24"; by "bench.asked_already", "bench.deadline_runs_on");
    let (mut space, id) = asked();
    let deadline = body(&space, &id).deadline;
    for _ in 0..5 {
        space.pass(60_000).unwrap();
        recorded(&space.event("service-a", "price").unwrap());
        space.run().unwrap();
        assert_eq!(newest(&space), id, "nothing new was found");
    }
    // New evidence that shows the same: asked anew on it, by the time that was set first.
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let anew = newest(&space);
    assert_ne!(anew, id);
    assert_eq!(packet_status(&space, &id), PacketStatus::Refreshed);
    assert_eq!(body(&space, &anew).deadline, deadline);
}

#[test]
fn a_packet_without_evidence_states_its_gap() {
    shows!("CP-7.3-06"; by "bench.early_without_its_gap");
    let (mut space, id) = asked();
    let early = Briefcase { decision_id: "decision-early".into(), evidence_refs: Vec::new(), ..body(&space, &id) };
    let silent = Briefcase { remaining_uncertainty: Vec::new(), ..early.clone() };
    let payload = space.write(ProducerRole::Coordinator, &["o-1"], silent).unwrap();
    refused(&space.submit_payload(payload).unwrap(), Code::SchemaInvalid);
    let told = Briefcase { remaining_uncertainty: vec!["whether export is kept".into()], ..early };
    let payload = space.write(ProducerRole::Coordinator, &["o-1"], told.clone()).unwrap();
    let without = changed(&payload, |_| {});
    recorded(&space.submit_payload(without).unwrap());
    // Without its consequence it is no packet at all.
    let mut bare: serde_json::Value = serde_json::from_slice(payload.bytes()).unwrap();
    bare["body"]["while_waiting"]["consequence"] = json!("");
    let bytes = closer_contracts::canonical::to_bytes(&bare).unwrap();
    assert!(closer_contracts::Payload::read(&bytes).is_err());
}

#[test]
fn what_research_can_settle_is_no_question_for_the_user() {
    shows!("CP-7.3-07", "CP-7.3-08", "CP-7.3-09"; by "episode.judgment_is_the_users");
    for (need, asks) in [
        (Need::Evidence, None),
        (Need::Prerequisite, None),
        (Need::Preference, Some(DecisionClass::Preference)),
        (Need::Authority, Some(DecisionClass::NewAuthority)),
        (Need::Tradeoff, Some(DecisionClass::MaterialTradeoff)),
    ] {
        let mut space = space(worker::leaves_open(need));
        let episode_id = begun(&mut space);
        assert!(matches!(space.next(&episode_id).unwrap(), Next::Work { .. }), "research is work");
        space.finish(&episode_id).unwrap();
        let classes: Vec<_> = space.view().packets.values().map(|packet| packet.packet.body.decision_class).collect();
        assert_eq!(classes, asks.into_iter().collect::<Vec<_>>(), "{need:?}");
        assert!(space.view().state.obligation(&"o-1".into()).expect("the obligation").status.is_open());
    }
}

#[test]
fn an_unanswered_packet_leaves_its_obligation_a_trigger() {
    shows!("CP-7.3-16"; by "timers.deadline_passed");
    let (mut space, id) = asked();
    space.pass(PACKET_MS).unwrap();
    assert_eq!(packet_status(&space, &id), PacketStatus::Overdue);
    let obligation = space.view().state.obligation(&"o-1".into()).expect("the obligation");
    assert!(obligation.status.is_open() && (!obligation.reentry_refs.is_empty() || obligation.trigger_gap.is_some()));
}

#[test]
fn the_four_views_show_an_item_where_the_record_puts_it() {
    shows!("CP-7.3-01", "CP-7.3-03"; by "briefcase.lead_assessed", "briefcase.assessment_formed");
    let possible = || -> closer_scenarios::space::Answer {
        Box::new(|work, _| {
            let proposition = closer_scenarios::founding::proposition("o-1", "basic");
            let claim = closer_contracts::work::ProposedClaim { proposition, applicability: vec!["perhaps".into()] };
            closer_contracts::work::WorkResult { claims: vec![claim], ..worker::nothing(work) }
        })
    };
    let mut space = space(possible());
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let seen = briefcase(space.view());
    assert_eq!((seen.leads.len(), seen.briefs.len(), seen.bench.len()), (1, 0, 0), "nobody has assessed it");
    let mut space = Space::found(
        &Deployment::default(),
        Box::new(|work, view| worker::claims(work, view, "basic", closer_contracts::work::Relation::Contradicts)),
    )
    .unwrap();
    space.world.set(&plan_target(), "plan", "small");
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let seen = briefcase(space.view());
    assert_eq!((seen.leads.len(), seen.briefs.len()), (0, 1), "it was assessed: {seen:?}");
}

#[test]
fn open_work_and_open_questions_show_without_passing_through_the_other_views() {
    shows!("CP-7.3-02", "CP-7.3-04", "CP-7.3-05"; by "briefcase.work_is_open", "bench.asked_already");
    let mut space = space(worker::proposes("large"));
    let episode_id = begun(&mut space);
    let seen = briefcase(space.view());
    assert_eq!(seen.investigations.len(), 1);
    assert_eq!(seen.investigations[0].episode_id, Some(episode_id.clone()));
    until(&mut space, &episode_id, |next| matches!(next, Next::AskUser { .. }));
    space.finish(&episode_id).unwrap();
    let seen = briefcase(space.view());
    assert_eq!((seen.leads.len(), seen.investigations.len(), seen.briefs.len(), seen.bench.len()), (0, 0, 0, 1));
}

#[test]
fn related_questions_share_a_card_and_keep_their_own_answers() {
    shows!("CP-7.3-22"; by "bench.nothing_left_open");
    let two = Deployment::default().with_obligation("o-2", "service-a");
    let mut space = Space::found(&two, worker::proposes("large")).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let cards = briefcase(space.view()).bench;
    assert_eq!(cards.len(), 1, "{cards:?}");
    assert_eq!(cards[0].obligation_ids, ["o-1", "o-2"].map(Into::into).into());
    let first = cards[0].decision_ids[0].clone();
    let about = body(&space, &first).obligation_ids[0].clone();
    recorded(&space.answer(&first, DecisionType::Rejection).unwrap());
    let cards = briefcase(space.view()).bench;
    assert_eq!(cards.len(), 1, "the other question stays");
    assert!(!cards[0].obligation_ids.contains(&about) && cards[0].obligation_ids.len() == 1);
}

#[test]
fn a_retry_of_what_the_user_allowed_once_is_the_same_action() {
    let (mut space, id) = asked();
    allow(&mut space, &id);
    let episode_id = space.open("o-1").unwrap();
    let payload_id = until_dispatch(&mut space, &episode_id);
    space.world.effect_mode = Mode::NotSent;
    recorded(&dispatch(&mut space, &payload_id));
    let second = again(&mut space, &episode_id, &payload_id, |_| {});
    space.world.effect_mode = Mode::Normal;
    assert_eq!(codes(&dispatch(&mut space, &second)), []);
    assert_eq!(space.world.effects().len(), 1);
}
