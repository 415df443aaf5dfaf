//! Changes the order of the axes of an array.

use super::Transform;
use super::tag_iname::check_placement;
use crate::lookup;
use crate::proofs::elements::{check_movable, dense_strides, rewrite_accesses};
use crate::refusal::Refusal;
use purlin_ir::{Kernel, VarId, VarKind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Puts the axes of an array into another order in memory.
///
/// # Rewrite
/// ```text
/// temp t: f64[n, 4]           =>   temp t: f64[4, n]                 (order 1, 0)
///   s: t[i, j] = a[i, j]             s: t[j, i] = a[i, j]
/// arg a: f64[n, 4]            =>   arg a: f64[n, 4] strides(1, n)
/// ```
/// Axis `k` of the new order is axis `order[k]` of the old one, the outermost first. Of an argument the indices
/// mean what they meant to the caller: only the strides change, and the caller passes the array in that layout.
///
/// # Precondition
/// `order` is a permutation of the axes, so that different elements stay different and no dependence changes.
///
/// # Errors
/// An unknown variable, a table, a parameter, a scalar; an order that is no permutation, or the one there is; an
/// array that has strides already; an argument whose strides would be products of parameters.
///
/// # Elsewhere
/// Loopy layout tags (`N0,N1`); Halide `reorder_storage`; Exo `rearrange_dim`; TVM `transform_layout`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl Transform for TransposeArrayAxes {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let var = lookup::var(kernel, &self.var)?;
        let variable = &kernel.vars[var];
        check_movable(variable)?;
        let order = self.permutation(variable.shape.len())?;
        if variable.layout.strides.is_some() {
            return Err(Refusal::Other(format!(
                "`{}` has strides already; transpose it before other changes of its layout",
                self.var
            )));
        }
        if variable.kind == VarKind::Temporary {
            let transposed = edit(kernel.clone(), var, &order);
            check_placement(&transposed)?;
            return Ok(transposed);
        }
        let strides = dense_strides(&variable.shape, &order).ok_or_else(|| {
            Refusal::Other(format!(
                "the strides of `{}` would be products of parameters; fix all but one of them first",
                self.var
            ))
        })?;
        let mut transposed = kernel.clone();
        transposed.vars[var].layout.strides = Some(strides);
        Ok(transposed)
    }
}

impl TransposeArrayAxes {
    fn permutation(&self, axes: usize) -> Result<Vec<usize>, Refusal> {
        let order: Vec<_> = self.order.iter().map(|a| *a as usize).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..axes) {
            return Err(Refusal::Other(format!(
                "the order is {}, needed each axis of `{}` once, which are {axes}, counted from 0",
                self.order_text(),
                self.var
            )));
        }
        if order == sorted {
            return Err(Refusal::Other(format!("the axes of `{}` are in that order already", self.var)));
        }
        Ok(order)
    }
}

fn edit(mut kernel: Kernel, var: VarId, order: &[usize]) -> Kernel {
    rewrite_accesses(&mut kernel, var, &mut |index| {
        order.iter().filter_map(|k| index.get(*k).cloned()).collect()
    });
    let variable = &mut kernel.vars[var];
    variable.shape = order.iter().map(|k| variable.shape[*k].clone()).collect();
    let place = |a: u32| order.iter().position(|k| *k == a as usize).and_then(|k| u32::try_from(k).ok());
    variable.layout.vector_axis = variable.layout.vector_axis.and_then(place);
    kernel
}
