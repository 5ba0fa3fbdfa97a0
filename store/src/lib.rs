//! The record log and the state derived from it.
//!
//! The **record** is an append-only segment log, the only durability boundary: one fenced append, one writer, group
//! commit. The **derived state** is an index in sled, written behind the log, trusted for nothing that the log does not
//! prove and rebuilt on any doubt. Deliberately lacks policy, any clock that decides, and any async runtime: callers
//! submit from their own threads and are told when an append is durable. Spec: design §3.

pub mod disk;
mod error;

mod frame;
mod heads;
mod segment;

pub mod log;
pub mod verify;

pub mod backup;
pub mod derived;

pub use backup::{is_backup, restore};
pub use closer_contracts::record::Appended;
pub use derived::{StateChange, StateRow, StateSink};
pub use disk::{Disk, RealDisk, SimDisk};
pub use error::{Corruption, Declined, StoreError};
pub use log::{BodyState, Drive, Entry, Log, Reader, RecordLog, Remainder, Removal, Settings, Standing, Ticket};
pub use segment::FORMAT_VERSION;
pub use verify::{Progress, Verified};
