//! How close tables that replace others are to them.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Decimal digits to which numbers are equal, relative to what a step says; `N` unless asked otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digits<const N: u32>(pub u32);

impl<const N: u32> Digits<N> {
    /// The largest relative difference, `10^-digits`.
    #[must_use]
    pub fn tolerance(self) -> f64 {
        0.1_f64.powi(i32::try_from(self.0).unwrap_or(i32::MAX))
    }

    /// Whether nothing else was asked for.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl<const N: u32> Default for Digits<N> {
    fn default() -> Self {
        Self(N)
    }
}

/// What stands behind a step that was asked for other digits; nothing otherwise.
impl<const N: u32> fmt::Display for Digits<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_default() { Ok(()) } else { write!(f, " to {} digits", self.0) }
    }
}

impl<const N: u32> JsonSchema for Digits<N> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        u32::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        u32::json_schema(generator)
    }
}
