//! Observing: what is forwarded without being governed, for how long, and what is never.

use crate::support::{recorded, refused};
use closer_contracts::auth::SigningScope;
use closer_contracts::id::ArtifactId;
use closer_contracts::item::{
    AffectedScope, EffectClass, IdentityKind, Item, OperationEntry, ParameterRule, ParameterType, RepeatSafety,
};
use closer_contracts::refs::{ActorRef, Plain, ProducerRole, TargetPattern};
use closer_contracts::work::ActionProposal;
use closer_contracts::{Digest, RefusalCode as Code};
use closer_protocol::Reply;
use closer_protocol::call::Call;
use closer_protocol::observe::{self, Foreseen, Observing, Tally, UngovernedCall};
use closer_scenarios::founding::{identity, operation, plan_target};
use closer_scenarios::{Deployment, Space, worker};
use serde_json::json;

const DAY_MS: u64 = 24 * 3_600_000;

/// An operation of two parameters that nothing is granted for, beside `plan.change`, which has a grant.
fn noting() -> OperationEntry {
    let entry = operation("plan.note", EffectClass::ExternalReversible, RepeatSafety::RepeatSafe);
    let rule = |name: &str| ParameterRule { name: name.into(), r#type: ParameterType::Any, optional: false };
    OperationEntry { parameters: vec![rule("plan"), rule("size")], ..entry }
}

fn founded() -> Space {
    let able = identity("worker", IdentityKind::Producer, &[ProducerRole::Participant], &["plan.change", "plan.note"]);
    let deployment = Deployment::default().without("worker").with(Item::Identity(able));
    let deployment = deployment.with(Item::Operation(noting()));
    Space::found(&deployment, Box::new(|work, _| worker::nothing(work))).unwrap()
}

fn begin_as(space: &mut Space, actor: &str, role: ProducerRole, days: u64) -> Reply {
    let id = ArtifactId::new(space.fresh("observing"));
    let observing = Observing { observing_id: id, until: space.moment().now.plus_ms(days * DAY_MS) };
    space.submit_artifact(observing, ActorRef { actor_id: actor.into(), role }, SigningScope::Declaration).unwrap()
}

fn begin(space: &mut Space, days: u64) -> Reply {
    begin_as(space, "user", ProducerRole::User, days)
}

fn noted(plan: &str, size: &str) -> ActionProposal {
    let parameters = [("plan".into(), Plain(json!(plan))), ("size".into(), Plain(json!(size)))].into();
    ActionProposal { operation: "plan.note".into(), parameters, ..worker::proposal("o-1-works", plan) }
}

/// A call with what would become of it now.
fn a_call(space: &mut Space, proposal: ActionProposal) -> UngovernedCall {
    let endpoint = space.view().state.operation(&proposal.operation).unwrap().contract_digest;
    let call = UngovernedCall {
        ungoverned_id: ArtifactId::new(space.fresh("ungoverned")),
        caller: "worker".into(),
        obligation_id: "o-1".into(),
        transport_key: None,
        proposal,
        endpoint,
        foreseen: Foreseen::Ask,
        code: None,
    };
    judged(space, call)
}

fn judged(space: &Space, call: UngovernedCall) -> UngovernedCall {
    let (foreseen, code) = observe::foreseen(space.view(), &call, &space.moment());
    UngovernedCall { foreseen, code, ..call }
}

fn put(space: &mut Space, call: UngovernedCall) -> Reply {
    let producer = ActorRef { actor_id: call.caller.clone(), role: ProducerRole::Participant };
    space.submit_artifact(call, producer, SigningScope::Result).unwrap()
}

fn released(space: &Space, call: &UngovernedCall) -> Result<(), Code> {
    let released = observe::release(space.view(), &call.ungoverned_id, &space.moment());
    released.map(drop).map_err(|denial| denial.code)
}

#[test]
fn observing_is_the_users_ends_after_fourteen_days_and_is_not_put_off() {
    let mut space = founded();
    assert!(!observe::is_on(space.view(), &space.moment()));
    refused(&begin_as(&mut space, "worker", ProducerRole::Participant, 3), Code::MissingAuthority);
    refused(&begin(&mut space, 15), Code::OutOfBounds);
    assert_eq!(
        observe::wanted(space.view(), None, None, &space.moment()),
        Some(space.moment().now.plus_ms(14 * DAY_MS))
    );
    recorded(&begin(&mut space, 14));
    let until = space.view().ungoverned.period().unwrap().1.clone();
    space.pass(DAY_MS).unwrap();
    // Starting again neither asks for more nor gets it; less is had.
    assert_eq!(observe::wanted(space.view(), None, None, &space.moment()), None);
    refused(&begin(&mut space, 14), Code::OutOfBounds);
    assert_eq!(space.view().ungoverned.period().unwrap().1, until);
    recorded(&begin(&mut space, 2));
    space.pass(2 * DAY_MS - 1).unwrap();
    assert!(observe::is_on(space.view(), &space.moment()));
    space.pass(1).unwrap();
    assert!(!observe::is_on(space.view(), &space.moment()));
    // What is over is not begun anew.
    refused(&begin(&mut space, 1), Code::OutOfBounds);
}

#[test]
fn only_what_was_never_granted_is_forwarded_and_nothing_follows_from_it() {
    let mut space = founded();
    let early = a_call(&mut space, noted("basic", "s"));
    refused(&put(&mut space, early), Code::MissingAuthority);
    recorded(&begin(&mut space, 14));
    let call = a_call(&mut space, noted("basic", "s"));
    assert_eq!((call.foreseen, call.code), (Foreseen::Ask, Some(Code::MissingAuthority)));
    assert_eq!(released(&space, &call), Err(Code::UnresolvedRef), "what is not on record goes nowhere");
    let embellished = UngovernedCall { foreseen: Foreseen::Pass, code: None, ..call.clone() };
    refused(&put(&mut space, embellished), Code::StaleVersion);
    let version = space.view().state.reference();
    recorded(&put(&mut space, call.clone()));
    assert_eq!(released(&space, &call), Ok(()));
    for plan in ["basic", "huge"] {
        // Inside and outside its bounds: an operation with a grant is governed.
        let governed = a_call(&mut space, worker::proposal("o-1-works", plan));
        refused(&put(&mut space, governed), Code::MissingAuthority);
    }
    let of_another = UngovernedCall { caller: "user".into(), ..a_call(&mut space, noted("basic", "s")) };
    let producer = ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant };
    refused(&space.submit_artifact(of_another, producer, SigningScope::Result).unwrap(), Code::Unauthenticated);
    space.run().unwrap();
    let view = space.view();
    assert!(
        view.attempts.is_empty() && view.actions.is_empty() && view.calls_under.is_empty() && view.packets.is_empty()
    );
    assert_eq!(view.state.reference(), version, "nothing accepted follows");
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn what_is_restricted_changed_or_late_goes_nowhere() {
    let mut space = founded();
    recorded(&begin(&mut space, 14));
    let late = a_call(&mut space, noted("basic", "s"));
    recorded(&put(&mut space, late.clone()));
    let changed = UngovernedCall { endpoint: Digest::of(b"described anew"), ..a_call(&mut space, noted("basic", "t")) };
    let changed = judged(&space, changed);
    assert_eq!((changed.foreseen, changed.code), (Foreseen::Refuse, Some(Code::EndpointMismatch)));
    recorded(&put(&mut space, changed.clone()));
    assert_eq!(released(&space, &changed), Err(Code::EndpointMismatch));
    let scope = AffectedScope::Target { operation: None, targets: TargetPattern::exactly(&plan_target()) };
    recorded(&space.restrict("issuer-1", crate::urgent::suspend(scope)).unwrap());
    let restricted = a_call(&mut space, noted("basic", "s"));
    assert_eq!((restricted.foreseen, restricted.code), (Foreseen::Ask, Some(Code::Restricted)));
    recorded(&put(&mut space, restricted.clone()));
    assert_eq!(released(&space, &restricted), Err(Code::Restricted));
    assert_eq!(released(&space, &late), Err(Code::Restricted), "it was recorded before the restriction, not sent");
    space.pass(14 * DAY_MS).unwrap();
    assert_eq!(released(&space, &late), Err(Code::MissingAuthority));
}

#[test]
fn a_message_is_forwarded_once_also_where_it_comes_again_as_a_governed_call() {
    let mut space = founded();
    recorded(&begin(&mut space, 14));
    let keyed = |space: &mut Space, plan: &str| UngovernedCall {
        transport_key: Some("k-1".into()),
        ..a_call(space, noted(plan, "s"))
    };
    let first = keyed(&mut space, "basic");
    let reply = put(&mut space, first.clone());
    recorded(&reply);
    let again = keyed(&mut space, "basic");
    assert_eq!(put(&mut space, again.clone()), reply);
    assert_eq!(released(&space, &again), Err(Code::UnresolvedRef));
    let other = keyed(&mut space, "small");
    refused(&put(&mut space, other), Code::KeyReuseChangedContent);
    let governed = Call {
        call_id: ArtifactId::new(space.fresh("call")),
        caller: "worker".into(),
        obligation_id: "o-1".into(),
        session: None,
        transport_key: Some("k-1".into()),
        proposal: first.proposal.clone(),
        endpoint: first.endpoint,
        redeems: None,
    };
    let producer = ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant };
    refused(&space.submit_artifact(governed, producer, SigningScope::Result).unwrap(), Code::OutcomeUnknown);
}

