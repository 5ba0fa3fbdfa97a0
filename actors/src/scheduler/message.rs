//! What the scheduler is told.

use crate::space::Space;

/// See [`super`].
pub(crate) enum Message {
    /// A newer view is there, or the time has come.
    Look,
    /// Open nothing more: the runtime stops.
    Rest,
}

/// Rings for the scheduler, unless it has been rung for and has not come yet.
pub(crate) fn ring(space: &Space) {
    if !space.scheduler_rung.swap(true, std::sync::atomic::Ordering::AcqRel) {
        space.directory.scheduler.cast(Message::Look);
    }
}
