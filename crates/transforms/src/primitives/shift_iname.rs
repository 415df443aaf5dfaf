//! Lets a loop count from elsewhere.

use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::is_symbol;
use kingpost_ir::{Affine, Atom, InameId, Kernel, VarKind};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::bounds::{
    BOUNDS_STAY, PLACES_FOLLOW, changing_bounds, check_bounds_stay, check_places_follow,
};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::substitute::remap_iname;
use kingpost_steps::tree::loop_body;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Adds a constant and multiples of parameters to the values of `iname`, or of scalars in its bounds.
///
/// # Rewrite
/// ```text
/// for i in 0..n      =>   for i in 2..n + 2
///   S(i)                    S(i - 2)
/// ```
/// The iname of a reduction is shifted likewise. A loop `first..last` over a row of a sparse matrix becomes
/// `0..last - first`.
///
/// # Precondition
/// The order of the instances stays, `i < i'  <=>  i + c < i' + c`, if `c` is the same in all of them:
/// nothing inside writes a scalar in it, `vars(c) ∩ written(body) = {}`. A scalar that may change while the
/// kernel runs is one of the loop's bounds, and so has a value. If the loop is on an axis, it is a plain
/// range, whose places count from its lower bound, so that they stay.
///
/// # Errors
/// Unknown inames or parameters, a scalar that is not in the bounds, or that the loop writes, numbers beyond
/// 2^40, a loop on an axis that is no range, and a dependence that the placement breaks, with two instances.
///
/// # Elsewhere
/// Loopy `affine_map_inames`; Exo `shift_loop`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShiftIname {
    /// The loop.
    pub iname: String,
    /// What is added to its values.
    pub by: i64,
    /// Multiples of parameters, or of scalars in the bounds, that are added as well.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, i64>,
}

impl ShiftIname {
    /// Adds `by` to the values of `iname`.
    pub fn new(iname: impl Into<String>, by: i64) -> Self {
        Self { iname: iname.into(), by, params: BTreeMap::new() }
    }

    /// Adds `factor*param` as well.
    #[must_use]
    pub fn and(mut self, factor: i64, param: impl Into<String>) -> Self {
        self.params.insert(param.into(), factor);
        self
    }

    fn amount(&self, kernel: &Kernel, iname: InameId) -> Result<Affine, Refusal> {
        let mut amount = Affine::constant(self.by);
        for (name, factor) in &self.params {
            let var = lookup::var(kernel, name)?;
            let is_known = is_symbol(kernel, var) || changing_bounds(kernel, iname).contains(&var);
            PARAMETERS.require(is_known, || {
                format!(
                    "`{name}` is neither a parameter nor a scalar in the bounds of `{}`; shift by numbers and multiples \
                     of those",
                    self.iname
                )
            })?;
            amount = amount.plus(&Affine::var(var).times(*factor));
        }
        if !amount.in_bounds() {
            return Err(Refusal::argument("by", "the shift has a number beyond 2^40", "-2^40 to 2^40"));
        }
        Ok(amount)
    }
}

impl fmt::Display for ShiftIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shift `{}` by {}", self.iname, self.by)?;
        for (name, factor) in &self.params {
            let sign = if *factor < 0 { '-' } else { '+' };
            write!(f, " {sign} {}*{name}", factor.unsigned_abs())?;
        }
        Ok(())
    }
}

/// A shift is the same in every iteration of the loops around.
const PARAMETERS: Obligation = Obligation::new(
    "shift_iname.parameters",
    "the shift mentions parameters and scalars in the bounds of the loop alone",
);

/// What the edit relies on.
pub struct Shifted {
    iname: InameId,
    /// What stands for the iname in the body.
    value: Affine,
}

impl Primitive for ShiftIname {
    const NAME: &'static str = "shift_iname";
    const SUMMARY: &'static str = "Lets a loop count from elsewhere.";

    type Proof = Shifted;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[PLACES_FOLLOW, PARAMETERS, BOUNDS_STAY];

    fn check(&self, analysis: &Analysis) -> Result<Shifted, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::iname(kernel, &self.iname)?;
        check_places_follow(kernel, iname)?;
        let value = Affine::iname(iname).minus(&self.amount(kernel, iname)?);
        if value.any_symbol(&mut |atom| matches!(atom, Atom::Var(var) if !is_symbol(kernel, *var))) {
            check_bounds_stay(kernel, iname, loop_body(&kernel.body, iname).unwrap_or_default())?; // default: a reduction writes nothing
        }
        Ok(Shifted { iname, value })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Shifted) {
        remap_iname(kernel, proof.iname, &proof.value);
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let (iname, by) = (p.of(&draw::inames(kernel))?, p.between(-2, 4));
        let (times, mut params) = (p.between(-1, 1), draw::vars(kernel, |v| v.kind == VarKind::Param));
        let bounds = kernel.iname(&iname).map(|l| changing_bounds(kernel, l));
        params.extend(bounds.into_iter().flatten().map(|var| kernel.vars[var].name.clone()));
        let step = Self::new(iname, by);
        Some(match p.of(&params) {
            Some(param) => step.and(times, param),
            None => step,
        })
    }
}
