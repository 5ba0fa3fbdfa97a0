//! The assessor: one adjudication at each of the three moments (§4.2, C9). A delta may be considered by somebody slow first.

use super::{misdirected, missing, payload};
use crate::service::{Attended, Charge, Desk, Draft};
use crate::space::Space;
use closer_contracts::Fault;
use closer_contracts::id::DeltaId;
use closer_protocol::adjudicate;
use closer_protocol::episode::Next;
use std::sync::Arc;

/// The desk.
pub(crate) struct Assessor(pub(crate) Arc<Space>);

impl Desk for Assessor {
    fn name(&self) -> &'static str {
        "assessor"
    }

    fn attend(&self, charge: &Charge) -> Attended {
        let now = self.0.moment().now;
        let Charge { stage, episode, view } = charge;
        match stage {
            Next::Assess { payload_id } => {
                let action = view.actions.get(payload_id).ok_or_else(|| missing("the action is not on record"));
                Attended::Drafted(
                    action.and_then(|action| adjudicate::pre_action(view, episode, action, &now)).map(payload),
                )
            }
            Next::Judge { attempt_id, evidence_id } => {
                let attempt = view.attempts.get(attempt_id).zip(view.evidence.get(evidence_id));
                let attempt = attempt.ok_or_else(|| missing("the attempt or its readback is not on record"));
                let drafted = attempt
                    .and_then(|(attempt, readback)| adjudicate::post_outcome(view, episode, attempt, readback, &now));
                Attended::Drafted(drafted.map(payload))
            }
            Next::Endorse { delta_id } => match &self.0.options.endorser {
                None => Attended::Drafted(self.endorse(charge, delta_id)),
                Some(endorser) => {
                    let (desk, endorser) = (Self(Arc::clone(&self.0)), Arc::clone(endorser));
                    let (charge, delta_id) = (charge.clone(), delta_id.clone());
                    Attended::Calling(Box::pin(async move {
                        let delta = charge.view.deltas.get(&delta_id).map(|delta| Arc::clone(&delta.body));
                        endorser.consider(&*delta.ok_or_else(|| missing("the delta is not on record"))?).await;
                        desk.endorse(&charge, &delta_id)
                    }))
                }
            },
            Next::Work { .. }
            | Next::Ask { .. }
            | Next::Route { .. }
            | Next::Convene { .. }
            | Next::Confer { .. }
            | Next::Act { .. }
            | Next::Again { .. }
            | Next::Dispatch { .. }
            | Next::Await { .. }
            | Next::Readback { .. }
            | Next::AskUser { .. }
            | Next::HandOver { .. }
            | Next::Distil
            | Next::Commit { .. }
            | Next::End { .. }
            | Next::Ended => misdirected(charge),
        }
    }
}

impl Assessor {
    /// The position is taken on the view that was there when it was asked for; the sequence knows what has moved since.
    fn endorse(&self, charge: &Charge, delta_id: &DeltaId) -> Result<Draft, Fault> {
        let delta = charge.view.deltas.get(delta_id).ok_or_else(|| missing("the delta is not on record"))?;
        adjudicate::semantic_commit(&charge.view, &charge.episode, delta, &self.0.moment().now).map(payload)
    }
}
