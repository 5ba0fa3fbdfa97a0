//! The planner: from a proposal to an exact ACTION under the grant that covers it, and from a lack to an offer (§6.4, C7).

use super::{misdirected, payload};
use crate::service::{Attended, Charge, Desk};
use crate::space::Space;
use closer_protocol::episode::Next;
use closer_protocol::{action, follow_up};
use std::sync::Arc;

/// The desk.
pub(crate) struct Planner(pub(crate) Arc<Space>);

impl Desk for Planner {
    fn name(&self) -> &'static str {
        "planner"
    }

    fn attend(&self, charge: &Charge) -> Attended {
        let now = self.0.moment().now;
        let Charge { stage, episode, view } = charge;
        let drafted = match stage {
            Next::Act { result, proposal, grant } => action::draft(view, episode, result, proposal, grant, 1, &now),
            Next::Again { earlier, attempt } => action::draft_again(view, episode, earlier, *attempt, &now),
            Next::HandOver { recipient, contract } => {
                follow_up::offer(view, episode, recipient, contract, &self.0.moment())
            }
            Next::Work { .. }
            | Next::Ask { .. }
            | Next::Route { .. }
            | Next::Convene { .. }
            | Next::Confer { .. }
            | Next::Assess { .. }
            | Next::Dispatch { .. }
            | Next::Await { .. }
            | Next::Readback { .. }
            | Next::Judge { .. }
            | Next::AskUser { .. }
            | Next::Distil
            | Next::Endorse { .. }
            | Next::Commit { .. }
            | Next::End { .. }
            | Next::Ended => return misdirected(charge),
        };
        Attended::Drafted(drafted.map(payload))
    }
}
