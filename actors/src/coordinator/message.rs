//! What a coordinator is told.

use crate::error::Error;
use closer_contracts::id::WorkId;
use closer_protocol::Reply;

/// See [`super`].
pub(crate) enum Message {
    /// The records of its episode show something new.
    Advance,
    /// What became of a participant's answer in a conference.
    Answered(WorkId, Result<Reply, Error>),
}
