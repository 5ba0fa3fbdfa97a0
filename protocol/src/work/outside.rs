//! Work that lies with an agent outside: it lists what was issued to it, takes it, reads its packet, hands its answer in, and is
//! told what became of that. Spec: C5, C6, §4.3.
//!
//! Nobody but whom work was issued to learns that there is such work. Work waits until its answer is on record or its time is
//! over; whoever runs meanwhile and wherever it restarts, the records alone say which.

use super::answer::foreign;
use super::suspended;
use crate::bench::{self, Fate};
use crate::entry::{ArtifactBody, AttemptStatus, EpisodeEnd};
use crate::input::{Effect, Moment, Reply, Submission};
use crate::sequence::Deciding;
use crate::streams;
use crate::view::{Episode, OnRecord, View};
use closer_contracts::action::Action;
use closer_contracts::audit::DecisionType;
use closer_contracts::branch;
use closer_contracts::briefcase::PacketStatus;
use closer_contracts::contract::Check;
use closer_contracts::id::{ActionId, ActorId, ArtifactId, DecisionId, Id, Key, PayloadId, Text, WorkId};
use closer_contracts::item::IdentityKind;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{ActionProposal, Work, WorkResult};
use closer_contracts::{Fault, word_enum};
use serde::{Deserialize, Serialize};

/// An agent outside has taken up a unit of work: its own statement, made once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkTaken {
    /// Its id, made from whom and what, so that work is taken up once and nobody can tell by it what another took.
    pub taken_id: ArtifactId,
    /// The work.
    pub work_id: WorkId,
}

impl WorkTaken {
    /// An agent's statement that it takes this work up.
    #[must_use]
    pub fn of(actor: &ActorId, work_id: &WorkId) -> Self {
        let taken_id = ArtifactId::new(crate::derived_id("taken", &format!("{actor}.{work_id}")));
        Self { taken_id, work_id: work_id.clone() }
    }
}

impl Check for WorkTaken {
    fn check(&self) -> Result<(), Fault> {
        self.taken_id.check().map_err(|fault| fault.within("taken_id"))?;
        self.work_id.check().map_err(|fault| fault.within("work_id"))
    }
}

word_enum! {
    /// Where a unit of work stands for whom it was issued to.
    pub enum WorkStanding {
        /// It waits to be taken up.
        Open = "open",
        /// It was taken up, and waits for its answer.
        Taken = "taken",
        /// Its answer is on record.
        Answered = "answered",
        /// Its answer failed, or there was none in time.
        Failed = "failed",
        /// Its time is over.
        Over = "over",
        /// Its packet was withdrawn.
        Withdrawn = "withdrawn",
    }
}

/// What became of one proposal of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToldProposal {
    /// What was proposed.
    pub proposal: ActionProposal,
    /// The action that it became, where it became one.
    pub action_id: Option<ActionId>,
    /// Why the action was refused, where it was.
    pub refused: Option<Code>,
    /// Where the newest attempt at it stands, where there is one.
    pub attempt: Option<&'static str>,
}

/// What whoever a unit of work was issued to is told about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToldWork {
    /// The work.
    pub work_id: WorkId,
    /// Where it stands.
    pub standing: &'static str,
    /// In which role it was asked.
    pub role: Key,
    /// What is asked.
    pub question: Text,
    /// Whether the answer is one move in a conference.
    pub asks_for_a_move: bool,
    /// Until when it waits.
    pub deadline: Option<Timestamp>,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it was taken up, where it was.
    pub taken_at: Option<Timestamp>,
    /// As what the answer failed and why, where it did.
    pub failed: Option<(Code, Text)>,
    /// The RESULT that answers it.
    pub result: Option<PayloadId>,
    /// What became of the answer's proposals.
    pub proposals: Vec<ToldProposal>,
    /// The packets on The Bench that it led to.
    pub packets: Vec<DecisionId>,
    /// How the episode ended, once it has.
    pub episode_end: Option<&'static str>,
    /// The same for people, where nobody else worked in the episode.
    pub end_reason: Option<Text>,
}

/// What an agent is told about a packet that its answer led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FollowedPacket {
    /// The packet.
    pub decision_id: DecisionId,
    /// Where it stands.
    pub status: PacketStatus,
    /// What was answered, where it was.
    pub answer: Option<DecisionType>,
    /// What became of the answer: its fate's word.
    pub fate: Option<&'static str>,
    /// As what it was refused, where it was.
    pub refused: Option<Code>,
}

/// Whether work for this participant lies outside until it is answered: nothing here is asked for its answer.
#[must_use]
pub fn is_outside(view: &View, actor: &ActorId) -> bool {
    let agent = view.state.identity(actor).is_some_and(|identity| identity.kind == IdentityKind::Agent);
    branch!("work.lies_outside", agent)
}

fn episode_of<'a>(view: &'a View, work: &OnRecord<Work>) -> Option<&'a Episode> {
    let id = work.payload.envelope().episode_id.as_ref()?;
    view.episodes.get(id).map(|episode| &**episode)
}

