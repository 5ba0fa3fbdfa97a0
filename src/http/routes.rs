//! Every route of the API, once: what is served and what `docs/openapi.json` says are both made from this table.

use super::api;
use super::door::{Call, Door};
use super::guard;
use super::problem::Problem;
use crate::access::Scope;
use axum::Router;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use schemars::{Schema, SchemaGenerator};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// What makes a schema.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// What a handler gives back.
pub(super) type Answered<'a> = Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send + 'a>>;

/// What a route takes as its body.
pub(super) enum Taken {
    /// Nothing.
    Nothing,
    /// JSON of this schema.
    Json(Shape),
    /// One of these media types, each with its schema.
    Media(&'static [(&'static str, Shape)]),
}

/// One route.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// The operation's id.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    /// What a token must open; open to everybody without one.
    pub(super) scope: Option<Scope>,
    /// Whether it restricts, so that it is heard however many others wait.
    pub(super) urgent: bool,
    /// What may stand in the query, by name.
    pub(super) query: &'static [&'static str],
    pub(super) takes: Taken,
    /// What it gives: a media type and a schema.
    pub(super) gives: (&'static str, Shape),
    pub(super) handler: for<'a> fn(&'a Arc<Door>, Call) -> Answered<'a>,
}

const LISTING: &[&str] = &["all", "after", "limit"];
const PAGING: &[&str] = &["after", "limit"];
const JSON: &str = "application/json";

macro_rules! handler {
    ($path:path) => {
        |door, call| Box::pin($path(door, call))
    };
}

const fn get(path: &'static str, id: &'static str, summary: &'static str, what: Given) -> Route {
    Route {
        method: Method::GET,
        path,
        id,
        summary,
        scope: Some(Scope::Read),
        urgent: false,
        query: what.query,
        takes: Taken::Nothing,
        gives: (JSON, what.schema),
        handler: what.handler,
    }
}

/// What a reading route gives.
struct Given {
    query: &'static [&'static str],
    schema: Shape,
    handler: for<'a> fn(&'a Arc<Door>, Call) -> Answered<'a>,
}

/// A route of an agent about its own work.
const fn work(method: Method, path: &'static str, id: &'static str, summary: &'static str, what: Given) -> Route {
    Route {
        method,
        path,
        id,
        summary,
        scope: Some(Scope::Work),
        urgent: false,
        query: what.query,
        takes: Taken::Nothing,
        gives: (JSON, what.schema),
        handler: what.handler,
    }
}

