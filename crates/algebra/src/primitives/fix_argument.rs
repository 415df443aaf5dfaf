//! Makes a table, or a literal, of an argument whose values are known.

use super::embed_table::{complex_literal, has_single_precision};
use super::use_symmetry::check_entries;
use kingpost_analysis::Analysis;
use kingpost_ir::affine::MAX_COEFFICIENT;
use kingpost_ir::{AddressSpace, Assumption, Direction, Expr, Kernel, TableData, VarId, VarKind, Variable};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Fixes the values of an input: an array becomes a table, a scalar a literal.
///
/// # Rewrite
/// ```text
/// arg w: f64[2] in            =>   table w: f64[2] global
/// arg c: f64 in
/// s: y[0] = c*w[0]                 s: y[0] = 3.0*w[0]
///                                  table w = [0.25, 0.75]
/// ```
/// Values are row-major. `set_address_space` moves the table to constant memory, `embed_table`
/// writes its values into the code.
///
/// # Precondition
/// The argument is an input of constant shape, of the type and number of the values, dense in
/// memory; what is assumed of it holds: `shape(a) = dims(v)`, and for `injective(a)`, `{ (i, j) :
/// v(i) = v(j), i /= j
/// }` is empty. The kernel computes what it computed for these values. A literal is cast where
/// single precision occurs in the kernel, also to `i32` in a minimum or maximum that has that type
/// from it, so that the type of an expression stays. If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown variable, one that is no input, a shape that is not constant, strides, values that
/// are not finite, do not fit the type or are not as many as the elements; values that repeat where
/// the array is assumed injective.
///
/// # Elsewhere
/// Loopy `fix_parameters`; partial evaluation; the inverse of `pass_table`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixArgument {
    /// The argument.
    pub var: String,
    /// Its values.
    #[schemars(with = "std::collections::BTreeMap<String, Vec<Entry>>")]
    pub values: TableData,
}

/// A value as JSON has it.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)] // its schema is used, and no value
enum Entry {
    /// An integer or a real.
    Number(f64),
    /// The parts of a complex number.
    Complex { re: f64, im: f64 },
}

impl FixArgument {
    /// Fixes a real argument.
    pub fn real(var: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self { var: var.into(), values: TableData::real(values) }
    }

    /// Fixes a complex argument, by real and imaginary parts.
    pub fn complex(var: impl Into<String>, values: impl IntoIterator<Item = [f64; 2]>) -> Self {
        Self { var: var.into(), values: TableData::complex(values) }
    }

    /// Fixes an integer argument.
    pub fn int(var: impl Into<String>, values: impl IntoIterator<Item = i64>) -> Self {
        Self { var: var.into(), values: TableData::int(values) }
    }
}

impl fmt::Display for FixArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.values {
            TableData::Real(v) if v.len() == 1 => write!(f, "fix `{}` to {:?}", self.var, v[0].0),
            TableData::Int(_) | TableData::Complex(_) if self.values.len() == 1 => {
                write!(f, "fix `{}` to {}", self.var, self.values.show(0))
            }
            TableData::Real(_) | TableData::Int(_) | TableData::Complex(_) => {
                write!(f, "fix `{}` to {} values", self.var, self.values.len())
            }
        }
    }
}

/// What the kernel is given and does not write.
const INPUT: Obligation =
    Obligation::new("fix_argument.input", "the variable is an input, which the kernel does not write");

/// Tables are row-major.
const DENSE: Obligation = Obligation::new("fix_argument.dense", "the argument is dense in memory");

/// A table has a constant shape.
const CONSTANT_SHAPE: Obligation =
    Obligation::new("fix_argument.constant_shape", "the shape of the argument is constant");

/// A value for every element.
const COUNT: Obligation = Obligation::new("fix_argument.count", "there are as many values as elements");

/// A literal of them can be written.
const FINITE: Obligation = Obligation::new(
    "fix_argument.finite",
    "the values are finite, and that of an integer scalar is at most 2^40 in magnitude",
);

/// The element type holds the values.
const FITS: Obligation = Obligation::new("fix_argument.fits", "the type of the argument holds the values");

/// What is assumed holds.
const INJECTIVE: Obligation =
    Obligation::new("fix_argument.injective", "no value repeats in an array that is assumed injective");

/// What is assumed holds.
const SYMMETRIC: Obligation =
    Obligation::new("fix_argument.symmetric", "values have the symmetries that are assumed of the array");

/// An input of constant shape, with a value for every element.
pub struct FixedInput {
    var: VarId,
    into: Fixed,
}

/// What becomes of the input.
enum Fixed {
    Table,
    Int(i64),
    Literal(Expr),
}

impl Primitive for FixArgument {
    const NAME: &'static str = "fix_argument";
    const SUMMARY: &'static str = "Makes a table or a literal of an input whose values are known.";

