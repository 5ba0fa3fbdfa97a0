//! ADJUDICATION: one judgment in one of three phases, bound to its own subject. Spec: §4.2, C9.

use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{ActorId, AdjudicationId, Key, Text};
use crate::refs::{ArtifactRef, EvidenceSnapshot, StateRef, SubjectType, TypedRef, VersionedRef};
use crate::refusal::RefusalCode;
use crate::work::{ReasonClass, Unresolved};

crate::words! {
    /// The three adjudication moments (§4.2).
    pub enum Phase {
        /// Is this proposed effect justified and permitted?
        PreAction = "pre_action",
        /// What did the attempted operation establish?
        PostOutcome = "post_outcome",
        /// Which proposed changes may become accepted state?
        SemanticCommit = "semantic_commit",
    }
}

impl Phase {
    /// The only type of subject that this phase can be about.
    #[must_use]
    pub const fn subject_type(self) -> SubjectType {
        match self {
            Self::PreAction => SubjectType::Action,
            Self::PostOutcome => SubjectType::Readback,
            Self::SemanticCommit => SubjectType::Delta,
        }
    }
}

crate::words! {
    /// What an adjudication came to (DEC-36). Each value belongs to one phase.
    pub enum Disposition {
        /// Pre-action: the effect is justified.
        Justified = "justified",
        /// Pre-action: it is not.
        NotJustified = "not_justified",
        /// Pre-action: put off.
        Deferred = "deferred",
        /// Post-outcome: the readback establishes the postcondition.
        Established = "established",
        /// Post-outcome: it establishes something else.
        NotEstablished = "not_established",
        /// Post-outcome: it cannot be told.
        Unknown = "unknown",
        /// Semantic commit: the changes may be accepted.
        Endorsed = "endorsed",
        /// Semantic commit: they may not.
        Rejected = "rejected",
        /// Pre-action or semantic commit: the support does not suffice.
        Insufficient = "insufficient",
    }
}

impl Disposition {
    /// Whether the value belongs to the phase.
    #[must_use]
    pub const fn belongs_to(self, phase: Phase) -> bool {
        match self {
            Self::Justified | Self::NotJustified | Self::Deferred => matches!(phase, Phase::PreAction),
            Self::Established | Self::NotEstablished | Self::Unknown => matches!(phase, Phase::PostOutcome),
            Self::Endorsed | Self::Rejected => matches!(phase, Phase::SemanticCommit),
            Self::Insufficient => matches!(phase, Phase::PreAction | Phase::SemanticCommit),
        }
    }

    /// Whether the value lets its subject go on: effect, claim or commit.
    #[must_use]
    pub const fn is_positive(self) -> bool {
        match self {
            Self::Justified | Self::Established | Self::Endorsed => true,
            Self::NotJustified
            | Self::Deferred
            | Self::NotEstablished
            | Self::Unknown
            | Self::Rejected
            | Self::Insufficient => false,
        }
    }
}

crate::words! {
    /// What one position holds.
    pub enum Stance {
        /// For it.
        For = "for",
        /// Against it.
        Against = "against",
        /// Absent: never assent (DEC-38).
        Absent = "absent",
    }
}

crate::contract! {
    /// One role's position with the receipt it is taken from. Spec: C9.
    pub struct RolePosition = "RolePosition" {
        "CP-C9-F07" actor: ActorId,
        "CP-C9-F07" role: Key,
        "CP-C9-F07" position: Stance,
        "CP-C9-F07" reason: Text,
        "CP-C9-F07" receipt: ArtifactRef,
    }
}

crate::contract! {
    /// A position that was not followed; it outlives every later receipt. Spec: C9, C15.
    pub struct Dissent = "Dissent" {
        "CP-C9-F09" actor: ActorId,
        "CP-C9-F09" subject: Digest,
        "CP-C9-F09" reason_class: ReasonClass,
        "CP-C9-F09" text: Text,
    }
}

crate::contract! {
    /// One judgment under one declared rule. Spec: C9.
    pub struct Adjudication = "ADJUDICATION" checked by Adjudication::check_phase {
        "CP-C9-F01" adjudication_id: AdjudicationId,
        "CP-C9-F02" phase: Phase,
        "CP-C9-F03" subject: TypedRef,
        "CP-C9-F04" evidence_snapshot: EvidenceSnapshot,
        "CP-C9-F05" readback_refs: Vec<ArtifactRef>,
        "CP-C9-F06" governing_basis: StateRef,
        "CP-C9-F07" role_positions: Vec<RolePosition>,
        "CP-C9-F08" decision_rule_ref: VersionedRef,
        "CP-C9-F09" dissent: Vec<Dissent>,
        "CP-C9-F10" unresolved: Vec<Unresolved>,
        "CP-C9-F11" disposition: Disposition;
        /// Extensions in reverse-DNS keys; digested, never read by a decision (DEC-09).
        extensions: Option<crate::envelope::Extensions>
    }
}

impl Adjudication {
    fn check_phase(&self) -> Result<(), Fault> {
        if !self.disposition.belongs_to(self.phase) {
            return Err(Fault::schema(format!("`{}` is no disposition of phase `{}`", self.disposition, self.phase))
                .within("disposition"));
        }
        let bound = self.subject.r#type == self.phase.subject_type();
        if !crate::branch!("adjudication.subject_fits_phase", bound) {
            let reason = format!("phase `{}` is about a subject of type `{}`", self.phase, self.phase.subject_type());
            return Err(Fault::new(RefusalCode::SubjectMismatch, reason).within("subject"));
        }
        let read = self.phase == Phase::PostOutcome && self.readback_refs.is_empty();
        match crate::branch!("adjudication.outcome_cites_readback", read) {
            true => Err(Fault::schema("a post-outcome adjudication cites its readback").within("readback_refs")),
            false => Ok(()),
        }
    }
}
