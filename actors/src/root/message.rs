//! What the root is told: nothing but what supervision tells it.

/// See [`super`].
pub(crate) enum Message {}
