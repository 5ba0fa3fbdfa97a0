//! DELTA: immutable proposed changes against a named parent, each of a declared class. Spec: §5, C10, DEC-95.

use crate::contract::{Check, nonempty, present};
use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{ActorId, DeltaId, DependencyId, GrantId, Id, ObligationId, RestrictionId, Text};
use crate::item::{Dependency, Item, ItemKind, Restriction};
use crate::obligation::{Condition, Obligation, ObligationStatus, TriggerGap};
use crate::reentry::Reentry;
use crate::refs::{ArtifactRef, StateRef};
use crate::refusal::RefusalCode;
use crate::work::EvidenceRelation;
use serde::{Deserialize, Serialize};

crate::words! {
    /// How a delta seeks admission (C10).
    pub enum AdmissionPath {
        /// With a semantic-commit endorsement.
        Ordinary = "ordinary",
        /// An authenticated narrow restriction, reviewed afterwards (§7.2).
        UrgentRestrictive = "urgent_restrictive",
    }
}

crate::words! {
    /// What kind of authority a change needs (DEC-95).
    pub enum ChangeClass {
        /// What is known or how an open obligation stands: evidence and endorsement.
        Descriptive = "descriptive",
        /// What is wanted, required or permitted: its own authority.
        Normative = "normative",
        /// Less is permitted than before: also open to the urgent path.
        Restrictive = "restrictive",
        /// An obligation is settled: its closure authority.
        Closing = "closing",
    }
}

/// One typed change of accepted state (DEC-95).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "change", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// A new item of a kind that is not an obligation.
    Add {
        /// The item.
        item: Box<Item>,
    },
    /// New content for an existing item.
    Revise {
        /// The item's new content.
        item: Box<Item>,
        /// The digest of the content it replaces.
        replaces: Digest,
    },
    /// The item is not usable as current until revised.
    Suspend {
        /// The item's kind.
        kind: ItemKind,
        /// The item.
        id: Id,
        /// Why.
        reason: Text,
    },
    /// The item is no longer accepted; what rests on it is suspended.
    Retract {
        /// The item's kind.
        kind: ItemKind,
        /// The item.
        id: Id,
        /// Why.
        reason: Text,
    },
    /// The grant permits nothing any more, nor do its delegates.
    RevokeGrant {
        /// The grant.
        grant_id: GrantId,
        /// Why.
        reason: Text,
    },
    /// The obligation is accepted.
    AdmitObligation {
        /// The obligation.
        obligation: Box<Obligation>,
        /// The triggers it is admitted with.
        reentries: Vec<Reentry>,
    },
    /// The obligation stands elsewhere; resolved, superseded and withdrawn close it.
    SetStatus {
        /// The obligation.
        obligation_id: ObligationId,
        /// Its new status.
        status: ObligationStatus,
        /// The admitted successor of a superseded obligation.
        #[serde(deserialize_with = "present")]
        successor: Option<ObligationId>,
        /// Why.
        reason: Text,
    },
    /// The assessment of its conditions has changed.
    SetConditions {
        /// The obligation.
        obligation_id: ObligationId,
        /// All its conditions.
        #[schemars(length(min = 1))]
        conditions: Vec<Condition>,
    },
    /// Its triggers are installed, re-armed or replaced.
    SetTriggers {
        /// The obligation.
        obligation_id: ObligationId,
        /// All its triggers from now on.
        reentries: Vec<Reentry>,
        /// Why there is none, where there is none.
        #[serde(deserialize_with = "present")]
        trigger_gap: Option<TriggerGap>,
    },
    /// Another identity answers for it.
    SetOwner {
        /// The obligation.
        obligation_id: ObligationId,
        /// The new owner.
        responsible_owner: ActorId,
    },
    /// One item rests on another.
    AddDependency {
        /// The dependency.
        dependency: Dependency,
    },
    /// It no longer does.
    RemoveDependency {
        /// The dependency.
        dependency_id: DependencyId,
    },
    /// Actions in a scope are not eligible until the restriction is lifted.
    SuspendEligibility {
        /// The restriction.
        restriction: Restriction,
    },
    /// A restriction no longer holds, after an authorized reassessment (DEC-76).
    LiftRestriction {
        /// The restriction.
        restriction_id: RestrictionId,
        /// The urgent receipt that was reassessed.
        urgent_receipt: ArtifactRef,
        /// Why.
        reason: Text,
    },
}

