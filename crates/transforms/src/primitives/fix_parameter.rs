//! Gives a parameter a value for good.

use super::assume::has_solution;
use purlin_analysis::Analysis;
use purlin_ir::affine::MAX_COEFFICIENT;
use purlin_ir::{Affine, Assumption, Atom, Kernel, ScalarType, VarId, VarKind};
use purlin_steps::draw::{self, Picks};
use purlin_steps::lookup;
use purlin_steps::obligation::Obligation;
use purlin_steps::primitive::Primitive;
use purlin_steps::refusal::Refusal;
use schemars::JsonSchema;
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
/// `{ params : A, n = v }` is not empty. No extent becomes a negative constant. In a minimum or
/// maximum that has the type `i32` from it, the literal is cast: over nothing it is an end of its
/// type.
///
/// # Errors
/// An unknown variable, one that is no parameter, a value that does not fit, that an assumption
/// excludes, or that makes an extent negative.
///
/// # Elsewhere
/// Loopy `fix_parameters`; Exo `specialize`; TVM `specialize`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// Only parameters.
const PARAMETER: Obligation = Obligation::new("fix_parameter.parameter", "the variable is a parameter");

/// The type holds the value, and so do coefficients.
const FITS: Obligation = Obligation::new(
    "fix_parameter.fits",
    "the value fits the type of the parameter and is at most 2^40 in magnitude",
);

/// No assumption excludes the value by itself.
const ALLOWED: Obligation = Obligation::new("fix_parameter.allowed", "no assumption excludes the value");

/// Nor do they together.
const SATISFIABLE: Obligation = Obligation::new(
    "fix_parameter.satisfiable",
    "with the value, some other parameters satisfy the assumptions",
);

/// A caller may leave an array empty by a negative parameter, but no variable is declared so.
const EXTENTS: Obligation = Obligation::new("fix_parameter.extents", "no extent becomes a negative constant");

/// A parameter that may have the value.
pub struct FixedParameter {
    param: VarId,
}

impl Primitive for FixParameter {
    const NAME: &'static str = "fix_parameter";
    const SUMMARY: &'static str = "Replaces a parameter by a constant.";

    type Proof = FixedParameter;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[PARAMETER, FITS, ALLOWED, SATISFIABLE, EXTENTS];

    fn fixes(&self) -> Option<(&str, i64)> {
        Some((&self.param, self.value))
    }

    fn check(&self, analysis: &Analysis) -> Result<FixedParameter, Refusal> {
        let kernel = analysis.kernel();
        let param = lookup::var(kernel, &self.param)?;
        let data = &kernel.vars[param];
        PARAMETER.require(data.kind == VarKind::Param, || {
            format!("`{}` is no parameter; only parameters can be fixed", self.param)
        })?;
        self.check_fits(data.ty)?;
        let replace = |atom: &Atom| (*atom == Atom::Var(param)).then(|| Affine::constant(self.value));
        let broken = kernel.assumptions.iter().find_map(|assumption| match assumption {
            Assumption::Params(c) => (c.substitute(&replace).as_constant() == Some(false)).then_some(c),
            Assumption::Injective(_)
            | Assumption::Ascending(_)
            | Assumption::Symmetric(_)
            | Assumption::Lists(_) => None,
        });
        if let Some(c) = broken {
            ALLOWED.require(false, || {
                format!(
                    "the kernel assumes `{}`, which {} breaks; choose another value or drop the assumption",
                    kernel.show_constraint(c),
                    self.value
                )
            })?;
        }
        let proof = FixedParameter { param };
        let fixed = self.draft(kernel, &proof);
        SATISFIABLE.require(has_solution(&fixed)?, || {
            format!(
                "with {} no other parameters satisfy the assumptions; choose another value or drop one",
                self.value
            )
        })?;
        self.check_extents(kernel, &fixed)?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &FixedParameter) {
        *kernel = kernel.with_var_fixed(proof.param, self.value);
        kernel.assumptions.retain(|a| match a {
            Assumption::Params(c) => c.as_constant() != Some(true),
            Assumption::Injective(_)
            | Assumption::Ascending(_)
            | Assumption::Symmetric(_)
            | Assumption::Lists(_) => true,
        });
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let param = p.of(&draw::vars(kernel, |v| v.kind == VarKind::Param))?;
        let value = p.inputs().param(&param)?;
        Some(Self::new(param, value))
    }
}

impl FixParameter {
    fn check_fits(&self, ty: ScalarType) -> Result<(), Refusal> {
        let fits = match ty {
            ScalarType::I32 => i32::try_from(self.value).is_ok(),
            // no parameter has 16 bits
            ScalarType::I16 | ScalarType::I64 | ScalarType::F32 | ScalarType::F64 => true,
        };
        let small = self.value.unsigned_abs() <= MAX_COEFFICIENT.unsigned_abs();
        FITS.require(fits && small, || {
            let limit = if fits { "2^40".to_owned() } else { format!("what {ty} holds") };
            format!(
                "`{}` has type {ty}, and {} is beyond {limit}; choose a smaller value",
                self.param, self.value
            )
        })
    }

    fn check_extents(&self, kernel: &Kernel, fixed: &Kernel) -> Result<(), Refusal> {
        let negative = |e: &Affine| e.as_constant().is_some_and(|n| n < 0);
        let found = fixed.vars.values().find(|var| {
            let before = kernel.var(&var.name).map_or(&[][..], |before| &kernel.vars[before].shape);
            var.shape.iter().any(negative) && !before.iter().any(negative)
        });
        let Some(var) = found else { return Ok(()) };
        EXTENTS.require(false, || {
            format!("{} makes the extent of `{}` negative; choose another value", self.value, var.name)
        })
    }
}
