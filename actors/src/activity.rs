//! Counts what is under way, so that whoever waits for quiet is woken and never polls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// How much is under way.
#[derive(Default)]
pub(crate) struct Activity {
    under_way: AtomicUsize,
    quiet: Notify,
}

/// Something is under way for as long as this is held.
pub(crate) struct UnderWay(Arc<Activity>);

impl Activity {
    /// Counts one more thing until the token is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay(Arc::clone(self))
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 0
    }

    /// Resolves when the last thing under way ends; register before looking at [`Activity::is_quiet`].
    pub(crate) fn quiet(&self) -> tokio::sync::futures::Notified<'_> {
        self.quiet.notified()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.quiet.notify_waiters();
        }
    }
}