impl Change {
    /// The class that decides which authority and which path the change needs.
    #[must_use]
    pub fn class(&self) -> ChangeClass {
        match self {
            Self::Add { item } | Self::Revise { item, .. } => item.kind().class(),
            Self::Suspend { kind, .. } | Self::Retract { kind, .. } => kind.class(),
            Self::RevokeGrant { .. } | Self::SuspendEligibility { .. } => ChangeClass::Restrictive,
            Self::LiftRestriction { .. } => ChangeClass::Normative,
            Self::SetStatus { status, .. } => match status.is_open() {
                true => ChangeClass::Descriptive,
                false => ChangeClass::Closing,
            },
            Self::AdmitObligation { .. }
            | Self::SetConditions { .. }
            | Self::SetTriggers { .. }
            | Self::SetOwner { .. }
            | Self::AddDependency { .. }
            | Self::RemoveDependency { .. } => ChangeClass::Descriptive,
        }
    }

    /// The item the change is about.
    #[must_use]
    pub fn subject(&self) -> (ItemKind, Id) {
        match self {
            Self::Add { item } | Self::Revise { item, .. } => (item.kind(), item.id()),
            Self::Suspend { kind, id, .. } | Self::Retract { kind, id, .. } => (*kind, id.clone()),
            Self::RevokeGrant { grant_id, .. } => (ItemKind::Grant, grant_id.into()),
            Self::AdmitObligation { obligation, .. } => (ItemKind::Obligation, (&obligation.obligation_id).into()),
            Self::SetStatus { obligation_id, .. }
            | Self::SetConditions { obligation_id, .. }
            | Self::SetTriggers { obligation_id, .. }
            | Self::SetOwner { obligation_id, .. } => (ItemKind::Obligation, obligation_id.into()),
            Self::AddDependency { dependency } => (ItemKind::Dependency, (&dependency.dependency_id).into()),
            Self::RemoveDependency { dependency_id } => (ItemKind::Dependency, dependency_id.into()),
            Self::SuspendEligibility { restriction } => (ItemKind::Restriction, (&restriction.restriction_id).into()),
            Self::LiftRestriction { restriction_id, .. } => (ItemKind::Restriction, restriction_id.into()),
        }
    }
}

impl Check for Change {
    fn check(&self) -> Result<(), Fault> {
        let (_, id) = self.subject();
        id.check()?;
        match self {
            Self::Add { item } | Self::Revise { item, .. } => match item.kind() {
                ItemKind::Obligation | ItemKind::Reentry | ItemKind::Dependency | ItemKind::Restriction => {
                    Err(Fault::schema(format!("a {} has changes of its own", item.kind())).within("item"))
                }
                ItemKind::Goal
                | ItemKind::Constraint
                | ItemKind::Grant
                | ItemKind::Claim
                | ItemKind::Method
                | ItemKind::Operation
                | ItemKind::ReadbackMethod
                | ItemKind::Identity
                | ItemKind::Source
                | ItemKind::Rule
                | ItemKind::Policy
                | ItemKind::Appointment
                | ItemKind::Profile => item.check().map_err(|fault| fault.within("item")),
            },
            Self::Suspend { reason, .. } | Self::Retract { reason, .. } | Self::RevokeGrant { reason, .. } => {
                reason.check().map_err(|fault| fault.within("reason"))
            }
            Self::SetStatus { successor, reason, .. } => {
                successor.check().map_err(|fault| fault.within("successor"))?;
                reason.check().map_err(|fault| fault.within("reason"))
            }
            Self::LiftRestriction { urgent_receipt, reason, .. } => {
                urgent_receipt.check().map_err(|fault| fault.within("urgent_receipt"))?;
                reason.check().map_err(|fault| fault.within("reason"))
            }
            Self::AdmitObligation { obligation, reentries } => {
                obligation.check().map_err(|fault| fault.within("obligation"))?;
                reentries.check().map_err(|fault| fault.within("reentries"))
            }
            Self::SetConditions { conditions, .. } => {
                nonempty(conditions, "conditions")?;
                conditions.check().map_err(|fault| fault.within("conditions"))
            }
            Self::SetTriggers { reentries, trigger_gap, .. } => {
                reentries.check().map_err(|fault| fault.within("reentries"))?;
                trigger_gap.check().map_err(|fault| fault.within("trigger_gap"))
            }
            Self::SetOwner { responsible_owner, .. } => {
                responsible_owner.check().map_err(|fault| fault.within("responsible_owner"))
            }
            Self::AddDependency { dependency } => dependency.check().map_err(|fault| fault.within("dependency")),
            Self::RemoveDependency { .. } => Ok(()),
            Self::SuspendEligibility { restriction } => {
                restriction.check().map_err(|fault| fault.within("restriction"))
            }
        }
    }
}

