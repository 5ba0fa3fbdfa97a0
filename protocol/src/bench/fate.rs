//! What became of an answer: it waits to run, it ran and was read back, it was refused and why, or nobody knows.

use super::{authorized, grant_id, subject};
use crate::entry::AttemptStatus;
use crate::view::{Attempt, View};
use closer_contracts::audit::{DecisionType, UserDecision};
use closer_contracts::branch;
use closer_contracts::id::{AttemptId, GrantId, Key, Text};
use closer_contracts::refusal::RefusalCode as Code;
use closer_contracts::time::Timestamp;

/// The fate of one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It gives no authority: what it leads to is ordinary work.
    NoAuthority,
    /// What it allows has not been tried yet.
    Waiting,
    /// It ran, and the target shows it.
    Ran(AttemptId),
    /// It was sent, and the target shows that it had no effect.
    NoEffect(AttemptId),
    /// It was turned down at dispatch, and nothing was sent: why, and until when it can still run under this answer.
    NotSent(AttemptId, Text, Option<Timestamp>),
    /// It was sent, and what became of it is not known.
    Unknown(AttemptId),
    /// The monitor refused it; with the facts that had changed since it was asked.
    Refused(Code, Vec<String>),
    /// It was never tried and cannot be any more.
    Lapsed(String),
}

impl Fate {
    /// The fate's word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::NoAuthority => "no_authority",
            Self::Waiting => "waiting",
            Self::Ran(_) => "ran",
            Self::NoEffect(_) => "no_effect",
            Self::NotSent(..) => "not_sent",
            Self::Unknown(_) => "unknown",
            Self::Refused(..) => "refused",
            Self::Lapsed(_) => "lapsed",
        }
    }
}

/// What became of an answer so far.
#[must_use]
pub fn fate(view: &View, decision: &UserDecision, now: &Timestamp) -> Fate {
    let packet = view.packets.get(&super::packet_of(decision));
    let allows = decision.decision_type == DecisionType::ScopedAuthorization;
    if !allows || packet.and_then(|packet| authorized(&packet.packet.body, decision)).is_none() {
        return Fate::NoAuthority;
    }
    let id = grant_id(decision);
    let attempts = view.attempts.values().filter(|attempt| attempt.action.authority_ref == id);
    if let Some(newest) = attempts.max_by_key(|attempt| attempt.intent.authorized_at.clone()) {
        return of_attempt(view, newest, &id, now);
    }
    let changed = subject::changed_since_asked(view, &id);
    let facts: Vec<String> = changed.iter().map(|fact| format!("{}: {}", fact.fact, fact.change)).collect();
    let tried = view.actions.values().filter(|action| action.body.authority_ref == id);
    let refused = tried.filter_map(|action| view.refused.get(&Key::new(action.payload.id().as_str()))).next_back();
    match (refused, view.state.grant(&id)) {
        (Some((code, _)), _) if branch!("fate.refused", true) => Fate::Refused(*code, facts),
        (None, _) if !facts.is_empty() => Fate::Refused(Code::StaleVersion, facts),
        (_, Some(grant)) if grant.revocation.revoked_by.is_some() => Fate::Lapsed("it was revoked".to_owned()),
        (_, Some(grant)) if grant.expiry <= *now => Fate::Lapsed("its time is over".to_owned()),
        (_, Some(_) | None) => Fate::Waiting,
    }
}

/// What became of the newest attempt under an answer's grant.
fn of_attempt(view: &View, attempt: &Attempt, id: &GrantId, now: &Timestamp) -> Fate {
    let attempt_id = attempt.intent.attempt_id.clone();
    match (attempt.status, attempt.not_sent()) {
        (AttemptStatus::EffectConfirmed, _) => Fate::Ran(attempt_id),
        (AttemptStatus::NoEffectConfirmed, Some(outcome)) => {
            let grant = view.state.grant(id).filter(|grant| grant.revocation.revoked_by.is_none());
            let until = grant.map(|grant| grant.expiry.clone()).filter(|expiry| now < expiry);
            Fate::NotSent(attempt_id, outcome.reason.clone(), until)
        }
        (AttemptStatus::NoEffectConfirmed, None) => Fate::NoEffect(attempt_id),
        (
            AttemptStatus::Intended
            | AttemptStatus::Dispatched
            | AttemptStatus::Responded
            | AttemptStatus::OutcomeUnknown,
            _,
        ) => Fate::Unknown(attempt_id),
    }
}
