//! Work of an agent outside: asked for as the identity that came in.

use super::{Listing, Nothing, page, told};
use crate::http::door::{Call, Door};
use crate::http::problem::Problem;
use crate::request::{Request, WorkRequest};
use axum::response::Response;
use closer_contracts::id::WorkId;
use std::sync::Arc;

fn work_id(call: &Call) -> WorkId {
    call.place("work_id").into()
}

async fn ask(door: &Arc<Door>, call: &Call, asked: WorkRequest) -> Result<Response, Problem> {
    told(&door.ask(call.identity()?, Request::Work(asked)).await?)
}

/// Lists what waits for the caller's answer.
pub(crate) async fn list(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let asked: Listing = call.query()?;
    let data = door.ask(call.identity()?, Request::Work(WorkRequest::List { all: asked.all })).await?;
    told(&page::cut(data, "work", "work_id", asked.after.as_deref(), asked.limit)?)
}

/// Takes up that which has waited longest.
pub(crate) async fn take_next(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    ask(door, &call, WorkRequest::Take { work_id: None }).await
}

/// Takes up one.
pub(crate) async fn take(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    ask(door, &call, WorkRequest::Take { work_id: Some(work_id(&call)) }).await
}

/// Shows its packet.
pub(crate) async fn read(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    ask(door, &call, WorkRequest::Read { work_id: work_id(&call) }).await
}

/// Hands its answer in: the body as it was written.
pub(crate) async fn hand_in(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let answer = String::from_utf8(call.body.to_vec()).map_err(|_| Problem::unreadable("the body is not UTF-8"))?;
    ask(door, &call, WorkRequest::Return { work_id: work_id(&call), answer }).await
}

/// Says what became of it.
pub(crate) async fn why(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    ask(door, &call, WorkRequest::Why { work_id: work_id(&call) }).await
}

/// Says where a packet stands that it led to.
pub(crate) async fn packet(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let Nothing {} = call.query()?;
    let decision_id = call.place("packet_id").into();
    ask(door, &call, WorkRequest::Packet { decision_id }).await
}
