//! Decisions: every answer that was given, and what became of it. From the record, never from a guess.

use super::{Answer, bench};
use closer_contracts::audit::{DecisionType, Grant, UserDecision};
use closer_contracts::id::{DecisionId, GrantId};
use closer_contracts::refs::ArtifactRef;
use closer_contracts::time::Timestamp;
use closer_protocol::bench::{Fate, fate, grant_id};
use closer_protocol::view::{Packet, View};
use serde_json::{Value, json};
use std::cmp::Reverse;

/// All answers, the newest first.
pub(super) fn list(view: &View, packet: Option<&DecisionId>, now: &Timestamp) -> Answer {
    let chosen = view.decisions.iter().filter(|(id, _)| packet.is_none_or(|packet| packet == *id));
    let mut given: Vec<_> = chosen
        .flat_map(|(id, answers)| answers.iter().map(move |(reference, decision)| (id, reference, decision)))
        .collect();
    given.sort_by_key(|(_, _, decision)| Reverse((decision.issued_at.clone(), decision.decision_id.clone())));
    let told: Vec<(Value, String)> =
        given.into_iter().map(|(packet, reference, decision)| one(view, packet, reference, decision, now)).collect();
    let (data, text): (Vec<Value>, Vec<String>) = told.into_iter().unzip();
    Answer::done(json!({ "decisions": data }), text)
}

fn one(
    view: &View,
    packet_id: &DecisionId,
    reference: &ArtifactRef,
    decision: &UserDecision,
    now: &Timestamp,
) -> (Value, String) {
    let packet = view.packets.get(packet_id);
    let grant_id = grant_id(decision);
    let fate = fate(view, decision, now);
    let words = in_words(view, decision, packet, &fate);
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

/// What became of an answer, in words. One that gives no authority says what it did instead.
fn in_words(view: &View, decision: &UserDecision, packet: Option<&Packet>, fate: &Fate) -> String {
    match (decision.decision_type, fate) {
        (DecisionType::Rejection, _) => "nothing is permitted by it; the obligation stays open".to_owned(),
        (DecisionType::Preference | DecisionType::InvestigationRequest, _) => {
            let obligations = packet.map(|packet| &packet.packet.body.obligation_ids);
            let later = view.episodes.values().find(|episode| {
                let concerns = obligations.is_some_and(|ids| ids.contains(&episode.obligation_id));
                concerns && episode.began_at >= decision.issued_at
            });
            later.map_or_else(
                || "recorded; no work has taken it up yet".to_owned(),
                |episode| {
                    let end = episode.end.map_or("under way", |end| end.as_str());
                    format!("taken up by work that began {}: {end}", episode.began_at.as_str())
                },
            )
        }
        (DecisionType::ScopedAuthorization | DecisionType::Acknowledgment, _) => bench::words_of(fate),
    }
}
