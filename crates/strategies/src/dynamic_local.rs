//! Local memory in one array.

use crate::strategy::mapping::Mapping;
use crate::strategy::{Arguments, Combinator, Stopped, Work};
use kingpost_primitives::primitives::LaunchHint;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Another mapping, with all arrays in local memory as parts of one that the launch provides.
///
/// # Errors
/// A kernel without a temporary in local memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DynamicLocal {}

impl fmt::Display for DynamicLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dynamic local memory")
    }
}

impl Arguments for DynamicLocal {
    const NAME: &'static str = "dynamic_local";
    const SUMMARY: &'static str = "All arrays in local memory as parts of one that the launch provides.";
}

impl Combinator for DynamicLocal {
    fn apply(&self, on: &mut Work<'_>, then: &Mapping) -> Result<(), Stopped> {
        // last: it is about the arrays that the other mapping puts there
        on.hand_on(then)?;
        Ok(on.schedule().apply(LaunchHint::dynamic_local()).map(drop)?)
    }

    fn is_over_modes(&self, then: &Mapping) -> bool {
        then.is_over_modes()
    }

    fn show(&self, then: &Mapping, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{then}, {self}")
    }
}

impl Mapping {
    /// The same with all arrays in local memory as parts of one that the launch provides.
    #[must_use]
    pub fn with_dynamic_local(self) -> Self {
        DynamicLocal {}.before(self)
    }
}
