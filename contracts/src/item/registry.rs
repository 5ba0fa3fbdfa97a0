//! What the monitor trusts about the world: operations, ways to read back, identities with their keys, sources.
//! Spec: §3.3, §6.1, DEC-44.

use crate::auth::SigningScope;
use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{ActorId, CapabilityId, ChangeKindId, Key, KeyId, OperationId, ReadbackMethodId, SourceId, Text};
use crate::item::Standing;
use crate::refs::{Amounts, Plain, ProducerRole, Scope, VersionedRef};
use crate::time::Timestamp;

crate::words! {
    /// What an operation does to the world; it decides what is consequential, not a label (§1, DEC-44).
    pub enum EffectClass {
        /// Nothing changes.
        ReadOnly = "read_only",
        /// Only the deployment's own state changes.
        Internal = "internal",
        /// The world changes and can be changed back.
        ExternalReversible = "external_reversible",
        /// The world changes for good.
        ExternalIrreversible = "external_irreversible",
    }
}

crate::words! {
    /// Whether an operation may be repeated (§8.2).
    pub enum RepeatSafety {
        /// Repeating it changes nothing more.
        RepeatSafe = "repeat_safe",
        /// It is made only where the target is still as expected.
        Conditional = "conditional",
        /// Repeating it may do it twice.
        NotRepeatSafe = "not_repeat_safe",
    }
}

crate::words! {
    /// The type of an operation's parameter.
    pub enum ParameterType {
        /// Text.
        Text = "text",
        /// An integer within I-JSON.
        Integer = "integer",
        /// True or false.
        Boolean = "boolean",
        /// A digest.
        Digest = "digest",
        /// A UTC timestamp.
        Timestamp = "timestamp",
        /// Any plain value.
        Any = "any",
    }
}

crate::contract! {
    /// One parameter of an operation. Parameters that are not listed are refused.
    pub struct ParameterRule = "ParameterRule" {
        "CP-C7-F04" name: Key,
        "CP-C7-F04" r#type: ParameterType,
        /// Absent parameters are refused unless optional.
        "CP-C7-F04" optional: bool,
    }
}

crate::contract! {
    /// The evidence that an endpoint is the one that was approved. Spec: DEC-90.
    pub struct Verification = "Verification" {
        "CP-C4-F07" identity: ActorId,
        "CP-C4-F07" contract_digest: Digest,
        "CP-C4-F07" version: u32,
        "CP-C4-F07" verified_at: Timestamp,
        "CP-C4-F07" method: Key,
        "CP-C4-F07" expires_at: Timestamp,
    }
}

crate::contract! {
    /// A registered operation: what it does, how it is read back, what it may cost, when trust in it ends. Spec: DEC-44.
    pub struct OperationEntry = "OperationEntry" checked by OperationEntry::check_contract {
        "CP-C7-F02" operation: OperationId,
        "CP-C7-F08" version: u32,
        "CP-C7-F02" text: Text,
        /// The capability an actor must have declared to propose it.
        "CP-C7-F02" capability: CapabilityId,
        "CP-C7-F02" effect_class: EffectClass,
        "CP-C7-F04" parameters: Vec<ParameterRule>,
        /// The parameters that, with operation and target, tell one effect from another.
        "CP-C7-F04" identifying_parameters: Vec<Key>,
        "CP-C7-F03" target_type: Key,
        "CP-C7-F02" readback_method: VersionedRef,
        "CP-C7-F02" repeat_safety: RepeatSafety,
        /// How long the target may take to show the effect, in milliseconds (DEC-50).
        "CP-C7-F02" settle_time_ms: u64,
        /// Whether a running effect can be cancelled at the provider.
        "CP-C7-F02" cancellable: bool,
        "CP-C7-F02" worst_case: Amounts,
        /// What the adapter needs to carry it out; pinned by `contract_digest`.
        "CP-C7-F02" contract: Plain,
        "CP-C7-F02" contract_digest: Digest,
        "CP-C7-F02" verification: Verification,
        "CP-C7-F02" standing: Standing;
        /// What the provider may still use after it was asked to cancel, where that is more than nothing (§8.3).
        cancel_exposure: Option<Amounts>
    }
}

