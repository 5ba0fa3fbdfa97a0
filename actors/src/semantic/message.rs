//! What the semantic service is told. Inputs come by the lanes.

/// See [`super`].
pub(crate) enum Message {
    /// Something waits in the lanes, or the log's writer has settled something.
    Work,
}
