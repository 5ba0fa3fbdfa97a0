//! The one process that runs the space: asked where it runs, started where it does not. Of several gates that find none, one
//! starts it.

use crate::deployment::{Deployment, FILE};
use crate::error::Error;
use crate::socket;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What the started process says, in the store's folder.
const LOG: &str = "daemon.log";
/// How long it may take until it listens, and how often that is looked at.
const START_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Makes sure that somebody runs the space of a deployment.
///
/// # Errors
/// What kept it from starting, with what it said.
pub async fn ensure(directory: &Path) -> Result<(), Error> {
    let store = Deployment::store_of(directory)?;
    if socket::listens(&store) {
        return Ok(());
    }
    let directory = directory.to_owned();
    let started = tokio::task::spawn_blocking(move || start(&directory, &store)).await;
    started.map_err(|error| Error::Runtime(format!("starting the space broke off: {error}")))?
}

fn start(directory: &Path, store: &Path) -> Result<(), Error> {
    // Whoever holds this starts it; the others find it running once they hold it.
    let file = directory.join(FILE);
    let lock = File::open(&file).map_err(Error::io(format!("opening {}", file.display())))?;
    flock(&lock, FlockOperation::LockExclusive)
        .map_err(|errno| Error::io(format!("locking {}", file.display()))(errno.into()))?;
    if socket::listens(store) {
        return Ok(());
    }
    let mut child = spawn(directory, store)?;
    let until = Instant::now() + START_MAX;
    while !socket::listens(store) {
        if let Ok(Some(status)) = child.try_wait() {
            // Somebody who holds the store without a gate may have come first.
            if socket::listens(store) {
                return Ok(());
            }
            return Err(Error::Runtime(format!("the space did not start: {status}: {}", said(store))));
        }
        if Instant::now() > until {
            return Err(Error::Runtime(format!("the space did not listen in time: {}", said(store))));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn spawn(directory: &Path, store: &Path) -> Result<Child, Error> {
    let folder = format!("creating {}", store.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(store).map_err(Error::io(folder))?;
    let log = store.join(LOG);
    let log = File::create(&log).map_err(Error::io(format!("creating {}", log.display())))?;
    let program = std::env::current_exe().map_err(Error::io("finding this program"))?;
    let mut command = Command::new(program);
    command.arg("run").arg(directory).arg("--until-stopped");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    // It outlives the client that this gate belongs to, and what ends that client.
    command.process_group(0);
    command.spawn().map_err(Error::io("starting the space"))
}

/// The end of what it said.
fn said(store: &Path) -> String {
    let text = std::fs::read_to_string(store.join(LOG)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("; ")
}
