//! Streamable HTTP at `/mcp`: each request bears its own token, and is asked as that token's identity.
//!
//! No session is kept: a request that names one is answered like any other, and stealing one gains nothing.

use super::server::{Agents, Asks};
use crate::access::Scope;
use crate::http::{Caller, Door, Peer, Problem};
use crate::request::{Answer, Request};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{Request as HttpRequest, StatusCode};
use axum::response::IntoResponse;
use axum::routing::any;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode};
use closer_protocol::port::Pending;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;
use std::time::Instant;

/// Where it is reached.
pub(crate) const PATH: &str = "/mcp";

/// Asks the space behind the door, as whoever the request's own token speaks for.
struct Behind(Arc<Door>);

impl Asks for Behind {
    fn ask<'a>(&'a self, context: &'a RequestContext<RoleServer>, request: Request) -> Pending<'a, Answer> {
        Box::pin(async move {
            let caller = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
            let Some(caller) = caller else {
                let reason = "nobody is known to have made this request";
                let denial = Denial::new(RefusalCode::Unauthenticated, CheckKind::Authentication, reason);
                return Answer::refused(&[denial]);
            };
            let answer = crate::request::answer(&*self.0.space, &caller.identity, request).await;
            answer.unwrap_or_else(|error| Answer::failed(&error))
        })
    }
}

/// The route, for the router of everything that is served.
pub(crate) fn served(door: &Arc<Door>) -> Router<Arc<Door>> {
    let asks = Arc::new(Behind(Arc::clone(door)));
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(door.settings.body_bytes_max)
        .with_allowed_origins([door.origin.clone()])
        // Which hosts lead here, the door has asked before.
        .disable_allowed_hosts();
    let service = StreamableHttpService::new(
        move || Ok(Agents::new(Arc::clone(&asks))),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let handler = move |State(door): State<Arc<Door>>, request: HttpRequest<Body>| {
        let service = service.clone();
        async move {
            match admitted(&door, request) {
                Ok(request) => service.handle(request).await.map(Body::new).into_response(),
                Err(problem) => problem.into_response(),
            }
        }
    };
    Router::new().route(PATH, any(handler))
}

/// The request with whoever made it, once it has passed what every request passes.
fn admitted(door: &Door, mut request: HttpRequest<Body>) -> Result<HttpRequest<Body>, Problem> {
    let peer = request.extensions().get::<Peer>().copied();
    let peer = peer.ok_or_else(|| Problem::unauthenticated("nobody is at the other end"))?;
    if peer.crowded {
        let detail = "as many connections are open as are served";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail));
    }
    let client = door.client(peer, request.headers());
    let caller = door.come_in(request.headers(), Scope::Work, client)?;
    if !door.limit.admits(&caller.name, Instant::now()) {
        let detail = format!("at most {} requests a minute", door.settings.requests_per_minute);
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail));
    }
    request.extensions_mut().insert(caller);
    Ok(request)
}
