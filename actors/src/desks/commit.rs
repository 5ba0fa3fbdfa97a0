//! The semantic service's desk: asks the sequence for the commit of an endorsed delta.

use super::misdirected;
use crate::service::{Attended, Charge, Desk, Draft};
use closer_protocol::Input;
use closer_protocol::episode::Next;

/// The desk.
pub(crate) struct Commit;

impl Desk for Commit {
    fn name(&self) -> &'static str {
        "semantic"
    }

    fn attend(&self, charge: &Charge) -> Attended {
        let Next::Commit { delta_id } = &charge.stage else {
            return misdirected(charge);
        };
        Attended::Drafted(Ok(Draft::Input(Box::new(Input::Commit { delta_id: delta_id.clone() }))))
    }
}
