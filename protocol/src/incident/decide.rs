//! Which step comes next, who may take it, and whether it is true.

use super::{Answer, Case, Erasure, IncidentState, IncidentStep, NOTICE, ScopedNotice, Step, lineage, notice_use};
use crate::disclose;
use crate::dispatch::profile_ref;
use crate::entry::{ArtifactBody, Entry, Notice, NoticeKind};
use crate::input::{Reply, Submission};
use crate::sequence::Deciding;
use crate::streams;
use crate::urgent::record_notice;
use crate::view::View;
use closer_contracts::audit::{DisclosureIncident, DisclosureReceipt, IncidentAttempt};
use closer_contracts::branch;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ArtifactId, CapabilityId, DisclosureId, Id, IncidentId, Key, PurposeId};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;

/// The capability of a recipient that can delete or quarantine what it was given.
pub const ERASE: &str = "disclosure.erase";

/// Opens a case and stops its items, in one append: nothing is released between the report and the stop.
pub(crate) fn open(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    incident: &DisclosureIncident,
) -> Result<Reply, Fault> {
    let denials = unfounded(deciding.view, incident);
    if !denials.is_empty() {
        return deciding.refuse((&incident.incident_id).into(), Some(submission.content.digest()?), denials);
    }
    let reference = deciding.batch.artifact(incident.clone(), vec![stream(&incident.incident_id)])?;
    deciding.batch.auth(submission.auth.record())?;
    let case = Case::open(std::sync::Arc::new(incident.clone()), reference.clone());
    let contained = contain(deciding.view, &case, &deciding.at.now);
    let contained = deciding.batch.artifact(contained, vec![stream(&incident.incident_id)])?;
    let text = "something was released that should not have been: its release has stopped; tell the recipients";
    record_notice(
        deciding,
        Notice {
            kind: NoticeKind::DisclosureIncident,
            key: Key::new(crate::derived_id("incident", incident.incident_id.as_str())),
            owner: Some(incident.incident_owner.clone()),
            subjects: vec![Key::new(incident.incident_id.as_str())],
            text: text.into(),
        },
    )?;
    Ok(Reply::Recorded(vec![reference, contained]))
}

/// Why a report opens no case: it names a release that is not on record, an owner who may not be one, or steps as taken
/// that nobody has seen taken.
fn unfounded(view: &View, incident: &DisclosureIncident) -> Vec<Denial> {
    let mut denials = Vec::new();
    let was = |receipt: &DisclosureReceipt| incident.recipient_refs.contains(&receipt.recipient);
    for item in &incident.released_item_refs {
        let released =
            view.released.values().any(|receipt| was(receipt) && receipt.materialized_item_refs.contains(item));
        if branch!("incident.item_never_released", !released) {
            let reason = "no receipt on record released this item to any of the recipients";
            denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&item.id));
        }
    }
    for recipient in &incident.recipient_refs {
        let received = view.released.values().any(|receipt| {
            let holds = |item| receipt.materialized_item_refs.contains(item);
            receipt.recipient == *recipient && incident.released_item_refs.iter().any(holds)
        });
        if branch!("incident.recipient_got_nothing", !received) {
            let reason = "no receipt on record released any of the items to this recipient";
            denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(recipient));
        }
    }
    let governs = view.state.profile().is_some_and(|profile| {
        profile.user == incident.incident_owner || profile.restrictive_authority == incident.incident_owner
    });
    let independent = governs && !incident.recipient_refs.contains(&incident.incident_owner);
    if branch!("incident.owner_not_independent", !independent) {
        let reason =
            "an incident is answered for by the user or the independent authority, and by none of its recipients";
        denials.push(Denial::new(Code::MissingAuthority, CheckKind::Authority, reason).of(&incident.incident_owner));
    }
    let (policy, told) = (profile_ref(view), &incident.policy_version);
    if branch!("incident.policy_unknown", told.id != policy.id || told.version > policy.version) {
        let reason = "the policy version is none of this deployment's";
        denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&told.id));
    }
    let untouched = incident.containment_attempts.is_empty()
        && incident.notification_attempts.is_empty()
        && incident.acknowledgments.is_empty()
        && incident.unknown_copies.is_empty()
        && incident.dependent_artifacts.is_empty();
    if branch!("incident.steps_foretold", !untouched) {
        let fault = Fault::schema("a report opens the case; what is done about it is recorded as it is done");
        denials.push(fault.within("containment_attempts").into());
    }
    denials
}

