//! Signing in: a single-use link or a typed code, confirmed by a form, so that nothing that merely looks at a link uses it up.

use super::shown::Shown;
use super::trouble::{Trouble, rendered};
use super::visit::{cookie, field, fields, is_same_origin, local, query};
use crate::http::{Door, Peer, whole};
use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Instant;

/// The longest name of a device that is kept, in characters.
const DEVICE_MAX: usize = 80;
/// The longest form of it, in bytes.
const FORM_BYTES_MAX: usize = 4 * 1024;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn {
    title: Shown,
    problem: Option<Shown>,
    link: Option<Shown>,
    to: Shown,
}

pub(super) async fn ask(uri: Uri) -> Response {
    let to = query(&uri, "to").unwrap_or_default();
    let link = query(&uri, "link").map(|link| Shown::new(&link));
    rendered(&SignIn { title: "Sign in".into(), problem: None, link, to: local(&to).into() })
}

pub(super) async fn sign_in(State(door): State<Arc<Door>>, request: Request) -> Response {
    taken(&door, request).await.unwrap_or_else(IntoResponse::into_response)
}

async fn taken(door: &Arc<Door>, request: Request) -> Result<Response, Trouble> {
    let (head, body) = request.into_parts();
    let peer = head.extensions.get::<Peer>().copied();
    let client = peer.map(|peer| door.client(peer, &head.headers).to_string()).unwrap_or_default();
    if peer.is_none_or(|peer| peer.crowded) {
        return Err(Trouble::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "busy",
            "as many connections are open as are served",
        ));
    }
    if !is_same_origin(door, &head.headers) {
        return Err(Trouble::new(StatusCode::FORBIDDEN, "other_origin", "this form did not come from a page of ours"));
    }
    if !door.failures.admits(&client, Instant::now()) {
        return Err(Trouble::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_failures",
            "too many attempts; wait a minute",
        ));
    }
    let form = fields(&whole(body, FORM_BYTES_MAX).await?);
    let offered = field(&form, "secret").unwrap_or_default();
    let to = local(field(&form, "to").unwrap_or_default());
    let opened = door
        .access
        .sign_in(offered, &device(&head.headers), door.settings.session_ms, &door.now())
        .map_err(|error| Trouble::unexpected(&error.to_string()))?;
    let Some(opened) = opened else {
        let problem = "This link or code opens nothing: it was used, is over, or was mistyped.";
        let page = SignIn { title: "Sign in".into(), problem: Some(problem.into()), link: None, to: to.into() };
        return Ok((StatusCode::FORBIDDEN, rendered(&page)).into_response());
    };
    tracing::info!(identity = %opened.session.identity, session = opened.session.session_id, "signed in");
    let headers = [(header::SET_COOKIE, cookie(door, &opened.secret)), (header::LOCATION, to.to_owned())];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// What a browser calls itself, in a few words.
fn device(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let browser = ["Firefox", "Edg", "OPR", "Chrome", "Safari"].into_iter().find(|name| agent.contains(name));
    let system =
        ["iPhone", "iPad", "Android", "Windows", "Mac OS X", "Linux"].into_iter().find(|name| agent.contains(name));
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (_, _) if agent.is_empty() => "a browser that does not say".to_owned(),
        (_, _) => agent.chars().take(DEVICE_MAX).collect(),
    }
}
