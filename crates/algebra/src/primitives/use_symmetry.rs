//! Loads the mirror image of an element in its place.

use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, Affine, Assumption, AxisImage, Direction, Expr, InsnId, Kernel, Symmetry, TableData, UnaryOp,
    VarKind, Variable,
};
use kingpost_steps::Means;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup::{self, Selection};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::entries::{LINEAR, constant_shape, linear_uses_in};
use kingpost_steps::refusal::Refusal;
pub use kingpost_steps::symmetry::ImageAxis;
use kingpost_steps::symmetry::{images, symmetry, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Replaces chosen loads of an array by loads of the elements that have the same value, or the
/// negative one, by a symmetry of the array.
///
/// # Rewrite
/// ```text
/// s: y[i] = w[i]*x[i]          =>   s: y[i] = w[-i + 2]*x[i]
/// table w = [0.5, 2.0, 0.5]         table w = [0.5, 2.0, 0.5]
/// ```
/// Along axis `d`, the index of the new load is `f(axis)`, or `extent - 1 - f(axis)` where it is
/// `mirrored`: both axes mirrored turn a matrix by half, exchanged axes transpose it. Afterwards
/// two loads may be of one element, which is fetched once.
///
/// # Precondition
/// `T(f) = T(image(f))` for every `f`, to the last bit, so that zeros of different signs differ. Where it
/// is `negated`, `T(f) = -T(image(f))` as numbers: an element that is its own image is a zero, and has
/// one sign. A zero may change its sign then. So elements are used in sums and products alone, also
/// those that temporaries hold, and a result of zero may have the other sign. Of a table, every entry is
/// compared. Of an `in` argument it is assumed (`assume(symmetric: {...})`), and checked on the real one
/// where a launch asks for it. The chosen instructions load the array themselves, not through a rule.
///
/// # Errors
/// An unknown variable, one without axes or that the kernel writes, axes that are no signed
/// permutation or exchange axes of other extents, negated integers, an entry and its image that
/// differ, an argument of which nothing is assumed, instructions that do not load it, a zero that may
/// change its sign where it divides, or where a function or a condition is computed of it.
///
/// # Source
/// Świrydowicz et al. 2019, §6, kernel 8 of BP1.0.
///
/// # Elsewhere
/// MFEM and libCEED write the even-odd decomposition of such matrices by hand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UseSymmetry {
    /// The array.
    pub var: String,
    /// The image along each axis.
    pub axes: Vec<ImageAxis>,
    /// Whether the image has the negative value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub negated: bool,
    /// The instructions whose loads are replaced; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insns: Option<Selection>,
}

impl UseSymmetry {
    /// Loads of `var` by the image that has these indices along its axes.
    pub fn new(var: impl Into<String>, axes: impl IntoIterator<Item = ImageAxis>) -> Self {
        Self { var: var.into(), axes: axes.into_iter().collect(), negated: false, insns: None }
    }

    /// The image has the negative value.
    #[must_use]
    pub fn negated(mut self) -> Self {
        self.negated = true;
        self
    }

    /// Replaces the loads of these instructions only.
    #[must_use]
    pub fn only_in(mut self, insns: Selection) -> Self {
        self.insns = Some(insns);
        self
    }
}

impl fmt::Display for UseSymmetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "use `{}`", text(&self.var, &self.axes, self.negated))
    }
}

/// The array keeps its values.
const KEPT: Obligation =
    Obligation::new("use_symmetry.kept", "the array is a table or an `in` argument, which keeps its values");

/// The entries of a table have the values of their images.
const ENTRIES: Obligation =
    Obligation::new("use_symmetry.entries", "each entry of a table has the value that its image says");

/// The symmetry of an argument is assumed, and a launch can check it.
const ASSUMED: Obligation = Obligation::new(
    "use_symmetry.assumed",
    "the symmetry of an argument is assumed, so that a launch checks it",
);

/// There is something to replace.
const LOADS: Obligation =
    Obligation::new("use_symmetry.loads", "each of the named instructions loads the array itself");

/// A symmetry that holds, and the instructions whose loads it changes.
pub struct Images {
    symmetry: Symmetry,
    shape: Vec<Affine>,
    insns: Vec<InsnId>,
}

impl Images {
    fn rewrite(&self, e: Expr) -> Expr {
        match e {
            Expr::Load(a) if a.var == self.symmetry.var => {
                let index = self.symmetry.image(&self.shape, &a.index);
                let load = Expr::Load(Access::new(a.var, index));
                if self.symmetry.negated { Expr::Unary(UnaryOp::Neg, Box::new(load)) } else { load }
            }
            other => other,
        }
    }
}

impl Primitive for UseSymmetry {
    const NAME: &'static str = "use_symmetry";
    const SUMMARY: &'static str = "Loads the mirror image of an element in its place.";

    type Proof = Images;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[KEPT, ENTRIES, ASSUMED, LOADS, LINEAR];

