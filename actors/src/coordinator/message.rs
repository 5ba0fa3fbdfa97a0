//! What a coordinator is told.

/// See [`super`].
pub(crate) enum Message {
    /// The records of its episode show something new.
    Advance,
}
