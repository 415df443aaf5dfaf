//! Gives a parameter a value for good.

use super::assume::has_solution;
use kingpost_analysis::Analysis;
use kingpost_ir::affine::MAX_COEFFICIENT;
use kingpost_ir::{Affine, Assumption, Atom, Constraint, Expr, Kernel, ScalarType, VarId, VarKind};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::computed::unfit_definition;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Replaces a parameter by a constant or by an expression of other parameters; it is no argument
/// any more.
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
/// An expression has parameters of the same type. One that is more than a parameter stands only
/// where integers are unbounded: in bounds, extents, strides, conditions, indices and assumptions.
/// Assumptions on it that follow from the others are dropped.
///
/// # Errors
/// An unknown variable, one that is no parameter, a value that does not fit, that an assumption
/// excludes, or that makes an extent negative; an expression of the parameter itself, of another
/// type, or that an instruction computes with.
///
/// # Elsewhere
/// Loopy `fix_parameters`; Exo `specialize`; TVM `specialize`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixParameter {
    /// The parameter.
    pub param: String,
    /// Its value.
    pub value: ParamValue,
}

/// What a parameter is replaced by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ParamValue {
    /// A constant.
    Constant(i64),
    /// Another parameter.
    Param(String),
    /// A sum of other parameters.
    Sum(ParamSum),
}

/// The sum of multiples of parameters and a constant, or the floor of its quotient.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParamSum {
    /// Parameters with their factors.
    pub terms: BTreeMap<String, i64>,
    /// What is added.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub plus: i64,
    /// What the sum is divided by, rounded down; 1 or more.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub over: i64,
}

const fn one() -> i64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
const fn is_one(n: &i64) -> bool {
    *n == 1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
const fn is_zero(n: &i64) -> bool {
    *n == 0
}

impl From<i64> for ParamValue {
    fn from(value: i64) -> Self {
        Self::Constant(value)
    }
}

impl From<&str> for ParamValue {
    fn from(param: &str) -> Self {
        Self::Param(param.into())
    }
}

impl ParamValue {
    /// A sum of multiples of parameters and a constant, divided and rounded down.
    pub fn sum<'p>(terms: impl IntoIterator<Item = (&'p str, i64)>, plus: i64, over: i64) -> Self {
        let terms = terms.into_iter().map(|(param, factor)| (param.into(), factor)).collect();
        Self::Sum(ParamSum { terms, plus, over })
    }

    /// The parameters and their factors.
    fn terms(&self) -> impl Iterator<Item = (&str, i64)> {
        let (param, terms) = match self {
            Self::Constant(_) => (None, None),
            Self::Param(param) => (Some((param.as_str(), 1)), None),
            Self::Sum(sum) => (None, Some(sum.terms.iter().map(|(param, factor)| (param.as_str(), *factor)))),
        };
        param.into_iter().chain(terms.into_iter().flatten())
    }

    /// What is added, and what the sum is divided by.
    const fn rest(&self) -> (i64, i64) {
        match self {
            Self::Constant(value) => (*value, 1),
            Self::Param(_) => (0, 1),
            Self::Sum(sum) => (sum.plus, sum.over),
        }
    }

    /// The value where parameters have some; none if one has none, beyond 64 bits, or of a divisor
    /// below 1.
    pub fn eval(&self, param: impl Fn(&str) -> Option<i64>) -> Option<i64> {
        let (plus, over) = self.rest();
        let add = |sum: i64, (name, factor): (&str, i64)| sum.checked_add(param(name)?.checked_mul(factor)?);
        let sum = self.terms().try_fold(plus, add)?;
        (over >= 1).then(|| sum.div_euclid(over))
    }
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = match self {
            Self::Constant(value) => return write!(f, "{value}"),
            Self::Param(param) => return write!(f, "`{param}`"),
            Self::Sum(sum) => sum,
        };
        let mut text = String::new();
        for (param, factor) in &sum.terms {
            let size = match factor.unsigned_abs() {
                1 => param.clone(),
                size => format!("{size}*{param}"),
            };
            text += match (text.is_empty(), *factor < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            text += &size;
        }
        text = match sum.plus {
            plus if text.is_empty() => plus.to_string(),
            0 => text,
            plus if plus < 0 => format!("{text} - {}", plus.unsigned_abs()),
            plus => format!("{text} + {plus}"),
        };
        match sum.over {
            1 => write!(f, "`{text}`"),
            over => write!(f, "`floor_div({text}, {over})`"),
        }
    }
}

impl FixParameter {
    /// Fixes `param` to `value`.
    pub fn new(param: impl Into<String>, value: impl Into<ParamValue>) -> Self {
        Self { param: param.into(), value: value.into() }
    }
}

