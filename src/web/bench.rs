//! The Bench and its packets: one question a page, its deadline and consequence first, the exact authority beside the answer.

mod packet;

pub(super) use packet::kind;

use super::frame::Frame;
use super::memory::Look;
use super::shown::{Shown, When};
use super::trouble::{Trouble, rendered};
use super::visit::Visit;
use crate::http::Door;
use crate::request::{AnswerDraft, Outcome, Request};
use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use closer_contracts::Digest;
use closer_contracts::id::DecisionId;
use closer_contracts::refusal::RefusalCode;
use closer_contracts::time::Timestamp;
use packet::Note;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most packets that one page shows.
const SHOWN_MAX: usize = 100;

#[derive(Deserialize)]
struct Listed {
    packets: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    decision_id: Shown,
    status: Shown,
    question: Shown,
    obligation_ids: Vec<Shown>,
    deadline: Option<String>,
}

struct Row {
    decision_id: Shown,
    question: Shown,
    obligation_ids: Vec<Shown>,
    deadline: Option<When>,
    overdue: bool,
    seen: bool,
    changed: bool,
}

#[derive(Template)]
#[template(path = "bench.html")]
struct Bench {
    frame: Frame,
    packets: Vec<Row>,
    later: Vec<Row>,
    total: usize,
    open: usize,
}

pub(super) async fn list(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let mut listed: Listed = visit.ask(door, Request::BenchList { all: false }).await?;
    let now = door.now();
    listed.packets.sort_by(|one, other| {
        let at =
            |entry: &Entry| entry.deadline.as_deref().and_then(|at| Timestamp::parse(at).ok()).map(|at| at.unix_ms());
        (at(one).is_none(), at(one)).cmp(&(at(other).is_none(), at(other)))
    });
    let total = listed.packets.len();
    let (mut packets, mut later) = (Vec::new(), Vec::new());
    for entry in listed.packets {
        let id = DecisionId::from(entry.decision_id.as_str());
        let look = door.memory.look(visit.identity(), &id);
        let put_off = look.as_ref().and_then(|look| look.later_until.as_ref()).is_some_and(|until| now < *until);
        let row = Row {
            changed: look
                .as_ref()
                .is_some_and(|look| packet::digest_of(door, &id).is_some_and(|now| now != look.digest)),
            seen: look.is_some(),
            overdue: entry.status == *"overdue",
            deadline: When::of(entry.deadline.as_deref(), &now),
            decision_id: entry.decision_id,
            question: entry.question,
            obligation_ids: entry.obligation_ids,
        };
        match put_off {
            true => later.push(row),
            false => packets.push(row),
        }
    }
    packets.truncate(SHOWN_MAX);
    let open = match packets.is_empty() {
        true => packet::open_obligations(door),
        false => 0,
    };
    let frame = Frame::new(door, &visit, "The Bench", "bench");
    Ok(rendered(&Bench { frame, packets, later, total, open }))
}

pub(super) async fn show(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    packet::page(door, &visit, Note::None).await
}

/// Takes an answer. One to another version of the packet gives the newest version, with nothing chosen.
pub(super) async fn answer(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let decision_id = DecisionId::from(visit.place("packet_id"));
    let Some(option) = visit.field("option").filter(|option| !option.is_empty()).map(str::to_owned) else {
        let page = packet::page(door, &visit, Note::Problem("Choose an answer first.".into())).await?;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    };
    let Ok(shown) = Digest::parse(visit.field("digest").unwrap_or_default()) else {
        return Err(Trouble::new(
            StatusCode::BAD_REQUEST,
            "unreadable",
            "the form does not say which version it is of",
        ));
    };
    let asked_again = visit.field("again").is_some();
    if visit.idle_ms > door.settings.ask_again_ms && !asked_again && packet::authorizes(door, &decision_id, &option) {
        let page = packet::page(door, &visit, Note::Again).await?;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    }
    let request = Request::BenchDecide(AnswerDraft {
        decision_id: decision_id.clone(),
        amend: packet::amended(door, &visit, &decision_id, &option),
        expect: BTreeMap::new(),
        option,
        packet_digest: Some(shown),
    });
    let answer = door.answer(visit.identity(), request).await?;
    if answer.outcome == Outcome::Done {
        let now = door.now();
        if let Some(look) = door.memory.look(visit.identity(), &decision_id) {
            door.memory.change(visit.identity(), &decision_id, &look, |look| look.answered_at = Some(now));
        }
        return Ok(Redirect::to(&format!("/packets/{decision_id}")).into_response());
    }
    let problem = crate::http::Problem::of(&answer);
    if answer.outcome == Outcome::NotFound && !packet::exists(door, &decision_id) {
        return Err(problem.into());
    }
    let text = match answer.code {
        Some(RefusalCode::StalePacket) => {
            "This is not the version you answered, or it no longer waits. Nothing was recorded. Look at it again and choose anew."
                .to_owned()
        }
        Some(_) | None => format!("Not recorded: {}", problem.detail),
    };
    let page = packet::page(door, &visit, Note::Problem(text)).await?;
    Ok((problem.status, page).into_response())
}

/// Puts a packet off, at most until its deadline.
pub(super) async fn later(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let decision_id = DecisionId::from(visit.place("packet_id"));
    let hours: u64 = visit.field("hours").and_then(|hours| hours.parse().ok()).unwrap_or(1).clamp(1, 24);
    let now = door.now();
    let wanted = now.plus_ms(hours * 3_600_000);
    let until = packet::deadline(door, &decision_id).map_or(wanted.clone(), |deadline| deadline.min(wanted));
    if let Some(look) = door.memory.look(visit.identity(), &decision_id) {
        let put_off = |look: &mut Look| look.later_until = Some(until);
        door.memory.change(visit.identity(), &decision_id, &look, put_off);
    }
    Ok(Redirect::to("/").into_response())
}
