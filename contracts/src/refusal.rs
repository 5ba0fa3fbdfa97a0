//! Saying no: one closed set of refusal codes with stable numbers, and their precedence in a table of its own (DEC-01).
//!
//! A refusal is a value and is recorded. Each code has a page in `docs/refusals/`. Numbers are never reused; a retired
//! code keeps its number and its slug.

use crate::digest::Digest;
use crate::id::{Id, Text};
use crate::refs::StateRef;
use crate::time::Timestamp;

macro_rules! codes {
    ($($number:literal $variant:ident $slug:literal $spec:literal $doc:literal),+ $(,)?) => {
        /// Why something was refused. Closed: callers match every code.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[repr(u16)]
        pub enum RefusalCode {
            $(#[doc = $doc] #[doc = concat!(" Spec: ", $spec, ".")] #[serde(rename = $slug)] $variant = $number),+
        }

        impl RefusalCode {
            /// Every code, by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable slug, as in receipts, exit messages and page names.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $slug),+ }
            }

            /// Where the protocol asks for this refusal.
            #[must_use]
            pub const fn spec_ref(self) -> &'static str {
                match self { $(Self::$variant => $spec),+ }
            }

            /// One sentence for people.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $doc),+ }
            }
        }
    };
}

codes! {
    // Intake and schema
    101 Unauthenticated "unauthenticated" "§6.1" "The producer's identity is not established by a declared mechanism.",
    102 Duplicate "duplicate" "§1.1, §8.2" "The same thing has been recorded before.",
    103 KeyConflict "key_conflict" "DEC-23, DEC-107" "The same key or id came with other content.",
    104 SchemaInvalid "schema_invalid" "Appendix B" "The object does not have the contract's shape.",
    105 UnknownVersion "unknown_version" "§6.1, Appendix B" "A core version is not on the accept list.",
    106 UnresolvedRef "unresolved_ref" "§6" "A reference does not resolve to an object of its kind.",
    107 DigestMismatch "digest_mismatch" "§6.1, C10" "The bytes do not have the digest that names them.",
    108 Cardinality "cardinality" "§10.4" "There are more or fewer items than were asked for.",
    109 Oversize "oversize" "Appendix B" "A value is beyond its published bound.",
    // State and closure
    201 StaleParent "stale_parent" "§5, C10" "The delta names a parent that is no longer the accepted state.",
    202 StaleVersion "stale_version" "§4.2, DEC-46" "Something the action relies on has changed since it was assessed.",
    203 MissingEndorsement "missing_endorsement" "C10, C14" "No semantic-commit adjudication endorses this delta.",
    204 MissingAuthority "missing_authority" "§4.1, §5" "No authority covers this.",
    205 NotClosable "not_closable" "§5, C3" "An obligation is closed only by an adjudicated commit.",
    206 NoTrigger "no_trigger" "§5, C11" "An open obligation would be left without a trigger or a trigger gap.",
    207 UnsupportedPromotion "unsupported_promotion" "§5, §3.2" "A conclusion lacks assessed evidence or applicability.",
    208 NoOrigin "no_origin" "§1.1" "An obligation's origin is neither a declaration nor an accepted requirement.",
    // Action and dispatch
    301 UnregisteredOperation "unregistered_operation" "§3.3" "The operation is not in the registry.",
    302 CapabilityUndeclared "capability_undeclared" "SR8" "The actor has not declared this capability.",
    303 TargetMismatch "target_mismatch" "§4.2, C8" "The target is not the one assessed, granted or observed.",
    304 OutOfBounds "out_of_bounds" "C7, C14" "A parameter or resource is beyond the grant's bound.",
    305 GrantRevoked "grant_revoked" "§4.2, C14" "The grant has been revoked.",
    306 GrantExpired "grant_expired" "C7, C14" "The grant's period is over.",
    307 Restricted "restricted" "§7.2" "A restriction or constraint in force covers this.",
    308 SubjectMismatch "subject_mismatch" "§4.2" "An adjudication is bound to another subject.",
    309 WrongPhase "wrong_phase" "§4.2" "An adjudication of another phase was offered.",
    310 Unassessed "unassessed" "§4.2, §6.4" "This exact content has no pre-action adjudication in its favour.",
    311 KeyReuseChangedContent "key_reuse_changed_content" "§6.4" "The idempotency key already stands for other content.",
    312 OutcomeUnknown "outcome_unknown" "§8.2" "An earlier attempt on this operation and target is not settled.",
    313 NotRepeatSafe "not_repeat_safe" "§8.2" "The registered operation does not allow repetition.",
    314 StaleEpoch "stale_epoch" "§6.4, §8.2" "The ownership epoch is not the current one.",
    315 LeaseExpired "lease_expired" "C12" "The owner's lease has expired.",
    // Budget
    401 BudgetExceeded "budget_exceeded" "§8.3" "The worst case of the whole unit does not fit the budget.",
    402 UncappedRoute "uncapped_route" "§8.3" "The route cannot hold the hard cap that the contract demands.",
    // Urgent path
    501 NotRestrictive "not_restrictive" "§7.2" "The urgent path carries restrictions and nothing else.",
    502 MissingDeadline "missing_deadline" "§7.2, C14" "An urgent commit names a finite reconciliation deadline.",
    503 ScopeExceeded "scope_exceeded" "§7.2" "The restriction lies outside the issuer's appointed scope.",
    504 IssuerLimit "issuer_limit" "§7.2, DEC-75" "The issuer has as many outstanding cases as it may have.",
    505 IssuerSuspended "issuer_suspended" "§7.2" "The issuer may not make further broad restrictions.",
    506 SelfPrivilege "self_privilege" "§7.2" "An issuer may not alter its own emergency privileges.",
    // Inquiry
    601 NotReleased "not_released" "§4.1" "The position is sealed until its release.",
    602 MoveNotAllowed "move_not_allowed" "§4.1" "The work contract does not allow this move.",
    603 RoundLimit "round_limit" "§4.1" "The declared rounds, calls or time are used up.",
    604 ForeignAssent "foreign_assent" "§4.1" "Nobody records assent for another participant.",
    605 MembershipStale "membership_stale" "C4" "The work names an older membership version.",
    // Disclosure
    701 DisclosureDenied "disclosure_denied" "§4.3" "No policy releases this item to this recipient for this purpose.",
    702 CoverageMissing "coverage_missing" "§4.3, C12" "Required context is not covered.",
    703 ReleaseStopped "release_stopped" "§4.3" "Release of this item has been stopped by an incident.",
    704 RedistributionDenied "redistribution_denied" "§4.3" "Holding a receipt gives no right to pass its contents on.",
    // Handoff, registry, Bench, profile
    801 ConsentMissing "consent_missing" "C12" "The recipient has not consented to this exact handoff.",
    802 ContractIncompatible "contract_incompatible" "C4, C12" "The contract or version is not the one pinned.",
    803 EndpointMismatch "endpoint_mismatch" "§3.3, C4" "The endpoint is not the one that was verified.",
    804 RegistryExpired "registry_expired" "§3.3, C4" "The registry entry or its verification has expired.",
    805 StalePacket "stale_packet" "C14, DEC-64" "The answer is to an older version of the packet.",
    806 NotAGrant "not_a_grant" "C13" "An acknowledgment is not an authorization.",
    807 ProfileIncomplete "profile_incomplete" "Appendix A" "The deployment profile leaves a question open that this needs.",
    // Runtime
    901 Busy "busy" "design §6" "More work is admitted than can be carried now; nothing was recorded of this input.",
    902 StorageFull "storage_full" "design §3" "Ordinary work may not use the reserved space of the log.",
    903 ClockUnreliable "clock_unreliable" "DEC-59" "The clock cannot be trusted, so nothing that depends on time is permitted.",
    904 NoAnswer "no_answer" "C6, §4.1" "The participant cannot be reached, or said nothing in time.",
}

