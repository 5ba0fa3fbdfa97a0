//! The HTTP door: one table of routes, each of which translates a request into the one that the socket takes too.
//!
//! Owns transport: who is at the door, how much may come in, how an answer is told in HTTP. Deliberately lacks decisions:
//! whatever is asked or changed goes through `request`, and what is refused there is told here with its code.

mod api;
mod door;
mod guard;
mod hooks;
mod limit;
mod metrics;
mod openapi;
mod problem;
mod replies;
mod routes;
mod server;
mod tls;

pub(crate) use api::changes;
pub(crate) use api::events::draft as cloud_event;
pub use door::{Caller, Door, Peer};
pub(crate) use guard::whole;
pub(crate) use hooks::draft as hook_event;
pub use openapi::document;
pub use problem::Problem;
pub use server::Server;
