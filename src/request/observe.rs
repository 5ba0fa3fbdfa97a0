//! Observing: begun by the user, reported with the grants it leads to, and said wherever the record is shown while it is on.
//! Whether it is on, and what it is about, is the core's to say ([`closer_protocol::observe`]).

use super::Answer;
use crate::error::Error;
use crate::space::Space;
use closer_adapters::McpServers;
use closer_adapters::mcp::{NotForwarded, forward};
use closer_adapters::operations::McpTool;
use closer_contracts::canonical;
use closer_contracts::id::{ActorId, ArtifactId};
use closer_contracts::refs::{ActorRef, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode};
use closer_contracts::time::Timestamp;
use closer_protocol::call::Call;
use closer_protocol::observe::{self, Foreseen, Observing, Proposed, Report, Tally, UngovernedCall};
use closer_protocol::{Input, Moment, Reply, View};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How often a call is judged anew because something has changed since.
const JUDGED_MAX: usize = 4;

/// What is asked about observing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum ObserveRequest {
    /// Begins it, or has it end earlier.
    Begin {
        /// When it is to end.
        until: Option<Timestamp>,
        /// Or how many days after it was first started.
        days: Option<u64>,
    },
    /// Counts what was observed and proposes grants.
    Report {},
}

pub(super) async fn answer(space: &dyn Space, identity: &ActorId, asked: ObserveRequest) -> Result<Answer, Error> {
    match asked {
        ObserveRequest::Begin { until, days } => begin(space, identity, until, days).await,
        ObserveRequest::Report {} => reported(&space.view(), &space.moment()),
    }
}

/// What is said wherever the record is shown while observing is on.
pub(crate) fn banner(view: &View, at: &Moment) -> Option<String> {
    let (_, until) = view.ungoverned.period().filter(|_| observe::is_on(view, at))?;
    Some(format!(
        "mode \"observe\" is on until {until}: calls of operations without a grant are forwarded ungoverned; nobody permitted them"
    ))
}

/// Says on an answer that shows the record that observing is on, where it is.
pub(super) fn marked(mut answer: Answer, view: &View, at: &Moment) -> Answer {
    if let Some(banner) = banner(view, at) {
        if let Value::Object(members) = &mut answer.data {
            members.insert("mode".to_owned(), json!("observe"));
        }
        answer.text.insert(0, banner);
    }
    answer
}

async fn begin(
    space: &dyn Space,
    identity: &ActorId,
    until: Option<Timestamp>,
    days: Option<u64>,
) -> Result<Answer, Error> {
    if let Some(until) = observe::wanted(&space.view(), until, days, &space.moment()) {
        let observing = Observing { observing_id: ArtifactId::new(space.fresh("observing")), until };
        let producer = ActorRef { actor_id: identity.clone(), role: ProducerRole::User };
        let reply = match space.artifact(observing.into(), producer, None) {
            Ok(submission) => space.submit(Input::Artifact(submission)).await?,
            Err(fault) => Reply::Refused(vec![fault.into()]),
        };
        if let Reply::Refused(denials) = &reply {
            return Ok(Answer::refused(denials));
        }
    }
    let view = space.view();
    let until = view.ungoverned.period().map(|(_, until)| until.clone());
    let text = banner(&view, &space.moment());
    let text = text.unwrap_or_else(|| "observing is over: every call is governed".to_owned());
    Ok(Answer::done(json!({ "on": observe::is_on(&view, &space.moment()), "until": until }), vec![text]))
}

/// Records a call with what would become of it, and forwards it where it may be.
pub(super) async fn forwarded(
    space: &dyn Space,
    (servers, tool): (&McpServers, &McpTool),
    mut call: UngovernedCall,
) -> Result<Answer, Error> {
    let mut answer = Answer::refused(&[]);
    for _ in 0..JUDGED_MAX {
        (call.foreseen, call.code) = observe::foreseen(&space.view(), &call, &space.moment());
        let producer = ActorRef { actor_id: call.caller.clone(), role: ProducerRole::Participant };
        let reply = match space.artifact(call.clone().into(), producer, None) {
            Ok(submission) => space.submit(Input::Artifact(submission)).await?,
            Err(fault) => Reply::Refused(vec![fault.into()]),
        };
        answer = match &reply {
            Reply::Recorded(references) if references.iter().any(|reference| reference.id == call.ungoverned_id) => {
                return Ok(handed_on(space, (servers, tool), &call).await);
            }
            Reply::Recorded(_) => {
                told(&call, &json!(null), Some("this message was forwarded before; its answer is not kept"))
            }
            Reply::Refused(denials) => Answer::refused(denials),
        };
        if reply.refusal().is_none_or(|denial| denial.code != RefusalCode::StaleVersion) {
            return Ok(answer);
        }
    }
    Ok(answer)
}

