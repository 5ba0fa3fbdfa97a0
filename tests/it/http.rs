//! The HTTP door of a served deployment: who comes in, what is asked and changed, and what hostile callers get.

pub(crate) mod api;
pub(crate) mod client;
mod door;
mod events;
mod hooks;
