//! Search: where some words occur.

use super::frame::Frame;
use super::shown::Shown;
use super::trouble::{Trouble, rendered};
use super::visit::Visit;
use crate::http::Door;
use crate::request::Request;
use askama::Template;
use axum::response::Response;
use serde::Deserialize;
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