async fn handed_on(space: &dyn Space, (servers, tool): (&McpServers, &McpTool), call: &UngovernedCall) -> Answer {
    let released = observe::release(&space.view(), &call.ungoverned_id, &space.moment());
    let ungoverned = match released {
        Ok(ungoverned) => ungoverned,
        Err(denial) => return Answer::refused(&[denial]),
    };
    match forward(ungoverned, tool, servers).await {
        Ok(response) => told(call, &response, None),
        Err(NotForwarded::NotSent(reason)) => {
            let reason = format!("it was not forwarded: {reason}");
            Answer::refused(&[Denial::new(RefusalCode::NoAnswer, CheckKind::Runtime, reason).of(&call.ungoverned_id)])
        }
        Err(NotForwarded::Unknown(reason)) => told(call, &json!(null), Some(&reason)),
    }
}

/// A forwarded call, for whoever called; `unknown` where nothing says what became of it.
fn told(call: &UngovernedCall, response: &Value, unknown: Option<&str>) -> Answer {
    let code = if unknown.is_some() { Some(RefusalCode::OutcomeUnknown) } else { None };
    let data = json!({
        "mode": "observe", "fate": "ungoverned", "ungoverned_id": call.ungoverned_id, "foreseen": call.foreseen,
        "foreseen_code": call.code, "response": response, "reason": unknown, "code": code,
    });
    Answer::done(data, vec![format!("{} was forwarded ungoverned", call.ungoverned_id)])
}

fn counts(tally: Tally) -> Value {
    json!({ "pass": tally.pass, "ask": tally.ask, "refuse": tally.refuse })
}

fn in_words(tally: Tally) -> String {
    format!("{} pass, {} ask, {} refuse", tally.pass, tally.ask, tally.refuse)
}

fn reported(view: &View, at: &Moment) -> Result<Answer, Error> {
    let report = observe::report(view, at);
    let Report { period, counted, proposed } = &report;
    let Some((began_at, until)) = period else {
        return Ok(Answer::absent("nothing was observed: start a gate with `closer gate --observe`".to_owned()));
    };
    let grants = proposed_toml(proposed)?;
    let tools: Vec<Value> = counted
        .iter()
        .map(|(operation, counted)| {
            json!({ "operation": operation, "observed": counts(counted.observed), "promised": counts(counted.promised) })
        })
        .collect();
    let data = json!({
        "began_at": began_at, "until": until, "on": observe::is_on(view, at), "tools": tools, "grants": grants,
    });
    let mut text = vec![format!("observed from {began_at} until {until}")];
    for (operation, counted) in counted {
        let (observed, promised) = (in_words(counted.observed), in_words(counted.promised));
        text.push(format!("{operation}: {observed}; under the grants below: {promised}"));
    }
    match grants.is_empty() {
        true => text.push("no grant is proposed".to_owned()),
        false => {
            text.push(
                "# Proposed from what was observed: exactly that and nothing more. Widen what you know better."
                    .to_owned(),
            );
            text.extend(grants.lines().map(str::to_owned));
        }
    }
    Ok(Answer::done(data, text))
}

/// The proposed grants as a person pastes them into the deployment file.
fn proposed_toml(proposed: &[Proposed]) -> Result<String, Error> {
    let grants: Result<Vec<Value>, Error> = proposed.iter().map(grant).collect();
    let grants = grants?;
    if grants.is_empty() {
        return Ok(String::new());
    }
    toml::to_string(&json!({ "grant": grants }))
        .map_err(|error| Error::World(format!("the grants have no TOML: {error}")))
}

fn grant(proposed: &Proposed) -> Result<Value, Error> {
    let bounds: Vec<Value> = proposed
        .values
        .iter()
        .map(|(name, values)| json!({ "operation": proposed.operation, "parameter": name, "one_of": values }))
        .collect();
    let named = canonical::digest_of(&(&proposed.operation, &proposed.targets, &bounds))?.to_string();
    let short = named.trim_start_matches("sha256:").get(..12).unwrap_or_default();
    Ok(json!({
        "grant_id": format!("grant.observed-{short}"), "allowed_operations": [proposed.operation],
        "expiry": "now+30d", "targets": proposed.targets, "parameter_bounds": bounds,
    }))
}

/// A call that nothing has been said about yet.
pub(super) fn call_of(space: &dyn Space, call: Call) -> UngovernedCall {
    UngovernedCall {
        ungoverned_id: ArtifactId::new(space.fresh("ungoverned")),
        caller: call.caller,
        obligation_id: call.obligation_id,
        transport_key: call.transport_key,
        proposal: call.proposal,
        endpoint: call.endpoint,
        foreseen: Foreseen::Ask,
        code: Some(RefusalCode::MissingAuthority),
    }
}
