//! Makes one array with a component axis of several arrays.

use super::Transform;
use super::tag_iname::check_placement;
use crate::lookup;
use crate::proofs::elements::{check_only_accessed, redirect_accesses, temporary};
use crate::refusal::Refusal;
use purlin_ir::{Affine, Expr, Kernel, VarId, VarKind, Variable};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Joins temporaries of one shape into one array with an axis of components: the first axis keeps them apart (a
/// structure of arrays), the last one puts the components of an element beside each other (an array of structures).
///
/// # Rewrite
/// ```text
/// temp u: f64[n]              =>   temp p: f64[n, 2]                  (axis 1)
/// temp v: f64[n]
///   s: u[i] = a[i]                   s: p[i, 0] = a[i]
///   t: v[i] = 2.0*u[i]               t: p[i, 1] = 2.0*p[i, 0]
/// ```
/// Component `k` is the `k`-th of `vars`. `separate_array` is the way back. The axes of an argument that has its
/// components in one array already change places by `change_layout`.
///
/// # Precondition
/// Equal types, shapes and address spaces; `(k, e) -> e with k inserted` keeps different elements different, so that no
/// dependence changes. If loops are on axes, the placement must hold.
///
/// # Errors
/// Fewer than two arrays, one named twice, one that is no temporary, has a layout or shared storage of its own, or is
/// mentioned by a bound or an assumption; types, shapes or address spaces that differ; an axis beyond the last; a name
/// that is taken.
///
/// # Elsewhere
/// Loopy `concatenate_arrays`; array of structures.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinArrays {
    /// The temporaries, in the order of the components.
    pub vars: Vec<String>,
    /// Name of the joint array.
    pub into: String,
    /// Where the axis of the components stands, counted from 0.
    pub axis: u32,
}

impl JoinArrays {
    /// Joins `vars` into `into` with the components along `axis`.
    pub fn new<S: Into<String>>(
        vars: impl IntoIterator<Item = S>,
        into: impl Into<String>,
        axis: u32,
    ) -> Self {
        Self { vars: vars.into_iter().map(Into::into).collect(), into: into.into(), axis }
    }
}

impl fmt::Display for JoinArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vars: Vec<_> = self.vars.iter().map(|v| format!("`{v}`")).collect();
        write!(f, "join {} into `{}` along axis {}", vars.join(", "), self.into, self.axis)
    }
}

impl Transform for JoinArrays {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let vars = plain_temporaries(kernel, &self.vars, "joined")?;
        lookup::free(kernel, &self.into)?;
        let Some(first) = vars.first().map(|v| &kernel.vars[*v]) else { return Ok(kernel.clone()) };
        for var in vars.iter().map(|v| &kernel.vars[*v]) {
            let what = [
                ("type", var.ty == first.ty),
                ("shape", var.shape == first.shape),
                ("address space", var.space == first.space),
            ];
            if let Some((what, _)) = what.into_iter().find(|(_, same)| !same) {
                return Err(Refusal::Other(format!(
                    "`{}` and `{}` differ in their {what}; only arrays that are alike are joined",
                    first.name, var.name
                )));
            }
        }
        let axis = self.axis as usize;
        if axis > first.shape.len() {
            return Err(Refusal::Other(format!(
                "the component axis is {}, needed 0 to {}, the number of axes there are",
                self.axis,
                first.shape.len()
            )));
        }
        let mut joined = kernel.clone();
        let mut shape = first.shape.clone();
        let count = i64::try_from(vars.len()).unwrap_or(i64::MAX);
        shape.insert(axis, Affine::constant(count));
        let into = Variable::new(&self.into, first.ty, VarKind::Temporary, shape, first.space);
        let into = joined.vars.push(into);
        for (k, var) in (0_i64..).zip(&vars) {
            redirect_accesses(&mut joined, *var, into, &mut |mut index| {
                index.insert(axis, Expr::Int(k));
                index
            });
        }
        let joined = without(joined, vars);
        joined.verify()?;
        check_placement(&joined)?;
        Ok(joined)
    }
}

/// Temporaries with a row-major buffer of their own, at least two and different ones.
///
/// # Errors
/// The first that is something else.
pub(super) fn plain_temporaries(
    kernel: &Kernel,
    names: &[String],
    done: &str,
) -> Result<Vec<VarId>, Refusal> {
    let mut found = Vec::new();
    for name in names {
        let var = temporary(kernel, name, &format!("only temporaries are {done}"))?;
        check_only_accessed(kernel, var)?;
        let data = &kernel.vars[var];
        if data.layout.strides.is_some() || data.layout.vector_axis.is_some() || data.storage.is_some() {
            return Err(Refusal::Other(format!(
                "`{name}` has a layout or shared storage of its own; only arrays without are {done}"
            )));
        }
        if found.contains(&var) {
            return Err(Refusal::Other(format!("`{name}` is named twice")));
        }
        found.push(var);
    }
    if found.len() < 2 {
        return Err(Refusal::Other(format!("{} arrays are to be {done}, needed two or more", found.len())));
    }
    Ok(found)
}

/// The kernel without variables that nothing mentions any more.
pub(super) fn without(mut kernel: Kernel, mut vars: Vec<VarId>) -> Kernel {
    vars.sort_unstable();
    // from the back, so that the ids in front stay
    for var in vars.into_iter().rev() {
        kernel = kernel.with_var_fixed(var, 0);
    }
    kernel
}
