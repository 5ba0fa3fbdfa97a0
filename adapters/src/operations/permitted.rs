//! An order together with the permit that covers it: the only thing an operation of this crate starts from.

use closer_contracts::action::Action;
use closer_contracts::branch;
use closer_contracts::canonical;
use closer_contracts::id::{AttemptId, Key};
use closer_contracts::item::OperationEntry;
use closer_contracts::refs::{Parameters, Plain, Target};
use closer_monitor::Permit;
use closer_protocol::port::Order;
use serde_json::Value;

/// One order that a permit was given for.
// INVARIANT: made only by `under`, which uses the permit up; tests of single adapters have a door of their own.
#[derive(Debug)]
pub(crate) struct Permitted {
    order: Order,
}

impl Permitted {
    /// Ties a permit to the order it was given for. Content that was not admitted does not pass, whatever its id.
    pub(super) fn under(permit: Permit, order: &Order) -> Result<Self, String> {
        let Order { action, entry } = order;
        let named = *permit.action_id() == action.action_id && *permit.attempt_id() == action.attempt_id;
        if branch!("operations.permit_names_attempt", !named) {
            return Err("the permit is for another attempt".to_owned());
        }
        let admitted = permit.logical_digest() == action.logical_digest
            && action.compute_logical_digest().ok() == Some(action.logical_digest)
            && action.operation == entry.operation;
        if branch!("operations.permit_covers_content", !admitted) {
            return Err("the action's content is not what was admitted".to_owned());
        }
        let pinned = permit.contract_digest() == entry.contract_digest
            && canonical::digest_of(&entry.contract).ok() == Some(entry.contract_digest);
        if branch!("operations.permit_pins_contract", !pinned) {
            return Err("the operation's contract is not the one that was admitted".to_owned());
        }
        Ok(Self { order: order.clone() })
    }

    /// An order as if a permit had been given, to test one adapter by itself.
    #[cfg(test)]
    pub(crate) const fn for_test(order: Order) -> Self {
        Self { order }
    }

    pub(crate) fn entry(&self) -> &OperationEntry {
        &self.order.entry
    }

    fn action(&self) -> &Action {
        &self.order.action
    }

    pub(crate) fn attempt_id(&self) -> &AttemptId {
        &self.action().attempt_id
    }

    pub(crate) fn idempotency_key(&self) -> &Key {
        &self.action().idempotency_key
    }

    pub(crate) fn target(&self) -> &Target {
        &self.action().target
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.action().parameters
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&Plain> {
        self.parameters().get(&Key::from(name))
    }

    /// A parameter that must be text.
    pub(crate) fn text(&self, name: &str) -> Result<&str, String> {
        self.parameter(name)
            .and_then(Plain::as_text)
            .ok_or_else(|| format!("the parameter `{name}` is not there or is not text"))
    }

    /// A parameter as one piece of text, for an argument or a part of an address.
    pub(crate) fn scalar(&self, name: &str) -> Result<String, String> {
        match self.parameter(name).map(|plain| &plain.0) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            Some(Value::Bool(truth)) => Ok(truth.to_string()),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) => {
                Err(format!("the parameter `{name}` is no single value"))
            }
            None => Err(format!("there is no parameter `{name}`")),
        }
    }
}
