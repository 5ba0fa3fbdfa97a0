//! Which work comes first, and when the same work comes to rest. Spec: §8.4.

use crate::support::{narrow, recorded, refused, space, status};
use closer_contracts::RefusalCode as Code;
use closer_contracts::audit::{DecisionType, RestrictiveAction};
use closer_contracts::event::MatchOutcome;
use closer_contracts::id::ObligationId;
use closer_contracts::item::{EffectClass, Item, RepeatSafety};
use closer_contracts::obligation::{AssessmentStatus, Obligation, ObligationDependency, ObligationStatus, Watch};
use closer_contracts::reentry::{Reentry, TypedPredicate};
use closer_contracts::shows;
use closer_contracts::work::Need;
use closer_protocol::entry::{ActivationEntry, Entry, NoticeKind};
use closer_protocol::episode::openable;
use closer_protocol::input::Input;
use closer_protocol::priority::PASSED_OVER_MAX;
use closer_scenarios::founding::{grant, operation, plan_target};
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Space, worker};

fn nothing() -> Answer {
    Box::new(|work, _| worker::nothing(work))
}

/// A space that lets three episodes in a row find nothing new.
fn thrice(answer: Answer) -> Space {
    let deployment = Deployment::default().with_profile(|profile| profile.limits.fingerprints_max = 3);
    Space::found(&deployment, answer).unwrap()
}

/// A change of price comes that brings no evidence, and whatever follows from it.
fn again(space: &mut Space) {
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
}

#[test]
fn work_that_finds_nothing_new_comes_to_rest_and_asks_nobody_any_more() {
    shows!("CP-8.4-08", "CP-A-15"; by "episode.dormant");
    let mut space = thrice(nothing());
    for _ in 0..6 {
        again(&mut space);
    }
    assert_eq!(space.view().works.len(), 3, "no participant is asked a fourth time");
    assert_eq!(openable(space.view()), Vec::<ObligationId>::new());
    let open = Input::Open { obligation_id: "o-1".into(), episode_id: "episode-more".into() };
    refused(&space.submit(open).unwrap(), Code::Duplicate);
    let obligation = space.view().state.obligation(&"o-1".into()).expect("the obligation").clone();
    assert!(obligation.status.is_open());
    assert!(obligation.trigger_gap.expect("a gap").reason.as_str().contains("3 episodes found nothing new"));
    let told = space.view().notices.values().filter(|notice| notice.kind == NoticeKind::Escalation).count();
    assert_eq!(told, 1, "its owner is told once");
}

#[test]
fn what_rests_is_worked_on_again_once_there_is_something_new() {
    shows!("CP-8.4-08"; by "view.shows_something_new");
    let rested = || {
        let mut space = thrice(nothing());
        space.world.set(&plan_target(), "plan", "small");
        recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
        (0..4).for_each(|_| again(&mut space));
        recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
        again(&mut space);
        assert_eq!(space.view().works.len(), 3, "the same observation once more is nothing new");
        space
    };
    let mut space = rested();
    space.world.set(&plan_target(), "plan", "medium");
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    again(&mut space);
    assert_eq!(space.view().works.len(), 4, "another observation is");
    let mut space = rested();
    let review = space.view().state.limits().review_interval_ms_max;
    space.pass(review).unwrap();
    space.run().unwrap();
    assert_eq!(space.view().works.len(), 4, "and so is the review of the gap");
}

#[test]
fn content_that_was_seen_before_still_makes_work_eligible() {
    shows!("CP-8.4-05"; by "matching.candidate_satisfied");
    let mut space = space(nothing());
    for number in 1..=5 {
        again(&mut space);
        let outcomes = space.view().matches.values().map(|(_, receipt)| receipt.outcome);
        assert!(outcomes.into_iter().all(|outcome| outcome == MatchOutcome::Matched));
        assert_eq!(space.view().works.len(), number, "the same change of the same thing, told again");
    }
}

#[test]
fn rest_and_fan_out_hold_up_no_restriction() {
    shows!("CP-8.4-10"; by "episode.dormant");
    let mut space = thrice(nothing());
    (0..4).for_each(|_| again(&mut space));
    assert_eq!((space.view().works.len(), openable(space.view()).len()), (3, 0), "o-1 rests");
    let before = space.view().restrictions_decided;
    recorded(&space.restrict("issuer-1", RestrictiveAction::SuspendEligibility(narrow())).unwrap());
    assert!(space.view().restrictions_decided > before, "in the same step");
}

/// An obligation of the small deployment, woken by `service-a` like the first, with something changed.
fn other(id: &str, change: impl FnOnce(&mut Obligation, &mut Vec<Reentry>)) -> (Obligation, Vec<Reentry>) {
    let (mut obligation, mut reentries) = closer_scenarios::founding::obligation(id, "service-a");
    change(&mut obligation, &mut reentries);
    (obligation, reentries)
}

/// The order in which `o-1` and another obligation are worked on, one at a time.
fn order(deployment: Deployment, added: (Obligation, Vec<Reentry>), answer: Answer) -> Vec<String> {
    let mut deployment = deployment.with_profile(|profile| profile.limits.fan_out_max = 64);
    deployment.founding.obligations.push(added);
    let mut space = Space::found(&deployment, answer).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    openable(space.view()).iter().map(ToString::to_string).collect()
}

