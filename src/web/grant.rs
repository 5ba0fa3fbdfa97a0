//! The grant form: once, up to so often, until a date; bounds that begin at exactly the values shown. Before it is given it is
//! held against what was asked before, and only what was held against it is given.

use super::frame::Frame;
use super::shown::Shown;
use super::trouble::{Trouble, rendered};
use super::visit::Visit;
use crate::access::digest;
use crate::http::Door;
use crate::request::{GrantDraft, Outcome, Request};
use crate::space::Space;
use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use closer_contracts::briefcase::GrantProposal;
use closer_contracts::id::DecisionId;
use closer_contracts::item::ParameterBound;
use closer_contracts::refs::Plain;
use closer_contracts::time::Timestamp;
use serde::Deserialize;
use std::sync::Arc;

/// How far ahead the form's date lies at first, in milliseconds: 30 days.
const AHEAD_MS: u64 = 30 * 24 * 3_600_000;
/// The most values of one parameter.
const VALUES_MAX: usize = 100;

struct Bound {
    parameter: Shown,
    is_number: bool,
    least: Shown,
    most: Shown,
    values: Shown,
}

#[derive(Deserialize)]
struct Tried {
    would_have_answered: usize,
    refused_by_a_person: usize,
    packets: Vec<Past>,
}

#[derive(Deserialize)]
struct Past {
    packet_id: Shown,
    question: Shown,
    refused: bool,
}

#[derive(Template)]
#[template(path = "grant.html")]
struct Form {
    frame: Frame,
    id: Shown,
    question: Shown,
    problem: Option<Shown>,
    operations: Vec<Shown>,
    targets: Vec<Shown>,
    calls: Shown,
    until: Shown,
    bounds: Vec<Bound>,
    tried: Option<Tried>,
    tried_as: Shown,
}

/// What the packet asks, where it asks for an action.
fn asked(door: &Door, id: &DecisionId) -> Result<(Shown, GrantProposal), Trouble> {
    let view = door.space.view();
    let packet =
        view.packets.get(id).ok_or_else(|| Trouble::new(StatusCode::NOT_FOUND, "not_found", "no such packet"))?;
    let grant = packet.packet.body.requested_authorization.as_ref().map(|asked| asked.grant().clone());
    let none = || Trouble::new(StatusCode::NOT_FOUND, "not_found", "this packet asks for no action");
    Ok((packet.packet.body.question.as_str().into(), grant.ok_or_else(none)?))
}

pub(super) async fn ask(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    form(door, &visit, None, None)
}

/// The form, with what was sent where something was, else with exactly what the packet shows.
fn form(
    door: &Arc<Door>,
    visit: &Visit,
    problem: Option<String>,
    tried: Option<(Tried, String)>,
) -> Result<Response, Trouble> {
    let id = DecisionId::from(visit.place("packet_id"));
    let (question, grant) = asked(door, &id)?;
    let sent = |name: &str| visit.field(name).map(str::to_owned);
    let bounds = grant.parameter_bounds.iter().enumerate().map(|(index, bound)| {
        let value = bound.one_of.iter().flatten().next();
        let number = value.and_then(Plain::as_integer);
        let values: Vec<String> = bound.one_of.iter().flatten().map(plain).collect();
        let at = |name: &str, shown: Option<i64>| {
            let shown = shown.or(number).map(|number| number.to_string()).unwrap_or_default();
            Shown::from(sent(&format!("{name}-{index}")).unwrap_or(shown))
        };
        Bound {
            parameter: bound.parameter.as_str().into(),
            is_number: bound.one_of.is_none() || number.is_some(),
            least: at("least", bound.at_least),
            most: at("most", bound.at_most),
            values: sent(&format!("values-{index}")).unwrap_or_else(|| values.join("\n")).into(),
        }
    });
    let bounds = bounds.collect();
    let date = door.now().plus_ms(AHEAD_MS);
    let until = sent("until").unwrap_or_else(|| date.as_str().chars().take(10).collect());
    let (tried, tried_as) = tried.map_or((None, String::new()), |(tried, tried_as)| (Some(tried), tried_as));
    let frame = Frame { live: false, ..Frame::new(door, visit, "A grant for more than one", "bench") };
    Ok(rendered(&Form {
        frame,
        id: id.as_str().into(),
        question,
        problem: problem.map(Into::into),
        operations: grant.allowed_operations.iter().map(|operation| operation.as_str().into()).collect(),
        targets: grant
            .targets
            .iter()
            .map(|target| format!("{} of {}", target.address, target.account).into())
            .collect(),
        calls: sent("calls").unwrap_or_else(|| "1".to_owned()).into(),
        until: until.into(),
        bounds,
        tried,
        tried_as: tried_as.into(),
    }))
}

