//! The items of accepted state: seven kinds of §5, and the registry that the monitor trusts. Spec: §5, DEC-44, DEC-104.

use crate::audit::Grant;
use crate::contract::{Check, nonempty};
use crate::delta::ChangeClass;
use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{
    ActorId, ClaimId, ConstraintId, DependencyId, GoalId, GrantId, Id, Key, MethodId, ObligationId, OperationId,
    RestrictionId, Text,
};
use crate::obligation::Obligation;
use crate::reentry::Reentry;
use crate::refs::{ArtifactRef, Plain, Scope, TargetPattern, VersionedRef};
use crate::work::{EvidenceRelation, Proposition};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

mod catalogue;
mod registry;
mod rule;

pub use catalogue::{Capability, Coalition, Inquiry, Member, Skill, Workflow};
pub use registry::{
    EffectClass, Identity, IdentityKind, Mechanism, OperationEntry, ParameterRule, ParameterType, ReadbackMethod,
    RepeatSafety, SigningKeyEntry, Source, Verification,
};
pub use rule::{Appointment, Policy, PolicyBody, Rule, RuleBody, Shown};

crate::words! {
    /// The kinds of accepted items: the seven of §5, then triggers, restrictions and the registry.
    pub enum ItemKind {
        /// A desired outcome.
        Goal = "goal",
        /// A required boundary.
        Constraint = "constraint",
        /// A permitted effect.
        Grant = "grant",
        /// Scoped support for a proposition.
        Claim = "claim",
        /// A reusable procedure.
        Method = "method",
        /// An unresolved condition.
        Obligation = "obligation",
        /// What relies on what.
        Dependency = "dependency",
        /// An installed trigger.
        Reentry = "reentry",
        /// A restriction in force.
        Restriction = "restriction",
        /// A registered operation.
        Operation = "operation",
        /// A registered way to read a target back.
        ReadbackMethod = "readback_method",
        /// A registered identity with its keys.
        Identity = "identity",
        /// A registered source of events and evidence.
        Source = "source",
        /// A registered rule.
        Rule = "rule",
        /// A registered policy.
        Policy = "policy",
        /// An appointment of an urgent issuer.
        Appointment = "appointment",
        /// A coalition: who works on what.
        Coalition = "coalition",
        /// A registered capability with its verified endpoints.
        Capability = "capability",
        /// A workflow of the catalogue.
        Workflow = "workflow",
        /// A skill of the catalogue.
        Skill = "skill",
        /// The deployment profile in force.
        Profile = "profile",
    }
}

impl ItemKind {
    /// The class of adding, revising, suspending or retracting an item of this kind.
    #[must_use]
    pub const fn class(self) -> ChangeClass {
        match self {
            Self::Claim
            | Self::Method
            | Self::Obligation
            | Self::Dependency
            | Self::Reentry
            | Self::Workflow
            | Self::Skill => ChangeClass::Descriptive,
            Self::Restriction => ChangeClass::Restrictive,
            Self::Goal
            | Self::Constraint
            | Self::Grant
            | Self::Operation
            | Self::ReadbackMethod
            | Self::Identity
            | Self::Source
            | Self::Rule
            | Self::Policy
            | Self::Appointment
            | Self::Coalition
            | Self::Capability
            | Self::Profile => ChangeClass::Normative,
        }
    }
}

crate::words! {
    /// Whether an accepted item may be used as current (DEC-35).
    pub enum Standing {
        /// It may.
        Current = "current",
        /// Not until it is revised: a premise of it was invalidated, or it was suspended.
        Suspended = "suspended",
        /// It is history.
        Retracted = "retracted",
    }
}

crate::contract! {
    /// A desired outcome. It permits nothing by itself. Spec: §5.
    pub struct Goal = "Goal" {
        "CP-5-02" goal_id: GoalId,
        "CP-5-02" declaration: ArtifactRef,
        "CP-5-02" text: Text,
        "CP-5-02" scope: Scope,
        "CP-5-02" standing: Standing,
    }
}

