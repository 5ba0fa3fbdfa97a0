//! Reading: what is on record, as it stands.

use super::{Listing, Nothing, page, told};
use crate::http::door::{Call, Door};
use crate::http::problem::Problem;
use crate::http::{metrics, openapi};
use crate::request::Request;
use crate::space::Space;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use closer_contracts::id::{DecisionId, ObligationId};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paging {
    after: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfObligation {
    obligation_id: Option<ObligationId>,
    after: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfPacket {
    packet_id: Option<DecisionId>,
    after: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    words: String,
    after: Option<String>,
    limit: Option<usize>,
}

pub(crate) async fn obligations(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let asked: Listing = call.query()?;
    let data = door.ask(call.identity()?, Request::ObligationList { all: asked.all }).await?;
    told(&page::cut(data, "obligations", "obligation_id", asked.after.as_deref(), asked.limit)?)
}

pub(crate) async fn obligation(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    let obligation_id = call.place("obligation_id").into();
    told(&door.ask(call.identity()?, Request::ObligationShow { obligation_id }).await?)
}

pub(crate) async fn trace(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    let obligation_id = call.place("obligation_id").into();
    told(&door.ask(call.identity()?, Request::ObligationTrace { obligation_id }).await?)
}

pub(crate) async fn why(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    let obligation_id = call.place("obligation_id").into();
    told(&door.ask(call.identity()?, Request::ObligationWhy { obligation_id }).await?)
}

pub(crate) async fn reentries(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let asked: OfObligation = call.query()?;
    let request = Request::ReentryList { obligation_id: asked.obligation_id };
    let mut data = door.ask(call.identity()?, request).await?;
    for entry in data.get_mut("reentries").and_then(|entries| entries.as_array_mut()).into_iter().flatten() {
        let id = entry.pointer("/reentry/reentry_id").cloned().unwrap_or_default();
        if let Some(members) = entry.as_object_mut() {
            members.insert("reentry_id".to_owned(), id);
        }
    }
    told(&page::cut(data, "reentries", "reentry_id", asked.after.as_deref(), asked.limit)?)
}

pub(crate) async fn packets(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let asked: Listing = call.query()?;
    let data = door.ask(call.identity()?, Request::BenchList { all: asked.all }).await?;
    told(&page::cut(data, "packets", "decision_id", asked.after.as_deref(), asked.limit)?)
}

pub(crate) async fn packet(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    let decision_id = call.place("packet_id").into();
    told(&door.ask(call.identity()?, Request::BenchShow { decision_id }).await?)
}

pub(crate) async fn decisions(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let asked: OfPacket = call.query()?;
    let data = door.ask(call.identity()?, Request::DecisionList { packet_id: asked.packet_id }).await?;
    told(&page::cut(data, "decisions", "decision_id", asked.after.as_deref(), asked.limit)?)
}

pub(crate) async fn receipts(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let asked: Paging = call.query()?;
    let data = door.ask(call.identity()?, Request::ReceiptList).await?;
    told(&page::cut(data, "receipts", "receipt_id", asked.after.as_deref(), asked.limit)?)
}

pub(crate) async fn receipt(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    let receipt = call.place("receipt").to_owned();
    told(&door.ask(call.identity()?, Request::ReceiptShow { receipt }).await?)
}

pub(crate) async fn restrictions(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let asked: Paging = call.query()?;
    let data = door.ask(call.identity()?, Request::RestrictionList).await?;
    told(&page::cut(data, "restrictions", "restriction_id", asked.after.as_deref(), asked.limit)?)
}

pub(crate) async fn choices(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    let issuer = door.settings.restricts_as(call.identity()?);
    told(&door.ask(call.identity()?, Request::RestrictionChoices { issuer }).await?)
}

pub(crate) async fn briefcase(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    told(&door.ask(call.identity()?, Request::BriefcaseShow).await?)
}

pub(crate) async fn evidence(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    let evidence_id = call.place("evidence_id").into();
    told(&door.ask(call.identity()?, Request::EvidenceShow { evidence_id }).await?)
}

pub(crate) async fn budgets(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    told(&door.ask(call.identity()?, Request::BudgetShow).await?)
}

pub(crate) async fn search(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let asked: Words = call.query()?;
    let data = door.ask(call.identity()?, Request::Search { words: asked.words }).await?;
    told(&page::cut(data, "found", "id", asked.after.as_deref(), asked.limit)?)
}

pub(crate) async fn description(_: &Arc<Door>, _: Call) -> Result<Response, Problem> {
    told(&openapi::document())
}

pub(crate) async fn figures(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, content_type)], metrics::page(door)).into_response())
}

pub(crate) async fn health(_: &Arc<Door>, _: Call) -> Result<Response, Problem> {
    told(&json!({ "status": "ok" }))
}

pub(crate) async fn readiness(door: &Arc<Door>, _: Call) -> Result<Response, Problem> {
    if *door.stopping.borrow() {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the service is being stopped"));
    }
    if door.space.moment().clock == closer_monitor::ClockStanding::Unreliable {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "clock_unreliable", "the clock cannot be trusted"));
    }
    told(&json!({ "status": "ok" }))
}
