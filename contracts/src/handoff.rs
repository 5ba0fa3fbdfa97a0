//! HANDOFF and its acceptance. Spec: C12.

use crate::digest::Digest;
use crate::id::{ActorId, ArtifactId, CapabilityId, HandoffId, ObligationId, ReceiptId, Text};
use crate::reentry::TypedPredicate;
use crate::refs::{ActorRef, ArtifactRef};
use crate::time::Timestamp;

crate::contract! {
    /// A bounded responsibility offered to a recipient with its context. Spec: C12.
    pub struct Handoff = "HANDOFF" {
        "CP-C12-F01" handoff_id: HandoffId,
        "CP-C12-F02" obligation_id: ObligationId,
        "CP-C12-F03" responsibility: Text,
        "CP-C12-F04" sender: ActorRef,
        "CP-C12-F05" recipient: ActorRef,
        "CP-C12-F06" contract_ref: ArtifactRef,
        "CP-C12-F07" context_refs: Vec<ArtifactRef>,
        /// The epoch the recipient will hold (DEC-51).
        "CP-C12-F08" ownership_epoch: u64,
        "CP-C12-F09" lease_expiry: Option<Timestamp>,
        "CP-C12-F10" acceptance_condition: TypedPredicate,
        "CP-C12-F11" return_contract_ref: ArtifactRef;
        /// Extensions in reverse-DNS keys; digested, never read by a decision (DEC-09).
        extensions: Option<crate::envelope::Extensions>
    }
}

crate::words! {
    /// What is owed when a responsibility is given back (DEC-113).
    pub enum Owed {
        /// Every result of work on the obligation since it was taken over.
        Results = "results",
        /// Every evidence about the obligation since then.
        Evidence = "evidence",
        /// Every attempt that is not settled.
        UnsettledAttempts = "unsettled_attempts",
    }
}

crate::contract! {
    /// What a responsibility takes of whoever holds it, and what is owed when it is given back. A handoff names one as its
    /// contract and one, the same or another, as its return contract. Spec: C12, DEC-113.
    pub struct ResponsibilityContract = "RESPONSIBILITY_CONTRACT" {
        "CP-C12-03" contract_id: ArtifactId,
        /// What the recipient is registered to be able to do.
        "CP-C12-03" capabilities: Vec<CapabilityId>,
        /// The records that the handoff has to cite as context.
        "CP-C12-04" context: Vec<ArtifactId>,
        "CP-C12-12" owed_on_return: Vec<Owed>,
    }
}

crate::contract! {
    /// A recipient's authenticated consent to exactly this handoff. Spec: DEC-52.
    pub struct HandoffConsent = "HANDOFF_CONSENT" {
        "CP-C12-02" handoff_ref: HandoffId,
        "CP-C12-02" recipient_ref: ActorId,
        "CP-C12-02" contract_digest: Digest,
        "CP-C12-02" ownership_epoch: u64,
    }
}

crate::contract! {
    /// What the ownership service writes with the transfer itself. Spec: DEC-52.
    pub struct AcceptanceReceipt = "ACCEPTANCE_RECEIPT" {
        "CP-C11-F15" receipt_id: ReceiptId,
        "CP-C11-F15" handoff_ref: HandoffId,
        "CP-C11-F15" recipient_ref: ActorId,
        "CP-C11-F15" contract_digest: Digest,
        "CP-C11-F15" ownership_epoch: u64,
        "CP-C11-F15" accepted_at: Timestamp,
    }
}
