//! Intake: what every payload must pass before its own stage decides. Spec: §6.1, §6.2, Appendix B.

use crate::batch::Batch;
use crate::disclose::work_purpose;
use crate::entry::{Entry, Notice, NoticeKind};
use crate::input::{Moment, Reply, Submission};
use crate::sequence::Deciding;
use crate::streams;
use crate::view::View;
use closer_contracts::auth::Authenticated;
use closer_contracts::branch;
use closer_contracts::contract::Check;
use closer_contracts::digest::Digest;
use closer_contracts::envelope::{Body, Envelope};
use closer_contracts::id::{Id, Key, Text};
use closer_contracts::payload_type::{PayloadType, check_producer};
use closer_contracts::record::Reads;
use closer_contracts::refs::ActorRef;
use closer_contracts::refusal::{CheckKind, Denial, Refusal, RefusalCode as Code, foremost};
use closer_contracts::{Fault, Payload};

/// What begins the key of a notice of inputs that could not be read or authenticated; the count follows.
const UNREADABLE: &str = "unreadable.";

/// How many inputs could not be read or authenticated, as a notice tells it.
pub(crate) fn unreadable_count(notice: &Notice) -> Option<u64> {
    notice.key.as_str().strip_prefix(UNREADABLE)?.rsplit('.').next()?.parse().ok()
}

/// A flood of what cannot be read or authenticated grows the log by its logarithm only, in however many processes it comes:
/// the count goes on from the record, and only each doubling of it is recorded (design §5).
pub(crate) fn unreadable(
    deciding: &mut Deciding<'_>,
    subject: &Text,
    denial: &Denial,
    count: u64,
) -> Result<Reply, Fault> {
    if count.is_power_of_two() {
        let text = format!(
            "at least {count} inputs could not be read or authenticated; the newest: {}: {}",
            denial.code, denial.reason
        );
        let notice = Notice {
            kind: NoticeKind::AggregatedRefusals,
            key: Key::new(format!("{UNREADABLE}{count}")),
            owner: None,
            subjects: vec![Key::new(bounded(subject.as_str()).as_str().chars().take(64).collect::<String>())],
            text: bounded(&text),
        };
        let id = format!("notice-{UNREADABLE}{count}");
        deciding.batch.push(&id, Entry::Notice(notice), vec![streams::refusals()], Vec::new())?;
    }
    Ok(Reply::Refused(vec![denial.clone()]))
}

/// What is refused: its id and digest, for the record of the refusal.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) subject: Id,
    pub(crate) digest: Option<Digest>,
    pub(crate) denials: Vec<Denial>,
}

/// Records every denial of a subject and tells the caller.
pub(crate) fn refuse(batch: &mut Batch<'_>, view: &View, refused: Refused) -> Result<Reply, Fault> {
    for (i, denial) in refused.denials.iter().enumerate() {
        let refusal = Refusal {
            code: denial.code,
            check: denial.check,
            subject: refused.subject.clone(),
            subject_digest: refused.digest,
            offending: denial.offending.as_deref().filter(|text| !text.is_empty()).map(bounded),
            reason: bounded(&denial.reason),
            state_basis: Some(view.state.reference()),
            refused_at: batch.now().clone(),
        };
        let id = crate::derived_id(&format!("refusal.{}.{i}", view.refusals), refused.subject.as_str());
        let streams =
            vec![streams::refusals(), closer_contracts::record::StreamId::new(format!("subject:{}", refused.subject))];
        batch.push(&id, crate::entry::Entry::Refusal(refusal), streams, Vec::new())?;
    }
    Ok(Reply::Refused(refused.denials))
}

