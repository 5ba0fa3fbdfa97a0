//! The budget ledger: whole units, worst cases, uncertain usage, and how many episodes run at once. Spec: §8.3, §8.4.

use crate::support::{begun, codes, dispatch, narrow, recorded, refused, space, until, until_dispatch};
use closer_contracts::RefusalCode as Code;
use closer_contracts::audit::RestrictiveAction;
use closer_contracts::id::{AttemptId, Key, ObligationId, PayloadId};
use closer_contracts::item::{EffectClass, Item, RepeatSafety};
use closer_contracts::refs::{Amounts, Plain};
use closer_contracts::shows;
use closer_contracts::work::WorkResult;
use closer_protocol::entry::NoticeKind;
use closer_protocol::episode::{Next, openable};
use closer_protocol::input::Input;
use closer_protocol::ledger::{deployment_budget, obligation_budget};
use closer_protocol::port::Performed;
use closer_scenarios::founding::{grant, operation};
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Mode, Space, worker};

/// The deployment whose one operation has this worst case.
fn costing(worst_case: Amounts) -> Deployment {
    let mut entry = operation("plan.change", EffectClass::ExternalReversible, RepeatSafety::RepeatSafe);
    entry.worst_case = worst_case;
    Deployment::default().with(Item::Operation(entry))
}

fn founded(deployment: &Deployment) -> Space {
    Space::found(deployment, worker::proposes("basic")).unwrap()
}

/// The worst case of the operation of the small deployment.
fn usual() -> Amounts {
    operation("plan.change", EffectClass::ExternalReversible, RepeatSafety::RepeatSafe).worst_case
}

fn attempt(space: &Space, payload_id: &PayloadId) -> AttemptId {
    space.view().actions.get(payload_id).expect("the action").body.attempt_id.clone()
}

fn is_held(space: &Space, attempt_id: &AttemptId) -> bool {
    space.view().ledger.held(&Key::new(attempt_id.as_str())).is_some()
}

/// What is used and what is reserved of a dimension in the deployment's budget.
fn figures(space: &Space, dimension: &str) -> (u64, u64) {
    let balance = space.view().ledger.balance(&deployment_budget());
    let found = balance.iter().find(|(name, ..)| *name == dimension).expect("the dimension");
    (found.1, found.2)
}

const PLENTY: u64 = 1_000_000_000;

/// A change of one dimension of an amount.
type Wants = fn(&mut Amounts, u64);

const EACH: [(&str, Wants); 5] = [
    ("calls", |amounts, amount| amounts.calls = Some(amount)),
    ("tokens", |amounts, amount| amounts.tokens = Some(amount)),
    ("cost_micros", |amounts, amount| (amounts.cost_micros, amounts.currency) = (Some(amount), Some("EUR".into()))),
    ("time_ms", |amounts, amount| amounts.time_ms = Some(amount)),
    ("concurrency", |amounts, amount| amounts.concurrency = Some(amount)),
];

#[test]
fn each_dimension_alone_stops_the_next_unit_and_nothing_of_it_is_held() {
    shows!("CP-8.3-01", "CP-8.3-14", "CP-8.3-15"; by "ledger.exceeds");
    for (dimension, wants) in EACH {
        let (mut worst_case, mut budget) = (usual(), Amounts::default());
        wants(&mut worst_case, PLENTY + 1);
        wants(&mut budget, PLENTY);
        let mut space = founded(&costing(worst_case).with_profile(|profile| profile.budget = budget));
        let episode_id = begun(&mut space);
        let payload_id = until_dispatch(&mut space, &episode_id);
        let before = space.view().ledger.balance(&deployment_budget());
        refused(&dispatch(&mut space, &payload_id), Code::BudgetExceeded);
        assert_eq!(space.view().ledger.balance(&deployment_budget()), before, "{dimension}");
        let attempt_id = attempt(&space, &payload_id);
        assert!(!is_held(&space, &attempt_id), "{dimension}");
        assert_eq!(space.world.effects().len(), 0);
    }
}

#[test]
fn the_registered_worst_case_is_reserved_and_what_was_not_used_comes_back() {
    shows!("CP-8.3-02", "CP-8.3-04"; by "readback.settled");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    let (asked, _) = figures(&space, "calls");
    recorded(&dispatch(&mut space, &payload_id));
    let attempt_id = attempt(&space, &payload_id);
    assert_eq!(space.view().ledger.held(&Key::new(attempt_id.as_str())), Some(&usual()));
    assert_eq!(figures(&space, "calls"), (asked, 2), "until the target has been read back");
    space.finish(&episode_id).unwrap();
    assert!(!is_held(&space, &attempt_id));
    assert_eq!(figures(&space, "calls"), (asked + 1, 0), "one of the two was used, the other is free again");
    assert_eq!(figures(&space, "concurrency"), (0, 0), "a slot is not used up");
}

