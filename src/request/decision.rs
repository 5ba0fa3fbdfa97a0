//! Decisions: every answer that was given, and what became of it. From the record, never from a guess.

use super::Answer;
use closer_contracts::audit::{DecisionType, Grant, UserDecision};
use closer_contracts::id::{DecisionId, GrantId, PayloadId};
use closer_contracts::refs::ArtifactRef;
use closer_protocol::entry::AttemptStatus;
use closer_protocol::view::{Packet, View};
use serde_json::{Value, json};
use std::cmp::Reverse;

/// What became of an answer, in one word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing is permitted by it, and nothing was to be.
    Stands,
    /// It was taken up: work went on because of it.
    TakenUp,
    /// What it permits has not been used.
    Unused,
    /// An attempt was begun under it and is not settled.
    UnderWay,
    /// An attempt under it may or may not have had its effect.
    Unknown,
    /// The effect is confirmed by what the target shows.
    Effected,
    /// An attempt under it certainly had no effect.
    WithoutEffect,
    /// It was taken back before anything was done under it.
    TakenBack,
    /// What it permitted is over by its date, unused.
    Lapsed,
}

impl Fate {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Stands => "stands",
            Self::TakenUp => "taken_up",
            Self::Unused => "unused",
            Self::UnderWay => "under_way",
            Self::Unknown => "outcome_unknown",
            Self::Effected => "effect_confirmed",
            Self::WithoutEffect => "no_effect_confirmed",
            Self::TakenBack => "taken_back",
            Self::Lapsed => "lapsed",
        }
    }
}

/// All answers, the newest first.
pub(super) fn list(view: &View, packet: Option<&DecisionId>) -> Answer {
    let chosen = view.decisions.iter().filter(|(id, _)| packet.is_none_or(|packet| packet == *id));
    let mut given: Vec<_> = chosen
        .flat_map(|(id, answers)| answers.iter().map(move |(reference, decision)| (id, reference, decision)))
        .collect();
    given.sort_by_key(|(_, _, decision)| Reverse((decision.issued_at.clone(), decision.decision_id.clone())));
    let told: Vec<(Value, String)> =
        given.into_iter().map(|(packet, reference, decision)| one(view, packet, reference, decision)).collect();
    let (data, text): (Vec<Value>, Vec<String>) = told.into_iter().unzip();
    Answer::done(json!({ "decisions": data }), text)
}

fn one(view: &View, packet_id: &DecisionId, reference: &ArtifactRef, decision: &UserDecision) -> (Value, String) {
    let packet = view.packets.get(packet_id);
    let grant_id = GrantId::new(closer_protocol::derived_id("grant", decision.decision_id.as_str()));
    let (fate, words) = fate(view, decision, packet, &grant_id);
    let granted = view.state.grant(&grant_id);
    let data = json!({
        "decision_id": decision.decision_id, "packet_id": packet_id,
        "question": packet.map(|packet| &packet.packet.body.question),
        "obligation_ids": packet.map(|packet| &packet.packet.body.obligation_ids),
        "option": decision.selected_option_or_instruction, "decision_type": decision.decision_type,
        "answered_by": decision.authenticated_issuer.identity, "answered_at": decision.issued_at,
        "packet_digest": decision.briefcase_ref.digest, "digest": reference.digest,
        "grant_id": granted.map(|_| &grant_id), "fate": fate.as_str(), "fate_text": words,
        "attempts": attempts(view, &grant_id),
        "can_be_taken_back": granted.is_some_and(|grant| is_open(view, grant)),
    });
    let text = format!(
        "{}  {}  `{}` to {packet_id}: {words}",
        decision.issued_at.as_str(),
        decision.authenticated_issuer.identity,
        decision.selected_option_or_instruction
    );
    (data, text)
}

/// Whether anything more can be done under a grant: it is not revoked, and not used up by what is known to be done.
fn is_open(view: &View, grant: &Grant) -> bool {
    let used = view.calls_under.get(&grant.grant_id).copied().unwrap_or_default();
    let settled = !view.attempts.values().any(|attempt| {
        attempt.action.authority_ref.as_str() == grant.grant_id.as_str() && !attempt.status.is_settled()
    });
    let spent = settled && grant.resource_bounds.calls.is_some_and(|calls| used >= calls);
    grant.revocation.revoked_by.is_none() && !spent
}

