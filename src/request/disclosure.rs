//! What leaves the record under a receipt, and what is done when something left that should not have.

use super::{Answer, IncidentRequest, bench};
use crate::error::Error;
use crate::space::Space;
use closer_contracts::audit::{DisclosureIncident, DisclosureReceipt};
use closer_contracts::id::{ActorId, ArtifactId, IncidentId, Key, PurposeId};
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole};
use closer_protocol::disclose::{self, Request};
use closer_protocol::incident::{self, Case, IncidentStep, Step};
use closer_protocol::{Input, Reply, View, dispatch};
use serde_json::json;
use std::sync::Arc;

/// The purpose that an incident is read for.
const INCIDENT: &str = "incident";

/// Has a part of the record released, and gives what leaves.
pub(super) async fn export(
    space: &dyn Space,
    identity: &ActorId,
    recipient: ActorId,
    purpose: Option<PurposeId>,
    items: Vec<ArtifactId>,
) -> Result<Answer, Error> {
    if space.view().state.identity(&recipient).is_none() {
        return Ok(Answer::not_found("identity", recipient.as_str()));
    }
    let receipt = match released(space, identity, recipient, purpose, items).await? {
        Ok(receipt) => receipt,
        Err(answer) => return Ok(answer),
    };
    let export = match disclose::export(&space.view(), &receipt) {
        Ok(export) => export,
        Err(fault) => return Ok(Answer::refused(&[fault.into()])),
    };
    let withheld: Vec<&str> = receipt.withheld_categories.iter().map(|category| category.as_str()).collect();
    let mut text = vec![
        format!("{} under receipt {}", receipt.recipient, receipt.disclosure_id),
        format!("  purpose   {}", receipt.purpose),
        format!("  withheld  {}", if withheld.is_empty() { "nothing".to_owned() } else { withheld.join(", ") }),
    ];
    text.extend(export.items.iter().map(|exported| {
        let accepted = if exported.accepted.is_some() { "accepted, with proof" } else { "on record" };
        format!("  item      {} ({accepted})", exported.item.reference.id)
    }));
    text.push("what has left cannot be called back; the packet itself is what --json prints".to_owned());
    Ok(Answer::done(json!(export), text))
}

/// Asks the sequence for a release; gives the receipt on record, or the answer that there is none.
async fn released(
    space: &dyn Space,
    identity: &ActorId,
    recipient: ActorId,
    purpose: Option<PurposeId>,
    items: Vec<ArtifactId>,
) -> Result<Result<Arc<DisclosureReceipt>, Answer>, Error> {
    let request = Request { request_id: ArtifactId::new(space.fresh("request")), recipient, purpose, items };
    let submission = match space.request(request, acting(&space.view(), identity)) {
        Ok(submission) => submission,
        Err(fault) => return Ok(Err(Answer::refused(&[fault.into()]))),
    };
    Ok(match space.submit(Input::Disclose(submission)).await? {
        Reply::Refused(denials) => Err(Answer::refused(&denials)),
        Reply::Recorded(references) => {
            let view = space.view();
            let receipt = references.first().and_then(|receipt| view.released.get(&Key::new(receipt.id.as_str())));
            receipt.cloned().ok_or_else(|| Answer::absent("the receipt is not on record yet; ask again".to_owned()))
        }
    })
}

/// The identity in the first role that it is registered in.
fn acting(view: &View, identity: &ActorId) -> ActorRef {
    let role = view.state.identity(identity).and_then(|known| known.roles.first().copied());
    ActorRef { actor_id: identity.clone(), role: role.unwrap_or(ProducerRole::User) }
}

/// Answers what is asked about an incident.
pub(super) async fn incident(space: &dyn Space, identity: &ActorId, asked: IncidentRequest) -> Result<Answer, Error> {
    match asked {
        IncidentRequest::Report { items, recipients, owner } => {
            report(space, identity, &items, recipients, owner).await
        }
        IncidentRequest::Show { incident_id } => show(space, identity, &incident_id).await,
        IncidentRequest::Notify { incident_id } => notify(space, identity, &incident_id).await,
        IncidentRequest::Failed { incident_id, recipient, reason } => {
            let step = |_: &View, _: &Case| Ok(Step::Answered { recipient, answer: incident::Answer::Failed, reason });
            take(space, identity, &incident_id, step, "recorded").await
        }
        IncidentRequest::Reconcile { incident_id, justification } => {
            // Whoever gave no answer is an unknown copy.
            let step = |_: &View, case: &Case| {
                Ok(Step::Reconciled { unknown_copies: case.silent().cloned().collect(), justification })
            };
            take(space, identity, &incident_id, step, "reconciled").await
        }
    }
}

