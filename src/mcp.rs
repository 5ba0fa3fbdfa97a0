//! The face for agents that speak MCP: the verbs of their own work as tools, over standard input and output, and over HTTP
//! behind the door's tokens.
//!
//! Two revisions are spoken, the stateless one and the last with a handshake; either way every call stands alone: who asks is
//! known from the process or the token of that very request, and nothing is kept between two calls. Deliberately lacks
//! authority, and any way to the record but [`crate::request`]. What a packet holds is told as data.

mod http;
mod server;
mod tools;

pub(crate) use http::served;
pub(crate) use server::{Asks, serve_stdio};
