//! Kills this process at a named point of the action path, so that tests can see what a restart makes of it.
//!
//! Debug builds only: `CLOSER_CRASH_AT` names the point. Release builds have neither the variable nor the code.

#[cfg(debug_assertions)]
pub(super) use armed::{operations, probe};
#[cfg(not(debug_assertions))]
pub(super) use harmless::{operations, probe};

#[cfg(not(debug_assertions))]
mod harmless {
    use closer_actors::Probe;
    use closer_protocol::port::Operations;
    use std::sync::Arc;

    pub(in crate::wiring) fn operations(operations: Arc<dyn Operations>) -> Arc<dyn Operations> {
        operations
    }

    pub(in crate::wiring) fn probe() -> Option<Probe> {
        None
    }
}

#[cfg(debug_assertions)]
mod armed {
    use closer_actors::Probe;
    use closer_contracts::id::AttemptId;
    use closer_monitor::Permit;
    use closer_protocol::port::{Operations, Order, Pending, Performed};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    fn point() -> Option<String> {
        std::env::var("CLOSER_CRASH_AT").ok().filter(|point| !point.is_empty())
    }

    fn die() {
        if let Err(error) = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL) {
            tracing::error!(%error, "this process could not kill itself");
        }
    }

    /// Dies when the stage of the point comes up.
    pub(in crate::wiring) fn probe() -> Option<Probe> {
        let point = point()?;
        let read_back = AtomicBool::new(false);
        Some(Arc::new(move |stage| {
            if stage == "observer" {
                read_back.store(true, Ordering::Release);
            }
            let reached = match (point.as_str(), stage) {
                ("before_intent", "monitor")
                | ("after_intent", "dispatcher")
                | ("before_readback", "observer")
                | ("before_commit", "semantic") => true,
                ("after_readback", "assessor") => read_back.load(Ordering::Acquire),
                _ => false,
            };
            if reached {
                die();
            }
        }))
    }

    /// Dies a moment after an effect has begun, or after it has ended.
    struct Fatal {
        operations: Arc<dyn Operations>,
        after_effect: bool,
    }

    impl Operations for Fatal {
        fn perform<'a>(&'a self, permit: Permit, order: &'a Order) -> Pending<'a, Performed> {
            Box::pin(async move {
                let performing = self.operations.perform(permit, order);
                if self.after_effect {
                    let performed = performing.await;
                    die();
                    return performed;
                }
                // The effect runs on threads and in processes of its own; a moment is enough for it to begin.
                let moment = Duration::from_millis(3);
                let performed = tokio::time::timeout(moment, performing).await;
                die();
                performed.unwrap_or(Performed::NotSent { reason: "the process was to die here".into() })
            })
        }

        fn cancel<'a>(&'a self, attempt_id: &'a AttemptId, order: &'a Order) -> Pending<'a, ()> {
            self.operations.cancel(attempt_id, order)
        }
    }

    pub(in crate::wiring) fn operations(operations: Arc<dyn Operations>) -> Arc<dyn Operations> {
        match point().as_deref() {
            Some("during_effect") => Arc::new(Fatal { operations, after_effect: false }),
            Some("after_effect") => Arc::new(Fatal { operations, after_effect: true }),
            Some(_) | None => operations,
        }
    }
}
