//! What every request of the API passes before its handler has it: host, rate, token, size, repeats.

use super::door::{Call, Door, Peer};
use super::problem::Problem;
use super::replies::{Known, Told};
use super::routes::Route;
use axum::body::{Body, Bytes};
use axum::extract::{RawPathParams, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of the header that makes a repeated write harmless.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The longest such key, in bytes.
const KEY_BYTES_MAX: usize = 256;
/// How long a request's body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(20);

/// Answers one request of a route.
pub(super) async fn serve(
    door: &Arc<Door>,
    route: &'static Route,
    places: RawPathParams,
    request: Request,
) -> Response {
    match admit(door, route, &places, request).await {
        Ok(call) => match call.header(IDEMPOTENCY_KEY).map(str::to_owned) {
            Some(key) if route.method == Method::POST => once(door, route, key, call).await,
            Some(_) | None => carry_out(door, route, call).await,
        },
        Err(problem) => problem.into_response(),
    }
}

async fn carry_out(door: &Arc<Door>, route: &'static Route, call: Call) -> Response {
    (route.handler)(door, call).await.unwrap_or_else(IntoResponse::into_response)
}

async fn admit(
    door: &Arc<Door>,
    route: &'static Route,
    places: &RawPathParams,
    request: Request,
) -> Result<Call, Problem> {
    let (head, body) = request.into_parts();
    let peer = head.extensions.get::<Peer>().copied();
    let peer = peer.ok_or_else(|| Problem::unauthenticated("nobody is at the other end"))?;
    if peer.crowded && !route.urgent {
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "busy",
            "as many connections are open as are served",
        ));
    }
    let client = door.client(peer, &head.headers);
    let caller = route.scope.map(|scope| door.come_in(&head.headers, scope, client)).transpose()?;
    let name = caller.as_ref().map_or_else(|| client.to_string(), |caller| caller.name.clone());
    if !route.urgent && !door.limit.admits(&name, Instant::now()) {
        let detail = format!("at most {} requests a minute", door.settings.requests_per_minute);
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail));
    }
    let body = whole(body, door.settings.body_bytes_max).await?;
    let places = places.iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    Ok(Call { caller, places, uri: head.uri, headers: head.headers, body, crowded: peer.crowded })
}

/// The whole body, within its bounds of size and time.
pub(crate) async fn whole(body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    let read = tokio::time::timeout(BODY_WITHIN, Limited::new(body, bytes_max).collect()).await;
    match read {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            let detail = format!("a body has at most {bytes_max} bytes");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "oversize", detail))
        }
        Ok(Err(error)) => Err(Problem::unreadable(format!("the body broke off: {error}"))),
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body did not arrive in time")),
    }
}

/// Carries out a write once, however often it is sent under its key.
async fn once(door: &Arc<Door>, route: &'static Route, key: String, call: Call) -> Response {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Problem::unreadable(format!("an idempotency key has 1 to {KEY_BYTES_MAX} bytes")).into_response();
    }
    let who = call.caller.as_ref().map_or("", |caller| caller.name.as_str());
    let key = format!("{who} {key}");
    let asked = [route.id.as_bytes(), call.uri.path().as_bytes(), &call.body];
    match door.replies.begin(&key, &asked) {
        Known::Other => {
            let detail = "this idempotency key stands for another request";
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reuse_changed_content", detail).into_response()
        }
        Known::UnderWay => {
            let detail = "the same request is being carried out";
            Problem::new(StatusCode::CONFLICT, "under_way", detail).into_response()
        }
        Known::Answered(told) => {
            let mut response = replayed(told);
            response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
            response
        }
        Known::Nothing => {
            let response = carry_out(door, route, call).await;
            let told = keep(response).await;
            let repeatable = told.as_ref().is_none_or(|told| told.status.is_server_error());
            door.replies.end(&key, told.clone().filter(|_| !repeatable));
            told.map_or_else(|| StatusCode::INTERNAL_SERVER_ERROR.into_response(), replayed)
        }
    }
}

async fn keep(response: Response) -> Option<Told> {
    let (head, body) = response.into_parts();
    let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or("application/json").to_owned();
    let body = body.collect().await.ok()?.to_bytes();
    Some(Told { status: head.status, content_type, body })
}

fn replayed(told: Told) -> Response {
    let content_type = HeaderValue::from_str(&told.content_type);
    let content_type = content_type.unwrap_or(HeaderValue::from_static("application/json"));
    (told.status, [(header::CONTENT_TYPE, content_type)], told.body).into_response()
}

/// What no page of another site may do with ours, on every answer.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Turns away what names another host, and puts the headers on every answer.
pub(super) async fn outermost(door: Arc<Door>, request: Request, next: Next) -> Response {
    let begin = Instant::now();
    let method = request.method().clone();
    let open = matches!(request.uri().path(), "/healthz" | "/readyz");
    let route = request.extensions().get::<axum::extract::MatchedPath>().map(|path| path.as_str().to_owned());
    let mut response = match open || door.is_own_host(request.headers(), request.uri()) {
        true => next.run(request).await,
        false => {
            let detail = format!("this is {}; the request names another host", door.origin);
            Problem::new(StatusCode::MISDIRECTED_REQUEST, "other_host", detail).into_response()
        }
    };
    let route = route.unwrap_or_else(|| "other".to_owned());
    let took = begin.elapsed();
    tracing::info!(%method, route, status = response.status().as_u16(), took_us = took.as_micros(), "request");
    door.counts.count(&route, response.status(), took);
    protect(response.headers_mut(), door.is_secure());
    response
}

fn protect(headers: &mut HeaderMap, secure: bool) {
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if secure {
        let year = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, year);
    }
}