#[test]
fn what_nobody_measured_counts_as_the_whole_reservation() {
    shows!("CP-8.3-05"; by "ledger.unmeasured");
    let mut space = founded(&costing(Amounts { cost_micros: Some(700), ..usual() }));
    let episode_id = begun(&mut space);
    space.finish(&episode_id).unwrap();
    assert_eq!(space.world.effects().len(), 1);
    assert_eq!(figures(&space, "cost_micros"), (700, 0), "the provider told no cost");
}

#[test]
fn an_uncertain_attempt_keeps_its_reservation_over_time_and_restart() {
    shows!("CP-8.3-18", "CP-8.3-09", "CP-8.3-10"; by "readback.settled");
    let mut space = space(worker::proposes("basic"));
    (space.world.effect_mode, space.world.observe_mode) = (Mode::LostUnanswered, Mode::Unavailable);
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    recorded(&dispatch(&mut space, &payload_id));
    space.finish(&episode_id).unwrap();
    let attempt_id = attempt(&space, &payload_id);
    space.pass(24 * 3_600_000).unwrap();
    assert!(is_held(&space, &attempt_id), "that we stopped waiting proves nothing about the provider");
    space.crash().unwrap();
    assert!(is_held(&space, &attempt_id));
    assert_eq!(figures(&space, "calls").1, 2);
}

#[test]
fn what_certainly_never_left_is_given_back_whole() {
    shows!("CP-8.3-17"; by "dispatch.nothing_left");
    let mut space = founded(&costing(Amounts { cost_micros: Some(700), ..usual() }));
    space.world.effect_mode = Mode::NotSent;
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    let before = figures(&space, "cost_micros");
    recorded(&dispatch(&mut space, &payload_id));
    let attempt_id = attempt(&space, &payload_id);
    assert!(!is_held(&space, &attempt_id));
    assert_eq!(figures(&space, "cost_micros"), before);
}

#[test]
fn more_than_was_reserved_is_an_incident_on_record() {
    shows!("CP-8.3-12"; by "ledger.overshoot");
    for (took_ms, incidents) in [(10_000, 0), (10_001, 1)] {
        let mut space = space(worker::proposes("basic"));
        space.sends_at_once = false;
        let episode_id = begun(&mut space);
        let payload_id = until_dispatch(&mut space, &episode_id);
        recorded(&dispatch(&mut space, &payload_id));
        let attempt_id = attempt(&space, &payload_id);
        let action = space.view().actions.get(&payload_id).expect("the action").body.clone();
        let sent_at = space.moment().now;
        space.world.perform(&action, &sent_at);
        space.pass(took_ms).unwrap();
        let performed = Performed::Responded {
            sent_at,
            responded_at: space.moment().now,
            response: Plain(serde_json::json!("done")),
        };
        recorded(&space.submit(Input::Performed { attempt_id: attempt_id.clone(), performed }).unwrap());
        space.finish(&episode_id).unwrap();
        let notices = space.view().notices.values();
        let found: Vec<_> = notices.filter(|notice| notice.kind == NoticeKind::BudgetIncident).collect();
        assert_eq!(found.len(), incidents, "{took_ms} ms of 10,000: {found:?}");
        assert!(found.iter().all(|notice| notice.subjects == [Key::new(attempt_id.as_str())]));
        assert!(!is_held(&space, &attempt_id));
    }
}

#[test]
fn reservations_never_sum_to_more_than_the_cap() {
    shows!("CP-8.3-13", "CP-8.3-08"; by "ledger.exceeds");
    let worst_case = Amounts { cost_micros: Some(100), ..usual() };
    let cap = Amounts { cost_micros: Some(350), currency: Some("EUR".into()), ..Amounts::default() };
    let mut everywhere = grant("grant-1", "plan.change", &["basic"]);
    for targets in &mut everywhere.targets {
        targets.address = "*".into();
    }
    let deployment = costing(worst_case).with(Item::Grant(everywhere)).with_profile(|profile| profile.budget = cap);
    let deployment =
        (2..=8).fold(deployment, |deployment, number| deployment.with_obligation(&format!("o-{number}"), "service-a"));
    let each_its_own: Answer = Box::new(|work, _| {
        let proposition = work.question.subject_refs.first().expect("a subject").as_str();
        let mut proposal = worker::proposal(proposition, "basic");
        proposal.target.address = proposition.into();
        WorkResult { action_proposals: vec![proposal], ..worker::nothing(work) }
    });
    let mut space = Space::found(&deployment, each_its_own).unwrap();
    space.sends_at_once = false;
    recorded(&space.event("service-a", "price").unwrap());
    let mut admitted = 0;
    for number in 1..=8 {
        let episode_id = space.open(&format!("o-{number}")).unwrap();
        let payload_id = until_dispatch(&mut space, &episode_id);
        let reply = dispatch(&mut space, &payload_id);
        match reply.refusal().map(|denial| denial.code) {
            None => admitted += 1,
            Some(code) => assert_eq!((code, admitted), (Code::BudgetExceeded, 3), "{number}"),
        }
        assert!(figures(&space, "cost_micros").1 <= 350);
    }
    assert_eq!(admitted, 3);
}

