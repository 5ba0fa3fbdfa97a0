//! The envelope: lineage and governing context around one typed body. Spec: §6.1, C1.

use crate::action::Action;
use crate::adjudication::{Adjudication, Phase};
use crate::briefcase::Briefcase;
use crate::canonical::{self, Members};
use crate::contract::{Check, Contract, Field, present, stated};
use crate::delta::Delta;
use crate::digest::Digest;
use crate::event::Event;
use crate::evidence::Evidence;
use crate::fault::Fault;
use crate::handoff::Handoff;
use crate::id::{BudgetId, DisclosureId, EpisodeId, EventId, Key, ObligationId, PayloadId};
use crate::obligation::Obligation;
use crate::payload_type::{LineageRule, PayloadType};
use crate::reentry::Reentry;
use crate::refs::{ActorRef, Plain, StateRef};
use crate::refusal::RefusalCode;
use crate::route::Route;
use crate::time::Timestamp;
use crate::work::{Work, WorkResult};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The only protocol version accepted here. Compared exactly (DEC-10).
pub const PROTOCOL_VERSION: &str = "closer-draft-4";

crate::contract! {
    /// The immutable projection receipt that governs a release; never the projection's content. Spec: C1.
    pub struct DisclosureRef = "DisclosureRef" {
        "CP-C1-F17" id: DisclosureId,
        "CP-C1-F18" digest: Digest,
    }
}

impl DisclosureRef {
    /// Compares with the digest of the receipt that the id resolves to.
    ///
    /// # Errors
    /// `digest_mismatch`.
    pub fn check_digest(&self, receipt: Digest) -> Result<(), Fault> {
        match crate::branch!("envelope.disclosure_digest_differs", self.digest != receipt) {
            true => Err(Fault::new(RefusalCode::DigestMismatch, "the receipt has another digest").within("disclosure")),
            false => Ok(()),
        }
    }
}

/// Extensions by reverse-DNS key (DEC-09). They are digested and never read by a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Extensions(pub BTreeMap<Key, Plain>);

impl Check for Extensions {
    fn check(&self) -> Result<(), Fault> {
        self.0.check()?;
        let reverse_dns = |key: &Key| key.as_str().split('.').filter(|label| !label.is_empty()).count() >= 2;
        match self.0.keys().find(|key| !reverse_dns(key)) {
            Some(key) => {
                Err(Fault::schema("an extension's key is a reverse-DNS name, such as `org.example.note`").within(key))
            }
            None => Ok(()),
        }
    }
}

/// The envelope around a body. `B` is [`Body`] once the body has been read as the contract that `type` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "B: Deserialize<'de>"))]
pub struct Envelope<B = Body> {
    /// Row CP-C1-F01: exactly [`PROTOCOL_VERSION`].
    pub protocol_version: Key,
    /// Row CP-C1-F02.
    pub payload_id: PayloadId,
    /// Row CP-C1-F03.
    pub r#type: PayloadType,
    /// Row CP-C1-F04: the producer's own time; data, never a deadline (DEC-59).
    pub created_at: Timestamp,
    /// Row CP-C1-F05.
    pub producer: ActorRef,
    /// Row CP-C1-F06.
    pub parents: Vec<PayloadId>,
    /// Row CP-C1-F07: empty only before matching.
    pub obligation_ids: Vec<ObligationId>,
    /// Row CP-C1-F08.
    #[serde(deserialize_with = "present")]
    pub episode_id: Option<EpisodeId>,
    /// Row CP-C1-F09.
    #[serde(deserialize_with = "present")]
    pub semantic_basis: Option<StateRef>,
    /// Row CP-C1-F10.
    pub disclosure: DisclosureRef,
    /// Row CP-C1-F11.
    #[serde(deserialize_with = "present")]
    pub budget_ref: Option<BudgetId>,
    /// Row CP-C1-F12.
    #[serde(deserialize_with = "present")]
    pub causation_event_id: Option<EventId>,
    /// Row CP-C1-F13: the contract named by `type`.
    pub body: B,
    /// Row CP-C1-F14: over all other fields.
    pub content_digest: Digest,
    /// Extensions (DEC-09).
    #[serde(default, deserialize_with = "stated", skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Extensions>,
}

impl Envelope<IgnoredAny> {
    /// The envelope with its body, which was read apart.
    fn around(self, body: Body) -> Envelope {
        Envelope {
            protocol_version: self.protocol_version,
            payload_id: self.payload_id,
            r#type: self.r#type,
            created_at: self.created_at,
            producer: self.producer,
            parents: self.parents,
            obligation_ids: self.obligation_ids,
            episode_id: self.episode_id,
            semantic_basis: self.semantic_basis,
            disclosure: self.disclosure,
            budget_ref: self.budget_ref,
            causation_event_id: self.causation_event_id,
            body,
            content_digest: self.content_digest,
            extensions: self.extensions,
        }
    }
}

