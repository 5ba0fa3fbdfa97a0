//! Episodes: bounded work on one obligation, and the next stage that its records show. Spec: §7.1, SR5, CP-7.1-*.
//!
//! [`next`] is a pure function of the view, so an actor that died resumes where its records stand.

use crate::bench;
use crate::call;
use crate::coalition;
use crate::conference::{self, Turn};
use crate::dormancy;
use crate::entry::{Activation, ActivationEntry, AttemptStatus, Entry, EpisodeEnd, EpisodeEnded};
use crate::follow_up;
use crate::incident;
use crate::input::{Effect, Moment, Reply};
use crate::priority;
use crate::readback;
use crate::route;
use crate::sequence::Deciding;
use crate::view::{Attempt, Episode, OnRecord, View};
use crate::{streams, tick};
use closer_contracts::action::Action;
use closer_contracts::adjudication::{Disposition, Phase, Stance};
use closer_contracts::audit::DecisionType;
use closer_contracts::branch;
use closer_contracts::fault::Fault;
use closer_contracts::id::{
    ActorId, AttemptId, CoalitionId, ConferenceId, DeltaId, EpisodeId, EvidenceId, GrantId, Key, ObligationId,
    PayloadId, Text, WorkId,
};
use closer_contracts::item::{Identity, Standing};
use closer_contracts::refs::{ArtifactRef, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{ActionProposal, WorkResult};

/// How often an action is assessed anew because what it read has moved.
pub const ASSESSMENTS_MAX: usize = 8;
/// How often an attempt is read back before its episode stops and leaves it to be reconciled.
pub const READBACKS_MAX: usize = 5;
/// How often an action is attempted in one episode, where the target shows that it had no effect before.
pub const ATTEMPTS_MAX: usize = 3;
/// How often a delta is distilled anew because its parent has moved.
pub const DELTAS_MAX: usize = 8;

/// Opens an episode on an obligation that something made eligible.
pub(crate) fn open(
    deciding: &mut Deciding<'_>,
    obligation_id: &ObligationId,
    episode_id: &EpisodeId,
) -> Result<Reply, Fault> {
    let view = deciding.view;
    let refuse = |deciding: &mut Deciding<'_>, code, reason: &str| {
        let denial = Denial::new(code, CheckKind::Runtime, reason).of(obligation_id);
        deciding.refuse(episode_id.into(), None, vec![denial])
    };
    let open = view.state.obligation(obligation_id).is_some_and(|obligation| obligation.status.is_open());
    if branch!("episode.obligation_not_open", !open) {
        return refuse(deciding, Code::UnresolvedRef, "the obligation is not accepted and open");
    }
    let causes = view.eligible.get(obligation_id).cloned().unwrap_or_default();
    if branch!("episode.nothing_eligible", causes.is_empty()) {
        return refuse(deciding, Code::UnresolvedRef, "nothing has made the obligation eligible");
    }
    if branch!("episode.under_way", view.under_way.contains_key(obligation_id)) {
        return refuse(deciding, Code::Duplicate, "an episode on the obligation is under way");
    }
    if dormancy::is_dormant(view, obligation_id) {
        return refuse(deciding, Code::Duplicate, "the same work has found nothing new as often as the profile allows");
    }
    let limits = view.state.limits();
    if branch!("episode.fan_out_reached", view.under_way.len() >= limits.fan_out_max as usize) {
        return refuse(deciding, Code::Busy, "as many episodes are under way as the profile allows");
    }
    let activation = Activation {
        episode_id: episode_id.clone(),
        obligation_id: obligation_id.clone(),
        causes,
        stops_at: deciding.at.now.plus_ms(limits.episode_ms_max),
        priority: view.state.obligation(obligation_id).map(|obligation| priority::of(view, obligation)),
    };
    let streams = vec![streams::episode(episode_id), streams::history(obligation_id)];
    let entry = Entry::Activation(ActivationEntry::Began(activation));
    deciding.batch.push(&crate::derived_id("began", episode_id.as_str()), entry, streams, Vec::new())?;
    deciding.effects.push(Effect::Advance(episode_id.clone()));
    Ok(Reply::Recorded(Vec::new()))
}

