//! What the matcher is told.

use closer_contracts::id::ObligationId;

/// See [`super`].
pub(crate) enum Message {
    /// An event, a trigger or a commit has made this obligation eligible, durably.
    Eligible(ObligationId),
}