#[test]
fn a_cost_in_another_currency_fits_no_budget() {
    shows!("CP-8.3-11"; by "ledger.currency_differs");
    for (currency, expected) in [("EUR", None), ("USD", Some(Code::UncappedRoute))] {
        let cap = Amounts { cost_micros: Some(PLENTY), currency: Some(currency.into()), ..Amounts::default() };
        let worst_case = Amounts { cost_micros: Some(1), ..usual() };
        let mut space = founded(&costing(worst_case).with_profile(|profile| profile.budget = cap));
        let episode_id = begun(&mut space);
        let payload_id = until_dispatch(&mut space, &episode_id);
        let reply = dispatch(&mut space, &payload_id);
        assert_eq!(reply.refusal().map(|denial| denial.code), expected, "{currency}");
    }
}

#[test]
fn what_is_kept_for_reconciliation_is_there_when_ordinary_work_has_used_the_rest() {
    shows!("CP-7.2-32"; by "ledger.reconciles");
    let one_call = || Amounts { calls: Some(1), ..Amounts::default() };
    let mut space = founded(&Deployment::default().with_profile(|profile| {
        profile.budget = one_call();
        profile.reserved_budget = one_call();
    }));
    let episode_id = begun(&mut space);
    let (_, reply) = space.advance(&episode_id).unwrap();
    refused(&reply, Code::BudgetExceeded);
    recorded(&space.restrict("issuer-1", RestrictiveAction::SuspendEligibility(narrow())).unwrap());
    let (_, newest) = space.view().commits.get_max().expect("the restriction").clone();
    let receipt = newest.receipt.expect("its receipt");
    let duty = receipt.urgent_details.as_ref().expect("urgent details").reconciliation_obligation_id.clone();
    let lane = closer_protocol::ledger::lane_of(space.view(), &duty);
    let path = closer_protocol::ledger::Ledger::path(&duty);
    let room = |lane| space.view().ledger.room(&path, &Amounts { currency: None, ..one_call() }, lane);
    assert_eq!(room(lane), closer_monitor::Reservation::Fits);
    assert_ne!(
        room(closer_protocol::ledger::lane_of(space.view(), &"o-1".into())),
        closer_monitor::Reservation::Fits,
        "ordinary work cannot draw on it"
    );
}

#[test]
fn an_obligation_that_has_used_its_budget_up_leaves_the_others_theirs() {
    shows!("CP-8.4-03"; by "ledger.exceeds");
    let mut space = founded(
        &Deployment::default()
            .with_obligation("o-2", "service-b")
            .with_profile(|profile| profile.obligation_budget = Amounts { calls: Some(3), ..Amounts::default() }),
    );
    let first = begun(&mut space);
    space.finish(&first).unwrap();
    assert_eq!(space.view().ledger.balance(&obligation_budget(&"o-1".into()))[0].1, 2, "asked once, acted once");
    recorded(&space.event("service-b", "price").unwrap());
    let second = space.open("o-2").unwrap();
    let payload_id = until_dispatch(&mut space, &second);
    recorded(&dispatch(&mut space, &payload_id));
}

#[test]
fn as_many_run_at_once_as_the_profile_says_and_the_rest_waits() {
    shows!("CP-8.4-01"; by "episode.fan_out_reached");
    let mut deployment = Deployment::default().with_profile(|profile| profile.limits.fan_out_max = 2);
    for number in 2..=5 {
        deployment = deployment.with_obligation(&format!("o-{number}"), "service-a");
    }
    let mut space = founded(&deployment);
    recorded(&space.event("service-a", "price").unwrap());
    assert_eq!(space.view().eligible.len(), 5);
    assert_eq!(openable(space.view()).len(), 2);
    space.open("o-1").unwrap();
    space.open("o-2").unwrap();
    assert_eq!(openable(space.view()), Vec::<ObligationId>::new());
    let third = Input::Open { obligation_id: "o-3".into(), episode_id: "episode-third".into() };
    refused(&space.submit(third).unwrap(), Code::Busy);
    assert_eq!(space.view().eligible.len(), 3, "what waits is not lost");
    let running: Vec<_> = space.view().under_way.values().cloned().collect();
    for episode_id in running {
        space.finish(&episode_id).unwrap();
    }
    space.run().unwrap();
    assert_eq!(space.view().episodes.len(), 5);
}

