//! ACTION: one exact operation, and the digest that is its identity. Spec: §6.4, C7.

use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{ActionId, AttemptId, GrantId, Key, OperationId};
use crate::refs::{Parameters, Target};
use crate::refusal::RefusalCode;
use crate::work::Postcondition;
use serde::Serialize;

crate::contract! {
    /// One attempt at one logical action. Spec: C7.
    pub struct Action = "ACTION" checked by Action::check_digest {
        "CP-C7-F01" action_id: ActionId,
        "CP-C7-F02" operation: OperationId,
        "CP-C7-F03" target: Target,
        "CP-C7-F04" parameters: Parameters,
        "CP-C7-F05" expected_postcondition: Postcondition,
        "CP-C7-F06" authority_ref: GrantId,
        /// The accepted state version the action was assessed against (DEC-46).
        "CP-C7-F07" relevant_semantic_version: u64,
        /// The version of the operation's registry entry.
        "CP-C7-F08" registry_version: u32,
        "CP-C7-F09" idempotency_key: Key,
        "CP-C7-F10" logical_digest: Digest,
        "CP-C7-F11" attempt_id: AttemptId,
        "CP-C7-F12" ownership_epoch: u64;
        /// Extensions in reverse-DNS keys; digested, never read by a decision (DEC-09).
        extensions: Option<crate::envelope::Extensions>
    }
}

/// The eight fields that are an action's logical identity, and nothing else (§6.4).
#[derive(Debug, Clone, Serialize)]
pub struct LogicalContent<'a> {
    operation: &'a OperationId,
    target: &'a Target,
    parameters: &'a Parameters,
    expected_postcondition: &'a Postcondition,
    authority_ref: &'a GrantId,
    relevant_semantic_version: u64,
    registry_version: u32,
    idempotency_key: &'a Key,
}

impl Action {
    /// The logical content: what stays when the attempt and the owner change.
    #[must_use]
    pub const fn logical_content(&self) -> LogicalContent<'_> {
        LogicalContent {
            operation: &self.operation,
            target: &self.target,
            parameters: &self.parameters,
            expected_postcondition: &self.expected_postcondition,
            authority_ref: &self.authority_ref,
            relevant_semantic_version: self.relevant_semantic_version,
            registry_version: self.registry_version,
            idempotency_key: &self.idempotency_key,
        }
    }

    /// `H(canonical(LogicalContent))`.
    ///
    /// # Errors
    /// `schema_invalid` when the content has no canonical form.
    pub fn compute_logical_digest(&self) -> Result<Digest, Fault> {
        crate::canonical::digest_of(&self.logical_content())
    }

    fn check_digest(&self) -> Result<(), Fault> {
        match crate::branch!("action.logical_digest_agrees", self.compute_logical_digest()? == self.logical_digest) {
            true => Ok(()),
            false => Err(Fault::new(RefusalCode::DigestMismatch, "the logical digest is not that of the content")
                .within("logical_digest")),
        }
    }
}
