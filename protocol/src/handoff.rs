//! Handing a responsibility over: offered, consented to, transferred in one append, verified afterwards from its receipt.
//! Spec: §8.2, C12, DEC-51 to DEC-53, DEC-113.
//!
//! An offer binds the epoch that its recipient will hold, one above the current one; so of several offers one is taken up,
//! and what was offered under an older epoch is fenced off. Nothing is transferred before the recipient's own consent to
//! exactly this offer. The acceptance condition is no part of the transfer: it is looked at once the receipt is there.
//! A transfer touches no grant: whoever accepts acts under the authority there was before.

mod table;

pub use table::Handoffs;

use crate::entry::{ActivationEntry, ArtifactBody, Cause, Entry, Fired, Notice, NoticeKind, OwnershipEntry};
use crate::input::{Effect, Moment, Reply, Submission};
use crate::sequence::{Deciding, record_payload};
use crate::view::{OnRecord, View};
use crate::{intake, predicate, services, streams, urgent};
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::handoff::{AcceptanceReceipt, Handoff, HandoffConsent, Owed, ResponsibilityContract};
use closer_contracts::id::{ArtifactId, HandoffId, Id, Key, ObligationId, PayloadId, ReceiptId, Text};
use closer_contracts::item::{Identity, Standing};
use closer_contracts::reentry::{Evaluation, HandoffAccepted, TypedPredicate};
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_contracts::{Fault, Payload};
use std::sync::Arc;

/// Records a responsibility contract, which a user or whoever coordinates writes down. It obliges nobody yet.
pub(crate) fn contract(deciding: &mut Deciding<'_>, submission: &Submission<ArtifactBody>) -> Result<Reply, Fault> {
    let who = &submission.producer;
    let may = matches!(who.role, ProducerRole::User | ProducerRole::Coordinator);
    if branch!("handoff.contract_of_another_role", !may) {
        let reason = "what a responsibility takes is written down by the user or a coordinator";
        let denial = Denial::new(Code::MissingAuthority, CheckKind::Authority, reason).of(&who.actor_id);
        return deciding.refuse(Id::new(submission.content.id().as_str()), None, vec![denial]);
    }
    let reference = deciding.batch.artifact((*submission.content).clone(), Vec::new())?;
    deciding.batch.auth(submission.auth.record())?;
    Ok(Reply::Recorded(vec![reference]))
}

/// Records an offer. The responsibility stays where it is.
pub(crate) fn offer(
    deciding: &mut Deciding<'_>,
    handoff: &Handoff,
    payload: &Arc<Payload>,
    auth: &AuthRecord,
) -> Result<Reply, Fault> {
    let mut denials = objections(deciding.view, handoff, deciding.at);
    if !payload.envelope().obligation_ids.contains(&handoff.obligation_id) {
        denials.push(Fault::schema("a handoff belongs to the obligation it hands over").into());
    }
    let producer = &payload.envelope().producer.actor_id;
    let own = *producer == handoff.sender.actor_id || *producer == services::actor(ProducerRole::Coordinator);
    if branch!("handoff.offered_for_another", !own) {
        let reason = "a responsibility is offered by its sender, or by the coordinator for it";
        denials.push(Denial::new(Code::MissingAuthority, CheckKind::Authority, reason).of(producer));
    }
    if !denials.is_empty() {
        return deciding.refuse((&handoff.handoff_id).into(), Some(payload.content_digest()), denials);
    }
    let claim = (streams::handoff_claim(&handoff.handoff_id), payload.content_digest());
    let reference = record_payload(deciding, payload, auth, Vec::new(), vec![claim])?;
    Ok(Reply::Recorded(vec![reference]))
}

/// The recipient consents: checked against what holds now, and transferred in the same append.
pub(crate) fn consent(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    consent: &HandoffConsent,
) -> Result<Reply, Fault> {
    let subject = Id::new(consent.handoff_ref.as_str());
    let digest = Some(submission.content.digest()?);
    let Some(offered) = deciding.view.handoffs.offered(&consent.handoff_ref).cloned() else {
        let reason = "no such handoff was offered";
        let denial = Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&consent.handoff_ref);
        return deciding.refuse(subject, digest, vec![denial]);
    };
    let handoff = &*offered.body;
    let mut denials = objections(deciding.view, handoff, deciding.at);
    if branch!("handoff.consent_not_exact", !consents(&submission.producer, consent, handoff)) {
        let reason = "the recipient itself consents, to exactly this handoff, contract and epoch";
        denials.push(Denial::new(Code::ConsentMissing, CheckKind::Authority, reason).of(&submission.producer.actor_id));
    }
    match denials.is_empty() {
        true => transfer(deciding, submission, &offered),
        false => deciding.refuse(subject, digest, denials),
    }
}

