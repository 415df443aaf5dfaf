//! Makes one array of each index along an axis.

use kingpost_analysis::Analysis;
use kingpost_ir::{Access, Expr, Kernel, VarId, Variable};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{
    AXIS, ONLY_ACCESSED, TEMPORARY, check_axis, check_only_accessed, map_accesses, temporary,
};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::Array;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Replaces a temporary by one array for each index along `axis`: an array of structures becomes a
/// structure of arrays.
///
/// # Rewrite
/// ```text
/// temp t: f64[n, 2]           =>   temp t_0: f64[n]
///                                  temp t_1: f64[n]
/// s: t[i, 0] = a[i]                s: t_0[i] = a[i]
/// u: t[i, 1] = 2.0*a[i]            u: t_1[i] = 2.0*a[i]
/// ```
///
/// # Precondition
/// Every access has a constant index `c` along the axis, `0 <= c <
/// extent`, and the extent is a constant of at most 64: `(c, e) -> t_c[e]` keeps different elements
/// different, so that no dependence changes.
///
/// # Errors
/// An access whose index along the axis is no constant; an extent that is none; a variable that is
/// no temporary, has strides or shared storage, or is mentioned by a bound or an assumption; taken
/// names.
///
/// # Elsewhere
/// Loopy `tag_array_axes` with `sep`; structure of arrays.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeparateArray {
    /// The temporary.
    pub var: String,
    /// The axis, counted from 0.
    pub axis: u32,
}

impl SeparateArray {
    /// Makes one array of each index of `var` along `axis`.
    pub fn new(var: impl Into<String>, axis: u32) -> Self {
        Self { var: var.into(), axis }
    }
}

impl fmt::Display for SeparateArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "separate `{}` along axis {}", self.var, self.axis)
    }
}

/// The parts are where other arrays would be.
const PLAIN: Obligation =
    Obligation::new("separate_array.plain", "the array has no strides, no vector axis and no shared storage");

/// Each index becomes an array.
const EXTENT: Obligation =
    Obligation::new("separate_array.extent", "the extent of the axis is a constant from 1 to 64");

/// Every access is to one of the parts.
const CONSTANT_INDEX: Obligation = Obligation::new(
    "separate_array.constant_index",
    "every index along the axis is a constant within the axis",
);

/// The variables that take the place of an array.
pub struct Parts {
    var: VarId,
    axis: usize,
    parts: Vec<Variable>,
}

impl Primitive for SeparateArray {
    const NAME: &'static str = "separate_array";
    const SUMMARY: &'static str = "Makes one array of each index along an axis of a temporary.";

    type Proof = Parts;
    type Made = Vec<Array>;

    const OBLIGATIONS: &'static [Obligation] =
        &[PLAIN, EXTENT, CONSTANT_INDEX, TEMPORARY, AXIS, ONLY_ACCESSED];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Parts, Refusal> {
        let kernel = analysis.kernel();
        let var = temporary(kernel, &self.var, "only temporaries can be separated")?;
        let axis = check_axis(&kernel.vars[var], self.axis)?;
        check_only_accessed(kernel, var)?;
        let parts = self.parts(kernel, var, axis)?;
        self.check_accesses(kernel, var, axis, parts.len())?;
        Ok(Parts { var, axis, parts })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Parts) -> Vec<Array> {
        let parts: Vec<VarId> = proof.parts.iter().map(|part| kernel.vars.push(part.clone())).collect();
        map_accesses(kernel, proof.var, &mut |mut access| {
            if let Some(part) = component(&access, proof.axis).and_then(|c| parts.get(c)) {
                access.index.remove(proof.axis);
                access.var = *part;
            }
            access
        });
        *kernel = kernel.with_var_fixed(proof.var, 0); // nothing accesses it any more
        proof.parts.iter().map(|part| Array::named(&part.name)).collect()
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut all = Vec::new();
        for var in draw::temporaries(kernel, 1) {
            all.extend((0..draw::axes(kernel, &var)).map(|axis| Self::new(&var, axis)));
        }
        draw::possible(kernel, all, p)
    }
}

impl SeparateArray {
    /// The variables that take its place.
    fn parts(&self, kernel: &Kernel, var: VarId, axis: usize) -> Result<Vec<Variable>, Refusal> {
        let old = &kernel.vars[var];
        let own = !old.layout.is_row_major() || old.layout.vector_axis.is_some() || old.storage.is_some();
        PLAIN.require(!own, || {
            format!("`{}` has a layout or storage of its own; separate it first", self.var)
        })?;
        let extent = EXTENT.find(old.shape[axis].as_constant().filter(|n| (1..=64).contains(n)), || {
            format!(
                "axis {axis} of `{}` has no constant extent from 1 to 64, and each index becomes an array",
                self.var
            )
        })?;
        let part = |k: i64| {
            let name = format!("{}_{k}", self.var);
            lookup::free(kernel, &name)?;
            let mut part = Variable { name, ..old.clone() };
            part.shape.remove(axis);
            Ok(part)
        };
        (0..extent).map(part).collect()
    }

    fn check_accesses(&self, kernel: &Kernel, var: VarId, axis: usize, extent: usize) -> Result<(), Refusal> {
        let constant = |access: &Access, place: &str| {
            let known = access.var != var || component(access, axis).is_some_and(|c| c < extent);
            CONSTANT_INDEX.require(known, || {
                format!(
                    "{place} accesses `{}` with an index along axis {axis} that is no constant from 0 to {}; unroll \
                     the loop it runs over",
                    self.var,
                    extent - 1
                )
            })
        };
        for insn in kernel.insns.values() {
            for access in insn.reads().into_iter().chain([&insn.lhs]) {
                constant(access, &format!("`{}`", insn.name))?;
            }
        }
        for rule in kernel.rules.values() {
            let mut found = Ok(());
            rule.body.for_each(&mut |e| {
                if let (Expr::Load(access), Ok(())) = (e, &found) {
                    found = constant(access, &format!("rule `{}`", rule.name));
                }
            });
            found?;
        }
        Ok(())
    }
}

/// The constant index along the axis.
fn component(access: &Access, axis: usize) -> Option<usize> {
    usize::try_from(access.index.get(axis)?.as_affine()?.as_constant()?).ok()
}
