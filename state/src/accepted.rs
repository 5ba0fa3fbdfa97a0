//! One accepted item with its digest and age, and what its standing means. Spec: §5, DEC-35.

use closer_contracts::Digest;
use closer_contracts::item::{Item, Standing};

/// The content of an item that is of the named kind.
macro_rules! only {
    ($item:expr, $kind:ident) => {
        if let closer_contracts::item::Item::$kind(item) = $item { Some(item) } else { None }
    };
}
pub(crate) use only;

/// An item of accepted state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The item.
    pub item: Item,
    /// The digest of its canonical form, which is its leaf in the Merkle root.
    pub digest: Digest,
    /// The version of the commit that last changed it.
    pub since: u64,
}

impl Accepted {
    /// Whether the item may be used as current: not suspended, retracted or revoked, and not settled.
    #[must_use]
    pub fn is_current(&self) -> bool {
        let settled = only!(&self.item, Obligation).is_some_and(|obligation| !obligation.status.is_open());
        !settled && !is_invalidated(&self.item)
    }
}

/// Whether what rests on the item has lost a premise. A settled obligation is settled, not invalid.
#[must_use]
pub fn is_invalidated(item: &Item) -> bool {
    let revoked = only!(item, Grant).is_some_and(|grant| grant.revocation.revoked_by.is_some());
    revoked || standing(item).is_some_and(|standing| standing != Standing::Current)
}

macro_rules! standings {
    ($($with:ident),+; $($without:ident),+) => {
        /// The standing of an item whose kind has one.
        #[must_use]
        pub const fn standing(item: &Item) -> Option<Standing> {
            match item {
                $(Item::$with(item) => Some(item.standing),)+
                $(Item::$without(_) => None,)+
            }
        }

        /// The item at another standing; unchanged where its kind has none.
        pub(crate) fn with_standing(mut item: Item, standing: Standing) -> Item {
            match &mut item {
                $(Item::$with(item) => item.standing = standing,)+
                $(Item::$without(_) => {})+
            }
            item
        }
    };
}

standings! {
    Goal, Constraint, Claim, Method, Restriction, Operation, ReadbackMethod, Identity, Source, Rule, Policy, Appointment,
    Coalition, Capability, Workflow, Skill, Profile;
    Grant, Obligation, Dependency, Reentry
}
