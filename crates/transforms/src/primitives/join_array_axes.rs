//! Joins two neighbouring axes of a temporary or table.

use kingpost_analysis::Analysis;
use kingpost_ir::{BinaryOp, Expr, Kernel, VarId, VarKind, Variable};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{
    AXIS, OF_NO_LAYOUT, ONLY_ACCESSED, TEMPORARY, check_axis, check_of_no_layout, check_only_accessed,
    product, rewrite_accesses, temporary,
};
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Joins an axis of a temporary or table and the next one into one axis.
///
/// # Rewrite
/// ```text
/// temp t: f64[n, 4]           =>   temp t: f64[4*n]
///   s: t[i, j] = a[i, j]             s: t[4*i + j] = a[i, j]
/// ```
///
/// # Precondition
/// The extent `m` of the second axis is a constant, and accesses lie inside the array: then `(i, j)
/// -> m*i + j` keeps different elements different, so that no dependence changes. If loops are on
/// axes, the placement must still hold.
///
/// # Errors
/// An axis that has no next one, a second extent that is no constant, strides that do not fit one
/// axis; an argument or a parameter; a variable that is assumed injective.
///
/// # Elsewhere
/// Exo `mult_dim`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinArrayAxes {
    /// The temporary or table.
    pub var: String,
    /// The first of the two axes, counted from 0.
    pub axis: u32,
}

impl JoinArrayAxes {
    /// Joins `axis` of `var` and the next one.
    pub fn new(var: impl Into<String>, axis: u32) -> Self {
        Self { var: var.into(), axis }
    }
}

impl fmt::Display for JoinArrayAxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "join axes {} and {} of `{}`", self.axis, u64::from(self.axis) + 1, self.var)
    }
}

/// The joint index is affine.
const CONSTANT_EXTENT: Obligation =
    Obligation::new("join_array_axes.constant_extent", "the extent of the second axis is constant");

/// The rows lie directly after each other.
const ONE_STRIDE: Obligation = Obligation::new("join_array_axes.one_stride", "one stride serves both axes");

/// Two axes that one index can count.
pub struct JointAxes {
    var: VarId,
    /// The first of them.
    axis: usize,
    /// The extent of the second one.
    inner: i64,
}

impl Primitive for JoinArrayAxes {
    const NAME: &'static str = "join_array_axes";
    const SUMMARY: &'static str = "Joins two neighbouring axes of a temporary or table.";

    type Proof = JointAxes;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] =
        &[CONSTANT_EXTENT, ONE_STRIDE, OF_NO_LAYOUT, TEMPORARY, AXIS, ONLY_ACCESSED];

    fn check(&self, analysis: &Analysis) -> Result<JointAxes, Refusal> {
        let kernel = analysis.kernel();
        let help = "the caller knows the array by its axes; join those of a copy in a temporary";
        let var = lookup::var(kernel, &self.var)?;
        let is_table = matches!(kernel.vars[var].kind, VarKind::Table(_));
        let var = if is_table { var } else { temporary(kernel, &self.var, help)? };
        let axis = check_axis(&kernel.vars[var], self.axis)?;
        check_axis(&kernel.vars[var], self.axis.saturating_add(1))?;
        check_only_accessed(kernel, var)?;
        let inner = self.inner_extent(&kernel.vars[var], axis)?;
        Ok(JointAxes { var, axis, inner })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &JointAxes) {
        let JointAxes { var, axis, inner } = *proof;
        rewrite_accesses(kernel, var, &mut |mut index| {
            if axis + 1 < index.len() {
                let second = index.remove(axis + 1);
                index[axis] = flat(&index[axis], &second, inner);
            }
            index
        });
        let variable = &mut kernel.vars[var];
        variable.shape.remove(axis + 1);
        variable.shape[axis] = variable.shape[axis].times(inner);
        // the second axis has the stride of both
        variable.layout.remove_axis(axis);
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let var = p.of(&[draw::temporaries(kernel, 2), draw::tables_with_axes(kernel, 2)].concat())?;
        let axis = p.below(draw::axes(kernel, &var) as usize - 1) as u32;
        Some(Self::new(var, axis))
    }
}

impl JoinArrayAxes {
    /// The extent of the second axis, a constant, if one stride serves both.
    fn inner_extent(&self, variable: &Variable, axis: usize) -> Result<i64, Refusal> {
        let inner = CONSTANT_EXTENT.find(variable.shape[axis + 1].as_constant(), || {
            format!(
                "the extent of axis {} of `{}` is no constant, so that the index would be no affine expression; fix \
                 its parameters first",
                axis + 1,
                self.var
            )
        })?;
        let strides = variable.layout.strides();
        let row = strides.and_then(|s| product(&s[axis + 1], &variable.shape[axis + 1]));
        let is_next =
            variable.layout.order(variable.shape.len()).windows(2).any(|two| two == [axis, axis + 1]);
        ONE_STRIDE.require(is_next && row.as_ref() == strides.map(|s| &s[axis]), || {
            format!(
                "the rows of `{}` along axis {axis} are padded or not in order, so that one stride does not serve \
                 both axes; join them before other changes of the layout",
                self.var
            )
        })?;
        check_of_no_layout(variable, axis)?;
        check_of_no_layout(variable, axis + 1)?;
        Ok(inner)
    }
}

/// `m*i + j`.
fn flat(i: &Expr, j: &Expr, m: i64) -> Expr {
    match (i.as_affine(), j.as_affine()) {
        (Some(i), Some(j)) => Expr::from_affine(&i.times(m).plus(&j)),
        (None, Some(j)) if j.as_constant() == Some(0) => Expr::binary(BinaryOp::Mul, Expr::Int(m), i.clone()),
        _ => Expr::binary(BinaryOp::Add, Expr::binary(BinaryOp::Mul, Expr::Int(m), i.clone()), j.clone()),
    }
}
