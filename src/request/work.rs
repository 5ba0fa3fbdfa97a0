//! Work that lies with an agent outside: listed, taken up, read, answered, and told what became of it. Spec: C5, C6.

use super::{Answer, WorkRequest};
use crate::error::Error;
use crate::space::Space;
use closer_contracts::id::{ActorId, DecisionId, WorkId};
use closer_contracts::refs::{ActorRef, Amounts, ProducerRole};
use closer_protocol::input;
use closer_protocol::work::outside::{self, ToldWork};
use closer_protocol::work::{self, HandedIn, WorkTaken};
use closer_protocol::{Input, Reply};
use serde_json::{Value, json};

/// Answers what an agent asks about its own work.
pub(super) async fn answer(space: &dyn Space, identity: &ActorId, asked: WorkRequest) -> Result<Answer, Error> {
    match asked {
        WorkRequest::List { all } => Ok(list(space, identity, all)),
        WorkRequest::Take { work_id } => take(space, identity, work_id).await,
        WorkRequest::Read { work_id } => read(space, identity, &work_id),
        WorkRequest::Return { work_id, answer } => hand_in(space, identity, &work_id, &answer).await,
        WorkRequest::Why { work_id } => Ok(why(space, identity, &work_id)),
        WorkRequest::Packet { decision_id } => Ok(packet(space, identity, &decision_id)),
    }
}

fn line(work: &ToldWork) -> String {
    let until = work.deadline.as_ref().map(|deadline| format!(", until {deadline}")).unwrap_or_default();
    format!("{} {} as {}{until}: {}", work.work_id, work.standing, work.role, work.question)
}

fn list(space: &dyn Space, identity: &ActorId, all: bool) -> Answer {
    let work = outside::list(&space.view(), identity, all, &space.moment());
    let mut text: Vec<String> = work.iter().map(line).collect();
    if text.is_empty() {
        text.push(format!("no work waits for `{identity}`"));
    }
    Answer::done(json!({ "work": work }), text)
}

async fn take(space: &dyn Space, identity: &ActorId, work_id: Option<WorkId>) -> Result<Answer, Error> {
    let open = || {
        let waiting = outside::list(&space.view(), identity, false, &space.moment());
        waiting.into_iter().find(|work| work.taken_at.is_none()).map(|work| work.work_id)
    };
    let Some(work_id) = work_id.or_else(open) else {
        let text = format!("no work waits to be taken up by `{identity}`");
        return Ok(Answer::done(json!({ "work": null, "packet": null }), vec![text]));
    };
    let producer = ActorRef { actor_id: identity.clone(), role: ProducerRole::Participant };
    let reply = match space.artifact(WorkTaken::of(identity, &work_id).into(), producer, None) {
        Ok(submission) => space.submit(Input::Artifact(submission)).await?,
        Err(fault) => Reply::Refused(vec![fault.into()]),
    };
    if reply.refusal().is_some() {
        return Ok(Answer::replied(&reply, "taken up"));
    }
    read(space, identity, &work_id)
}

fn read(space: &dyn Space, identity: &ActorId, work_id: &WorkId) -> Result<Answer, Error> {
    let (view, at) = (space.view(), space.moment());
    let work = match outside::packet(&view, identity, work_id, &at) {
        Ok(work) => work,
        Err(denial) => return Ok(Answer::refused(&[denial])),
    };
    let told = outside::told(&view, identity, work_id, &at);
    let packet: Value = closer_contracts::canonical::to_value(&*work.body)?;
    let mut text: Vec<String> = told.iter().map(line).collect();
    text.extend(work.body.context_items.iter().map(|item| format!("  holds {}", item.reference.id)));
    Ok(Answer::done(json!({ "work": told, "packet": packet }), text))
}

async fn hand_in(space: &dyn Space, identity: &ActorId, work_id: &WorkId, answer: &str) -> Result<Answer, Error> {
    let handed_in = work::hand_in(&space.view(), identity, work_id, answer.as_bytes(), &space.moment().now);
    let used = Amounts::default();
    let authenticated = match handed_in {
        HandedIn::Nothing(denial) => {
            let handed_in_by = Some(identity.clone());
            Ok(Input::Unanswered { work_id: work_id.clone(), denial, used, handed_in_by })
        }
        HandedIn::Result(payload) => space
            .payload(*payload, None)
            .map(|submission| Input::Answer { answer: input::Answer::Result(submission), used }),
        HandedIn::Move(made) => {
            let producer = ActorRef { actor_id: made.actor.clone(), role: ProducerRole::Participant };
            space
                .artifact((*made).into(), producer, None)
                .map(|submission| Input::Answer { answer: input::Answer::Move(submission), used })
        }
    };
    let reply = match authenticated {
        Ok(input) => space.submit(input).await?,
        Err(fault) => Reply::Refused(vec![fault.into()]),
    };
    Ok(Answer::replied(&reply, "the answer is on record"))
}

fn why(space: &dyn Space, identity: &ActorId, work_id: &WorkId) -> Answer {
    let Some(work) = outside::told(&space.view(), identity, work_id, &space.moment()) else {
        return Answer::not_found("work", work_id.as_str());
    };
    let mut text = vec![line(&work)];
    text.extend(work.failed.iter().map(|(code, reason)| format!("failed as {}: {reason}", code.as_str())));
    for told in &work.proposals {
        let refused = told.refused.map(|code| format!("refused: {}", code.as_str()));
        let stands = refused.or_else(|| told.attempt.map(str::to_owned)).unwrap_or_else(|| "not tried".to_owned());
        text.push(format!("proposed {} of {}: {stands}", told.proposal.operation, told.proposal.target.address));
    }
    text.extend(work.packets.iter().map(|id| format!("asked the user with {id}")));
    text.extend(work.episode_end.map(|end| {
        let reason = work.end_reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("its episode ended as {end}{reason}")
    }));
    Answer::done(json!({ "work": work }), text)
}

fn packet(space: &dyn Space, identity: &ActorId, decision_id: &DecisionId) -> Answer {
    let Some(packet) = outside::followed(&space.view(), identity, decision_id, &space.moment()) else {
        return Answer::not_found("packet", decision_id.as_str());
    };
    let answer = packet.answer.map(|answer| format!(", answered with {answer}")).unwrap_or_default();
    let fate = packet.fate.map(|fate| format!(", which {fate}")).unwrap_or_default();
    let text = vec![format!("{} is {}{answer}{fate}", packet.decision_id, packet.status)];
    Answer::done(json!({ "packet": packet }), text)
}