/// The obligations that the scheduler may open an episode on now: open, made eligible by something, with no episode under
/// way, not at rest, and no more of them than the profile's fan-out leaves room for. They come in the order of
/// [`crate::priority`]; between equals, who waits longest comes first (§8.3).
#[must_use]
pub fn openable(view: &View) -> Vec<ObligationId> {
    let room = (view.state.limits().fan_out_max as usize).saturating_sub(view.under_way.len());
    let is_open = |id: &ObligationId| view.state.obligation(id).is_some_and(|obligation| obligation.status.is_open());
    let waiting = view.turns.iter().map(|(_, id)| id);
    let waiting =
        waiting.filter(|id| branch!("episode.may_be_opened", !view.under_way.contains_key(*id) && is_open(id)));
    let awake = waiting.filter(|id| !dormancy::is_dormant(view, id)).cloned();
    priority::ordered(view, awake).into_iter().take(room).collect()
}

/// Ends an episode. Its obligation stays as it is (§7.1).
pub(crate) fn end(
    deciding: &mut Deciding<'_>,
    episode_id: &EpisodeId,
    end: EpisodeEnd,
    reason: &Text,
) -> Result<Reply, Fault> {
    let Some(episode) = deciding.view.episodes.get(episode_id).filter(|episode| episode.end.is_none()) else {
        let denial =
            Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "no such episode is under way").of(episode_id);
        return deciding.refuse(episode_id.into(), None, vec![denial]);
    };
    let obligation_id = episode.obligation_id.clone();
    let awaited = follow_up::awaits(deciding.view, episode);
    record_end(deciding, episode_id, &obligation_id, end, reason)?;
    if let Some((obligation_id, reentry)) = awaited {
        tick::install(deciding, &obligation_id, reentry)?;
    }
    if deciding.view.eligible.contains_key(&obligation_id) {
        deciding.effects.push(Effect::Eligible(obligation_id));
    }
    Ok(Reply::Recorded(Vec::new()))
}

/// Records the end of an episode.
pub(crate) fn record_end(
    deciding: &mut Deciding<'_>,
    episode_id: &EpisodeId,
    obligation_id: &ObligationId,
    end: EpisodeEnd,
    reason: &Text,
) -> Result<(), Fault> {
    let ended = EpisodeEnded {
        episode_id: episode_id.clone(),
        obligation_id: obligation_id.clone(),
        end,
        reason: reason.clone(),
    };
    let streams = vec![streams::episode(episode_id), streams::history(obligation_id)];
    let entry = Entry::Activation(ActivationEntry::Ended(ended));
    deciding.batch.push(&crate::derived_id("ended", episode_id.as_str()), entry, streams, Vec::new())?;
    dormancy::rest(deciding, obligation_id)?;
    call::go_on(deciding, obligation_id)
}

