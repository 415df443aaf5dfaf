//! Axes of private arrays of which every work-item holds one slice.

use crate::affine::{Affine, Atom};
use crate::deps::AccessSite;
use crate::ids::VarId;
use crate::kernel::{AddressSpace, VarKind};
use crate::placement::axes::{axis_of, index_origin};
use crate::polyhedral::Polyhedral;

/// For each axis of a private array, whether every access indexes it by the same function of the
/// work-item and work-group, so that a work-item touches one value of it only: the axis disappears
/// from the code. That no value crosses to another slice is for the flow check.
pub fn sliced_axes(poly: &Polyhedral, var: VarId, sites: &[AccessSite]) -> Vec<bool> {
    let variable = &poly.kernel.vars[var];
    let eligible = variable.space == AddressSpace::Private && variable.kind == VarKind::Temporary;
    let axes = 0..variable.shape.len();
    axes.map(|axis| eligible && !sites.is_empty() && is_sliced(poly, axis, sites)).collect()
}

fn is_sliced(poly: &Polyhedral, axis: usize, sites: &[AccessSite]) -> bool {
    let position = |site: &AccessSite| site.index[axis].as_ref().and_then(|i| in_axes(poly, i));
    let Some(first) = position(&sites[0]) else { return false };
    sites.iter().all(|s| position(s).as_ref() == Some(&first))
}

/// The index as coefficients of launch axes, if it mentions nothing else and at least one of them.
fn in_axes(poly: &Polyhedral, index: &Affine) -> Option<(Vec<(super::Axis, i64)>, i64)> {
    let mut constant = index.constant_term();
    let mut terms = Vec::new();
    for (atom, c) in index.terms() {
        let Atom::Iname(iname) = atom else { return None };
        let iname_data = &poly.kernel.inames[*iname];
        let axis = axis_of(iname_data.tag)?;
        let lo = index_origin(&iname_data.domain, *iname).as_constant()?;
        constant += c * lo;
        terms.push((axis, *c));
    }
    terms.sort_unstable();
    (!terms.is_empty()).then_some((terms, constant))
}
