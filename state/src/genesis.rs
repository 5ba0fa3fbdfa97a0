//! The first state of a space: its profile and the items it founds. Version 0, no parent. Spec: design §4, Appendix A.

use crate::commit::state_ref;
use crate::denied::{Denied, Divergence};
use crate::guard::{change, root};
use crate::state::State;
use closer_contracts::canonical::{digest_of, from_value, read_value, to_bytes};
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::profile::Profile;
use closer_contracts::refs::StateRef;
use closer_contracts::{Check, Digest, Fault};
use serde::{Deserialize, Serialize};

/// The body of a `genesis` record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Genesis {
    /// Everything accepted, the profile among it, sorted by kind and id.
    pub items: Vec<Item>,
    /// The digest of `items`.
    pub items_digest: Digest,
    /// The Merkle root of the state it founds.
    pub state_root: Digest,
    /// The state it founds, at version 0.
    pub after: StateRef,
}

impl Genesis {
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

    /// Founds the recorded state and compares every digest it names.
    ///
    /// # Errors
    /// The first thing that differs, by name.
    pub fn found(&self) -> Result<State, Divergence> {
        let fold_fault = |fault| Divergence::Fold { version: 0, fault };
        let (founded, state) = seal(self.items.clone()).map_err(fold_fault)?;
        match founded {
            founded if founded.items_digest != self.items_digest => Err(Divergence::Proposal { version: 0 }),
            founded if founded.state_root != self.state_root => Err(Divergence::Root { version: 0 }),
            founded if founded.after != self.after => Err(Divergence::After { version: 0 }),
            _ => Ok(state),
        }
    }
}

/// Founds a space. Obligations and their triggers are admitted by commits, never founded.
///
/// # Errors
/// `schema_invalid`, `key_conflict`, `unresolved_ref`, `unsupported_promotion`, with the path of the item.
pub fn genesis(profile: Profile, items: Vec<Item>) -> Result<(Genesis, State), Fault> {
    let mut items = items;
    items.push(Item::Profile(profile));
    items.sort_by_key(|item| (item.kind(), item.id()));
    let mut state = State::empty();
    for item in &items {
        admissible(&state, item).map_err(|denied| fault(denied, item))?;
        state.put(item.clone(), 0)?;
    }
    // What is founded is checked against all of it: a claim may stand before the rule it cites.
    for item in &items {
        change::content(&state, item)
            .and_then(|()| change::ends(&state, item))
            .and_then(|()| root::reaches_user(&state, item))
            .map_err(|denied| fault(denied, item))?;
    }
    seal(items)
}

fn fault(denied: Denied, item: &Item) -> Fault {
    let place = denied.offending.map_or_else(String::new, |offending| offending.to_string());
    let fault = Fault::new(denied.code, denied.reason.to_string());
    match place.is_empty() {
        true => fault.within(item.id()),
        false => fault.within(place).within(item.id()),
    }
}

fn admissible(state: &State, item: &Item) -> Result<(), Denied> {
    item.check()?;
    let founded = match item.kind() {
        ItemKind::Obligation | ItemKind::Reentry | ItemKind::Restriction => false,
        ItemKind::Goal
        | ItemKind::Constraint
        | ItemKind::Grant
        | ItemKind::Claim
        | ItemKind::Method
        | ItemKind::Dependency
        | ItemKind::Operation
        | ItemKind::ReadbackMethod
        | ItemKind::Identity
        | ItemKind::Source
        | ItemKind::Rule
        | ItemKind::Policy
        | ItemKind::Appointment
        | ItemKind::Coalition
        | ItemKind::Capability
        | ItemKind::Workflow
        | ItemKind::Skill
        | ItemKind::Profile => true,
    };
    crate::denied::demand(founded, || {
        Denied::schema(&item.id(), &format!("a {} is admitted by a commit", item.kind()))
    })?;
    change::is_fresh(state, item.kind(), &item.id())
}

fn seal(items: Vec<Item>) -> Result<(Genesis, State), Fault> {
    let mut state = State::empty();
    items.iter().try_for_each(|item| state.put(item.clone(), 0))?;
    let items_digest = digest_of(&items)?;
    let derived_digest = digest_of::<[Item]>(&[])?;
    let state_root = state.root();
    let after = state_ref(None, items_digest, derived_digest, state_root)?;
    state.set_reference(after);
    Ok((Genesis { items, items_digest, state_root, after }, state))
}