/// Whether the answer to a unit of work is still awaited: none is on record, and its episode goes on.
#[must_use]
pub fn is_awaited(view: &View, work_id: &WorkId) -> bool {
    let over = view.answered.contains_key(work_id) || view.failed.contains_key(work_id) || has_moved(view, work_id);
    let work = view.works.get(work_id).filter(|_| !over);
    work.and_then(|work| episode_of(view, work)).is_some_and(|episode| episode.end.is_none())
}

/// Whether the turn that the work asked for has been made.
fn has_moved(view: &View, work_id: &WorkId) -> bool {
    let made = ArtifactId::new(crate::derived_id("move", work_id.as_str()));
    let round = view.works.get(work_id).and_then(|work| view.conferences.of_coalition(&work.body.coalition_ref));
    round.is_some_and(|round| round.moves.iter().any(|known| known.body.move_id == made))
}

fn standing(view: &View, work: &OnRecord<Work>, at: &Moment) -> WorkStanding {
    let work_id = &work.body.work_id;
    if view.answered.contains_key(work_id) || has_moved(view, work_id) {
        return WorkStanding::Answered;
    }
    if view.failed.contains_key(work_id) {
        return WorkStanding::Failed;
    }
    if suspended(view, &work.payload).is_some() {
        return WorkStanding::Withdrawn;
    }
    let in_time = work.body.deadline.as_ref().is_none_or(|deadline| at.now < *deadline);
    if branch!("work.time_is_over", !in_time || !is_awaited(view, work_id)) {
        return WorkStanding::Over;
    }
    match view.taken.contains_key(work_id) {
        true => WorkStanding::Taken,
        false => WorkStanding::Open,
    }
}

/// Why work is not handed out any more.
fn closed(view: &View, work: &OnRecord<Work>, at: &Moment) -> Option<Denial> {
    let deny = |code, reason: &str| Some(Denial::new(code, CheckKind::Resolution, reason).of(&work.body.work_id));
    match standing(view, work, at) {
        WorkStanding::Open | WorkStanding::Taken => None,
        WorkStanding::Answered => deny(Code::Duplicate, "the work has been answered"),
        WorkStanding::Failed => deny(Code::Duplicate, "the work has failed, and is not done again"),
        WorkStanding::Withdrawn => suspended(view, &work.payload),
        WorkStanding::Over => deny(Code::NoAnswer, "the time of the work is over"),
    }
}

/// Work that was issued to this agent and can still be handed out.
fn handed_out<'a>(
    view: &'a View,
    actor: &ActorId,
    work_id: &WorkId,
    at: &Moment,
) -> Result<&'a OnRecord<Work>, Denial> {
    let work = match (foreign(view, work_id, actor), view.works.get(work_id)) {
        (None, Some(work)) => work,
        (foreign, _) => {
            let unknown = || Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "no such work was issued");
            return Err(foreign.unwrap_or_else(|| unknown().of(work_id)));
        }
    };
    match closed(view, work, at) {
        Some(denial) if branch!("work.closed_to_its_agent", true) => Err(denial),
        Some(_) | None => Ok(work),
    }
}

/// An agent takes up work that was issued to it, once.
pub(crate) fn take(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    taken: &WorkTaken,
) -> Result<Reply, Fault> {
    let producer = &submission.producer.actor_id;
    let work = match handed_out(deciding.view, producer, &taken.work_id, deciding.at) {
        Ok(work) if branch!("work.taken_under_its_own_id", *taken == WorkTaken::of(producer, &taken.work_id)) => work,
        Ok(_) => {
            let reason = "the id is not the one that this agent and this work give it";
            let denial = Denial::new(Code::SchemaInvalid, CheckKind::Schema, reason).of(&taken.taken_id);
            return deciding.refuse(Id::new(taken.taken_id.as_str()), None, vec![denial]);
        }
        Err(denial) => {
            let digest = submission.content.digest()?;
            return deciding.refuse(Id::new(taken.taken_id.as_str()), Some(digest), vec![denial]);
        }
    };
    let envelope = work.payload.envelope();
    let mut streams: Vec<_> = envelope.obligation_ids.iter().map(streams::history).collect();
    streams.extend(envelope.episode_id.as_ref().map(streams::episode));
    let episode_id = envelope.episode_id.clone();
    let reference = deciding.batch.artifact(taken.clone(), streams)?;
    deciding.batch.auth(submission.auth.record())?;
    deciding.effects.extend(episode_id.map(Effect::Advance));
    Ok(Reply::Recorded(vec![reference]))
}

/// The packet of work, exactly as it was released to this agent.
///
/// # Errors
/// `unresolved_ref` for work of another; `duplicate` once it is answered or has failed; `no_answer` once its time is over;
/// `restricted` where its packet was withdrawn.
pub fn packet<'a>(
    view: &'a View,
    actor: &ActorId,
    work_id: &WorkId,
    at: &Moment,
) -> Result<&'a OnRecord<Work>, Denial> {
    handed_out(view, actor, work_id, at)
}

