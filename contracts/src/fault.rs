//! What is wrong with bytes from outside: a code, the place and the reason.

use crate::refusal::RefusalCode;
use std::borrow::Cow;
use std::fmt;

/// A defect found while reading or checking a payload. It becomes a recorded refusal at intake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The refusal this defect leads to.
    pub code: RefusalCode,
    /// Where in the object, as a dotted path from its root; empty for the object itself.
    pub path: String,
    /// Why, in the user's vocabulary.
    pub reason: Cow<'static, str>,
}

impl Fault {
    /// A defect of the object itself.
    #[must_use]
    pub fn new(code: RefusalCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { code, path: String::new(), reason: reason.into() }
    }

    /// A violation of the contract's shape. Code `schema_invalid`.
    #[must_use]
    pub fn schema(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(RefusalCode::SchemaInvalid, reason)
    }

    /// A value beyond its published bound. Code `oversize`.
    #[must_use]
    pub fn oversize(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(RefusalCode::Oversize, reason)
    }

    /// The same defect, seen from the enclosing object.
    #[must_use]
    pub fn within(mut self, field: impl fmt::Display) -> Self {
        self.path = match self.path.is_empty() {
            true => field.to_string(),
            false => format!("{field}.{}", self.path),
        };
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_empty() {
            true => write!(f, "{}: {}", self.code.as_str(), self.reason),
            false => write!(f, "{}: {} at `{}`", self.code.as_str(), self.reason, self.path),
        }
    }
}

impl std::error::Error for Fault {}
