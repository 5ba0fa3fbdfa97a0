//! The runtime of one space: starts the tree over an open log, and stops it.

use crate::error::Error;
use crate::handle::Handle;
use crate::options::{Options, Ports};
use crate::replay::replay;
use crate::root::{self, Root};
use crate::space::{Space, answered};
use crate::{dispatcher, reconciler, router, scheduler};
use closer_protocol::Input;
use closer_store::Log;
use ractor::{Actor, ActorRef};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The actor tree of one space, from its start to its stop. Dropping it leaves the tree running.
pub struct Runtime {
    space: Arc<Space>,
    root: ActorRef<root::Message>,
    tree: JoinHandle<()>,
}

impl Runtime {
    /// Starts the tree: replays the log, checking every state root, takes the lease, settles what the last process left
    /// without an outcome, and lets time pass.
    ///
    /// # Errors
    /// [`Error::Unfounded`], [`Error::Divergence`], [`Error::Unreadable`]; whatever keeps the log from being read or
    /// written; [`Error::Start`].
    pub async fn start(log: Arc<Log>, ports: Ports, options: Options) -> Result<Self, Error> {
        let reading = Arc::clone(&log);
        let view = tokio::task::spawn_blocking(move || replay(&reading))
            .await
            .map_err(|error| Error::Start(error.to_string()))??;
        let space = Arc::new(Space::new(log, ports, options, view));
        // Offered before anybody else can offer anything: what the last process left is settled before anything is decided.
        let (recovered, ticked) = (space.ask(space.recovery()), space.ask(Input::Tick));
        let started = Actor::spawn(None, Root, Arc::clone(&space)).await;
        let (root, tree) = started.map_err(|error| Error::Start(error.to_string()))?;
        let runtime = Self { space, root, tree };
        answered(recovered).await?;
        answered(ticked).await?;
        let looks = runtime.space.activity.begin();
        runtime.space.directory.reconciler.cast(reconciler::Message::Look(looks));
        scheduler::ring(&runtime.space);
        Ok(runtime)
    }

    /// A handle to the running space.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.space))
    }

    /// Stops gracefully: takes no more work, lets effects under way come to an end within their bound, writes out what was
    /// decided. Episodes under way go on from their records at the next start.
    ///
    /// # Errors
    /// Whatever keeps the log from writing.
    pub async fn stop(self) -> Result<(), Error> {
        let directory = &self.space.directory;
        self.space.admitted.close();
        directory.scheduler.cast(scheduler::Message::Rest);
        directory.router.cast(router::Message::Rest);
        let longest = Duration::from_millis(self.space.options.stop_ms_max);
        // Once everything offered is settled, every admitted effect has reached the dispatcher.
        let _ = tokio::time::timeout(longest, self.space.quiet()).await;
        let (drained, told) = oneshot::channel();
        directory.dispatcher.cast(dispatcher::Message::Drain(drained));
        let _ = tokio::time::timeout(longest, told).await;
        let _ = tokio::time::timeout(longest, self.space.quiet()).await;
        self.space.lanes.close();
        self.root.stop(None);
        let _ = self.tree.await;
        let log = Arc::clone(&self.space.log);
        tokio::task::spawn_blocking(move || log.flush()).await.map_err(|error| Error::Start(error.to_string()))??;
        Ok(())
    }

    /// Ends the tree as a killed process would: nothing is waited for, nothing more is decided.
    pub async fn kill(self) {
        self.space.lanes.close();
        self.root.kill();
        let _ = self.tree.await;
    }
}
