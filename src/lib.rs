//! closer
