//! whole-system tests
fn main() {}
