//! The coordinator's desk in a conference: its contract, its packets, and the steps that are the runtime's (§4.1).

use super::{misdirected, missing};
use crate::service::{Attended, Charge, Desk, Draft};
use crate::space::Space;
use closer_contracts::Fault;
use closer_contracts::id::{CoalitionId, ConferenceId, Key};
use closer_contracts::refs::ProducerRole;
use closer_protocol::conference::{self, Proceed, Turn};
use closer_protocol::episode::Next;
use closer_protocol::{Input, coalition, services, work};
use std::sync::Arc;

/// The desk.
pub(crate) struct Conference(pub(crate) Arc<Space>);

impl Desk for Conference {
    fn name(&self) -> &'static str {
        "conference"
    }

    fn attend(&self, charge: &Charge) -> Attended {
        match &charge.stage {
            Next::Convene { coalition_id } => Attended::Drafted(self.contract(charge, coalition_id)),
            Next::Confer { conference_id, turn } => match self.step(charge, conference_id, turn) {
                Some(drafted) => Attended::Drafted(drafted),
                None => misdirected(charge),
            },
            Next::Route { .. }
            | Next::Work { .. }
            | Next::Ask { .. }
            | Next::Act { .. }
            | Next::Again { .. }
            | Next::Assess { .. }
            | Next::Dispatch { .. }
            | Next::Await { .. }
            | Next::Readback { .. }
            | Next::Judge { .. }
            | Next::AskUser { .. }
            | Next::HandOver { .. }
            | Next::Distil
            | Next::Endorse { .. }
            | Next::Commit { .. }
            | Next::End { .. }
            | Next::Ended => misdirected(charge),
        }
    }
}

impl Conference {
    fn contract(&self, charge: &Charge, coalition_id: &CoalitionId) -> Result<Draft, Fault> {
        let Charge { episode, view, .. } = charge;
        let coalition = coalition::of(view, &episode.obligation_id);
        let coalition = coalition.filter(|coalition| coalition.coalition_id == *coalition_id);
        let coalition = coalition.ok_or_else(|| missing("the coalition is not registered"))?;
        let contract = conference::draft(view, episode, coalition, &self.0.moment())?;
        Ok(Draft::Artifact(Box::new(contract.into()), services::actor_ref(ProducerRole::Coordinator)))
    }

    /// What a turn of the runtime's own comes to; `None` for what is not its turn.
    fn step(&self, charge: &Charge, conference_id: &ConferenceId, turn: &Turn) -> Option<Result<Draft, Fault>> {
        let Charge { episode, view, .. } = charge;
        let now = self.0.moment().now;
        let round = view.conferences.round(conference_id).ok_or_else(|| missing("the conference is not on record"));
        let conference_id = conference_id.clone();
        let proceed = match turn {
            Turn::Work(seat) => {
                let packet = round.and_then(|round| work::draft_for_seat(view, episode, round, seat, &now));
                return Some(packet.map(|packet| Draft::Work(Box::new(packet))));
            }
            Turn::Move(seat) => {
                let packet = round.and_then(|round| work::draft_for_turn(view, episode, round, seat, &now));
                return Some(packet.map(|packet| Draft::Work(Box::new(packet))));
            }
            Turn::Seal => Proceed::Seal { conference_id, nonce: Key::new(self.0.ports.ids.nonce()) },
            Turn::Release => Proceed::Release { conference_id },
            Turn::Conclude => Proceed::Conclude { conference_id },
            Turn::Answers { .. } | Turn::Over => return None,
        };
        Some(Ok(Draft::Input(Box::new(Input::Confer(proceed)))))
    }
}