fn plain(value: &Plain) -> String {
    value.as_text().map_or_else(|| value.0.to_string(), str::to_owned)
}

/// The draft that a form describes, or what is wrong with it.
fn draft(visit: &Visit, packet_id: DecisionId, grant: &GrantProposal) -> Result<GrantDraft, String> {
    let number = |name: &str| -> Result<i64, String> {
        let text = visit.field(name).unwrap_or_default().trim();
        text.parse().map_err(|_| format!("{name}: a whole number"))
    };
    let mut parameter_bounds = Vec::new();
    for (index, bound) in grant.parameter_bounds.iter().enumerate() {
        let shown = bound.one_of.iter().flatten().next();
        let one_of_numbers = bound.one_of.is_none() || shown.and_then(Plain::as_integer).is_some();
        let mut drafted = ParameterBound { at_least: None, at_most: None, one_of: None, ..bound.clone() };
        if one_of_numbers {
            let (least, most) = (number(&format!("least-{index}"))?, number(&format!("most-{index}"))?);
            if least > most {
                return Err(format!("{}: at least {least} is more than at most {most}", bound.parameter));
            }
            (drafted.at_least, drafted.at_most) = (Some(least), Some(most));
        } else {
            let text = visit.field(&format!("values-{index}")).unwrap_or_default();
            let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            if lines.is_empty() || lines.len() > VALUES_MAX {
                return Err(format!("{}: 1 to {VALUES_MAX} values, one a line", bound.parameter));
            }
            // What the packet shows is kept in its own type; whatever a person adds is text.
            let known = |line: &str| bound.one_of.iter().flatten().find(|value| plain(value) == line).cloned();
            drafted.one_of =
                Some(lines.into_iter().map(|line| known(line).unwrap_or_else(|| Plain(line.into()))).collect());
        }
        parameter_bounds.push(drafted);
    }
    let calls = u64::try_from(number("calls")?).ok().filter(|calls| (1..=1_000_000).contains(calls));
    let date = visit.field("until").unwrap_or_default();
    let expiry = Timestamp::parse(&format!("{date}T23:59:59Z")).map_err(|_| "until: a date".to_owned())?;
    let calls = calls.ok_or_else(|| "calls: 1 to 1000000".to_owned())?;
    Ok(GrantDraft { packet_id, parameter_bounds, calls: Some(calls), expiry })
}

/// Tries the grant out, or gives exactly what was tried.
pub(super) async fn taken(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let id = DecisionId::from(visit.place("packet_id"));
    let (_, grant) = asked(door, &id)?;
    let draft = match draft(&visit, id.clone(), &grant) {
        Ok(draft) if draft.expiry > door.now() => draft,
        Ok(_) => return Ok(unfit(form(door, &visit, Some("until: a date to come".to_owned()), None)?)),
        Err(reason) => return Ok(unfit(form(door, &visit, Some(reason), None)?)),
    };
    let drafted = serde_json::to_string(&draft).map_err(|error| Trouble::unexpected(&error.to_string()))?;
    let tried_as = digest(&format!("{} {drafted}", visit.csrf()));
    let gives = visit.field("step") == Some("give") && visit.field("tried") == Some(&tried_as);
    if !gives {
        let tried: Tried = visit.ask(door, Request::GrantTry(draft)).await?;
        return form(door, &visit, None, Some((tried, tried_as)));
    }
    let answer = door.answer(visit.identity(), Request::GrantGive(draft)).await?;
    if let Some(waits) = answer.data.get("waits") {
        let delta_id = waits.get("delta_id").and_then(serde_json::Value::as_str).unwrap_or_default();
        let told = answer.text.get(1).map_or("", String::as_str);
        let told = format!("Not given: {told}. They join with `closer change join {delta_id}`.");
        return form(door, &visit, Some(told), None);
    }
    match answer.outcome {
        Outcome::Done => Ok(Redirect::to(&format!("/packets/{id}?granted=1")).into_response()),
        Outcome::Refused | Outcome::NotFound | Outcome::Corruption | Outcome::Failed => {
            let problem = crate::http::Problem::of(&answer);
            let page = form(door, &visit, Some(format!("Not given: {}", problem.detail)), None)?;
            Ok((problem.status, page).into_response())
        }
    }
}

fn unfit(page: Response) -> Response {
    (StatusCode::UNPROCESSABLE_ENTITY, page).into_response()
}
