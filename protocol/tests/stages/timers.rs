//! What becomes due as time passes is due once, and until the next moment there is nothing to look at.

use crate::fixture::{World, added, at, at_minute, doubtful, minute, notice, obligation, observation, policy, reentry};
use closer_contracts::audit::{CommitReceipt, DecisionType};
use closer_contracts::briefcase::Briefcase;
use closer_contracts::delta::Change;
use closer_contracts::example::{Example, Extent};
use closer_contracts::id::ObligationId;
use closer_contracts::item::{Item, ItemKind, PolicyBody, Standing};
use closer_contracts::reentry::{Any, Reentry, TypedPredicate};
use closer_contracts::refs::ArtifactRef;
use closer_contracts::shows;
use closer_protocol::Entry;
use closer_protocol::View;
use closer_protocol::entry::{Activation, ActivationEntry, EpisodeEnd, EpisodeEnded, OwnershipEntry};
use closer_protocol::timers::{
    Due, due, lease_expired, next_deadline, packet_key, packet_overdue, rearmed, reconciliation_overdue, replacement,
};
use proptest::prelude::*;

fn asks(world: &mut World, payload_id: &str, deadline: i64) -> ArtifactRef {
    world.packet(
        payload_id,
        Briefcase {
            decision_id: "decision-1".into(),
            obligation_ids: vec!["o-1".into()],
            deadline: Some(minute(deadline)),
            deadline_policy_ref: "deadline".into(),
            ..Briefcase::example(Extent::Minimal)
        },
    )
}

fn overdue(due: &[Due]) -> bool {
    due.iter().any(|due| matches!(due, Due::PacketOverdue(_)))
}

#[test]
fn an_unanswered_packet_is_overdue_from_its_deadline_on() {
    shows!("CP-7.3-13"; by "timers.deadline_passed");
    let mut world = World::new();
    asks(&mut world, "pl-packet", 10);
    assert!(!overdue(&due(&world.view, &at(9))));
    assert!(overdue(&due(&world.view, &at(10))));
    assert!(overdue(&due(&world.view, &at(500))));
}

#[test]
fn many_ticks_and_restarts_past_a_deadline_give_one_escalation_to_its_owner() {
    shows!("CP-7.3-15"; by "timers.told_before");
    let mut world = World::new();
    asks(&mut world, "pl-packet", 10);
    let mut told = 0;
    for minutes in 8..40 {
        for due in due(&world.view, &at(minutes)) {
            let Due::PacketOverdue(decision_id) = due else { panic!("{due:?} is not due") };
            let notice = packet_overdue(&world.view, &decision_id).expect("a notice");
            assert_eq!(notice.owner.as_ref().map(|owner| owner.as_str()), Some("owner"));
            world.tell(notice);
            told += 1;
        }
        if minutes % 5 == 0 {
            let mut restarted = View::default();
            world.entries.iter().for_each(|entry| restarted.fold(entry, &minute(0)).expect("the log folds"));
            world.view = restarted;
        }
    }
    assert_eq!(told, 1);
}

#[test]
fn a_new_deadline_is_told_though_the_old_one_was() {
    shows!("CP-7.3-24"; by "timers.told_before");
    let mut world = World::new();
    asks(&mut world, "pl-packet-1", 10);
    world.tell(packet_overdue(&world.view, &"decision-1".into()).expect("a notice"));
    assert!(!overdue(&due(&world.view, &at(11))));
    asks(&mut world, "pl-packet-2", 12);
    assert!(!overdue(&due(&world.view, &at(11))));
    assert!(overdue(&due(&world.view, &at(12))));
    let owner = "owner".into();
    assert_ne!(
        packet_key(&"decision-1".into(), &minute(10), Some(&owner)),
        packet_key(&"decision-1".into(), &minute(12), Some(&owner)),
    );
}

#[test]
fn an_answered_packet_is_never_overdue() {
    shows!("CP-7.3-13"; by "timers.packet_waits");
    let mut world = World::new();
    let packet = asks(&mut world, "pl-packet", 10);
    assert_eq!(next_deadline(&world.view, &minute(0)), Some(minute(10)));
    world.decide("answer-1", &packet, DecisionType::Rejection, "user-1");
    assert!(!overdue(&due(&world.view, &at(11))));
    assert_eq!(next_deadline(&world.view, &minute(0)), None);
}

