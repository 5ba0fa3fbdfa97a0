//! REENTRY and its typed predicates: when a retained obligation may be reconsidered. Spec: C11.
//!
//! A predicate's arguments are identifiers, numbers and times; there is no expression to execute. An operator that is
//! well-formed but not known here is kept and evaluates `unknown` (DEC-57).

use crate::contract::{Check, nonempty};
use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{
    ActorId, CapabilityId, DecisionId, HandoffId, Id, Key, ObligationId, ObservationStreamId, PolicyId, ReentryId,
    SourceId,
};
use crate::refs::{Amounts, ArtifactRef, Scope, SourceRef, StateRef};
use crate::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The deepest nesting of `All` and `Any` (DEC-56).
pub const PREDICATE_DEPTH_MAX: usize = 16;
/// The most nodes of one predicate (DEC-56).
pub const PREDICATE_NODES_MAX: usize = 256;

crate::words! {
    /// What a predicate evaluates to: strong Kleene logic (DEC-56).
    pub enum Evaluation {
        /// True on complete inputs.
        Satisfied = "satisfied",
        /// False on complete inputs.
        NotSatisfied = "not_satisfied",
        /// Not to be told; never permission.
        Unknown = "unknown",
    }
}

crate::contract! {
    /// Evidence in scope, from a permitted source, after the cursor of its stream. Spec: C11, DEC-54.
    pub struct EvidenceAdded = "EvidenceAdded" {
        "CP-C11-F11" scope_ref: Scope,
        "CP-C11-F11" permitted_source_refs: Vec<SourceId>,
        "CP-C11-F11" after_cursor: BTreeMap<ObservationStreamId, u64>,
    }
}

crate::contract! {
    /// The accepted version of a dependency differs from the compared one. Spec: C11, DEC-58.
    pub struct DependencyVersionChanged = "DependencyVersionChanged" {
        "CP-C11-F12" dependency_ref: Id,
        /// The digest of the accepted item that was compared.
        "CP-C11-F12" compared_version: Digest,
    }
}

crate::contract! {
    /// An authenticated user decision of the required class on this packet. Spec: C11, DEC-58, DEC-63.
    pub struct UserDecisionReceived = "UserDecisionReceived" {
        "CP-C11-F13" decision_ref: DecisionId,
        "CP-C11-F13" required_decision_class: crate::audit::DecisionType,
    }
}

crate::contract! {
    /// An unexpired registry verification of this capability at exactly this version. Spec: C11, DEC-58.
    pub struct CapabilityVerified = "CapabilityVerified" {
        "CP-C11-F14" capability_ref: CapabilityId,
        "CP-C11-F14" contract_version: u32,
    }
}

crate::contract! {
    /// The ownership service's acceptance receipt agrees in all four. Spec: C11, DEC-51, DEC-52.
    pub struct HandoffAccepted = "HandoffAccepted" {
        "CP-C11-F15" handoff_ref: HandoffId,
        "CP-C11-F15" recipient_ref: ActorId,
        "CP-C11-F15" contract_digest: Digest,
        "CP-C11-F15" ownership_epoch: u64,
    }
}

crate::contract! {
    /// The runtime's clock has reached this instant. Spec: C11, DEC-59.
    pub struct TimeReached = "TimeReached" {
        "CP-C11-F16" at: Timestamp,
    }
}

crate::contract! {
    /// Every child is satisfied. Spec: C11.
    pub struct All = "All" checked by All::check_items {
        #[schemars(length(min = 1))]
        "CP-C11-F17" items: Vec<TypedPredicate>,
    }
}

crate::contract! {
    /// At least one child is satisfied. Spec: C11.
    pub struct Any = "Any" checked by Any::check_items {
        #[schemars(length(min = 1))]
        "CP-C11-F18" items: Vec<TypedPredicate>,
    }
}

