//! Shared references and values: what contracts cite and how they name places, amounts and typed values (C1, Appendix B).

use crate::canonical::{OUTSIDE, is_outside};
use crate::contract::{Check, check_length};
use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{ActorId, ArtifactId, Id, KEY_BYTES_MAX, Key, SourceId, Text};
use crate::refusal::RefusalCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

crate::contract! {
    /// Names one accepted state: versions rise by one from genesis at 0. Spec: C1.
    #[derive(Copy)]
    pub struct StateRef = "StateRef" {
        "CP-C1-F15" version: u64,
        "CP-C1-F16" digest: Digest,
    }
}

crate::contract! {
    /// A reference to an immutable artifact: id and digest, both checked (Appendix B).
    pub struct ArtifactRef = "ArtifactRef" {
        "CP-B-04" id: ArtifactId,
        "CP-B-04" digest: Digest,
    }
}

impl StateRef {
    /// Compares with the state that is held under the same version.
    ///
    /// # Errors
    /// `digest_mismatch`.
    pub fn check_digest(&self, held: &Self) -> Result<(), Fault> {
        let differs = self.version == held.version && self.digest != held.digest;
        match crate::branch!("refs.state_digest_differs", differs) {
            true => Err(mismatch("the state of this version has another digest")),
            false => Ok(()),
        }
    }
}

impl ArtifactRef {
    /// Compares with the digest of what is stored under the id.
    ///
    /// # Errors
    /// `digest_mismatch`.
    pub fn check_digest(&self, stored: Digest) -> Result<(), Fault> {
        match crate::branch!("refs.artifact_digest_differs", self.digest != stored) {
            true => Err(mismatch("the stored artifact has another digest")),
            false => Ok(()),
        }
    }
}

fn mismatch(reason: &'static str) -> Fault {
    Fault::new(RefusalCode::DigestMismatch, reason).within("digest")
}

crate::contract! {
    /// A registered thing at one exact version: rule, contract, vocabulary, method, policy (DEC-10).
    pub struct VersionedRef = "VersionedRef" {
        "CP-B-09" id: Id,
        "CP-B-09" version: u32,
    }
}

crate::contract! {
    /// The subject of a judgment, cited with its type so that equal bytes of two types cannot be exchanged (DEC-03).
    pub struct TypedRef = "TypedRef" {
        "CP-C9-F03" id: Id,
        "CP-C9-F03" digest: Digest,
        "CP-C9-F03" r#type: SubjectType,
    }
}

crate::words! {
    /// What a typed reference points at.
    pub enum SubjectType {
        /// A logical action, by its logical digest.
        Action = "action",
        /// A readback, by the digest of its evidence.
        Readback = "readback",
        /// A delta, by its proposal digest.
        Delta = "delta",
    }
}

crate::words! {
    /// The producer roles of the message map (§6.2, DEC-104).
    pub enum ProducerRole {
        /// Sees the world and emits events and evidence.
        Observer = "observer",
        /// Binds events to obligations.
        Matcher = "matcher",
        /// Proposes obligations and plans actions.
        Planner = "planner",
        /// Chooses actors and capabilities.
        Router = "router",
        /// Runs episodes: work, handoffs and packets.
        Coordinator = "coordinator",
        /// Does bounded work and answers with a result.
        Participant = "participant",
        /// Adjudicates in three phases.
        Assessor = "assessor",
        /// Batches supported changes into deltas.
        Distiller = "distiller",
        /// Issues urgent restrictions.
        Issuer = "issuer",
        /// Keeps timers and triggers.
        Scheduler = "scheduler",
        /// Transfers and fences ownership.
        Ownership = "ownership",
        /// Judges actions at the boundary.
        Monitor = "monitor",
        /// The person or organization whose authority governs (SR1).
        User = "user",
        /// The semantic service: the only writer of accepted state.
        Semantic = "semantic",
    }
}

crate::contract! {
    /// An actor in one of its producer roles, resolved through the identity registry. Spec: C1, §6.1.
    pub struct ActorRef = "ActorRef" {
        "CP-6.1-03" actor_id: ActorId,
        "CP-6.1-03" role: ProducerRole,
    }
}

