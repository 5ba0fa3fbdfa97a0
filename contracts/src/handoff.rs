//! HANDOFF and its acceptance. Spec: C12.

use crate::digest::Digest;
use crate::id::{ActorId, HandoffId, ObligationId, ReceiptId, Text};
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
        extensions: Option<crate::envelope::Extensions>
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
