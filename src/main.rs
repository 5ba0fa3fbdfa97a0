//! closer
fn main() {}