    type Proof = FixedInput;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] =
        &[INPUT, DENSE, CONSTANT_SHAPE, COUNT, FINITE, FITS, INJECTIVE, SYMMETRIC];

    fn check(&self, analysis: &Analysis) -> Result<FixedInput, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        let argument = &kernel.vars[var];
        let name = &self.var;
        INPUT.require(argument.kind == VarKind::Argument(Direction::In), || {
            format!("`{name}` is no input; only what the kernel is given and does not write is fixed")
        })?;
        DENSE.require(argument.layout.is_row_major(), || {
            format!("`{name}` has strides, and tables are row-major; fix it before changing its layout")
        })?;
        self.check_values(argument)?;
        self.check_injective(kernel, var)?;
        self.check_symmetric(kernel, var)?;
        const VALUE: &str = "value of a scalar";
        let into = match (&self.values, argument.shape.is_empty()) {
            (_, false) => Fixed::Table,
            (TableData::Int(values), true) => Fixed::Int(values.first().copied().expected(VALUE, kernel)?),
            (TableData::Real(values), true) => {
                Fixed::Literal(Expr::Real(values.first().copied().expected(VALUE, kernel)?))
            }
            (TableData::Complex(values), true) => {
                Fixed::Literal(complex_literal(values.first().copied().expected(VALUE, kernel)?))
            }
        };
        Ok(FixedInput { var, into })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &FixedInput) {
        match &proof.into {
            Fixed::Table => {
                kernel.vars[proof.var].kind = VarKind::Table(self.values.clone());
                kernel.vars[proof.var].space = AddressSpace::Global;
            }
            Fixed::Int(value) => *kernel = kernel.with_var_fixed(proof.var, *value),
            Fixed::Literal(value) => *kernel = literal(kernel, proof.var, value),
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let var = p.of(&draw::vars(kernel, |v| v.kind == VarKind::Argument(Direction::In)))?;
        let values = p.inputs().array(&var)?;
        Some(Self { var, values })
    }
}

impl FixArgument {
    /// There is a value for every element, which its type holds.
    fn check_values(&self, argument: &Variable) -> Result<(), Refusal> {
        let name = &self.var;
        let size = argument.shape.iter().try_fold(1_i64, |n, e| n.checked_mul(e.as_constant()?));
        let size = CONSTANT_SHAPE
            .find(size, || format!("`{name}` has no constant shape; fix its parameters first"))?;
        let found = self.values.len();
        COUNT.require(i64::try_from(found) == Ok(size), || {
            format!("`{name}` has {size} elements, found {found} values")
        })?;
        let finite = match &self.values {
            TableData::Real(_) | TableData::Complex(_) => self.values.not_finite().is_none(),
            TableData::Int(values) => {
                !argument.shape.is_empty()
                    || values.iter().all(|v| v.unsigned_abs() <= MAX_COEFFICIENT.unsigned_abs())
            }
        };
        let other =
            || format!("`{name}` has type {}, which holds finite values of that type only", argument.ty);
        FINITE.require(finite, other)?;
        FITS.require(self.values.fits(argument.ty), other)
    }

    /// `{ (i, j) : v(i) = v(j), i /= j }` is empty if that is assumed.
    fn check_injective(&self, kernel: &Kernel, var: VarId) -> Result<(), Refusal> {
        let TableData::Int(values) = &self.values else { return Ok(()) };
        if !kernel.assumptions.contains(&Assumption::Injective(var)) {
            return Ok(());
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        INJECTIVE.forbid(sorted.array_windows().find(|[a, b]| a == b), |[twice, _]| {
            format!("`{}` is assumed injective, and {twice} occurs twice", self.var)
        })
    }
}

impl FixArgument {
    /// `{ f : v(f) /= v(image(f)) }` is empty if that is assumed.
    fn check_symmetric(&self, kernel: &Kernel, var: VarId) -> Result<(), Refusal> {
        for assumption in &kernel.assumptions {
            match assumption {
                Assumption::Symmetric(symmetry) if symmetry.var == var => {
                    check_entries(SYMMETRIC, kernel, symmetry, &self.values)?;
                }
                // lists are checked with their map at launch, tables or not; so are ascending arrays
                Assumption::Symmetric(_)
                | Assumption::Injective(_)
                | Assumption::Ascending(_)
                | Assumption::Outside(_)
                | Assumption::Lists(_)
                | Assumption::Defined(..)
                | Assumption::Params(_) => {}
            }
        }
        Ok(())
    }
}

/// The kernel with a real or complex scalar replaced by a literal everywhere.
fn literal(kernel: &Kernel, var: VarId, value: &Expr) -> Kernel {
    let argument: &Variable = &kernel.vars[var];
    let value = if has_single_precision(kernel) {
        Expr::Cast(argument.ty, Box::new(value.clone()))
    } else {
        value.clone()
    };
    let mut rewrite = |e: Expr| match e {
        Expr::Load(a) if a.var == var => value.clone(),
        other => other,
    };
    let mut fixed = kernel.clone();
    for rule in fixed.rules.values_mut() {
        rule.body = rule.body.map(&mut rewrite);
    }
    for insn in fixed.insns.values_mut() {
        insn.map_expressions(&mut rewrite);
    }
    // nothing mentions it any more: this drops its declaration
    fixed.with_var_fixed(var, 0)
}