crate::contract! {
    /// A registered source of events or evidence. Spec: C2.
    pub struct SourceRef = "SourceRef" {
        "CP-C2-F02" source_id: SourceId,
    }
}

crate::contract! {
    /// An exact target: its type, whose it is, and where. Compared byte for byte; no normalization (§6.4).
    #[derive(PartialOrd, Ord, Hash)]
    pub struct Target = "Target" {
        "CP-C7-F03" r#type: Key,
        "CP-C7-F03" account: Key,
        "CP-C7-F03" address: Text,
    }
}

/// Which targets a grant or restriction covers: an exact text, or a prefix ending in `*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetPattern {
    /// The target type, exact.
    pub r#type: Key,
    /// The account, exact or a prefix ending in `*`.
    pub account: Key,
    /// The address, exact or a prefix ending in `*`.
    pub address: Text,
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => text.starts_with(prefix),
        None => pattern == text,
    }
}

fn overlaps(a: &str, b: &str) -> bool {
    match (a.strip_suffix('*'), b.strip_suffix('*')) {
        (Some(a), Some(b)) => a.starts_with(b) || b.starts_with(a),
        (Some(_), None) => matches(a, b),
        (None, Some(_) | None) => matches(b, a),
    }
}

impl TargetPattern {
    /// Exactly this target.
    #[must_use]
    pub fn exactly(target: &Target) -> Self {
        Self { r#type: target.r#type.clone(), account: target.account.clone(), address: target.address.clone() }
    }

    /// Whether the pattern covers a target.
    #[must_use]
    pub fn covers(&self, target: &Target) -> bool {
        self.r#type == target.r#type
            && matches(self.account.as_str(), target.account.as_str())
            && matches(self.address.as_str(), target.address.as_str())
    }

    /// Whether some target lies in both patterns.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.r#type == other.r#type
            && overlaps(self.account.as_str(), other.account.as_str())
            && overlaps(self.address.as_str(), other.address.as_str())
    }

    /// Whether the pattern names one target and no other.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.account.as_str().ends_with('*') && !self.address.as_str().ends_with('*')
    }
}

impl Check for TargetPattern {
    fn check(&self) -> Result<(), Fault> {
        self.r#type.check().map_err(|fault| fault.within("type"))?;
        self.account.check().map_err(|fault| fault.within("account"))?;
        self.address.check().map_err(|fault| fault.within("address"))
    }
}

/// A typed scope: a path from the whole space inwards. A scope contains every scope that continues its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Scope(pub Vec<Id>);

impl Scope {
    /// Whether `inner` lies in this scope.
    #[must_use]
    pub fn contains(&self, inner: &Self) -> bool {
        inner.0.starts_with(&self.0)
    }
}

impl Check for Scope {
    fn check(&self) -> Result<(), Fault> {
        self.0.check()
    }
}

/// A plain value: JSON without fractions. Used for parameters and observations, compared by canonical bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Plain(pub Value);

impl std::fmt::Debug for Plain {
    /// In canonical order, whichever order its members came in.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match crate::canonical::to_bytes(self) {
            Ok(bytes) => write!(f, "Plain({})", String::from_utf8_lossy(&bytes)),
            Err(_) => write!(f, "Plain({:?})", self.0),
        }
    }
}

impl schemars::JsonSchema for Plain {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Plain".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let inner = generator.subschema_for::<Self>();
        schemars::json_schema!({
            "description": "A plain value: JSON without fractions.",
            "type": ["null", "boolean", "integer", "string", "array", "object"],
            "maxLength": PLAIN_BYTES_MAX,
            "x-max-bytes": PLAIN_BYTES_MAX,
            "items": inner,
            "propertyNames": { "maxLength": KEY_BYTES_MAX, "x-max-bytes": KEY_BYTES_MAX },
            "additionalProperties": inner
        })
    }
}

impl Plain {
    /// The integer, if it is one.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        self.0.as_i64()
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        self.0.as_str()
    }
}