impl All {
    fn check_items(&self) -> Result<(), Fault> {
        nonempty(&self.items, "items")
    }
}

impl Any {
    fn check_items(&self) -> Result<(), Fault> {
        nonempty(&self.items, "items")
    }
}

/// A condition over the record: eight operators, and whatever a newer version may have named. Spec: C11.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "operator")]
pub enum TypedPredicate {
    /// See [`EvidenceAdded`].
    EvidenceAdded(EvidenceAdded),
    /// See [`DependencyVersionChanged`].
    DependencyVersionChanged(DependencyVersionChanged),
    /// See [`UserDecisionReceived`].
    UserDecisionReceived(UserDecisionReceived),
    /// See [`CapabilityVerified`].
    CapabilityVerified(CapabilityVerified),
    /// See [`HandoffAccepted`].
    HandoffAccepted(HandoffAccepted),
    /// See [`TimeReached`].
    TimeReached(TimeReached),
    /// See [`All`].
    All(All),
    /// See [`Any`].
    Any(Any),
    /// An operator this version does not know, kept as it came (DEC-57).
    #[serde(untagged)]
    Unsupported(#[schemars(schema_with = "unsupported")] BTreeMap<Key, Value>),
}

impl<'de> Deserialize<'de> for TypedPredicate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        fn typed<T: serde::de::DeserializeOwned, E: Error>(members: BTreeMap<Key, Value>) -> Result<T, E> {
            let object = members.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
            crate::canonical::shape(Value::Object(object)).map_err(|fault| {
                let field = if fault.path.is_empty() { String::new() } else { format!(" at `{}`", fault.path) };
                E::custom(format!("{}{field}", fault.reason))
            })
        }
        let mut members = BTreeMap::<Key, Value>::deserialize(deserializer)?;
        let operator = match members.get(&Key::from("operator")) {
            Some(Value::String(operator)) if is_operator_name(operator) => operator.clone(),
            Some(_) | None => {
                return Err(D::Error::custom("a predicate names its `operator`, such as `TimeReached`"));
            }
        };
        let known = |members: &mut BTreeMap<Key, Value>| {
            members.remove(&Key::from("operator"));
            std::mem::take(members)
        };
        Ok(match operator.as_str() {
            "EvidenceAdded" => Self::EvidenceAdded(typed(known(&mut members))?),
            "DependencyVersionChanged" => Self::DependencyVersionChanged(typed(known(&mut members))?),
            "UserDecisionReceived" => Self::UserDecisionReceived(typed(known(&mut members))?),
            "CapabilityVerified" => Self::CapabilityVerified(typed(known(&mut members))?),
            "HandoffAccepted" => Self::HandoffAccepted(typed(known(&mut members))?),
            "TimeReached" => Self::TimeReached(typed(known(&mut members))?),
            "All" => Self::All(typed(known(&mut members))?),
            "Any" => Self::Any(typed(known(&mut members))?),
            _ => Self::Unsupported(members),
        })
    }
}

/// The operators of this version, in the specification's order.
pub const OPERATORS: [&str; 8] = [
    "EvidenceAdded",
    "DependencyVersionChanged",
    "UserDecisionReceived",
    "CapabilityVerified",
    "HandoffAccepted",
    "TimeReached",
    "All",
    "Any",
];

fn unsupported(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "required": ["operator"],
        "properties": {
            "operator": { "type": "string", "pattern": "^[A-Z][A-Za-z0-9]{0,63}$", "not": { "enum": OPERATORS } }
        },
        "additionalProperties": true
    })
}