fn consents(producer: &ActorRef, consent: &HandoffConsent, handoff: &Handoff) -> bool {
    *producer == handoff.recipient
        && consent.recipient_ref == handoff.recipient.actor_id
        && consent.contract_digest == handoff.contract_ref.digest
        && consent.ownership_epoch == handoff.ownership_epoch
}

/// Consent, receipt and the new epoch land together or not at all; what is guarded by the owner's stream is fenced by it.
fn transfer(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    offered: &OnRecord<Handoff>,
) -> Result<Reply, Fault> {
    let handoff = &*offered.body;
    let (obligation_id, epoch) = (&handoff.obligation_id, handoff.ownership_epoch);
    let consented = deciding.batch.artifact((*submission.content).clone(), vec![streams::history(obligation_id)])?;
    deciding.batch.auth(submission.auth.record())?;
    let receipt = AcceptanceReceipt {
        receipt_id: ReceiptId::new(crate::derived_id("accepted", handoff.handoff_id.as_str())),
        handoff_ref: handoff.handoff_id.clone(),
        recipient_ref: handoff.recipient.actor_id.clone(),
        contract_digest: handoff.contract_ref.digest,
        ownership_epoch: epoch,
        accepted_at: deciding.at.now.clone(),
    };
    let streams = vec![streams::owner(obligation_id), streams::history(obligation_id)];
    let accepted = deciding.batch.artifact(receipt, streams)?;
    let entry = OwnershipEntry {
        obligation_id: obligation_id.clone(),
        epoch,
        owner: handoff.recipient.actor_id.clone(),
        lease_expiry: handoff.lease_expiry.clone(),
        reason: intake::bounded(&format!("the handoff {} was accepted", handoff.handoff_id)),
    };
    let id = crate::derived_id(&format!("transfer.{epoch}"), obligation_id.as_str());
    deciding.batch.push(&id, Entry::Ownership(entry), vec![streams::owner(obligation_id)], Vec::new())?;
    verify(deciding, handoff)?;
    resume(deciding, handoff, &accepted)?;
    deciding.fire()?;
    Ok(Reply::Recorded(vec![consented, accepted]))
}

/// Work that was under way or due goes on with the new owner, under the new epoch.
fn resume(deciding: &mut Deciding<'_>, handoff: &Handoff, accepted: &ArtifactRef) -> Result<(), Fault> {
    let (view, obligation_id) = (deciding.view, &handoff.obligation_id);
    let due = view.under_way.contains_key(obligation_id) || view.eligible.contains_key(obligation_id);
    if !branch!("handoff.work_was_due", due) {
        return Ok(());
    }
    let cause = Cause {
        event_id: None,
        match_receipt: Some(accepted.clone()),
        reentry_id: None,
        activation_key: None,
        reason: intake::bounded(&format!("{} took the responsibility over", handoff.recipient.actor_id)),
    };
    let fired = Fired { obligation_id: obligation_id.clone(), cause };
    let id = crate::derived_id(&format!("resumed.{}", handoff.ownership_epoch), obligation_id.as_str());
    let streams = vec![streams::history(obligation_id)];
    deciding.batch.push(&id, Entry::Activation(ActivationEntry::Fired(fired)), streams, Vec::new())?;
    deciding.effects.push(Effect::Eligible(obligation_id.clone()));
    Ok(())
}

/// Looks at the acceptance condition once the receipt is there, and says once that it holds; until then at every tick.
pub(crate) fn verify(deciding: &mut Deciding<'_>, handoff: &Handoff) -> Result<(), Fault> {
    let view = deciding.so_far()?;
    let holds = predicate::evaluate(&handoff.acceptance_condition, &view, deciding.at) == Evaluation::Satisfied;
    if !branch!("handoff.acceptance_holds", holds) {
        return Ok(());
    }
    let notice = Notice {
        kind: NoticeKind::AcceptanceVerified,
        key: verified_key(&handoff.handoff_id),
        owner: Some(handoff.sender.actor_id.clone()),
        subjects: vec![Key::new(handoff.handoff_id.as_str()), Key::new(handoff.obligation_id.as_str())],
        text: intake::bounded(&format!("{} answers for it from now on", handoff.recipient.actor_id)),
    };
    urgent::record_notice(deciding, notice)
}

/// The key of the notice that a handoff's acceptance condition holds.
#[must_use]
pub fn verified_key(handoff_id: &HandoffId) -> Key {
    Key::new(crate::derived_id("acceptance_verified", handoff_id.as_str()))
}

/// The accepted handoffs whose acceptance condition has not been seen to hold.
pub fn unverified(view: &View) -> impl Iterator<Item = &Arc<Handoff>> {
    view.handoffs.accepted().filter(|handoff| !view.notices.contains_key(&verified_key(&handoff.handoff_id)))
}

