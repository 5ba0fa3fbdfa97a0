//! The world's edge: everything that touches a clock, a key, a file, a process or a socket.
//!
//! One folder per port of [`closer_protocol::port`]: [`clock`], [`ids`], [`keys`], [`operations`], [`readback`],
//! [`participants`]; [`World`] puts them together. Deliberately lacks decisions: an operation is carried out because a
//! [`closer_monitor::Permit`] was handed in, never because it looked right, and what a call answered is reported, not
//! believed. Deliberately lacks a shell: no argument of outside data is ever read by a command interpreter.
//!
//! Operations and readbacks run on a tokio runtime with timers and I/O enabled.

pub mod clock;
pub mod ids;
pub mod keys;

mod confine;
mod declared;
#[cfg(test)]
mod fixture;
mod process;
mod template;

pub mod mcp;

pub mod operations;

pub mod readback;

pub mod participants;

mod world;

pub use declared::Reach;
pub use mcp::{McpServer, McpServers};
pub use process::{
    Beside, BrokenLedger, Ended, FileLedger, MemoryLedger, ProcessEnd, ProcessLedger, Program, TaskProcess,
    end_all_beside, said, terminate_recorded,
};
pub use world::{World, WorldConfig};
