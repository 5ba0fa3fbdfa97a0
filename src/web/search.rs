//! Search: where some words occur; and one piece of evidence whole.

use super::frame::Frame;
use super::shown::{Shown, When};
use super::trouble::{Trouble, rendered};
use super::visit::Visit;
use crate::http::Door;
use crate::request::Request;
use askama::Template;
use axum::response::Response;
use closer_contracts::id::EvidenceId;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// The most that one page shows.
const SHOWN_MAX: usize = 100;

#[derive(Deserialize)]
struct Told {
    found: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    kind: Shown,
    id: Shown,
    text: Shown,
}

struct Found {
    kind: Shown,
    id: Shown,
    text: Shown,
    link: Shown,
}

#[derive(Deserialize)]
struct Recorded {
    evidence: Value,
    admitted_at: String,
    digest: Shown,
}

#[derive(Template)]
#[template(path = "evidence.html")]
struct Evidence {
    frame: Frame,
    id: Shown,
    at: Option<When>,
    digest: Shown,
    text: Shown,
}

/// One piece of evidence, as it was recorded: data, and nothing that a page obeys.
pub(super) async fn evidence(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let evidence_id = EvidenceId::from(visit.place("evidence_id"));
    let told: Recorded = visit.ask(door, Request::EvidenceShow { evidence_id: evidence_id.clone() }).await?;
    let text = serde_json::to_string_pretty(&told.evidence).unwrap_or_default();
    let frame = Frame { live: false, ..Frame::new(door, &visit, "Evidence", "search") };
    let (id, at) = (evidence_id.as_str().into(), When::of(Some(&told.admitted_at), &door.now()));
    Ok(rendered(&Evidence { frame, id, at, digest: told.digest, text: text.into() }))
}

#[derive(Template)]
#[template(path = "search.html")]
struct Search {
    frame: Frame,
    words: Shown,
    found: Vec<Found>,
    total: usize,
}

pub(super) async fn search(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let words = visit.query("words").unwrap_or_default();
    let told: Told = visit.ask(door, Request::Search { words: words.clone() }).await?;
    let total = told.found.len();
    let one = |one: One| Found {
        link: match one.kind.as_str() {
            "obligation" => format!("/obligations/{}", one.id).into(),
            "evidence" => format!("/evidence/{}", one.id).into(),
            "packet" => format!("/packets/{}", one.id).into(),
            _ => Shown::default(),
        },
        kind: one.kind,
        id: one.id,
        text: one.text,
    };
    let found = told.found.into_iter().take(SHOWN_MAX).map(one).collect();
    let frame = Frame { live: false, ..Frame::new(door, &visit, "Search", "search") };
    Ok(rendered(&Search { frame, words: words.into(), found, total }))
}