/// The next stage of an episode.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Draft work for this participant and issue it.
    Work {
        /// Whom to ask.
        participant: ActorId,
        /// In which assessment role.
        role: Key,
    },
    /// Route the work of a coalition: who of it does what.
    Route {
        /// The coalition.
        coalition_id: CoalitionId,
    },
    /// Open the conference that a coalition holds.
    Convene {
        /// The coalition.
        coalition_id: CoalitionId,
    },
    /// A conference goes on.
    Confer {
        /// The conference.
        conference_id: ConferenceId,
        /// Whose turn it is.
        turn: Turn,
    },
    /// Ask the participant that the work was issued to.
    Ask {
        /// The work.
        work_id: WorkId,
        /// The participant.
        participant: ActorId,
    },
    /// Plan the action of a proposal under the grant that covers it.
    Act {
        /// The result that proposes it.
        result: PayloadId,
        /// The proposal.
        proposal: Box<ActionProposal>,
        /// The grant.
        grant: GrantId,
    },
    /// Plan another attempt at an action that certainly had no effect.
    Again {
        /// The earlier attempt's payload.
        earlier: PayloadId,
        /// Which attempt this is, from 2.
        attempt: usize,
    },
    /// Assess an action before it is dispatched.
    Assess {
        /// The ACTION payload.
        payload_id: PayloadId,
    },
    /// Ask the monitor for its admission.
    Dispatch {
        /// The ACTION payload.
        payload_id: PayloadId,
    },
    /// Wait: the effect is on its way in this process.
    Await {
        /// The attempt.
        attempt_id: AttemptId,
    },
    /// Read the target back, not before this time.
    Readback {
        /// The attempt.
        attempt_id: AttemptId,
        /// The time.
        not_before: Timestamp,
    },
    /// Adjudicate what a readback established.
    Judge {
        /// The attempt.
        attempt_id: AttemptId,
        /// The readback.
        evidence_id: EvidenceId,
    },
    /// Put a judgment on The Bench.
    AskUser {
        /// The result that leaves it open.
        result: PayloadId,
        /// The proposal that lacks authority, where one does.
        proposal: Option<Box<ActionProposal>>,
    },
    /// Offer the obligation to somebody who has the ability that was lacking.
    HandOver {
        /// Whom.
        recipient: ActorId,
        /// On which contract.
        contract: ArtifactRef,
    },
    /// Distil what was established into a delta.
    Distil,
    /// Adjudicate a delta.
    Endorse {
        /// The delta.
        delta_id: DeltaId,
    },
    /// Ask for its commit.
    Commit {
        /// The delta.
        delta_id: DeltaId,
    },
    /// End the episode.
    End {
        /// Why.
        end: EpisodeEnd,
        /// For people.
        reason: Text,
    },
    /// It has ended.
    Ended,
}

fn ending(end: EpisodeEnd, reason: impl Into<Text>) -> Next {
    Next::End { end, reason: reason.into() }
}

/// The participant that works where no coalition is registered: whoever holds the obligation, where that is a participant,
/// else the fixed worker.
fn participant(view: &View, obligation_id: &ObligationId) -> Option<ActorId> {
    let works = |identity: &&Identity| {
        identity.standing == Standing::Current && identity.roles.contains(&ProducerRole::Participant)
    };
    let owner = view.ownership(obligation_id).and_then(|held| view.state.identity(&held.owner));
    match owner.filter(|owner| branch!("episode.owner_works", works(owner))) {
        Some(owner) => Some(owner.actor_id.clone()),
        None => coalition::fixed_worker(view),
    }
}

/// The next stage that the records of an episode show.
#[must_use]
pub fn next(view: &View, episode: &Episode, at: &Moment) -> Next {
    if episode.end.is_some() {
        return Next::Ended;
    }
    let in_flight = attempts(view, episode).any(|attempt| attempt.status == AttemptStatus::Intended);
    if branch!("episode.bound_reached", !in_flight && episode.stops_at <= at.now) {
        return ending(EpisodeEnd::BoundReached, "the episode's time is over");
    }
    if let Some((result, proposal)) = bench::amendment(view, episode) {
        return next_amended(view, episode, &result, &proposal, at);
    }
    let round = view.conferences.of_episode(&episode.episode_id);
    if let Some(round) = round.filter(|round| branch!("episode.conference_under_way", round.report.is_none())) {
        let conference_id = round.contract.conference_id.clone();
        return Next::Confer { conference_id, turn: conference::turn(round, at) };
    }
    if round.is_some() {
        let results = results_of(view, episode);
        // What one of several leaves to the user is asked before anything that another proposes is done.
        let asked = for_the_user(view, episode, &results, at).filter(|_| branch!("episode.user_asked_first", true));
        return asked.unwrap_or_else(|| next_on(view, episode, &results, at));
    }
    let Some(work_id) = episode.work.last() else {
        return first(view, episode);
    };
    let result = episode
        .results
        .iter()
        .rev()
        .find_map(|id| view.results.get(id))
        .filter(|result| result.body.work_id == *work_id);
    let Some(result) = result else {
        let withdrawn = view.works.get(work_id).and_then(|work| incident::suspended(view, &work.payload));
        if branch!("episode.packet_withdrawn", withdrawn.is_some()) {
            return ending(EpisodeEnd::Refused, "its packet was withdrawn before it was handed out");
        }
        if let Some((code, reason)) = view.failed.get(work_id).filter(|_| branch!("episode.answer_failed", true)) {
            let another = (*code == Code::NoAnswer).then(|| another(view, episode, work_id)).flatten();
            return another.unwrap_or_else(|| ending(EpisodeEnd::NoAnswer, reason.clone()));
        }
        return match view.issued_to.get(work_id) {
            Some(participant) => Next::Ask { work_id: work_id.clone(), participant: participant.clone() },
            None => ending(EpisodeEnd::NoAnswer, "the work was issued to nobody"),
        };
    };
    if follow_up::investigates(view, episode, result)
        && let Some(participant) = view.issued_to.get(work_id)
    {
        let role = view.works.get(work_id).map_or_else(|| Key::from("worker"), |work| work.body.role.clone());
        return Next::Work { participant: participant.clone(), role };
    }
    if let Some((recipient, contract)) = follow_up::hands_over(view, episode, result) {
        return Next::HandOver { recipient, contract };
    }
    // Authority that is missing is asked for with the action that lacks it; a choice of the user comes before any action.
    let asked = for_the_user(view, episode, &[result], at)
        .filter(|_| branch!("episode.user_asked_first", bench::leaves_a_choice(&result.body)));
    asked.unwrap_or_else(|| next_on(view, episode, &[result], at))
}

