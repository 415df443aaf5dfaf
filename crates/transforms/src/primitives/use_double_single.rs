//! Computes with reals of 64 bits as pairs of `f32`.

use kingpost_analysis::Analysis;
use kingpost_ir::{AddressSpace, Arithmetic, Kernel, ScalarType, TableData, VarKind, Variable};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lets code hold reals of 64 bits as double-single numbers: unevaluated sums of two `f32`, whose
/// sums and products are made of operations on `f32`.
///
/// Tables, and temporaries that are not in global memory, are held so, and everything that reads
/// them is computed so. Arguments stay `f64`: what is read is split, what is stored is joined. So
/// do local arrays that are updated atomically. Quotients, roots, absolute values, minima, maxima
/// and comparisons are those of pairs, other functions are computed in `f64`. Intrinsics that take
/// `f64` are computed by their meaning.
///
/// # Rewrite
/// ```text
/// kernel k                        =>   kernel k {double_single}
///
/// temp t: f64 private                  temp t: f64 private
///
/// for i in 0..n                        for i in 0..n
///   s: t = a[i]*b[i]                     s: t = a[i]*b[i]
///   r: y[i] = t                          r: y[i] = t
/// ```
/// A pair has 48 bits, and the range of `f32`: what is below `1e-31` loses bits, what is beyond
/// `3e38` is no number. A sum `a + b*c`, 15 operations, errs by no more than `2^-44` of
/// `|a| + |b*c|`, a sum or a product alone by half of that
/// ([`bound`](https://docs.rs/kingpost-codegen/latest/kingpost_codegen/double_single/enum.PairOp.html)).
///
/// It pays where `f64` is slow: an H200 takes two operations on `f32` for one on `f64`, a B300 or a
/// card for games 64.
///
/// # Precondition
/// `V = { v : type(v) = f64, v a table or a temporary that is not in global memory }` is not empty.
/// Groups do not wait for each other. No finite entry of a table of `V` is beyond `f32`.
///
/// # Errors
/// A kernel that computes so already, one without such variables or with `ordered_groups`, an entry
/// beyond `f32`.
///
/// # Source
/// Dekker 1971; Joldes et al. 2017.
///
/// # Elsewhere
/// The `float-float` of Thall; QD's `dd_real`, of two `f64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UseDoubleSingle {}

impl fmt::Display for UseDoubleSingle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("compute in double-single numbers")
    }
}

/// Something changes.
const REALS: Obligation = Obligation::new(
    "use_double_single.reals",
    "a table, or a temporary that is not in global memory, is f64",
);

/// Groups hand on reals that devices know.
const GROUPS: Obligation =
    Obligation::new("use_double_single.groups", "no group waits for values of an earlier one");

/// What was finite stays so.
const FITS: Obligation =
    Obligation::new("use_double_single.fits", "no finite entry of a table is beyond f32");

impl Primitive for UseDoubleSingle {
    const NAME: &'static str = "use_double_single";
    const SUMMARY: &'static str = "Computes with reals of 64 bits as pairs of `f32`.";

    type Proof = ();
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[REALS, GROUPS, FITS];
    // 2^-44 an operation
    const KEEPS: Keeps = Keeps::within(12).of_finite();
    // a condition on a real may turn, so that results differ by any amount
    const WEIGHT: usize = 0;

    fn check(&self, analysis: &Analysis) -> Result<(), Refusal> {
        let kernel = analysis.kernel();
        let is_held = |var: &&Variable| {
            let is_held = match var.kind {
                VarKind::Table(_) => true,
                VarKind::Temporary => var.space != AddressSpace::Global,
                VarKind::Param | VarKind::Argument(_) => false,
            };
            is_held && var.ty == ScalarType::F64
        };
        let held: Vec<&Variable> = kernel.vars.values().filter(is_held).collect();
        let is_new = kernel.arithmetic == Arithmetic::Native;
        REALS.require(is_new && !held.is_empty(), || match is_new {
            true => "no table holds f64, and no temporary that is not in global memory".to_owned(),
            false => "the kernel computes so already".to_owned(),
        })?;
        GROUPS.require(!kernel.launch.ordered_groups, || {
            "the kernel has `ordered_groups`, whose values are handed on as f64; leave one of both out".into()
        })?;
        let beyond = held.into_iter().find_map(|var| {
            let VarKind::Table(TableData::Real(entries)) = &var.kind else { return None };
            let beyond = |x: &f64| x.is_finite() && (*x as f32).is_infinite();
            Some((var.name.as_str(), entries.iter().map(|x| x.0).find(beyond)?))
        });
        FITS.require(beyond.is_none(), || {
            let (name, entry) = beyond.unwrap_or(("", f64::NAN)); // there is one where this is false
            format!("the entry {entry:e} of `{name}` is beyond f32")
        })
    }

    fn edit(&self, kernel: &mut Kernel, (): &()) {
        kernel.arithmetic = Arithmetic::DoubleSingle;
    }
}
