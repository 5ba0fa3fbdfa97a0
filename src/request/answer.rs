//! What a request is answered with.

use super::{record, words};
use crate::error::Error;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode};
use closer_protocol::Reply;
use closer_store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As asked.
    Done,
    /// The protocol declined.
    Refused,
    /// There is no such thing on record.
    NotFound,
    /// Bytes on disk are not what was written.
    Corruption,
    /// It failed.
    Failed,
}

/// What a request is answered with: data for programs, the same in lines for people.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// How it went.
    pub outcome: Outcome,
    /// The foremost code, where it was refused.
    pub code: Option<RefusalCode>,
    /// For programs.
    pub data: Value,
    /// For people.
    pub text: Vec<String>,
    /// For people: what to type next, told after the text.
    #[serde(default)]
    pub hints: Vec<Hint>,
}

/// A verb that may be wanted next. How the program is called for this space is known where it is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hint {
    /// What it is for.
    pub what: String,
    /// The verb and its arguments.
    pub arguments: Vec<String>,
}

impl Answer {
    pub(crate) const fn new(outcome: Outcome, data: Value, text: Vec<String>) -> Self {
        Self { outcome, code: None, data, text, hints: Vec::new() }
    }

    /// The answer with a verb that may be wanted next.
    #[must_use]
    pub fn hint<const N: usize>(mut self, what: &str, arguments: [&str; N]) -> Self {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        self.hints.push(Hint { what: what.to_owned(), arguments });
        self
    }

    pub(crate) fn done(data: Value, text: Vec<String>) -> Self {
        Self::new(Outcome::Done, data, text)
    }

    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        Self::absent(format!("no {what} on record is called `{}`", words::told_id(id)))
    }

    /// There is nothing where something was looked for.
    #[must_use]
    pub fn absent(text: String) -> Self {
        Self::new(Outcome::NotFound, json!({ "error": text }), vec![text])
    }

    /// Nothing ordinary can be recorded, for want of room.
    #[must_use]
    pub fn full() -> Self {
        Self::refused(&[closer_actors::storage_full()])
    }

    /// What went wrong, as an answer.
    #[must_use]
    pub fn failed(error: &Error) -> Self {
        if matches!(error, Error::Actors(closer_actors::Error::Busy)) {
            let reason = "as much work is admitted as the runtime takes; try again shortly";
            return Self::refused(&[Denial::new(RefusalCode::Busy, CheckKind::Runtime, reason)]);
        }
        // What a request says and no contract allows is refused like any other input.
        if let Error::Fault(fault) = error {
            return Self::refused(&[fault.clone().into()]);
        }
        let text = error.told();
        match error {
            Error::Store(StoreError::NoRoom(_)) => {
                Self::refused(&[Denial::new(RefusalCode::StorageFull, CheckKind::Runtime, text)])
            }
            Error::Store(StoreError::Corruption(damage))
            | Error::Actors(closer_actors::Error::Store(StoreError::Corruption(damage))) => record::damaged(damage),
            Error::Divergence(_)
            | Error::Actors(closer_actors::Error::Divergence(_))
            | Error::Store(StoreError::Manifest(_))
            | Error::Actors(closer_actors::Error::Store(StoreError::Manifest(_))) => {
                Self::new(Outcome::Corruption, json!({ "error": text }), vec![text])
            }
            Error::Store(StoreError::StoreFull) | Error::Actors(closer_actors::Error::Store(StoreError::StoreFull)) => {
                Self::full()
            }
            Error::Deployment(_)
            | Error::Store(_)
            | Error::Actors(_)
            | Error::Fault(_)
            | Error::Io { .. }
            | Error::Unreachable { .. }
            | Error::World(_)
            | Error::Runtime(_) => Self::new(Outcome::Failed, json!({ "error": text }), vec![text]),
        }
    }

    /// A refusal: the foremost denial first, each with its page.
    pub(crate) fn refused(denials: &[Denial]) -> Self {
        let Some(first) = closer_contracts::refusal::foremost(denials) else {
            return Self::done(json!({}), Vec::new());
        };
        let line = |denial: &Denial| {
            let offending = denial.offending.as_ref().map(|offending| format!(" ({offending})")).unwrap_or_default();
            format!("refused: {}: {}{offending}", denial.code.as_str(), denial.reason)
        };
        let told = |denial: &Denial| {
            json!({
                "code": denial.code, "number": denial.code as u16, "check": denial.check, "offending": denial.offending,
                "reason": denial.reason, "spec_ref": denial.code.spec_ref(), "retryable": denial.code.is_retryable(),
            })
        };
        let others = denials.iter().filter(|denial| *denial != first);
        let mut text: Vec<String> = std::iter::once(first).chain(others).map(line).collect();
        text.push(format!("see docs/refusals/{}.md", first.code.as_str()));
        let denials: Vec<Value> = denials.iter().map(told).collect();
        Self {
            outcome: Outcome::Refused,
            code: Some(first.code),
            data: json!({ "code": first.code, "reason": first.reason, "denials": denials }),
            text,
            hints: Vec::new(),
        }
    }

    /// What the sequence replied: the records, or the refusal.
    pub(crate) fn replied(reply: &Reply, what: &str) -> Self {
        match reply {
            Reply::Recorded(references) => {
                let lines =
                    references.iter().map(|reference| format!("{} {}", reference.id, words::short(&reference.digest)));
                let text = std::iter::once(what.to_owned()).chain(lines).collect();
                Self::done(json!({ "recorded": references }), text)
            }
            Reply::Refused(denials) => Self::refused(denials),
        }
    }
}
