//! Identifiers and bounded text.
//!
//! An id is opaque ASCII of 1 to 128 characters from `[A-Za-z0-9._:-]`, unique in a space across all kinds, never
//! reused and never parsed for meaning (DEC-07). Each kind has its own type; the store keeps the kind beside the id.

use crate::branch;
use crate::contract::Check;
use crate::fault::Fault;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The longest id, in bytes.
pub const ID_BYTES_MAX: usize = 128;
/// The longest `Text`, in bytes.
pub const TEXT_BYTES_MAX: usize = 4096;
/// The longest `Key`, in bytes.
pub const KEY_BYTES_MAX: usize = 256;

fn check_id(text: &str) -> Result<(), Fault> {
    if branch!("id.beyond_bound", text.len() > ID_BYTES_MAX) {
        return Err(Fault::oversize("an id has at most 128 characters"));
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
    if branch!("id.malformed", text.is_empty() || !text.bytes().all(plain)) {
        return Err(Fault::schema("an id has 1 to 128 characters from A-Z a-z 0-9 . _ : -"));
    }
    Ok(())
}

fn check_stream(text: &str) -> Result<(), Fault> {
    check_text(text, KEY_BYTES_MAX)?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-' | b'/');
    match text.bytes().all(plain) {
        true => Ok(()),
        false => Err(Fault::schema("a stream's name has characters from A-Z a-z 0-9 . _ : - /")),
    }
}

fn check_text(text: &str, bytes_max: usize) -> Result<(), Fault> {
    if branch!("text.beyond_bound", text.len() > bytes_max) {
        return Err(Fault::oversize(format!("text has at most {bytes_max} bytes")));
    }
    if text.is_empty() {
        return Err(Fault::schema("text is not empty"));
    }
    Ok(())
}

macro_rules! strings {
    ($check:expr, $bytes_max:expr, $schema:expr; $($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps text; whether it is well-formed is told by [`Check::check`].
            #[must_use]
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::new(text)
            }
        }

        impl Check for $name {
            fn check(&self) -> Result<(), Fault> {
                let check: fn(&str) -> Result<(), Fault> = $check;
                check(&self.0)
            }
        }

        #[cfg(any(test, feature = "example"))]
        impl crate::example::Example for $name {
            fn example(extent: crate::example::Extent) -> Self {
                crate::example::text_of(stringify!($name), $bytes_max, extent).into()
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    )+};
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        strings! { check_id, ID_BYTES_MAX, schemars::json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$" }); $($(#[$doc])* $name),+ }

        $(impl From<$name> for Id {
            fn from(id: $name) -> Self {
                Self(id.0)
            }
        }

        impl From<&$name> for Id {
            fn from(id: &$name) -> Self {
                Self(id.0.clone())
            }
        })+
    };
}

strings! { check_id, ID_BYTES_MAX, schemars::json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$" });
    /// An id of any kind, where the kind stands beside it.
    Id,
}

ids! {
    /// Names one payload. Spec: C1.
    PayloadId,
    /// Names one obligation. Spec: C3.
    ObligationId,
    /// Names one bounded episode of work. Spec: SR5.
    EpisodeId,
    /// Names one event. Spec: C2.
    EventId,
    /// Names a budget in the ledger's tree. Spec: §8.3.
    BudgetId,
    /// Names an actor: an identity in the registry. Spec: C1.
    ActorId,
    /// Names a registered source of events or evidence. Spec: C2.
    SourceId,
    /// Names an entity of the world that events are about. Spec: C2.
    EntityId,
    /// Names a registered kind of change. Spec: C2.
    ChangeKindId,
    /// Names a purpose of disclosure. Spec: C1.
    PurposeId,
    /// Names a category of disclosed items. Spec: DEC-79.
    CategoryId,
    /// Names a disclosure receipt. Spec: C1.
    DisclosureId,
    /// Names a resolution condition of an obligation. Spec: C3.
    ConditionId,
    /// Names a proposition. Spec: DEC-39.
    PropositionId,
    /// Names a rule: matching, sufficiency, decision or policy. Spec: DEC-33, DEC-38.
    RuleId,
    /// Names a route. Spec: C4.
    RouteId,
    /// Names a coalition. Spec: C4.
    CoalitionId,
    /// Names a capability or its contract. Spec: C4.
    CapabilityId,
    /// Names a cognitive workflow of the catalogue. Spec: SR9.
    WorkflowId,
    /// Names a skill of the catalogue. Spec: SR10.
    SkillId,
    /// Names one unit of work. Spec: C5.
    WorkId,
    /// Names a registered operation. Spec: C7.
    OperationId,
    /// Names one logical action; resolves to its logical digest. Spec: C7.
    ActionId,
    /// Names one attempt. Spec: C7.
    AttemptId,
    /// Names one observation. Spec: C8.
    EvidenceId,
    /// Names a registered readback method. Spec: C8.
    ReadbackMethodId,
    /// Names one adjudication. Spec: C9.
    AdjudicationId,
    /// Names one delta. Spec: C10.
    DeltaId,
    /// Names one reentry trigger. Spec: C11.
    ReentryId,
    /// Names a registered policy. Spec: DEC-60.
    PolicyId,
    /// Names one handoff. Spec: C12.
    HandoffId,
    /// Names one decision packet. Spec: C13.
    DecisionId,
    /// Names one option of a packet. Spec: C13.
    OptionId,
    /// Names a declaration of the user. Spec: C14.
    DeclarationId,
    /// Names a grant. Spec: C14.
    GrantId,
    /// Names a receipt. Spec: C14.
    ReceiptId,
    /// Names a goal. Spec: §5.
    GoalId,
    /// Names a constraint. Spec: §5.
    ConstraintId,
    /// Names an accepted claim. Spec: §5.
    ClaimId,
    /// Names a reusable method. Spec: §5.
    MethodId,
    /// Names a dependency between accepted items. Spec: §5.
    DependencyId,
    /// Names a restriction in force. Spec: §7.2.
    RestrictionId,
    /// Names one conference. Spec: §4.1.
    ConferenceId,
    /// Names one participant's context: what it has seen, it has seen in this. Spec: §4.1, DEC-42.
    ContextId,
    /// Names a signing key: the digest of its canonical bytes. Spec: DEC-12.
    KeyId,
    /// Names an in-process session bound to one identity. Spec: §6.1.
    SessionId,
    /// Names a deployment profile. Spec: Appendix A.
    ProfileId,
    /// Names an immutable artifact. Spec: Appendix B.
    ArtifactId,
    /// Names a confession. Spec: C14.
    ConfessionId,
    /// Names a disclosure incident. Spec: C14.
    IncidentId,
}

strings! { check_stream, KEY_BYTES_MAX, schemars::json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9._:/-]{1,256}$" });
    /// Names a stream of observations with its own counter, such as `service-a/candidate/export-probes`: 1 to 256
    /// characters of an id or `/`. Spec: §6.3.
    ObservationStreamId,
}

strings! { |text| check_text(text, TEXT_BYTES_MAX), TEXT_BYTES_MAX, schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": 4096, "x-max-bytes": 4096 });
    /// Text of 1 to 4,096 bytes for people to read. It never decides identity (Appendix B).
    Text,
}

strings! { |text| check_text(text, KEY_BYTES_MAX), KEY_BYTES_MAX, schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": 256, "x-max-bytes": 256 });
    /// A key or name of 1 to 256 bytes, compared byte for byte.
    Key,
}