impl fmt::Display for FixParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fix `{}` to {}", self.param, self.value)
    }
}

/// Only parameters.
const PARAMETER: Obligation = Obligation::new("fix_parameter.parameter", "the variable is a parameter");

/// Parameters of the same type stand for it.
const TERMS: Obligation =
    Obligation::new("fix_parameter.terms", "the value is of other parameters of the same type");

/// No sum is computed in the type of the parameter.
const UNBOUNDED: Obligation = Obligation::new(
    "fix_parameter.unbounded",
    "an expression that is more than a parameter stands only where integers are unbounded",
);

/// What is computed from others stays so.
const COMPUTED: Obligation = Obligation::new(
    "fix_parameter.computed",
    "the parameter is not computed as something else, and others are computed from it only if the value is a constant",
);

/// The type holds the value, and so do coefficients.
const FITS: Obligation = Obligation::new(
    "fix_parameter.fits",
    "the value fits the type of the parameter, and its numbers are at most 2^40 in magnitude",
);

/// No assumption alone excludes the value.
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
    value: Affine,
    /// Assumptions on an expression that follow from the others.
    implied: Vec<Assumption>,
}

impl Primitive for FixParameter {
    const NAME: &'static str = "fix_parameter";
    const SUMMARY: &'static str = "Replaces a parameter by a constant or by other parameters.";

    type Proof = FixedParameter;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] =
        &[PARAMETER, TERMS, COMPUTED, UNBOUNDED, FITS, ALLOWED, SATISFIABLE, EXTENTS];

    fn fixes(&self, known: &dyn Fn(&str) -> Option<i64>) -> Option<(&str, i64)> {
        Some((&self.param, self.value.eval(known)?))
    }

    fn check(&self, analysis: &Analysis) -> Result<FixedParameter, Refusal> {
        let kernel = analysis.kernel();
        let param = lookup::var(kernel, &self.param)?;
        let data = &kernel.vars[param];
        PARAMETER.require(data.kind == VarKind::Param, || {
            format!("`{}` is no parameter; only parameters can be fixed", self.param)
        })?;
        self.check_fits(data.ty)?;
        let value = self.value(kernel, param)?;
        COMPUTED.forbid(unfit_definition(kernel, param, &value), |found| found)?;
        self.check_unbounded(kernel, param)?;
        let replace = |atom: &Atom| (*atom == Atom::Var(param)).then(|| value.clone());
        let broken = kernel.assumptions.iter().find_map(|assumption| match assumption {
            Assumption::Params(c) => (c.substitute(&replace).as_constant() == Some(false)).then_some(c),
            Assumption::Defined(..)
            | Assumption::Injective(_)
            | Assumption::Ascending(_)
            | Assumption::Outside(_)
            | Assumption::Symmetric(_)
            | Assumption::Lists(_) => None,
        });
        ALLOWED.forbid(broken, |c| {
            format!(
                "the kernel assumes `{}`, which {} breaks; choose another value or drop the assumption",
                kernel.show_constraint(c),
                self.value
            )
        })?;
        let mut proof = FixedParameter { param, value, implied: Vec::new() };
        let fixed = self.draft(kernel, &proof);
        SATISFIABLE.require(has_solution(&fixed)?, || {
            format!(
                "with {} no other parameters satisfy the assumptions; choose another value or drop one",
                self.value
            )
        })?;
        self.check_extents(kernel, &fixed)?;
        proof.implied = implied(kernel, fixed, &proof)?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &FixedParameter) {
        *kernel = kernel.with_var_defined(proof.param, &proof.value);
        kernel.assumptions.retain(|a| match a {
            Assumption::Params(c) => c.as_constant() != Some(true),
            Assumption::Defined(..)
            | Assumption::Injective(_)
            | Assumption::Ascending(_)
            | Assumption::Outside(_)
            | Assumption::Symmetric(_)
            | Assumption::Lists(_) => true,
        });
        for implied in &proof.implied {
            if let Some(at) = kernel.assumptions.iter().position(|a| a == implied) {
                kernel.assumptions.remove(at);
            }
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let params = draw::vars(kernel, |v| v.kind == VarKind::Param);
        let param = p.of(&params)?;
        let value = p.inputs().param(&param)?;
        let Some(other) = p.of(&params).filter(|other| *other != param && p.one_in(2)) else {
            return Some(Self::new(param, value));
        };
        let ahead = value.checked_sub(p.inputs().param(&other)?)?;
        let value = match ahead {
            0 => ParamValue::Param(other),
            _ => ParamValue::sum([(other.as_str(), 1)], ahead, 1),
        };
        Some(Self { param, value })
    }
}

