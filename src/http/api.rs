//! The handlers of the API: each makes one request out of what came, and tells the answer.

pub(crate) mod changes;
pub(crate) mod events;
pub(super) mod page;
pub(super) mod read;
pub(super) mod schema;
pub(super) mod work;
pub(super) mod write;

use super::problem::Problem;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;

/// The query of a list: its open entries or all of them, from one place on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listing {
    #[serde(default)]
    all: bool,
    after: Option<String>,
    limit: Option<usize>,
}

/// The query of what is asked for by its path alone.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// An answer in JSON.
pub(super) fn told(data: &Value) -> Result<Response, Problem> {
    Ok(([(header::CONTENT_TYPE, "application/json")], data.to_string()).into_response())
}