fn attempts(view: &View, grant_id: &GrantId) -> Vec<Value> {
    let under = view.attempts.values().filter(|attempt| attempt.action.authority_ref.as_str() == grant_id.as_str());
    under
        .map(|attempt| {
            json!({
                "attempt_id": attempt.intent.attempt_id, "operation": attempt.action.operation,
                "target": attempt.action.target, "status": attempt.status, "authorized_at": attempt.intent.authorized_at,
            })
        })
        .collect()
}

/// What became of an answer, and the same in words.
fn fate(view: &View, decision: &UserDecision, packet: Option<&Packet>, grant_id: &GrantId) -> (Fate, String) {
    match decision.decision_type {
        DecisionType::ScopedAuthorization => authorization(view, grant_id),
        DecisionType::Rejection => (Fate::Stands, "nothing is permitted by it; the obligation stays open".to_owned()),
        DecisionType::Acknowledgment => (Fate::Stands, "seen; it answers nothing".to_owned()),
        DecisionType::Preference | DecisionType::InvestigationRequest => {
            let obligations = packet.map(|packet| &packet.packet.body.obligation_ids);
            let later = view.episodes.values().find(|episode| {
                let concerns = obligations.is_some_and(|ids| ids.contains(&episode.obligation_id));
                concerns && episode.began_at >= decision.issued_at
            });
            match later {
                Some(episode) => {
                    let end = episode.end.map_or("under way", |end| end.as_str());
                    (Fate::TakenUp, format!("taken up by work that began {}: {end}", episode.began_at.as_str()))
                }
                None => (Fate::Unused, "recorded; no work has taken it up yet".to_owned()),
            }
        }
    }
}

/// What became of a grant that an answer gave.
fn authorization(view: &View, grant_id: &GrantId) -> (Fate, String) {
    let newest = view
        .attempts
        .values()
        .filter(|attempt| attempt.action.authority_ref.as_str() == grant_id.as_str())
        .max_by(|one, other| one.intent.authorized_at.cmp(&other.intent.authorized_at));
    if let Some(attempt) = newest {
        let what = format!("`{}` on `{}`", attempt.action.operation, attempt.action.target.address);
        return match attempt.status {
            AttemptStatus::EffectConfirmed => (Fate::Effected, format!("{what} was done, and the target shows it")),
            AttemptStatus::NoEffectConfirmed => (Fate::WithoutEffect, format!("{what} certainly had no effect")),
            AttemptStatus::OutcomeUnknown => {
                (Fate::Unknown, format!("{what} was sent; whether it took effect is not known yet"))
            }
            AttemptStatus::Intended | AttemptStatus::Dispatched | AttemptStatus::Responded => {
                (Fate::UnderWay, format!("{what} is under way"))
            }
        };
    }
    let Some(grant) = view.state.grant(grant_id) else {
        return (Fate::Unused, "recorded; no grant came of it".to_owned());
    };
    if grant.revocation.revoked_by.is_some() {
        return (Fate::TakenBack, "taken back before anything was done under it".to_owned());
    }
    if let Some((code, times)) = refused_under(view, grant_id) {
        return (Fate::Unused, format!("granted; an action under it was refused {times} times, last as `{code}`"));
    }
    match view.latest.as_ref().is_some_and(|latest| *latest >= grant.expiry) {
        true => (Fate::Lapsed, format!("granted and never used; it was over {}", grant.expiry.as_str())),
        false => (Fate::Unused, format!("granted and not used yet; it is over {}", grant.expiry.as_str())),
    }
}

/// The newest refusal of an action under this grant.
fn refused_under(view: &View, grant_id: &GrantId) -> Option<(&'static str, u32)> {
    let under = |id: &PayloadId| {
        view.actions.get(id).is_some_and(|action| action.body.authority_ref.as_str() == grant_id.as_str())
    };
    let refused = view.refused.iter().filter(|(key, _)| under(&PayloadId::new(key.as_str())));
    refused
        .max_by_key(|(key, _)| view.refused_at.get(*key).map(|at| at.unix_ms()))
        .map(|(_, (code, times))| (code.as_str(), *times))
}