/// The first step: what of each recipient's access can be revoked, and what cannot.
#[must_use]
pub fn contain(view: &View, case: &Case, now: &Timestamp) -> IncidentStep {
    let mut attempts = Vec::new();
    for recipient in &case.opened.recipient_refs {
        let mut note = |outcome: &str| {
            attempts.push(IncidentAttempt { recipient: recipient.clone(), at: now.clone(), outcome: outcome.into() });
        };
        note("access_revoked");
        let to_it = |receipt: &&std::sync::Arc<DisclosureReceipt>| receipt.recipient == *recipient;
        let mut receipts = view.released.values().filter(to_it).filter(|receipt| case.is_affected(receipt));
        if receipts.any(|receipt| is_in_its_hands(view, receipt)) {
            note("copy_irrevocable");
        }
    }
    step(&case.opened.incident_id, "contained", Step::Contained { attempts })
}

/// Whether what a receipt released was answered, or handed over outside work: then there is a copy beyond recall.
fn is_in_its_hands(view: &View, receipt: &DisclosureReceipt) -> bool {
    let mut packets =
        view.works.iter().filter(|(_, work)| work.payload.envelope().disclosure.id == receipt.disclosure_id);
    packets.next().is_none_or(|(work_id, _)| view.answered.contains_key(work_id))
}

/// Drafts the second step: the tombstone, and one notice for each recipient with what that recipient was given and nothing
/// beside it.
///
/// # Errors
/// `schema_invalid` when a receipt has no canonical form.
pub fn notify(view: &View, case: &Case, now: &Timestamp) -> Result<IncidentStep, Fault> {
    let affected = view.released.values().filter(|receipt| case.is_affected(receipt));
    let notice = |recipient: &ActorId| ScopedNotice {
        receipt: DisclosureReceipt {
            disclosure_id: DisclosureId::new(notice_id(&case.opened.incident_id, recipient)),
            purpose: PurposeId::from(NOTICE),
            recipient: recipient.clone(),
            policy_basis: view.state.reference(),
            materialized_item_refs: case.given_to(view, recipient),
            withheld_categories: Vec::new(),
            coverage_receipt_ref: ArtifactId::new(crate::derived_id("coverage", case.opened.incident_id.as_str())),
            missing_required_context: Vec::new(),
            permitted_use: vec![notice_use()],
            issued_at: now.clone(),
        },
        erasure: erasure(view, recipient),
    };
    let content = Step::Notified {
        withdrawn: case.opened.released_item_refs.clone(),
        receipts: affected.map(|receipt| disclose::reference(receipt)).collect::<Result<_, _>>()?,
        notices: case.opened.recipient_refs.iter().map(notice).collect(),
        dependent_artifacts: lineage::dependents(view, case),
    };
    Ok(step(&case.opened.incident_id, "notified", content))
}

fn step(incident_id: &IncidentId, word: &str, content: Step) -> IncidentStep {
    let step_id = ArtifactId::new(crate::derived_id(word, incident_id.as_str()));
    IncidentStep { step_id, incident_id: incident_id.clone(), content }
}

fn notice_id(incident_id: &IncidentId, recipient: &ActorId) -> String {
    crate::derived_id(&crate::derived_id("withdrawal", incident_id.as_str()), recipient.as_str())
}

