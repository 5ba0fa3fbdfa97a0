//! What became of a call, for whoever made it.

use super::{newest_attempt, reads};
use crate::entry::{AttemptStatus, EpisodeEnd};
use crate::view::{Attempt, Episode, View};
use crate::{bench, intake};
use closer_contracts::id::{ArtifactId, AttemptId, DecisionId, Key, Text};
use closer_contracts::refs::Plain;
use closer_contracts::refusal::RefusalCode as Code;

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It waits for its turn, or is under way.
    UnderWay,
    /// It ran and the target shows its effect; a read ran and left none.
    Done {
        /// The attempt.
        attempt_id: AttemptId,
        /// What the call said.
        response: Option<Plain>,
    },
    /// It ran, and nothing on record shows yet what became of it.
    Unknown {
        /// The attempt.
        attempt_id: AttemptId,
        /// What the call said, where it returned.
        response: Option<Plain>,
        /// Why it is not known.
        reason: Text,
    },
    /// It certainly had no effect.
    NoEffect {
        /// The attempt.
        attempt_id: AttemptId,
        /// What the call said, where it returned.
        response: Option<Plain>,
        /// Why.
        reason: Text,
    },
    /// A person has to allow it.
    OnTheBench(DecisionId),
    /// It was refused.
    Refused {
        /// The foremost code.
        code: Code,
        /// Why.
        reason: Text,
    },
}

/// What became of a call, as the records show; `None` where there is no such call.
#[must_use]
pub fn fate(view: &View, call_id: &ArtifactId) -> Option<Fate> {
    let known = view.calls.get(call_id)?;
    let Some(episode) = view.calls.episode_of(call_id).and_then(|id| view.episodes.get(id)) else {
        return Some(Fate::UnderWay);
    };
    if let Some(attempt) = newest_attempt(view, episode) {
        return Some(attempted(view, episode, attempt));
    }
    Some(match episode.end {
        None => Fate::UnderWay,
        Some(EpisodeEnd::AwaitingUser) => match asked(view, episode, &known.call) {
            Some(packet) => Fate::OnTheBench(packet),
            None => refused(view, episode),
        },
        Some(_) => refused(view, episode),
    })
}

fn attempted(view: &View, episode: &Episode, attempt: &Attempt) -> Fate {
    let attempt_id = attempt.intent.attempt_id.clone();
    let outcome = attempt.outcome.as_deref();
    // A readback's record says nothing of the call: what it said stands in the outcome that was recorded first.
    let response = attempt.response.clone();
    let reason = outcome.map_or_else(|| Text::from("nothing is known yet"), |outcome| outcome.reason.clone());
    let read = reads(view, &episode.episode_id, &attempt.action.operation);
    match attempt.status {
        AttemptStatus::EffectConfirmed => Fate::Done { attempt_id, response },
        AttemptStatus::NoEffectConfirmed if read && response.is_some() => Fate::Done { attempt_id, response },
        AttemptStatus::NoEffectConfirmed => Fate::NoEffect { attempt_id, response, reason },
        _ if episode.end.is_none() => Fate::UnderWay,
        AttemptStatus::Intended
        | AttemptStatus::Dispatched
        | AttemptStatus::Responded
        | AttemptStatus::OutcomeUnknown => Fate::Unknown { attempt_id, response, reason },
    }
}

/// The packet that asks for a call's action: the episode's own, or an earlier one that still waits.
fn asked(view: &View, episode: &Episode, call: &super::Call) -> Option<DecisionId> {
    let waits = |id: &&DecisionId| {
        let packet = view.packets.get(*id);
        packet.is_some_and(|packet| {
            packet.packet.body.obligation_ids.contains(&call.obligation_id)
                && bench::proposed(&packet.packet.body) == Some(&call.proposal)
        })
    };
    episode.packets.last().or_else(|| view.waiting.iter().find(waits)).cloned()
}

fn refused(view: &View, episode: &Episode) -> Fate {
    let action = episode.actions.last().map(|id| Key::new(id.as_str()));
    let code = action.and_then(|action| view.refused.get(&action)).map(|(code, _)| *code);
    let reason = episode.end_reason.clone().unwrap_or_else(|| intake::bounded("it was not carried out"));
    let by_end = match episode.end {
        Some(EpisodeEnd::BoundReached) => Code::Busy,
        Some(EpisodeEnd::NoAnswer) => Code::NoAnswer,
        Some(EpisodeEnd::AwaitingUser) => Code::MissingAuthority,
        Some(EpisodeEnd::Committed | EpisodeEnd::NothingToDo | EpisodeEnd::Refused | EpisodeEnd::EffectUnknown)
        | None => Code::Unassessed,
    };
    Fate::Refused { code: code.unwrap_or(by_end), reason }
}
