//! Running a declared program.
//!
//! An exit status other than 0 is a response like any other: what the program did before it failed, only a readback can
//! tell. A program that was ended, by its deadline or a signal, leaves the outcome unknown.

use super::permitted::Permitted;
use super::report::{not_sent, responded, unknown};
use crate::process::{Capture, Finished, ProcessLedger, Program};
use closer_protocol::port::{Clock, Performed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Contract `command`: runs a declared program on the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Whose machine or service it acts on; the target's account must be the same.
    pub account: String,
    /// What is run.
    pub run: Program,
}

/// Carries out one command. Blocks until the program and its descendants have ended.
pub(super) fn perform(
    permitted: &Permitted,
    contract: &Command,
    clock: &dyn Clock,
    ledger: &dyn ProcessLedger,
) -> Performed {
    let target = permitted.target();
    if target.account.as_str() != contract.account {
        return not_sent(format!("the account `{}` is not the one this operation acts for", target.account));
    }
    let arguments = match contract.run.fill(target, &|name| permitted.scalar(name)) {
        Ok(arguments) => arguments,
        Err(reason) => return not_sent(reason),
    };
    let sent_at = clock.now().0;
    match contract.run.run(&arguments, permitted.attempt_id(), ledger) {
        Finished::NotStarted(reason) => not_sent(reason),
        Finished::Killed(reason) => unknown(sent_at, reason),
        Finished::Exited { status, stdout, stderr, left_behind } => responded(
            clock,
            sent_at,
            json!({
                "status": status,
                "stdout": shown(&stdout),
                "stderr": shown(&stderr),
                "descendants_ended": left_behind,
            }),
        ),
    }
}

/// Output as far as it was kept; bytes that are not UTF-8 are replaced.
fn shown(capture: &Capture) -> Value {
    let mut text = String::from_utf8_lossy(&capture.bytes).into_owned();
    // A replaced byte takes three; the whole must still fit a plain value.
    let mut end = text.len().min(closer_contracts::refs::PLAIN_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.truncate(end);
    json!({ "text": text, "bytes": capture.total, "is_cut": capture.is_cut() })
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
