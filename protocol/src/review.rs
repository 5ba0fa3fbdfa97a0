//! Human review: receipts beside the governing state, each for one exact artifact, subject and kind of decision.
//!
//! Silence approves nothing, and neither does a receipt for something else: another section, an older version, or another
//! kind of decision. Only an effect authorization can stand behind a commit, and only for the exact changes that it names
//! (see [`crate::commit`]). A signature shows whose statement it is, not that it is true. Spec: Appendix D, DEC-93.

use crate::entry::ArtifactBody;
use crate::input::{Reply, Submission};
use crate::sequence::Deciding;
use crate::streams;
use crate::view::View;
use closer_contracts::auth::Proof;
use closer_contracts::branch;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, Id};
use closer_contracts::refs::ArtifactRef;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::review::{Assurance, ReviewDecision, ReviewReceipt};
use imbl::OrdMap;
use std::sync::Arc;

/// Every review on record, by the exact artifact and subject, in the order in which they came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reviews(OrdMap<(Digest, Id), Vec<Cited>>);

/// A receipt with the reference that cites it.
type Cited = (ArtifactRef, Arc<ReviewReceipt>);

impl Reviews {
    pub(crate) fn fold(&mut self, receipt: &ReviewReceipt, reference: ArtifactRef) {
        let of = self.0.entry((receipt.artifact_digest, receipt.subject.clone())).or_default();
        of.push((reference, Arc::new(receipt.clone())));
    }

    fn on(&self, artifact: Digest, subject: &Id) -> impl Iterator<Item = &Cited> {
        self.0.get(&(artifact, subject.clone())).into_iter().flatten()
    }

    /// The receipt that a reference names.
    #[must_use]
    pub fn cited(&self, reference: &ArtifactRef) -> Option<&Arc<ReviewReceipt>> {
        self.0.values().flatten().find(|(known, _)| known == reference).map(|(_, receipt)| receipt)
    }
}

/// Where the review of one artifact stands, for one kind of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    /// Nobody has said anything of this kind about exactly this.
    Awaiting,
    /// It was given, and nothing later speaks against it.
    Given,
    /// A revision was asked for, or it was rejected.
    Declined(ReviewDecision),
}

/// Where the review of this exact artifact and subject stands for this kind of decision. A later request for revision, or
/// a rejection, takes an earlier decision back; an earlier one does not speak against a later approval.
#[must_use]
pub fn review(view: &View, artifact: Digest, subject: &Id, wanted: ReviewDecision) -> Review {
    let mut stands = Review::Awaiting;
    for (_, receipt) in view.reviews.on(artifact, subject) {
        let declines = matches!(receipt.decision, ReviewDecision::Revision | ReviewDecision::Rejection);
        if branch!("review.kind_given", receipt.decision == wanted) && !declines {
            stands = Review::Given;
        } else if branch!("review.declined", declines) {
            stands = Review::Declined(receipt.decision);
        }
    }
    stands
}

/// Whose newest word on this exact artifact and subject is a decision of this kind.
#[must_use]
pub fn given_by(view: &View, artifact: Digest, subject: &Id, wanted: ReviewDecision) -> Vec<ActorId> {
    let mut newest: OrdMap<&ActorId, ReviewDecision> = OrdMap::new();
    for (_, receipt) in view.reviews.on(artifact, subject) {
        newest.insert(&receipt.reviewer.identity, receipt.decision);
    }
    newest.into_iter().filter(|(_, decision)| *decision == wanted).map(|(reviewer, _)| reviewer.clone()).collect()
}

/// Records a review: its reviewer is who sent it, as surely as it says, and rests on a statement of the same reviewer.
pub(crate) fn intake(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    receipt: &ReviewReceipt,
) -> Result<Reply, Fault> {
    let mut denials = Vec::new();
    let mut unauthenticated = |reason: &str, of: &ActorId| {
        denials.push(Denial::new(Code::Unauthenticated, CheckKind::Authentication, reason).of(of));
    };
    let reviewer = &receipt.reviewer.identity;
    if branch!("review.of_another", submission.producer.actor_id != *reviewer) {
        unauthenticated("a review is its reviewer's own", reviewer);
    }
    let assured = match submission.auth.record().proof {
        Proof::Session { .. } => Assurance::Session,
        Proof::Ed25519 { .. } => Assurance::Signature,
    };
    if branch!("review.assurance_overstated", receipt.reviewer.assurance != assured) {
        unauthenticated("the review was not authenticated as it says", reviewer);
    }
    let message = &receipt.supporting_message.message;
    let author = author_of(deciding.view, message);
    if branch!("review.message_of_another", author.as_ref().is_some_and(|author| author != reviewer)) {
        unauthenticated("the supporting message is somebody else's", reviewer);
    }
    if branch!("review.message_unknown", author.is_none()) {
        let reason = "no authenticated message of this reviewer is on record under this reference";
        denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&message.id));
    }
    if !denials.is_empty() {
        let id = Id::new(receipt.receipt_id.as_str());
        return deciding.refuse(id, Some(submission.content.digest()?), denials);
    }
    let reference = deciding.batch.artifact((*submission.content).clone(), vec![streams::reviews()])?;
    deciding.batch.auth(submission.auth.record())?;
    Ok(Reply::Recorded(vec![reference]))
}

/// Who gave the statement that a reference names: a payload, a decision or a declaration on record.
fn author_of(view: &View, reference: &ArtifactRef) -> Option<ActorId> {
    let declared = view.declarations.get(&closer_contracts::id::DeclarationId::new(reference.id.as_str()));
    let declared = declared.filter(|(known, _)| known == reference);
    let declarer = declared.map(|(_, declaration)| declaration.authenticated_issuer.identity.clone());
    declarer.or_else(|| view.chain.author_of(reference))
}
