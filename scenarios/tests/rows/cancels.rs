//! Calling back what is under way: asked for once, where the provider supports it, and proof of nothing.

use crate::support::{begun, commit, delta, dispatch, endorse, narrow, propose, recorded, until_dispatch};
use crate::urgent::suspend;
use closer_contracts::adjudication::Disposition;
use closer_contracts::delta::Change;
use closer_contracts::id::{AttemptId, Key};
use closer_contracts::item::{Item, Restriction, Standing};
use closer_contracts::shows;
use closer_protocol::entry::{AttemptStatus, NoticeKind};
use closer_scenarios::{Deployment, Space, worker};

/// An attempt whose effect is under way; its provider can call it back, or not.
fn under_way(cancellable: bool) -> (Space, AttemptId) {
    let mut deployment = Deployment::default();
    for item in &mut deployment.founding.items {
        if let Item::Operation(entry) = item {
            entry.cancellable = cancellable;
        }
    }
    let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    space.sends_at_once = false;
    recorded(&dispatch(&mut space, &payload_id));
    let attempt_id = space.view().attempts.keys().next().expect("the attempt").clone();
    (space, attempt_id)
}

/// How often it is on record that a cancellation was asked for.
fn told(space: &Space) -> usize {
    space.view().notices.values().filter(|notice| notice.kind == NoticeKind::ResidualInterval).count()
}

/// The request settles nothing: the outcome is open and the reservation held.
fn stays_open(space: &Space, attempt_id: &AttemptId) {
    let attempt = space.view().attempts.get(attempt_id).expect("the attempt");
    assert_eq!(attempt.status, AttemptStatus::Intended);
    assert!(space.view().ledger.held(&Key::new(attempt_id.as_str())).is_some(), "the reservation is held");
}

#[test]
fn at_its_ceiling_an_effect_is_asked_to_be_called_back_once() {
    shows!("CP-8.3-07", "CP-8.3-09"; by "cancel.provider_supports_it");
    let (mut space, attempt_id) = under_way(true);
    let ceiling = closer_protocol::timers::next_deadline(space.view(), &space.moment().now).expect("a deadline");
    assert_eq!(ceiling.unix_ms() - space.moment().now.unix_ms(), 10_000, "the time that was reserved");
    space.pass(9_999).unwrap();
    assert_eq!(told(&space), 0);
    for _ in 0..3 {
        space.pass(1).unwrap();
    }
    assert_eq!(told(&space), 1, "once, however often time is looked at");
    stays_open(&space, &attempt_id);
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    space.send().unwrap();
    assert_eq!((told(&space), space.world.cancelled.as_slice()), (1, &[attempt_id][..]));
}

#[test]
fn a_restriction_asks_for_what_it_covers_to_be_called_back() {
    shows!("CP-8.3-07"; by "cancel.provider_supports_it");
    let (mut space, attempt_id) = under_way(true);
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    assert_eq!(told(&space), 1);
    stays_open(&space, &attempt_id);
    space.pass(20_000).unwrap();
    space.send().unwrap();
    assert_eq!((told(&space), space.world.cancelled.as_slice()), (1, &[attempt_id][..]));
}

#[test]
fn where_the_provider_cannot_call_back_nothing_is_asked() {
    shows!("CP-8.3-07"; by "cancel.provider_supports_it");
    let (mut space, attempt_id) = under_way(false);
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    space.pass(20_000).unwrap();
    assert_eq!(told(&space), 0);
    stays_open(&space, &attempt_id);
    space.send().unwrap();
    assert!(space.world.cancelled.is_empty());
}

#[test]
fn a_restriction_of_the_users_own_asks_for_what_it_covers_to_be_called_back() {
    shows!("CP-8.3-07"; by "cancel.provider_supports_it");
    let (mut space, attempt_id) = under_way(true);
    let restriction = Restriction {
        restriction_id: "restriction-of-the-user".into(),
        affected_scope: narrow(),
        reason: "Not now.".into(),
        issued_by: "user".into(),
        standing: Standing::Current,
    };
    let changes = vec![Change::SuspendEligibility { restriction }];
    let authority = space.instruct(&changes).unwrap();
    let restricts = delta(&mut space, changes, Vec::new(), vec![authority]);
    recorded(&propose(&mut space, restricts.clone()));
    recorded(&endorse(&mut space, &restricts, Disposition::Endorsed));
    recorded(&commit(&mut space, &restricts));
    assert_eq!(told(&space), 1);
    stays_open(&space, &attempt_id);
    space.send().unwrap();
    assert_eq!(space.world.cancelled.as_slice(), &[attempt_id][..]);
}
