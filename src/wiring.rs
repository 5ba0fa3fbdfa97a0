//! Puts a running space together: the deployment's ports, the actors, the socket, what looks at the world.

mod crash;
mod look;

use crate::deployment::{Deployment, Running as Companion};
use crate::error::Error;
use crate::socket;
use crate::space::Running;
use closer_actors::{Options, Ports, Runtime};
use closer_adapters::clock::{ClockBounds, SystemClock};
use closer_adapters::ids::UuidIds;
use closer_adapters::{FileLedger, McpServers, ProcessLedger, World, WorldConfig, terminate_recorded};
use closer_protocol::Moment;
use closer_protocol::port::Clock;
use closer_store::{Corruption, Log, Standing};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The file in the store's folder that tells which processes attempts have started.
const PROCESSES: &str = "processes";

/// Runs the declared preparations, then founds the space. Tells each step as it is done. A deployment with which no space
/// can be founded is refused before anything is prepared.
///
/// # Errors
/// What does not fit and what could not be prepared, with file, line, column and field; what of the founding is not admissible; a space that is there already.
pub async fn init(deployment: &Deployment, tell: &mut dyn FnMut(&str)) -> Result<(), Error> {
    if let Some(lost) = lost_log(&deployment.store) {
        return Err(Error::Store(lost.into()));
    }
    deployment.fits_founding()?;
    for (index, command) in deployment.prepare.iter().enumerate() {
        let told = |reason: String| deployment.misfit(&format!("prepare.{index}.program"), reason);
        let ran = command.run(&deployment.directory).map_err(told)?;
        if let (true, Some(made)) = (ran, &command.creates) {
            tell(&format!("prepared {made}"));
        }
    }
    private_folder(&deployment.store)?;
    let log = Log::open(&deployment.store, None)?;
    let (now, clock) = SystemClock::start(ClockBounds::default(), None).now();
    closer_actors::found(&log, &deployment.founding, &Moment { now, clock }).await?;
    tell(&format!("founded {}", deployment.store.display()));
    Ok(())
}

/// Whether a store was begun; one whose founding broke off has segments and no record.
#[must_use]
pub fn is_founded(store: &Path) -> bool {
    let segments = std::fs::read_dir(store.join("log"));
    segments.is_ok_and(|mut entries| {
        entries.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with(".log")))
    })
}

/// What is wrong with a store whose log is gone while what was derived from it is still there. To found a space in it would
/// forget every restriction and decision.
#[must_use]
pub fn lost_log(store: &Path) -> Option<Corruption> {
    let lost = !is_founded(store) && store.join("derived").exists();
    let what = "the log is gone, and what was derived from it is still here: restore a backup, or remove the store to begin anew";
    lost.then_some(Corruption { segment: 1, offset: 0, record: None, what })
}

/// Says so where others than its owner can reach a store: whoever can write to it is the user as far as it can tell.
pub(crate) fn warn_if_shared(store: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let shared = std::fs::metadata(store).is_ok_and(|folder| folder.permissions().mode() & 0o077 != 0);
    if shared {
        tracing::warn!(store = %store.display(), "others than its owner can reach the store: chmod 700 it");
    }
}

fn private_folder(store: &Path) -> Result<(), Error> {
    use std::os::unix::fs::DirBuilderExt;
    let folder = format!("creating {}", store.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(store).map_err(Error::io(folder))
}

/// A running space with everything that belongs to it.
pub struct Live {
    runtime: Runtime,
    space: Arc<Running>,
    looks: watch::Receiver<look::Rounds>,
    tasks: JoinSet<()>,
    _companions: Vec<Companion>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

impl Live {
    /// Starts a founded space: what a crash left running is ended, then companions are started, then the actors, the socket and
    /// the looks at the world.
    ///
    /// # Errors
    /// What could not be started; `Locked` where another process runs it.
    pub async fn start(deployment: &Deployment) -> Result<Self, Error> {
        let log = Arc::new(Log::open(&deployment.store, None)?);
        if let Standing::Stopped(error) = log.standing() {
            return Err(error.into());
        }
        let ledger =
            FileLedger::open(&deployment.store.join(PROCESSES)).map_err(|error| Error::World(error.to_string()))?;
        for ended in terminate_recorded(&ledger) {
            tracing::warn!(process = %ended.process.attempt_id, end = ?ended.end, "a process outlived the last run");
        }
        let ledger: Arc<dyn ProcessLedger> = Arc::new(ledger);
        let companions = deployment.companions.iter().enumerate().map(|(index, companion)| {
            let told = |reason: String| deployment.misfit(&format!("companion.{index}.program"), reason);
            companion.start(&deployment.directory, &ledger).map_err(told)
        });
        let companions = companions.collect::<Result<Vec<_>, _>>()?;
        let latest = closer_actors::replay(&log)?.latest;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start(ClockBounds::default(), latest.as_ref()));
        let servers = McpServers::new(deployment.servers.clone(), Arc::clone(&ledger));
        let world = World::new(WorldConfig {
            clock: Arc::clone(&clock),
            processes: ledger,
            servers: servers.clone(),
            participants: deployment.participants.clone(),
        });
        let ports = Ports {
            clock,
            ids: Arc::new(UuidIds),
            operations: crash::operations(world.operations),
            observer: Arc::clone(&world.observer),
            participants: world.participants,
        };
        let options = Options { probe: crash::probe(), ..Options::default() };
        let runtime = Runtime::start(Arc::clone(&log), ports, options).await?;
        let space = Arc::new(Running::new(log, runtime.handle(), servers));
        let mut tasks = JoinSet::new();
        let listener = socket::Listener::bind(&deployment.store)?;
        tasks.spawn(listener.serve(Arc::clone(&space)));
        let looks = look::start(&mut tasks, &space, &world.observer, &deployment.observations);
        Ok(Self { runtime, space, looks, tasks, _companions: companions })
    }

    /// The faces' side of it.
    #[must_use]
    pub const fn space(&self) -> &Arc<Running> {
        &self.space
    }

    /// Resolves when nothing is under way, everything that is looked at was looked at once more without a change, and
    /// nothing becomes due within `horizon_ms`.
    pub async fn settled(&self, horizon_ms: u64) {
        let mut looks = self.looks.clone();
        loop {
            self.space.handle().idle().await;
            let before = looks.borrow().clone();
            let view = self.space.handle().view();
            if !before.is_empty() {
                let looked = looks.wait_for(|rounds| rounds.are_past(&before)).await;
                if looked.is_err() {
                    return;
                }
                self.space.handle().idle().await;
            }
            let unchanged = Arc::ptr_eq(&view, &self.space.handle().view());
            let now = self.space.handle().moment().now;
            let due = closer_protocol::timers::next_deadline(&view, &now);
            match due.filter(|due| *due <= now.plus_ms(horizon_ms)) {
                None if unchanged => return,
                None => {}
                Some(due) => {
                    let left = u64::try_from(due.unix_ms().saturating_sub(now.unix_ms())).unwrap_or(0);
                    tokio::time::sleep(std::time::Duration::from_millis(left.saturating_add(5))).await;
                }
            }
        }
    }

    /// Stops it: no more requests, no more looks, effects under way come to their end, companions are ended.
    ///
    /// # Errors
    /// Whatever keeps the log from writing.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.tasks.shutdown().await;
        Ok(self.runtime.stop().await?)
    }
}
