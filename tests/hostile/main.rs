//! Named attacks on a running process, as data: what is sent, and the code that the requirement rows demand.
//!
//! Every attack goes over the socket of one real process. Each must get its code, none may change what governs, and after
//! all of them the process must still do honest work and its record be whole.

#[cfg(test)]
mod attack;
#[cfg(test)]
mod catalogue;
#[cfg(test)]
#[path = "../it/support.rs"]
#[expect(dead_code, reason = "shared with the whole-system tests, which use all of it")]
mod support;
