//! Kernels as they are written.

use crate::strategy::mapping::Mapping;
use crate::strategy::{Arguments, Stopped, Strategy, Work};
use serde::{Deserialize, Serialize};
use std::fmt;

/// As it is written: everything in order, on one work-item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequential {}

impl fmt::Display for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("as it is written")
    }
}

impl Arguments for Sequential {
    const NAME: &'static str = "sequential";
    const SUMMARY: &'static str = "As it is written: everything in order, on one work-item.";
}

impl Strategy for Sequential {
    fn apply(&self, _: &mut Work<'_>) -> Result<(), Stopped> {
        Ok(())
    }
}

impl Mapping {
    /// As it is written.
    #[must_use]
    pub fn sequential() -> Self {
        Sequential {}.into()
    }
}