crate::contract! {
    /// The values a parameter may take. Absent members do not limit.
    pub struct ParameterBound = "ParameterBound" {
        "CP-C14-F20" operation: OperationId,
        "CP-C14-F20" parameter: Key,
        "CP-C14-F20" at_least: Option<i64>,
        "CP-C14-F20" at_most: Option<i64>,
        /// The only values allowed.
        "CP-C14-F20" one_of: Option<Vec<Plain>>,
    }
}

impl ParameterBound {
    /// Whether the value lies within the bound. A value that cannot be compared does not.
    #[must_use]
    pub fn admits(&self, value: Option<&Plain>) -> bool {
        let Some(value) = value else { return false };
        let integer = value.as_integer();
        let low = self.at_least.is_none_or(|bound| integer.is_some_and(|integer| integer >= bound));
        let high = self.at_most.is_none_or(|bound| integer.is_some_and(|integer| integer <= bound));
        let member = self.one_of.as_ref().is_none_or(|allowed| allowed.contains(value));
        low && high && member
    }
}

crate::contract! {
    /// A required boundary on actions: those it applies to must stay within its bounds; without bounds they are forbidden.
    pub struct Constraint = "Constraint" {
        "CP-5-02" constraint_id: ConstraintId,
        "CP-5-02" statement: Text,
        "CP-5-02" scope: Scope,
        /// The operations it applies to; empty for all.
        "CP-5-02" operations: Vec<OperationId>,
        /// The targets it applies to; empty for all.
        "CP-5-02" targets: Vec<TargetPattern>,
        "CP-5-02" bounds: Vec<ParameterBound>,
        "CP-5-02" standing: Standing,
    }
}

crate::contract! {
    /// An accepted conclusion with the evidence assessed and the conditions under which it applies (invariant 1).
    pub struct Claim = "Claim" {
        "CP-5-02" claim_id: ClaimId,
        "CP-5-02" proposition: Proposition,
        "CP-5-02" applicability: Vec<Text>,
        "CP-5-02" relations: Vec<EvidenceRelation>,
        "CP-5-02" limitations: Vec<Text>,
        "CP-5-02" exceptions: Vec<Text>,
        "CP-5-02" sufficiency_rule_ref: VersionedRef,
        "CP-5-02" standing: Standing,
    }
}

crate::contract! {
    /// A reusable procedure, kept whole. Spec: §5.
    pub struct Method = "Method" checked by Method::check_whole {
        "CP-5-08" method_id: MethodId,
        "CP-5-08" text: Text,
        #[schemars(length(min = 1))]
        "CP-5-08" preconditions: Vec<Text>,
        #[schemars(length(min = 1))]
        "CP-5-08" success_criteria: Vec<Text>,
        #[schemars(length(min = 1))]
        "CP-5-08" failure_criteria: Vec<Text>,
        "CP-5-08" exceptions: Vec<Text>,
        "CP-5-08" dependencies: Vec<Id>,
        "CP-5-08" standing: Standing,
    }
}

impl Method {
    fn check_whole(&self) -> Result<(), Fault> {
        nonempty(&self.preconditions, "preconditions")?;
        nonempty(&self.success_criteria, "success_criteria")?;
        nonempty(&self.failure_criteria, "failure_criteria")
    }
}

crate::contract! {
    /// One accepted item rests on another: when the premise goes, the dependent is suspended. Spec: §3.2.
    pub struct Dependency = "Dependency" {
        "CP-5-02" dependency_id: DependencyId,
        "CP-5-02" premise: Id,
        "CP-5-02" dependent: Id,
    }
}

/// What a restriction covers (DEC-101). Exact ones are narrow (DEC-75).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "covers", rename_all = "snake_case", deny_unknown_fields)]
pub enum AffectedScope {
    /// Every action of the space.
    Space {},
    /// Every action of one operation.
    Operation {
        /// The operation.
        operation: OperationId,
    },
    /// Actions of an operation, or of any, on the targets of a pattern.
    Target {
        /// The operation; any when absent.
        operation: Option<OperationId>,
        /// The targets.
        targets: TargetPattern,
    },
    /// Every action under one grant.
    Grant {
        /// The grant.
        grant_id: GrantId,
    },
    /// Every action for one obligation.
    Obligation {
        /// The obligation.
        obligation_id: ObligationId,
    },
}