#[test]
fn two_reasons_for_the_same_work_make_one_episode_that_names_both() {
    shows!("CP-8.4-02"; by "episode.under_way");
    let mut space = space(worker::proposes("basic"));
    recorded(&space.event("service-a", "price").unwrap());
    recorded(&space.event("service-a", "price").unwrap());
    assert_eq!(openable(space.view()), [ObligationId::from("o-1")]);
    let episode_id = space.open("o-1").unwrap();
    let causes = &space.view().episodes.get(&episode_id).expect("the episode").causes;
    let events: std::collections::BTreeSet<_> = causes.iter().filter_map(|cause| cause.event_id.clone()).collect();
    assert_eq!(events.len(), 2, "{causes:?}");
    until(&mut space, &episode_id, |next| matches!(next, Next::Ask { .. }));
    let again = Input::Open { obligation_id: "o-1".into(), episode_id: "episode-again".into() };
    let reply = space.submit(again).unwrap();
    assert!(!codes(&reply).is_empty(), "{reply:?}");
    recorded(&space.event("service-a", "price").unwrap());
    let again = Input::Open { obligation_id: "o-1".into(), episode_id: "episode-again".into() };
    refused(&space.submit(again).unwrap(), Code::Duplicate);
}

#[test]
fn a_participant_that_is_paid_for_reserves_what_it_says_it_uses_at_the_most() {
    shows!("CP-8.3-02"; by "work.budget_exceeded");
    let paid = |tokens: u64| {
        let worker = Deployment::default().founding.items.into_iter().find(|item| item.id().as_str() == "worker");
        let Some(Item::Identity(mut worker)) = worker else { unreachable!("the worker") };
        let worst_case = Amounts { tokens: Some(tokens), cost_micros: Some(5), ..Amounts::default() };
        worker.worst_case = Some(Amounts { currency: Some("EUR".into()), ..worst_case });
        let capped = Amounts { tokens: Some(1_000), ..Amounts::default() };
        founded(&Deployment::default().with(Item::Identity(worker)).with_profile(|profile| profile.budget = capped))
    };
    let mut space = paid(1_000);
    let episode_id = begun(&mut space);
    space.advance(&episode_id).unwrap();
    let work_id = space.view().works.keys().next().expect("the work").clone();
    let held = space.view().ledger.held(&Key::new(work_id.as_str())).expect("a reservation").clone();
    assert_eq!((held.tokens, held.cost_micros), (Some(1_000), Some(5)));
    let mut space = paid(1_001);
    let episode_id = begun(&mut space);
    let (_, reply) = space.advance(&episode_id).unwrap();
    refused(&reply, Code::BudgetExceeded);
    assert_eq!(space.view().works.len(), 0);
}

#[test]
fn what_may_still_be_used_while_a_cancellation_takes_effect_is_reserved_too() {
    shows!("CP-8.3-03"; by "operation.cancel_takes_a_while");
    for (cancellable, reserved) in [(true, (5, 13_000)), (false, (2, 10_000))] {
        let mut entry = operation("plan.change", EffectClass::ExternalReversible, RepeatSafety::RepeatSafe);
        entry.cancellable = cancellable;
        entry.cancel_exposure = Some(Amounts { calls: Some(3), time_ms: Some(3_000), ..Amounts::default() });
        let mut space = founded(&Deployment::default().with(Item::Operation(entry)));
        space.sends_at_once = false;
        let episode_id = begun(&mut space);
        let payload_id = until_dispatch(&mut space, &episode_id);
        recorded(&dispatch(&mut space, &payload_id));
        let attempt_id = attempt(&space, &payload_id);
        let held = space.view().ledger.held(&Key::new(attempt_id.as_str())).expect("a reservation").clone();
        assert_eq!((held.calls, held.time_ms), (Some(reserved.0), Some(reserved.1)));
        space.pass(10_000).unwrap();
        let asked = space.view().notices.values().filter(|it| it.kind == NoticeKind::ResidualInterval).count();
        assert_eq!(asked, usize::from(cancellable), "asked for at the ceiling of the work, with the rest still held");
    }
}
