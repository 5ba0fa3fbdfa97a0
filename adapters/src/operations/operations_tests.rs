//! Permits: what they cover is done, anything else is not.

use super::*;
use crate::clock::ManualClock;
use crate::fixture::{order, refusal, response, target};
use crate::process::MemoryLedger;
use crate::world::{World, WorldConfig};
use closer_contracts::adjudication::{Adjudication, Disposition, Phase};
use closer_contracts::audit::Grant;
use closer_contracts::digest::Digest;
use closer_contracts::example::{Example, Extent};
use closer_contracts::id::Key;
use closer_contracts::item::{Identity, Item, ParameterRule, ParameterType, ReadbackMethod, Standing};
use closer_contracts::profile::Profile;
use closer_contracts::record::{Cursor, Epoch};
use closer_contracts::refs::{ActorRef, Plain, ProducerRole, SubjectType, TargetPattern, TypedRef};
use closer_contracts::shows;
use closer_contracts::time::Timestamp;
use closer_monitor::{
    Appended, AttemptStanding, ClockStanding, DisclosureStanding, KeyStanding, Offered, Ownership, OwnershipStanding,
    Reservation, Situation, Verdict, judge, release,
};
use closer_state::State;
use serde_json::{Value, json};
use std::path::Path;

fn now() -> Timestamp {
    Timestamp::from_unix_ms(1_000)
}

