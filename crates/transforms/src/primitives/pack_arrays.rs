//! Puts arrays side by side into one.

use super::join_arrays::{PLAIN, plain_temporaries, remove_unmentioned};
use kingpost_analysis::Analysis;
use kingpost_ir::affine::MAX_COEFFICIENT;
use kingpost_ir::{Affine, BinaryOp, Expr, Kernel, VarId, VarKind, Variable};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{TEMPORARY, redirect_accesses};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::Array;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Puts temporaries of constant size one after the other into one allocation.
///
/// # Rewrite
/// ```text
/// temp t: f64[8] local        =>   temp pool: f64[20] local
/// temp u: f64[4, 3] local
///   s: t[i] = a[i]                   s: pool[i] = a[i]
///   r: b[k] = u[k, j]                r: b[k] = pool[3*k + j + 8]
/// ```
/// `alias_storage` lays arrays over each other where their lives do not meet; packed arrays may be
/// alive together, and their pool may itself share its storage with another array. An access
/// through a map stands for any element of the pool from then on.
///
/// # Precondition
/// Equal types and address spaces, constant shapes, accesses inside the arrays: then
/// `e -> offset + row-major position of e` keeps different elements different, so that no
/// dependence changes. If loops are on axes, the placement must hold.
///
/// # Errors
/// Fewer than two arrays, one named twice, one that is no temporary, has a layout or shared storage
/// of its own, or is mentioned by a bound or an assumption; types or address spaces that differ; a
/// shape that is not constant; a name that is taken.
///
/// # Elsewhere
/// Loopy `alias_temporaries` and `set_temporary_scope` with base storage; Exo has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// One pool holds elements of one type in memory of one kind.
const ALIKE: Obligation =
    Obligation::new("pack_arrays.alike", "the arrays are of one type and in memory of one kind");

/// The place after an array is known.
const CONSTANT_SHAPE: Obligation =
    Obligation::new("pack_arrays.constant_shape", "the shapes of the arrays are constant");

/// An index is no larger than a coefficient.
const SIZE: Obligation = Obligation::new("pack_arrays.size", "together they have at most 2^40 elements");

/// Temporaries, and their places in the pool.
pub struct Packing {
    arrays: Vec<Packed>,
    pool: Variable,
}

/// Element `e` of a temporary lies at `offset + sum of stride * e`.
struct Packed {
    var: VarId,
    strides: Vec<i64>,
    offset: i64,
}

impl Primitive for PackArrays {
    const NAME: &'static str = "pack_arrays";
    const SUMMARY: &'static str = "Puts temporaries side by side into one.";

    type Proof = Packing;
    type Made = Array;

    const OBLIGATIONS: &'static [Obligation] = &[PLAIN, ALIKE, CONSTANT_SHAPE, SIZE, TEMPORARY];

    fn check(&self, analysis: &Analysis) -> Result<Packing, Refusal> {
        let kernel = analysis.kernel();
        let (first, vars) = plain_temporaries(kernel, &self.vars, "packed")?;
        lookup::free(kernel, &self.into)?;
        let mut size = 0_i64;
        let mut arrays = Vec::new();
        for var in vars {
            let data = &kernel.vars[var];
            ALIKE.require(data.ty == first.ty && data.space == first.space, || {
                format!(
                    "`{}` is {} in {} memory and `{}` is {} in {} memory; only equal ones are packed",
                    first.name,
                    first.ty,
                    first.space.name(),
                    data.name,
                    data.ty,
                    data.space.name()
                )
            })?;
            let (elements, strides) = elements(data)?;
            arrays.push(Packed { var, strides, offset: size });
            size = size.saturating_add(elements);
            SIZE.require(size <= MAX_COEFFICIENT, || {
                "the arrays have more than 2^40 elements together; pack fewer".into()
            })?;
        }
        let pool =
            Variable::new(&self.into, first.ty, VarKind::Temporary, [Affine::constant(size)], first.space);
        Ok(Packing { arrays, pool })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Packing) -> Array {
        let pool = kernel.vars.push(proof.pool.clone());
        for Packed { var, strides, offset } in &proof.arrays {
            redirect_accesses(kernel, *var, pool, &mut |index| vec![position(&index, strides, *offset)]);
        }
        let vars: Vec<_> = proof.arrays.iter().map(|a| a.var).collect();
        remove_unmentioned(kernel, &vars);
        Array::named(&self.into)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let all = draw::temporaries(kernel, 0);
        Some(Self::new([p.of(&all)?, p.of(&all)?], kernel.fresh_name("pool")))
    }
}

/// Elements of an array of constant shape, and its row-major strides.
fn elements(variable: &Variable) -> Result<(i64, Vec<i64>), Refusal> {
    let mut strides = vec![1_i64; variable.shape.len()];
    let mut axes = strides.iter_mut().zip(&variable.shape).rev();
    let size = axes.try_fold(1_i64, |inner, (stride, extent)| {
        *stride = inner;
        inner.checked_mul(extent.as_constant()?.max(0))
    });
    let size = CONSTANT_SHAPE.find(size, || {
        format!(
            "`{}` has no constant shape, so that the place after it is not known; fix its parameters first",
            variable.name
        )
    })?;
    Ok((size, strides))
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
