//! WORK and RESULT: one bounded question to a participant, and its answer. Spec: C5, C6.

use crate::contract::Check;
use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{CoalitionId, EvidenceId, Id, Key, ObservationStreamId, OperationId, PropositionId, Text, WorkId};
use crate::refs::{ArtifactRef, Parameters, Plain, Scope, Target, VersionedRef};
use crate::refusal::RefusalCode;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

crate::contract! {
    /// What is asked, and which subjects it is about. Spec: C5.
    pub struct Question = "Question" {
        "CP-C5-F02" text: Text,
        "CP-C5-F02" subject_refs: Vec<Id>,
    }
}

crate::contract! {
    /// One item of context with its immutable reference. Spec: C5.
    pub struct ContextItem = "ContextItem" checked by ContextItem::check_digest {
        "CP-C5-F06" reference: ArtifactRef,
        "CP-C5-F06" content: Plain,
    }
}

impl ContextItem {
    fn check_digest(&self) -> Result<(), Fault> {
        match crate::branch!(
            "work.context_digest_agrees",
            crate::canonical::digest_of(&self.content)? == self.reference.digest
        ) {
            true => Ok(()),
            false => Err(Fault::new(RefusalCode::DigestMismatch, "the content is not what its reference names")
                .within("content")),
        }
    }
}

crate::contract! {
    /// When bounded work stops. Spec: C5, §4.1.
    pub struct StopCondition = "StopCondition" {
        #[schemars(range(min = 1))]
        "CP-C5-F09" rounds_max: u32,
        #[schemars(range(min = 1))]
        "CP-C5-F09" calls_max: u32,
        #[schemars(range(min = 1))]
        "CP-C5-F09" time_ms_max: u64,
    }
}

crate::contract! {
    /// One bounded question to one participant. Spec: C5.
    pub struct Work = "WORK" checked by Work::check_bound {
        "CP-C5-F01" work_id: WorkId,
        "CP-C5-F02" question: Question,
        /// The assessment role, such as `worker` or `investigator`; an open set (DEC-104).
        "CP-C5-F03" role: Key,
        "CP-C5-F04" coalition_ref: CoalitionId,
        "CP-C5-F05" membership_version: u32,
        "CP-C5-F06" context_items: Vec<ContextItem>,
        "CP-C5-F07" proposal_vocabulary_ref: VersionedRef,
        "CP-C5-F08" output_contract_ref: VersionedRef,
        "CP-C5-F09" stop_condition: StopCondition,
        "CP-C5-F10" deadline: Option<Timestamp>;
        /// Extensions in reverse-DNS keys; digested, never read by a decision (DEC-09).
        extensions: Option<crate::envelope::Extensions>
    }
}

impl Work {
    fn check_bound(&self) -> Result<(), Fault> {
        let stop = &self.stop_condition;
        match stop.rounds_max > 0 && stop.calls_max > 0 && stop.time_ms_max > 0 {
            true => Ok(()),
            false => {
                Err(Fault::schema("work is bounded in rounds, calls and time, each at least 1")
                    .within("stop_condition"))
            }
        }
    }
}

crate::contract! {
    /// What is said to be so, in a structure that gives it its identity (DEC-39).
    pub struct Proposition = "Proposition" {
        "CP-C6-F02" proposition_id: PropositionId,
        "CP-C6-F02" subject: Id,
        "CP-C6-F02" predicate: Key,
        "CP-C6-F02" object: Plain,
        "CP-C6-F02" scope: Scope,
    }
}

crate::contract! {
    /// A conclusion a participant offers, with the conditions under which it applies. Spec: C6.
    pub struct ProposedClaim = "ProposedClaim" {
        "CP-C6-F02" proposition: Proposition,
        "CP-C6-F02" applicability: Vec<Text>,
    }
}

crate::words! {
    /// How an observed value is compared with an expected one.
    pub enum Comparison {
        /// Byte-equal canonical forms.
        Equals = "equals",
        /// An integer not below the expected one.
        AtLeast = "at_least",
        /// An integer not above the expected one.
        AtMost = "at_most",
        /// A timestamp not before the expected one.
        NotBefore = "not_before",
        /// A timestamp not after the expected one.
        NotAfter = "not_after",
    }
}

crate::contract! {
    /// What one named part of the target must show.
    pub struct Expectation = "Expectation" {
        "CP-C7-F05" field: Key,
        "CP-C7-F05" comparison: Comparison,
        "CP-C7-F05" value: Plain,
    }
}

crate::contract! {
    /// What the target shows when the effect took place. Spec: C7.
    pub struct Postcondition = "Postcondition" checked by Postcondition::check_nonempty {
        "CP-C7-F05" id: Id,
        #[schemars(length(min = 1))]
        "CP-C7-F05" expectations: Vec<Expectation>,
    }
}

impl Postcondition {
    fn check_nonempty(&self) -> Result<(), Fault> {
        crate::contract::nonempty(&self.expectations, "expectations")
    }
}

crate::contract! {
    /// An action a participant proposes. The planner turns it into an ACTION. Spec: C6.
    pub struct ActionProposal = "ActionProposal" {
        "CP-C6-F03" operation: OperationId,
        "CP-C6-F03" target: Target,
        "CP-C6-F03" parameters: Parameters,
        "CP-C6-F03" expected_postcondition: Postcondition,
    }
}

