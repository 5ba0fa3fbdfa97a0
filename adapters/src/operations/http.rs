//! One HTTP request, sent once.
//!
//! No redirect is followed, no proxy of the environment is used, nothing is repeated behind the runtime's back and no
//! connection is shared between calls, so that "the connection was refused" means "nothing was sent". Whatever goes wrong
//! after that leaves the outcome unknown.

mod client;
mod location;

pub(crate) use client::{Body, HttpClient, SendError};
pub(crate) use location::{Location, require_private};

use super::permitted::Permitted;
use super::report::{not_sent, responded, unknown};
use crate::declared::Names;
use client::Exchange;
use closer_contracts::branch;
use closer_contracts::canonical;
use closer_contracts::fault::Fault;
use closer_contracts::item::EffectClass;
use closer_contracts::refs::Plain;
use closer_protocol::port::{Clock, Performed};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, IF_MATCH};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What an HTTP operation may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// `GET`: what a read-only operation asks, and all that it may.
    Get,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
    /// `DELETE`.
    Delete,
}

impl Method {
    const fn as_http(self) -> reqwest::Method {
        match self {
            Self::Get => reqwest::Method::GET,
            Self::Post => reqwest::Method::POST,
            Self::Put => reqwest::Method::PUT,
            Self::Patch => reqwest::Method::PATCH,
            Self::Delete => reqwest::Method::DELETE,
        }
    }
}

/// Contract `http`: sends one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// Where and how.
    pub endpoint: Location,
    /// What is asked for.
    pub method: Method,
    /// The members of the JSON body by the parameter that fills each. No body where empty.
    #[serde(default)]
    pub body: BTreeMap<String, String>,
    /// The header that carries the idempotency key; `null` where the provider has none. Default `Idempotency-Key`. A `GET`
    /// carries none.
    #[serde(default = "idempotency_header")]
    pub idempotency_header: Option<String>,
    /// The parameter with the version that the target must still have; it is sent as `If-Match`. Default: none.
    #[serde(default)]
    pub if_match_parameter: Option<String>,
}

#[expect(clippy::unnecessary_wraps, reason = "the default of a member that may be null")]
fn idempotency_header() -> Option<String> {
    Some("Idempotency-Key".to_owned())
}

impl Http {
    /// Whether it asks only where the operation reads, and changes only where it does not.
    fn check_method(&self, effect_class: EffectClass) -> Result<(), Fault> {
        let reads = self.method == Method::Get;
        if reads != (effect_class == EffectClass::ReadOnly) {
            return Err(Fault::schema("a read-only operation asks with `GET`, and no other does").within("method"));
        }
        let carries = match (self.body.is_empty(), &self.if_match_parameter) {
            (false, _) => Some("body"),
            (true, Some(_)) => Some("if_match_parameter"),
            (true, None) => None,
        };
        match carries.filter(|_| reads) {
            Some(member) => Err(Fault::schema("a `GET` has neither a body nor a precondition").within(member)),
            None => Ok(()),
        }
    }

    pub(super) fn check(&self, effect_class: EffectClass, names: Names<'_>) -> Result<(), Fault> {
        self.endpoint.check(names).map_err(|fault| fault.within("endpoint"))?;
        self.check_method(effect_class)?;
        for (member, parameter) in &self.body {
            names.parameter(parameter).map_err(|reason| Fault::schema(reason).within(member).within("body"))?;
        }
        if let Some(name) = &self.idempotency_header
            && HeaderName::from_bytes(name.as_bytes()).is_err()
        {
            return Err(Fault::schema(format!("`{name}` is no name of a header")).within("idempotency_header"));
        }
        let precondition = self.if_match_parameter.as_ref().map_or(Ok(()), |parameter| names.parameter(parameter));
        precondition.map_err(|reason| Fault::schema(reason).within("if_match_parameter"))
    }
}

/// Carries out one request.
pub(super) async fn perform(
    permitted: &Permitted,
    contract: &Http,
    client: &HttpClient,
    clock: &dyn Clock,
) -> Performed {
    let request = match prepare(permitted, contract, client) {
        Ok(request) => request,
        Err(reason) => return not_sent(reason),
    };
    let sent_at = clock.now().0;
    match client.send(request, &contract.endpoint).await {
        Err(SendError::NotSent(reason)) => not_sent(reason),
        Err(SendError::Unknown(reason)) => unknown(sent_at, reason),
        Ok(Exchange { status, version, body }) => {
            responded(clock, sent_at, json!({ "status": status, "version": version, "body": shown(body) }))
        }
    }
}

fn prepare(permitted: &Permitted, contract: &Http, client: &HttpClient) -> Result<reqwest::Request, String> {
    contract.check_method(permitted.entry().effect_class).map_err(|fault| fault.reason.into_owned())?;
    let reads = contract.method == Method::Get;
    let url = contract.endpoint.fill(permitted.target(), &|name| permitted.scalar(name))?;
    let mut headers = HeaderMap::new();
    if let Some(name) = contract.idempotency_header.as_ref().filter(|_| !reads)
        && branch!("http.sends_idempotency_key", !name.is_empty())
    {
        let name: HeaderName = name.parse().map_err(|_| format!("`{name}` is no name of a header"))?;
        headers.insert(name, header(permitted.idempotency_key().as_str())?);
    }
    if let Some(parameter) = &contract.if_match_parameter
        && branch!("http.sends_precondition", !parameter.is_empty())
    {
        let version = permitted.scalar(parameter)?;
        headers.insert(IF_MATCH, header(&format!("\"{version}\""))?);
    }
    let body = match contract.body.is_empty() {
        true => None,
        false => {
            let members: Result<Map<String, Value>, String> = contract
                .body
                .iter()
                .map(|(member, parameter)| {
                    let value =
                        permitted.parameter(parameter).ok_or_else(|| format!("there is no parameter `{parameter}`"))?;
                    Ok((member.clone(), value.0.clone()))
                })
                .collect();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Some(canonical::to_bytes(&members?).map_err(|fault| fault.to_string())?)
        }
    };
    client.request(contract.method.as_http(), url, headers, body, &contract.endpoint)
}

fn header(value: &str) -> Result<HeaderValue, String> {
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    match inner.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"') {
        true => HeaderValue::from_str(value).map_err(|error| error.to_string()),
        false => Err(format!("`{value}` cannot stand in a header")),
    }
}

/// A response's body for the record: as JSON where it is plain, otherwise as text.
fn shown(body: Body) -> Value {
    match body {
        Body::Whole(bytes) => match canonical::read_value(&bytes) {
            Ok(value) if closer_contracts::Check::check(&Plain(value.clone())).is_ok() => json!({ "json": value }),
            Ok(_) | Err(_) => json!({ "text": String::from_utf8_lossy(&bytes) }),
        },
        Body::TooLong => json!({ "left_out": "it is longer than the contract allows" }),
        Body::BrokeOff(why) => json!({ "left_out": format!("it broke off: {why}") }),
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
