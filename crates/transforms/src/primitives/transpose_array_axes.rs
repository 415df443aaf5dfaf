//! Changes the order of the axes of an array.

use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, Kernel, Places, TableData, VarId, VarKind};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{MOVABLE, check_movable, dense_strides, rewrite_accesses};
use kingpost_steps::proofs::entries::constant_shape;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Puts the axes of an array into another order in memory.
///
/// # Rewrite
/// ```text
/// arg a: f64[n, 4] in         =>   arg a: f64[n, 4] in strides(1, n)
/// temp t: f64[n, 4]           =>   temp t: f64[4, n]                 (order 1, 0)
///   s: t[i, j] = a[i, j]             s: t[j, i] = a[i, j]
/// ```
/// Axis `k` of the new order is axis `order[k]` of the old one, the outermost first. Of an argument
/// the indices mean what they meant to the caller: only the strides change, and the caller passes
/// the array in that layout. The values of a table move with its axes.
///
/// # Precondition
/// `order` is a permutation of the axes, so that different elements stay different and no
/// dependence changes.
///
/// # Errors
/// An unknown variable, a parameter, a scalar; an order that is no permutation, or the one
/// there is; an array that has strides already; an argument whose strides would be products of
/// parameters.
///
/// # Elsewhere
/// Loopy layout tags (`N0,N1`); Halide `reorder_storage`; Exo
/// `rearrange_dim`; TVM `transform_layout`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransposeArrayAxes {
    /// The array.
    pub var: String,
    /// The axes in their new order, outermost first.
    pub order: Vec<u32>,
}

impl TransposeArrayAxes {
    /// Puts the axes of `var` into this order.
    pub fn new(var: impl Into<String>, order: impl IntoIterator<Item = u32>) -> Self {
        Self { var: var.into(), order: order.into_iter().collect() }
    }

    fn order_text(&self) -> String {
        let axes: Vec<_> = self.order.iter().map(u32::to_string).collect();
        if axes.is_empty() { "none".into() } else { axes.join(", ") }
    }
}

impl fmt::Display for TransposeArrayAxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transpose the axes of `{}` to {}", self.var, self.order_text())
    }
}

/// There is something to transpose.
const OTHER_ORDER: Obligation =
    Obligation::new("transpose_array_axes.other_order", "the axes are in another order now");

/// Strides name the axes of the order there is.
const NO_STRIDES: Obligation =
    Obligation::new("transpose_array_axes.no_strides", "the array has no strides of its own");

/// Strides are affine.
const AFFINE_STRIDES: Obligation = Obligation::new(
    "transpose_array_axes.affine_strides",
    "no stride of an argument is a product of parameters",
);

/// A permutation of the axes, and what carries it out.
pub enum Transposed {
    /// Every access gets the indices in another order.
    Indices {
        /// The temporary or table.
        var: VarId,
        /// Axis `k` becomes axis `order[k]`.
        order: Vec<usize>,
        /// The values of a table, in their new order.
        values: Option<TableData>,
    },
    /// The caller passes the array in another layout.
    Strides {
        /// The argument.
        var: VarId,
        /// Its new strides.
        strides: Vec<Affine>,
    },
}

impl Primitive for TransposeArrayAxes {
    const NAME: &'static str = "transpose_array_axes";
    const SUMMARY: &'static str = "Changes the order of the axes of an array in memory.";

    type Proof = Transposed;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[OTHER_ORDER, NO_STRIDES, AFFINE_STRIDES, MOVABLE];

    fn check(&self, analysis: &Analysis) -> Result<Transposed, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        let variable = &kernel.vars[var];
        let is_table = matches!(variable.kind, VarKind::Table(_));
        if !is_table {
            check_movable(variable)?;
        }
        let order = self.permutation(variable.shape.len())?;
        NO_STRIDES.require(variable.layout.is_row_major(), || {
            format!("`{}` has strides already; transpose it before other changes of its layout", self.var)
        })?;
        if variable.kind == VarKind::Temporary || is_table {
            let values = match &variable.kind {
                VarKind::Table(data) => Some(transposed(data, &constant_shape(kernel, variable)?, &order)),
                VarKind::Temporary | VarKind::Argument(_) | VarKind::Param => None,
            };
            return Ok(Transposed::Indices { var, order, values });
        }
        let strides = AFFINE_STRIDES.find(dense_strides(&variable.shape, &order), || {
            format!(
                "the strides of `{}` would be products of parameters; fix all but one of them first",
                self.var
            )
        })?;
        Ok(Transposed::Strides { var, strides })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Transposed) {
        match proof {
            Transposed::Indices { var, order, values } => transpose(kernel, *var, order, values.as_ref()),
            Transposed::Strides { var, strides } => {
                kernel.vars[*var].layout.places = Places::Strides(strides.clone());
            }
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let arrays = [draw::arrays(kernel, 2), draw::tables_with_axes(kernel, 2)].concat();
        let var = p.of(&arrays)?;
        let (n, by) = (draw::axes(kernel, &var), p.below(3) as u32);
        Some(Self::new(var, (0..n).map(|a| (a + by) % n)))
    }
}

impl TransposeArrayAxes {
    fn permutation(&self, axes: usize) -> Result<Vec<usize>, Refusal> {
        let order: Vec<_> = self.order.iter().map(|a| *a as usize).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..axes) {
            return Err(Refusal::argument(
                "order",
                format!("the order is {}", self.order_text()),
                format!("each axis of `{}` once, which are {axes}, counted from 0", self.var),
            ));
        }
        OTHER_ORDER
            .require(order != sorted, || format!("the axes of `{}` are in that order already", self.var))?;
        Ok(order)
    }
}

/// The values with their axes in another order, row by row.
fn transposed(data: &TableData, extents: &[usize], order: &[usize]) -> TableData {
    let new: Vec<usize> = order.iter().map(|k| extents[*k]).collect();
    let stride = |axis: usize| extents[axis + 1..].iter().product::<usize>();
    let place = |mut n: usize| {
        let mut place = 0;
        for (k, length) in new.iter().enumerate().rev() {
            place += stride(order[k]) * (n % length);
            n /= length;
        }
        place
    };
    data.picked((0..extents.iter().product()).map(|n| Some(place(n))))
}

fn transpose(kernel: &mut Kernel, var: VarId, order: &[usize], values: Option<&TableData>) {
    rewrite_accesses(kernel, var, &mut |index| order.iter().filter_map(|k| index.get(*k).cloned()).collect());
    let variable = &mut kernel.vars[var];
    if let Some(values) = values {
        variable.kind = VarKind::Table(values.clone());
    }
    variable.shape = order.iter().map(|k| variable.shape[*k].clone()).collect();
    let place = |a: u32| order.iter().position(|k| *k == a as usize).and_then(|k| u32::try_from(k).ok());
    variable.layout.vector_axis = variable.layout.vector_axis.and_then(place);
}
