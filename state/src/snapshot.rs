//! A snapshot of the fold: all items with their ages, checked against the root when it is restored. Spec: design §3, §4.

use crate::denied::Divergence;
use crate::state::State;
use closer_contracts::canonical::{from_value, read_value, to_bytes};
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::refs::StateRef;
use closer_contracts::{Digest, Fault, branch};
use serde::{Deserialize, Serialize};

/// One item of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The version of the commit that last changed it.
    pub since: u64,
    /// The item.
    pub item: Item,
}

/// The body of a `snapshot` record, from which a rebuild may start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// The state it is of. Its digest is not recomputed here: the commits before it are what it chains.
    pub reference: StateRef,
    /// The Merkle root of the items.
    pub state_root: Digest,
    /// All items, by kind and id.
    pub items: Vec<Kept>,
}

impl Snapshot {
    /// The snapshot of a state.
    #[must_use]
    pub fn of(state: &State) -> Self {
        let kept = |kind: &ItemKind| {
            let items = state.items(*kind);
            items.map(|accepted| Kept { since: accepted.since, item: accepted.item.clone() }).collect::<Vec<_>>()
        };
        Self {
            reference: state.reference(),
            state_root: state.root(),
            items: ItemKind::ALL.iter().flat_map(kept).collect(),
        }
    }

    /// The state again, if its items have the recorded root.
    ///
    /// # Errors
    /// [`Divergence::Root`] when an item is not what it was; [`Divergence::Fold`] when one has no canonical form.
    pub fn restore(&self) -> Result<State, Divergence> {
        let version = self.reference.version;
        let mut state = State::empty();
        for Kept { since, item } in &self.items {
            state.put(item.clone(), *since).map_err(|fault| Divergence::Fold { version, fault })?;
        }
        match branch!("state.snapshot_root", state.root() == self.state_root) {
            true => {
                state.set_reference(self.reference);
                Ok(state)
            }
            false => Err(Divergence::Root { version }),
        }
    }

    /// The canonical bytes of the record's body.
    ///
    /// # Errors
    /// `schema_invalid` when an item has no canonical form.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Fault> {
        to_bytes(self)
    }

    /// Reads a record's body.
    ///
    /// # Errors
    /// `schema_invalid` with the path of the field.
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        from_value(read_value(bytes)?)
    }
}