/// The order in which refusals of one input are told: the caller gets the first that applies.
///
/// Cheapest and most fundamental first, in the order in which the monitor judges. Every code stands here once.
pub const PRECEDENCE: &[RefusalCode] = &[
    RefusalCode::Unauthenticated,
    RefusalCode::UnknownVersion,
    RefusalCode::SchemaInvalid,
    RefusalCode::Oversize,
    RefusalCode::Cardinality,
    RefusalCode::DigestMismatch,
    RefusalCode::KeyConflict,
    RefusalCode::Duplicate,
    RefusalCode::UnresolvedRef,
    RefusalCode::ClockUnreliable,
    RefusalCode::ProfileIncomplete,
    RefusalCode::CapabilityUndeclared,
    RefusalCode::UnregisteredOperation,
    RefusalCode::RegistryExpired,
    RefusalCode::EndpointMismatch,
    RefusalCode::ContractIncompatible,
    RefusalCode::TargetMismatch,
    RefusalCode::MissingAuthority,
    RefusalCode::GrantRevoked,
    RefusalCode::GrantExpired,
    RefusalCode::OutOfBounds,
    RefusalCode::Restricted,
    RefusalCode::StaleVersion,
    RefusalCode::StaleParent,
    RefusalCode::WrongPhase,
    RefusalCode::SubjectMismatch,
    RefusalCode::Unassessed,
    RefusalCode::MissingEndorsement,
    RefusalCode::StaleEpoch,
    RefusalCode::LeaseExpired,
    RefusalCode::KeyReuseChangedContent,
    RefusalCode::OutcomeUnknown,
    RefusalCode::NotRepeatSafe,
    RefusalCode::DisclosureDenied,
    RefusalCode::CoverageMissing,
    RefusalCode::ReleaseStopped,
    RefusalCode::RedistributionDenied,
    RefusalCode::UncappedRoute,
    RefusalCode::BudgetExceeded,
    RefusalCode::SelfPrivilege,
    RefusalCode::NotRestrictive,
    RefusalCode::MissingDeadline,
    RefusalCode::ScopeExceeded,
    RefusalCode::IssuerSuspended,
    RefusalCode::IssuerLimit,
    RefusalCode::NotClosable,
    RefusalCode::NoTrigger,
    RefusalCode::UnsupportedPromotion,
    RefusalCode::NoOrigin,
    RefusalCode::NotReleased,
    RefusalCode::MoveNotAllowed,
    RefusalCode::RoundLimit,
    RefusalCode::ForeignAssent,
    RefusalCode::MembershipStale,
    RefusalCode::ConsentMissing,
    RefusalCode::StalePacket,
    RefusalCode::NotAGrant,
    RefusalCode::NoAnswer,
    RefusalCode::StorageFull,
    RefusalCode::Busy,
];