fn irreversible() -> Deployment {
    let erase = operation("plan.erase", EffectClass::ExternalIrreversible, RepeatSafety::NotRepeatSafe);
    Deployment::default().with(Item::Operation(erase)).with(Item::Grant(grant("grant-9", "plan.erase", &["basic"])))
}

#[test]
fn each_of_five_inputs_alone_puts_an_obligation_first() {
    shows!("CP-8.4-06"; by "priority.ordered");
    let same = || other("o-2", |_, _| {});
    assert_eq!(order(Deployment::default(), same(), nothing()), ["o-1", "o-2"], "who waits longer");
    let sooner = other("o-2", |_, reentries| {
        for reentry in reentries {
            if let TypedPredicate::TimeReached(leaf) = &mut reentry.predicate {
                leaf.at = closer_contracts::Timestamp::parse("2026-06-01T00:00:00Z").unwrap();
            }
        }
    });
    assert_eq!(order(Deployment::default(), sooner, nothing()), ["o-2", "o-1"], "the deadline");
    let grave = other("o-2", |obligation, _| obligation.authority_boundary = vec!["grant-9".into()]);
    assert_eq!(order(irreversible(), grave, nothing()), ["o-2", "o-1"], "the consequence");
    let open = other("o-2", |obligation, _| {
        let mut second = obligation.resolution_conditions[0].clone();
        (second.id, second.assessment_status) = ("condition-more".into(), AssessmentStatus::Unassessed);
        obligation.resolution_conditions.push(second);
    });
    assert_eq!(order(Deployment::default(), open, nothing()), ["o-2", "o-1"], "the information to be gained");
}

#[test]
fn what_others_depend_on_comes_first_and_what_takes_the_user_last() {
    shows!("CP-8.4-06", "CP-8.4-07"; by "priority.ordered");
    let mut deployment = Deployment::default().with_obligation("o-2", "service-a");
    let (mut depending, reentries) = closer_scenarios::founding::obligation("o-3", "service-b");
    depending.dependencies.push(ObligationDependency {
        dependency_id: "dependency-on-2".into(),
        watch: Watch::Item { id: "o-2".into() },
    });
    deployment.founding.obligations.push((depending, reentries));
    let mut space = Space::found(&deployment, nothing()).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    assert_eq!(openable(space.view())[0].as_str(), "o-2", "the impact on what depends on it");
    space.run().unwrap();
    let impact = |(_, entry): &(String, Entry)| {
        let Entry::Activation(ActivationEntry::Began(began)) = entry else { return None };
        began.priority.as_ref().map(|priority| priority.impact)
    };
    let entries = space.entries().unwrap();
    assert_eq!(entries.iter().filter_map(impact).collect::<Vec<_>>(), [1, 0], "recorded with the choice");
    let names_it = |record: &&closer_contracts::record::Record| {
        record.body.as_deref().is_some_and(|body| String::from_utf8_lossy(body).contains("\"passed_over\""))
    };
    let kinds: std::collections::BTreeSet<_> = space.records().iter().filter(names_it).map(|it| it.kind).collect();
    assert_eq!(kinds.len(), 1, "and nowhere beside an effect or what it cost: {kinds:?}");

    let asks_about_one: Answer = Box::new(|work, view| match work.question.subject_refs[0].as_str() {
        "p-o-1" => worker::leaves_open(Need::Tradeoff)(work, view),
        _ => worker::nothing(work),
    });
    let mut space = Space::found(&Deployment::default().with_obligation("o-2", "service-a"), asks_about_one).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    assert_eq!(status(&space, "o-1"), ObligationStatus::AwaitingUserJudgment);
    recorded(&space.event("service-a", "price").unwrap());
    let next = openable(space.view());
    assert_eq!(
        next.first().map(ObligationId::as_str),
        Some("o-2"),
        "a question about o-1 waits for the user: {next:?}"
    );
    let asked = space.view().waiting.iter().next().expect("a packet").clone();
    recorded(&space.answer(&asked, DecisionType::Preference).unwrap());
    assert_eq!(openable(space.view())[0].as_str(), "o-1");
}

#[test]
fn whoever_is_passed_over_often_enough_comes_first() {
    shows!("CP-8.3-16"; by "priority.passed_over");
    let mut deployment = irreversible().with_profile(|profile| profile.limits.fan_out_max = 1);
    deployment.founding.obligations.push(other("o-2", |it, _| it.authority_boundary = vec!["grant-9".into()]));
    let deployment = deployment.with_profile(|profile| profile.limits.fingerprints_max = 1_000);
    let mut space = Space::found(&deployment, nothing()).unwrap();
    let mut first = 0;
    for turn in 1.. {
        recorded(&space.event("service-a", "price").unwrap());
        let next = openable(space.view())[0].clone();
        let episode_id = space.open(next.as_str()).unwrap();
        space.finish(&episode_id).unwrap();
        if next.as_str() == "o-1" {
            first = turn;
            break;
        }
    }
    assert_eq!(first, PASSED_OVER_MAX + 1, "the graver one goes first so often, and then it is the other's turn");
}
