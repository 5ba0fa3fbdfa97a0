//! Somebody asks for a part of the record: for themselves, or the user for somebody else. What goes out is projected for
//! the purpose stated, under a receipt; a read before release is refused and stays on record. Spec: §4.3, §6.5, C1, C14.

use super::{Asked, Candidates, Projection, coverage, released, rules, work_purpose};
use crate::incident;
use crate::input::{Reply, Submission};
use crate::intake;
use crate::sequence::Deciding;
use crate::streams;
use crate::view::View;
use closer_contracts::audit::DisclosureReceipt;
use closer_contracts::auth::{SigningScope, Subject};
use closer_contracts::branch;
use closer_contracts::canonical;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ArtifactId, CategoryId, Id, Key, PayloadId, PurposeId};
use closer_contracts::refs::ActorRef;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::work::ContextItem;
use serde::{Deserialize, Serialize};

/// A request for what policy releases to a recipient for a purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Its id, from which the receipt's is made.
    pub request_id: ArtifactId,
    /// For whom.
    pub recipient: ActorId,
    /// For what. Without a purpose nothing is released.
    pub purpose: Option<PurposeId>,
    /// Exactly these items; none for everything that the purpose releases.
    pub items: Vec<ArtifactId>,
}

impl Request {
    /// The request as something to be authenticated.
    ///
    /// # Errors
    /// `schema_invalid` when it has no canonical form.
    pub fn subject(&self, producer: &ActorRef) -> Result<Subject, Fault> {
        Ok(Subject {
            id: Id::new(self.request_id.as_str()),
            content_digest: canonical::digest_of(self)?,
            scope: SigningScope::DisclosureReceipt,
            producer: producer.actor_id.clone(),
            role: Some(producer.role),
        })
    }
}

/// Answers a request with the receipt of what is released, or refuses it. The packet itself is made by [`materialize`].
pub(crate) fn answer(deciding: &mut Deciding<'_>, submission: &Submission<Request>) -> Result<Reply, Fault> {
    let (view, request) = (deciding.view, &*submission.content);
    let digest = canonical::digest_of(request)?;
    let subject = Id::new(request.request_id.as_str());
    let authentic = intake::producer(view, &submission.producer, &submission.auth, deciding.at)
        .and_then(|()| intake::proof_of(&submission.auth, request.request_id.as_str(), digest));
    if let Err(denial) = authentic {
        return deciding.refuse(subject, Some(digest), vec![denial]);
    }
    let candidates = Candidates::of_record(view)?;
    let denials = objections(view, &submission.producer.actor_id, request, &candidates);
    let Some(purpose) = request.purpose.as_ref().filter(|_| denials.is_empty()) else {
        return deciding.refuse(subject, Some(digest), denials);
    };
    let chosen = match request.items.is_empty() {
        true => candidates,
        false => candidates.only(view, &request.items)?,
    };
    let required = request.items.iter().map(|item| Id::new(item.as_str())).collect();
    let asked = Asked { recipient: &request.recipient, purpose, required, all: answers_for(view, request) };
    let uses = match view.state.is_user(&request.recipient) {
        true => vec![Key::from("own record")],
        false => rules(view, &request.recipient, purpose).flat_map(|rule| rule.permitted_use.iter().cloned()).collect(),
    };
    let projection = Projection::of(view, &asked, &chosen);
    let (_, receipt) = projection.release(view, &asked, request.request_id.as_str(), uses, &deciding.at.now)?;
    let reference = deciding.batch.artifact(receipt, vec![streams::disclosures(&request.recipient)])?;
    deciding.batch.auth(submission.auth.record())?;
    Ok(Reply::Recorded(vec![reference]))
}

/// What a receipt on record released, as it stands now: an item that has changed since is not in it any more.
///
/// # Errors
/// `schema_invalid` when something on record has no canonical form.
pub fn materialize(view: &View, receipt: &DisclosureReceipt) -> Result<Vec<ContextItem>, Fault> {
    let ids: Vec<ArtifactId> = receipt.materialized_item_refs.iter().map(|item| item.id.clone()).collect();
    let candidates = Candidates::of_record(view)?;
    let evaluated = |candidates: &Candidates| candidates.by_category().map(|(category, _)| category.clone()).collect();
    let chosen = candidates.only(view, &ids)?;
    let mut items: Vec<ContextItem> = chosen.by_category().flat_map(|(_, items)| items.iter().cloned()).collect();
    items.push(coverage(receipt, evaluated(&candidates))?);
    items.push(coverage(receipt, evaluated(&chosen))?);
    items.retain(|item| receipt.materialized_item_refs.contains(&item.reference));
    items.dedup();
    Ok(items)
}

