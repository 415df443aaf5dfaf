//! Leaves room between the rows of an array.

use kingpost_analysis::Analysis;
use kingpost_ir::affine::MAX_COEFFICIENT;
use kingpost_ir::{Affine, Kernel, Places, VarId, VarKind, Variable};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{
    AXIS, ONLY_ACCESSED, check_axis, check_only_accessed, dense_or_given_strides, product, with_longer_axis,
};
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Leaves room for `by` elements after the last one along an axis, so that its rows start farther
/// apart (against bank conflicts, or for alignment).
///
/// # Rewrite
/// ```text
/// temp t: f64[8, 8] local     =>   temp t: f64[8, 8] local strides(9, 1)     (axis 1, by 1)
/// table w: f64[2, 3] global   =>   table w: f64[2, 4] global                 (axis 1, by 1)
/// ```
/// The strides of the axes outside the padded one grow; shape and indices stay. An array given by
/// the caller has the new strides, too: its layout in memory is part of what the kernel asks for. A
/// table, which is row-major, gets zeros after its values that nothing reads.
///
/// # Precondition
/// `1 <= by`, and a stride outside the axis is a multiple of the room its rows take now; elements
/// then stay apart (the verifier proves that of every layout). No assumption mentions a table.
///
/// # Errors
/// An unknown variable, a parameter or a scalar; an axis there is not, or that is outside all
/// others, so that nothing would move; padding below 1; a table of more than 4,194,304 values, or
/// of which something is assumed; extents whose products are not affine in the parameters.
///
/// # Elsewhere
/// Loopy `add_padding`; Halide `align_storage`; TVM `storage_align`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PadArray {
    /// The array.
    pub var: String,
    /// The axis, counted from 0.
    pub axis: u32,
    /// Elements of room.
    pub by: i64,
}

impl PadArray {
    /// Pads `axis` of `var` by `by` elements.
    pub fn new(var: impl Into<String>, axis: u32, by: i64) -> Self {
        Self { var: var.into(), axis, by }
    }
}

impl fmt::Display for PadArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pad axis {} of `{}` by {}", self.axis, self.var, self.by)
    }
}

/// Strides that grow by whole rows.
const MULTIPLES: Obligation = Obligation::new(
    "pad_array.multiples",
    "a stride outside the axis is a multiple of the room that its rows take",
);

/// Something changes.
const MOVES: Obligation = Obligation::new("pad_array.moves", "an axis lies outside the padded one in memory");

/// Values of a table, with its zeros.
const MAX_VALUES: i64 = 1 << 22;

/// What gives the rows of an array more room.
pub enum Padded {
    /// Elements lie farther apart.
    Strides {
        /// The argument or temporary.
        var: VarId,
        /// Its new strides.
        strides: Vec<Affine>,
    },
    /// Zeros after values.
    Zeros {
        /// The table.
        var: VarId,
        /// It with the longer axis.
        longer: Box<Variable>,
    },
}

impl Primitive for PadArray {
    const NAME: &'static str = "pad_array";
    const SUMMARY: &'static str = "Leaves room between the rows of an array.";

    type Proof = Padded;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[MULTIPLES, MOVES, AXIS, ONLY_ACCESSED];

    fn check(&self, analysis: &Analysis) -> Result<Padded, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        let variable = &kernel.vars[var];
        let axis = check_axis(variable, self.axis)?;
        let is_table = matches!(variable.kind, VarKind::Table(_));
        if is_table {
            check_only_accessed(kernel, var)?;
        }
        if !(1..=MAX_COEFFICIENT).contains(&self.by) {
            return Err(Refusal::argument("by", format!("padding is {}", self.by), "1 to 2^40 elements"));
        }
        let strides = dense_or_given_strides(variable).and_then(|s| self.padded(&variable.shape, s, axis));
        let (strides, moved) = MULTIPLES.known(strides, || {
            format!(
                "the strides of `{}` are no known multiples of its rows along axis {}; pad before other changes of \
                 the layout, or fix the parameters first",
                self.var, self.axis
            )
        })?;
        MOVES.require(moved, || {
            format!(
                "axis {} is the outermost of `{}` in memory, so that padding moves nothing; pad an inner one",
                self.axis, self.var
            )
        })?;
        match is_table {
            true => {
                let longer = with_longer_axis(kernel, var, axis, self.length(variable, axis)?)?;
                Ok(Padded::Zeros { var, longer: Box::new(longer) })
            }
            false => Ok(Padded::Strides { var, strides }),
        }
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Padded) {
        match proof {
            Padded::Strides { var, strides } => {
                kernel.vars[*var].layout.places = Places::Strides(strides.clone());
            }
            Padded::Zeros { var, longer } => kernel.vars[*var] = (**longer).clone(),
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let var = p.of(&[draw::arrays(kernel, 2), draw::tables_with_axes(kernel, 2)].concat())?;
        Some(Self::new(&var, p.below(draw::axes(kernel, &var) as usize) as u32, p.between(0, 3)))
    }
}

impl PadArray {
    /// The extent of an axis of a table with its zeros.
    fn length(&self, table: &Variable, axis: usize) -> Result<i64, Refusal> {
        let extent = |e: &Affine| e.as_constant().unwrap_or(MAX_VALUES);
        let length = extent(&table.shape[axis]).saturating_add(self.by);
        let others = table.shape.iter().enumerate().filter(|(k, _)| *k != axis).map(|(_, e)| extent(e));
        let values = others.fold(length, i64::saturating_mul);
        if values > MAX_VALUES {
            let found = format!("the table would have {values} values");
            return Err(Refusal::argument("by", found, format!("at most {MAX_VALUES}")));
        }
        Ok(length)
    }

    /// New strides, and whether any differs: `m` rows of `s*n` elements become `m` rows of `s*(n +
    /// by)`.
    fn padded(&self, shape: &[Affine], old: Vec<Affine>, axis: usize) -> Option<(Vec<Affine>, bool)> {
        let row = product(&old[axis], &shape[axis])?;
        let room = old[axis].times(self.by);
        let mut strides = old.clone();
        for (k, stride) in strides.iter_mut().enumerate() {
            if k == axis || is_inside(stride, &row) {
                continue;
            }
            *stride = stride.plus(&product(&quotient(stride, &row)?, &room)?);
        }
        let moved = strides != old;
        Some((strides, moved))
    }
}

/// Whether an axis of this stride lies inside a row.
fn is_inside(stride: &Affine, row: &Affine) -> bool {
    match (stride.as_constant(), row.as_constant()) {
        (Some(stride), Some(row)) => stride < row,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// `a/b`, if it is affine.
fn quotient(a: &Affine, b: &Affine) -> Option<Affine> {
    if let Some(b) = b.as_constant().filter(|b| *b > 0) {
        let whole = a.floor_div(b);
        return (whole.times(b) == *a).then_some(whole);
    }
    let (atom, c) = b.terms().first()?;
    let times = a.coefficient(atom).checked_div(*c)?;
    (b.times(times) == *a).then(|| Affine::constant(times))
}