/// What an episode begins with: the work of one, or the conference of several.
fn first(view: &View, episode: &Episode) -> Next {
    let called = view.calls.of_episode(&episode.episode_id);
    if let Some(called) = called.filter(|_| branch!("episode.serves_a_call", true)) {
        return Next::Work { participant: called.call.caller.clone(), role: Key::from("worker") };
    }
    if branch!("episode.waits_for_redemption", call::waits_for_redemption(view, episode)) {
        return ending(EpisodeEnd::NothingToDo, "the answer waits to be redeemed by whoever called");
    }
    let Some(coalition) = coalition::of(view, &episode.obligation_id) else {
        return match participant(view, &episode.obligation_id) {
            Some(participant) => Next::Work { participant, role: Key::from("worker") },
            None => ending(EpisodeEnd::NoAnswer, "no participant is registered"),
        };
    };
    let coalition_id = coalition.coalition_id.clone();
    let Some(route) = episode.route.as_ref().and_then(|id| view.routes.get(id)) else {
        return Next::Route { coalition_id };
    };
    let assigned = route::assigned(coalition, route);
    let confers = branch!("episode.coalition_confers", coalition.inquiry.is_some());
    match assigned.first() {
        None => ending(EpisodeEnd::NoAnswer, route::unfilled(route)),
        Some((member, actor)) if !confers => Next::Work { participant: (*actor).clone(), role: member.role.clone() },
        Some(_) => Next::Convene { coalition_id },
    }
}

/// What follows when whom the route names cannot be reached: another route, and on it the work again; `None` where no
/// coalition says who else there is.
fn another(view: &View, episode: &Episode, work_id: &WorkId) -> Option<Next> {
    let coalition = coalition::of(view, &episode.obligation_id)?;
    let route = episode.route.as_ref().and_then(|id| view.routes.get(id))?;
    let failed = view.issued_to.get(work_id)?;
    let named = route.selected_actors.iter().any(|selected| selected.actor_id == *failed);
    match branch!("episode.routed_anew", named) {
        true => Some(Next::Route { coalition_id: coalition.coalition_id.clone() }),
        false => Some(first(view, episode)),
    }
}

/// The results of an episode's conference, in order.
fn results_of<'a>(view: &'a View, episode: &Episode) -> Vec<&'a OnRecord<WorkResult>> {
    episode.results.iter().filter_map(|id| view.results.get(id)).collect()
}

