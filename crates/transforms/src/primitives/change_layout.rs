//! Changes where the elements of an array lie.

use super::Transform;
use crate::lookup;
use crate::proofs::elements::check_movable;
use crate::refusal::Refusal;
use purlin_ir::layout::vector_lanes;
use purlin_ir::{Kernel, VarId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Gives an array another layout: strides, an axis of vectors, or neither (dense and row-major).
///
/// # Rewrite
/// ```text
/// arg x: f64[n, 3] in         =>   arg x: f64[n, 3] in strides(1, n)        (layout "strides(1, n)")
/// temp t: f64[n, 4] local     =>   temp t: f64[n, 4] local vector(1)        (layout "vector(1)")
/// ```
/// The layout is written as in the text of kernels. Indices mean what they meant: an argument that is an array of
/// structures (`strides(3, 1)`) becomes a structure of arrays (`strides(1, n)`) in one allocation; the caller passes it in
/// that layout. The elements along a vector axis surely start where a vector may: a loop over it that is tagged `vector`
/// loads and stores them at once (CUDA and OpenCL; C leaves vectors to its compiler).
///
/// # Precondition
/// Different elements stay in different places, `{ (e, e') : address(e) = address(e'), e /= e' }` is empty: with the axes in some order every stride covers those inside it, which the
/// verifier proves of every layout. It knows of the parameters what is assumed, and that the extents of this array are at
/// least 1 where it has an element: `strides(n)` of four elements needs an assumption, `strides(n, 1)` of `[4, n]` none. A vector axis has 2, 4, 8 or 16 elements at stride 1, and the other strides are multiples
/// of that number. No dependence changes.
///
/// # Errors
/// An unknown variable, a table, a parameter, a scalar; text that is no layout, or the one there is; strides that may put two
/// elements in one place; a vector axis that holds no vectors.
///
/// # Elsewhere
/// Loopy `tag_array_axes`; Halide `Buffer::set_stride`, `reorder_storage`; Kokkos layouts; TVM
/// `transform_layout`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeLayout {
    /// The array.
    pub var: String,
    /// `strides(…)`, `vector(axis)`, both, or nothing.
    pub layout: String,
}

impl ChangeLayout {
    /// Gives `var` a layout as the text of kernels writes it.
    pub fn new(var: impl Into<String>, layout: impl Into<String>) -> Self {
        Self { var: var.into(), layout: layout.into() }
    }
}

impl fmt::Display for ChangeLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = if self.layout.trim().is_empty() { "dense and row-major" } else { &self.layout };
        write!(f, "change layout of `{}` to {layout}", self.var)
    }
}

impl Transform for ChangeLayout {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let var = lookup::var(kernel, &self.var)?;
        check_movable(&kernel.vars[var])?;
        if kernel.vars[var].shape.is_empty() {
            return Err(Refusal::Other(format!("`{}` is a scalar, which has no layout", self.var)));
        }
        let changed = self.parse(kernel, var)?;
        changed.verify()?;
        if changed.vars[var].layout == kernel.vars[var].layout {
            return Err(Refusal::Other(format!("`{}` has that layout already", self.var)));
        }
        if changed.vars[var].layout.vector_axis.is_some()
            && let Err(why) = vector_lanes(&changed.vars[var])
        {
            return Err(Refusal::Other(format!("the vector axis of `{}` holds no vectors: {why}", self.var)));
        }
        Ok(changed)
    }
}

impl ChangeLayout {
    /// The kernel with the layout that the text says.
    fn parse(&self, kernel: &Kernel, var: VarId) -> Result<Kernel, Refusal> {
        let no_layout = |why: &str| {
            Refusal::Other(format!(
                "`{}` is no layout: {why}; write `strides(…)` with one stride for each axis, `vector(axis)`, or both",
                self.layout
            ))
        };
        if self.layout.contains(['\n', '\r', '#']) || self.layout.contains("storage") {
            return Err(no_layout("it is strides and a vector axis in one line"));
        }
        let mut bare = kernel.clone();
        bare.body.clear();
        bare.insns = purlin_ir::Arena::default();
        bare.inames = purlin_ir::Arena::default();
        bare.vars[var].layout = purlin_ir::Layout::default();
        bare.vars[var].storage = None;
        let text = purlin_ir::text::print(&bare);
        let declares = |line: &str| {
            line.strip_prefix("arg ")
                .or(line.strip_prefix("temp "))
                .is_some_and(|rest| rest.strip_prefix(self.var.as_str()).is_some_and(|r| r.starts_with(':')))
        };
        let lines = text.lines().map(|line| match declares(line) {
            true => format!("{line} {}", self.layout),
            false => line.to_owned(),
        });
        let text: String = lines.map(|line| line + "\n").collect();
        let parsed = purlin_ir::text::parse(&text)
            .map_err(|e| no_layout(e.errors().first().map_or("", |e| e.message.as_str())))?;
        let found = parsed.var(&self.var).map(|v| &parsed.vars[v]);
        let Some(found) =
            found.filter(|v| v.space == kernel.vars[var].space && v.kind == kernel.vars[var].kind)
        else {
            return Err(no_layout("it says more than a layout"));
        };
        let mut changed = kernel.clone();
        changed.vars[var].layout = found.layout.clone();
        Ok(changed)
    }
}