/// Everything that stands in the way of a handoff now, apart from the recipient's consent.
#[must_use]
pub fn objections(view: &View, handoff: &Handoff, at: &Moment) -> Vec<Denial> {
    let mut denials = Vec::new();
    standing(view, handoff, at, &mut denials);
    if let Some(contract) = resolved(view, &handoff.contract_ref, &mut denials) {
        fitness(view, handoff, &contract, &mut denials);
    }
    resolved(view, &handoff.return_contract_ref, &mut denials);
    for cited in &handoff.context_refs {
        if branch!("handoff.context_not_on_record", !is_on_record(view, cited)) {
            let reason = "the context that is handed over is on record under this digest";
            denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&cited.id));
        }
    }
    for missing in owed(view, handoff) {
        let reason = "the return contract asks for this when the responsibility is given back";
        denials.push(Denial::new(Code::ContractIncompatible, CheckKind::Authority, reason).of(&missing.id));
    }
    denials
}

/// Who hands over, under which epoch, and for how long.
fn standing(view: &View, handoff: &Handoff, at: &Moment, denials: &mut Vec<Denial>) {
    let obligation_id = &handoff.obligation_id;
    let open = view.state.obligation(obligation_id).is_some_and(|obligation| obligation.status.is_open());
    let Some(held) = view.ownership(obligation_id).filter(|_| branch!("handoff.obligation_open", open)) else {
        let reason = "the obligation is not accepted and open";
        denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(obligation_id));
        return;
    };
    if branch!("handoff.epoch_not_next", held.epoch.checked_add(1) != Some(handoff.ownership_epoch)) {
        let reason = format!("the current ownership epoch is {}, and a handoff names the one after it", held.epoch);
        denials.push(Denial::new(Code::StaleEpoch, CheckKind::Authority, reason).of(obligation_id));
    } else if branch!("handoff.sender_not_owner", held.owner != handoff.sender.actor_id) {
        let reason = format!("{} answers for the obligation, and nobody else hands it over", held.owner);
        denials.push(Denial::new(Code::MissingAuthority, CheckKind::Authority, reason).of(&handoff.sender.actor_id));
    }
    let over = handoff.lease_expiry.as_ref().is_some_and(|expiry| *expiry <= at.now);
    if branch!("handoff.lease_over", over) {
        let reason = "the lease that is offered has ended";
        denials.push(Denial::new(Code::LeaseExpired, CheckKind::Authority, reason).of(&handoff.handoff_id));
    }
}

/// The contract that a reference names, where it is on record with this digest.
fn resolved(view: &View, reference: &ArtifactRef, denials: &mut Vec<Denial>) -> Option<Arc<ResponsibilityContract>> {
    let contract = view.handoffs.contract(reference);
    if branch!("handoff.contract_not_on_record", contract.is_none()) {
        let reason = "no responsibility contract with this digest is on record";
        denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&reference.id));
    }
    contract.cloned()
}

/// Whether the recipient can meet the contract, and whether the context that it asks for is handed over.
fn fitness(view: &View, handoff: &Handoff, contract: &ResponsibilityContract, denials: &mut Vec<Denial>) {
    let current = |identity: &&Identity| {
        identity.standing == Standing::Current && identity.roles.contains(&handoff.recipient.role)
    };
    let recipient = view.state.identity(&handoff.recipient.actor_id).filter(current);
    let able = |identity: &Identity| contract.capabilities.iter().all(|needed| identity.capabilities.contains(needed));
    if branch!("handoff.recipient_unfit", !recipient.is_some_and(able)) {
        let reason = "the recipient is not registered for what the contract takes";
        let denial = Denial::new(Code::ContractIncompatible, CheckKind::Authority, reason);
        denials.push(denial.of(&handoff.recipient.actor_id));
    }
    let covered = |id: &ArtifactId| handoff.context_refs.iter().any(|cited| cited.id == *id);
    for id in &contract.context {
        if branch!("handoff.context_uncovered", !covered(id)) {
            let reason = "the contract asks for this context, and the handoff does not cite it";
            denials.push(Denial::new(Code::CoverageMissing, CheckKind::Support, reason).of(id));
        }
    }
}

/// The reference under which a payload, evidence, attempt or contract on record is cited as context.
#[must_use]
pub fn citable(view: &View, id: &ArtifactId) -> Option<ArtifactRef> {
    let evidence = view.evidence.get(&closer_contracts::id::EvidenceId::new(id.as_str())).map(OnRecord::reference);
    let result = view.results.get(&PayloadId::new(id.as_str())).map(OnRecord::reference);
    let attempt = view.attempts.values().find(|attempt| attempt.intent_ref.id == *id);
    let contract = view.handoffs.contracts().map(|(known, _)| known).find(|known| known.id == *id);
    evidence.or(result).or_else(|| attempt.map(|attempt| attempt.intent_ref.clone())).or_else(|| contract.cloned())
}

