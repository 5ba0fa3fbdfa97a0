//! The ractor shells over the pure core: they move messages, call ports, wait and restart. Nothing here decides.
//!
//! ```text
//! Handle ─► lanes ─► semantic service ─► log          one decider per space; replies and effects leave after durability
//!                         │ effects
//!        ┌────────────────┼───────────────┐
//!     matcher          router         dispatcher ─► Operations        (a permit, once)
//!        │                │
//!     scheduler      coordinator per episode ─► desks: disclosure · participants · planner · assessor · monitor
//!        │                                             observer · distiller · briefcase
//!        └─ Open, Tick ─► lanes            reconciler ─► observer     (attempts that outlived their episode)
//! ```
//!
//! A coordinator asks [`closer_protocol::episode::next`] what the records show to be next and charges the desk of that
//! stage with it; the desk drafts the payload with the protocol's drafting function, authenticates it as its own service
//! identity and offers it to the sequence. An actor that dies is started again by its supervisor and goes on from the
//! records. A refusal is a reply; an `Err` from a handler means that the shell is broken.

mod error;
mod founding;
mod handle;
mod options;
mod runtime;

mod activity;
mod directory;
mod identities;
mod lanes;
mod replay;
mod space;

mod root;
mod semantic;

mod matcher;
mod notifier;
mod reconciler;
mod scheduler;

mod coordinator;
mod router;

mod desks;
mod dispatcher;
mod service;

pub use error::{Error, storage_full};
pub use founding::found;
pub use handle::Handle;
pub use options::{Endorser, Options, Ports, Probe};
pub use replay::replay;
pub use runtime::Runtime;
