//! The Bench: the packets that wait for the user, and the user's answers.

use super::{Answer, words};
use crate::error::Error;
use crate::space::Space;
use crate::visible::one_line;
use closer_contracts::Digest;
use closer_contracts::audit::{DecisionType, UserDecision};
use closer_contracts::briefcase::{GrantProposal, PacketStatus};
use closer_contracts::id::{ActorId, DecisionId, Key, KeyId, Text};
use closer_contracts::item::ItemKind;
use closer_contracts::refs::{ActorRef, ArtifactRef, AuthenticatedIssuer, Plain, ProducerRole};
use closer_contracts::time::Timestamp;
use closer_contracts::work::ActionProposal;
use closer_protocol::bench::{Fate, fate, proposed};
use closer_protocol::entry::ArtifactBody;
use closer_protocol::view::{Packet, View};
use closer_protocol::{Input, Reply};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether a packet waits for an answer.
pub(crate) fn is_waiting(packet: &Packet) -> bool {
    match packet.status {
        PacketStatus::Open | PacketStatus::Overdue => true,
        PacketStatus::Refreshed | PacketStatus::Withdrawn | PacketStatus::Answered => false,
    }
}

pub(super) fn list(view: &View, all: bool, now: &Timestamp) -> Answer {
    let packets: Vec<(&DecisionId, &Packet)> =
        view.packets.iter().filter(|(_, packet)| all || is_waiting(packet)).collect();
    let line = |(id, packet): &(&DecisionId, &Packet)| {
        let fates = fates(view, id, now);
        let told: Vec<String> = fates.iter().map(|(_, fate)| format!("  [{}]", words_of(fate))).collect();
        format!("{id}  {}  {}{}", packet.status, packet.packet.body.question, told.concat())
    };
    let told = |(id, packet): &(&DecisionId, &Packet)| {
        let body = &packet.packet.body;
        json!({
            "decision_id": id, "status": packet.status, "question": body.question, "obligation_ids": body.obligation_ids,
            "deadline": body.deadline, "answers": answers(view, id, now),
        })
    };
    let told: Vec<Value> = packets.iter().map(told).collect();
    Answer::done(json!({ "packets": told }), packets.iter().map(line).collect())
}

/// What a grant would allow, in lines.
fn would_allow(grant: &GrantProposal) -> Vec<String> {
    let operations: Vec<&str> = grant.allowed_operations.iter().map(|operation| operation.as_str()).collect();
    let mut text = vec![format!("  would allow  {} until {}", operations.join(", "), grant.expiry.as_str())];
    text.extend(grant.targets.iter().map(|target| format!("  on           {}", words::targets(target))));
    text.extend(grant.parameter_bounds.iter().map(|bound| format!("  with         {}", words::bound(bound))));
    text
}

pub(super) fn show(view: &View, id: &DecisionId, now: &Timestamp) -> Answer {
    let Some(packet) = view.packets.get(id) else {
        return Answer::not_found("packet", id.as_str());
    };
    let body = &packet.packet.body;
    let mut text = vec![format!("{}   [{}]", body.question, packet.status)];
    text.extend(body.obligation_ids.iter().map(|obligation| format!("  about        {obligation}")));
    text.extend(body.requested_authorization.iter().flat_map(|requested| would_allow(requested.grant())));
    text.extend(body.evidence_refs.iter().map(|evidence| format!("  evidence     {evidence}")));
    text.extend(body.remaining_uncertainty.iter().map(|unknown| format!("  not known    {unknown}")));
    text.extend(
        body.deadline
            .iter()
            .map(|deadline| format!("  answer by    {}; {}", deadline.as_str(), body.while_waiting.consequence)),
    );
    text.extend(
        body.alternatives
            .iter()
            .map(|option| format!("  {:<12} {} - {}", option.option_id.as_str(), option.text, option.consequence)),
    );
    for (decision, fate) in fates(view, id, now) {
        let amended = if decision.amendment.is_some() { ", amended" } else { "" };
        let who = &decision.authenticated_issuer.identity;
        text.push(format!("  answered     {} by {who}{amended}: {}", decision.decision_type, words_of(&fate)));
    }
    let answer = Answer::done(
        json!({
            "packet": &**body, "status": packet.status, "decision": packet.decision,
            "digest": packet.packet.payload.content_digest(), "admitted_at": packet.packet.admitted_at,
            "answered_as": kinds(packet), "answers": answers(view, id, now),
        }),
        text,
    );
    match is_waiting(packet) {
        true => answer.hint("answer with", ["bench", "decide", id.as_str(), "OPTION"]),
        false => answer,
    }
}

/// The kind of answer that each option is.
fn kinds(packet: &Packet) -> Value {
    let options = packet.packet.body.alternatives.iter().map(|option| option.option_id.as_str());
    options.map(|option| (option.to_owned(), json!(decision_type(packet, option)))).collect()
}