/// Text held within its bound, cut at a character.
pub(crate) fn bounded(text: &str) -> Text {
    const BYTES_MAX: usize = 1024;
    let mut end = text.len().min(BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    match text.get(..end) {
        Some("") | None => Text::from("no reason was given"),
        Some(text) => Text::from(text),
    }
}

/// The producer, as authenticated and still current at this moment.
pub(crate) fn producer(view: &View, producer: &ActorRef, auth: &Authenticated, at: &Moment) -> Result<(), Denial> {
    let again = auth.record().check_again(view.state.identity(&producer.actor_id), &at.now);
    let assigned =
        view.state.identity(&producer.actor_id).is_some_and(|identity| identity.roles.contains(&producer.role));
    let established = again.is_ok() && assigned && *auth.identity() == producer.actor_id;
    match branch!("intake.producer_established", established) {
        true => Ok(()),
        false => {
            let reason =
                again.err().map_or_else(|| "the role is not assigned to the identity".into(), |fault| fault.reason);
            Err(Denial::new(Code::Unauthenticated, CheckKind::Authentication, reason).of(&producer.actor_id))
        }
    }
}

/// The proof is of exactly this content: an authentication of something else proves nothing here.
pub(crate) fn proof_of(auth: &Authenticated, id: &str, digest: Digest) -> Result<(), Denial> {
    let record = auth.record();
    match branch!("intake.proof_of_this_content", record.subject_id.as_str() == id && record.content_digest == digest) {
        true => Ok(()),
        false => {
            let reason = "what was authenticated is not what was sent";
            Err(Denial::new(Code::Unauthenticated, CheckKind::Authentication, reason).of(id))
        }
    }
}

/// Everything that a payload of any type must pass: producer, message map, id, lineage.
pub(crate) fn payload(
    view: &View,
    submission: &Submission<Payload>,
    at: &Moment,
    reads: &dyn Reads,
) -> Result<(), Vec<Denial>> {
    let payload = &*submission.content;
    let envelope = payload.envelope();
    producer(view, &submission.producer, &submission.auth, at).map_err(|denial| vec![denial])?;
    proof_of(&submission.auth, payload.id().as_str(), payload.content_digest()).map_err(|denial| vec![denial])?;
    if branch!("intake.producer_differs", submission.producer != envelope.producer) {
        let reason = "the envelope names another producer than the one who sent it";
        return Err(vec![
            Denial::new(Code::Unauthenticated, CheckKind::Authentication, reason).of(&envelope.producer.actor_id),
        ]);
    }
    let mut denials = Vec::new();
    denials.extend(check_producer(envelope).err().map(Denial::from));
    match reads.claim(&streams::payload_claim(payload.id())) {
        None => {}
        Some(known) if branch!("intake.payload_repeated", known == payload.content_digest()) => {
            denials
                .push(Denial::new(Code::Duplicate, CheckKind::Resolution, "the payload is on record").of(payload.id()));
        }
        Some(_) => {
            let reason = "the payload's id stands for other content";
            denials.push(Denial::new(Code::KeyConflict, CheckKind::Resolution, reason).of(payload.id()));
        }
    }
    if branch!("intake.body_id_taken", stands_for_other_content(view, payload)) {
        let reason = "the id of what the payload carries stands for other content";
        denials.push(Denial::new(Code::KeyConflict, CheckKind::Resolution, reason).of(payload.id()));
    }
    lineage(view, payload, reads, &mut denials);
    match denials.is_empty() {
        true => Ok(()),
        false => Err(denials),
    }
}

/// Whether what a payload carries goes by the id of something else on record. What the sequence itself has endorsed claims no
/// id of its own, so that the record is asked and not the claims.
fn stands_for_other_content(view: &View, payload: &Payload) -> bool {
    if let Body::Adjudication(body) = payload.body() {
        let known = view.adjudications.get(&body.adjudication_id);
        return known.is_some_and(|known| known.payload.content_digest() != payload.content_digest());
    }
    if let Body::Delta(body) = payload.body() {
        let known = view.deltas.get(&body.delta_id);
        return known.is_some_and(|known| known.body.proposal_digest != body.proposal_digest);
    }
    false
}

/// Every reference of the envelope resolves to a thing of its kind, with its digest (§6, Appendix B).
fn lineage(view: &View, payload: &Payload, reads: &dyn Reads, denials: &mut Vec<Denial>) {
    let envelope = payload.envelope();
    let mut unresolved = |what: &dyn std::fmt::Display, reason: &str| {
        denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(what));
    };
    for parent in &envelope.parents {
        if branch!("intake.parent_unknown", reads.claim(&streams::payload_claim(parent)).is_none()) {
            unresolved(parent, "no payload with this id is on record");
        }
    }
    for obligation_id in &envelope.obligation_ids {
        let proposed = envelope.r#type == PayloadType::Obligation;
        if branch!("intake.obligation_unknown", !proposed && view.state.obligation(obligation_id).is_none()) {
            unresolved(obligation_id, "no such obligation is accepted");
        }
    }
    if let Some(episode_id) = &envelope.episode_id {
        let under_way = view.episodes.get(episode_id).is_some_and(|episode| episode.end.is_none());
        if branch!("intake.episode_not_under_way", !under_way) {
            unresolved(episode_id, "no such episode is under way");
        }
    }
    if let Some(event_id) = &envelope.causation_event_id
        && branch!("intake.cause_unmatched", !view.matches.contains_key(event_id))
    {
        unresolved(event_id, "the causing event has no match receipt");
    }
    if let Some(basis) = &envelope.semantic_basis {
        match reads.claim(&streams::state_claim(basis.version)) {
            None => unresolved(&basis.version, "no such state version was accepted"),
            Some(digest) if branch!("intake.basis_differs", digest != basis.digest) => {
                let reason = "the state version has another digest";
                denials.push(Denial::new(Code::DigestMismatch, CheckKind::Resolution, reason).of(basis.version));
            }
            Some(_) => {}
        }
    }
    disclosure(view, envelope, denials);
}

