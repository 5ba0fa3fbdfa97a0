//! Disclosure: the packet of a unit of work, with the receipt of what it releases (§4.3).

use super::misdirected;
use crate::service::{Attended, Charge, Desk, Draft};
use crate::space::Space;
use closer_protocol::episode::Next;
use closer_protocol::work;
use std::sync::Arc;

/// The desk.
pub(crate) struct Disclosure(pub(crate) Arc<Space>);

impl Desk for Disclosure {
    fn name(&self) -> &'static str {
        "disclosure"
    }

    fn attend(&self, charge: &Charge) -> Attended {
        let Next::Work { participant, role } = &charge.stage else {
            return misdirected(charge);
        };
        let packet = work::draft(&charge.view, &charge.episode, participant, role, &self.0.moment().now);
        Attended::Drafted(packet.map(|packet| Draft::Work(Box::new(packet))))
    }
}