impl OperationEntry {
    /// What one attempt reserves: the worst case, and what may be used while a cancellation takes effect.
    #[must_use]
    pub fn reserved(&self) -> Amounts {
        let exposed =
            crate::branch!("operation.cancel_takes_a_while", self.cancellable && self.cancel_exposure.is_some());
        let Some(exposure) = self.cancel_exposure.as_ref().filter(|_| exposed) else {
            return self.worst_case.clone();
        };
        let both = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), other) => Some(one.saturating_add(other.unwrap_or(0))),
            (None, other) => other,
        };
        Amounts {
            calls: both(self.worst_case.calls, exposure.calls),
            tokens: both(self.worst_case.tokens, exposure.tokens),
            cost_micros: both(self.worst_case.cost_micros, exposure.cost_micros),
            currency: self.worst_case.currency.clone().or_else(|| exposure.currency.clone()),
            time_ms: both(self.worst_case.time_ms, exposure.time_ms),
            // The slot is one and the same until the end.
            concurrency: self.worst_case.concurrency,
        }
    }

    fn check_contract(&self) -> Result<(), Fault> {
        match crate::canonical::digest_of(&self.contract)? == self.contract_digest {
            true => Ok(()),
            false => Err(Fault::new(
                crate::refusal::RefusalCode::DigestMismatch,
                "the contract is not what its digest names",
            )
            .within("contract_digest")),
        }
    }
}

crate::contract! {
    /// A registered way to observe a target, apart from any attempt. Spec: SR14, DEC-50.
    pub struct ReadbackMethod = "ReadbackMethod" {
        "CP-C8-F11" method: ReadbackMethodId,
        "CP-C8-F11" version: u32,
        /// The source that its observations come from.
        "CP-C8-F11" source: SourceId,
        "CP-C8-F11" target_type: Key,
        /// What the observer needs to carry it out.
        "CP-C8-F11" contract: Plain,
        "CP-C8-F11" standing: Standing,
    }
}

crate::words! {
    /// What an identity stands for (Appendix A, question 1).
    pub enum IdentityKind {
        /// The user, or a signer of the user's organization.
        User = "user",
        /// An urgent issuer.
        Issuer = "issuer",
        /// A participant or other producer.
        Producer = "producer",
        /// An agent that takes its work and hands in its answer from outside.
        Agent = "agent",
        /// An endpoint of a capability.
        Endpoint = "endpoint",
        /// A service of this runtime.
        Service = "service",
    }
}

crate::words! {
    /// How an identity may authenticate (§6.1).
    pub enum Mechanism {
        /// An in-process session handle that cannot be forged.
        Session = "session",
        /// An Ed25519 signature over the content digest and signing scope.
        Ed25519 = "ed25519",
    }
}

crate::contract! {
    /// One signing key: its validity, its scope and what became of it. Spec: DEC-12, DEC-13.
    pub struct SigningKeyEntry = "SigningKeyEntry" checked by SigningKeyEntry::check_key {
        /// The digest of the canonical key bytes.
        "CP-6.1-12" key_id: KeyId,
        /// 32 bytes in lowercase hexadecimal.
        "CP-6.1-12" public_key: Key,
        "CP-6.1-12" not_before: Timestamp,
        "CP-6.1-12" not_after: Timestamp,
        /// The payload types and kinds of artifact it may sign.
        "CP-6.1-12" signing_scope: Vec<SigningScope>,
        "CP-6.1-12" revoked_at: Option<Timestamp>,
        /// Whether it was revoked as compromised: every payload of the key is then flagged.
        "CP-6.1-12" compromised: bool,
    }
}

crate::contract! {
    /// A registered identity: what it may produce and how it proves itself. Spec: §6.1, DEC-104.
    pub struct Identity = "Identity" {
        "CP-C1-F05" actor_id: ActorId,
        "CP-C1-F05" kind: IdentityKind,
        "CP-C1-F05" roles: Vec<ProducerRole>,
        "CP-C1-F05" capabilities: Vec<CapabilityId>,
        "CP-C1-F05" mechanisms: Vec<Mechanism>,
        "CP-C1-F05" keys: Vec<SigningKeyEntry>,
        /// Who appointed it; the user for the user itself (SR1).
        "CP-C1-F05" appointed_by: ActorId,
        "CP-C1-F05" revoked_at: Option<Timestamp>,
        "CP-C1-F05" standing: Standing;
        /// What one unit of its work uses of tokens and money at the most (§8.3). Left out, it uses none: whatever is paid
        /// for states its worst case, or no budget holds it.
        worst_case: Option<Amounts>
    }
}

crate::contract! {
    /// A registered source: who speaks for it and about which scope. Spec: C2, DEC-19.
    pub struct Source = "Source" {
        "CP-C2-F02" source_id: SourceId,
        /// The identities that may emit for it.
        "CP-C2-F02" emitters: Vec<ActorId>,
        "CP-C2-F02" scope: Scope,
        "CP-C2-F06" change_kinds: Vec<ChangeKindId>,
        "CP-C2-F02" standing: Standing,
    }
}
