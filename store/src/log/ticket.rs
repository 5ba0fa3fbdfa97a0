//! Tickets: a promise of durability, for threads and for async code alike.

use crate::error::StoreError;
use closer_contracts::record::Appended;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

type Callback = Box<dyn FnOnce(Result<Appended, StoreError>) + Send>;

#[derive(Default)]
struct State {
    outcome: Option<Result<(), StoreError>>,
    callback: Option<Callback>,
}

/// Where a ticket's outcome is put.
#[derive(Default)]
pub(crate) struct Slot {
    state: Mutex<State>,
    settled: Condvar,
}

impl Slot {
    /// Settles the ticket: wakes who waits and runs the callback.
    pub(crate) fn settle(&self, appended: Appended, outcome: Result<(), StoreError>) {
        let callback = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.outcome = Some(outcome.clone());
            state.callback.take()
        };
        self.settled.notify_all();
        if let Some(callback) = callback {
            callback(outcome.map(|()| appended));
        }
    }
}

/// An accepted append: its cursors are known, its durability is not yet.
///
/// Nothing that depends on the append may leave the process before the ticket is durable. Spec: design §5.
#[must_use = "an append is no fact before its ticket is durable"]
pub struct Ticket {
    pub(crate) appended: Appended,
    pub(crate) slot: Arc<Slot>,
}

impl Ticket {
    /// The cursors the records have if they become durable.
    #[must_use]
    pub const fn assigned(&self) -> Appended {
        self.appended
    }

    /// Blocks until the append is durable or has failed. With [`super::Drive::Caller`] somebody must flush.
    ///
    /// # Errors
    /// `Poisoned` or `Closed` when it will never be durable in this process's log.
    pub fn wait(self) -> Result<Appended, StoreError> {
        let mut state = self.slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &state.outcome {
                Some(outcome) => return outcome.clone().map(|()| self.appended),
                None => state = self.slot.settled.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Calls back once the append is durable or has failed: at once if it is settled, else on the writer's thread, in log
    /// order. The callback must be short and must not wait or flush.
    pub fn on_durable(self, callback: impl FnOnce(Result<Appended, StoreError>) + Send + 'static) {
        let mut state = self.slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.outcome.clone() {
            Some(outcome) => {
                drop(state);
                callback(outcome.map(|()| self.appended));
            }
            None => state.callback = Some(Box::new(callback)),
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ticket").field(&self.appended).finish()
    }
}