/// Opens an incident about items that receipts on record released.
async fn report(
    space: &dyn Space,
    identity: &ActorId,
    items: &[ArtifactId],
    recipients: Vec<ActorId>,
    owner: Option<ActorId>,
) -> Result<Answer, Error> {
    let view = space.view();
    let mut released_item_refs: Vec<ArtifactRef> = Vec::new();
    for item in items {
        let receipts = view.released.values().filter(|receipt| recipients.contains(&receipt.recipient));
        let mut references: Vec<ArtifactRef> = receipts
            .flat_map(|receipt| receipt.materialized_item_refs.iter())
            .filter(|reference| reference.id == *item)
            .cloned()
            .collect();
        references.sort_by(|a, b| (&a.id, a.digest.to_string()).cmp(&(&b.id, b.digest.to_string())));
        references.dedup();
        if references.is_empty() {
            return Ok(Answer::not_found("item that went to these recipients", item.as_str()));
        }
        released_item_refs.extend(references);
    }
    let opened = DisclosureIncident {
        incident_id: IncidentId::new(space.fresh("incident")),
        released_item_refs,
        recipient_refs: recipients,
        containment_attempts: Vec::new(),
        notification_attempts: Vec::new(),
        dependent_artifacts: Vec::new(),
        acknowledgments: Vec::new(),
        unknown_copies: Vec::new(),
        incident_owner: owner.unwrap_or_else(|| super::default_identity(&view)),
        policy_version: dispatch::profile_ref(&view),
    };
    let role = acting(&view, identity).role;
    let reply = bench::submit(space, opened, identity, role).await?;
    Ok(Answer::replied(&reply, "its release has stopped; withdraw it with `incident notify`"))
}

/// Reads an incident, for whoever answers for it.
async fn show(space: &dyn Space, identity: &ActorId, id: &IncidentId) -> Result<Answer, Error> {
    if !space.view().incidents.contains_key(id) {
        return Ok(Answer::not_found("incident", id.as_str()));
    }
    let item = ArtifactId::new(id.as_str());
    if let Err(answer) =
        released(space, identity, identity.clone(), Some(PurposeId::from(INCIDENT)), vec![item]).await?
    {
        return Ok(answer);
    }
    let view = space.view();
    let Some(case) = view.incidents.get(id) else {
        return Ok(Answer::not_found("incident", id.as_str()));
    };
    let report = incident::report(&view, case);
    let mut text = vec![format!("{id} {}, answered for by {}", report.state, report.incident.incident_owner)];
    text.extend(report.incident.released_item_refs.iter().map(|item| format!("  item      {}", item.id)));
    let exposures = report.unresolved_exposure.iter();
    text.extend(exposures.map(|open| format!("  {:<9} {}: {}", open.standing.as_str(), open.recipient, open.text)));
    text.extend(report.incident.dependent_artifacts.iter().map(|artifact| format!("  derived   {}", artifact.id)));
    text.push(report.limits.to_string());
    Ok(Answer::done(json!(report), text))
}

/// Takes the second step: withdraws and tells.
async fn notify(space: &dyn Space, identity: &ActorId, id: &IncidentId) -> Result<Answer, Error> {
    let now = space.moment().now;
    let step = |view: &View, case: &Case| incident::notify(view, case, &now).map(|step| step.content);
    take(space, identity, id, step, "withdrawn; a notice to every recipient is on record, with what it was given").await
}

async fn take(
    space: &dyn Space,
    identity: &ActorId,
    id: &IncidentId,
    content: impl FnOnce(&View, &Case) -> Result<Step, closer_contracts::Fault>,
    what: &str,
) -> Result<Answer, Error> {
    let view = space.view();
    let Some(case) = view.incidents.get(id) else {
        return Ok(Answer::not_found("incident", id.as_str()));
    };
    let content = match content(&view, case) {
        Ok(content) => content,
        Err(fault) => return Ok(Answer::refused(&[fault.into()])),
    };
    let step = IncidentStep { step_id: ArtifactId::new(space.fresh("step")), incident_id: id.clone(), content };
    let reply = bench::submit(space, step, identity, acting(&view, identity).role).await?;
    Ok(Answer::replied(&reply, what))
}
