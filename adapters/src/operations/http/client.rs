//! The client that all requests go through.

use super::Location;
use crate::keys::read_secret;
use closer_contracts::branch;
use reqwest::header::{ACCEPT, AUTHORIZATION, ETAG, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Request, Response, Url};
use rustls::crypto::CryptoProvider;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The most that any contract can ask to read of a body, in bytes.
const BODY_BYTES_CEILING: usize = 65_536;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// A client without redirects, ambient proxies, repetition or kept connections. Made at its first use.
#[derive(Debug, Clone, Default)]
pub(crate) struct HttpClient {
    made: Arc<OnceLock<Result<Client, String>>>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) status: u16,
    /// The version the provider itself states (`ETag`), without its quotes.
    pub(crate) version: Option<String>,
    pub(crate) body: Body,
}

/// The body of a response.
#[derive(Debug)]
pub(crate) enum Body {
    /// All of it.
    Whole(Vec<u8>),
    /// It has more bytes than are read.
    TooLong,
    /// It broke off.
    BrokeOff(String),
}

/// Why nothing came back.
#[derive(Debug)]
pub(crate) enum SendError {
    /// Certainly nothing was sent.
    NotSent(String),
    /// Something may have been.
    Unknown(String),
}

/// A connection is used once: one that was kept and that the provider closes meanwhile would be told as a failure after
/// sending.
fn make() -> Result<Client, String> {
    // The provider of cryptography is the process's own choice; another that was chosen before is as good.
    let _: Result<(), Arc<CryptoProvider>> = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT)
        .build()
        .map_err(|error| chain(&error))
}

impl HttpClient {
    fn client(&self) -> Result<&Client, String> {
        self.made.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    /// The connection for whoever writes its requests itself: as bounded in what it follows and repeats as ours.
    pub(crate) fn connection(&self) -> Result<Client, String> {
        self.client().cloned()
    }

    /// Builds a request.
    pub(crate) fn request(
        &self,
        method: Method,
        url: Url,
        mut headers: HeaderMap,
        body: Option<Vec<u8>>,
        location: &Location,
    ) -> Result<Request, String> {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(file) = &location.bearer_file {
            let token = read_secret(Path::new(file)).map_err(|error| error.to_string())?;
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
                .map_err(|_| format!("`{file}` holds no bearer token"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut request = Request::new(method, url);
        *request.headers_mut() = headers;
        *request.body_mut() = body.map(Into::into);
        Ok(request)
    }

    /// Sends a request once and reads the answer within its bounds.
    pub(crate) async fn send(&self, mut request: Request, location: &Location) -> Result<Exchange, SendError> {
        let client = self.client().map_err(SendError::NotSent)?;
        *request.timeout_mut() = Some(Duration::from_millis(location.deadline_ms));
        let response = client.execute(request).await.map_err(|error| {
            let before_sending = error.is_builder() || error.is_connect();
            match branch!("http.certainly_not_sent", before_sending) {
                true => SendError::NotSent(chain(&error)),
                false => SendError::Unknown(chain(&error)),
            }
        })?;
        let status = response.status().as_u16();
        let version = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok()).map(unquoted);
        let body = read(response, location.response_bytes_max.min(BODY_BYTES_CEILING)).await;
        Ok(Exchange { status, version, body })
    }
}

fn unquoted(etag: &str) -> String {
    let strong = etag.strip_prefix("W/").unwrap_or(etag);
    strong.trim_matches('"').to_owned()
}

async fn read(mut response: Response, bytes_max: usize) -> Body {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Body::Whole(bytes),
            Ok(Some(chunk)) if bytes.len().saturating_add(chunk.len()) > bytes_max => return Body::TooLong,
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Err(error) => return Body::BrokeOff(chain(&error)),
        }
    }
}

/// An error with its causes, without the address, which the record has already.
fn chain(error: &reqwest::Error) -> String {
    let mut text = match error.is_timeout() {
        true => "the time was over".to_owned(),
        false => "the exchange failed".to_owned(),
    };
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
