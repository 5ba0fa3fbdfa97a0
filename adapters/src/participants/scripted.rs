//! A participant that answers with what it was given, after a while: for rehearsals and load.

use super::{answer, no_answer};
use closer_contracts::canonical;
use closer_contracts::work::{Work, WorkResult};
use closer_protocol::port::{NoAnswer, Participant, Pending};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Contract of participant `scripted`: fixed answers by role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scripted {
    /// The answers; the first for the packet's role is given.
    pub answers: Vec<Answer>,
    /// How long it takes at least, in milliseconds. Default 0.
    #[serde(default)]
    pub delay_ms: u64,
    /// How much longer it may take, in milliseconds. How much of it one packet takes follows from the packet's id, so that
    /// a run can be repeated. Default 0.
    #[serde(default)]
    pub jitter_ms: u64,
}

/// One fixed answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The role it is given in; every role where it is left out.
    #[serde(default)]
    pub role: Option<String>,
    /// Members of the RESULT; those left out are empty lists, and `work_id` is the packet's.
    #[serde(default)]
    pub result: Map<String, Value>,
}

impl Scripted {
    fn answer(&self, work: &Work) -> Result<WorkResult, NoAnswer> {
        let is_for = |answer: &&Answer| answer.role.as_ref().is_none_or(|role| role == work.role.as_str());
        let given = self
            .answers
            .iter()
            .find(is_for)
            .ok_or_else(|| no_answer(format!("there is no answer for the role `{}`", work.role)))?;
        let mut result = given.result.clone();
        for list in ["claims", "action_proposals", "assessments", "objections", "unresolved", "skill_receipts"] {
            result.entry(list).or_insert_with(|| json!([]));
        }
        result.insert("work_id".to_owned(), json!(work.work_id));
        canonical::from_value(Value::Object(result)).map_err(|fault| no_answer(fault.to_string()))
    }

    fn delay(&self, work: &Work) -> Duration {
        let digest = closer_contracts::digest::Digest::of(work.work_id.as_str().as_bytes());
        let drawn = digest.raw().iter().take(8).fold(0, |drawn, byte| (drawn << 8) | u64::from(*byte));
        let jitter_ms = drawn.checked_rem(self.jitter_ms.saturating_add(1)).unwrap_or_default();
        Duration::from_millis(self.delay_ms.saturating_add(jitter_ms))
    }
}

impl Participant for Scripted {
    fn work<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Vec<u8>, NoAnswer>> {
        Box::pin(async move {
            tokio::time::sleep(self.delay(work)).await;
            answer(&self.answer(work)?)
        })
    }
}
