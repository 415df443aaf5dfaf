//! Gives a parameter a value for good.

use super::Transform;
use super::assume::has_solution;
use super::tag_iname::check_placement;
use crate::lookup;
use crate::refusal::Refusal;
use purlin_ir::affine::MAX_COEFFICIENT;
use purlin_ir::{Affine, Assumption, Kernel, ScalarType, VarKind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Replaces a parameter by a constant; it is no argument any more.
///
/// # Rewrite
/// ```text
/// param n: i32               =>   for i in 0..8
/// for i in 0..n                     S(i)
///   S(i)
/// ```
///
/// # Precondition
/// The value `v` fits the parameter's type, and the assumptions `A` together still have a solution:
/// `{ params : A, n = v }` is not empty. No extent becomes a negative constant. In a minimum or maximum
/// that has the type `i32` from it, the literal is cast: over nothing it is an end of its type.
///
/// # Errors
/// An unknown variable, one that is no parameter, a value that does not fit, that an assumption
/// excludes, or that makes an extent negative.
///
/// # Elsewhere
/// Loopy `fix_parameters`; Exo `specialize`; TVM `specialize`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixParameter {
    /// The parameter.
    pub param: String,
    /// Its value.
    pub value: i64,
}

impl FixParameter {
    /// Fixes `param` to `value`.
    pub fn new(param: impl Into<String>, value: i64) -> Self {
        Self { param: param.into(), value }
    }
}

impl fmt::Display for FixParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fix `{}` to {}", self.param, self.value)
    }
}

impl Transform for FixParameter {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let param = lookup::var(kernel, &self.param)?;
        let data = &kernel.vars[param];
        if data.kind != VarKind::Param {
            return Err(Refusal::Other(format!(
                "`{}` is no parameter; only parameters can be fixed",
                self.param
            )));
        }
        let fits = match data.ty {
            ScalarType::I32 => i32::try_from(self.value).is_ok(),
            ScalarType::I64 | ScalarType::F32 | ScalarType::F64 => true,
        };
        if !fits || self.value.unsigned_abs() > MAX_COEFFICIENT.unsigned_abs() {
            let limit = if fits { "2^40".to_owned() } else { format!("what {} holds", data.ty) };
            return Err(Refusal::Other(format!(
                "`{}` has type {}, and {} is beyond {limit}; choose a smaller value",
                self.param, data.ty, self.value
            )));
        }
        let mut fixed = kernel.with_var_fixed(param, self.value);
        for (before, after) in kernel.assumptions.iter().zip(&fixed.assumptions) {
            if let (Assumption::Params(c), Assumption::Params(left)) = (before, after)
                && left.as_constant() == Some(false)
            {
                return Err(Refusal::Other(format!(
                    "the kernel assumes `{}`, which {} breaks; choose another value or drop the assumption",
                    kernel.show_constraint(c),
                    self.value
                )));
            }
        }
        fixed.assumptions.retain(|a| match a {
            Assumption::Params(c) => c.as_constant() != Some(true),
            Assumption::Injective(_) => true,
        });
        if !has_solution(&fixed)? {
            return Err(Refusal::Other(format!(
                "with {} no other parameters satisfy the assumptions; choose another value or drop one",
                self.value
            )));
        }
        check_extents(self, kernel, &fixed)?;
        // Work-items count from lower bounds, which may be simpler now.
        check_placement(&fixed)?;
        Ok(fixed)
    }
}

/// A caller may leave an array empty by a negative parameter, but no variable is declared so.
fn check_extents(step: &FixParameter, kernel: &Kernel, fixed: &Kernel) -> Result<(), Refusal> {
    let negative = |e: &Affine| e.as_constant().is_some_and(|n| n < 0);
    let found = fixed.vars.values().find(|var| {
        let before = kernel.var(&var.name).map_or(&[][..], |before| &kernel.vars[before].shape);
        var.shape.iter().any(negative) && !before.iter().any(negative)
    });
    match found {
        None => Ok(()),
        Some(var) => Err(Refusal::Other(format!(
            "{} makes the extent of `{}` negative; choose another value",
            step.value, var.name
        ))),
    }
}
