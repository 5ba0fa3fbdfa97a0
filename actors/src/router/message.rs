//! What the router is told.

use closer_contracts::id::EpisodeId;

/// See [`super`].
pub(crate) enum Message {
    /// The records of an episode show something new.
    Advance(EpisodeId),
    /// Start no more coordinators, and stop those that are: the runtime stops.
    Rest,
}