/// The next stage once the participants have answered: their proposals one after another, then what belongs to the user,
/// then what can be distilled.
fn next_on(view: &View, episode: &Episode, results: &[&OnRecord<WorkResult>], at: &Moment) -> Next {
    for result in results {
        for proposal in &result.body.action_proposals {
            if let Some(next) = next_for(view, episode, result, proposal, at) {
                return next;
            }
        }
    }
    for_the_user(view, episode, results, at).unwrap_or_else(|| next_delta(view, episode))
}

/// What the user put in a proposal's place is carried out as it was said; nobody is asked for a proposal again.
fn next_amended(view: &View, episode: &Episode, result: &PayloadId, proposal: &ActionProposal, at: &Moment) -> Next {
    let Some(result) = view.results.get(result) else {
        return ending(EpisodeEnd::Refused, "the result that was amended is not on record");
    };
    next_for(view, episode, result, proposal, at).unwrap_or_else(|| next_delta(view, episode))
}

/// Asks the user, or goes no further where the same is asked already or was asked in this episode.
fn ask(
    view: &View,
    episode: &Episode,
    result: &OnRecord<WorkResult>,
    proposal: Option<&ActionProposal>,
    at: &Moment,
    reason: &'static str,
) -> Next {
    let asked = !episode.packets.is_empty() || bench::is_asked(view, episode, result, proposal, &at.now);
    match asked {
        true => ending(EpisodeEnd::AwaitingUser, reason),
        false => Next::AskUser {
            result: result.payload.id().clone(),
            proposal: proposal.map(|known| Box::new(known.clone())),
        },
    }
}

/// The question that a result leaves to the user, or that it has been asked.
fn for_the_user(view: &View, episode: &Episode, results: &[&OnRecord<WorkResult>], at: &Moment) -> Option<Next> {
    let mut results = results.iter();
    let result =
        results.find(|result| branch!("episode.judgment_is_the_users", bench::belongs_to_user(&result.body)))?;
    Some(ask(view, episode, result, None, at, "a judgment of the user is awaited"))
}

/// How often a stage's payload is drafted anew because it was refused, before the episode ends as refused.
pub const DRAFTS_MAX: u32 = 3;

/// What follows when the payload of a stage was refused `times` times in a row and the records show the same stage again:
/// another draft on the newest view, or the end of the episode once that has been tried often enough.
#[must_use]
pub fn after_refusal(stage: Next, times: u32, denials: &[Denial]) -> Next {
    match branch!("episode.drafts_used_up", times >= DRAFTS_MAX) {
        true => {
            let told = crate::intake::told(denials).unwrap_or_else(|| "it was refused".into());
            ending(EpisodeEnd::Refused, crate::intake::bounded(&told))
        }
        false => stage,
    }
}

fn attempts<'a>(view: &'a View, episode: &'a Episode) -> impl Iterator<Item = &'a Attempt> {
    let payloads = episode.actions.iter().filter_map(|id| view.actions.get(id));
    payloads.filter_map(|action| view.attempts.get(&action.body.attempt_id))
}

fn is_of(action: &Action, proposal: &ActionProposal) -> bool {
    action.operation == proposal.operation
        && action.target == proposal.target
        && action.parameters == proposal.parameters
        && action.expected_postcondition == proposal.expected_postcondition
}

/// What a proposal needs next; `None` when it is done.
fn next_for(
    view: &View,
    episode: &Episode,
    result: &OnRecord<WorkResult>,
    proposal: &ActionProposal,
    at: &Moment,
) -> Option<Next> {
    let mut planned = episode.actions.iter().rev().filter_map(|id| view.actions.get(id));
    let Some(action) = planned.find(|action| is_of(&action.body, proposal)) else {
        return Some(match crate::action::covering_grant(view, proposal, &at.now) {
            Some(grant) => {
                Next::Act { result: result.payload.id().clone(), proposal: Box::new(proposal.clone()), grant }
            }
            None => ask(view, episode, result, Some(proposal), at, UNGRANTED),
        });
    };
    match view.attempts.get(&action.body.attempt_id) {
        None => {
            let next = next_before_dispatch(view, episode, action);
            let refused = matches!(&next, Next::End { end: EpisodeEnd::Refused, .. });
            Some(match refused && answer_overtaken(view, action) {
                true => ask(view, episode, result, Some(proposal), at, UNGRANTED),
                false => next,
            })
        }
        Some(attempt) => next_after_dispatch(view, episode, attempt),
    }
}

