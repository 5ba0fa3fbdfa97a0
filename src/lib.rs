//! The `closer` binary's inside: what a deployment declares, how its parts are wired, and the faces it shows.
//!
//! The only crate beside the evaluation that names both actors and adapters. Deliberately lacks decisions: whatever is
//! permitted, refused or accepted is decided by `closer-protocol` and told from the record.

pub mod access;
pub mod cli;
pub mod deployment;
pub mod gate;
pub mod http;
pub mod keys;
pub mod mcp;

mod error;
pub mod notify;
pub mod refusals;
pub mod request;
pub mod socket;
pub mod space;
pub mod visible;
pub mod web;
pub mod wiring;

pub use error::Error;