/// The disclosure receipt is on record, and what it released is used as it permits (§4.3, C1).
fn disclosure(view: &View, envelope: &Envelope, denials: &mut Vec<Denial>) {
    let cited = &envelope.disclosure;
    let known = view.disclosure(cited.id.as_str());
    if branch!("intake.disclosure_unknown", known.is_none()) {
        let reason = "no such disclosure receipt is on record";
        denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&cited.id));
    }
    if branch!("intake.disclosure_differs", known.is_some_and(|known| known.digest != cited.digest)) {
        let reason = "the disclosure receipt has another digest";
        denials.push(Denial::new(Code::DigestMismatch, CheckKind::Resolution, reason).of(&cited.id));
    }
    let packet = view.released.get(&Key::new(cited.id.as_str())).filter(|receipt| receipt.purpose == work_purpose());
    let answers = matches!(envelope.r#type, PayloadType::Work | PayloadType::Result);
    if branch!("intake.packet_handed_on", packet.is_some() && envelope.r#type == PayloadType::Handoff) {
        let reason = "what a packet released to its recipient is not handed on under its receipt";
        denials.push(Denial::new(Code::RedistributionDenied, CheckKind::Authority, reason).of(&cited.id));
    } else if branch!("intake.use_not_permitted", packet.is_some() && !answers) {
        let reason = "what a packet released is used for its work and nothing else";
        denials.push(Denial::new(Code::DisclosureDenied, CheckKind::Authority, reason).of(&cited.id));
    }
}

/// The five checks of Appendix B with their own results, for a payload as a whole.
#[must_use]
pub fn report(denials: &[Denial]) -> Vec<(CheckKind, bool)> {
    [CheckKind::Schema, CheckKind::Resolution, CheckKind::Support, CheckKind::Authority, CheckKind::Readback]
        .into_iter()
        .map(|check| (check, !denials.iter().any(|denial| denial.check == check)))
        .collect()
}

/// The foremost denial's text, for logs and notices.
#[must_use]
pub fn told(denials: &[Denial]) -> Option<String> {
    foremost(denials).map(|denial| format!("{}: {}", denial.code, denial.reason))
}

/// Checks an artifact before its own stage: producer and shape.
pub(crate) fn artifact(
    view: &View,
    submission: &Submission<crate::entry::ArtifactBody>,
    at: &Moment,
    reads: &dyn Reads,
    digest: Digest,
) -> Result<(), Vec<Denial>> {
    producer(view, &submission.producer, &submission.auth, at).map_err(|denial| vec![denial])?;
    proof_of(&submission.auth, submission.content.id().as_str(), digest).map_err(|denial| vec![denial])?;
    submission.content.check().map_err(|fault| vec![Denial::from(fault)])?;
    let body = &*submission.content;
    submission.producer.actor_id.check().map_err(|fault| vec![Denial::from(fault)])?;
    match reads.claim(&streams::artifact_claim(body.kind(), body.id().as_str())) {
        None => Ok(()),
        Some(known) if branch!("intake.artifact_repeated", known == digest) => {
            Err(vec![Denial::new(Code::Duplicate, CheckKind::Resolution, "the artifact is on record").of(body.id())])
        }
        Some(_) => {
            let reason = "the artifact's id stands for other content";
            Err(vec![Denial::new(Code::KeyConflict, CheckKind::Resolution, reason).of(body.id())])
        }
    }
}