const UNGRANTED: &str = "the authority for a proposed action is the user's to give";

/// Whether an action was refused that rests on an answer of the user, for a fact that has changed since: it is asked anew.
fn answer_overtaken(view: &View, action: &OnRecord<Action>) -> bool {
    let asked = view.answers.get(&action.body.authority_ref);
    let newest = asked.and_then(|packet| view.decisions.get(packet)?.last());
    let answered = newest.is_some_and(|(_, decision)| decision.decision_type == DecisionType::ScopedAuthorization);
    let refused = view.refused.get(&Key::new(action.payload.id().as_str())).map(|(code, _)| *code);
    let changed = matches!(
        refused,
        Some(Code::StaleVersion | Code::GrantRevoked | Code::GrantExpired | Code::RegistryExpired | Code::Restricted)
    );
    branch!("episode.answer_overtaken", answered && changed)
}

fn next_before_dispatch(view: &View, episode: &Episode, action: &OnRecord<Action>) -> Next {
    let digest = action.body.logical_digest;
    let assessments: Vec<_> = episode
        .adjudications
        .iter()
        .filter_map(|id| view.adjudications.get(id))
        .filter(|adjudication| {
            adjudication.body.phase == Phase::PreAction && adjudication.body.subject.digest == digest
        })
        .collect();
    let payload_id = action.payload.id().clone();
    let Some(newest) = assessments.last() else {
        return Next::Assess { payload_id };
    };
    if !newest.body.disposition.is_positive() {
        let told = format!("the action was assessed as {}", newest.body.disposition);
        let mut positions = newest.body.role_positions.iter();
        let against = positions.find(|position| position.position != Stance::For);
        return ending(EpisodeEnd::Refused, because(&told, against.map(|position| position.reason.as_str())));
    }
    let (code, refused) = view
        .refused
        .get(&Key::new(payload_id.as_str()))
        .map_or((None, 0), |(code, times)| (Some(*code), *times as usize));
    match code {
        _ if refused < assessments.len() => Next::Dispatch { payload_id },
        Some(Code::StaleVersion)
            if bench::changed_since_asked(view, &action.body.authority_ref).is_empty()
                && branch!("episode.judge_again", assessments.len() < ASSESSMENTS_MAX) =>
        {
            Next::Assess { payload_id }
        }
        Some(code) => ending(EpisodeEnd::Refused, format!("the monitor refused the action: {code}")),
        None => ending(EpisodeEnd::Refused, "the monitor refused the action"),
    }
}

fn next_after_dispatch(view: &View, episode: &Episode, attempt: &Attempt) -> Option<Next> {
    let attempt_id = attempt.intent.attempt_id.clone();
    if attempt.status == AttemptStatus::Intended {
        return Some(Next::Await { attempt_id });
    }
    let readbacks: Vec<&EvidenceId> = episode
        .readbacks
        .iter()
        .filter(|id| {
            let readback = view.evidence.get(*id).and_then(|evidence| evidence.body.readback.clone());
            readback.is_some_and(|readback| readback.attempt_id == attempt_id)
        })
        .collect();
    if !attempt.status.is_settled() {
        if branch!("episode.readbacks_used_up", readbacks.len() >= READBACKS_MAX) {
            let why = unseen_because(view, readbacks.last().copied());
            let told = because("the target does not show what became of the attempt", why);
            return Some(ending(EpisodeEnd::EffectUnknown, told));
        }
        let settle_ms = view.state.operation(&attempt.action.operation).map_or(0, |entry| entry.settle_time_ms);
        let wait_ms = match readbacks.is_empty() {
            true => 0,
            false => settle_ms.saturating_mul(readbacks.len() as u64),
        };
        return Some(Next::Readback { attempt_id, not_before: attempt.sent_by().plus_ms(wait_ms) });
    }
    let read = call::reads(view, &episode.episode_id, &attempt.action.operation) && attempt.response.is_some();
    if branch!("episode.read_is_done", read) {
        return None;
    }
    let Some(readback) = readbacks.last() else {
        let why = attempt.outcome.as_ref().map(|outcome| outcome.reason.as_str());
        return Some(ending(EpisodeEnd::Refused, because("the effect was not sent", why)));
    };
    let judged = episode.adjudications.iter().filter_map(|id| view.adjudications.get(id)).find(|adjudication| {
        adjudication.body.phase == Phase::PostOutcome && adjudication.body.subject.id.as_str() == readback.as_str()
    });
    match judged {
        None => Some(Next::Judge { attempt_id, evidence_id: (*readback).clone() }),
        Some(judged) if judged.body.disposition == Disposition::Established => None,
        Some(_) => Some(try_again(view, episode, attempt)),
    }
}