/// The answers to a packet and what became of each, in order.
fn fates(view: &View, id: &DecisionId, now: &Timestamp) -> Vec<(Arc<UserDecision>, Fate)> {
    let decisions = view.decisions.get(id).into_iter().flatten();
    decisions.map(|(_, decision)| (Arc::clone(decision), fate(view, decision, now))).collect()
}

fn answers(view: &View, id: &DecisionId, now: &Timestamp) -> Vec<Value> {
    let told = |(decision, fate): (Arc<UserDecision>, Fate)| {
        json!({
            "decision_id": decision.decision_id, "decision_type": decision.decision_type,
            "by": decision.authenticated_issuer.identity, "amended": decision.amendment.is_some(),
            "fate": fate.as_str(), "told": words_of(&fate),
        })
    };
    fates(view, id, now).into_iter().map(told).collect()
}

/// An answer's fate, for people.
pub(super) fn words_of(fate: &Fate) -> String {
    match fate {
        Fate::NoAuthority => "it gives no authority".to_owned(),
        Fate::Waiting => "waits to run".to_owned(),
        Fate::Ran(attempt) => format!("ran as {attempt} and was read back"),
        Fate::NoEffect(attempt) => format!("was sent as {attempt}, and the target shows no effect"),
        Fate::NotSent(attempt, why, until) => {
            let why = one_line(why.as_str());
            let rest = until.as_ref().map_or_else(String::new, |until| {
                format!("; it waits to run when the obligation is next worked on, until {}", until.as_str())
            });
            format!("was refused at dispatch as {attempt}, and nothing was sent: {why}{rest}")
        }
        Fate::Unknown(attempt) => format!("was let go as {attempt}; what became of it is not known"),
        Fate::Refused(code, facts) if facts.is_empty() => format!("was refused: {code}"),
        Fate::Refused(code, facts) => format!("was refused: {code}: {}", facts.join("; ")),
        Fate::Lapsed(why) => format!("was never tried: {why}"),
    }
}

/// The action that is proposed, with other values; and with what its target has to show then: what is named, else what was
/// to show the old value of a parameter shows its new one.
fn amended(packet: &Packet, amend: &Values, expect: &Values) -> Option<ActionProposal> {
    let mut proposal = proposed(&packet.packet.body)?.clone();
    for (name, value) in amend {
        let new = Plain(value.clone());
        let old = proposal.parameters.insert(name.clone(), new.clone());
        for expectation in &mut proposal.expected_postcondition.expectations {
            if Some(&expectation.value) == old.as_ref() {
                expectation.value = new.clone();
            }
        }
    }
    for expectation in &mut proposal.expected_postcondition.expectations {
        if let Some(value) = expect.get(&Key::new(expectation.field.as_str())) {
            expectation.value = Plain(value.clone());
        }
    }
    Some(proposal)
}

/// Values by name.
type Values = BTreeMap<Key, Value>;

/// What kind of answer an option is. Only one that was offered can be chosen.
pub(crate) fn decision_type(packet: &Packet, option: &str) -> Option<DecisionType> {
    let offered = packet.packet.body.alternatives.iter().any(|alternative| alternative.option_id.as_str() == option);
    offered.then_some(match option {
        "allow" => DecisionType::ScopedAuthorization,
        "refuse" => DecisionType::Rejection,
        "investigate" => DecisionType::InvestigationRequest,
        _ => DecisionType::Preference,
    })
}

/// How often one answer is given to one question by itself, whatever was found in between.
const ANSWERS_MAX: usize = 3;

/// Why it would lead nowhere to answer a packet by itself: the same answer to the same question was given before, and
/// nothing new was found since, or it was given often enough. Then it is a person's turn.
#[must_use]
pub fn futile(view: &View, id: &DecisionId, option: &str) -> Option<String> {
    let packet = view.packets.get(id)?;
    let asked = &packet.packet.body;
    let answered_so = |(other, earlier): &(&DecisionId, &Packet)| {
        let same = earlier.packet.body.question == asked.question
            && earlier.packet.body.obligation_ids == asked.obligation_ids;
        let mut decisions = view.decisions.get(*other).into_iter().flatten();
        same && decisions.any(|(_, decision)| decision.selected_option_or_instruction.as_str() == option)
    };
    let before: Vec<&Packet> = view.packets.iter().filter(answered_so).map(|(_, earlier)| earlier).collect();
    if before.iter().any(|earlier| earlier.evidence_version == packet.evidence_version) {
        return Some(format!("`{option}` was the answer to this question before, and nothing new was found since"));
    }
    let enough = before.len() >= ANSWERS_MAX;
    enough
        .then(|| format!("`{option}` was the answer to this question {ANSWERS_MAX} times; more of it settles nothing"))
}