impl<B> Contract for Envelope<B> {
    const NAME: &'static str = "Envelope";
    const FIELDS: &'static [Field] = &[
        Field { row: "CP-C1-F01", name: "protocol_version" },
        Field { row: "CP-C1-F02", name: "payload_id" },
        Field { row: "CP-C1-F03", name: "type" },
        Field { row: "CP-C1-F04", name: "created_at" },
        Field { row: "CP-C1-F05", name: "producer" },
        Field { row: "CP-C1-F06", name: "parents" },
        Field { row: "CP-C1-F07", name: "obligation_ids" },
        Field { row: "CP-C1-F08", name: "episode_id" },
        Field { row: "CP-C1-F09", name: "semantic_basis" },
        Field { row: "CP-C1-F10", name: "disclosure" },
        Field { row: "CP-C1-F11", name: "budget_ref" },
        Field { row: "CP-C1-F12", name: "causation_event_id" },
        Field { row: "CP-C1-F13", name: "body" },
        Field { row: "CP-C1-F14", name: "content_digest" },
    ];
}

macro_rules! bodies {
    ($($variant:ident($contract:ty) = $type:ident),+ $(,)?) => {
        /// The typed body of a payload.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Body {
            $(#[doc = concat!("See [`", stringify!($contract), "`].")] $variant(Arc<$contract>)),+
        }

        impl Body {
            /// The payload type whose contract this is.
            #[must_use]
            pub const fn payload_type(&self) -> PayloadType {
                match self { $(Self::$variant(_) => PayloadType::$type),+ }
            }

            fn typed(payload_type: PayloadType, value: &Value) -> serde_json::Result<Self> {
                match payload_type {
                    $(PayloadType::$type => <$contract>::deserialize(value).map(|body| Self::$variant(Arc::new(body)))),+
                }
            }

            fn read(payload_type: PayloadType, value: Value) -> Result<Self, Fault> {
                match payload_type {
                    $(PayloadType::$type => canonical::from_value(value).map(|body| Self::$variant(Arc::new(body)))),+
                }
            }
        }

        impl Serialize for Body {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(Self::$variant(body) => body.serialize(serializer)),+ }
            }
        }

        impl Check for Body {
            fn check(&self) -> Result<(), Fault> {
                match self { $(Self::$variant(body) => body.check()),+ }
            }
        }

        $(impl From<$contract> for Body {
            fn from(body: $contract) -> Self {
                Self::$variant(Arc::new(body))
            }
        })+
    };
}

bodies! {
    Event(Event) = Event,
    Obligation(Obligation) = Obligation,
    Route(Route) = Route,
    Work(Work) = Work,
    Result(WorkResult) = Result,
    Action(Action) = Action,
    Evidence(Evidence) = Evidence,
    Adjudication(Adjudication) = Adjudication,
    Delta(Delta) = Delta,
    Reentry(Reentry) = Reentry,
    Handoff(Handoff) = Handoff,
    Briefcase(Briefcase) = Briefcase,
}

/// A payload: its envelope with the bytes and digest that name it, never serialized again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    envelope: Envelope,
    bytes: Arc<[u8]>,
}

impl Payload {
    /// Makes a payload from a draft: fills in `protocol_version`, `type` and `content_digest` and checks the whole.
    ///
    /// # Errors
    /// `schema_invalid` or `oversize`, with the path of the field.
    pub fn seal(mut envelope: Envelope) -> Result<Self, Fault> {
        envelope.protocol_version = Key::from(PROTOCOL_VERSION);
        envelope.r#type = envelope.body.payload_type();
        let members = Members::of(&envelope)?;
        envelope.content_digest = Digest::of(&members.without("content_digest"));
        check(&envelope)?;
        let bytes = members.with("content_digest", &envelope.content_digest)?;
        canonical::check_size(&bytes)?;
        Ok(Self { envelope, bytes: bytes.into() })
    }

