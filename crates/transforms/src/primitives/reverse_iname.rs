//! Runs a loop backward.

use super::Transform;
use super::tag_iname::check_placement;
use crate::error::Cause;
use crate::lookup;
use crate::proofs::bounds::check_constant_value;
use crate::proofs::order::{Reordering, check_order};
use crate::substitute::remap_iname;
use purlin_ir::{Affine, Kernel};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Runs the iterations of `iname` in the opposite order: the loop counts `lo + hi - 1 - i`.
///
/// # Rewrite
/// ```text
/// for i in 0..n      =>   for i in 0..n
///   S(i)                    S(-i + n - 1)
/// ```
/// The iname of a reduction is reversed likewise; reductions may be reassociated.
///
/// # Precondition
/// The loop is a range `lo..hi`, perhaps under conditions that do not mention it, and it carries no dependence: with `o` the loops around,
/// `{ s[o, i] -> t[o, i'] in D : i < i' }` is empty for every flow, anti and output dependence `D` between
/// instructions inside. Commuting updates may be reordered; the reuse of a temporary whose values stay
/// inside one iteration does not count. If loops are on axes, the placement must still hold.
///
/// # Errors
/// An unknown iname, values that are no range or whose bounds are read from memory, a dependence the loop
/// carries or that the placement breaks, with two instances.
///
/// # Elsewhere
/// Loop reversal (Wolfe 1989); Loopy `affine_map_inames`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReverseIname {
    /// The loop.
    pub iname: String,
}

impl ReverseIname {
    /// Reverses `iname`.
    pub fn new(iname: impl Into<String>) -> Self {
        Self { iname: iname.into() }
    }
}

impl fmt::Display for ReverseIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reverse `{}`", self.iname)
    }
}

impl Transform for ReverseIname {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Cause> {
        let iname = lookup::iname(kernel, &self.iname)?;
        let domain = &kernel.inames[iname].domain;
        let Some(range) = domain.as_guarded_range(iname) else {
            return Err(Cause::Argument(format!(
                "`{}` is no plain range `lo..hi`; split or peel the loop so that it is one",
                kernel.show_domain(iname, domain)
            )));
        };
        let value = range.lo.plus(&range.hi).plus_constant(-1).minus(&Affine::iname(iname));
        check_constant_value(kernel, iname, &value)?;
        let mut after = kernel.clone();
        remap_iname(&mut after, iname, &value);
        // the bounds of a range stay, in the form they have, and its guard does not mention it
        after.inames[iname].domain = domain.clone();
        let place = |_, l| (l == iname).then(|| value.clone());
        let order = Reordering { before: kernel, after: &after, value: &place, whole: &[iname] };
        check_order(&order, &|source, sink| {
            if source == sink {
                format!(
                    "keep `{}` in this order, or reverse a loop that `{source}` does not depend on",
                    self.iname
                )
            } else {
                format!("distribute `{source}` and `{sink}` first, or keep `{}` in this order", self.iname)
            }
        })?;
        check_placement(&after)?;
        Ok(after)
    }
}
