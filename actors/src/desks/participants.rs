//! The participants: each is handed its packet and nothing else, and its answer is untrusted bytes (C5, C6).

use super::{misdirected, missing, payload};
use crate::service::{Attended, Charge, Desk, Draft};
use crate::space::{Space, until};
use closer_contracts::Fault;
use closer_contracts::id::{ActorId, Text, WorkId};
use closer_protocol::Input;
use closer_protocol::entry::EpisodeEnd;
use closer_protocol::episode::Next;
use closer_protocol::port::{NoAnswer, Participant};
use closer_protocol::work;
use std::sync::Arc;

/// The desk.
pub(crate) struct Participants(pub(crate) Arc<Space>);

impl Desk for Participants {
    fn name(&self) -> &'static str {
        "participants"
    }

    fn attend(&self, charge: &Charge) -> Attended {
        let Next::Ask { work_id, participant } = &charge.stage else {
            return misdirected(charge);
        };
        match self.0.ports.participants.get(participant) {
            None => Attended::Drafted(Ok(unanswered(charge, "the participant does not run in this process"))),
            Some(port) => {
                let (space, charge, port) = (Arc::clone(&self.0), charge.clone(), Arc::clone(port));
                let (work_id, participant) = (work_id.clone(), participant.clone());
                Attended::Calling(Box::pin(async move { ask(&space, &charge, &*port, &participant, &work_id).await }))
            }
        }
    }
}

async fn ask(
    space: &Space,
    charge: &Charge,
    port: &dyn Participant,
    participant: &ActorId,
    work_id: &WorkId,
) -> Result<Draft, Fault> {
    let work = charge.view.works.get(work_id).ok_or_else(|| missing("the work is not on record"))?;
    let deadline = work.body.deadline.as_ref().unwrap_or(&charge.episode.stops_at);
    let left = until(&space.moment().now, deadline);
    let answer = tokio::time::timeout(left, port.work(&work.body)).await;
    let answer = answer.unwrap_or_else(|_| Err(NoAnswer { reason: "the deadline of the work has passed".into() }));
    let result = answer.map_err(|no_answer| no_answer.reason).and_then(|bytes| {
        work::read_answer(&bytes).map_err(|fault| Text::from(format!("the answer does not meet its contract: {fault}")))
    });
    match result {
        Ok(result) => {
            let now = space.moment().now;
            work::draft_result(&charge.view, &charge.episode, participant, work_id, result, &now).map(payload)
        }
        Err(reason) => Ok(unanswered(charge, reason)),
    }
}

fn unanswered(charge: &Charge, reason: impl Into<Text>) -> Draft {
    Draft::Input(Box::new(Input::End {
        episode_id: charge.episode.episode_id.clone(),
        end: EpisodeEnd::NoAnswer,
        reason: reason.into(),
    }))
}
