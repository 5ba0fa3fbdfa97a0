//! What the tests of the adapters start from: orders with everything in them that an adapter reads.

mod server;

pub(crate) use server::{Reply, Server};

use crate::clock::SystemClock;
use crate::operations::Permitted;
use closer_contracts::action::Action;
use closer_contracts::canonical;
use closer_contracts::digest::Digest;
use closer_contracts::id::{AttemptId, Key};
use closer_contracts::item::{EffectClass, OperationEntry, ReadbackMethod, RepeatSafety, Standing, Verification};
use closer_contracts::refs::{Amounts, Parameters, Plain, Target, VersionedRef};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{Comparison, Expectation, Postcondition};
use closer_protocol::port::{Order, Performed, ReadbackOrder};
use serde_json::Value;
use std::sync::Arc;

pub(crate) fn clock() -> SystemClock {
    SystemClock::start(crate::clock::ClockBounds::default(), None)
}

pub(crate) fn target(account: &str, address: &str) -> Target {
    Target { r#type: "thing".into(), account: account.into(), address: address.into() }
}

/// An order under a contract, with an attempt id that no other has.
pub(crate) fn order(contract: &Value, target: Target, parameters: &[(&str, Value)]) -> Order {
    let parameters: Parameters =
        parameters.iter().map(|(name, value)| (Key::from(*name), Plain(value.clone()))).collect();
    let mut action = Action {
        action_id: "action-1".into(),
        operation: "operation-1".into(),
        target,
        parameters,
        expected_postcondition: Postcondition {
            id: "postcondition-1".into(),
            expectations: vec![Expectation {
                field: "exists".into(),
                comparison: Comparison::Equals,
                value: Plain(Value::Bool(true)),
            }],
        },
        authority_ref: "grant-1".into(),
        relevant_semantic_version: 1,
        registry_version: 1,
        idempotency_key: "key-1".into(),
        logical_digest: Digest::of(b""),
        attempt_id: AttemptId::from(format!("attempt-{}", uuid::Uuid::now_v7())),
        ownership_epoch: 1,
        extensions: None,
    };
    action.logical_digest = action.compute_logical_digest().unwrap();
    Order { action: Arc::new(action), entry: Arc::new(entry(contract)) }
}

pub(crate) fn entry(contract: &Value) -> OperationEntry {
    let contract = Plain(contract.clone());
    let contract_digest = canonical::digest_of(&contract).unwrap();
    let epoch = Timestamp::from_unix_ms(0);
    OperationEntry {
        operation: "operation-1".into(),
        version: 1,
        text: "does it".into(),
        capability: "capability-1".into(),
        effect_class: EffectClass::ExternalReversible,
        parameters: Vec::new(),
        identifying_parameters: Vec::new(),
        target_type: "thing".into(),
        readback_method: VersionedRef { id: "method-1".into(), version: 1 },
        repeat_safety: RepeatSafety::Conditional,
        settle_time_ms: 0,
        cancellable: true,
        worst_case: Amounts::default(),
        contract,
        contract_digest,
        verification: Verification {
            identity: "endpoint-1".into(),
            contract_digest,
            version: 1,
            verified_at: epoch.clone(),
            method: "by hand".into(),
            expires_at: epoch.plus_ms(u64::from(u32::MAX) * 1_000),
        },
        standing: Standing::Current,
        cancel_exposure: None,
    }
}

pub(crate) fn permitted(contract: &Value, target: Target, parameters: &[(&str, Value)]) -> Permitted {
    Permitted::for_test(order(contract, target, parameters))
}

pub(crate) fn readback(contract: &Value, target: Target) -> ReadbackOrder {
    ReadbackOrder {
        method: Arc::new(ReadbackMethod {
            method: "method-1".into(),
            version: 1,
            source: "source-1".into(),
            target_type: "thing".into(),
            contract: Plain(contract.clone()),
            standing: Standing::Current,
        }),
        target,
        action_id: None,
        attempt_id: None,
    }
}

/// The response of a call that returned.
#[track_caller]
pub(crate) fn response(performed: Performed) -> Value {
    match performed {
        Performed::Responded { response, .. } => response.0,
        Performed::Unknown { reason, .. } => panic!("unknown: {reason}"),
        Performed::NotSent { reason } => panic!("not sent: {reason}"),
    }
}

/// The reason why a call was not sent.
#[track_caller]
pub(crate) fn refusal(performed: Performed) -> String {
    match performed {
        Performed::NotSent { reason } => reason.to_string(),
        Performed::Responded { response, .. } => panic!("it was sent and responded: {response:?}"),
        Performed::Unknown { reason, .. } => panic!("it was sent: {reason}"),
    }
}

/// The reason why the outcome of a call is not known.
#[track_caller]
pub(crate) fn doubt(performed: Performed) -> String {
    match performed {
        Performed::Unknown { reason, .. } => reason.to_string(),
        Performed::Responded { response, .. } => panic!("it responded: {response:?}"),
        Performed::NotSent { reason } => panic!("not sent: {reason}"),
    }
}