/// An order to write a file beneath a folder, as the monitor can admit it.
fn write(root: &Path, content: &str) -> Order {
    let contract = json!({ "kind": "file_write", "root": root, "account": "host" });
    let parameters = [("content", json!(content)), ("expected_previous", json!("absent"))];
    let mut order = order(&contract, target("host", "file"), &parameters);
    let entry = Arc::get_mut(&mut order.entry).unwrap();
    entry.parameters = ["content", "expected_previous"]
        .map(|name| ParameterRule { name: name.into(), r#type: ParameterType::Text, optional: false })
        .into();
    let action = Arc::get_mut(&mut order.action).unwrap();
    action.relevant_semantic_version = 0;
    action.logical_digest = action.compute_logical_digest().unwrap();
    order
}

/// A space in which the order's operation is registered and granted.
fn state(order: &Order) -> State {
    let identity = Identity {
        actor_id: "planner-1".into(),
        roles: vec![ProducerRole::Planner],
        capabilities: vec!["capability-1".into()],
        revoked_at: None,
        standing: Standing::Current,
        ..Identity::example(Extent::Minimal)
    };
    let mut grant = Grant {
        grant_id: "grant-1".into(),
        allowed_operations: vec!["operation-1".into()],
        targets: vec![TargetPattern::exactly(&order.action.target)],
        parameter_bounds: Vec::new(),
        expiry: now().plus_ms(1_000_000),
        ..Grant::example(Extent::Minimal)
    };
    grant.revocation.revoked_by = None;
    grant.resource_bounds.calls = None;
    let readback = ReadbackMethod {
        method: "method-1".into(),
        version: 1,
        standing: Standing::Current,
        ..ReadbackMethod::example(Extent::Minimal)
    };
    let profile = Profile {
        answers: (1..=10).map(|number| (Key::from(format!("q{number}")), "yes".into())).collect(),
        ..Profile::example(Extent::Full)
    };
    let items = vec![
        Item::Identity(identity),
        Item::Grant(grant),
        Item::ReadbackMethod(readback),
        Item::Operation((*order.entry).clone()),
    ];
    closer_state::genesis(profile, items).unwrap().1
}

/// The permit that the monitor gives for an order.
fn permit(order: &Order) -> Permit {
    let state = state(order);
    let adjudication = Adjudication {
        phase: Phase::PreAction,
        subject: TypedRef { id: "action-1".into(), digest: order.action.logical_digest, r#type: SubjectType::Action },
        disposition: Disposition::Justified,
        ..Adjudication::example(Extent::Minimal)
    };
    let verdict = judge(&Situation {
        now: &now(),
        clock: ClockStanding::Reliable,
        state: &state,
        producer: &ActorRef { actor_id: "planner-1".into(), role: ProducerRole::Planner },
        proposer: &"planner-1".into(),
        obligation_id: &"obligation-1".into(),
        action: &order.action,
        offered: Some(Offered { adjudication: &adjudication, assessed: Some(&order.action) }),
        moved: &[],
        ownership: &Ownership {
            epoch: 1,
            owner: "planner-1".into(),
            lease_expiry: None,
            standing: OwnershipStanding::Held,
        },
        grant_calls: 0,
        key: KeyStanding::Unused,
        attempt: AttemptStanding::First,
        disclosure: DisclosureStanding::Released,
        reservation: Reservation::Fits,
    });
    match verdict {
        Verdict::Admitted(admission) => {
            release(admission, Appended { record: Cursor(1), epoch: Epoch(1), restriction_cursor: 0 })
        }
        Verdict::Refused(denials) => panic!("{denials:?}"),
    }
}

fn world() -> World {
    World::new(WorldConfig {
        clock: Arc::new(ManualClock::at(now())),
        processes: Arc::new(MemoryLedger::default()),
        participants: std::collections::BTreeMap::new(),
        servers: crate::mcp::McpServers::default(),
    })
}

#[tokio::test]
async fn what_a_permit_covers_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let order = write(folder.path(), "one");
    let performed = world().operations.perform(permit(&order), &order).await;
    assert_eq!(response(performed)["outcome"], "created");
    assert_eq!(std::fs::read_to_string(folder.path().join("file")).unwrap(), "one");
}

/// Performs, under the permit for one order, the same order changed; nothing may come of it.
async fn check(change: impl FnOnce(&mut Order), expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let admitted = write(folder.path(), "one");
    let mut changed = admitted.clone();
    change(&mut changed);
    let refused = refusal(world().operations.perform(permit(&admitted), &changed).await);
    assert!(refused.contains(expected), "{refused}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_permit_for_another_attempt_does_nothing() {
    shows!("CP-8.1-12"; by "operations.permit_names_attempt");
    check(|order| Arc::make_mut(&mut order.action).attempt_id = "attempt-other".into(), "another attempt").await;
    check(|order| Arc::make_mut(&mut order.action).action_id = "action-other".into(), "another attempt").await;
}

#[tokio::test]
async fn content_that_was_not_admitted_is_not_sent() {
    shows!("CP-8.1-12"; by "operations.permit_covers_content");
    let change = |order: &mut Order| {
        let action = Arc::make_mut(&mut order.action);
        action.parameters.insert("content".into(), Plain(json!("two")));
    };
    check(change, "not what was admitted").await;
    let honest = |order: &mut Order| {
        change(order);
        let action = Arc::make_mut(&mut order.action);
        action.logical_digest = action.compute_logical_digest().unwrap();
    };
    check(honest, "not what was admitted").await;
    check(|order| Arc::make_mut(&mut order.entry).operation = "operation-2".into(), "not what was admitted").await;
}

#[tokio::test]
async fn a_contract_that_was_not_admitted_is_not_used() {
    let other: Value = json!({ "kind": "file_write", "root": "/", "account": "host" });
    let digest = canonical_digest(&other);
    check(|order| Arc::make_mut(&mut order.entry).contract = Plain(other.clone()), "contract").await;
    check(
        |order| {
            let entry = Arc::make_mut(&mut order.entry);
            entry.contract = Plain(other.clone());
            entry.contract_digest = digest;
        },
        "contract",
    )
    .await;
}

fn canonical_digest(value: &Value) -> Digest {
    closer_contracts::canonical::digest_of(value).unwrap()
}

#[test]
fn contracts_are_read_whole_or_not_at_all() {
    let read = |value: Value| OperationContract::read(&value);
    let sound = json!({ "kind": "file_write", "root": "/srv", "account": "host" });
    assert!(matches!(read(sound.clone()), Ok(OperationContract::FileWrite(_))));
    let mut unknown_member = sound.clone();
    unknown_member["extra"] = json!(1);
    let mut unknown_kind = sound.clone();
    unknown_kind["kind"] = json!("shell");
    for (wrong, names) in [
        (unknown_member, "extra"),
        (unknown_kind, "shell"),
        (json!({ "kind": "file_write" }), "root"),
        (json!({}), "kind"),
        (json!("file_write"), "is a table"),
        (json!({ "kind": "http", "endpoint": { "url": "x" }, "method": "HEAD" }), "HEAD"),
    ] {
        let refused = read(wrong).unwrap_err().to_string();
        assert!(refused.contains(names), "{refused}");
    }
}
