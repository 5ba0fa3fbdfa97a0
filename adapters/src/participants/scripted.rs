//! A participant that answers with what it was given, after a while: for rehearsals and load.

use super::{answer, malformed, no_answer};
use closer_contracts::canonical;
use closer_contracts::conference::MoveAnswer;
use closer_contracts::id::Text;
use closer_contracts::work::{ContextItem, Work, WorkResult};
use closer_protocol::incident::{Answer as Withdrawn, ScopedNotice};
use closer_protocol::port::{NoAnswer, Participant, Pending, Said, deferring};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Contract of participant `scripted`: fixed answers by role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scripted {
    /// The answers; the first for the packet's role is given.
    pub answers: Vec<Answer>,
    /// The moves it makes in a conference, one each turn, in order; then it defers.
    #[serde(default)]
    pub moves: Vec<Move>,
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

/// One move, on the conference's first subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The role it is made in; every role where it is left out.
    #[serde(default)]
    pub role: Option<String>,
    /// Members of the answer to a turn; those left out are empty or `null`, `work_id` is the packet's and `subject` the
    /// digest of its first subject.
    pub r#move: Map<String, Value>,
}

impl Scripted {
    /// How many moves of its own the packet shows.
    fn moved(work: &Work, moves: &[&Move]) -> usize {
        let made = |item: &&ContextItem| {
            let says = |member: &str| item.content.0.get(member).and_then(Value::as_str);
            says("move_id").is_some() && says("role") == Some(work.role.as_str())
        };
        work.context_items.iter().filter(made).count().min(moves.len())
    }

    fn turn(&self, work: &Work) -> Result<Said, NoAnswer> {
        let is_for = |made: &&Move| made.role.as_ref().is_none_or(|role| role == work.role.as_str());
        let moves: Vec<&Move> = self.moves.iter().filter(is_for).collect();
        let Some(made) = moves.get(Self::moved(work, &moves)) else {
            return deferring(work);
        };
        let subject = work.question.subject_refs.first();
        let subject =
            work.context_items.iter().find(|item| subject.is_some_and(|id| id.as_str() == item.reference.id.as_str()));
        let mut members = made.r#move.clone();
        members.insert("work_id".to_owned(), json!(work.work_id));
        members.entry("subject").or_insert_with(|| json!(subject.map(|item| item.reference.digest)));
        members.entry("evidence").or_insert_with(|| json!([]));
        for member in ["reply_to", "reason", "reason_class", "narrowed"] {
            members.entry(member).or_insert(Value::Null);
        }
        let made: MoveAnswer = canonical::from_value(Value::Object(members)).map_err(|fault| malformed(&fault))?;
        answer(&made)
    }

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
        canonical::from_value(Value::Object(result)).map_err(|fault| malformed(&fault))
    }

    fn delay(&self, work: &Work) -> Duration {
        let digest = closer_contracts::digest::Digest::of(work.work_id.as_str().as_bytes());
        let drawn = digest.raw().iter().take(8).fold(0, |drawn, byte| (drawn << 8) | u64::from(*byte));
        let jitter_ms = drawn.checked_rem(self.jitter_ms.saturating_add(1)).unwrap_or_default();
        Duration::from_millis(self.delay_ms.saturating_add(jitter_ms))
    }
}

impl Participant for Scripted {
    fn work<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Said, NoAnswer>> {
        Box::pin(async move {
            tokio::time::sleep(self.delay(work)).await;
            answer(&self.answer(work)?)
        })
    }

    fn turn<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Said, NoAnswer>> {
        Box::pin(async move {
            tokio::time::sleep(self.delay(work)).await;
            Self::turn(self, work)
        })
    }

    fn withdraw<'a>(&'a self, _: &'a ScopedNotice) -> Pending<'a, Option<(Withdrawn, Text)>> {
        Box::pin(std::future::ready(Some(super::keeps_nothing())))
    }
}