impl AffectedScope {
    /// Whether it names one grant, or one operation on one target (DEC-75).
    #[must_use]
    pub fn is_narrow(&self) -> bool {
        match self {
            Self::Grant { .. } => true,
            Self::Target { operation: Some(_), targets } => targets.is_exact(),
            Self::Target { operation: None, .. }
            | Self::Space {}
            | Self::Operation { .. }
            | Self::Obligation { .. } => false,
        }
    }
}

impl Check for AffectedScope {
    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Space {} => Ok(()),
            Self::Operation { operation } => operation.check().map_err(|fault| fault.within("operation")),
            Self::Target { operation, targets } => {
                operation.check().map_err(|fault| fault.within("operation"))?;
                targets.check().map_err(|fault| fault.within("targets"))
            }
            Self::Grant { grant_id } => grant_id.check().map_err(|fault| fault.within("grant_id")),
            Self::Obligation { obligation_id } => obligation_id.check().map_err(|fault| fault.within("obligation_id")),
        }
    }
}

crate::contract! {
    /// Actions in a scope are not eligible. Lifted only by an authorized reassessment, never by a timer. Spec: §7.2.
    pub struct Restriction = "Restriction" {
        "CP-7.2-08" restriction_id: RestrictionId,
        "CP-7.2-08" affected_scope: AffectedScope,
        "CP-7.2-08" reason: Text,
        "CP-7.2-08" issued_by: ActorId,
        "CP-7.2-08" standing: Standing,
    }
}

/// One accepted item. The member `item` says which kind it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum Item {
    /// See [`Goal`].
    Goal(Goal),
    /// See [`Constraint`].
    Constraint(Constraint),
    /// See [`Grant`].
    Grant(Grant),
    /// See [`Claim`].
    Claim(Claim),
    /// See [`Method`].
    Method(Method),
    /// See [`Obligation`].
    Obligation(Obligation),
    /// See [`Dependency`].
    Dependency(Dependency),
    /// See [`Reentry`].
    Reentry(Reentry),
    /// See [`Restriction`].
    Restriction(Restriction),
    /// See [`OperationEntry`].
    Operation(OperationEntry),
    /// See [`ReadbackMethod`].
    ReadbackMethod(ReadbackMethod),
    /// See [`Identity`].
    Identity(Identity),
    /// See [`Source`].
    Source(Source),
    /// See [`Rule`].
    Rule(Rule),
    /// See [`Policy`].
    Policy(Policy),
    /// See [`Appointment`].
    Appointment(Appointment),
    /// See [`Coalition`].
    Coalition(Coalition),
    /// See [`Capability`].
    Capability(Capability),
    /// See [`Workflow`].
    Workflow(Workflow),
    /// See [`Skill`].
    Skill(Skill),
    /// See [`crate::profile::Profile`].
    Profile(crate::profile::Profile),
}

macro_rules! each_item {
    ($item:expr, $inner:ident => $body:expr) => {
        match $item {
            Item::Goal($inner) => $body,
            Item::Constraint($inner) => $body,
            Item::Grant($inner) => $body,
            Item::Claim($inner) => $body,
            Item::Method($inner) => $body,
            Item::Obligation($inner) => $body,
            Item::Dependency($inner) => $body,
            Item::Reentry($inner) => $body,
            Item::Restriction($inner) => $body,
            Item::Operation($inner) => $body,
            Item::ReadbackMethod($inner) => $body,
            Item::Identity($inner) => $body,
            Item::Source($inner) => $body,
            Item::Rule($inner) => $body,
            Item::Policy($inner) => $body,
            Item::Appointment($inner) => $body,
            Item::Coalition($inner) => $body,
            Item::Capability($inner) => $body,
            Item::Workflow($inner) => $body,
            Item::Skill($inner) => $body,
            Item::Profile($inner) => $body,
        }
    };
}