crate::words! {
    /// Where a normative change takes its authority from.
    pub enum AuthorityKind {
        /// A declaration of the user.
        Declaration = "declaration",
        /// A decision of the user on a packet.
        UserDecision = "user_decision",
        /// The deployment profile in force.
        Profile = "profile",
        /// An issuer's appointment.
        Appointment = "appointment",
        /// An authenticated instruction of an identity that may change this kind.
        Instruction = "instruction",
    }
}

crate::contract! {
    /// One authority a delta relies on. Spec: C10.
    pub struct AuthorityRef = "AuthorityRef" {
        "CP-C10-F06" kind: AuthorityKind,
        "CP-C10-F06" reference: ArtifactRef,
    }
}

crate::contract! {
    /// Immutable proposed changes against a named parent. Spec: C10.
    pub struct Delta = "DELTA" checked by Delta::check_body {
        "CP-C10-F01" delta_id: DeltaId,
        "CP-C10-F02" parent_state: StateRef,
        #[schemars(length(min = 1))]
        "CP-C10-F03" changes: Vec<Change>,
        "CP-C10-F04" support_relations: Vec<EvidenceRelation>,
        "CP-C10-F05" dependency_updates: Vec<Dependency>,
        "CP-C10-F06" required_authority_refs: Vec<AuthorityRef>,
        "CP-C10-F07" admission_path: AdmissionPath,
        "CP-C10-F08" proposal_digest: Digest;
        /// Extensions in reverse-DNS keys; digested, never read by a decision (DEC-09).
        extensions: Option<crate::envelope::Extensions>
    }
}

impl Delta {
    /// The digest over the whole body except itself.
    ///
    /// # Errors
    /// `schema_invalid` when the body has no canonical form.
    pub fn compute_proposal_digest(&self) -> Result<Digest, Fault> {
        crate::envelope::digest_without(self, "proposal_digest")
    }

    /// The same delta with its proposal digest filled in.
    ///
    /// # Errors
    /// As [`Delta::compute_proposal_digest`].
    pub fn sealed(mut self) -> Result<Self, Fault> {
        self.proposal_digest = self.compute_proposal_digest()?;
        Ok(self)
    }

    /// Whether any change is of this class.
    #[must_use]
    pub fn has(&self, class: ChangeClass) -> bool {
        self.changes.iter().any(|change| change.class() == class)
    }

    fn check_body(&self) -> Result<(), Fault> {
        nonempty(&self.changes, "changes")?;
        match crate::branch!("delta.proposal_digest_agrees", self.compute_proposal_digest()? == self.proposal_digest) {
            true => Ok(()),
            false => Err(Fault::new(RefusalCode::DigestMismatch, "the proposal digest is not that of the body")
                .within("proposal_digest")),
        }
    }
}
