//! Adds what the user asserts.

use kingpost_analysis::Analysis;
use kingpost_ir::ScalarType;
use kingpost_ir::affine::MAX_COEFFICIENT;
use kingpost_ir::{Affine, Assumption, Atom, Constraint, Direction, Kernel, VarId, VarKind};
use kingpost_isl as isl;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::symmetry::{self, ImageAxis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Asserts something isl cannot see: the only way to widen what is legal, and visible in the
/// recipe.
///
/// # Rewrite
/// ```text
/// kernel k                   =>   kernel k
/// param n: i32                    param n: i32
///                                 assume n >= 1
/// ```
///
/// # Precondition
/// None to prove: conditions on parameters become preconditions of the launch, which is refused
/// where they do not hold. A set of conditions `A` that no parameters satisfy, `{ params : A
/// }` empty, is refused at once. That an array is injective, `a(i) = a(j) => i =
/// j`, or symmetric (`use_symmetry`), is checked on the real one where a launch asks for it
/// ([`kingpost_analysis::Analysis::check_launch`]).
///
/// # Errors
/// Unknown names, a bound on what is no parameter or beyond 2^40, a factor below 1, `injective` of
/// what is no integer array or is written, `symmetric` along axes that are no symmetry,
/// contradictory conditions.
///
/// # Elsewhere
/// Loopy `assume`; Exo `assert`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
    /// `param mod factor == 0`, so that blocks of that many fill a loop over it.
    MultipleOf {
        /// The parameter.
        param: String,
        /// What divides it.
        factor: i64,
    },
    /// Different indices of the array hold different values.
    Injective {
        /// An integer array.
        array: String,
    },
    /// Elements of the array have the values of their images, to the last bit, or their negatives,
    /// where zeros of either sign are negatives of each other.
    Symmetric {
        /// The array.
        array: String,
        /// The image along each axis.
        axes: Vec<ImageAxis>,
        /// Whether the image has the negative value.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        negated: bool,
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

    /// `param mod factor == 0`.
    pub fn multiple_of(param: impl Into<String>, factor: i64) -> Self {
        Self::MultipleOf { param: param.into(), factor }
    }

    /// Different indices of `array` hold different values.
    pub fn injective(array: impl Into<String>) -> Self {
        Self::Injective { array: array.into() }
    }

    /// Elements of `array` have the values of the images that have these indices along its axes.
    pub fn symmetric(array: impl Into<String>, axes: impl IntoIterator<Item = ImageAxis>) -> Self {
        Self::Symmetric { array: array.into(), axes: axes.into_iter().collect(), negated: false }
    }

    /// Elements of `array` have the negative values of those images.
    pub fn antisymmetric(array: impl Into<String>, axes: impl IntoIterator<Item = ImageAxis>) -> Self {
        Self::Symmetric { array: array.into(), axes: axes.into_iter().collect(), negated: true }
    }
}

impl fmt::Display for Assume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast { param, value } => write!(f, "assume `{param} >= {value}`"),
            Self::AtMost { param, value } => write!(f, "assume `{param} <= {value}`"),
            Self::MultipleOf { param, factor } => write!(f, "assume `{param} mod {factor} == 0`"),
            Self::Injective { array } => write!(f, "assume `injective({array})`"),
            Self::Symmetric { array, axes, negated } => {
                write!(f, "assume `{}`", symmetry::text(array, axes, *negated))
            }
        }
    }
}

/// The assumptions do not contradict each other.
const SATISFIABLE: Obligation =
    Obligation::new("assume.satisfiable", "some parameters satisfy all assumptions");

/// A launch can check the condition.
const PARAMETER: Obligation = Obligation::new("assume.parameter", "the condition is on a parameter");

/// An index map holds integers.
const INTEGERS: Obligation = Obligation::new("assume.integers", "what is injective is an array of integers");

/// What a launch checks stays true.
const UNWRITTEN: Obligation =
    Obligation::new("assume.unwritten", "no instruction writes the array that is injective or symmetric");

/// What is asserted, of variables that it can be asserted of.
pub struct Assertion {
    assumption: Assumption,
}

impl Primitive for Assume {
    const NAME: &'static str = "assume";
    const SUMMARY: &'static str = "Asserts a bound on a parameter, or that an array is injective.";

    type Proof = Assertion;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[PARAMETER, INTEGERS, UNWRITTEN, SATISFIABLE];

