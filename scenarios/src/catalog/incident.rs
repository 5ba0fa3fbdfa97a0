//! What happens about an over-disclosure: one line, one step.

use super::given::Cast;
use super::words::{Unreadable, Words};
use crate::space::Broken;
use closer_contracts::audit::DisclosureIncident;
use closer_contracts::auth::SigningScope;
use closer_contracts::id::{ActorId, IncidentId};
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole};
use closer_protocol::dispatch::profile_ref;
use closer_protocol::incident::{self, Answer, Case, IncidentStep, Step};
use std::sync::Arc;

type Done = Result<(), Broken>;

fn incident_id() -> IncidentId {
    IncidentId::from("incident-1")
}

fn user() -> ActorRef {
    ActorRef { actor_id: "user".into(), role: ProducerRole::User }
}

fn case(cast: &Cast) -> Result<Arc<Case>, Broken> {
    let case = cast.space.view().incidents.get(&incident_id());
    case.cloned().ok_or_else(|| Broken::Stuck("no incident was reported".into()))
}

/// `incident.reported grant-1 to=worker`: the user reports what a packet released.
pub(super) fn report(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let (item, recipient) = (words.next()?, ActorId::from(words.named("to").unwrap_or("worker")));
    let view = cast.space.view();
    let receipts = view.released.values().filter(|receipt| receipt.recipient == recipient);
    let mut released = receipts.flat_map(|receipt| receipt.materialized_item_refs.iter());
    let Some(reference) = released.find(|reference| reference.id.as_str() == item).cloned() else {
        return Ok(Err(Broken::Stuck(format!("`{item}` went to nobody"))));
    };
    let opened = opened(reference, recipient, profile_ref(view));
    Ok(cast.space.submit_artifact(opened, user(), SigningScope::DisclosureIncident).map(drop))
}

fn opened(
    item: ArtifactRef,
    recipient: ActorId,
    policy_version: closer_contracts::refs::VersionedRef,
) -> DisclosureIncident {
    DisclosureIncident {
        incident_id: incident_id(),
        released_item_refs: vec![item],
        recipient_refs: vec![recipient],
        containment_attempts: Vec::new(),
        notification_attempts: Vec::new(),
        dependent_artifacts: Vec::new(),
        acknowledgments: Vec::new(),
        unknown_copies: Vec::new(),
        incident_owner: "user".into(),
        policy_version,
    }
}

/// `incident.notified`: its items are withdrawn and its recipients told.
pub(super) fn notify(cast: &mut Cast) -> Done {
    let now = cast.space.moment().now;
    let step = incident::notify(cast.space.view(), &*case(cast)?, &now)?;
    cast.space.step(user(), step).map(drop)
}

/// `incident.answered acknowledged by=worker`: a recipient answers.
pub(super) fn answer(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let word = words.next()?;
    let answer = words.one_of(word, Answer::ALL, Answer::as_str)?;
    let recipient = ActorId::from(words.named("by").unwrap_or("worker"));
    let who = ActorRef { actor_id: recipient.clone(), role: ProducerRole::Participant };
    Ok(take(cast, who, Step::Answered { recipient, answer, reason: "As asked.".into() }))
}

/// `incident.reconciled`: whoever gave no answer is an unknown copy.
pub(super) fn reconcile(cast: &mut Cast) -> Done {
    let unknown_copies = case(cast)?.silent().cloned().collect();
    take(cast, user(), Step::Reconciled { unknown_copies, justification: "Everybody was asked.".into() })
}

fn take(cast: &mut Cast, who: ActorRef, content: Step) -> Done {
    let step_id = cast.space.fresh("step").as_str().into();
    cast.space.step(who, IncidentStep { step_id, incident_id: incident_id(), content }).map(drop)
}