crate::words! {
    /// Whether the system itself found the cited evidence (DEC-32).
    pub enum ReferenceStatus {
        /// Found, with the cited digest.
        Resolved = "resolved",
        /// Not found.
        Unresolved = "unresolved",
        /// Found with other bytes.
        DigestMismatch = "digest_mismatch",
        /// Known, but its body cannot be read now.
        Unavailable = "unavailable",
    }
}

crate::words! {
    /// Whether the evidence is about the proposition's scope (DEC-32).
    pub enum ScopeMatch {
        /// It is.
        Applicable = "applicable",
        /// It is not.
        NotApplicable = "not_applicable",
        /// It cannot be told.
        Unknown = "unknown",
    }
}

crate::words! {
    /// What one item says about one proposition (§6.3).
    pub enum Relation {
        /// It speaks for it.
        Supports = "supports",
        /// It speaks against it.
        Contradicts = "contradicts",
        /// It says nothing about it.
        Irrelevant = "irrelevant",
        /// It cannot be told yet.
        Unresolved = "unresolved",
    }
}

/// The target's own version, or the explicit statement that it has none to show (§6.3): `null` on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "Option<Key>", into = "Option<Key>")]
pub enum TargetVersion {
    /// The version the source itself states.
    Known(Key),
    /// The source states none. Never replaced by a hash, time or counter.
    Unknown,
}

impl From<Option<Key>> for TargetVersion {
    fn from(version: Option<Key>) -> Self {
        version.map_or(Self::Unknown, Self::Known)
    }
}

impl From<TargetVersion> for Option<Key> {
    fn from(version: TargetVersion) -> Self {
        match version {
            TargetVersion::Known(version) => Some(version),
            TargetVersion::Unknown => None,
        }
    }
}

impl Check for TargetVersion {
    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Known(version) => version.check(),
            Self::Unknown => Ok(()),
        }
    }
}

crate::contract! {
    /// When and where in its stream an observation stands. Spec: §6.3.
    pub struct ValidAt = "ValidAt" {
        "CP-6.3-04" observed_at: Timestamp,
        "CP-6.3-04" observation_sequence_ref: ObservationStreamId,
        "CP-6.3-04" observation_version: u64,
        "CP-6.3-04" target_version: TargetVersion,
    }
}

crate::contract! {
    /// What one evidence item says about one proposition. Spec: §6.3, C6.
    pub struct EvidenceRelation = "EvidenceRelation" {
        "CP-C6-F08" proposition_id: PropositionId,
        "CP-C6-F09" evidence_id: EvidenceId,
        "CP-C6-F10" reference_status: ReferenceStatus,
        "CP-C6-F11" scope_match: ScopeMatch,
        "CP-C6-F12" relation: Relation,
        "CP-C6-F13" valid_at: ValidAt,
        "CP-C6-F14" limitations: Vec<Text>,
    }
}

crate::words! {
    /// Why a participant or assessor objects (DEC-38). The first two block under every rule.
    pub enum ReasonClass {
        /// No grant covers it.
        NoGrant = "no_grant",
        /// It lies outside a constraint.
        OutsideConstraint = "outside_constraint",
        /// Its factual support is contested.
        Factual = "factual",
        /// Something was left out.
        Omission = "omission",
        /// It is risky beyond its gain.
        Risk = "risk",
    }
}

crate::contract! {
    /// An objection to one exact subject. Spec: C6.
    pub struct Objection = "Objection" {
        "CP-C6-F05" subject: Digest,
        "CP-C6-F05" reason_class: ReasonClass,
        "CP-C6-F05" text: Text,
        "CP-C6-F05" evidence_ids: Vec<EvidenceId>,
    }
}

crate::words! {
    /// What it would take to resolve what is left open.
    pub enum Need {
        /// Evidence that research can bring.
        Evidence = "evidence",
        /// A preference that only the user has.
        Preference = "preference",
        /// Authority that only the user can give.
        Authority = "authority",
        /// A material tradeoff that belongs to the user.
        Tradeoff = "tradeoff",
        /// Context that the packet lacks.
        Prerequisite = "prerequisite",
    }
}

crate::contract! {
    /// Something left open, and what it would take. Spec: C6, C9.
    pub struct Unresolved = "Unresolved" {
        "CP-C6-F06" subject: Id,
        "CP-C6-F06" need: Need,
        "CP-C6-F06" text: Text,
    }
}

crate::contract! {
    /// A participant's answer to one unit of work. Every list may be empty. Spec: C6.
    pub struct WorkResult = "RESULT" {
        "CP-C6-F01" work_id: WorkId,
        "CP-C6-F02" claims: Vec<ProposedClaim>,
        "CP-C6-F03" action_proposals: Vec<ActionProposal>,
        "CP-C6-F04" assessments: Vec<EvidenceRelation>,
        "CP-C6-F05" objections: Vec<Objection>,
        "CP-C6-F06" unresolved: Vec<Unresolved>,
        "CP-C6-F07" skill_receipts: Vec<ArtifactRef>;
        /// Extensions in reverse-DNS keys; digested, never read by a decision (DEC-09).
        extensions: Option<crate::envelope::Extensions>
    }
}