/// How an identity's statements are known to be its own: by its entry in the registry.
pub(super) fn issuer(view: &View, identity: &ActorId) -> AuthenticatedIssuer {
    let registered = view.state.item(ItemKind::Identity, &identity.into());
    let digest =
        registered.map_or(closer_contracts::Digest::of(identity.as_str().as_bytes()), |accepted| accepted.digest);
    AuthenticatedIssuer { identity: identity.clone(), auth_ref: ArtifactRef { id: identity.as_str().into(), digest } }
}

/// An answer as it is asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerDraft {
    /// The packet.
    pub decision_id: DecisionId,
    /// The option, by its id.
    pub option: String,
    /// The digest of the packet as it was shown; the newest version without one.
    pub packet_digest: Option<Digest>,
    /// Parameters of the proposed action that the user puts other values in, where any.
    #[serde(default)]
    pub amend: Values,
    /// Fields that the target has to show then, where others than before.
    #[serde(default)]
    pub expect: Values,
}

/// The answer as it would be recorded, for somebody who signs it elsewhere.
pub(super) fn draft(space: &dyn Space, person: &ActorId, draft: &AnswerDraft) -> Answer {
    match decision(space, person, draft) {
        Ok(decision) => Answer::done(json!({ "decision": decision }), vec!["nothing is recorded".to_owned()]),
        Err(answer) => *answer,
    }
}

/// Hands in an answer that its person has signed.
pub(super) async fn hand_in(
    space: &dyn Space,
    decision: UserDecision,
    signature: (KeyId, Key),
) -> Result<Answer, Error> {
    let producer = ActorRef { actor_id: decision.authenticated_issuer.identity.clone(), role: ProducerRole::User };
    let decided = decision.clone();
    let reply = match space.artifact(decision.into(), producer, Some(&signature)) {
        Ok(submission) => space.submit(Input::Artifact(submission)).await?,
        Err(fault) => Reply::Refused(vec![fault.into()]),
    };
    Ok(answered(space, &reply, &decided))
}

pub(super) async fn decide(space: &dyn Space, identity: &ActorId, draft: &AnswerDraft) -> Result<Answer, Error> {
    let decision = match decision(space, identity, draft) {
        Ok(decision) => decision,
        Err(answer) => return Ok(*answer),
    };
    let reply = submit(space, decision.clone(), identity, ProducerRole::User).await?;
    Ok(answered(space, &reply, &decision))
}

/// What an answer came to, with how many more it takes where the user is an organization.
fn answered(space: &dyn Space, reply: &Reply, decision: &UserDecision) -> Answer {
    let (option, decision_type) = (&decision.selected_option_or_instruction, decision.decision_type);
    let mut answer = Answer::replied(reply, &format!("answered `{option}`: a {decision_type}"));
    let missing = closer_protocol::people::missing(&space.view(), decision);
    if reply.refusal().is_none() && decision_type == DecisionType::ScopedAuthorization && missing > 0 {
        answer.text.push(format!("it takes {missing} more to allow the same before anything is permitted"));
    }
    answer
}

fn decision(space: &dyn Space, identity: &ActorId, draft: &AnswerDraft) -> Result<UserDecision, Box<Answer>> {
    let AnswerDraft { decision_id: id, option, packet_digest: shown, amend, expect } = draft;
    let view = space.view();
    let Some(packet) = view.packets.get(id) else {
        return Err(Box::new(Answer::not_found("packet", id.as_str())));
    };
    let Some(decision_type) = decision_type(packet, option) else {
        let offered: Vec<&str> =
            packet.packet.body.alternatives.iter().map(|option| option.option_id.as_str()).collect();
        let what = format!("option of this packet (it offers {})", offered.join(", "));
        return Err(Box::new(Answer::not_found(&what, option)));
    };
    let changes = !amend.is_empty() || !expect.is_empty();
    let amendment = amended(packet, amend, expect).filter(|_| changes);
    if changes && amendment.is_none() {
        return Err(Box::new(Answer::not_found("proposed action", id.as_str())));
    }
    Ok(UserDecision {
        decision_id: DecisionId::new(space.fresh("answer")),
        briefcase_ref: ArtifactRef {
            id: id.as_str().into(),
            digest: (*shown).unwrap_or(packet.packet.payload.content_digest()),
        },
        selected_option_or_instruction: Text::from(option.as_str()),
        authenticated_issuer: issuer(&view, identity),
        issued_at: space.moment().now,
        evidence_version: packet.evidence_version,
        decision_type,
        amendment,
    })
}

/// Submits an artifact as an identity that the face speaks for.
pub(super) async fn submit(
    space: &dyn Space,
    artifact: impl Into<ArtifactBody>,
    identity: &ActorId,
    role: ProducerRole,
) -> Result<Reply, Error> {
    let producer = ActorRef { actor_id: identity.clone(), role };
    match space.artifact(artifact.into(), producer, None) {
        Ok(submission) => space.submit(Input::Artifact(submission)).await,
        Err(fault) => Ok(Reply::Refused(vec![fault.into()])),
    }
}