impl FixParameter {
    /// The value by the variables of a kernel.
    fn value(&self, kernel: &Kernel, param: VarId) -> Result<Affine, Refusal> {
        let ty = kernel.vars[param].ty;
        let (plus, over) = self.value.rest();
        let mut sum = Affine::constant(plus);
        for (name, factor) in self.value.terms() {
            let term = lookup::var(kernel, name)?;
            let data = &kernel.vars[term];
            TERMS.require(term != param && data.kind == VarKind::Param && data.ty == ty, || {
                let found = match data.kind {
                    _ if term == param => "is the parameter itself".to_owned(),
                    VarKind::Param => format!("has type {}", data.ty),
                    VarKind::Argument(_) | VarKind::Temporary | VarKind::Table(_) => "is no parameter".into(),
                };
                format!("`{name}` {found}; needed other parameters of type {ty}")
            })?;
            sum = sum.plus(&Affine::var(term).times(factor));
        }
        FITS.require(over >= 1 && sum.in_bounds(), || {
            format!("{} has a divisor below 1 or numbers beyond 2^40; choose smaller ones", self.value)
        })?;
        Ok(if over == 1 { sum } else { sum.floor_div(over) })
    }

    /// Bounds, conditions and indices are unbounded; what instructions compute is not.
    fn check_unbounded(&self, kernel: &Kernel, param: VarId) -> Result<(), Refusal> {
        if !matches!(self.value, ParamValue::Sum(_)) {
            return Ok(());
        }
        let of_rule = kernel.rules.values().find(|rule| computes_with(&rule.body, param)).map(|r| &r.name);
        let of_insn = kernel.insns.values().find(|insn| computes_with(&insn.rhs, param)).map(|i| &i.name);
        UNBOUNDED.require(of_rule.or(of_insn).is_none(), || {
            let name = of_rule.or(of_insn).map_or("", String::as_str);
            format!("`{name}` computes with `{}`; replace it by a parameter or a constant", self.param)
        })
    }

    fn check_fits(&self, ty: ScalarType) -> Result<(), Refusal> {
        let ParamValue::Constant(value) = self.value else { return Ok(()) };
        let fits = ty.ends().is_some_and(|(lo, hi)| (lo..=hi).contains(&value.into()));
        let small = value.unsigned_abs() <= MAX_COEFFICIENT.unsigned_abs();
        FITS.require(fits && small, || {
            let limit = if fits { "2^40".to_owned() } else { format!("what {ty} holds") };
            format!("`{}` has type {ty}, and {value} is beyond {limit}; choose a smaller value", self.param)
        })
    }

    fn check_extents(&self, kernel: &Kernel, fixed: &Kernel) -> Result<(), Refusal> {
        let negative = |e: &Affine| e.as_constant().is_some_and(|n| n < 0);
        let found = fixed.vars.values().find(|var| {
            let before = kernel.var(&var.name).map_or(&[][..], |before| &kernel.vars[before].shape);
            var.shape.iter().any(negative) && !before.iter().any(negative)
        });
        EXTENTS.forbid(found, |var| {
            format!("{} makes the extent of `{}` negative; choose another value", self.value, var.name)
        })
    }
}

/// The assumptions on a parameter that follow from the others once it is an expression: the others
/// and its contrary have no solution.
fn implied(kernel: &Kernel, mut fixed: Kernel, proof: &FixedParameter) -> Result<Vec<Assumption>, Refusal> {
    if proof.value.as_constant().is_some() {
        return Ok(Vec::new());
    }
    let of_param = |c: &Affine| c.any_symbol(&mut |atom| *atom == Atom::Var(proof.param));
    let mut on_param = kernel.clone();
    on_param
        .assumptions
        .retain(|a| matches!(a, Assumption::Params(Constraint::NonNegative(c)) if of_param(c)));
    let mut implied = Vec::new();
    for assumption in on_param.with_var_defined(proof.param, &proof.value).assumptions {
        let Assumption::Params(Constraint::NonNegative(c)) = &assumption else { continue };
        let Some(at) = fixed.assumptions.iter().position(|a| *a == assumption) else { continue };
        let contrary = Constraint::NonNegative(c.times(-1).plus_constant(-1));
        let mut without = fixed.clone();
        without.assumptions[at] = Assumption::Params(contrary);
        if !has_solution(&without)? {
            fixed.assumptions.remove(at);
            implied.push(assumption);
        }
    }
    Ok(implied)
}

/// Whether an expression computes with a scalar, other than in indices.
fn computes_with(e: &Expr, var: VarId) -> bool {
    match e.as_load() {
        Some(access) => access.var == var,
        None => e.operands().any(|operand| computes_with(operand, var)),
    }
}
