//! The devices that are signed in as somebody, and codes for further ones.

use super::frame::Frame;
use super::shown::{Shown, When};
use super::trouble::{Trouble, rendered};
use super::visit::{Visit, cookie};
use crate::http::Door;
use askama::Template;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

struct Device {
    id: Shown,
    name: Shown,
    own: bool,
    since: When,
    until: When,
}

#[derive(Template)]
#[template(path = "devices.html")]
struct Devices {
    frame: Frame,
    code: Option<Shown>,
    address: Shown,
    devices: Vec<Device>,
}

pub(super) async fn list(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    page(door, &visit, None)
}

pub(super) async fn code(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let code = door.access.new_code(visit.identity(), &door.now());
    let code = code.map_err(|error| Trouble::unexpected(&error.to_string()))?;
    page(door, &visit, Some(code.into()))
}

fn page(door: &Door, visit: &Visit, code: Option<Shown>) -> Result<Response, Trouble> {
    let held = door.access.held().map_err(|error| Trouble::unexpected(&error.to_string()))?;
    let now = door.now();
    let own = held.sessions.iter().filter(|session| session.identity == *visit.identity() && now < session.expires_at);
    let devices = own
        .map(|session| Device {
            id: session.session_id.as_str().into(),
            name: session.device.as_str().into(),
            own: session.session_id == visit.session.session_id,
            since: When::new(&session.created_at, &now),
            until: When::new(&session.expires_at, &now),
        })
        .collect();
    let frame = Frame { live: false, ..Frame::new(door, visit, "Devices", "devices") };
    Ok(rendered(&Devices { frame, code, address: format!("{}/signin", door.origin).into(), devices }))
}

pub(super) async fn end(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let chosen = visit.field("session").unwrap_or_default();
    let ended = match chosen == "all" {
        true => door.access.end_sessions(visit.identity()).map(|count| count > 0),
        false => door.access.end_session(visit.identity(), chosen),
    };
    ended.map_err(|error| Trouble::unexpected(&error.to_string()))?;
    let own = chosen == "all" || chosen == visit.session.session_id;
    let mut headers = vec![(header::LOCATION, if own { "/signin" } else { "/devices" }.to_owned())];
    if own {
        headers.push((header::SET_COOKIE, cookie(door, "")));
    }
    let mut response = StatusCode::SEE_OTHER.into_response();
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}
