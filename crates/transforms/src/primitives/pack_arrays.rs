//! Puts arrays side by side into one.

use super::Transform;
use super::join_arrays::{plain_temporaries, without};
use super::tag_iname::check_placement;
use crate::lookup;
use crate::proofs::elements::redirect_accesses;
use crate::refusal::Refusal;
use purlin_ir::affine::MAX_COEFFICIENT;
use purlin_ir::{Affine, BinaryOp, Expr, Kernel, VarId, VarKind, Variable};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Puts temporaries of constant size one behind the other into one allocation.
///
/// # Rewrite
/// ```text
/// temp t: f64[8] local        =>   temp pool: f64[20] local
/// temp u: f64[4, 3] local
///   s: t[i] = a[i]                   s: pool[i] = a[i]
///   r: b[i] = u[i, j]                r: b[i] = pool[3*i + j + 8]
/// ```
/// `alias_storage` lays arrays over each other where their lives do not meet; packed arrays may be alive together, and
/// their pool may in turn share its storage with another array. An access through a map stands for any element of the pool
/// from then on.
///
/// # Precondition
/// Equal types and address spaces, constant shapes, accesses inside the arrays: then
/// `e -> offset + row-major position of e` keeps different elements different, so that no dependence changes. If loops are
/// on axes, the placement must hold.
///
/// # Errors
/// Fewer than two arrays, one named twice, one that is no temporary, has a layout or shared storage of its own, or is
/// mentioned by a bound or an assumption; types or address spaces that differ; a shape that is not constant; a name that
/// is taken.
///
/// # Elsewhere
/// Loopy `alias_temporaries` and `set_temporary_scope` with base storage; Exo has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackArrays {
    /// The temporaries, in their order in memory.
    pub vars: Vec<String>,
    /// Name of the allocation.
    pub into: String,
}

impl PackArrays {
    /// Packs `vars` into `into`.
    pub fn new<S: Into<String>>(vars: impl IntoIterator<Item = S>, into: impl Into<String>) -> Self {
        Self { vars: vars.into_iter().map(Into::into).collect(), into: into.into() }
    }
}

impl fmt::Display for PackArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vars: Vec<_> = self.vars.iter().map(|v| format!("`{v}`")).collect();
        write!(f, "pack {} into `{}`", vars.join(", "), self.into)
    }
}

impl Transform for PackArrays {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let vars = plain_temporaries(kernel, &self.vars, "packed")?;
        lookup::free(kernel, &self.into)?;
        let Some(first) = vars.first().map(|v| &kernel.vars[*v]) else { return Ok(kernel.clone()) };
        let mut size = 0_i64;
        let mut places = Vec::new();
        for var in &vars {
            let data = &kernel.vars[*var];
            if data.ty != first.ty || data.space != first.space {
                return Err(Refusal::Other(format!(
                    "`{}` is {} in {} memory and `{}` is {} in {} memory; only equal ones are packed",
                    first.name,
                    first.ty,
                    first.space.name(),
                    data.name,
                    data.ty,
                    data.space.name()
                )));
            }
            places.push(size);
            let elements = elements(data)?;
            size = size.checked_add(elements).filter(|n| *n <= MAX_COEFFICIENT).ok_or_else(|| {
                Refusal::Other("the arrays have more than 2^40 elements together; pack fewer".into())
            })?;
        }
        let mut packed = kernel.clone();
        let pool =
            Variable::new(&self.into, first.ty, VarKind::Temporary, [Affine::constant(size)], first.space);
        let pool = packed.vars.push(pool);
        for (var, offset) in vars.iter().zip(places) {
            let strides = strides(kernel, *var);
            redirect_accesses(&mut packed, *var, pool, &mut |index| vec![position(&index, &strides, offset)]);
        }
        let packed = without(packed, vars);
        packed.verify()?;
        check_placement(&packed)?;
        Ok(packed)
    }
}

/// Elements of an array of constant shape.
fn elements(variable: &Variable) -> Result<i64, Refusal> {
    let size = variable.shape.iter().try_fold(1_i64, |n, e| n.checked_mul(e.as_constant()?.max(0)));
    size.ok_or_else(|| {
        Refusal::Other(format!(
            "`{}` has no constant shape, so that the place behind it is not known; fix its parameters first",
            variable.name
        ))
    })
}

/// Row-major strides of an array of constant shape.
fn strides(kernel: &Kernel, var: VarId) -> Vec<i64> {
    let shape = &kernel.vars[var].shape;
    let mut strides = vec![1_i64; shape.len()];
    for k in (1..shape.len()).rev() {
        strides[k - 1] = strides[k].saturating_mul(shape[k].as_constant().unwrap_or(1));
    }
    strides
}

/// `offset + sum of stride * index`.
fn position(index: &[Expr], strides: &[i64], offset: i64) -> Expr {
    let mut known = Affine::constant(offset);
    let mut others: Vec<Expr> = Vec::new();
    for (e, stride) in index.iter().zip(strides) {
        match e.as_affine() {
            Some(value) => known = known.plus(&value.times(*stride)),
            None if *stride == 1 => others.push(e.clone()),
            None => others.push(Expr::binary(BinaryOp::Mul, Expr::Int(*stride), e.clone())),
        }
    }
    let zero = known.as_constant() == Some(0);
    let first = others.into_iter().reduce(|a, b| a + b);
    match first {
        None => Expr::from_affine(&known),
        Some(sum) if zero => sum,
        Some(sum) => sum + Expr::from_affine(&known),
    }
}
