//! A grant for more than one action, given by a person who was asked often enough: its bounds begin at exactly what a packet
//! shows, and before it is given it is held against what was asked before.

use super::{Answer, bench, change};
use crate::error::Error;
use crate::space::Space;
use closer_contracts::audit::{DecisionType, Delegability, Grant, Revocation};
use closer_contracts::briefcase::{GrantProposal, RequestedAuthorization};
use closer_contracts::delta::Change;
use closer_contracts::id::{ActorId, DecisionId, GrantId};
use closer_contracts::item::{Item, ParameterBound};
use closer_contracts::refs::Amounts;
use closer_contracts::time::Timestamp;
use closer_contracts::work::ActionProposal;
use closer_protocol::view::{Packet, View};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How far back a grant is held against what was asked, in milliseconds: 90 days.
const REPLAYED_MS: i64 = 90 * 24 * 3_600_000;

/// A grant to be given: the packet's own operations and targets, within these bounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantDraft {
    /// The packet it begins at.
    pub packet_id: DecisionId,
    /// The bounds of the parameters.
    pub parameter_bounds: Vec<ParameterBound>,
    /// How often; without one, as often as it comes up.
    pub calls: Option<u64>,
    /// Until when.
    pub expiry: Timestamp,
}

/// The action that a packet asks for, and the grant it shows.
fn asked(packet: &Packet) -> Option<(&ActionProposal, &GrantProposal)> {
    match &packet.packet.body.requested_authorization {
        Some(RequestedAuthorization::Action { proposal, grant }) => Some((proposal, grant)),
        Some(RequestedAuthorization::Grant(_)) | None => None,
    }
}

fn shown<'a>(view: &'a View, draft: &GrantDraft) -> Result<&'a GrantProposal, Box<Answer>> {
    let Some(packet) = view.packets.get(&draft.packet_id) else {
        return Err(Answer::not_found("packet", draft.packet_id.as_str()).into());
    };
    asked(packet)
        .map(|(_, grant)| grant)
        .ok_or_else(|| Answer::absent("this packet asks for no action".to_owned()).into())
}

/// How many packets asked for an operation of this packet before, and were answered.
pub(crate) fn like(view: &View, packet: &Packet) -> usize {
    let Some((own, _)) = asked(packet) else { return 0 };
    let same = |other: &&Packet| {
        let proposal = asked(other).map(|(proposal, _)| proposal);
        other.decision.is_some() && proposal.is_some_and(|proposal| proposal.operation == own.operation)
    };
    view.packets.values().filter(same).count()
}

/// Whether the bounds admit an action, as the monitor would read them.
fn covers(shown: &GrantProposal, draft: &GrantDraft, proposal: &ActionProposal) -> bool {
    let mut bounds = draft.parameter_bounds.iter().filter(|bound| bound.operation == proposal.operation);
    shown.allowed_operations.contains(&proposal.operation)
        && shown.targets.iter().any(|targets| targets.covers(&proposal.target))
        && bounds.all(|bound| bound.admits(proposal.parameters.get(&bound.parameter)))
}

/// Which packets of the last 90 days this grant would have answered, and which of those a person refused.
pub(super) fn try_out(space: &dyn Space, draft: &GrantDraft) -> Answer {
    let view = space.view();
    let shown = match shown(&view, draft) {
        Ok(shown) => shown,
        Err(answer) => return *answer,
    };
    let since = Timestamp::from_unix_ms(space.moment().now.unix_ms().saturating_sub(REPLAYED_MS));
    let past = view.packets.iter().filter(|(_, packet)| {
        let covered = asked(packet).is_some_and(|(proposal, _)| covers(shown, draft, proposal));
        covered && packet.packet.admitted_at >= since
    });
    let refused = |id: &DecisionId| {
        let mut given = view.decisions.get(id).into_iter().flatten();
        given.any(|(_, decision)| decision.decision_type == DecisionType::Rejection)
    };
    let told: Vec<Value> = past
        .map(|(id, packet)| {
            json!({
                "packet_id": id, "question": packet.packet.body.question, "asked_at": packet.packet.admitted_at,
                "status": packet.status, "refused": refused(id),
            })
        })
        .collect();
    let no = told.iter().filter(|one| one.get("refused") == Some(&Value::Bool(true))).count();
    let text = vec![format!(
        "it would have answered {} questions of the last 90 days; {no} of them a person refused",
        told.len()
    )];
    Answer::done(
        json!({ "since": since, "would_have_answered": told.len(), "refused_by_a_person": no, "packets": told }),
        text,
    )
}

/// Gives the grant, under a declaration of whoever gives it.
pub(super) async fn give(space: &dyn Space, identity: &ActorId, draft: GrantDraft) -> Result<Answer, Error> {
    let view = space.view();
    let shown = match shown(&view, &draft) {
        Ok(shown) => shown.clone(),
        Err(answer) => return Ok(*answer),
    };
    let obligations = view.packets.get(&draft.packet_id).map(|packet| packet.packet.body.obligation_ids.clone());
    let operations: Vec<&str> = shown.allowed_operations.iter().map(|operation| operation.as_str()).collect();
    let often =
        draft.calls.map_or_else(|| "as often as it comes up".to_owned(), |calls| format!("at most {calls} times"));
    let what = format!(
        "{} is allowed {often} until {}, beginning at {}",
        operations.join(", "),
        draft.expiry.as_str(),
        draft.packet_id
    );
    let grant = Grant {
        grant_id: GrantId::new(space.fresh("grant")),
        authenticated_issuer: bench::issuer(&view, identity),
        allowed_operations: shown.allowed_operations,
        targets: shown.targets,
        parameter_bounds: draft.parameter_bounds,
        resource_bounds: Amounts { calls: draft.calls, ..shown.resource_bounds },
        expiry: draft.expiry,
        delegability: Delegability::None,
        revocation: Revocation { may_revoke: vec![identity.clone()], revoked_by: None },
    };
    let change = Change::Add { item: Box::new(Item::Grant(grant)) };
    change::commit(space, identity, &what, obligations.unwrap_or_default(), vec![change]).await
}
