//! Rules, policies and appointments: what was decided in advance. Spec: §7.2, DEC-10, DEC-33, DEC-38, DEC-60.

use crate::contract::{Check, nonempty};
use crate::fault::Fault;
use crate::id::{ActorId, Key, OperationId, PolicyId, RuleId};
use crate::item::Standing;
use crate::refs::TargetPattern;
use crate::time::Timestamp;
use crate::work::{Expectation, ReasonClass};
use serde::{Deserialize, Serialize};

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
        /// What the observation itself must show; then no participant's reading of it counts (DEC-33).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Shown>,
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
            Self::Sufficiency { distinct_sources_min, age_ms_max, observation_types, shown, .. } => {
                shown.check().map_err(|fault| fault.within("shown"))?;
                age_ms_max.check().map_err(|fault| fault.within("age_ms_max"))?;
                observation_types.check().map_err(|fault| fault.within("observation_types"))?;
                match *distinct_sources_min > 0 {
                    true => Ok(()),
                    false => Err(Fault::schema("a conclusion needs support from at least one source")
                        .within("distinct_sources_min")),
                }
            }
            Self::Decision { required_roles, blocking_classes, .. } => {
                nonempty(required_roles, "required_roles")?;
                required_roles.check().map_err(|fault| fault.within("required_roles"))?;
                blocking_classes.check().map_err(|fault| fault.within("blocking_classes"))
            }
        }
    }
}

crate::contract! {
    /// What an observation of which targets must show for a proposition to be supported: the observation is compared, and
    /// nobody's reading of it. Spec: §6.3, DEC-33.
    pub struct Shown = "Shown" checked by Shown::check_nonempty {
        "CP-C9-F08" targets: TargetPattern,
        #[schemars(length(min = 1))]
        "CP-C9-F08" expectations: Vec<Expectation>,
    }
}

impl Shown {
    fn check_nonempty(&self) -> Result<(), Fault> {
        nonempty(&self.expectations, "expectations")
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

impl Check for PolicyBody {
    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Refresh { after_ms, .. } => after_ms.check().map_err(|fault| fault.within("after_ms")),
            Self::Expiry { replace_for_ms, review_within_ms } => {
                replace_for_ms.check().map_err(|fault| fault.within("replace_for_ms"))?;
                review_within_ms.check().map_err(|fault| fault.within("review_within_ms"))
            }
            Self::Deadline { escalate_to } | Self::Escalation { escalate_to } => {
                escalate_to.check().map_err(|fault| fault.within("escalate_to"))
            }
        }
    }
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
