//! The packet of a unit of work, judged before it goes out: every item against policy as it stands now, and whether its
//! receipt tells the truth about the rest. The coordinator that drafted it is trusted for nothing. Spec: §4.3, C1, C5.

use super::{Asked, Candidates, Projection, candidates, coverage, permits, reference, released, work_purpose};
use crate::batch::Batch;
use crate::incident;
use crate::streams;
use crate::view::View;
use closer_contracts::audit::DisclosureReceipt;
use closer_contracts::branch;
use closer_contracts::envelope::Envelope;
use closer_contracts::fault::Fault;
use closer_contracts::id::{CategoryId, GrantId, Id, Key, PayloadId};
use closer_contracts::item::Standing;
use closer_contracts::obligation::Obligation;
use closer_contracts::refs::{ArtifactRef, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::work::{ContextItem, Work};

/// What the work of a role needs: its obligation, and for a regulator every authority boundary that applies (§4.3).
pub(crate) fn required(view: &View, obligation: &Obligation, role: &Key) -> Vec<Id> {
    let mut required = vec![Id::from(&obligation.obligation_id)];
    if branch!("disclose.regulator_needs_boundaries", role.as_str() == "regulator") {
        let constrains = |id: &Id| view.state.constraints_in_force().any(|bound| Id::from(&bound.constraint_id) == *id);
        let applies = |id: &&Id| view.state.grant(&GrantId::new(id.as_str())).is_some() || constrains(id);
        required.extend(obligation.authority_boundary.iter().filter(applies).cloned());
    }
    required
}

/// Everything that speaks against sending this packet under this receipt.
pub(crate) fn objections(
    view: &View,
    batch: &Batch<'_>,
    envelope: &Envelope,
    work: &Work,
    receipt: &DisclosureReceipt,
) -> Result<Vec<Denial>, Fault> {
    let concerned = envelope.episode_id.as_ref().and_then(|id| view.episodes.get(id));
    let concerned = concerned.and_then(|episode| Some((episode, view.state.obligation(&episode.obligation_id)?)));
    let Some((episode, obligation)) =
        concerned.filter(|(episode, _)| envelope.obligation_ids.contains(&episode.obligation_id))
    else {
        return Ok(vec![Fault::schema("work names its obligation and episode").within("obligation_ids").into()]);
    };
    let mut denials = Vec::new();
    cited(view, envelope, receipt, &mut denials)?;
    recipient(view, receipt, &mut denials);
    let round = view.conferences.of_coalition(&work.coalition_ref).map(|round| &**round);
    let candidates = Candidates::for_work(view, episode, obligation, round, &work.role)?;
    let judged = Judged { view, obligation, receipt, candidates };
    judged.items(work, &mut denials);
    judged.limits(batch, work, &mut denials)?;
    Ok(denials)
}

/// The receipt is this packet's own: one that released something before is no right to release it again.
fn cited(
    view: &View,
    envelope: &Envelope,
    receipt: &DisclosureReceipt,
    denials: &mut Vec<Denial>,
) -> Result<(), Fault> {
    let own = reference(receipt)?;
    let known = view.disclosure(envelope.disclosure.id.as_str()).is_some_and(|known| *known == envelope.disclosure);
    if branch!("disclose.receipt_used_before", known) {
        let reason = "the receipt has released its packet; holding it gives no right to pass the contents on";
        denials.push(Denial::new(Code::RedistributionDenied, CheckKind::Authority, reason).of(&envelope.disclosure.id));
    }
    if branch!("disclose.other_receipt_cited", envelope.disclosure != own) {
        let reason = "the work does not cite the receipt that comes with it";
        denials.push(Denial::new(Code::CoverageMissing, CheckKind::Resolution, reason).of(&envelope.disclosure.id));
    }
    Ok(())
}

/// Purpose, recipient and use are such as policy knows.
fn recipient(view: &View, receipt: &DisclosureReceipt, denials: &mut Vec<Denial>) {
    let mut deny = |offending: &dyn std::fmt::Display, reason: &str| {
        denials.push(Denial::new(Code::DisclosureDenied, CheckKind::Authority, reason).of(offending));
    };
    if branch!("disclose.not_for_work", receipt.purpose != work_purpose()) {
        deny(&receipt.purpose, "a packet is released for work and for nothing else");
    }
    let current = view.state.identity(&receipt.recipient).is_some_and(|identity| {
        identity.standing == Standing::Current && identity.roles.contains(&ProducerRole::Participant)
    });
    if branch!("disclose.recipient_not_current", !current) {
        deny(&receipt.recipient, "the recipient is not a current participant");
    }
    for usage in &receipt.permitted_use {
        if branch!("disclose.use_beyond_policy", !permits(view, &receipt.recipient, &receipt.purpose, usage)) {
            deny(usage, "no rule permits the recipient this use");
        }
    }
}

struct Judged<'a> {
    view: &'a View,
    obligation: &'a Obligation,
    receipt: &'a DisclosureReceipt,
    candidates: Candidates,
}

