//! Responsibility: what is offered, accepted and held, and the offers and consents that people make.

use super::{Answer, HandoffDraft, HandoffRequest, bench, change};
use crate::error::Error;
use crate::space::Space;
use closer_contracts::handoff::{HandoffConsent, ResponsibilityContract};
use closer_contracts::id::{ActorId, ArtifactId, HandoffId, ObligationId};
use closer_contracts::item::ItemKind;
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole};
use closer_protocol::handoff::{self, Terms, verified_key};
use closer_protocol::{View, services};
use serde_json::{Value, json};

/// Answers what is asked about responsibilities.
pub(super) async fn answer(space: &dyn Space, identity: &ActorId, asked: HandoffRequest) -> Result<Answer, Error> {
    match asked {
        HandoffRequest::List => Ok(list(&space.view())),
        HandoffRequest::Contract { capabilities, context, owes } => {
            let contract_id = ArtifactId::new(space.fresh("contract"));
            let contract = ResponsibilityContract { contract_id, capabilities, context, owed_on_return: owes };
            let reply = bench::submit(space, contract, identity, ProducerRole::User).await?;
            Ok(Answer::replied(&reply, "written down"))
        }
        HandoffRequest::Offer(draft) => offer(space, identity, draft).await,
        HandoffRequest::Accept { handoff_id } => accept(space, identity, &handoff_id).await,
    }
}

/// Who answers for every open obligation, and what was offered.
fn list(view: &View) -> Answer {
    let open = view.state.items(ItemKind::Obligation).map(|accepted| ObligationId::new(accepted.item.id().as_str()));
    let open = open.filter(|id| view.state.obligation(id).is_some_and(|obligation| obligation.status.is_open()));
    let held: Vec<_> = open.filter_map(|id| view.ownership(&id).map(|held| (id, held))).collect();
    let mut text: Vec<String> = held
        .iter()
        .map(|(id, held)| {
            let until = held.lease_expiry.as_ref().map(|at| format!(" until {}", at.as_str())).unwrap_or_default();
            format!("{id}  held by {} under epoch {}{until}", held.owner, held.epoch)
        })
        .collect();
    let held: Vec<Value> = held
        .iter()
        .map(|(id, held)| {
            json!({ "obligation_id": id, "owner": held.owner, "epoch": held.epoch, "lease_expiry": held.lease_expiry })
        })
        .collect();
    let mut offers = Vec::new();
    for offer in view.handoffs.offers() {
        let body = &offer.body;
        let accepted = view.acceptances.contains_key(&body.handoff_id);
        let verified = view.notices.contains_key(&verified_key(&body.handoff_id));
        let overtaken = view.ownership(&body.obligation_id).is_none_or(|held| held.epoch >= body.ownership_epoch);
        let status = match (accepted, verified, overtaken) {
            (true, true, _) => "accepted and verified",
            (true, false, _) => "accepted",
            (false, _, true) => "overtaken",
            (false, _, false) => "offered",
        };
        text.push(format!("{}  {} to {}: {status}", body.handoff_id, body.obligation_id, body.recipient.actor_id));
        offers.push(json!({ "handoff": &**body, "status": status }));
    }
    Answer::done(json!({ "held": held, "handoffs": offers }), text)
}

fn reference(view: &View, id: &ArtifactId) -> Option<ArtifactRef> {
    view.handoffs.contracts().map(|(reference, _)| reference).find(|reference| reference.id == *id).cloned()
}

fn in_role(view: &View, identity: &ActorId) -> Option<ActorRef> {
    let role = view.state.identity(identity)?.roles.first().copied()?;
    Some(ActorRef { actor_id: identity.clone(), role })
}

/// Offers a responsibility that the identity holds, or that fell to the coordinator.
async fn offer(space: &dyn Space, identity: &ActorId, draft: HandoffDraft) -> Result<Answer, Error> {
    let view = space.view();
    let Some(contract_ref) = reference(&view, &draft.contract) else {
        return Ok(Answer::not_found("responsibility contract", draft.contract.as_str()));
    };
    let returns = draft.return_contract.as_ref().unwrap_or(&draft.contract);
    let Some(return_contract_ref) = reference(&view, returns) else {
        return Ok(Answer::not_found("responsibility contract", returns.as_str()));
    };
    let mut context_refs = Vec::new();
    for id in &draft.context {
        match handoff::citable(&view, id) {
            Some(cited) => context_refs.push(cited),
            None => return Ok(Answer::not_found("record", id.as_str())),
        }
    }
    let coordinator = services::actor(ProducerRole::Coordinator);
    let fallen = view.ownership(&draft.obligation_id).is_some_and(|held| held.owner == coordinator);
    let sender = match fallen && view.state.is_user(identity) {
        true => coordinator,
        false => identity.clone(),
    };
    let (Some(sender), Some(recipient)) = (in_role(&view, &sender), in_role(&view, &draft.recipient)) else {
        return Ok(Answer::not_found("identity with a role", draft.recipient.as_str()));
    };
    let now = space.moment().now;
    let terms = Terms {
        handoff_id: HandoffId::new(space.fresh("handoff")),
        obligation_id: draft.obligation_id,
        responsibility: draft.responsibility,
        sender,
        recipient,
        contract_ref,
        context_refs,
        lease_expiry: draft.lease_ms.map(|lease_ms| now.plus_ms(lease_ms)),
        return_contract_ref,
    };
    let what = format!("offered as {}", terms.handoff_id);
    let payload = match handoff::draft(&view, terms, &now) {
        Ok(payload) => payload,
        Err(fault) => return Ok(Answer::refused(&[fault.into()])),
    };
    let reply = change::submit(space, payload).await?;
    Ok(Answer::replied(&reply, &what))
}

/// Consents to a handoff as its recipient; the responsibility moves in the same step.
async fn accept(space: &dyn Space, identity: &ActorId, id: &HandoffId) -> Result<Answer, Error> {
    let view = space.view();
    let Some(offered) = view.handoffs.offered(id) else {
        return Ok(Answer::not_found("handoff", id.as_str()));
    };
    let consent = HandoffConsent {
        handoff_ref: id.clone(),
        recipient_ref: identity.clone(),
        contract_digest: offered.body.contract_ref.digest,
        ownership_epoch: offered.body.ownership_epoch,
    };
    let role = in_role(&view, identity).map_or(offered.body.recipient.role, |known| known.role);
    let reply = bench::submit(space, consent, identity, role).await?;
    Ok(Answer::replied(&reply, &format!("accepted under epoch {}", offered.body.ownership_epoch)))
}