#[test]
fn without_a_policy_that_was_accepted_the_gap_in_policy_is_told() {
    shows!("CP-7.3-14", "CP-7.3-21"; by "timers.policy_accepted");
    let mut world = World::new();
    asks(&mut world, "pl-packet", 10);
    let accepted = packet_overdue(&world.view, &"decision-1".into()).expect("a notice");
    assert!(accepted.owner.is_some());
    let mut withdrawn = policy("deadline", PolicyBody::Deadline { escalate_to: "owner".into() });
    withdrawn.version = 2;
    withdrawn.standing = Standing::Suspended;
    world.revise(Item::Policy(withdrawn));
    assert!(overdue(&due(&world.view, &at(10))), "the deadline is told all the same");
    let surfaced = packet_overdue(&world.view, &"decision-1".into()).expect("a notice");
    assert_eq!(surfaced.owner, None);
    assert!(surfaced.text.as_str().contains("no policy"), "{}", surfaced.text);
}

#[test]
fn an_overdue_packet_permits_and_closes_nothing() {
    shows!("CP-7.3-19", "CP-7.3-20"; by "timers.deadline_passed");
    let mut world = World::new();
    world.admit(obligation("o-1", &[]), Vec::new());
    asks(&mut world, "pl-packet", 10);
    let before = world.view.state.root();
    assert!(overdue(&due(&world.view, &at(10))));
    world.tell(packet_overdue(&world.view, &"decision-1".into()).expect("a notice"));
    assert_eq!(world.view.state.root(), before);
    assert_eq!(world.view.state.items(ItemKind::Grant).count(), 0);
    assert!(world.view.state.obligation(&"o-1".into()).expect("accepted").status.is_open());
}

/// Folds an urgent commit's receipt that is to be reconciled by a minute of the day.
fn urgent(world: &mut World, until: i64) -> u64 {
    let commit = world.admit(obligation("o-urgent", &[]), Vec::new());
    let mut receipt = CommitReceipt::example(Extent::Full);
    receipt.after_state = commit.after;
    let details = receipt.urgent_details.as_mut().expect("an urgent receipt");
    details.reconciliation_due_at = minute(until);
    details.independent_owner = "owner".into();
    world.artifact(receipt);
    commit.version
}

#[test]
fn an_unreconciled_restriction_is_told_once_at_its_deadline_and_stays() {
    shows!("CP-7.2-27", "CP-7.2-30"; by "timers.deadline_passed");
    let mut world = World::new();
    let version = urgent(&mut world, 30);
    assert!(due(&world.view, &at(29)).is_empty());
    assert_eq!(next_deadline(&world.view, &minute(0)), Some(minute(30)));
    assert_eq!(due(&world.view, &at(30)), [Due::ReconciliationOverdue(version)]);
    let notice = reconciliation_overdue(&world.view, version).expect("a notice");
    assert_eq!(notice.owner.as_ref().map(|owner| owner.as_str()), Some("owner"));
    let before = world.view.state.root();
    world.tell(notice);
    assert!(due(&world.view, &at(700)).is_empty());
    assert_eq!(world.view.state.root(), before, "no timer lifts anything");
}

fn armed(world: &mut World, trigger: Reentry) {
    world.admit(obligation(trigger.obligation_id.as_str(), std::slice::from_ref(&trigger)), vec![trigger]);
}

