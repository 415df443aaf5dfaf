//! The loops over the elements of a box.

use super::flat::Sizes;
use super::tile::Tile;
use crate::lookup;
use crate::proofs::footprint::CONSTANT_BOX;
use crate::refusal::Refusal;
use kingpost_ir::{Affine, AxisTag, Constraint, Domain, Iname, InameId, Kernel};

/// Loops over the elements of a box, outer first, and the offset in the box along each axis.
#[derive(Default)]
pub struct Loops {
    pub inames: Vec<InameId>,
    pub offsets: Vec<Affine>,
}

impl Tile {
    /// One loop for each axis that is kept, with the given names or `{stem}_0`, `{stem}_1`, …
    ///
    /// # Errors
    /// A number of names that does not fit, or a name that is taken.
    pub(crate) fn box_loops(
        &self,
        kernel: &mut Kernel,
        names: &[String],
        stem: &str,
    ) -> Result<Loops, Refusal> {
        let kept = self.axes.iter().filter(|a| a.kept).count();
        if !names.is_empty() && names.len() != kept {
            return Err(Refusal::argument(
                "inames",
                format!("the copy has {kept} loops, found {} names", names.len()),
                "one for each axis of the box with more than one element",
            ));
        }
        let mut loops = Loops::default();
        for axis in &self.axes {
            if !axis.kept {
                loops.offsets.push(Affine::default());
                continue;
            }
            let k = loops.inames.len();
            let name = names.get(k).cloned().unwrap_or_else(|| format!("{stem}_{k}"));
            let iname = new_iname(kernel, name, AxisTag::Sequential)?;
            let d = Affine::iname(iname);
            let mut bounds = within(&d, &axis.extent);
            bounds.extend(axis.guards(&d));
            kernel.inames[iname].domain = Domain::conjunction(bounds);
            loops.inames.push(iname);
            loops.offsets.push(d);
        }
        Ok(loops)
    }

    /// Rounds of a work-group over the elements of the box in row-major order, by loops
    /// `{stem}_o`, `{stem}_l0`, …
    ///
    /// # Errors
    /// A name that is taken.
    pub(crate) fn flat_loops(
        &self,
        kernel: &mut Kernel,
        work_items: &[i64],
        stem: &str,
    ) -> Result<Loops, Refusal> {
        let extents: Option<Vec<i64>> = self.axes.iter().map(|a| a.extent.as_constant()).collect();
        let extents = CONSTANT_BOX.find(extents, || {
            "the length of a flat copy loop is a constant; leave the work-items out".to_owned()
        })?;
        let length: i64 = extents.iter().product();
        let group: i64 = work_items.iter().product();
        let rounds = (length - 1).div_euclid(group) + 1;
        let mut loops = Loops::default();
        let mut position = Affine::default();
        if rounds > 1 {
            let iname = new_iname(kernel, format!("{stem}_o"), AxisTag::Sequential)?;
            kernel.inames[iname].domain =
                Domain::conjunction(within(&Affine::iname(iname), &Affine::constant(rounds)));
            position = Affine::iname(iname).times(group);
            loops.inames.push(iname);
        }
        let mut stride = group;
        let mut innermost = Vec::new();
        for (k, size) in (0_u8..3).zip(work_items).collect::<Vec<_>>().into_iter().rev() {
            stride /= size;
            let iname = new_iname(kernel, format!("{stem}_l{k}"), AxisTag::Local(k))?;
            innermost = within(&Affine::iname(iname), &Affine::constant(*size));
            kernel.inames[iname].domain = Domain::conjunction(innermost.clone());
            position = position.plus(&Affine::iname(iname).times(stride));
            loops.inames.push(iname);
        }
        if length % group != 0 {
            innermost.push(Constraint::lt(&position, &Affine::constant(length)));
        }
        let sizes = Sizes::of(kernel, &loops.inames);
        let mut size = length;
        for (axis, extent) in self.axes.iter().zip(extents) {
            if extent == 1 {
                innermost.extend(axis.guards(&Affine::default()));
                loops.offsets.push(Affine::default());
                continue;
            }
            let whole = size;
            size /= extent;
            // the first axis needs no remainder: the position is below the length
            let offset = sizes.quotient(&position, size);
            let offset = if whole == length { offset } else { sizes.remainder(&offset, extent) };
            innermost.extend(axis.guards(&offset));
            loops.offsets.push(offset);
        }
        if let Some(last) = loops.inames.last() {
            kernel.inames[*last].domain = Domain::conjunction(innermost);
        }
        Ok(loops)
    }
}

fn within(d: &Affine, extent: &Affine) -> Vec<Constraint> {
    vec![Constraint::le(&Affine::default(), d), Constraint::lt(d, extent)]
}

fn new_iname(kernel: &mut Kernel, name: String, tag: AxisTag) -> Result<InameId, Refusal> {
    lookup::free(kernel, &name)?;
    Ok(kernel.inames.push(Iname { name, domain: Domain::universe(), tag }))
}
