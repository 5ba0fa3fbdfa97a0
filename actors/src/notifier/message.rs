//! What the notifier is told.

use crate::activity::UnderWay;

/// See [`super`].
pub(crate) enum Message {
    /// The records may show a notice that is to be delivered.
    Look(UnderWay),
}
