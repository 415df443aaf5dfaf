//! Axes of private arrays of which every work-item holds one slice.

use crate::deps::AccessSite;
use crate::origin::index_origin;
use crate::placement::axes::axis_of;
use crate::polyhedral::{Polyhedral, bounds_of};
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::ids::VarId;
use kingpost_ir::kernel::{AddressSpace, VarKind};

/// For each axis of a private array, or of one that a sub-group holds, whether every access indexes
/// it by the same function of the work-item and work-group, or whether the lanes of the sub-group
/// hold an element each, so that a work-item touches one value of it only: the axis disappears from
/// the code. That no value crosses to another slice is for the flow check.
pub fn sliced_axes(poly: &Polyhedral, var: VarId, sites: &[AccessSite]) -> Vec<bool> {
    let variable = &poly.kernel.vars[var];
    let registers = matches!(variable.space, AddressSpace::Private | AddressSpace::SubGroup);
    let eligible = registers && variable.kind == VarKind::Temporary && !sites.is_empty();
    let lanes = (variable.space == AddressSpace::SubGroup).then(|| lane_axis(poly, var, sites)).flatten();
    let by_lane = |axis: usize| lanes.is_some_and(|(lane, _)| lane == axis);
    let axes = 0..variable.shape.len();
    axes.map(|axis| eligible && (by_lane(axis) || is_sliced(poly, axis, sites))).collect()
}

/// The axis of an array that the work-items of a sub-group hold, along which each holds the
/// elements at its own index along `l.0`, and what is added to that index: in every write, whatever
/// the reads. `None` if there is no such axis.
pub fn lane_axis(poly: &Polyhedral, var: VarId, sites: &[AccessSite]) -> Option<(usize, i64)> {
    let of_write = |site: &AccessSite, axis: usize| {
        let (terms, constant) = in_axes(poly, site.index[axis].as_ref()?)?;
        (terms == [(super::Axis::Local(0), 1)]).then_some(constant)
    };
    (0..poly.kernel.vars[var].shape.len()).find_map(|axis| {
        let mut offsets = sites.iter().filter(|s| s.writes()).map(|s| of_write(s, axis));
        let first = offsets.next()??;
        offsets.all(|other| other == Some(first)).then_some((axis, first))
    })
}

fn is_sliced(poly: &Polyhedral, axis: usize, sites: &[AccessSite]) -> bool {
    let position = |site: &AccessSite| site.index[axis].as_ref().and_then(|i| in_axes(poly, i));
    let Some(first) = position(&sites[0]) else { return false };
    sites.iter().all(|s| position(s).as_ref() == Some(&first))
}

/// The value of `floor_div(n, d)` where loops keep `n` between two multiples of `d`, as a split of
/// joined or reversed loops leaves it.
fn quotient(poly: &Polyhedral, n: &Affine, d: i64) -> Option<i64> {
    let (mut lo, mut hi) = (n.constant_term(), n.constant_term());
    for (atom, c) in n.terms() {
        let Atom::Iname(iname) = atom else { return None };
        let (Some(first), Some(last)) = bounds_of(poly, *iname, &[(atom.clone(), 1)]) else { return None };
        let (first, last) = (c.checked_mul(first)?, c.checked_mul(last)?);
        lo = lo.checked_add(first.min(last))?;
        hi = hi.checked_add(first.max(last))?;
    }
    (lo.div_euclid(d) == hi.div_euclid(d)).then(|| lo.div_euclid(d))
}

/// The index as coefficients of launch axes, if it mentions nothing else and at least one of them.
fn in_axes(poly: &Polyhedral, index: &Affine) -> Option<(Vec<(super::Axis, i64)>, i64)> {
    let mut constant = index.constant_term();
    let mut terms = Vec::new();
    for (atom, c) in index.terms() {
        let iname = match atom {
            Atom::Iname(iname) => iname,
            Atom::Floor(n, d) => {
                constant += c * quotient(poly, n, *d)?;
                continue;
            }
            Atom::Var(_) => return None,
        };
        let iname_data = &poly.kernel.inames[*iname];
        let axis = axis_of(iname_data.tag)?;
        let lo = index_origin(&poly.kernel, *iname).as_constant()?;
        constant += c * lo;
        terms.push((axis, *c));
    }
    terms.sort_unstable();
    (!terms.is_empty()).then_some((terms, constant))
}
