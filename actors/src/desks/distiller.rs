//! The distiller: what an episode established, as one delta (§7.2, C10).

use super::{misdirected, payload};
use crate::service::{Attended, Charge, Desk, Draft};
use crate::space::Space;
use closer_contracts::id::Text;
use closer_protocol::Input;
use closer_protocol::delta;
use closer_protocol::entry::EpisodeEnd;
use closer_protocol::episode::Next;
use std::sync::Arc;

/// The desk.
pub(crate) struct Distiller(pub(crate) Arc<Space>);

impl Desk for Distiller {
    fn name(&self) -> &'static str {
        "distiller"
    }

    fn attend(&self, charge: &Charge) -> Attended {
        let Next::Distil = &charge.stage else {
            return misdirected(charge);
        };
        let distilled = delta::distill(&charge.view, &charge.episode, &self.0.moment());
        Attended::Drafted(distilled.map(|distilled| match distilled {
            Some(delta) => payload(delta),
            None => Draft::Input(Box::new(Input::End {
                episode_id: charge.episode.episode_id.clone(),
                end: EpisodeEnd::NothingToDo,
                reason: Text::from("nothing that was found changes what is accepted"),
            })),
        }))
    }
}
