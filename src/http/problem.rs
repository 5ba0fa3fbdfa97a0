//! What went wrong, as `application/problem+json` (RFC 9457): the refusal's code, its page and whether it is worth a retry.

use crate::error::Error;
use crate::request::{Answer, Outcome};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use closer_contracts::refusal::RefusalCode;
use serde_json::{Value, json};

/// A request that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The status.
    pub status: StatusCode,
    /// A stable word for programs: a refusal's code, or one of the door's own.
    pub code: &'static str,
    /// For people.
    pub detail: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// Further members.
    pub more: Value,
}

impl Problem {
    /// A problem of the door's own.
    #[must_use]
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let retryable = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        Self { status, code, detail: detail.into(), retryable, more: Value::Null }
    }

    /// The request cannot be read.
    #[must_use]
    pub fn unreadable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "unreadable", detail)
    }

    /// There is no such thing.
    #[must_use]
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// Nobody came in.
    #[must_use]
    pub fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail)
    }

    /// What an answer says, where it is not as asked.
    #[must_use]
    pub fn of(answer: &Answer) -> Self {
        let detail = answer.text.first().cloned().unwrap_or_default();
        match (answer.outcome, answer.code) {
            (_, Some(code)) => Self {
                status: status(code),
                code: code.as_str(),
                detail: answer.data.get("reason").and_then(Value::as_str).map_or(detail, str::to_owned),
                retryable: code.is_retryable(),
                more: json!({
                    "title": code.meaning(), "spec_ref": code.spec_ref(),
                    "denials": answer.data.get("denials").cloned().unwrap_or_default(),
                }),
            },
            (Outcome::NotFound, None) => Self::not_found(detail),
            (Outcome::Refused | Outcome::Done, None) => Self::new(StatusCode::CONFLICT, "refused", detail),
            (Outcome::Corruption, None) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "corruption", detail),
            (Outcome::Failed, None) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", detail),
        }
    }

    /// What kept a request from being answered. What is ours alone goes to the log.
    #[must_use]
    pub fn failed(error: &Error) -> Self {
        if let Error::Fault(fault) = error {
            return Self::of(&Answer::refused(&[fault.clone().into()]));
        }
        let answer = Answer::failed(error);
        if answer.outcome != Outcome::Refused {
            tracing::error!(%error, "a request failed");
        }
        Self::of(&answer)
    }

    /// The document.
    #[must_use]
    pub fn json(&self) -> Value {
        let title = self.status.canonical_reason().unwrap_or_default();
        let mut told = json!({
            "type": format!("urn:closer:problem:{}", self.code), "title": title, "status": self.status.as_u16(),
            "code": self.code, "detail": self.detail, "retryable": self.retryable,
        });
        if let (Some(told), Some(more)) = (told.as_object_mut(), self.more.as_object()) {
            told.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        told
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.json().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"closer\""));
        }
        if self.retryable {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The status that a refusal is told with.
const fn status(code: RefusalCode) -> StatusCode {
    use RefusalCode as Code;
    match code {
        Code::SchemaInvalid
        | Code::UnknownVersion
        | Code::UnresolvedRef
        | Code::DigestMismatch
        | Code::Cardinality
        | Code::OutOfBounds
        | Code::MissingDeadline
        | Code::NotRestrictive => StatusCode::UNPROCESSABLE_ENTITY,
        Code::Oversize => StatusCode::PAYLOAD_TOO_LARGE,
        // Whoever asked came in; what they handed in is not established to be theirs.
        Code::Unauthenticated
        | Code::MissingAuthority
        | Code::CapabilityUndeclared
        | Code::GrantRevoked
        | Code::GrantExpired
        | Code::Restricted
        | Code::ScopeExceeded
        | Code::IssuerSuspended
        | Code::SelfPrivilege
        | Code::NotReleased
        | Code::MoveNotAllowed
        | Code::ForeignAssent
        | Code::DisclosureDenied
        | Code::ReleaseStopped
        | Code::RedistributionDenied
        | Code::ConsentMissing
        | Code::NotAGrant => StatusCode::FORBIDDEN,
        Code::Duplicate
        | Code::KeyConflict
        | Code::StaleParent
        | Code::StaleVersion
        | Code::MissingEndorsement
        | Code::NotClosable
        | Code::NoTrigger
        | Code::UnsupportedPromotion
        | Code::NoOrigin
        | Code::UnregisteredOperation
        | Code::TargetMismatch
        | Code::SubjectMismatch
        | Code::WrongPhase
        | Code::Unassessed
        | Code::KeyReuseChangedContent
        | Code::OutcomeUnknown
        | Code::NotRepeatSafe
        | Code::StaleEpoch
        | Code::LeaseExpired
        | Code::BudgetExceeded
        | Code::UncappedRoute
        | Code::IssuerLimit
        | Code::RoundLimit
        | Code::MembershipStale
        | Code::CoverageMissing
        | Code::ContractIncompatible
        | Code::EndpointMismatch
        | Code::RegistryExpired
        | Code::StalePacket
        | Code::ProfileIncomplete => StatusCode::CONFLICT,
        Code::Busy | Code::ClockUnreliable | Code::NoAnswer => StatusCode::SERVICE_UNAVAILABLE,
        Code::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
    }
}