    fn check(&self, analysis: &Analysis) -> Result<Assertion, Refusal> {
        let kernel = analysis.kernel();
        let proof = Assertion { assumption: self.assumption(kernel)? };
        SATISFIABLE.require(has_solution(&self.draft(kernel, &proof))?, || {
            "no parameters satisfy this and the earlier assumptions; drop one".into()
        })?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Assertion) {
        if !kernel.assumptions.contains(&proof.assumption) {
            kernel.assumptions.push(proof.assumption.clone());
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let params = draw::vars(kernel, |v| v.kind == VarKind::Param);
        let is_map = |v: &kingpost_ir::Variable| {
            matches!(v.kind, VarKind::Argument(_)) && v.ty == ScalarType::I32 && !v.shape.is_empty()
        };
        Some(match p.below(5) {
            4 => true_multiple(&p.of(&params)?, p.inputs(), p.between(1, 4))?,
            0 => Self::at_most(p.of(&params)?, p.between(0, 15)),
            1 => Self::at_least(p.of(&params)?, p.between(0, 3)),
            2 => p.of(&true_symmetries(kernel, p.inputs()))?,
            _ => Self::injective(p.of(&draw::vars(kernel, is_map))?),
        })
    }
}

/// That a parameter is a multiple, if it is in a run.
fn true_multiple(param: &str, inputs: &dyn draw::Inputs, factor: i64) -> Option<Assume> {
    let divides = inputs.param(param).is_some_and(|value| value % factor == 0);
    divides.then(|| Assume::multiple_of(param, factor))
}

/// The symmetries that the inputs of a run have.
fn true_symmetries(kernel: &Kernel, inputs: &dyn draw::Inputs) -> Vec<Assume> {
    let is_input = |v: &kingpost_ir::Variable| v.kind == VarKind::Argument(Direction::In);
    let is_true = |var: &str, axes: &[ImageAxis], negated: bool| {
        let symmetry = symmetry::symmetry(kernel, var, axes, negated).ok()?;
        let value = |atom: &Atom| match atom {
            Atom::Var(v) => inputs.param(&kernel.vars[*v].name),
            Atom::Iname(_) | Atom::Floor(..) => None,
        };
        let extent = |e: &Affine| usize::try_from(e.eval(&mut |atom| value(atom))?).ok();
        let shape = kernel.vars[symmetry.var].shape.iter().map(extent).collect::<Option<Vec<_>>>()?;
        symmetry.clash_in(&shape, &inputs.array(var)?).is_none().then_some(())
    };
    let mut found = Vec::new();
    for array in draw::vars(kernel, is_input) {
        for (axes, negated) in symmetry::images(kernel, &array) {
            if is_true(&array, &axes, negated).is_some() {
                found.push(Assume::Symmetric { array: array.clone(), axes, negated });
            }
        }
    }
    found
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
    INTEGERS.require(data.ty.is_exact() && !data.shape.is_empty(), || {
        let found = if data.shape.is_empty() { "is a scalar".into() } else { format!("holds {}", data.ty) };
        format!("`{name}` {found}, needed an array of integers")
    })?;
    unwritten(kernel, var).map(|()| var)
}

/// Nothing writes the array, so that what a launch checks stays true.
fn unwritten(kernel: &Kernel, var: VarId) -> Result<(), Refusal> {
    UNWRITTEN.forbid(kernel.insns.values().find(|i| i.lhs.var == var), |writer| {
        format!(
            "`{}` is written by `{}`, needed an array that keeps its values; pass it as an `in` argument",
            kernel.vars[var].name, writer.name
        )
    })
}

impl Assume {
    fn assumption(&self, kernel: &Kernel) -> Result<Assumption, Refusal> {
        let param = |name: &str| -> Result<Affine, Refusal> {
            let var = lookup::var(kernel, name)?;
            PARAMETER.require(kernel.vars[var].kind == VarKind::Param, || {
                format!(
                    "`{name}` is no parameter; conditions are on parameters, whose values are known at launch"
                )
            })?;
            Ok(Affine::var(var))
        };
        Ok(match self {
            Self::AtLeast { value, .. } | Self::AtMost { value, .. }
                if value.unsigned_abs() > MAX_COEFFICIENT.unsigned_abs() =>
            {
                return Err(Refusal::argument("value", format!("{value} is beyond 2^40"), "-2^40 to 2^40"));
            }
            Self::AtLeast { param: name, value } => {
                Assumption::Params(Constraint::le(&Affine::constant(*value), &param(name)?))
            }
            Self::AtMost { param: name, value } => {
                Assumption::Params(Constraint::le(&param(name)?, &Affine::constant(*value)))
            }
            Self::MultipleOf { factor, .. } if !(1..=MAX_COEFFICIENT).contains(factor) => {
                return Err(Refusal::argument("factor", factor.to_string(), "1 to 2^40"));
            }
            Self::MultipleOf { param: name, factor } => {
                let value = param(name)?;
                let whole = value.floor_div(*factor).times(*factor);
                Assumption::Params(Constraint::equal(&value, &whole))
            }
            Self::Injective { array } => Assumption::Injective(integer_array(kernel, array)?),
            Self::Symmetric { array, axes, negated } => {
                let symmetry = symmetry::symmetry(kernel, array, axes, *negated)?;
                unwritten(kernel, symmetry.var)?;
                Assumption::Symmetric(symmetry)
            }
        })
    }
}
