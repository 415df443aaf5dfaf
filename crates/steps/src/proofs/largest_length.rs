//! Loops of a constant largest length, which work-items share.

use super::extent::{parametric_extent, points_of};
use crate::obligation::Obligation;
use crate::refusal::Refusal;
use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, AxisTag, Domain, InameId, Kernel};

/// The tree has a size.
pub const LARGEST_LENGTH: Obligation =
    Obligation::new("largest_length", "the length of the loop has a constant bound");

/// There is a term.
pub const SOME_ITERATION: Obligation =
    Obligation::new("some_iteration", "the loop runs at some values of the parameters");

/// The values of a loop that has a constant largest length.
pub struct Values {
    /// Lower bound.
    pub lo: Affine,
    /// Most iterations.
    pub length: i64,
    /// The bound that only the assumptions give and the loop should show.
    bound: Option<Domain>,
}

impl Values {
    /// The values of a loop.
    ///
    /// # Errors
    /// [`LARGEST_LENGTH`] for a loop without a constant bound, [`SOME_ITERATION`] for one that
    /// never runs.
    pub fn of(kernel: &Kernel, iname: InameId) -> Result<Self, Refusal> {
        let name = &kernel.inames[iname].name;
        let known = parametric_extent(Analysis::of(kernel).polyhedral(), iname)?;
        let known = known.and_then(|(lo, n)| Some(Self { lo, length: n.as_constant()?, bound: None }));
        let known = match known {
            Some(known) => Some(known),
            None => Self::assumed(kernel, iname)?,
        };
        let values = LARGEST_LENGTH.known(known, || {
            format!(
                "the length of `{name}` has no constant bound; split it, and take the loop inside a block, or assume \
                 a bound"
            )
        })?;
        SOME_ITERATION
            .require(values.length >= 1, || format!("`{name}` never runs; there is nothing to join"))?;
        Ok(values)
    }

    /// Constants between which a loop runs at all sizes that are assumed.
    fn assumed(kernel: &Kernel, iname: InameId) -> Result<Option<Self>, Refusal> {
        let analysis = Analysis::of(kernel);
        let name = &kernel.inames[iname].name;
        let values = points_of(analysis.polyhedral(), &[iname])?.project_onto(&[name])?;
        let (Some(first), Some(last)) = values.bounds(name)? else { return Ok(None) };
        let Some(length) = last.checked_sub(first).and_then(|n| n.checked_add(1)) else { return Ok(None) };
        let lo = Affine::constant(first);
        let bound = Some(Domain::range(iname, &lo, &lo.plus_constant(length)));
        Ok(Some(Self { lo, length, bound }))
    }

    /// Writes the bound into the domain of the loop, where work-items are counted by it.
    pub fn show_bound(&self, kernel: &mut Kernel, iname: InameId) {
        if let Some(bound) = &self.bound {
            kernel.inames[iname].domain = kernel.inames[iname].domain.intersect(bound);
        }
    }
}

/// The tag of work-items that is asked for, or else that a loop has.
///
/// # Errors
/// A tag that is no axis of work-items.
pub fn work_item_tag(kernel: &Kernel, iname: InameId, wanted: Option<AxisTag>) -> Result<AxisTag, Refusal> {
    match wanted {
        None => Ok(kernel.inames[iname].tag),
        Some(tag @ AxisTag::Local(_)) => Ok(tag),
        Some(
            tag @ (AxisTag::Sequential
            | AxisTag::Unrolled
            | AxisTag::Rolled
            | AxisTag::Vector
            | AxisTag::Group(_)
            | AxisTag::Launch),
        ) => {
            let found = format!("`{tag}` is no axis of the work-items of a group");
            Err(Refusal::argument("tag", found, "l.0, l.1 or l.2"))
        }
    }
}
