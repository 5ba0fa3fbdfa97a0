//! Who works on an obligation: the coalition that the deployment registers for it, or one fixed worker. Spec: §3.1, C4.
//!
//! Roles are words here, as everywhere: nothing asks which they are.

use crate::view::View;
use closer_contracts::branch;
use closer_contracts::id::{ActorId, ObligationId};
use closer_contracts::item::{Coalition, Identity, ItemKind, Standing};
use closer_contracts::refs::{Amounts, ProducerRole};

/// The version of a coalition that nobody registered: the fixed worker's.
pub const UNREGISTERED: u32 = 1;

/// The coalition that works on an obligation: one that names it, else one that works on all that no other names.
#[must_use]
pub fn of<'a>(view: &'a View, obligation_id: &ObligationId) -> Option<&'a Coalition> {
    let registered = || {
        let items = view.state.items(ItemKind::Coalition).filter_map(|accepted| accepted.item.as_coalition());
        items.filter(|coalition| coalition.standing == Standing::Current)
    };
    let named = registered().find(|coalition| coalition.obligations.contains(obligation_id));
    named.or_else(|| registered().find(|coalition| branch!("coalition.works_on_all", coalition.obligations.is_empty())))
}

/// The membership version that work on an obligation names now.
#[must_use]
pub fn membership_version(view: &View, obligation_id: &ObligationId) -> u32 {
    of(view, obligation_id).map_or(UNREGISTERED, |coalition| coalition.version)
}

/// What one unit of a member's work may cost at most, beside its calls and its time.
#[must_use]
pub fn worst_case(view: &View, obligation_id: &ObligationId, actor: &ActorId) -> Amounts {
    let coalition = of(view, obligation_id);
    let stands_in =
        |member: &&closer_contracts::item::Member| member.actor == *actor || member.alternatives.contains(actor);
    let member = coalition.and_then(|coalition| coalition.members.iter().find(stands_in));
    member.map(|member| member.worst_case.clone()).unwrap_or_default()
}

/// The fixed worker where no coalition is registered: the first current participant in id order.
#[must_use]
pub fn fixed_worker(view: &View) -> Option<ActorId> {
    let works = |identity: &&Identity| {
        identity.standing == Standing::Current && identity.roles.contains(&ProducerRole::Participant)
    };
    let identities = view.state.items(ItemKind::Identity).filter_map(|accepted| accepted.item.as_identity());
    identities.into_iter().find(works).map(|identity| identity.actor_id.clone())
}
