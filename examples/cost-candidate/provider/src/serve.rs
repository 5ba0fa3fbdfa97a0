//! The provider on a socket.

use crate::provider::{Answer, Ask, Provider};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// The largest body that is read, in bytes.
const BODY_BYTES_MAX: usize = 65_536;

/// Why a connection is dropped without an answer.
#[derive(Debug)]
struct Dropped;

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dropped as asked")
    }
}

impl std::error::Error for Dropped {}

/// Answers connections until the process ends.
pub(crate) async fn serve(listener: TcpListener, provider: Arc<Provider>) -> Result<(), String> {
    loop {
        let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
        let provider = Arc::clone(&provider);
        tokio::spawn(async move {
            let service = service_fn(move |request| respond(request, Arc::clone(&provider)));
            // A connection that ends early, ours or theirs, is an ordinary end here.
            let _: Result<(), hyper::Error> =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn respond(request: Request<Incoming>, provider: Arc<Provider>) -> Result<Response<Full<Bytes>>, Dropped> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
        return Ok(written(&Answer::too_long()));
    };
    let body = body.to_bytes();
    let is_admin = head.uri.path().starts_with("/admin/");
    let answering = Arc::clone(&provider);
    let answer = tokio::task::spawn_blocking(move || {
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        answering.answer(&Ask {
            method: head.method.as_str(),
            path: head.uri.path(),
            query: head.uri.query(),
            idempotency_key: header("idempotency-key"),
            if_match: header(IF_MATCH.as_str()),
            body: &body,
        })
    })
    .await
    .map_err(|_| Dropped)?;
    let behaviour = provider.behaviour();
    if !is_admin {
        tokio::time::sleep(Duration::from_millis(behaviour.late_ms)).await;
        if answer.applied && behaviour.drop_after_apply {
            return Err(Dropped);
        }
    }
    Ok(written(&answer))
}

fn written(answer: &Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(answer.body.to_string()));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(etag) = answer.version.and_then(|version| HeaderValue::from_str(&format!("\"{version}\"")).ok()) {
        headers.insert(ETAG, etag);
    }
    response
}
