//! Changes where the elements of an array lie.

use kingpost_analysis::Analysis;
use kingpost_ir::layout::vector_lanes;
use kingpost_ir::text::NamedLayout;
use kingpost_ir::verify::KernelError;
use kingpost_ir::{Arena, Direction, Kernel, Layout, VarId, VarKind};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{MOVABLE, check_movable};
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Gives an array another layout: strides or an order of its axes, an axis of vectors, a swizzle, or none of
/// them (dense and row-major).
///
/// # Rewrite
/// ```text
/// arg x: f64[n, 3] in         =>   arg x: f64[n, 3] in strides(1, n)        (layout "strides(1, n)")
/// temp t: f64[n, 4] local     =>   temp t: f64[n, 4] local vector(1)        (layout "vector(1)")
/// ```
/// The layout is written as in the text of kernels. `order(2, 1, 0)` is that of Fortran: a dense array
/// whose first axis is innermost; `swizzle(1 ^= 0)` permutes places along axis 1 by the index along axis 0,
/// for temporaries. Indices mean what they meant: an argument that
/// is an array of structures (`strides(3, 1)`) becomes a structure of arrays (`strides(1, n)`) in
/// one allocation; the caller passes it in that layout. The elements along a vector axis surely
/// start where a vector may: a loop over it that is tagged `vector` loads and stores them at once
/// (CUDA and OpenCL; C leaves vectors to its compiler).
///
/// # Precondition
/// Different elements stay in different places, `{ (e, e') : address(e) = address(e'), e /= e' }`
/// is empty: of every two axes the stride of one covers the other, for all parameters and whatever is
/// written. The proof knows of the parameters what is assumed, and that the extents of this
/// array are at least 1 where it has an element:
/// `strides(n)` of four elements needs an assumption, `strides(n, 1)` of `[4, n]` none. A vector
/// axis has 2, 4, 8 or 16 elements at stride 1, and the other strides are multiples of that number. For a
/// fixed `r`, `u -> u ^ (r mod 2^b)` is a bijection of `0..2^b`, the elements of the axis.
/// No dependence changes.
///
/// # Errors
/// An unknown variable, a table, a parameter, a scalar; a layout of other axes, or the one there
/// is; text that is no layout, where the step is read; strides that may put two elements in one
/// place; a vector axis that holds no vectors.
///
/// # Elsewhere
/// Loopy `tag_array_axes`; Halide `Buffer::set_stride`, `reorder_storage`; Kokkos layouts; TVM
/// `transform_layout`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeLayout {
    /// The array.
    pub var: String,
    /// `strides(…)` or `order(…)`, `vector(axis)`, both, or nothing.
    #[schemars(with = "String")]
    pub layout: NamedLayout,
}

impl ChangeLayout {
    /// Gives `var` a layout, such as `"strides(1, n)".parse()?`.
    pub fn new(var: impl Into<String>, layout: NamedLayout) -> Self {
        Self { var: var.into(), layout }
    }
}

impl fmt::Display for ChangeLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "change layout of `{}` to ", self.var)?;
        if self.layout.is_default() { f.write_str("dense and row-major") } else { self.layout.fmt(f) }
    }
}

/// A scalar lies in one place.
const ARRAY: Obligation = Obligation::new("change_layout.array", "the variable has axes");

/// It is a layout of this array.
const LAYOUT: Obligation = Obligation::new(
    "change_layout.layout",
    "the strides and the vector axis suit the axes, and put different elements in different places",
);

/// The step changes something.
const ANOTHER: Obligation = Obligation::new("change_layout.another", "the array has another layout today");

/// A vector is loaded at once.
const VECTORS: Obligation = Obligation::new(
    "change_layout.vectors",
    "a vector axis has 2, 4, 8 or 16 elements side by side, and every vector starts at a multiple of that",
);

/// Another layout that the array can have.
pub struct NewLayout {
    var: VarId,
    layout: Layout,
}

impl Primitive for ChangeLayout {
    const NAME: &'static str = "change_layout";
    const SUMMARY: &'static str = "Gives an array other strides or an axis of vectors.";

    type Proof = NewLayout;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[ARRAY, LAYOUT, ANOTHER, VECTORS, MOVABLE];

    fn check(&self, analysis: &Analysis) -> Result<NewLayout, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        let variable = &kernel.vars[var];
        check_movable(variable)?;
        ARRAY.require(!variable.shape.is_empty(), || {
            format!("`{}` is a scalar, which has no layout", self.var)
        })?;
        let layout = self.layout.resolve(|name| lookup::var(kernel, name))?;
        let broken = broken(kernel, var, &layout);
        LAYOUT.forbid(broken, |why| format!("`{}` is no layout of it: {why}", self.layout))?;
        ANOTHER.require(layout != variable.layout, || format!("`{}` has that layout already", self.var))?;
        let mut changed = variable.clone();
        changed.layout = layout;
        let vectors = if changed.layout.vector_axis.is_some() { vector_lanes(&changed).err() } else { None };
        VECTORS
            .forbid(vectors, |why| format!("the vector axis of `{}` holds no vectors: {why}", self.var))?;
        Ok(NewLayout { var, layout: changed.layout })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &NewLayout) {
        kernel.vars[proof.var].layout = proof.layout.clone();
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let var = p.of(&draw::arrays(kernel, 1))?;
        let n = draw::axes(kernel, &var);
        // extents of samples are small
        let strides = (0..n).map(|k| 16_i64.pow(k));
        let by = p.below(n as usize) as u32;
        let layout = match p.below(5) {
            0 => NamedLayout::vector(by),
            1 => NamedLayout::default(),
            4 => NamedLayout::order((0..n).map(|axis| (axis + by) % n)),
            2 => NamedLayout::strides(strides),
            _ => NamedLayout::strides(strides.rev()),
        };
        Some(Self::new(var, layout))
    }
}

/// The first rule of the verifier that a layout breaks, whatever the instructions do.
fn broken(kernel: &Kernel, var: VarId, layout: &Layout) -> Option<KernelError> {
    let mut bare = kernel.clone();
    bare.body.clear();
    bare.insns = Arena::default();
    bare.inames = Arena::default();
    bare.vars[var].layout = layout.clone();
    bare.vars[var].storage = None;
    if let Err(error) = bare.verify() {
        return Some(error);
    }
    // a step keeps the parameters and the values that a caller may give
    let mut written = bare.vars[var].clone();
    if written.kind == VarKind::Argument(Direction::In) {
        written.kind = VarKind::Argument(Direction::InOut);
    }
    let is_apart = bare.unproved_spacing(&written).is_ok_and(|open| open.is_empty());
    let (name, why) = (written.name, kingpost_ir::verify::SHARED_PLACES);
    (!is_apart).then_some(KernelError::Variable { var: name, why })
}
