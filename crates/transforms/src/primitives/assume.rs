//! Adds what the user asserts.

use super::Transform;
use crate::lookup;
use crate::refusal::Refusal;
use purlin_analysis::Analysis;
use purlin_ir::affine::MAX_COEFFICIENT;
use purlin_ir::{Affine, Assumption, Constraint, Kernel, VarId, VarKind};
use purlin_isl as isl;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Asserts something isl cannot see: the only way to widen what is legal, and visible in the recipe.
///
/// # Rewrite
/// ```text
/// kernel k                   =>   kernel k
/// param n: i32                    param n: i32
///                                 assume n >= 1
/// ```
///
/// # Precondition
/// None to prove: conditions on parameters become preconditions of the launch, which is refused where
/// they do not hold. A set of conditions `A` that no parameters satisfy, `{ params : A }` empty, is refused at once. That
/// an array is injective, `a(i) = a(j)  =>  i = j`, is checked on the real one where a launch asks for it
/// ([`purlin_analysis::inside::check_launch`]).
///
/// # Errors
/// Unknown names, a bound on what is no parameter or beyond 2^40, `injective` of what is no integer
/// array or is written, contradictory conditions.
///
/// # Elsewhere
/// Loopy `assume`; Exo `assert`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Assume {
    /// `param >= value`.
    AtLeast {
        /// The parameter.
        param: String,
        /// Its smallest value.
        value: i64,
    },
    /// `param <= value`.
    AtMost {
        /// The parameter.
        param: String,
        /// Its largest value.
        value: i64,
    },
    /// Different indices of the array hold different values.
    Injective {
        /// An integer array.
        array: String,
    },
}

impl Assume {
    /// `param >= value`.
    pub fn at_least(param: impl Into<String>, value: i64) -> Self {
        Self::AtLeast { param: param.into(), value }
    }

    /// `param <= value`.
    pub fn at_most(param: impl Into<String>, value: i64) -> Self {
        Self::AtMost { param: param.into(), value }
    }

    /// Different indices of `array` hold different values.
    pub fn injective(array: impl Into<String>) -> Self {
        Self::Injective { array: array.into() }
    }
}

impl fmt::Display for Assume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast { param, value } => write!(f, "assume `{param} >= {value}`"),
            Self::AtMost { param, value } => write!(f, "assume `{param} <= {value}`"),
            Self::Injective { array } => write!(f, "assume `injective({array})`"),
        }
    }
}

impl Transform for Assume {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let assumption = self.assumption(kernel)?;
        let mut assuming = kernel.clone();
        if !assuming.assumptions.contains(&assumption) {
            assuming.assumptions.push(assumption);
        }
        if !has_solution(&assuming)? {
            return Err(Refusal::Other(
                "no parameters satisfy this and the earlier assumptions; drop one".into(),
            ));
        }
        Ok(assuming)
    }
}

/// Whether `{ params : all assumptions }` has a point.
pub(crate) fn has_solution(kernel: &Kernel) -> Result<bool, Refusal> {
    let analysis = Analysis::of(kernel);
    let poly = analysis.polyhedral();
    let dims: [&str; 0] = [];
    let space = isl::SetSpace::new(&dims, &poly.params);
    Ok(!isl::Set::from_constraints(&space, &poly.context)?.is_empty()?)
}

/// The array of an assumption of injectivity: integers that keep their values.
fn integer_array(kernel: &Kernel, name: &str) -> Result<VarId, Refusal> {
    let var = lookup::var(kernel, name)?;
    let data = &kernel.vars[var];
    if data.ty.is_float() || data.shape.is_empty() {
        let found = if data.shape.is_empty() { "is a scalar".into() } else { format!("holds {}", data.ty) };
        return Err(Refusal::Other(format!("`{name}` {found}, needed an array of integers")));
    }
    match kernel.insns.values().find(|i| i.lhs.var == var) {
        None => Ok(var),
        Some(writer) => Err(Refusal::Other(format!(
            "`{name}` is written by `{}`, needed an array that keeps its values; pass it as an `in` argument",
            writer.name
        ))),
    }
}

impl Assume {
    fn assumption(&self, kernel: &Kernel) -> Result<Assumption, Refusal> {
        let param = |name: &str| {
            let var = lookup::var(kernel, name)?;
            match kernel.vars[var].kind {
                VarKind::Param => Ok(Affine::var(var)),
                VarKind::Argument(_) | VarKind::Temporary | VarKind::Table(_) => {
                    Err(Refusal::Other(format!(
                        "`{name}` is no parameter; conditions are on parameters, whose values are known at launch"
                    )))
                }
            }
        };
        Ok(match self {
            Self::AtLeast { value, .. } | Self::AtMost { value, .. }
                if value.unsigned_abs() > MAX_COEFFICIENT.unsigned_abs() =>
            {
                return Err(Refusal::Other(format!("{value} is beyond 2^40; choose a smaller bound")));
            }
            Self::AtLeast { param: name, value } => {
                Assumption::Params(Constraint::le(&Affine::constant(*value), &param(name)?))
            }
            Self::AtMost { param: name, value } => {
                Assumption::Params(Constraint::le(&param(name)?, &Affine::constant(*value)))
            }
            Self::Injective { array } => Assumption::Injective(integer_array(kernel, array)?),
        })
    }
}
