//! OBLIGATION: a retained requirement or question. Spec: §5, C3.

use crate::contract::{Check, nonempty};
use crate::fault::Fault;
use crate::id::{
    ActorId, ChangeKindId, ConditionId, DependencyId, EntityId, Id, ObligationId, PropositionId, ReentryId, Text,
};
use crate::reentry::TypedPredicate;
use crate::refs::{ArtifactRef, Scope, VersionedRef};
use serde::{Deserialize, Serialize};

crate::words! {
    /// Where an obligation stands (DEC-26). The last three close it.
    pub enum ObligationStatus {
        /// Work may be chosen for it.
        Active = "active",
        /// It waits for an event.
        AwaitingEvent = "awaiting_event",
        /// It waits for the user's judgment.
        AwaitingUserJudgment = "awaiting_user_judgment",
        /// Its conditions are met.
        Resolved = "resolved",
        /// Another obligation covers what was left of it.
        Superseded = "superseded",
        /// Its origin took it back.
        Withdrawn = "withdrawn",
    }
}

impl ObligationStatus {
    /// Whether the obligation is still to be settled.
    #[must_use]
    pub const fn is_open(self) -> bool {
        match self {
            Self::Active | Self::AwaitingEvent | Self::AwaitingUserJudgment => true,
            Self::Resolved | Self::Superseded | Self::Withdrawn => false,
        }
    }
}

/// What an obligation comes from: a declaration or an accepted requirement, never an event or a model's claim (§1.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Origin {
    /// A declaration of the user.
    Declaration(ArtifactRef),
    /// A commit that accepted the requirement, such as a standing requirement of the profile (DEC-30).
    Commit(ArtifactRef),
}

impl Check for Origin {
    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Declaration(reference) => reference.check().map_err(|fault| fault.within("declaration")),
            Self::Commit(reference) => reference.check().map_err(|fault| fault.within("commit")),
        }
    }
}

crate::words! {
    /// How far a resolution condition has been assessed (DEC-33).
    pub enum AssessmentStatus {
        /// Not yet.
        Unassessed = "unassessed",
        /// The rule is satisfied.
        Met = "met",
        /// The rule is contradicted.
        NotMet = "not_met",
        /// The rule lacks support.
        Insufficient = "insufficient",
    }
}

crate::contract! {
    /// One condition under which the obligation is resolved. Spec: C3.
    pub struct Condition = "Condition" {
        "CP-C3-F13" id: ConditionId,
        "CP-C3-F14" proposition: PropositionId,
        "CP-C3-F15" evidence_rule_ref: VersionedRef,
        "CP-C3-F16" assessment_status: AssessmentStatus,
    }
}

crate::contract! {
    /// Why no trigger is armed, who answers for that, and when it is looked at again. Spec: C3.
    pub struct TriggerGap = "TriggerGap" {
        "CP-C3-F17" reason: Text,
        "CP-C3-F18" responsible_owner: ActorId,
        "CP-C3-F19" review_predicate: TypedPredicate,
    }
}

crate::contract! {
    /// What is missing, for people and by proposition. Spec: C3.
    pub struct Gap = "Gap" {
        "CP-C3-F04" text: Text,
        "CP-C3-F04" propositions: Vec<PropositionId>,
    }
}

/// What an obligation's dependency watches (§1.1, DEC-20). An empty list means that the facet is not required.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "on", rename_all = "snake_case", deny_unknown_fields)]
pub enum Watch {
    /// Changes of an entity in the world.
    Entity {
        /// The entity.
        entity_ref: EntityId,
        /// The scope that must contain the source's scope.
        scope: Scope,
        /// The kinds of change that matter.
        change_kinds: Vec<ChangeKindId>,
        /// Evidence of which at least one must be cited.
        evidence_ids: Vec<Id>,
    },
    /// An accepted item: a claim, grant, constraint, method or obligation.
    Item {
        /// The item's id.
        id: Id,
    },
}

impl Check for Watch {
    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Entity { entity_ref, scope, change_kinds, evidence_ids } => {
                entity_ref.check().map_err(|fault| fault.within("entity_ref"))?;
                scope.check().map_err(|fault| fault.within("scope"))?;
                change_kinds.check().map_err(|fault| fault.within("change_kinds"))?;
                evidence_ids.check().map_err(|fault| fault.within("evidence_ids"))
            }
            Self::Item { id } => id.check().map_err(|fault| fault.within("id")),
        }
    }
}

crate::contract! {
    /// One thing that an obligation depends on. Spec: C3.
    pub struct ObligationDependency = "ObligationDependency" {
        "CP-C3-F06" dependency_id: DependencyId,
        "CP-C3-F06" watch: Watch,
    }
}

crate::contract! {
    /// A retained question or requirement, with what would resolve it and the limit of its authority. Spec: C3.
    pub struct Obligation = "OBLIGATION" checked by Obligation::check_conditions {
        "CP-C3-F01" obligation_id: ObligationId,
        "CP-C3-F02" origin: Origin,
        "CP-C3-F03" scope: Scope,
        "CP-C3-F04" gap: Gap,
        #[schemars(length(min = 1))]
        "CP-C3-F05" resolution_conditions: Vec<Condition>,
        "CP-C3-F06" dependencies: Vec<ObligationDependency>,
        "CP-C3-F07" status: ObligationStatus,
        "CP-C3-F08" responsible_owner: ActorId,
        /// Constraints and grants that limit what may be done for it.
        "CP-C3-F09" authority_boundary: Vec<Id>,
        /// The identity whose positive position a closing adjudication must carry (DEC-28).
        "CP-C3-F10" closure_authority: ActorId,
        "CP-C3-F11" reentry_refs: Vec<ReentryId>,
        "CP-C3-F12" trigger_gap: Option<TriggerGap>;
        /// Extensions in reverse-DNS keys; digested, never read by a decision (DEC-09).
        extensions: Option<crate::envelope::Extensions>
    }
}

impl Obligation {
    fn check_conditions(&self) -> Result<(), Fault> {
        nonempty(&self.resolution_conditions, "resolution_conditions")
    }
}