/// The work of an agent that waits for its answer, in the order in which it was issued; that which is settled too with `all`.
#[must_use]
pub fn list(view: &View, actor: &ActorId, all: bool, at: &Moment) -> Vec<ToldWork> {
    let own = view.issued_to.iter().filter(|(_, to)| *to == actor).filter_map(|(id, _)| view.works.get(id));
    let waits = |work: &&OnRecord<Work>| all || closed(view, work, at).is_none();
    let mut own: Vec<&OnRecord<Work>> = own.filter(waits).collect();
    own.sort_by(|one, other| one.admitted_at.cmp(&other.admitted_at).then(one.body.work_id.cmp(&other.body.work_id)));
    own.into_iter().map(|work| told_work(view, actor, work, at)).collect()
}

/// What became of a unit of work, for whom it was issued to and nobody else.
#[must_use]
pub fn told(view: &View, actor: &ActorId, work_id: &WorkId, at: &Moment) -> Option<ToldWork> {
    let own = view.works.get(work_id).filter(|_| foreign(view, work_id, actor).is_none());
    own.map(|work| told_work(view, actor, work, at))
}

fn told_work(view: &View, actor: &ActorId, work: &OnRecord<Work>, at: &Moment) -> ToldWork {
    let work_id = &work.body.work_id;
    let result = view.answered.get(work_id).and_then(|id| view.results.get(id));
    let episode = episode_of(view, work);
    let answered = episode.filter(|_| result.is_some());
    let alone = |episode: &&Episode| {
        let alone = episode.work.iter().all(|id| view.issued_to.get(id) == Some(actor));
        branch!("work.end_told_to_who_worked_alone", alone)
    };
    ToldWork {
        work_id: work_id.clone(),
        standing: standing(view, work, at).as_str(),
        role: work.body.role.clone(),
        question: work.body.question.text.clone(),
        asks_for_a_move: work.body.output_contract_ref == super::move_contract(),
        deadline: work.body.deadline.clone(),
        issued_at: work.admitted_at.clone(),
        taken_at: view.taken.get(work_id).cloned(),
        failed: view.failed.get(work_id).cloned(),
        result: result.map(|result| result.payload.id().clone()),
        proposals: answered.zip(result).map(|(episode, result)| proposals(view, episode, result)).unwrap_or_default(),
        packets: answered.map(|episode| episode.packets.clone()).unwrap_or_default(),
        episode_end: episode.and_then(|episode| episode.end).map(EpisodeEnd::as_str),
        end_reason: episode.filter(alone).and_then(|episode| episode.end_reason.clone()),
    }
}

fn proposals(view: &View, episode: &Episode, result: &OnRecord<WorkResult>) -> Vec<ToldProposal> {
    let planned = |proposal: &ActionProposal| {
        let mut actions = episode.actions.iter().rev().filter_map(|id| view.actions.get(id));
        actions.find(|action| is_of(&action.body, proposal))
    };
    let told = |proposal: &ActionProposal| {
        let action = planned(proposal);
        let refused = action.and_then(|action| view.refused.get(&Key::new(action.payload.id().as_str())));
        let attempt = action.and_then(|action| view.attempts.get(&action.body.attempt_id));
        ToldProposal {
            proposal: proposal.clone(),
            action_id: action.map(|action| action.body.action_id.clone()),
            refused: refused.map(|(code, _)| *code).filter(|_| attempt.is_none()),
            attempt: attempt.map(|attempt| AttemptStatus::as_str(attempt.status)),
        }
    };
    result.body.action_proposals.iter().map(told).collect()
}

fn is_of(action: &Action, proposal: &ActionProposal) -> bool {
    action.operation == proposal.operation
        && action.target == proposal.target
        && action.parameters == proposal.parameters
        && action.expected_postcondition == proposal.expected_postcondition
}

/// What is told of a packet to an agent whose answer led to it; nothing to anybody else.
#[must_use]
pub fn followed(view: &View, actor: &ActorId, decision_id: &DecisionId, at: &Moment) -> Option<FollowedPacket> {
    let packet = view.packets.get(decision_id)?;
    let episode = packet.packet.payload.envelope().episode_id.as_ref().and_then(|id| view.episodes.get(id))?;
    let results = episode.results.iter().filter_map(|id| view.results.get(id));
    let own = results.filter(|result| view.issued_to.get(&result.body.work_id) == Some(actor)).count() > 0;
    if branch!("work.packet_of_others", !own) {
        return None;
    }
    let newest = view.decisions.get(decision_id).and_then(|decisions| decisions.last()).map(|(_, decision)| decision);
    let fate = newest.map(|decision| bench::fate(view, decision, &at.now));
    Some(FollowedPacket {
        decision_id: decision_id.clone(),
        status: packet.status,
        answer: newest.map(|decision| decision.decision_type),
        fate: fate.as_ref().map(Fate::as_str),
        refused: if let Some(Fate::Refused(code, _)) = fate { Some(code) } else { None },
    })
}
