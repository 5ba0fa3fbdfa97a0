//! What the reconciler is told.

use crate::activity::UnderWay;
use closer_contracts::id::AttemptId;

/// See [`super`].
pub(crate) enum Message {
    /// An episode has ended, or the runtime has started.
    Look(UnderWay),
    /// An attempt's pause is over.
    Try(AttemptId),
    /// An attempt has been read back.
    Tried(AttemptId),
}
