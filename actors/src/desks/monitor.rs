//! The monitor's desk: asks the sequence to judge one attempt. The judgment itself is made there.

use super::misdirected;
use crate::service::{Attended, Charge, Desk, Draft};
use closer_protocol::Input;
use closer_protocol::episode::Next;

/// The desk.
pub(crate) struct Monitor;

impl Desk for Monitor {
    fn name(&self) -> &'static str {
        "monitor"
    }

    fn attend(&self, charge: &Charge) -> Attended {
        let Next::Dispatch { payload_id } = &charge.stage else {
            return misdirected(charge);
        };
        let input = Input::Dispatch { payload_id: payload_id.clone(), adjudication_id: None };
        Attended::Drafted(Ok(Draft::Input(Box::new(input))))
    }
}