fn erasure(view: &View, recipient: &ActorId) -> Erasure {
    let able = view
        .state
        .identity(recipient)
        .is_some_and(|identity| identity.capabilities.contains(&CapabilityId::from(ERASE)));
    match branch!("incident.erasure_supported", able) {
        true => Erasure::Requested,
        false => Erasure::Unsupported,
    }
}

/// Takes the next step of a case, in its order, by whom it is theirs to take.
pub(crate) fn take(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    taken: &IncidentStep,
) -> Result<Reply, Fault> {
    let (subject, digest) = (Id::new(taken.step_id.as_str()), Some(submission.content.digest()?));
    let Some(case) = deciding.view.incidents.get(&taken.incident_id).cloned() else {
        let reason = "no such incident is on record";
        let denial = Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&taken.incident_id);
        return deciding.refuse(subject, digest, vec![denial]);
    };
    let who = &submission.producer.actor_id;
    let mut denials = Vec::new();
    theirs_to_take(deciding.view, &case, who, &taken.content, &mut denials);
    in_order(&case, &taken.content, &mut denials);
    truthful(deciding.view, &case, &taken.content, &mut denials);
    if !denials.is_empty() {
        return deciding.refuse(subject, digest, denials);
    }
    let reference = deciding.batch.artifact(taken.clone(), vec![stream(&taken.incident_id)])?;
    deciding.batch.auth(submission.auth.record())?;
    let mut recorded = vec![reference];
    if let Step::Notified { notices, .. } = &taken.content {
        for notice in notices {
            recorded.push(deciding.batch.artifact(notice.receipt.clone(), Vec::new())?);
            let told = told(&taken.incident_id, notice);
            let id = crate::derived_id("notice", told.key.as_str());
            deciding.batch.push(&id, Entry::Notice(told), vec![stream(&taken.incident_id)], Vec::new())?;
        }
    }
    Ok(Reply::Recorded(recorded))
}

/// What a recipient is told: the ids of what it was given, and what is asked of it.
fn told(incident_id: &IncidentId, notice: &ScopedNotice) -> Notice {
    let text = match notice.erasure {
        Erasure::Requested => {
            "these items are withdrawn: do not use them, delete or quarantine your copies, and say so"
        }
        Erasure::Unsupported => "these items are withdrawn: do not use them, and say what became of your copies",
    };
    Notice {
        kind: NoticeKind::DisclosureWithdrawn,
        key: Key::new(notice_id(incident_id, &notice.receipt.recipient)),
        owner: Some(notice.receipt.recipient.clone()),
        subjects: notice.receipt.materialized_item_refs.iter().map(|item| Key::new(item.id.as_str())).collect(),
        text: text.into(),
    }
}

/// Whether the step is this identity's to take: the owner's or the user's, and an acknowledgment only its recipient's own.
fn theirs_to_take(view: &View, case: &Case, who: &ActorId, step: &Step, denials: &mut Vec<Denial>) {
    let answers_for_it = is_answerable(view, case, who);
    let may = match step {
        Step::Contained { .. } => false,
        Step::Notified { .. } | Step::Reconciled { .. } => answers_for_it,
        Step::Answered { recipient, answer: Answer::Acknowledged, .. } => recipient == who,
        Step::Answered { recipient, answer: Answer::Failed, .. } => recipient == who || answers_for_it,
    };
    if branch!("incident.step_of_another", !may) {
        let reason = "the step is the incident owner's or the user's; an acknowledgment is the recipient's own";
        denials.push(Denial::new(Code::MissingAuthority, CheckKind::Authority, reason).of(who));
    }
}

/// Whether this is the incident's owner or the user.
pub(super) fn is_answerable(view: &View, case: &Case, who: &ActorId) -> bool {
    case.opened.incident_owner == *who || view.state.is_user(who)
}