#[test]
fn a_due_obligation_is_worked_without_an_event() {
    shows!("CP-7.1-02"; by "matching.trigger_satisfied");
    let mut world = World::new();
    armed(&mut world, reentry("reentry-1", "o-1", at_minute(20)));
    assert!(due(&world.view, &at(19)).is_empty());
    assert_eq!(next_deadline(&world.view, &minute(0)), Some(minute(20)));
    let found = due(&world.view, &at(20));
    let [Due::TriggerFired(fired)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(fired.obligation_id.as_str(), "o-1");
    world.take_up(fired.clone());
    assert!(world.view.eligible.contains_key(&ObligationId::from("o-1")));
    assert!(due(&world.view, &at(21)).is_empty(), "once");
    assert_eq!(next_deadline(&world.view, &minute(20)), None, "dormant, with nothing to poll");
}

#[test]
fn an_expired_trigger_is_replaced_in_one_commit() {
    shows!("CP-7.3-18", "CP-C11-18"; by "timers.policy_replaces");
    let mut world = World::new();
    let expiring = Reentry { expires_at: Some(minute(20)), ..reentry("reentry-1", "o-1", at_minute(600)) };
    armed(&mut world, expiring.clone());
    assert_eq!(due(&world.view, &at(20)), [Due::TriggerExpired("reentry-1".into())]);
    world.now = minute(20);
    let accepted = world.view.state.policy(&"replace".into()).cloned();
    let (next, gap) = replacement(&expiring, accepted.as_ref(), &"owner".into(), &minute(20));
    let next = next.expect("a replacement");
    assert!(gap.is_none(), "one of the two");
    assert_ne!(next.reentry_id, expiring.reentry_id);
    assert_eq!(next.expires_at, Some(minute(80)));
    assert_eq!(next.predicate, expiring.predicate);
    world.commit(vec![Change::SetTriggers {
        obligation_id: "o-1".into(),
        reentries: vec![next.clone()],
        trigger_gap: None,
    }]);
    let installed = world.view.state.obligation(&"o-1".into()).expect("accepted");
    assert_eq!(installed.reentry_refs, [next.reentry_id]);
    assert!(due(&world.view, &at(21)).is_empty());
}

#[test]
fn an_expired_trigger_without_a_replacement_leaves_an_owned_and_bounded_gap() {
    shows!("CP-7.3-18", "CP-C11-18"; by "timers.policy_replaces");
    let mut world = World::new();
    let expiring = Reentry {
        expires_at: Some(minute(20)),
        expiry_policy_ref: "gap".into(),
        ..reentry("reentry-1", "o-1", at_minute(600))
    };
    armed(&mut world, expiring.clone());
    world.now = minute(20);
    let accepted = world.view.state.policy(&"gap".into()).cloned();
    let (next, gap) = replacement(&expiring, accepted.as_ref(), &"owner".into(), &minute(20));
    let gap = gap.expect("a gap");
    assert!(next.is_none(), "one of the two");
    assert_eq!(gap.responsible_owner.as_str(), "owner");
    assert_eq!(gap.review_predicate, at_minute(30), "ten minutes later");
    world.commit(vec![Change::SetTriggers {
        obligation_id: "o-1".into(),
        reentries: Vec::new(),
        trigger_gap: Some(gap),
    }]);
    assert!(world.view.state.obligation(&"o-1".into()).expect("accepted").status.is_open(), "expiry never closes");
    assert_eq!(next_deadline(&world.view, &minute(20)), Some(minute(30)));
    assert!(matches!(due(&world.view, &at(30)).as_slice(), [Due::GapReviewDue(_)]));
    let zero = policy("replace", PolicyBody::Expiry { replace_for_ms: Some(0), review_within_ms: 60_000 });
    let (next, gap) = replacement(
        &Reentry { expiry_policy_ref: "replace".into(), ..expiring },
        Some(&zero),
        &"owner".into(),
        &minute(20),
    );
    assert_eq!(
        (next, gap.map(|gap| gap.review_predicate)),
        (None, Some(at_minute(21))),
        "a replacement that lives no time is none"
    );
}

#[test]
fn a_policy_that_was_not_accepted_replaces_nothing() {
    let expiring = reentry("reentry-1", "o-1", at_minute(600));
    for (policy_id, standing) in [("replace", Standing::Suspended), ("another", Standing::Current)] {
        let body = PolicyBody::Expiry { replace_for_ms: Some(60_000), review_within_ms: 60_000 };
        let mut offered = policy(policy_id, body);
        offered.standing = standing;
        let (next, gap) = replacement(&expiring, Some(&offered), &"owner".into(), &minute(20));
        assert!(next.is_none());
        assert_eq!(gap.expect("a gap").review_predicate, at_minute(20), "reviewed at once");
    }
}

#[test]
fn nothing_is_due_by_a_clock_in_doubt() {
    shows!("CP-7.3-19"; by "timers.clock_reliable");
    let mut world = World::new();
    armed(&mut world, reentry("reentry-1", "o-1", at_minute(5)));
    asks(&mut world, "pl-packet", 10);
    assert!(due(&world.view, &doubtful(60)).is_empty());
    assert_eq!(due(&world.view, &at(60)).len(), 2);
}

#[test]
fn a_lease_that_has_ended_is_told_once_per_epoch() {
    let mut world = World::new();
    world.admit(obligation("o-1", &[]), Vec::new());
    let lease = |epoch, until| {
        Entry::Ownership(OwnershipEntry {
            obligation_id: "o-1".into(),
            epoch,
            owner: "owner".into(),
            lease_expiry: Some(minute(until)),
            reason: "accepted".into(),
        })
    };
    world.fold(lease(1, 10));
    assert_eq!(due(&world.view, &at(10)), [Due::LeaseExpired("o-1".into())]);
    world.tell(lease_expired(&world.view, &"o-1".into()).expect("a notice"));
    assert!(due(&world.view, &at(11)).is_empty());
    world.fold(lease(2, 12));
    assert_eq!(due(&world.view, &at(12)), [Due::LeaseExpired("o-1".into())]);
}

#[test]
fn an_episode_reaches_its_bound_until_it_has_ended() {
    let mut world = World::new();
    world.admit(obligation("o-1", &[]), Vec::new());
    world.fold(Entry::Activation(ActivationEntry::Began(Activation {
        episode_id: "episode-1".into(),
        obligation_id: "o-1".into(),
        causes: Vec::new(),
        stops_at: minute(10),
        priority: None,
    })));
    assert_eq!(next_deadline(&world.view, &minute(0)), Some(minute(10)));
    assert_eq!(due(&world.view, &at(10)), [Due::EpisodeBoundReached("episode-1".into())]);
    world.fold(Entry::Activation(ActivationEntry::Ended(EpisodeEnded {
        episode_id: "episode-1".into(),
        obligation_id: "o-1".into(),
        end: EpisodeEnd::BoundReached,
        reason: "the time is over".into(),
    })));
    assert!(due(&world.view, &at(11)).is_empty());
}

#[test]
fn a_trigger_is_armed_again_with_its_cursor_moved_forward() {
    let mut world = World::new();
    let leaf = TypedPredicate::EvidenceAdded(added(0));
    let trigger = reentry("reentry-1", "o-1", TypedPredicate::Any(Any { items: vec![leaf, at_minute(3)] }));
    world.observe(observation("ev-1", "probe", "probes", 1));
    world.observe(observation("ev-2", "probe", "probes", 2));
    let accepted = world.view.state.policy(&"rearm".into());
    let again = rearmed(&trigger, accepted, &world.view, &at(5)).expect("armed again");
    let expected = vec![TypedPredicate::EvidenceAdded(added(2)), at_minute(65)];
    assert_eq!(again.predicate, TypedPredicate::Any(Any { items: expected }));
    assert_ne!(again.reentry_id, trigger.reentry_id);
    let consumed = Reentry { refresh_policy_ref: "consume".into(), ..trigger };
    assert_eq!(rearmed(&consumed, world.view.state.policy(&"consume".into()), &world.view, &at(5)), None);
}

#[test]
fn a_trigger_that_would_fire_again_on_nothing_new_is_consumed() {
    shows!("CP-C11-20"; by "timers.rearmed_fires_at_once");
    let world = World::new();
    let accepted = policy("rearm", PolicyBody::Refresh { rearm: true, after_ms: None });
    let trigger = reentry("reentry-1", "o-1", at_minute(3));
    assert_eq!(rearmed(&trigger, Some(&accepted), &world.view, &at(5)), None);
    let later = policy("rearm", PolicyBody::Refresh { rearm: true, after_ms: Some(60_000) });
    let again = rearmed(&trigger, Some(&later), &world.view, &at(5)).expect("armed again");
    assert_eq!(again.predicate, at_minute(6));
}

#[test]
fn a_deadline_that_was_told_is_slept_through() {
    shows!("CP-7.1-07"; by "timers.still_to_come");
    let mut world = World::new();
    asks(&mut world, "pl-packet", 10);
    let expiring = Reentry { expires_at: Some(minute(40)), ..reentry("reentry-1", "o-1", at_minute(30)) };
    armed(&mut world, expiring);
    assert_eq!(next_deadline(&world.view, &minute(0)), Some(minute(10)));
    let key = packet_overdue(&world.view, &"decision-1".into()).expect("a notice").key;
    world.tell(notice(key.as_str()));
    assert_eq!(next_deadline(&world.view, &minute(0)), Some(minute(30)));
    assert_eq!(next_deadline(&world.view, &minute(30)), Some(minute(40)));
    assert_eq!(next_deadline(&world.view, &minute(40)), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whoever sleeps from deadline to deadline misses no trigger, meets each at its instant, and fires none twice.
    #[test]
    fn sleeping_until_the_next_deadline_misses_nothing(times in prop::collection::vec(1i64..500, 1..12)) {
        let mut world = World::new();
        for (n, minutes) in times.iter().enumerate() {
            armed(&mut world, reentry(&format!("reentry-{n:02}"), &format!("o-{n:02}"), at_minute(*minutes)));
        }
        let mut met: Vec<(String, i64)> = Vec::new();
        let mut now = minute(0);
        while let Some(next) = next_deadline(&world.view, &now) {
            prop_assert!(next > now);
            now = next;
            let minutes = (now.unix_ms() - minute(0).unix_ms()) / 60_000;
            for due in due(&world.view, &at(minutes)) {
                let Due::TriggerFired(fired) = due else { return Err(TestCaseError::fail(format!("{due:?}"))) };
                met.push((fired.obligation_id.to_string(), minutes));
                world.take_up(fired);
            }
        }
        let mut expected: Vec<(String, i64)> = times.iter().enumerate().map(|(n, m)| (format!("o-{n:02}"), *m)).collect();
        met.sort();
        expected.sort();
        prop_assert_eq!(met, expected);
    }
}
