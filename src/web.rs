//! The Bench in a browser: pages written by the server, every form a plain form, usable without JavaScript.
//!
//! Shows nothing that the API does not and asks through the same requests. Whatever agents and sources wrote is made visible
//! as text on its way into a page (`shown`). Deliberately lacks decisions, and a build of JavaScript.

mod bench;
mod decisions;
mod devices;
mod frame;
mod grant;
mod memory;
mod obligations;
mod picture;
mod restrictions;
mod search;
mod shown;
mod sign_in;
mod trouble;
mod visit;

pub(crate) use memory::Memory;

use crate::http::{Door, Peer, changes, whole};
use axum::Router;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, on};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use trouble::Trouble;
use visit::Visit;

/// The longest form, in bytes.
const FORM_BYTES_MAX: usize = 64 * 1024;

type Made<'a> = Pin<Box<dyn Future<Output = Result<Response, Trouble>> + Send + 'a>>;

struct Page {
    /// Whether it takes a form.
    takes: bool,
    path: &'static str,
    /// Whether it restricts, so that it is heard however many others wait.
    urgent: bool,
    make: for<'a> fn(&'a Arc<Door>, Visit) -> Made<'a>,
}

const fn shows(path: &'static str, make: for<'a> fn(&'a Arc<Door>, Visit) -> Made<'a>) -> Page {
    Page { takes: false, path, urgent: false, make }
}

const fn takes(path: &'static str, make: for<'a> fn(&'a Arc<Door>, Visit) -> Made<'a>) -> Page {
    Page { takes: true, path, urgent: false, make }
}

/// Every page for whoever is signed in.
static PAGES: &[Page] = &[
    shows("/", |door, visit| Box::pin(bench::list(door, visit))),
    shows("/packets/{packet_id}", |door, visit| Box::pin(bench::show(door, visit))),
    takes("/packets/{packet_id}", |door, visit| Box::pin(bench::answer(door, visit))),
    takes("/packets/{packet_id}/later", |door, visit| Box::pin(bench::later(door, visit))),
    takes("/packets/{packet_id}/withdraw", |door, visit| Box::pin(decisions::withdraw(door, visit))),
    shows("/packets/{packet_id}/grant", |door, visit| Box::pin(grant::ask(door, visit))),
    takes("/packets/{packet_id}/grant", |door, visit| Box::pin(grant::taken(door, visit))),
    shows("/work", |door, visit| Box::pin(obligations::work(door, visit))),
    shows("/obligations", |door, visit| Box::pin(obligations::list(door, visit))),
    shows("/obligations/{obligation_id}", |door, visit| Box::pin(obligations::show(door, visit))),
    shows("/decisions", |door, visit| Box::pin(decisions::list(door, visit))),
    shows("/restrictions", |door, visit| Box::pin(restrictions::list(door, visit))),
    Page { urgent: true, ..shows("/stop", |door, visit| Box::pin(restrictions::ask(door, visit))) },
    Page { urgent: true, ..takes("/stop", |door, visit| Box::pin(restrictions::stop(door, visit))) },
    shows("/search", |door, visit| Box::pin(search::search(door, visit))),
    shows("/evidence/{evidence_id}", |door, visit| Box::pin(search::evidence(door, visit))),
    shows("/devices", |door, visit| Box::pin(devices::list(door, visit))),
    takes("/devices/code", |door, visit| Box::pin(devices::code(door, visit))),
    takes("/devices/end", |door, visit| Box::pin(devices::end(door, visit))),
    shows("/changes", |door, _| Box::pin(async move { Ok(changes::open(door)?) })),
];

/// The pages.
pub(crate) fn pages() -> Router<Arc<Door>> {
    let mut router = Router::new();
    for page in PAGES {
        let filter = match page.takes {
            true => axum::routing::MethodFilter::POST,
            false => axum::routing::MethodFilter::GET,
        };
        let serve = move |State(door): State<Arc<Door>>, places: RawPathParams, request: Request| async move {
            served(&door, page, &places, request).await.unwrap_or_else(IntoResponse::into_response)
        };
        router = router.route(page.path, on(filter, serve));
    }
    router
        .route("/signin", get(sign_in::ask).post(sign_in::sign_in))
        .route("/assets/closer.css", get(|| asset("text/css; charset=utf-8", include_str!("web/assets/closer.css"))))
        .route(
            "/assets/closer.js",
            get(|| asset("text/javascript; charset=utf-8", include_str!("web/assets/closer.js"))),
        )
        .route("/assets/closer.svg", get(|| asset("image/svg+xml", include_str!("web/assets/closer.svg"))))
}

async fn asset(content_type: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "max-age=300")], text).into_response()
}

/// What every page passes: room, rate, who is signed in, and of a form where it came from.
async fn served(
    door: &Arc<Door>,
    page: &'static Page,
    places: &RawPathParams,
    request: Request,
) -> Result<Response, Trouble> {
    let (head, body) = request.into_parts();
    let crowded = head.extensions.get::<Peer>().is_none_or(|peer| peer.crowded);
    if crowded && !page.urgent {
        return Err(Trouble::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "busy",
            "as many connections are open as are served",
        ));
    }
    let Some(session) = visit::session(door, &head.headers)? else {
        let wanted = match head.method == Method::GET {
            true => head.uri.path_and_query().map_or("/", |path| path.as_str()),
            false => head.uri.path(),
        };
        return Err(Trouble::SignIn(wanted.to_owned()));
    };
    if !page.urgent && !door.limit.admits(&session.session_id, Instant::now()) {
        return Err(Trouble::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_requests",
            "too many requests; wait a moment",
        ));
    }
    let form = match page.takes {
        true => {
            let fields = visit::fields(&whole(body, FORM_BYTES_MAX).await?);
            if !visit::is_same_origin(door, &head.headers) || !visit::is_own_form(&session, &fields) {
                let detail =
                    "this form did not come from a page of ours, or its session is over; go back and look again";
                return Err(Trouble::new(StatusCode::FORBIDDEN, "other_origin", detail));
            }
            fields
        }
        false => Vec::new(),
    };
    let idle_ms = heard(door, &session.session_id);
    let places = places.iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    (page.make)(door, Visit { session, places, uri: head.uri, form, idle_ms }).await
}

/// When each device was heard last, so that one that was left alone is asked again.
#[derive(Debug, Default)]
pub(crate) struct Heard(Mutex<BTreeMap<String, i64>>);

/// The most devices that are told apart; beyond that, all are taken as just come.
const HEARD_MAX: usize = 10_000;

/// Notes that a device was heard, and tells how long ago it was before; a device that is new here was never idle.
fn heard(door: &Door, session_id: &str) -> u64 {
    let now = door.now().unix_ms();
    let mut heard = door.heard.0.lock().unwrap_or_else(PoisonError::into_inner);
    if heard.len() >= HEARD_MAX {
        heard.clear();
    }
    let before = heard.insert(session_id.to_owned(), now);
    before.map_or(0, |before| u64::try_from(now.saturating_sub(before)).unwrap_or(0))
}
