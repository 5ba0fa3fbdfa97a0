//! Accepted governing state: a fold of commits, its Merkle root, and the receipts that chain it.
//!
//! Owns what is accepted now and how it changes: typed deltas in, a commit and the next state out, or denials. Everything
//! the service derives (suspensions, delegates' revocations, the duty to reconcile) is derived here, in the same step.
//! Deliberately lacks any judgment of evidence, endorsement or signature: those are decided in `closer-protocol` and
//! arrive as a [`Derivation`]. No clock, no randomness, no I/O. Spec: §5, C10, design §4.

pub mod accepted;
mod awaited;
mod index;
pub mod merkle;
pub mod state;

pub mod denied;
pub mod derive;
mod fold;
mod guard;
mod trigger;

pub mod commit;
pub mod genesis;
pub mod rebase;
pub mod receipt;
pub mod snapshot;

pub use accepted::Accepted;
pub use awaited::Awaited;
pub use commit::{Commit, Derivation, apply, propose, propositions, restricted_scopes, touched};
pub use denied::{Denied, Divergence};
pub use derive::{DerivedChange, Duty};
pub use genesis::{Genesis, genesis};
pub use merkle::{Merkle, Proof};
pub use rebase::{Sets, rebase, sets};
pub use receipt::{ReceiptFacts, receipt, verify_chain};
pub use snapshot::Snapshot;
pub use state::State;
pub use trigger::{comes_by, is_reconsiderable};

#[cfg(test)]
mod tests;