macro_rules! narrowed {
    ($($(#[$doc:meta])* $name:ident $variant:ident($ty:ty)),+ $(,)?) => {
        impl Item {$(
            $(#[$doc])*
            #[must_use]
            pub const fn $name(&self) -> Option<&$ty> {
                if let Self::$variant(item) = self { Some(item) } else { None }
            }
        )+}
    };
}

narrowed! {
    /// The claim, if it is one.
    as_claim Claim(Claim),
    /// The capability, if it is one.
    as_capability Capability(Capability),
    /// The coalition, if it is one.
    as_coalition Coalition(Coalition),
    /// The grant, if it is one.
    as_grant Grant(Grant),
    /// The identity, if it is one.
    as_identity Identity(Identity),
    /// The rule, if it is one.
    as_rule Rule(Rule),
    /// The source, if it is one.
    as_source Source(Source),
    /// The skill, if it is one.
    as_skill Skill(Skill),
    /// The workflow, if it is one.
    as_workflow Workflow(Workflow),
}

impl Item {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ItemKind {
        match self {
            Self::Goal(_) => ItemKind::Goal,
            Self::Constraint(_) => ItemKind::Constraint,
            Self::Grant(_) => ItemKind::Grant,
            Self::Claim(_) => ItemKind::Claim,
            Self::Method(_) => ItemKind::Method,
            Self::Obligation(_) => ItemKind::Obligation,
            Self::Dependency(_) => ItemKind::Dependency,
            Self::Reentry(_) => ItemKind::Reentry,
            Self::Restriction(_) => ItemKind::Restriction,
            Self::Operation(_) => ItemKind::Operation,
            Self::ReadbackMethod(_) => ItemKind::ReadbackMethod,
            Self::Identity(_) => ItemKind::Identity,
            Self::Source(_) => ItemKind::Source,
            Self::Rule(_) => ItemKind::Rule,
            Self::Policy(_) => ItemKind::Policy,
            Self::Appointment(_) => ItemKind::Appointment,
            Self::Coalition(_) => ItemKind::Coalition,
            Self::Capability(_) => ItemKind::Capability,
            Self::Workflow(_) => ItemKind::Workflow,
            Self::Skill(_) => ItemKind::Skill,
            Self::Profile(_) => ItemKind::Profile,
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> Id {
        match self {
            Self::Goal(item) => (&item.goal_id).into(),
            Self::Constraint(item) => (&item.constraint_id).into(),
            Self::Grant(item) => (&item.grant_id).into(),
            Self::Claim(item) => (&item.claim_id).into(),
            Self::Method(item) => (&item.method_id).into(),
            Self::Obligation(item) => (&item.obligation_id).into(),
            Self::Dependency(item) => (&item.dependency_id).into(),
            Self::Reentry(item) => (&item.reentry_id).into(),
            Self::Restriction(item) => (&item.restriction_id).into(),
            Self::Operation(item) => (&item.operation).into(),
            Self::ReadbackMethod(item) => (&item.method).into(),
            Self::Identity(item) => (&item.actor_id).into(),
            Self::Source(item) => (&item.source_id).into(),
            Self::Rule(item) => (&item.rule_id).into(),
            Self::Policy(item) => (&item.policy_id).into(),
            Self::Appointment(item) => (&item.issuer).into(),
            Self::Coalition(item) => (&item.coalition_id).into(),
            Self::Capability(item) => (&item.capability_id).into(),
            Self::Workflow(item) => (&item.workflow_id).into(),
            Self::Skill(item) => (&item.skill_id).into(),
            Self::Profile(item) => (&item.profile_id).into(),
        }
    }

    /// The digest of its canonical form, which is its leaf in the Merkle root.
    ///
    /// # Errors
    /// `schema_invalid` when it has no canonical form.
    pub fn digest(&self) -> Result<Digest, Fault> {
        crate::canonical::digest_of(self)
    }
}

impl Check for Item {
    fn check(&self) -> Result<(), Fault> {
        each_item!(self, inner => inner.check().map_err(|fault| fault.within(Cow::Borrowed(self.kind().as_str()))))
    }
}
