//! Bytes from outside, bent at random: whatever reads them says no, or reads them the same way twice, and never panics.
//!
//! Each target takes well-formed inputs and bends them. It runs for a second here, and for as long as `cargo xtask fuzz`
//! says. An input that breaks something is kept below `tests/fuzz/found/` and tried first from then on.

#[cfg(test)]
mod bend;
#[cfg(test)]
mod targets;
