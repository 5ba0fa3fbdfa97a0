//! The briefcase: a packet for The Bench (§7.3, C13).

use super::{misdirected, missing, payload};
use crate::service::{Attended, Charge, Desk};
use crate::space::Space;
use closer_protocol::bench;
use closer_protocol::episode::Next;
use std::sync::Arc;

/// The desk.
pub(crate) struct Briefcase(pub(crate) Arc<Space>);

impl Desk for Briefcase {
    fn name(&self) -> &'static str {
        "briefcase"
    }

    fn attend(&self, charge: &Charge) -> Attended {
        let Next::AskUser { result, proposal } = &charge.stage else {
            return misdirected(charge);
        };
        let result = charge.view.results.get(result).ok_or_else(|| missing("the result is not on record"));
        let now = self.0.moment().now;
        let drafted =
            result.and_then(|result| bench::draft(&charge.view, &charge.episode, result, proposal.as_deref(), &now));
        Attended::Drafted(drafted.map(payload))
    }
}
