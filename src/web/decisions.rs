//! Decisions: what became of every answer, and the way to take one back.

use super::bench::kind;
use super::frame::Frame;
use super::shown::{Shown, When};
use super::trouble::{Trouble, rendered};
use super::visit::Visit;
use crate::http::Door;
use crate::request::{AnswerDraft, Outcome, Request};
use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use closer_contracts::Digest;
use closer_contracts::audit::DecisionType;
use closer_contracts::id::DecisionId;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most answers that one page shows.
const SHOWN_MAX: usize = 50;

#[derive(Deserialize)]
struct Listed {
    decisions: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    decision_id: Shown,
    packet_id: Shown,
    question: Option<Shown>,
    option: Shown,
    decision_type: DecisionType,
    answered_by: Shown,
    answered_at: String,
    packet_digest: Shown,
    fate: Shown,
    fate_text: Shown,
    attempts: Vec<Value>,
    can_be_taken_back: bool,
}

/// An answer as a page shows it.
pub(super) struct Given {
    pub(super) packet_id: Shown,
    pub(super) question: Option<Shown>,
    pub(super) option: Shown,
    pub(super) kind_words: &'static str,
    pub(super) sign: &'static str,
    pub(super) mood: &'static str,
    pub(super) answered_by: Shown,
    pub(super) at: When,
    pub(super) packet_digest: Shown,
    pub(super) version: Shown,
    pub(super) fate_text: Shown,
    pub(super) can_be_taken_back: bool,
    /// Whether something was begun under it.
    pub(super) begun: bool,
    id: Shown,
}

#[derive(Template)]
#[template(path = "decisions.html")]
struct Decisions {
    frame: Frame,
    answers: Vec<Given>,
    total: usize,
    next: Option<Shown>,
}

/// The answers that were given, of one packet or all.
pub(super) async fn given(
    door: &Arc<Door>,
    visit: &Visit,
    packet_id: Option<DecisionId>,
) -> Result<Vec<Given>, Trouble> {
    let of_one = packet_id.is_some();
    let listed: Listed = visit.ask(door, Request::DecisionList { packet_id }).await?;
    let now = door.now();
    let one = |entry: Entry| {
        let (_, kind_words, sign) = kind(Some(entry.decision_type));
        let mood = match entry.fate.as_str() {
            "ran" => "good",
            "unknown" | "no_effect" | "not_sent" | "refused" => "bad",
            _ => "plain",
        };
        Some(Given {
            version: entry
                .packet_digest
                .as_str()
                .trim_start_matches("sha256:")
                .chars()
                .take(12)
                .collect::<String>()
                .into(),
            question: entry.question.filter(|_| !of_one),
            at: When::of(Some(&entry.answered_at), &now)?,
            begun: !entry.attempts.is_empty(),
            packet_id: entry.packet_id,
            option: entry.option,
            kind_words,
            sign,
            mood,
            answered_by: entry.answered_by,
            packet_digest: entry.packet_digest,
            fate_text: entry.fate_text,
            can_be_taken_back: entry.can_be_taken_back,
            id: entry.decision_id,
        })
    };
    Ok(listed.decisions.into_iter().filter_map(one).collect())
}

pub(super) async fn list(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let all = given(door, &visit, None).await?;
    let total = all.len();
    let after = visit.query("after");
    let begin = after.map_or(0, |after| all.iter().position(|given| given.id == *after).map_or(0, |found| found + 1));
    let answers: Vec<Given> = all.into_iter().skip(begin).take(SHOWN_MAX).collect();
    let next = answers.last().map(|given| given.id.clone()).filter(|_| begin + answers.len() < total);
    let frame = Frame::new(door, &visit, "Decisions", "decisions");
    Ok(rendered(&Decisions { frame, answers, total, next }))
}

/// Takes an authorization back: the user refuses the same packet, so that the grant it led to is revoked.
pub(super) async fn withdraw(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let decision_id = DecisionId::from(visit.place("packet_id"));
    let Ok(shown) = Digest::parse(visit.field("digest").unwrap_or_default()) else {
        return Err(Trouble::new(
            StatusCode::BAD_REQUEST,
            "unreadable",
            "the form does not say which version it is of",
        ));
    };
    let request = Request::BenchDecide(AnswerDraft {
        decision_id,
        option: "refuse".to_owned(),
        packet_digest: Some(shown),
        amend: BTreeMap::new(),
        expect: BTreeMap::new(),
    });
    let answer = door.answer(visit.identity(), request).await?;
    match answer.outcome {
        Outcome::Done => Ok(Redirect::to("/decisions").into_response()),
        Outcome::Refused | Outcome::NotFound | Outcome::Corruption | Outcome::Failed => {
            Err(crate::http::Problem::of(&answer).into())
        }
    }
}
