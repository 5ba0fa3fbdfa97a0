//! Processes of the runtime's own: started without a shell, bounded in time and output, ended with their descendants.
//!
//! Every process of an operation is on record, with its start time, before it is left to run; what is ended later is what
//! is on record and still the same, and nothing else (§8.3, DEC-92).

mod beside;
mod ledger;
mod program;
mod run;
mod said;
mod table;
mod terminate;

pub use beside::{Beside, end_all_beside};
pub use ledger::{BrokenLedger, FileLedger, MemoryLedger, ProcessLedger, TaskProcess};
pub use program::Program;
pub(crate) use run::{Capture, Finished};
pub use said::said;
pub(crate) use terminate::terminate_attempt;
pub use terminate::{Ended, ProcessEnd, terminate_recorded};