fn is_operator_name(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

impl TypedPredicate {
    /// The predicate's version: the digest of its canonical form (DEC-57).
    ///
    /// # Errors
    /// `schema_invalid` when an unsupported operator's arguments have no canonical form.
    pub fn version(&self) -> Result<Digest, Fault> {
        crate::canonical::digest_of(self)
    }

    /// The children of `All` and `Any`; none for a leaf.
    #[must_use]
    pub fn children(&self) -> &[TypedPredicate] {
        match self {
            Self::All(All { items }) | Self::Any(Any { items }) => items,
            Self::EvidenceAdded(_)
            | Self::DependencyVersionChanged(_)
            | Self::UserDecisionReceived(_)
            | Self::CapabilityVerified(_)
            | Self::HandoffAccepted(_)
            | Self::TimeReached(_)
            | Self::Unsupported(_) => &[],
        }
    }

    fn size(&self, depth: usize) -> Result<usize, Fault> {
        if depth > PREDICATE_DEPTH_MAX {
            return Err(Fault::schema(format!("a predicate nests at most {PREDICATE_DEPTH_MAX} deep")));
        }
        let mut nodes = 1usize;
        for child in self.children() {
            nodes = nodes.saturating_add(child.size(depth + 1)?);
        }
        match nodes <= PREDICATE_NODES_MAX {
            true => Ok(nodes),
            false => Err(Fault::schema(format!("a predicate has at most {PREDICATE_NODES_MAX} nodes"))),
        }
    }
}

impl Check for TypedPredicate {
    fn check(&self) -> Result<(), Fault> {
        self.size(1)?;
        match self {
            Self::EvidenceAdded(leaf) => leaf.check(),
            Self::DependencyVersionChanged(leaf) => leaf.check(),
            Self::UserDecisionReceived(leaf) => leaf.check(),
            Self::CapabilityVerified(leaf) => leaf.check(),
            Self::HandoffAccepted(leaf) => leaf.check(),
            Self::TimeReached(leaf) => leaf.check(),
            Self::All(all) => all.check(),
            Self::Any(any) => any.check(),
            Self::Unsupported(members) => members.iter().try_for_each(|(key, value)| {
                key.check().and_then(|()| crate::refs::Plain(value.clone()).check()).map_err(|fault| fault.within(key))
            }),
        }
    }
}

crate::contract! {
    /// A registered trigger: when this obligation may be reconsidered, and what work that makes eligible. Spec: C11.
    pub struct Reentry = "REENTRY" {
        "CP-C11-F01" reentry_id: ReentryId,
        "CP-C11-F02" obligation_id: ObligationId,
        "CP-C11-F03" predicate: TypedPredicate,
        "CP-C11-F04" event_sources: Vec<SourceRef>,
        "CP-C11-F05" eligible_work: Vec<Key>,
        "CP-C11-F06" resource_posture: Amounts,
        "CP-C11-F07" deduplication_key: Key,
        "CP-C11-F08" expires_at: Option<Timestamp>,
        "CP-C11-F09" refresh_policy_ref: PolicyId,
        "CP-C11-F10" expiry_policy_ref: PolicyId;
        /// Extensions in reverse-DNS keys; digested, never read by a decision (DEC-09).
        extensions: Option<crate::envelope::Extensions>
    }
}

crate::contract! {
    /// A predicate at one exact version. Spec: C11.
    pub struct PredicateVersion = "PredicateVersion" {
        "CP-C11-F20" id: Id,
        "CP-C11-F20" digest: Digest,
    }
}

crate::contract! {
    /// The record of one evaluation: a pure function of what it names. Spec: C11, DEC-55.
    pub struct EvaluationRecord = "EvaluationRecord" {
        "CP-C11-F20" predicate_version: PredicateVersion,
        "CP-C11-F21" governing_state: StateRef,
        "CP-C11-F22" event_cursor: BTreeMap<ObservationStreamId, u64>,
        "CP-C11-F23" input_receipt_refs: Vec<ArtifactRef>,
        /// The authentication record of the source; `null` is the explicit none of a time predicate.
        "CP-C11-F24" source_binding: Option<ArtifactRef>,
        "CP-C11-F25" scope: Scope,
        "CP-C11-F26" result: Evaluation,
    }
}