    /// Reads received bytes: strict, canonical, of the known version, of the contract its `type` names, with the digest
    /// it states.
    ///
    /// # Errors
    /// `unknown_version` before the body is read; `schema_invalid`, `oversize`, `digest_mismatch`.
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        canonical::check_size(bytes)?;
        let value = canonical::read_value(bytes)?;
        let (envelope, members) = match Self::typed(&value) {
            Some(envelope) => {
                let members = Members::of(&envelope)?;
                match canonical::is_form(bytes, members.whole()) {
                    true => (envelope, members),
                    false => return Err(canonical::misfit(bytes, value, Self::explain)),
                }
            }
            None => return Err(canonical::misfit(bytes, value, Self::explain)),
        };
        check(&envelope)?;
        let digest = Digest::of(&members.without("content_digest"));
        match crate::branch!("envelope.content_digest_agrees", digest == envelope.content_digest) {
            true => Ok(Self { envelope, bytes: bytes.into() }),
            false => Err(Fault::new(RefusalCode::DigestMismatch, "the content digest is not that of the envelope")
                .within("content_digest")),
        }
    }

    /// The envelope that a value holds, of the known version, with the body that its `type` names.
    fn typed(value: &Value) -> Option<Envelope> {
        let version = value.get("protocol_version").and_then(Value::as_str);
        if crate::branch!("envelope.version_unknown", version != Some(PROTOCOL_VERSION)) {
            return None;
        }
        let payload_type = PayloadType::deserialize(value.get("type")?).ok()?;
        let body = Body::typed(payload_type, value.get("body")?).ok()?;
        Some(Envelope::<IgnoredAny>::deserialize(value).ok()?.around(body))
    }

    /// Why a value is no payload.
    fn explain(value: Value) -> Option<Fault> {
        let version = value.get("protocol_version").and_then(Value::as_str);
        if version != Some(PROTOCOL_VERSION) {
            let known = format!("the protocol version is `{PROTOCOL_VERSION}`");
            return Some(Fault::new(RefusalCode::UnknownVersion, known).within("protocol_version"));
        }
        match canonical::from_value::<Envelope<Value>>(value) {
            Ok(outer) => Body::read(outer.r#type, outer.body).err().map(|fault| fault.within("body")),
            Err(fault) => Some(fault),
        }
    }

    /// The envelope.
    #[must_use]
    pub const fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// The typed body.
    #[must_use]
    pub const fn body(&self) -> &Body {
        &self.envelope.body
    }

    /// The payload's id.
    #[must_use]
    pub const fn id(&self) -> &PayloadId {
        &self.envelope.payload_id
    }

    /// The digest over all fields but itself.
    #[must_use]
    pub const fn content_digest(&self) -> Digest {
        self.envelope.content_digest
    }

    /// The canonical bytes.
    #[must_use]
    pub const fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }
}

/// The lineage rule of the body's type; an adjudication that is not an endorsement belongs to an episode.
pub(crate) fn lineage(body: &Body) -> LineageRule {
    let rule = body.payload_type().lineage();
    let of_work = matches!(body, Body::Adjudication(body) if body.phase != Phase::SemanticCommit);
    LineageRule { episode_optional: rule.episode_optional && !of_work, ..rule }
}

/// Checks bounds, the agreement of type and body, and the lineage that the type may not lack (DEC-18).
fn check(envelope: &Envelope) -> Result<(), Fault> {
    envelope.payload_id.check().map_err(|fault| fault.within("payload_id"))?;
    envelope.producer.check().map_err(|fault| fault.within("producer"))?;
    envelope.parents.check().map_err(|fault| fault.within("parents"))?;
    envelope.obligation_ids.check().map_err(|fault| fault.within("obligation_ids"))?;
    envelope.episode_id.check().map_err(|fault| fault.within("episode_id"))?;
    envelope.semantic_basis.check().map_err(|fault| fault.within("semantic_basis"))?;
    envelope.disclosure.check().map_err(|fault| fault.within("disclosure"))?;
    envelope.budget_ref.check().map_err(|fault| fault.within("budget_ref"))?;
    envelope.causation_event_id.check().map_err(|fault| fault.within("causation_event_id"))?;
    envelope.extensions.check().map_err(|fault| fault.within("extensions"))?;
    if crate::branch!("envelope.names_itself_as_parent", envelope.parents.contains(&envelope.payload_id)) {
        return Err(Fault::new(RefusalCode::UnresolvedRef, "a payload is not its own parent").within("parents"));
    }
    let rule = lineage(&envelope.body);
    let missing = [
        (!rule.obligations_optional && envelope.obligation_ids.is_empty(), "obligation_ids"),
        (!rule.episode_optional && envelope.episode_id.is_none(), "episode_id"),
        (!rule.basis_optional && envelope.semantic_basis.is_none(), "semantic_basis"),
        (!rule.budget_optional && envelope.budget_ref.is_none(), "budget_ref"),
    ]
    .into_iter()
    .find(|(missing, _)| crate::branch!("envelope.lineage_missing", *missing));
    if let Some((_, field)) = missing {
        return Err(Fault::schema(format!("a payload of type `{}` states its {field}", envelope.r#type)).within(field));
    }
    envelope.body.check().map_err(|fault| fault.within("body"))
}

/// The digest over a whole object except its own digest field (C1, C10).
///
/// # Errors
/// `schema_invalid` when the object has no canonical form.
pub fn digest_without<T: Serialize>(object: &T, field: &str) -> Result<Digest, Fault> {
    Ok(Digest::of(&Members::of(object)?.without(field)))
}