impl RefusalCode {
    /// The stable number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The code's place in [`PRECEDENCE`], 0 first.
    #[must_use]
    pub fn precedence(self) -> usize {
        PRECEDENCE.iter().position(|&code| code == self).unwrap_or(PRECEDENCE.len())
    }

    /// Whether the same input may succeed later without being changed. Each code is listed by hand.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::OutcomeUnknown
            | Self::BudgetExceeded
            | Self::IssuerLimit
            | Self::NotReleased
            | Self::Busy
            | Self::StorageFull
            | Self::NoAnswer
            | Self::ClockUnreliable => true,
            Self::Unauthenticated
            | Self::Duplicate
            | Self::KeyConflict
            | Self::SchemaInvalid
            | Self::UnknownVersion
            | Self::UnresolvedRef
            | Self::DigestMismatch
            | Self::Cardinality
            | Self::Oversize
            | Self::StaleParent
            | Self::StaleVersion
            | Self::MissingEndorsement
            | Self::MissingAuthority
            | Self::NotClosable
            | Self::NoTrigger
            | Self::UnsupportedPromotion
            | Self::NoOrigin
            | Self::UnregisteredOperation
            | Self::CapabilityUndeclared
            | Self::TargetMismatch
            | Self::OutOfBounds
            | Self::GrantRevoked
            | Self::GrantExpired
            | Self::Restricted
            | Self::SubjectMismatch
            | Self::WrongPhase
            | Self::Unassessed
            | Self::KeyReuseChangedContent
            | Self::NotRepeatSafe
            | Self::StaleEpoch
            | Self::LeaseExpired
            | Self::UncappedRoute
            | Self::NotRestrictive
            | Self::MissingDeadline
            | Self::ScopeExceeded
            | Self::IssuerSuspended
            | Self::SelfPrivilege
            | Self::MoveNotAllowed
            | Self::RoundLimit
            | Self::ForeignAssent
            | Self::MembershipStale
            | Self::DisclosureDenied
            | Self::CoverageMissing
            | Self::ReleaseStopped
            | Self::RedistributionDenied
            | Self::ConsentMissing
            | Self::ContractIncompatible
            | Self::EndpointMismatch
            | Self::RegistryExpired
            | Self::StalePacket
            | Self::NotAGrant
            | Self::ProfileIncomplete => false,
        }
    }

    /// The code with this slug.
    #[must_use]
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == slug)
    }
}