/// What is told, and why where that is on record: an end without its reason leaves nobody anything to mend.
fn because(told: &str, why: Option<&str>) -> Text {
    match why {
        Some(why) if !why.is_empty() => crate::intake::bounded(&format!("{told}: {why}")),
        Some(_) | None => Text::from(told),
    }
}

/// What kept a readback from showing its target, as the observer said it.
fn unseen_because<'a>(view: &'a View, readback: Option<&EvidenceId>) -> Option<&'a str> {
    view.evidence.get(readback?)?.body.limitations.first().map(Text::as_str)
}

/// Another attempt at an action whose target shows that there was no effect, under the same key; the monitor says whether
/// it may be (§8.2).
fn try_again(view: &View, episode: &Episode, attempt: &Attempt) -> Next {
    let made =
        attempts(view, episode).filter(|made| made.intent.logical_digest == attempt.intent.logical_digest).count();
    let absent = attempt.status == AttemptStatus::NoEffectConfirmed;
    match branch!("episode.absent_effect_tried_again", absent && made < ATTEMPTS_MAX) {
        true => Next::Again { earlier: PayloadId::new(attempt.intent.action_ref.id.as_str()), attempt: made + 1 },
        false => ending(EpisodeEnd::NothingToDo, "the attempt did not establish its postcondition"),
    }
}

fn next_delta(view: &View, episode: &Episode) -> Next {
    let Some(delta_id) = episode.deltas.iter().rev().find(|id| !id.as_str().starts_with("rebased.")) else {
        return Next::Distil;
    };
    let committed = |id: &DeltaId| view.committed.contains_key(id);
    if episode.deltas.iter().any(committed) {
        return ending(EpisodeEnd::Committed, "what was established is accepted");
    }
    let Some(delta) = view.deltas.get(delta_id) else {
        return Next::Distil;
    };
    let endorsements = view.endorsements.get(&delta.body.proposal_digest).cloned().unwrap_or_default();
    let Some(newest) = endorsements.last().and_then(|id| view.adjudications.get(id)) else {
        return Next::Endorse { delta_id: delta_id.clone() };
    };
    if newest.body.disposition != Disposition::Endorsed {
        return ending(EpisodeEnd::Refused, format!("the changes were {}", newest.body.disposition));
    }
    match view.refused.get(&Key::new(delta_id.as_str())) {
        None => Next::Commit { delta_id: delta_id.clone() },
        Some((Code::StaleParent | Code::StaleVersion, _))
            if branch!("episode.distil_again", episode.deltas.len() < DELTAS_MAX) =>
        {
            Next::Distil
        }
        Some((code, _)) => ending(EpisodeEnd::Refused, format!("the commit was refused: {code}")),
    }
}

/// The readback method and assessor of an attempt, for the observer.
#[must_use]
pub fn readback_method(view: &View, attempt_id: &AttemptId) -> Option<closer_contracts::item::ReadbackMethod> {
    readback::method_for(view, view.attempts.get(attempt_id)?).cloned()
}