    /// An element that is its own negative is a zero, of one sign.
    fn keeps(&self) -> Keeps {
        if self.negated { Keeps::NUMBERS } else { Keeps::BITS }
    }

    fn check(&self, analysis: &Analysis) -> Result<Images, Refusal> {
        let kernel = analysis.kernel();
        let symmetry = symmetry(kernel, &self.var, &self.axes, self.negated)?;
        let var = &kernel.vars[symmetry.var];
        match &var.kind {
            VarKind::Table(data) => {
                KEPT.holds(Means::Form, String::new);
                check_entries(ENTRIES, kernel, &symmetry, data)?;
            }
            VarKind::Argument(Direction::In) => {
                KEPT.holds(Means::Form, String::new);
                let assumed = kernel.assumptions.contains(&Assumption::Symmetric(symmetry.clone()));
                ASSUMED.require(assumed, || {
                    let text = text(&self.var, &self.axes, self.negated);
                    format!(
                        "nothing says so of the argument `{}`; assume `{text}`, which a launch checks, or fix its values",
                        self.var
                    )
                })?;
            }
            VarKind::Argument(_) | VarKind::Temporary | VarKind::Param => {
                KEPT.require(false, || {
                    format!(
                        "`{}` is written, so that elements may have values of their own; use the symmetry of the \
                         table or `in` argument that it is copied from, before it is copied",
                        self.var
                    )
                })?;
            }
        }
        let insns = lookup::loading(kernel, symmetry.var, self.insns.as_ref(), LOADS)?;
        if exchanges_zeros(kernel, &symmetry)? {
            linear_uses_in(analysis.expanded(), symmetry.var, &|insn| insns.contains(&insn))?;
        }
        Ok(Images { shape: var.shape.clone(), symmetry, insns })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Images) {
        for insn in &proof.insns {
            kernel.insns[*insn].map_expressions(&mut |e| proof.rewrite(e));
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let kept = |v: &Variable| matches!(v.kind, VarKind::Table(_) | VarKind::Argument(Direction::In));
        let assumed = kernel.assumptions.iter().filter_map(|a| match a {
            Assumption::Symmetric(symmetry) => Some(Self::from_symmetry(kernel, symmetry)),
            Assumption::Injective(_)
            | Assumption::Ascending(_)
            | Assumption::Outside(_)
            | Assumption::Lists(_)
            | Assumption::Defined(..)
            | Assumption::Params(_) => None,
        });
        let tables = draw::vars(kernel, |v| kept(v) && matches!(v.kind, VarKind::Table(_)));
        let all = assumed.chain(tables.iter().flat_map(|name| steps_on(kernel, name))).collect();
        match p.below(8) {
            0 => {
                let name = p.of(&draw::vars(kernel, kept))?;
                p.of(&steps_on(kernel, &name))
            }
            _ => draw::possible(kernel, all, p),
        }
    }
}

/// Steps with every image along one or two axes.
fn steps_on(kernel: &Kernel, name: &str) -> Vec<UseSymmetry> {
    let step = |(axes, negated)| UseSymmetry { negated, ..UseSymmetry::new(name, axes) };
    images(kernel, name).into_iter().map(step).collect()
}

impl UseSymmetry {
    fn from_symmetry(kernel: &Kernel, symmetry: &Symmetry) -> Self {
        let axis = |image: &AxisImage| ImageAxis { axis: image.axis, mirrored: image.mirrored };
        let name = &kernel.vars[symmetry.var].name;
        Self { negated: symmetry.negated, ..Self::new(name, symmetry.axes.iter().map(axis)) }
    }
}

/// Whether a zero may change its sign: nothing is known of those of an argument.
fn exchanges_zeros(kernel: &Kernel, symmetry: &Symmetry) -> Result<bool, Refusal> {
    let var = &kernel.vars[symmetry.var];
    Ok(match &var.kind {
        VarKind::Table(data) => symmetry.exchanges_zeros_in(&constant_shape(kernel, var)?, data),
        VarKind::Argument(_) => symmetry.negated,
        VarKind::Temporary | VarKind::Param => false,
    })
}

/// Compares every entry of a table with its image.
pub(super) fn check_entries(
    obligation: Obligation,
    kernel: &Kernel,
    symmetry: &Symmetry,
    data: &TableData,
) -> Result<(), Refusal> {
    let var = &kernel.vars[symmetry.var];
    let shape = constant_shape(kernel, var)?;
    obligation.forbid(symmetry.clash_in(&shape, data), |(first, image)| {
        let element = |at| format!("`{}{:?}`", var.name, index_of(&shape, at));
        format!(
            "{} is {}, and its image {} is {}; use another symmetry, or make the entries equal to the last bit",
            element(first),
            data.show(first),
            element(image),
            data.show(image)
        )
    })
}

/// The index of a position, row by row.
fn index_of(shape: &[usize], mut at: usize) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (d, extent) in shape.iter().enumerate().rev() {
        (index[d], at) = (at % extent, at / extent);
    }
    index
}