/// The table.
pub(super) static ROUTES: &[Route] = &[
    get(
        "/v1/obligations",
        "listObligations",
        "The obligations that are kept",
        Given { query: LISTING, schema: api::schema::obligations, handler: handler!(api::read::obligations) },
    ),
    get(
        "/v1/obligations/{obligation_id}",
        "showObligation",
        "One obligation and its episodes",
        Given { query: &[], schema: api::schema::obligation, handler: handler!(api::read::obligation) },
    ),
    get(
        "/v1/obligations/{obligation_id}/trace",
        "traceObligation",
        "What led to where it stands, stage by stage",
        Given { query: &[], schema: api::schema::trace, handler: handler!(api::read::trace) },
    ),
    get(
        "/v1/obligations/{obligation_id}/why",
        "whyObligation",
        "Why it waits, what was refused, what would wake it",
        Given { query: &[], schema: api::schema::why, handler: handler!(api::read::why) },
    ),
    get(
        "/v1/reentries",
        "listReentries",
        "The triggers, and what each comes to now",
        Given {
            query: &["obligation_id", "after", "limit"],
            schema: api::schema::reentries,
            handler: handler!(api::read::reentries),
        },
    ),
    get(
        "/v1/packets",
        "listPackets",
        "The packets that wait for an answer",
        Given { query: LISTING, schema: api::schema::packets, handler: handler!(api::read::packets) },
    ),
    get(
        "/v1/packets/{packet_id}",
        "showPacket",
        "One packet, with the digest that an answer cites",
        Given { query: &[], schema: api::schema::packet, handler: handler!(api::read::packet) },
    ),
    Route {
        method: Method::POST,
        path: "/v1/packets/{packet_id}/decisions",
        id: "answerPacket",
        summary: "Answers the packet that was shown; another version of it is refused as stale_packet",
        scope: Some(Scope::Answer),
        urgent: false,
        query: &[],
        takes: Taken::Json(|generator| generator.subschema_for::<api::write::DecisionDraft>()),
        gives: (JSON, api::schema::recorded),
        handler: handler!(api::write::decide),
    },
    Route {
        method: Method::POST,
        path: "/v1/packets/{packet_id}/grants/try",
        id: "tryGrant",
        summary: "What a grant for more than one action would have answered in the last 90 days; records nothing",
        scope: Some(Scope::Read),
        urgent: false,
        query: &[],
        takes: Taken::Json(|generator| generator.subschema_for::<api::write::GrantBody>()),
        gives: (JSON, api::schema::tried),
        handler: handler!(api::write::try_grant),
    },
    Route {
        method: Method::POST,
        path: "/v1/packets/{packet_id}/grants",
        id: "giveGrant",
        summary: "Gives a grant for more than one action, beginning at what the packet shows",
        scope: Some(Scope::Answer),
        urgent: false,
        query: &[],
        takes: Taken::Json(|generator| generator.subschema_for::<api::write::GrantBody>()),
        gives: (JSON, api::schema::recorded),
        handler: handler!(api::write::give_grant),
    },
    get(
        "/v1/decisions",
        "listDecisions",
        "The answers that were given, and what became of each",
        Given {
            query: &["packet_id", "after", "limit"],
            schema: api::schema::decisions,
            handler: handler!(api::read::decisions),
        },
    ),
    get(
        "/v1/receipts",
        "listReceipts",
        "The receipts of commits, the newest first",
        Given { query: PAGING, schema: api::schema::receipts, handler: handler!(api::read::receipts) },
    ),
    get(
        "/v1/receipts/{receipt}",
        "showReceipt",
        "One receipt, by its id or the version it led to",
        Given { query: &[], schema: api::schema::receipt, handler: handler!(api::read::receipt) },
    ),
    get(
        "/v1/restrictions",
        "listRestrictions",
        "What is restricted now",
        Given { query: PAGING, schema: api::schema::restrictions, handler: handler!(api::read::restrictions) },
    ),
    Route {
        method: Method::POST,
        path: "/v1/restrictions",
        id: "restrict",
        summary: "Restricts at once, as the appointed issuer that the token speaks for",
        scope: Some(Scope::Restrict),
        urgent: true,
        query: &[],
        takes: Taken::Json(|generator| generator.subschema_for::<api::write::RestrictionDraft>()),
        gives: (JSON, api::schema::recorded),
        handler: handler!(api::write::restrict),
    },
    Route {
        method: Method::POST,
        path: "/v1/restrictions/{restriction_id}/lift",
        id: "liftRestriction",
        summary: "Lifts a restriction after a reassessment, under the user's authority",
        scope: Some(Scope::Answer),
        urgent: false,
        query: &[],
        takes: Taken::Json(|generator| generator.subschema_for::<api::write::LiftBody>()),
        gives: (JSON, api::schema::recorded),
        handler: handler!(api::write::lift),
    },
    Route {
        method: Method::POST,
        path: "/v1/events",
        id: "sendEvents",
        summary: "Announces changes as CloudEvents 1.0: binary, structured or batched",
        scope: Some(Scope::Events),
        urgent: true,
        query: &[],
        takes: Taken::Media(&[
            ("application/cloudevents+json", api::schema::cloud_event),
            ("application/cloudevents-batch+json", api::schema::cloud_events),
            ("*/*", api::schema::anything),
        ]),
        gives: (JSON, api::schema::sent),
        handler: handler!(api::events::send),
    },
    Route {
        method: Method::POST,
        path: "/hooks/{name}",
        id: "receiveWebhook",
        summary: "Takes a payload of a webhook that the deployment declares, signed with its secret",
        scope: None,
        urgent: true,
        query: &[],
        takes: Taken::Json(api::schema::anything),
        gives: (JSON, api::schema::sent),
        handler: handler!(super::hooks::receive),
    },
    Route {
        method: Method::POST,
        path: "/v1/payloads",
        id: "handInPayload",
        summary: "Hands in a payload in canonical JSON, signed by a registered key or by the token's session",
        scope: Some(Scope::Events),
        urgent: true,
        query: &[],
        takes: Taken::Json(api::schema::anything),
        gives: (JSON, api::schema::recorded),
        handler: handler!(api::events::hand_in),
    },
    get(
        "/v1/restrictions/choices",
        "listRestrictionChoices",
        "What the caller may restrict now, the widest first",
        Given { query: &[], schema: api::schema::choices, handler: handler!(api::read::choices) },
    ),
    get(
        "/v1/briefcase",
        "showBriefcase",
        "The four views: leads, investigations, briefs, and what waits on The Bench",
        Given { query: &[], schema: api::schema::briefcase, handler: handler!(api::read::briefcase) },
    ),
    get(
        "/v1/evidence/{evidence_id}",
        "showEvidence",
        "One piece of evidence, as it was recorded",
        Given { query: &[], schema: api::schema::evidence, handler: handler!(api::read::evidence) },
    ),
    get(
        "/v1/budgets",
        "showBudgets",
        "What is used and held of the budget",
        Given { query: &[], schema: api::schema::budgets, handler: handler!(api::read::budgets) },
    ),
    get(
        "/v1/search",
        "search",
        "Everything in which these words occur",
        Given { query: &["words", "after", "limit"], schema: api::schema::found, handler: handler!(api::read::search) },
    ),
    work(
        Method::GET,
        "/v1/work",
        "listWork",
        "The work that waits for the calling agent's answer",
        Given { query: LISTING, schema: api::schema::works, handler: handler!(api::work::list) },
    ),
    work(
        Method::POST,
        "/v1/work/take",
        "takeNextWork",
        "Takes up the work that has waited longest, once, and shows its packet",
        Given { query: &[], schema: api::schema::work_packet, handler: handler!(api::work::take_next) },
    ),
    work(
        Method::GET,
        "/v1/work/{work_id}",
        "readWork",
        "The packet of work, as it was released to the calling agent",
        Given { query: &[], schema: api::schema::work_packet, handler: handler!(api::work::read) },
    ),
    work(
        Method::POST,
        "/v1/work/{work_id}/take",
        "takeWork",
        "Takes work up, once, and shows its packet",
        Given { query: &[], schema: api::schema::work_packet, handler: handler!(api::work::take) },
    ),
    Route {
        method: Method::POST,
        path: "/v1/work/{work_id}/result",
        id: "returnWork",
        summary: "Hands an answer in, once; what meets no contract is a failure that counts",
        scope: Some(Scope::Work),
        urgent: false,
        query: &[],
        takes: Taken::Json(api::schema::work_answer),
        gives: (JSON, api::schema::recorded),
        handler: handler!(api::work::hand_in),
    },
    work(
        Method::GET,
        "/v1/work/{work_id}/why",
        "whyWork",
        "What became of work, and why",
        Given { query: &[], schema: api::schema::work, handler: handler!(api::work::why) },
    ),
    work(
        Method::GET,
        "/v1/work/packets/{packet_id}",
        "followPacket",
        "Where a packet stands that an answer of the calling agent led to",
        Given { query: &[], schema: api::schema::followed, handler: handler!(api::work::packet) },
    ),
    Route {
        method: Method::GET,
        path: "/v1/changes",
        id: "followChanges",
        summary: "A stream that says when something changed",
        scope: Some(Scope::Read),
        urgent: false,
        query: &[],
        takes: Taken::Nothing,
        gives: ("text/event-stream", api::schema::anything),
        handler: handler!(api::changes::follow),
    },
    Route {
        method: Method::GET,
        path: "/v1/openapi.json",
        id: "describe",
        summary: "This document",
        scope: None,
        urgent: false,
        query: &[],
        takes: Taken::Nothing,
        gives: (JSON, api::schema::anything),
        handler: handler!(api::read::description),
    },
    Route {
        method: Method::GET,
        path: "/metrics",
        id: "metrics",
        summary: "Figures in Prometheus' text format",
        scope: Some(Scope::Read),
        urgent: false,
        query: &[],
        takes: Taken::Nothing,
        gives: ("text/plain", api::schema::anything),
        handler: handler!(api::read::figures),
    },
    Route {
        method: Method::GET,
        path: "/healthz",
        id: "health",
        summary: "Whether the process answers",
        scope: None,
        urgent: false,
        query: &[],
        takes: Taken::Nothing,
        gives: (JSON, api::schema::standing),
        handler: handler!(api::read::health),
    },
    Route {
        method: Method::GET,
        path: "/readyz",
        id: "readiness",
        summary: "Whether requests are to be sent here",
        scope: None,
        urgent: false,
        query: &[],
        takes: Taken::Nothing,
        gives: (JSON, api::schema::standing),
        handler: handler!(api::read::readiness),
    },
];

/// The API as a router.
pub(super) fn api() -> Router<Arc<Door>> {
    let mut router = Router::new();
    for route in ROUTES {
        let filter = match route.method == Method::POST {
            true => MethodFilter::POST,
            false => MethodFilter::GET,
        };
        let handler = move |State(door): State<Arc<Door>>, places: RawPathParams, request: Request| async move {
            guard::serve(&door, route, places, request).await
        };
        router = router.route(route.path, on(filter, handler));
    }
    router.method_not_allowed_fallback(|| async {
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", "this address takes another method").into_response()
    })
}
