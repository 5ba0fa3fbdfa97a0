//! The participants: each is handed its packet and nothing else, and its answer is untrusted bytes (C5, C6).

use super::{misdirected, missing};
use crate::service::{Attended, Charge, Desk, Draft};
use crate::space::{Space, until};
use closer_contracts::Fault;
use closer_contracts::id::{ActorId, WorkId};
use closer_contracts::refs::Amounts;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode};
use closer_contracts::work::Work;
use closer_protocol::Input;
use closer_protocol::call;
use closer_protocol::conference;
use closer_protocol::episode::Next;
use closer_protocol::port::{NoAnswer, Participant, Said};
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
        if let Some(result) = call::result(&charge.view, &charge.episode.episode_id, work_id) {
            let now = self.0.moment().now;
            let drafted = work::draft_result(&charge.view, &charge.episode, participant, work_id, result, &now);
            return Attended::Drafted(drafted.map(|drafted| Draft::Result(Box::new(drafted), Amounts::default())));
        }
        if work::outside::is_outside(&charge.view, participant) {
            let (space, charge, work_id) = (Arc::clone(&self.0), charge.clone(), work_id.clone());
            return Attended::Calling(Box::pin(async move { awaited(&space, &charge, &work_id).await }));
        }
        match self.0.ports.participants.get(participant) {
            None => {
                let reason = "the participant does not run in this process";
                Attended::Drafted(Ok(failed(work_id, NoAnswer::new(RefusalCode::NoAnswer, reason))))
            }
            Some(port) => {
                let (space, charge, port) = (Arc::clone(&self.0), charge.clone(), Arc::clone(port));
                let (work_id, participant) = (work_id.clone(), participant.clone());
                Attended::Calling(Box::pin(async move { ask(&space, &charge, &*port, &participant, &work_id).await }))
            }
        }
    }

    fn failed(&self, charge: &Charge, times: u32) -> Option<Draft> {
        let Next::Ask { work_id, .. } = &charge.stage else {
            return None;
        };
        let reason = format!("the participant failed {times} times");
        Some(failed(work_id, NoAnswer::new(RefusalCode::NoAnswer, reason)))
    }
}

/// Waits until an answer from outside is on record, or its time is over. Nobody is asked: an agent comes by itself.
async fn awaited(space: &Space, charge: &Charge, work_id: &WorkId) -> Result<Draft, Fault> {
    let work = charge.view.works.get(work_id).ok_or_else(|| missing("the work is not on record"))?;
    let deadline = work.body.deadline.as_ref().unwrap_or(&charge.episode.stops_at);
    let left = until(&space.moment().now, deadline);
    let mut views = space.subscribe();
    let settled = views.wait_for(|view| !work::outside::is_awaited(view, work_id));
    match tokio::time::timeout(left, settled).await {
        Ok(_) => Ok(Draft::OnRecord),
        Err(_) => Ok(failed(work_id, late())),
    }
}

fn late() -> NoAnswer {
    NoAnswer::new(RefusalCode::NoAnswer, "the deadline of the work has passed")
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
    let moves = work.body.output_contract_ref == work::move_contract();
    let asked = if moves { port.turn(&work.body) } else { port.work(&work.body) };
    let said = tokio::time::timeout(left, asked).await;
    match said.unwrap_or_else(|_| Err(late())) {
        Err(no_answer) => Ok(failed(work_id, no_answer)),
        Ok(Said { bytes, used }) => {
            let read = match moves {
                true => moved(charge, participant, &work.body, &bytes, &used),
                false => answered(space, charge, participant, work_id, &bytes, &used),
            };
            Ok(read.unwrap_or_else(|fault| {
                let reason = format!("the answer does not meet its contract: {fault}");
                failed(work_id, NoAnswer { code: fault.code, reason: reason.into(), used })
            }))
        }
    }
}

fn answered(
    space: &Space,
    charge: &Charge,
    participant: &ActorId,
    work_id: &WorkId,
    bytes: &[u8],
    used: &Amounts,
) -> Result<Draft, Fault> {
    let result = work::read_answer(bytes)?;
    let now = space.moment().now;
    let payload = work::draft_result(&charge.view, &charge.episode, participant, work_id, result, &now)?;
    Ok(Draft::Result(Box::new(payload), used.clone()))
}

fn moved(charge: &Charge, participant: &ActorId, work: &Work, bytes: &[u8], used: &Amounts) -> Result<Draft, Fault> {
    let answer = conference::read_move(bytes)?;
    let round = charge.view.conferences.of_coalition(&work.coalition_ref);
    let round = round.ok_or_else(|| missing("the conference is not on record"))?;
    let made = conference::draft_move(round, participant, &work.work_id, answer)?;
    Ok(Draft::Move(Box::new(made), used.clone()))
}

fn failed(work_id: &WorkId, no_answer: NoAnswer) -> Draft {
    let NoAnswer { code, reason, used } = no_answer;
    let denial = Denial::new(code, CheckKind::Schema, reason.as_str());
    Draft::Input(Box::new(Input::Unanswered { work_id: work_id.clone(), denial, used, handed_in_by: None }))
}
