//! Valid instances of every contract, for tests: the least that is valid, everything present, and every bound reached.
//!
//! Instances are put together field by field from those of the field types; what a contract demands between its fields
//! is settled in [`settled`]. Ids are alike (`obligation-1`), so a test that needs two of a kind sets its own.

use crate::contract::INTEGER_MAX;
use crate::digest::Digest;
use crate::envelope::{Body, DisclosureRef, Envelope, Extensions, Payload};
use crate::id::{ActorId, PayloadId};
use crate::payload_type::PayloadType;
use crate::refs::{ActorRef, Plain};
use crate::time::Timestamp;
use std::collections::BTreeMap;

mod plain;
mod settled;
mod values;

pub use values::{changes, items, signing_key};

/// How much of a contract an instance shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Nullable fields are null and lists empty wherever that is valid.
    Minimal,
    /// Every field is there and no list is empty.
    Full,
    /// As full, with every text as long and every integer as large as it may be.
    Bound,
}

impl Extent {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Minimal, Self::Full, Self::Bound];
}

/// A type with valid instances.
pub trait Example {
    /// A valid instance.
    fn example(extent: Extent) -> Self;
}

/// A contract put together from examples of its fields. Valid by itself only where no rule binds the fields together.
pub trait Parts {
    /// The fields' examples, put together.
    fn parts(extent: Extent) -> Self;
}

/// The first word of a closed set, or the last.
pub(crate) fn one_of<T: Copy>(words: &[T], extent: Extent) -> T {
    match extent {
        Extent::Minimal => words[0],
        Extent::Full | Extent::Bound => words[words.len() - 1],
    }
}

/// A text that says what it names: `ObligationId` gives `obligation-1`.
pub(crate) fn text_of(type_name: &str, bytes_max: usize, extent: Extent) -> String {
    let stem = type_name.strip_suffix("Id").unwrap_or(type_name);
    let mut text = String::new();
    for c in stem.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(c.to_ascii_lowercase());
    }
    text.push_str("-1");
    if extent == Extent::Bound {
        text.extend(std::iter::repeat_n('x', bytes_max - text.len()));
    }
    text
}

/// A payload of this type that is valid as it stands.
#[must_use]
pub fn payload(payload_type: PayloadType, extent: Extent) -> Payload {
    Payload::seal(envelope(body(payload_type, extent), extent)).expect("an example is valid")
}

/// A body of this type.
#[must_use]
pub fn body(payload_type: PayloadType, extent: Extent) -> Body {
    match payload_type {
        PayloadType::Event => crate::event::Event::example(extent).into(),
        PayloadType::Obligation => crate::obligation::Obligation::example(extent).into(),
        PayloadType::Route => crate::route::Route::example(extent).into(),
        PayloadType::Work => crate::work::Work::example(extent).into(),
        PayloadType::Result => crate::work::WorkResult::example(extent).into(),
        PayloadType::Action => crate::action::Action::example(extent).into(),
        PayloadType::Evidence => crate::evidence::Evidence::example(extent).into(),
        PayloadType::Adjudication => crate::adjudication::Adjudication::example(extent).into(),
        PayloadType::Delta => crate::delta::Delta::example(extent).into(),
        PayloadType::Reentry => crate::reentry::Reentry::example(extent).into(),
        PayloadType::Handoff => crate::handoff::Handoff::example(extent).into(),
        PayloadType::Briefcase => crate::briefcase::Briefcase::example(extent).into(),
    }
}

/// The envelope around a body, with the producer that the message map names and the lineage that the type may not lack.
#[must_use]
pub fn envelope(body: Body, extent: Extent) -> Envelope {
    let payload_type = body.payload_type();
    let lineage = crate::envelope::lineage(&body);
    let full = extent != Extent::Minimal;
    Envelope {
        protocol_version: crate::envelope::PROTOCOL_VERSION.into(),
        payload_id: PayloadId::example(extent),
        r#type: payload_type,
        created_at: Timestamp::example(extent),
        producer: ActorRef { actor_id: ActorId::example(extent), role: payload_type.producers()[0] },
        parents: full.then(|| PayloadId::from("payload-0")).into_iter().collect(),
        obligation_ids: (full || !lineage.obligations_optional).then(|| Example::example(extent)).into_iter().collect(),
        episode_id: (full || !lineage.episode_optional).then(|| Example::example(extent)),
        semantic_basis: (full || !lineage.basis_optional).then(|| Example::example(extent)),
        disclosure: DisclosureRef::example(extent),
        budget_ref: (full || !lineage.budget_optional).then(|| Example::example(extent)),
        causation_event_id: Example::example(extent),
        body,
        content_digest: Digest::of(b""),
        extensions: Example::example(extent),
    }
}

impl<T: Example> Example for Option<T> {
    fn example(extent: Extent) -> Self {
        (extent != Extent::Minimal).then(|| T::example(extent))
    }
}

impl<T: Example> Example for Vec<T> {
    fn example(extent: Extent) -> Self {
        Option::<T>::example(extent).into_iter().collect()
    }
}

impl<K: Example + Ord, V: Example> Example for BTreeMap<K, V> {
    fn example(extent: Extent) -> Self {
        let entry = (extent != Extent::Minimal).then(|| (K::example(extent), V::example(extent)));
        entry.into_iter().collect()
    }
}

impl<T: Example> Example for Box<T> {
    fn example(extent: Extent) -> Self {
        Self::new(T::example(extent))
    }
}

impl Example for bool {
    fn example(extent: Extent) -> Self {
        extent != Extent::Minimal
    }
}

impl Example for u32 {
    fn example(extent: Extent) -> Self {
        match extent {
            Extent::Minimal => 0,
            Extent::Full => 2,
            Extent::Bound => Self::MAX,
        }
    }
}

impl Example for u64 {
    fn example(extent: Extent) -> Self {
        match extent {
            Extent::Minimal => 0,
            Extent::Full => 14,
            Extent::Bound => INTEGER_MAX,
        }
    }
}

impl Example for i64 {
    fn example(extent: Extent) -> Self {
        match extent {
            Extent::Minimal => 0,
            Extent::Full => 25,
            Extent::Bound => 1 - (1 << 53),
        }
    }
}

impl Example for Timestamp {
    fn example(extent: Extent) -> Self {
        let text = match extent {
            Extent::Minimal => "2026-01-01T12:00:00Z",
            Extent::Full => "2026-01-01T12:01:00.250Z",
            Extent::Bound => "9999-12-31T23:59:59.999Z",
        };
        Self::parse(text).expect("a timestamp")
    }
}

impl Example for Digest {
    fn example(_: Extent) -> Self {
        Self::of(b"example")
    }
}

impl Example for Plain {
    fn example(extent: Extent) -> Self {
        Self(match extent {
            Extent::Minimal => serde_json::Value::Null,
            Extent::Full => serde_json::json!({ "plan": "standard", "seats": 25, "tags": ["a", "é"] }),
            Extent::Bound => serde_json::Value::String("x".repeat(crate::refs::PLAIN_BYTES_MAX)),
        })
    }
}

impl Example for Extensions {
    fn example(extent: Extent) -> Self {
        Self(BTreeMap::from([("org.example.note".into(), Plain::example(extent))]))
    }
}