impl Judged<'_> {
    /// Every item is one of the record that bears on the work, of a category that is released to this recipient.
    fn items(&self, work: &Work, denials: &mut Vec<Denial>) {
        let released = released(self.view, &self.receipt.recipient, &self.receipt.purpose);
        let evidence = CategoryId::from("evidence");
        for ContextItem { reference, .. } in self.beside_the_limits(work) {
            if !branch!("disclose.item_not_covered", self.receipt.materialized_item_refs.contains(reference)) {
                let reason = "the packet holds an item that its receipt does not release";
                denials.push(Denial::new(Code::DisclosureDenied, CheckKind::Authority, reason).of(&reference.id));
            }
            if branch!("disclose.position_not_released", self.is_peer_position(reference)) {
                let reason = "another participant's position is sealed until its release";
                denials.push(Denial::new(Code::NotReleased, CheckKind::Authority, reason).of(&reference.id));
                continue;
            }
            let stopped = incident::stopped(self.view, &reference.id);
            if branch!("disclose.release_stopped", stopped.is_some()) {
                let reason = "an incident has stopped the release of this item";
                denials.push(Denial::new(Code::ReleaseStopped, CheckKind::Authority, reason).of(&reference.id));
            }
            let before = || candidates::observed_before(self.view, self.obligation, reference).then_some(&evidence);
            let category = self.candidates.category_of(reference).or_else(before);
            if branch!("disclose.item_outside_purpose", category.is_none()) {
                let reason = "the item is none of the record that bears on this work";
                denials.push(Denial::new(Code::DisclosureDenied, CheckKind::Authority, reason).of(&reference.id));
            }
            if let Some(category) = category
                && branch!("disclose.category_withheld", !released.contains(category))
            {
                let reason = format!("no rule releases `{category}` to this recipient for this purpose");
                denials.push(Denial::new(Code::DisclosureDenied, CheckKind::Authority, reason).of(&reference.id));
            }
        }
    }

    fn beside_the_limits<'a>(&self, work: &'a Work) -> impl Iterator<Item = &'a ContextItem> {
        let limits = self.receipt.coverage_receipt_ref.clone();
        work.context_items.iter().filter(move |item| item.reference.id != limits)
    }

    /// Whether this is what somebody else answered, and no conference has released it.
    fn is_peer_position(&self, reference: &ArtifactRef) -> bool {
        let Some(answered) = self.view.results.get(&PayloadId::new(reference.id.as_str())) else {
            return false;
        };
        let round = self.view.conferences.of_work(&answered.body.work_id);
        let is_released = round.is_some_and(|(round, _)| round.release.is_some());
        answered.payload.envelope().producer.actor_id != self.receipt.recipient && !is_released
    }

    /// The receipt and the recipient are told what was withheld and what is missing, and nothing required is.
    fn limits(&self, batch: &Batch<'_>, work: &Work, denials: &mut Vec<Denial>) -> Result<(), Fault> {
        let receipt = self.receipt;
        let mut gap = |offending: &dyn std::fmt::Display, reason: &str| {
            denials.push(Denial::new(Code::CoverageMissing, CheckKind::Resolution, reason).of(offending));
        };
        let asked = Asked {
            recipient: &receipt.recipient,
            purpose: &receipt.purpose,
            required: required(self.view, self.obligation, &work.role),
            all: false,
        };
        let projection = Projection::of(self.view, &asked, &self.candidates);
        // A packet drafted before an incident is refused for the item that was stopped, not for what it could not tell.
        let was_stopped = |category: &CategoryId| {
            self.beside_the_limits(work).any(|item| {
                self.candidates.category_of(&item.reference) == Some(category)
                    && incident::stopped(self.view, &item.reference.id).is_some()
            })
        };
        let untold = |category: &&CategoryId| !receipt.withheld_categories.contains(category) && !was_stopped(category);
        for category in projection.withheld.iter().filter(untold) {
            if branch!("disclose.withholding_untold", true) {
                gap(category, "the receipt does not say that this category is withheld");
            }
        }
        let lacks = |id: &&Id| !work.context_items.iter().any(|item| item.reference.id.as_str() == id.as_str());
        for id in asked.required.iter().filter(lacks) {
            if branch!("disclose.required_context_missing", true) {
                gap(id, "context that the work requires is not in the packet");
            }
        }
        let told = coverage(receipt, projection.evaluated)?;
        if branch!("disclose.limits_untold", !work.context_items.contains(&told)) {
            gap(&receipt.coverage_receipt_ref, "the recipient is not told the limits of its view");
        }
        let listed = &receipt.materialized_item_refs;
        let held = |reference: &&ArtifactRef| !work.context_items.iter().any(|item| item.reference == **reference);
        for reference in listed.iter().filter(held) {
            if branch!("disclose.receipt_lists_more", true) {
                gap(&reference.id, "the receipt lists an item that the packet does not hold");
            }
        }
        let basis = batch.claimed(&streams::state_claim(receipt.policy_basis.version));
        if branch!("disclose.basis_not_accepted", basis != Some(receipt.policy_basis.digest)) {
            gap(&receipt.policy_basis.version, "the receipt names a state that was never accepted");
        }
        Ok(())
    }
}
