//! How a contract is written down: one macro that yields the type, its field rows, its bounds check and its schema.

use crate::fault::Fault;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most items a list may carry in one payload; longer ones are paged (Appendix B, DEC-11).
pub const LIST_ITEMS_MAX: usize = 4096;

/// What the types alone cannot say: bounds, non-emptiness and agreement between fields.
pub trait Check {
    /// Finds the first defect.
    ///
    /// # Errors
    /// `schema_invalid` or `oversize`, with the path of the field.
    fn check(&self) -> Result<(), Fault>;
}

/// One field of a contract and the requirement row that asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The requirement row.
    pub row: &'static str,
    /// The field's name on the wire.
    pub name: &'static str,
}

/// A contract of Appendix C: its name and the rows of its fields.
pub trait Contract {
    /// The contract's name in the specification.
    const NAME: &'static str;
    /// Its fields in the specification's order.
    const FIELDS: &'static [Field];
}

/// Reads a field that must be there. On an `Option` this separates `null` (allowed) from absent (refused); DEC-08.
///
/// # Errors
/// Those of the field's own type.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::deserialize(deserializer)
}

/// Reads an optional member that is there, which may not be `null` (DEC-09).
///
/// # Errors
/// Those of the member's own type.
pub fn stated<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A field's name on the wire: its name in Rust without the mark of a raw identifier.
#[must_use]
pub const fn wire_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', rest @ ..] => match std::str::from_utf8(rest) {
            Ok(rest) => rest,
            Err(_) => name,
        },
        _ => name,
    }
}

/// Declares a contract: `"ROW" field: Type,` in the specification's order.
///
/// `Option<T>` is a nullable field, which must be present all the same (DEC-08). Unknown fields are refused.
/// `checked by f` names a function for the rules between fields. After `;` stands the one optional member, mostly
/// `extensions` (DEC-09).
#[macro_export]
macro_rules! contract {
    (
        $(#[$doc:meta])*
        pub struct $name:ident = $wire:literal $(checked by $extra:path)? {
            $($(#[$field_doc:meta])* $row:literal $field:ident : $ty:ty),+
            $(; $(#[$optional_doc:meta])* $optional:ident : Option<$optional_ty:ty>)? $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $(
                $(#[$field_doc])*
                #[doc = concat!("Row ", $row, ".")]
                #[serde(deserialize_with = "crate::contract::present")]
                pub $field: $ty,
            )+
            $(
                $(#[$optional_doc])*
                #[serde(
                    default,
                    deserialize_with = "crate::contract::stated",
                    skip_serializing_if = "Option::is_none"
                )]
                pub $optional: Option<$optional_ty>,
            )?
        }

        impl $crate::contract::Contract for $name {
            const NAME: &'static str = $wire;
            const FIELDS: &'static [$crate::contract::Field] =
                &[$($crate::contract::Field { row: $row, name: $crate::contract::wire_name(stringify!($field)) }),+];
        }

        #[cfg(any(test, feature = "example"))]
        impl $crate::example::Parts for $name {
            fn parts(extent: $crate::example::Extent) -> Self {
                use $crate::example::Example;
                Self {
                    $($field: Example::example(extent),)+
                    $($optional: Example::example(extent),)?
                }
            }
        }

        impl $crate::contract::Check for $name {
            fn check(&self) -> Result<(), $crate::fault::Fault> {
                $($crate::contract::Check::check(&self.$field)
                    .map_err(|fault| fault.within($crate::contract::wire_name(stringify!($field))))?;)+
                $($crate::contract::Check::check(&self.$optional).map_err(|fault| fault.within(stringify!($optional)))?;)?
                $({
                    let extra: fn(&$name) -> Result<(), $crate::fault::Fault> = $extra;
                    extra(self)?;
                })?
                Ok(())
            }
        }
    };
}

/// Declares a closed enum of unit variants with its words on the wire, in protocol order.
#[macro_export]
macro_rules! word_enum {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every value, in protocol order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::contract::Check for $name {
            fn check(&self) -> Result<(), $crate::fault::Fault> {
                Ok(())
            }
        }
    };
}

/// A [`word_enum!`](crate::word_enum) of a contract: with its JSON Schema and its examples.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* pub enum $name:ident { $($variants:tt)+ }) => {
        $crate::word_enum! {
            $(#[$doc])*
            #[derive(schemars::JsonSchema)]
            pub enum $name { $($variants)+ }
        }

        #[cfg(any(test, feature = "example"))]
        impl $crate::example::Example for $name {
            fn example(extent: $crate::example::Extent) -> Self {
                $crate::example::one_of(Self::ALL, extent)
            }
        }
    };
}

macro_rules! unbounded {
    ($($ty:ty),+) => {$(
        impl Check for $ty {
            fn check(&self) -> Result<(), Fault> {
                Ok(())
            }
        }
    )+};
}

unbounded!(bool, u8, u16, u32);

/// The largest integer of I-JSON, 2^53 - 1 (DEC-02).
pub const INTEGER_MAX: u64 = 9_007_199_254_740_991;

impl Check for u64 {
    fn check(&self) -> Result<(), Fault> {
        match *self <= INTEGER_MAX {
            true => Ok(()),
            false => Err(Fault::schema("an integer is at most 2^53 - 1; larger ones are decimal strings")),
        }
    }
}

impl Check for i64 {
    fn check(&self) -> Result<(), Fault> {
        self.unsigned_abs().check()
    }
}

impl<T: Check> Check for Option<T> {
    fn check(&self) -> Result<(), Fault> {
        self.as_ref().map_or(Ok(()), Check::check)
    }
}

impl<T: Check> Check for Box<T> {
    fn check(&self) -> Result<(), Fault> {
        (**self).check()
    }
}

impl<T: Check> Check for Arc<T> {
    fn check(&self) -> Result<(), Fault> {
        (**self).check()
    }
}

pub(crate) fn check_length(items: usize) -> Result<(), Fault> {
    match crate::branch!("contract.list_beyond_bound", items > LIST_ITEMS_MAX) {
        true => Err(Fault::oversize(format!("a list has at most {LIST_ITEMS_MAX} items; page longer ones"))),
        false => Ok(()),
    }
}

impl<T: Check> Check for Vec<T> {
    fn check(&self) -> Result<(), Fault> {
        check_length(self.len())?;
        self.iter().enumerate().try_for_each(|(i, item)| item.check().map_err(|fault| fault.within(i)))
    }
}

impl<K: Check + std::fmt::Display, V: Check> Check for BTreeMap<K, V> {
    fn check(&self) -> Result<(), Fault> {
        check_length(self.len())?;
        self.iter()
            .try_for_each(|(key, value)| key.check().and_then(|()| value.check()).map_err(|fault| fault.within(key)))
    }
}

/// Refuses an empty list where the contract says `List[1..]`.
///
/// # Errors
/// `schema_invalid`.
pub fn nonempty<T>(items: &[T], field: &'static str) -> Result<(), Fault> {
    match crate::branch!("contract.list_is_empty", items.is_empty()) {
        true => Err(Fault::schema("the list has at least one item").within(field)),
        false => Ok(()),
    }
}
