//! From the log to the view.

use crate::error::Error;
use closer_contracts::record::Cursor;
use closer_protocol::{Entry, View};
use closer_store::Log;

/// Folds the durable log into its view. Every commit must reproduce its state root.
///
/// # Errors
/// [`Error::Divergence`], [`Error::Unreadable`], [`Error::Unfounded`]; whatever keeps the log from being read.
pub fn replay(log: &Log) -> Result<View, Error> {
    let mut folded = Ok(View::default());
    log.replay(Cursor(1), &mut |cursor, record| {
        if let Ok(view) = &mut folded {
            let entry = Entry::read(record).map_err(|fault| Error::Unreadable { cursor: cursor.0, fault });
            let fold = entry.and_then(|entry| Ok(view.fold(&entry, &record.admitted_at)?));
            if let Err(error) = fold {
                folded = Err(error);
            }
        }
    })?;
    let view = folded?;
    match view.genesis.is_some() {
        true => Ok(view),
        false => Err(Error::Unfounded),
    }
}
