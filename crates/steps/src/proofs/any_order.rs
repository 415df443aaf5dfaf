//! The proof that the iterations of a loop may run in any order.

use super::order::{Reordering, check_order};
use crate::refusal::Refusal;
use crate::substitute::remap_iname;
use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, InameId};

/// What of an iteration runs with nothing of another one in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// The whole iteration: a temporary may serve one iteration after the other.
    Iteration,
    /// Each instruction alone: instructions of other iterations run in between, which find what
    /// the first one left in a temporary that they share.
    Instruction,
}

/// Checks that iterations of a loop may change places. `mirrored` is the value of the loop where it
/// runs backward: every pair of iterations changes places then, so that no pair depends on its
/// order.
///
/// Formula: with `o` the loops around, `{ s[o, i] -> t[o, i'] in D : i < i' }` is empty for every
/// flow, anti and output dependence `D` between instructions inside. The reuse of a temporary whose
/// values stay inside one iteration does not count if iterations stay together.
///
/// # Errors
/// The order is not proved, with two instances and what `help` says of both; a failure of isl.
pub fn check_any_order(
    analysis: &Analysis,
    iname: InameId,
    mirrored: &Affine,
    together: Together,
    help: &dyn Fn(&str, &str) -> String,
) -> Result<(), Refusal> {
    let mut after = analysis.kernel().clone();
    remap_iname(&mut after, iname, mirrored);
    // the bounds of a range stay, and its guard does not mention it
    after.inames[iname].domain = analysis.kernel().inames[iname].domain.clone();
    let whole: &[InameId] = match together {
        Together::Iteration => &[iname],
        Together::Instruction => &[],
    };
    let value = |_, l| (l == iname).then(|| mirrored.clone());
    check_order(&Reordering { before: analysis, after: &after, value: &value, whole }, help)
}
