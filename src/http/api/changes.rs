//! A stream that says when something changed, and nothing about what: whoever follows it asks again.

use crate::http::door::{Call, Door};
use crate::http::problem::Problem;
use crate::request;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use closer_protocol::View;
use futures_util::stream;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

/// How long a stream lasts at most; whoever still follows it asks anew.
const LASTS: Duration = Duration::from_secs(3_600);
/// The least time between two messages.
const PAUSE: Duration = Duration::from_millis(250);

struct Following {
    views: watch::Receiver<Arc<View>>,
    stopping: watch::Receiver<bool>,
    until: Instant,
    begun: bool,
    _place: OwnedSemaphorePermit,
}

pub(crate) async fn follow(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    call.identity()?;
    open(door)
}

/// Opens a stream, where one is free.
pub(crate) fn open(door: &Arc<Door>) -> Result<Response, Problem> {
    let place = Arc::clone(&door.streams)
        .try_acquire_owned()
        .map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "as many streams are open as are served"))?;
    let following = Following {
        views: door.space.handle().subscribe(),
        stopping: door.stopping.clone(),
        until: Instant::now() + LASTS,
        begun: false,
        _place: place,
    };
    let stream = stream::unfold(following, |mut following| async move {
        let event = next(&mut following).await?;
        Some((Ok::<_, Infallible>(event), following))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response())
}

async fn next(following: &mut Following) -> Option<Event> {
    if std::mem::replace(&mut following.begun, true) {
        tokio::time::sleep(PAUSE).await;
        tokio::select! {
            changed = following.views.changed() => changed.ok()?,
            _ = following.stopping.wait_for(|stopping| *stopping) => return None,
            () = tokio::time::sleep_until(following.until) => return None,
        }
    }
    let view = Arc::clone(&following.views.borrow_and_update());
    let data = json!({
        "state_version": view.state.reference().version, "packets_waiting": request::waiting(&view), "at": view.latest,
    });
    let id = view.latest.as_ref().map_or("0", |latest| latest.as_str()).to_owned();
    Some(Event::default().event("changed").id(id).data(data.to_string()))
}
