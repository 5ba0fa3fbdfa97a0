//! The router's desk: who of a coalition does the work of an episode (C4).

use super::{misdirected, missing, payload};
use crate::service::{Attended, Charge, Desk};
use crate::space::Space;
use closer_protocol::episode::Next;
use closer_protocol::{coalition, route};
use std::sync::Arc;

/// The desk.
pub(crate) struct Routing(pub(crate) Arc<Space>);

impl Desk for Routing {
    fn name(&self) -> &'static str {
        "routing"
    }

    fn attend(&self, charge: &Charge) -> Attended {
        let Next::Route { coalition_id } = &charge.stage else {
            return misdirected(charge);
        };
        let Charge { episode, view, .. } = charge;
        let coalition = coalition::of(view, &episode.obligation_id);
        let coalition = coalition.filter(|coalition| coalition.coalition_id == *coalition_id);
        let coalition = coalition.ok_or_else(|| missing("the coalition is not registered"));
        let now = self.0.moment().now;
        let drafted = coalition.and_then(|coalition| route::draft(view, episode, coalition, &now));
        Attended::Drafted(drafted.map(payload))
    }
}
