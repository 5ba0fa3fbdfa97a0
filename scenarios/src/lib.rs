//! Scenarios: the protocol's cases as data, and the deterministic space they run in.
//!
//! [`Space`] drives the same [`closer_protocol::sequence::Sequence`] and the same stage functions as the actors do, over an
//! in-memory log and a simulated [`World`], one step at a time, with a clock that moves only when it is told to. Nothing
//! here decides anything about the protocol.

pub mod catalog;
pub mod founding;
pub mod memory;
pub mod simulate;
pub mod space;
pub mod worker;
pub mod world;

pub use founding::Deployment;
pub use memory::{Ground, MemoryLog};
pub use space::Space;
pub use world::{Mode, World};
