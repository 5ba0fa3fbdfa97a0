//! A person looks where no machine can, and says what the target shows: several effects at a time.

use super::Answer;
use crate::error::Error;
use crate::space::Space;
use closer_adapters::readback::ReadbackContract;
use closer_contracts::id::{ActorId, AttemptId, Text};
use closer_contracts::item::ReadbackMethod;
use closer_contracts::refs::{Plain, TypedValue};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode};
use closer_contracts::work::{Comparison, TargetVersion};
use closer_protocol::port::Observed;
use closer_protocol::view::Attempt;
use closer_protocol::{Input, Reply, View, episode, readback};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What a person says about effects that only a person can look at.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmDraft {
    /// The attempts; none to have those told that wait.
    pub attempt_ids: Vec<AttemptId>,
    /// Whether the targets show the effects.
    pub shows: bool,
}

/// The method that an attempt is read back by, where that is a person.
fn by_person(view: &View, attempt_id: &AttemptId) -> Option<ReadbackMethod> {
    let method = episode::readback_method(view, attempt_id)?;
    let contract = ReadbackContract::read(&method.contract.0);
    matches!(contract, Ok(ReadbackContract::Person(_))).then_some(method)
}

pub(super) async fn confirm(space: &dyn Space, identity: &ActorId, draft: ConfirmDraft) -> Result<Answer, Error> {
    let view = space.view();
    if draft.attempt_ids.is_empty() {
        return Ok(waiting(&view));
    }
    if !view.state.is_user(identity) {
        let reason = "what a target shows is confirmed by the user";
        let denial = Denial::new(RefusalCode::MissingAuthority, CheckKind::Authority, reason).of(identity);
        return Ok(Answer::refused(&[denial]));
    }
    let (mut told, mut text) = (Vec::new(), Vec::new());
    for attempt_id in &draft.attempt_ids {
        let view = space.view();
        let known = view.attempts.get(attempt_id).zip(by_person(&view, attempt_id));
        let Some((attempt, method)) = known else {
            return Ok(Answer::not_found("effect that a person confirms", attempt_id.as_str()));
        };
        let observed = seen(space, identity, attempt, &method, draft.shows);
        let now = space.moment().now;
        let evidence = readback::draft(&view, &method, &observed, &attempt.action.target, Some(attempt), &[], &now)?;
        let reply = match space.payload(evidence, None) {
            Ok(submission) => space.submit(Input::Payload(submission)).await?,
            Err(fault) => Reply::Refused(vec![fault.into()]),
        };
        if let Reply::Refused(denials) = &reply {
            return Ok(Answer::refused(denials));
        }
        let status = space.view().attempts.get(attempt_id).map(|attempt| attempt.status);
        told.push(json!({ "attempt_id": attempt_id, "status": status }));
        text.push(format!("{attempt_id}: {}", status.map_or_else(String::new, |status| status.to_string())));
    }
    Ok(Answer::done(json!({ "attempts": told }), text))
}

/// What a person says the target shows: what was expected, or nothing of it.
fn seen(space: &dyn Space, identity: &ActorId, attempt: &Attempt, method: &ReadbackMethod, shows: bool) -> Observed {
    let expected = attempt.action.expected_postcondition.expectations.iter();
    let fields = expected.filter(|expectation| expectation.comparison == Comparison::Equals).map(|expectation| {
        let value = match (&expectation.value.0, shows) {
            (value, true) => value.clone(),
            (Value::Bool(truth), false) => Value::Bool(!truth),
            (_, false) => Value::Null,
        };
        (expectation.field.to_string(), value)
    });
    Observed::Seen {
        target: attempt.action.target.clone(),
        observed_at: space.moment().now,
        target_version: TargetVersion::Unknown,
        observation: TypedValue {
            r#type: method.target_type.clone(),
            value: Plain(Value::Object(fields.collect::<Map<String, Value>>())),
        },
        limitations: vec![Text::new(format!("`{identity}` looked and says so"))],
    }
}

/// The effects that wait for a person to look.
fn waiting(view: &View) -> Answer {
    let open = readback::unreconciled(view);
    let open: Vec<&Attempt> = open
        .iter()
        .filter(|attempt_id| by_person(view, attempt_id).is_some())
        .filter_map(|attempt_id| view.attempts.get(attempt_id))
        .collect();
    let line = |attempt: &&Attempt| {
        let (id, action) = (&attempt.intent.attempt_id, &attempt.action);
        format!("{id}  {} on {} of {}", action.operation, action.target.address, action.target.account)
    };
    let told = |attempt: &&Attempt| {
        json!({
            "attempt_id": attempt.intent.attempt_id, "operation": attempt.action.operation,
            "target": attempt.action.target, "parameters": attempt.action.parameters, "status": attempt.status,
        })
    };
    let data = json!({ "unconfirmed": open.iter().map(told).collect::<Vec<_>>() });
    Answer::done(data, open.iter().map(line).collect())
}