/// Stop before telling, tell before reconciling, and after that nothing more.
fn in_order(case: &Case, step: &Step, denials: &mut Vec<Denial>) {
    let comes_next = match (step, case.state) {
        (Step::Contained { .. }, IncidentState::Open)
        | (Step::Notified { .. }, IncidentState::Contained)
        | (Step::Answered { .. } | Step::Reconciled { .. }, IncidentState::Notified | IncidentState::Reconciling) => {
            true
        }
        (Step::Contained { .. } | Step::Notified { .. } | Step::Answered { .. } | Step::Reconciled { .. }, _) => false,
    };
    if branch!("incident.step_out_of_order", !comes_next) {
        let reason = format!("the incident is `{}`: stop, then tell, then reconcile", case.state);
        denials.push(Denial::new(Code::WrongPhase, CheckKind::Runtime, reason).of(&case.opened.incident_id));
    }
}

/// Whether the step says what the record shows, and a notice tells a recipient of nothing that it was not given.
fn truthful(view: &View, case: &Case, step: &Step, denials: &mut Vec<Denial>) {
    let mut gap = |offending: &dyn std::fmt::Display, reason: &str| {
        denials.push(Denial::new(Code::CoverageMissing, CheckKind::Resolution, reason).of(offending));
    };
    match step {
        Step::Contained { .. } => {}
        Step::Notified { withdrawn, notices, dependent_artifacts, receipts: _ } => {
            let tells = |who: &ActorId| notices.iter().filter(|notice| notice.receipt.recipient == *who).count() == 1;
            for recipient in case.opened.recipient_refs.iter().filter(|who| !tells(who)) {
                if branch!("incident.recipient_untold", true) {
                    gap(recipient, "every recipient is told, once");
                }
            }
            if branch!("incident.tombstone_partial", *withdrawn != case.opened.released_item_refs) {
                gap(&case.opened.incident_id, "the tombstone names exactly the items of the incident");
            }
            if branch!("incident.dependents_untold", *dependent_artifacts != lineage::dependents(view, case)) {
                gap(&case.opened.incident_id, "what derives from the items is listed, and nothing else");
            }
            for notice in notices {
                scoped(view, case, notice, denials);
            }
        }
        Step::Answered { recipient, .. } => {
            if branch!("incident.answer_of_no_recipient", !case.opened.recipient_refs.contains(recipient)) {
                gap(recipient, "it is no recipient of this incident");
            }
        }
        Step::Reconciled { unknown_copies, .. } => {
            let silent: Vec<&ActorId> = case.silent().collect();
            if branch!("incident.silence_untold", unknown_copies.iter().collect::<Vec<_>>() != silent) {
                gap(&case.opened.incident_id, "every recipient that gave no answer is named as an unknown copy");
            }
        }
    }
}

/// A notice is itself a disclosure, under a receipt of its own (§4.3).
fn scoped(view: &View, case: &Case, notice: &ScopedNotice, denials: &mut Vec<Denial>) {
    let receipt = &notice.receipt;
    let given = case.given_to(view, &receipt.recipient);
    for item in receipt.materialized_item_refs.iter().filter(|item| !given.contains(item)) {
        if branch!("incident.notice_tells_more", true) {
            let reason = "a notice tells its recipient of nothing that it was not given before";
            denials.push(Denial::new(Code::DisclosureDenied, CheckKind::Authority, reason).of(&item.id));
        }
    }
    let complete = given.iter().all(|item| receipt.materialized_item_refs.contains(item));
    let own = receipt.purpose.as_str() == NOTICE && notice.erasure == erasure(view, &receipt.recipient);
    if branch!("incident.notice_partial", !complete || !own) {
        let reason = "a notice names everything that its recipient was given, and asks what the recipient can do";
        denials.push(Denial::new(Code::CoverageMissing, CheckKind::Resolution, reason).of(&receipt.recipient));
    }
}

/// Audit: what was done about an incident.
fn stream(id: &IncidentId) -> closer_contracts::record::StreamId {
    streams::incident(id)
}