/// Whether the recipient may have all that is asked for: the user its own record, and an owner the incident it answers for.
fn answers_for(view: &View, request: &Request) -> bool {
    let owned = |item: &ArtifactId| {
        view.incidents
            .get(&closer_contracts::id::IncidentId::new(item.as_str()))
            .is_some_and(|case| case.opened.incident_owner == request.recipient)
    };
    let owner = !request.items.is_empty() && request.items.iter().all(owned);
    view.state.is_user(&request.recipient) || branch!("disclose.incident_owner_reads", owner)
}

fn objections(view: &View, who: &ActorId, request: &Request, candidates: &Candidates) -> Vec<Denial> {
    let mut denials = Vec::new();
    if branch!("disclose.asked_for_another", *who != request.recipient && !view.state.is_user(who)) {
        let reason = "nobody but the user has anything released to somebody else";
        denials.push(Denial::new(Code::RedistributionDenied, CheckKind::Authority, reason).of(&request.recipient));
    }
    if branch!("disclose.purpose_unstated", request.purpose.is_none()) {
        let reason = "without a purpose nothing is released";
        denials.push(Denial::new(Code::DisclosureDenied, CheckKind::Authority, reason).of("purpose"));
    }
    let free = request.purpose.as_ref().map_or_else(Vec::new, |purpose| released(view, &request.recipient, purpose));
    let all = answers_for(view, request);
    let for_work = request.items.is_empty() && request.purpose.as_ref() == Some(&work_purpose());
    if branch!("disclose.record_asked_for_work", for_work && !all) {
        let reason = "what is released for work goes out in packets, for the work that it bears on";
        denials.push(Denial::new(Code::DisclosureDenied, CheckKind::Authority, reason).of("work"));
    }
    denials.extend(request.items.iter().filter_map(|item| unreleased(view, request, item, candidates, &free, all)));
    denials
}

/// Why one item does not go out.
fn unreleased(
    view: &View,
    request: &Request,
    item: &ArtifactId,
    candidates: &Candidates,
    free: &[CategoryId],
    all: bool,
) -> Option<Denial> {
    let deny = |code, reason: &str| Some(Denial::new(code, CheckKind::Authority, reason).of(item));
    let payload_id = PayloadId::new(item.as_str());
    let stopped = "an incident has stopped the release of this item";
    if let Some(packet) = view.works.values().find(|work| *work.payload.id() == payload_id) {
        let own = view.issued_to.get(&packet.body.work_id) == Some(&request.recipient);
        let withdrawn = !all && incident::suspended(view, &packet.payload).is_some();
        return match own || all {
            true if branch!("disclose.access_revoked", withdrawn) => deny(Code::ReleaseStopped, stopped),
            true => None,
            false => deny(Code::RedistributionDenied, "a packet is its recipient's and nobody else's"),
        };
    }
    if let Some(position) = view.results.get(&payload_id) {
        let own = position.payload.envelope().producer.actor_id == request.recipient;
        return match branch!("disclose.read_before_release", !own && !all) {
            true => deny(
                Code::NotReleased,
                "another participant's position is read in its conference, and not before its release",
            ),
            false => None,
        };
    }
    if branch!("disclose.stopped_item_asked_for", !all && incident::stopped(view, item).is_some()) {
        return deny(Code::ReleaseStopped, stopped);
    }
    let category = candidates.category_of_id(item);
    // What is released for work goes out in packets alone, each item for the work that it bears on.
    let aimed = request.purpose.as_ref() != Some(&work_purpose());
    let may = category.is_some_and(|category| all || (aimed && free.contains(category)));
    match branch!("disclose.item_not_released", !may) {
        true => deny(Code::DisclosureDenied, "no rule releases this item to this recipient for this purpose"),
        false => None,
    }
}
