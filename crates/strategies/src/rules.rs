//! Other quadrature rules.

use crate::strategy::mapping::Mapping;
use crate::strategy::relowering::Relowering;
use crate::strategy::{Arguments, Combinator, Stopped, Work};
use kingpost_fem::quadrature::QuadratureScheme;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Quadrature rules of another scheme, where both are exact, and then another mapping.
///
/// # Errors
/// A kernel that was not lowered from a form, an integral that a rule need not integrate exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// The scheme.
    pub scheme: QuadratureScheme,
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rules `{}`", self.scheme)
    }
}

impl Arguments for Rules {
    const NAME: &'static str = "rules";
    const SUMMARY: &'static str = "Quadrature rules of another scheme, where both are exact.";
}

impl Combinator for Rules {
    fn apply(&self, on: &mut Work<'_>, then: &Mapping) -> Result<(), Stopped> {
        on.lower(Relowering::Rules(self.scheme))?;
        on.hand_on(then)
    }
}

impl Mapping {
    /// The same after rules of a scheme.
    #[must_use]
    pub fn with_rules(self, scheme: QuadratureScheme) -> Self {
        Rules { scheme }.before(self)
    }
}