impl Check for Plain {
    fn check(&self) -> Result<(), Fault> {
        fn walk(value: &Value) -> Result<(), Fault> {
            match value {
                Value::Null | Value::Bool(_) => Ok(()),
                Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                    (Some(integer), _) => integer.check(),
                    (None, Some(integer)) => integer.check(),
                    (None, None) if number.as_f64().is_some_and(is_outside) => Err(Fault::schema(OUTSIDE)),
                    (None, None) => Err(Fault::schema("a plain value carries no fractions")),
                },
                Value::String(text) => match text.len() <= PLAIN_BYTES_MAX {
                    true => Ok(()),
                    false => Err(Fault::oversize(format!("plain text has at most {PLAIN_BYTES_MAX} bytes"))),
                },
                Value::Array(items) => {
                    check_length(items.len())?;
                    items.iter().try_for_each(walk)
                }
                Value::Object(entries) => {
                    check_length(entries.len())?;
                    entries.iter().try_for_each(|(key, value)| match key.len() <= KEY_BYTES_MAX {
                        true => walk(value),
                        false => Err(Fault::oversize(format!("a key has at most {KEY_BYTES_MAX} bytes"))),
                    })
                }
            }
        }
        walk(&self.0)
    }
}

/// The longest text inside a plain value, in bytes.
pub const PLAIN_BYTES_MAX: usize = 65_536;

/// Parameters of one operation by name; the registry entry says which there are.
pub type Parameters = BTreeMap<Key, Plain>;

crate::contract! {
    /// A value with the type it claims to be of. Spec: C8.
    pub struct TypedValue = "TypedValue" {
        "CP-C8-F06" r#type: Key,
        "CP-C8-F06" value: Plain,
    }
}

/// An amount in each budget dimension; `null` where a dimension is not limited or not known (§8.3, DEC-69).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Amounts {
    /// Calls.
    pub calls: Option<u64>,
    /// Tokens, input and output together.
    pub tokens: Option<u64>,
    /// Cost in micro-units of `currency`.
    pub cost_micros: Option<u64>,
    /// The currency of `cost_micros`.
    pub currency: Option<Key>,
    /// Wall time in milliseconds.
    pub time_ms: Option<u64>,
    /// Concurrent slots.
    pub concurrency: Option<u64>,
}

impl Check for Amounts {
    fn check(&self) -> Result<(), Fault> {
        for (amount, name) in [
            (self.calls, "calls"),
            (self.tokens, "tokens"),
            (self.cost_micros, "cost_micros"),
            (self.time_ms, "time_ms"),
            (self.concurrency, "concurrency"),
        ] {
            amount.check().map_err(|fault| fault.within(name))?;
        }
        self.currency.check().map_err(|fault| fault.within("currency"))?;
        match (self.cost_micros, &self.currency) {
            (Some(_), None) => Err(Fault::schema("a cost names its currency").within("currency")),
            (Some(_) | None, Some(_)) | (None, None) => Ok(()),
        }
    }
}

crate::contract! {
    /// A person or organization's statement of identity together with how it was authenticated. Spec: C14.
    pub struct AuthenticatedIssuer = "AuthenticatedIssuer" {
        "CP-C14-F02" identity: ActorId,
        "CP-C14-F02" auth_ref: ArtifactRef,
    }
}

crate::contract! {
    /// The items of an assessment and the digest over their canonical list, sorted by id, without repeats (DEC-06).
    pub struct EvidenceSnapshot = "EvidenceSnapshot" checked by EvidenceSnapshot::check_digest {
        "CP-C9-F04" refs: Vec<ArtifactRef>,
        "CP-C9-F04" digest: Digest,
    }
}

impl EvidenceSnapshot {
    /// The snapshot of these items: sorted by id, repeats removed, digested.
    ///
    /// # Errors
    /// `schema_invalid` when the list has no canonical form.
    pub fn of(mut refs: Vec<ArtifactRef>) -> Result<Self, Fault> {
        refs.sort_by(|a, b| (&a.id, &a.digest).cmp(&(&b.id, &b.digest)));
        refs.dedup();
        let digest = crate::canonical::digest_of(&refs)?;
        Ok(Self { refs, digest })
    }

    fn check_digest(&self) -> Result<(), Fault> {
        match crate::branch!("evidence_snapshot.digest_agrees", Self::of(self.refs.clone())? == *self) {
            true => Ok(()),
            false => Err(mismatch("the snapshot's digest is not that of its sorted items")),
        }
    }
}