impl std::fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl crate::contract::Check for RefusalCode {
    fn check(&self) -> Result<(), crate::fault::Fault> {
        Ok(())
    }
}

crate::words! {
    /// Which of the five separately reported checks said no (Appendix B), or which other decision did.
    pub enum CheckKind {
        /// Who sent it.
        Authentication = "authentication",
        /// Its shape, bounds and digests.
        Schema = "schema",
        /// Whether what it cites exists.
        Resolution = "resolution",
        /// Whether evidence supports it.
        Support = "support",
        /// Whether authority covers it now.
        Authority = "authority",
        /// What the target itself shows.
        Readback = "readback",
        /// Whether it fits the resources and order of the runtime.
        Runtime = "runtime",
    }
}

/// One recorded refusal: the code, which check said no, of what, on which basis and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// The code.
    pub code: RefusalCode,
    /// The check that failed.
    pub check: CheckKind,
    /// The id of what was refused.
    pub subject: Id,
    /// The digest of what was refused, where it had one.
    pub subject_digest: Option<Digest>,
    /// The offending reference: the changed fact, the missing id, the field's path.
    pub offending: Option<Text>,
    /// Why, in the user's vocabulary.
    pub reason: Text,
    /// The accepted state when it was refused; absent before there is one.
    pub state_basis: Option<StateRef>,
    /// When it was refused.
    pub refused_at: Timestamp,
}

/// A check that said no, before it is recorded as a [`Refusal`] of one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The code.
    pub code: RefusalCode,
    /// The check that failed.
    pub check: CheckKind,
    /// The offending reference: the changed fact, the missing id, the field's path.
    pub offending: Option<String>,
    /// Why, in the user's vocabulary.
    pub reason: String,
}

impl Denial {
    /// A denial without an offending reference.
    #[must_use]
    pub fn new(code: RefusalCode, check: CheckKind, reason: impl Into<String>) -> Self {
        Self { code, check, offending: None, reason: reason.into() }
    }

    /// The same denial, naming what gave offence.
    #[must_use]
    pub fn of(mut self, offending: impl std::fmt::Display) -> Self {
        self.offending = Some(offending.to_string());
        self
    }
}

impl From<crate::fault::Fault> for Denial {
    fn from(fault: crate::fault::Fault) -> Self {
        let offending = (!fault.path.is_empty()).then_some(fault.path);
        let check = [
            (RefusalCode::Unauthenticated, CheckKind::Authentication),
            (RefusalCode::UnresolvedRef, CheckKind::Resolution),
            (RefusalCode::MissingAuthority, CheckKind::Authority),
        ]
        .into_iter()
        .find_map(|(code, check)| (code == fault.code).then_some(check))
        .unwrap_or(CheckKind::Schema);
        Self { code: fault.code, check, offending, reason: fault.reason.into_owned() }
    }
}

/// The first denial in precedence, which is the one the caller is told.
#[must_use]
pub fn foremost(denials: &[Denial]) -> Option<&Denial> {
    denials.iter().min_by_key(|denial| denial.code.precedence())
}

/// The first refusal in precedence, which is the one the caller is told.
#[must_use]
pub fn first(refusals: &[Refusal]) -> Option<&Refusal> {
    refusals.iter().min_by_key(|refusal| refusal.code.precedence())
}
