//! The items of accepted state: seven kinds of §5, and the registry that the monitor trusts. Spec: §5, DEC-44, DEC-104.

use crate::audit::Grant;
use crate::auth::SigningScope;
use crate::contract::{Check, nonempty};
use crate::delta::ChangeClass;
use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{
    ActorId, CapabilityId, ChangeKindId, ClaimId, ConstraintId, DependencyId, GoalId, GrantId, Id, Key, KeyId,
    MethodId, ObligationId, OperationId, PolicyId, ReadbackMethodId, RestrictionId, RuleId, SourceId, Text,
};
use crate::obligation::Obligation;
use crate::reentry::Reentry;
use crate::refs::{Amounts, ArtifactRef, Plain, ProducerRole, Scope, TargetPattern, VersionedRef};
use crate::time::Timestamp;
use crate::work::{EvidenceRelation, Proposition, ReasonClass};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

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
        /// The deployment profile in force.
        Profile = "profile",
    }
}

impl ItemKind {
    /// The class of adding, revising, suspending or retracting an item of this kind.
    #[must_use]
    pub const fn class(self) -> ChangeClass {
        match self {
            Self::Claim | Self::Method | Self::Obligation | Self::Dependency | Self::Reentry => {
                ChangeClass::Descriptive
            }
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
        let low = self
            .at_least
            .is_none_or(|bound| integer.is_some_and(|integer| integer >= bound));
        let high = self
            .at_most
            .is_none_or(|bound| integer.is_some_and(|integer| integer <= bound));
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
            Self::Target {
                operation: Some(_),
                targets,
            } => targets.is_exact(),
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
        "CP-C7-F02" standing: Standing,
    }
}

impl OperationEntry {
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
        "CP-C1-F05" standing: Standing,
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

/// What a rule computes. Deterministic, over relations and records; never over counts of voices, confidence or age of a
/// record as support (§1.2, DEC-33).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "rule", rename_all = "snake_case", deny_unknown_fields)]
pub enum RuleBody {
    /// Which facets of an event must fit a dependency (DEC-20).
    Matching {
        /// The facets that must fit; the others count as satisfied.
        facets: Vec<crate::event::Facet>,
    },
    /// When relations suffice for a proposition (DEC-33, DEC-34).
    Sufficiency {
        /// How many supports from distinct sources at least.
        #[schemars(range(min = 1))]
        distinct_sources_min: u32,
        /// How old an observation may be, in milliseconds; absent for no limit.
        age_ms_max: Option<u64>,
        /// Whether an unknown target version counts as fresh.
        accepts_unknown_target_version: bool,
        /// The observation types that count; empty for all.
        observation_types: Vec<Key>,
    },
    /// How an adjudication is reached (DEC-38).
    Decision {
        /// The assessment roles that must have taken a position.
        #[schemars(length(min = 1))]
        required_roles: Vec<Key>,
        /// The reason classes that block while open, besides the two that always do.
        blocking_classes: Vec<ReasonClass>,
        /// Whether a registered deterministic rule of the service decides, so that a stale parent can be completed in place.
        deterministic: bool,
    },
}

impl Check for RuleBody {
    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Matching { facets } => facets.check().map_err(|fault| fault.within("facets")),
            Self::Sufficiency {
                distinct_sources_min,
                observation_types,
                ..
            } => {
                observation_types
                    .check()
                    .map_err(|fault| fault.within("observation_types"))?;
                match *distinct_sources_min > 0 {
                    true => Ok(()),
                    false => Err(Fault::schema("a conclusion needs support from at least one source")
                        .within("distinct_sources_min")),
                }
            }
            Self::Decision { required_roles, .. } => {
                nonempty(required_roles, "required_roles")?;
                required_roles.check().map_err(|fault| fault.within("required_roles"))
            }
        }
    }
}

impl Check for PolicyBody {
    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Refresh { after_ms, .. } => after_ms.check().map_err(|fault| fault.within("after_ms")),
            Self::Expiry {
                replace_for_ms,
                review_within_ms,
            } => {
                replace_for_ms.check().map_err(|fault| fault.within("replace_for_ms"))?;
                review_within_ms
                    .check()
                    .map_err(|fault| fault.within("review_within_ms"))
            }
            Self::Deadline { escalate_to } | Self::Escalation { escalate_to } => {
                escalate_to.check().map_err(|fault| fault.within("escalate_to"))
            }
        }
    }
}

crate::contract! {
    /// A registered rule at one version. Spec: DEC-10, DEC-33, DEC-38.
    pub struct Rule = "Rule" {
        "CP-C9-F08" rule_id: RuleId,
        "CP-C9-F08" version: u32,
        "CP-C9-F08" body: RuleBody,
        "CP-C9-F08" standing: Standing,
    }
}

/// What a registered policy does when its moment comes (DEC-60, DEC-111).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum PolicyBody {
    /// After activation: re-arm with the cursor moved forward, or consume.
    Refresh {
        /// Whether to re-arm.
        rearm: bool,
        /// For a time trigger, how much later it is armed again, in milliseconds.
        after_ms: Option<u64>,
    },
    /// On expiry: a replacement that expires later, or a trigger gap reviewed by then.
    Expiry {
        /// How long the replacement lives, in milliseconds; absent for a trigger gap.
        replace_for_ms: Option<u64>,
        /// Within which time the gap is reviewed, in milliseconds.
        review_within_ms: u64,
    },
    /// When a packet's deadline passes: whom to escalate to. It never answers (§7.3).
    Deadline {
        /// The owner of the one escalation.
        escalate_to: ActorId,
    },
    /// When an urgent reconciliation is overdue or a limit is exceeded.
    Escalation {
        /// The independent owner.
        escalate_to: ActorId,
    },
}

crate::contract! {
    /// A registered policy. Spec: DEC-60.
    pub struct Policy = "Policy" {
        "CP-C11-F10" policy_id: PolicyId,
        "CP-C11-F10" version: u32,
        "CP-C11-F10" body: PolicyBody,
        "CP-C11-F10" standing: Standing,
    }
}

crate::contract! {
    /// An urgent issuer's appointment: scope, limits, deadlines, owner. Spec: §7.2, DEC-14.
    pub struct Appointment = "Appointment" checked by Appointment::check_independence {
        "CP-7.2-22" issuer: ActorId,
        /// The operations it may restrict; empty for all.
        "CP-7.2-22" operations: Vec<OperationId>,
        /// The targets it may restrict; empty for all.
        "CP-7.2-22" targets: Vec<TargetPattern>,
        /// Whether it may restrict beyond one grant or one operation on one target.
        "CP-7.2-22" broad: bool,
        /// Within which time each case is reconciled, in milliseconds.
        "CP-7.2-21" reconcile_within_ms: u64,
        "CP-7.2-23" outstanding_max: u32,
        "CP-7.2-23" outstanding_per_target_max: u32,
        "CP-7.2-25" independent_owner: ActorId,
        "CP-7.2-25" escalation_policy_ref: PolicyId,
        "CP-7.2-22" expires_at: Timestamp,
        /// Suspended from further broad restrictions by predeclared policy (DEC-99).
        "CP-7.2-26" broad_suspended: bool,
        "CP-7.2-22" standing: Standing,
    }
}

impl Appointment {
    fn check_independence(&self) -> Result<(), Fault> {
        match self.issuer == self.independent_owner {
            true => Err(Fault::schema("an issuer is not its own independent owner").within("independent_owner")),
            false => Ok(()),
        }
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
            Item::Profile($inner) => $body,
        }
    };
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
