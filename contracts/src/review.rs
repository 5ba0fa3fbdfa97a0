//! Review receipts: what a person said of one exact artifact. Spec: Appendix D, DEC-93.

use crate::digest::Digest;
use crate::id::{ActorId, Id, ReceiptId};
use crate::refs::ArtifactRef;
use crate::time::Timestamp;

crate::words! {
    /// What kind of decision a review came to. None stands in for another.
    pub enum ReviewDecision {
        /// The concept is endorsed; its wording and its effects are not.
        ConceptEndorsement = "concept_endorsement",
        /// This exact wording is approved.
        WordingApproval = "wording_approval",
        /// It is to be revised: not approved.
        Revision = "revision",
        /// No.
        Rejection = "rejection",
        /// This exact effect is authorized.
        EffectAuthorization = "effect_authorization",
    }
}

crate::words! {
    /// How sure it is whose statement something is.
    pub enum Assurance {
        /// Authenticated by a session of the runtime.
        Session = "session",
        /// Signed by a registered key.
        Signature = "signature",
    }
}

crate::contract! {
    /// Who reviewed, and how sure that is. Spec: Appendix D.
    pub struct Reviewer = "Reviewer" {
        "CP-D-01" identity: ActorId,
        "CP-D-01" assurance: Assurance,
    }
}

crate::contract! {
    /// The reviewer's own statement on record that the receipt rests on, and how sure it is that it is theirs.
    pub struct SupportingMessage = "SupportingMessage" {
        "CP-D-08" message: ArtifactRef,
        "CP-D-08" assurance: Assurance,
    }
}

crate::contract! {
    /// What a person decided of one exact artifact or section. Spec: Appendix D.
    pub struct ReviewReceipt = "REVIEW_RECEIPT" {
        "CP-D-01" receipt_id: ReceiptId,
        /// The digest of the artifact or section: another version is another artifact.
        "CP-D-01" artifact_digest: Digest,
        "CP-D-01" subject: Id,
        "CP-D-02" decision: ReviewDecision,
        "CP-D-01" reviewer: Reviewer,
        "CP-D-01" issued_at: Timestamp,
        "CP-D-01" supporting_message: SupportingMessage,
    }
}