fn is_on_record(view: &View, cited: &ArtifactRef) -> bool {
    view.chain.holds(cited)
        || view.attempts.values().any(|attempt| attempt.intent_ref == *cited)
        || view.handoffs.contract(cited).is_some()
}

/// What the handoff that the obligation is held under asks for when it is given back, and this one does not cite.
fn owed(view: &View, handoff: &Handoff) -> Vec<ArtifactRef> {
    let Some((taken, since)) = view.handoffs.last_accepted(&handoff.obligation_id) else {
        return Vec::new();
    };
    let back = handoff.recipient.actor_id == taken.sender.actor_id;
    let terms = view.handoffs.contract(&taken.return_contract_ref);
    let Some(terms) = terms.filter(|_| branch!("handoff.given_back", back)) else {
        return Vec::new();
    };
    let mut owed = Vec::new();
    for kind in &terms.owed_on_return {
        match kind {
            Owed::Results => owed.extend(
                view.results
                    .values()
                    .filter(|result| is_since(result, &handoff.obligation_id, since))
                    .map(OnRecord::reference),
            ),
            Owed::Evidence => owed.extend(
                view.evidence
                    .values()
                    .filter(|item| is_since(item, &handoff.obligation_id, since))
                    .map(OnRecord::reference),
            ),
            Owed::UnsettledAttempts => {
                let unsettled = view.unsettled.values().filter_map(|id| view.attempts.get(id));
                let own = unsettled.filter(|attempt| attempt.intent.obligation_id == handoff.obligation_id);
                owed.extend(own.map(|attempt| attempt.intent_ref.clone()));
            }
        }
    }
    owed.retain(|owed| !handoff.context_refs.contains(owed));
    owed
}

fn is_since<T>(on_record: &OnRecord<T>, obligation_id: &ObligationId, since: &Timestamp) -> bool {
    on_record.payload.envelope().obligation_ids.contains(obligation_id) && on_record.admitted_at >= *since
}

/// What a sender wants to hand over, to whom, and on which terms.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The handoff's fresh id.
    pub handoff_id: HandoffId,
    /// What is handed over.
    pub obligation_id: ObligationId,
    /// In words.
    pub responsibility: Text,
    /// Who hands it over.
    pub sender: ActorRef,
    /// Who is asked to take it.
    pub recipient: ActorRef,
    /// The contract.
    pub contract_ref: ArtifactRef,
    /// The context.
    pub context_refs: Vec<ArtifactRef>,
    /// Until when; `None` for no limit.
    pub lease_expiry: Option<Timestamp>,
    /// What is owed when it is given back.
    pub return_contract_ref: ArtifactRef,
}

/// Drafts the HANDOFF of these terms under the next epoch, accepted once the ownership service's own receipt says so.
///
/// # Errors
/// `unresolved_ref`; the codes of the contract.
pub fn draft(view: &View, terms: Terms, now: &Timestamp) -> Result<Payload, Fault> {
    let held = view.ownership(&terms.obligation_id).ok_or_else(|| {
        Fault::new(Code::UnresolvedRef, "no such obligation is accepted").within(&terms.obligation_id)
    })?;
    let ownership_epoch = held.epoch.saturating_add(1);
    let accepted = HandoffAccepted {
        handoff_ref: terms.handoff_id.clone(),
        recipient_ref: terms.recipient.actor_id.clone(),
        contract_digest: terms.contract_ref.digest,
        ownership_epoch,
    };
    let lineage = services::Lineage {
        parents: Vec::new(),
        obligation_ids: vec![terms.obligation_id.clone()],
        episode_id: None,
        causation_event_id: None,
        budget_ref: None,
    };
    let handoff = Handoff {
        handoff_id: terms.handoff_id,
        obligation_id: terms.obligation_id,
        responsibility: terms.responsibility,
        sender: terms.sender,
        recipient: terms.recipient,
        contract_ref: terms.contract_ref,
        context_refs: terms.context_refs,
        ownership_epoch,
        lease_expiry: terms.lease_expiry,
        acceptance_condition: TypedPredicate::HandoffAccepted(accepted),
        return_contract_ref: terms.return_contract_ref,
        extensions: None,
    };
    let id = PayloadId::new(crate::derived_id("pl", handoff.handoff_id.as_str()));
    let coordinator = services::actor_ref(ProducerRole::Coordinator);
    services::write(view, id, coordinator, lineage, services::internal_disclosure(view)?, handoff, now)
}
