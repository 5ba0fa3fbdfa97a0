//! What is restricted, and stopping at once: two taps, as the issuer that the person is appointed as.

use super::frame::Frame;
use super::shown::{Shown, When};
use super::trouble::{Trouble, rendered};
use super::visit::Visit;
use crate::http::Door;
use crate::request::{Outcome, Request, RestrictDraft};
use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use closer_contracts::Check;
use closer_contracts::id::Text;
use closer_contracts::item::AffectedScope;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

#[derive(Deserialize)]
struct Listed {
    restrictions: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    covers: Shown,
    reason: Shown,
    issued_by: Shown,
    reconcile_by: Option<String>,
    awaits_reconciliation: bool,
    independent_owner: Option<Shown>,
    reconciliation_obligation_id: Option<Shown>,
}

struct Row {
    covers: Shown,
    reason: Shown,
    issued_by: Shown,
    by: Option<When>,
    awaits_reconciliation: bool,
    independent_owner: Option<Shown>,
    reconciliation_obligation_id: Option<Shown>,
}

#[derive(Deserialize)]
struct Budgets {
    budgets: Vec<Budget>,
}

#[derive(Deserialize)]
struct Budget {
    dimension: Shown,
    used: u64,
    reserved: u64,
    limit: Option<u64>,
}

impl Budget {
    fn limit_words(&self) -> String {
        self.limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string())
    }
}

#[derive(Template)]
#[template(path = "restrictions.html")]
struct Restrictions {
    frame: Frame,
    made: Option<Shown>,
    restrictions: Vec<Row>,
    budgets: Vec<Budget>,
}

pub(super) async fn list(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let listed: Listed = visit.ask(door, Request::RestrictionList).await?;
    let Budgets { budgets } = visit.ask(door, Request::BudgetShow).await?;
    let now = door.now();
    let row = |entry: Entry| Row {
        by: When::of(entry.reconcile_by.as_deref(), &now),
        covers: entry.covers,
        reason: entry.reason,
        issued_by: entry.issued_by,
        awaits_reconciliation: entry.awaits_reconciliation,
        independent_owner: entry.independent_owner,
        reconciliation_obligation_id: entry.reconciliation_obligation_id,
    };
    let made = visit.query("made").map(|made| match made.as_str() {
        "again" => "That was restricted already; the repeat is on record.".into(),
        _ => "Restricted. From now on nothing that it covers is sent.".into(),
    });
    let frame = Frame::new(door, &visit, "Restrictions", "restrictions");
    Ok(rendered(&Restrictions {
        frame,
        made,
        restrictions: listed.restrictions.into_iter().map(row).collect(),
        budgets,
    }))
}

#[derive(Deserialize)]
struct Offered {
    independent_owner: Option<Shown>,
    choices: Vec<Covered>,
}

#[derive(Deserialize)]
struct Covered {
    covers: Shown,
    affected_scope: Value,
}

struct Choice {
    value: Shown,
    words: Shown,
}

#[derive(Template)]
#[template(path = "stop.html")]
struct Stop {
    frame: Frame,
    problem: Option<Shown>,
    issuer: Shown,
    owner: Option<Shown>,
    choices: Vec<Choice>,
}

pub(super) async fn ask(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    form(door, &visit, None).await
}

async fn form(door: &Arc<Door>, visit: &Visit, problem: Option<String>) -> Result<Response, Trouble> {
    let issuer = door.settings.restricts_as(visit.identity());
    let mut offered: Offered = visit.ask(door, Request::RestrictionChoices { issuer: issuer.clone() }).await?;
    // What the person was looking at stands first.
    if let Some(obligation) = visit.query("obligation") {
        let looked_at =
            |choice: &Covered| choice.affected_scope.get("obligation_id").and_then(Value::as_str) == Some(&obligation);
        offered.choices.sort_by_key(|choice| !looked_at(choice));
    }
    let choices = offered
        .choices
        .into_iter()
        .map(|choice| Choice { value: choice.affected_scope.to_string().into(), words: choice.covers })
        .collect();
    let frame = Frame { live: false, ..Frame::new(door, visit, "Stop now", "stop") };
    let (problem, issuer) = (problem.map(Into::into), issuer.as_str().into());
    Ok(rendered(&Stop { frame, problem, issuer, owner: offered.independent_owner, choices }))
}

pub(super) async fn stop(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let reason = Text::from(visit.field("reason").unwrap_or_default().trim());
    let scope: Result<AffectedScope, _> = serde_json::from_str(visit.field("what").unwrap_or_default());
    let Ok(scope) = scope else {
        return Err(Trouble::new(StatusCode::BAD_REQUEST, "unreadable", "the form does not say what to stop"));
    };
    if reason.check().is_err() {
        let page = form(door, &visit, Some("Say why, in at most 4096 bytes.".to_owned())).await?;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    }
    let issuer = door.settings.restricts_as(visit.identity());
    let answer = door.answer(&issuer, Request::Restrict(draft(scope, reason))).await?;
    match answer.outcome {
        Outcome::Done => {
            let again = answer.data.get("recorded").and_then(Value::as_array).is_some_and(Vec::is_empty);
            let made = if again { "again" } else { "now" };
            Ok(Redirect::to(&format!("/restrictions?made={made}")).into_response())
        }
        Outcome::Refused | Outcome::NotFound | Outcome::Corruption | Outcome::Failed => {
            let problem = crate::http::Problem::of(&answer);
            let page = form(door, &visit, Some(format!("Not restricted: {}", problem.detail))).await?;
            Ok((problem.status, page).into_response())
        }
    }
}

fn draft(scope: AffectedScope, reason: Text) -> RestrictDraft {
    let mut draft = RestrictDraft {
        grant_id: None,
        operation: None,
        targets: None,
        obligation_id: None,
        reason,
        reconcile_within_ms: None,
    };
    match scope {
        AffectedScope::Space {} => {}
        AffectedScope::Operation { operation } => draft.operation = Some(operation),
        AffectedScope::Target { operation, targets } => {
            draft.operation = operation;
            draft.targets = Some(targets);
        }
        AffectedScope::Grant { grant_id } => draft.grant_id = Some(grant_id),
        AffectedScope::Obligation { obligation_id } => draft.obligation_id = Some(obligation_id),
    }
    draft
}
