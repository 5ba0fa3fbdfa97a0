//! Requirement rows of the pure core, shown on a deterministic space: each test drives the same sequence as the actors do.

mod actions;
mod adjudication;
mod commits;
mod events;
mod intake;
mod people;
mod support;
mod traces;
mod urgent;
mod work;
