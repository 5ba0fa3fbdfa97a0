//! The gate: an MCP server that re-offers tools of other MCP servers, each call of which becomes an ACTION in the one process
//! that runs the space. Deliberately lacks decisions, a store and a way to the world: it asks over the socket and tells what
//! is answered.

mod daemon;
pub mod doctor;
pub mod init;
mod server;
mod tell;

pub use daemon::ensure;
pub use server::{Gate, Mode, serve};
