//! Founding a space: its genesis becomes the first append of an empty log.

use crate::error::Error;
use closer_contracts::record::Cursor;
use closer_protocol::Moment;
use closer_protocol::genesis::{self, Founding};
use closer_store::{Declined, Log, RecordLog};

/// Writes the genesis of a space into its empty log, durably.
///
/// # Errors
/// [`Error::Founded`] for a log with records; [`Error::Founding`] with the path of what does not fit; whatever keeps the
/// log from writing.
pub async fn found(log: &Log, founding: &Founding, at: &Moment) -> Result<(), Error> {
    if log.durable() > Cursor(0) {
        return Err(Error::Founded);
    }
    let step = genesis::found(founding, at, log).map_err(Error::Founding)?;
    let epoch = log.acquire()?;
    let (durable, told) = tokio::sync::oneshot::channel();
    if let Some(append) = step.append {
        let ticket = log.submit(epoch, append).map_err(|declined| match declined {
            Declined::Conflict(_) => Error::Founded,
            Declined::Store(error) => error.into(),
        })?;
        ticket.on_durable(move |outcome| drop(durable.send(outcome)));
        log.flush()?;
        told.await.map_err(|_| Error::Stopped)??;
    }
    Ok(())
}
