//! What a person is told when a page cannot be shown.

use super::shown::Shown;
use crate::http::Problem;
use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};

/// Why there is no page.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It is told.
    Told(Box<Problem>),
    /// Nobody is signed in; the path is where the person wanted to go.
    SignIn(String),
}

impl Trouble {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: &str) -> Self {
        Self::Told(Box::new(Problem::new(status, code, detail)))
    }

    pub(super) fn unexpected(reason: &str) -> Self {
        tracing::error!(reason, "a page could not be made");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", "this page could not be made; the log says why")
    }
}

impl From<Problem> for Trouble {
    fn from(problem: Problem) -> Self {
        Self::Told(Box::new(problem))
    }
}

#[derive(Template)]
#[template(path = "trouble.html")]
struct Page {
    title: Shown,
    detail: Shown,
    code: Shown,
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        match self {
            Self::SignIn(to) => {
                let to: String = form_urlencoded::byte_serialize(to.as_bytes()).collect();
                Redirect::to(&format!("/signin?to={to}")).into_response()
            }
            Self::Told(problem) => {
                let page = Page {
                    title: problem.status.canonical_reason().unwrap_or("Trouble").into(),
                    detail: problem.detail.as_str().into(),
                    code: problem.code.into(),
                };
                (problem.status, rendered(&page)).into_response()
            }
        }
    }
}

/// A page as HTML.
pub(super) fn rendered(page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => Html(text).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