#[test]
fn proposed_grants_allow_what_was_observed_and_no_other_combination() {
    let mut space = founded();
    recorded(&begin(&mut space, 14));
    for (plan, size) in [("basic", "s"), ("basic", "m"), ("small", "s"), ("small", "m"), ("huge", "xl"), ("basic", "s")]
    {
        let call = a_call(&mut space, noted(plan, size));
        recorded(&put(&mut space, call));
    }
    // An address that a grant would read as a beginning, and a value that no file can write.
    let mut odd = noted("odd", "s");
    odd.target.address = "service-*".into();
    let mut empty = noted("empty", "s");
    empty.parameters.insert("size".into(), Plain(json!(null)));
    for proposal in [odd, empty] {
        let call = a_call(&mut space, proposal);
        recorded(&put(&mut space, call));
    }
    let report = observe::report(space.view(), &space.moment());
    let counted = report.counted[&"plan.note".into()];
    assert_eq!(counted.observed, Tally { pass: 0, ask: 8, refuse: 0 });
    assert_eq!(counted.promised, Tally { pass: 6, ask: 2, refuse: 0 });
    let mut allowed: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for proposed in &report.proposed {
        assert_eq!(proposed.targets, [plan_target()]);
        let texts = |name: &str| {
            let mut texts: Vec<String> =
                proposed.values[&name.into()].iter().map(|value| value.as_text().unwrap().to_owned()).collect();
            texts.sort();
            texts
        };
        allowed.push((texts("plan"), texts("size")));
    }
    allowed.sort();
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(allowed, [(texts(&["basic", "small"]), texts(&["m", "s"])), (texts(&["huge"]), texts(&["xl"]))]);
}
