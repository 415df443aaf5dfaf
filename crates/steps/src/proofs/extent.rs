//! The extent of an array that holds one element for each iteration of a loop.

use crate::proofs::attained;
use kingpost_analysis::polyhedral::{Disjuncts, Polyhedral, Side};
use kingpost_ir::{Affine, Atom, Iname, InameId, Kernel, VarKind};
use kingpost_isl as isl;

/// A name that no iname has: `#` cannot stand in names.
const EXTENT: &str = "#extent";

/// The inames and everything their domains mention, in the order of the kernel's table.
pub(crate) fn with_outer_inames(kernel: &Kernel, inames: &[InameId]) -> Vec<InameId> {
    let mut found = inames.to_vec();
    let mut k = 0;
    while k < found.len() {
        kernel.inames[found[k]].domain.for_each_symbol(&mut |atom| {
            if let Atom::Iname(i) = atom
                && !found.contains(i)
            {
                found.push(*i);
            }
        });
        k += 1;
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The points that inames take together wherever they are in scope, taken too large where bounds
/// are read from memory; dimensions are named after the inames.
///
/// # Errors
/// A failure of isl.
pub fn points_of(poly: &Polyhedral, inames: &[InameId]) -> Result<isl::Set, isl::IslError> {
    let all = with_outer_inames(&poly.kernel, inames);
    let space = isl::SetSpace::new(&poly.names(&all, Side::Source), &poly.params);
    let (disjuncts, _) = poly.domains(&all, Side::Source);
    isl::Set::from_disjuncts(&space, &poly.in_context(disjuncts))
}

/// `(lo, extent)` such that `lo <= iname < lo + extent` and `0 <= extent`, both affine in the
/// parameters.
///
/// The bounds are constant where they can be. An extent that could fall below zero is larger by the
/// constant that prevents it. `None` if there are no such bounds.
///
/// # Errors
/// A failure of isl.
pub fn parametric_extent(
    poly: &Polyhedral,
    iname: InameId,
) -> Result<Option<(Affine, Affine)>, isl::IslError> {
    let Iname { name, domain, .. } = &poly.kernel.inames[iname];
    // constants are as tight as bounds get, unless the assumptions exclude every value
    if let Some((lo, hi)) = domain.as_range(iname)
        && let (Some(from), Some(to)) = (lo.as_constant(), hi.as_constant())
        && poly.context.is_empty()
    {
        let empty = (Affine::constant(0), Affine::constant(0));
        return Ok(Some(if from < to { (lo, Affine::constant(to - from)) } else { empty }));
    }
    // ids are in order of appearance, so that outer loops come first
    if let Some((first, last)) =
        attained::bounds(poly, &Affine::iname(iname), &with_outer_inames(&poly.kernel, &[iname]))
        && let Some(extent) = last.checked_sub(first).and_then(|n| n.checked_add(1))
    {
        return Ok(Some((Affine::constant(first), Affine::constant(extent))));
    }
    let values = points_of(poly, &[iname])?.project_onto(&[name])?.coalesce()?;
    if values.is_empty()? {
        return Ok(Some((Affine::constant(0), Affine::constant(0))));
    }
    let (mut lows, mut highs) = (Vec::new(), Vec::new());
    for c in values.disjuncts()?.iter().flatten() {
        collect_bounds(poly, iname, c, &mut lows, &mut highs);
    }
    let bounds = |below: &Affine, above: &Affine| {
        let c = poly.affine(&above.minus(below), Side::Source).map(isl::Constraint::non_negative);
        let space = isl::SetSpace::new(&[name], &poly.params);
        values.is_subset(&isl::Set::from_constraints(&space, &c.into_iter().collect::<Vec<_>>())?)
    };
    let i = Affine::iname(iname);
    let lo = best(lows, |lo| bounds(lo, &i), |a, b| a > b)?;
    let last = best(highs, |last| bounds(&i, last), |a, b| a < b)?;
    let (Some(lo), Some(last)) = (lo, last) else { return Ok(None) };
    let extent = last.minus(&lo).plus_constant(1);
    if extent.as_constant().is_some_and(|n| n >= 0) {
        return Ok(Some((lo, extent)));
    }
    Ok(smallest(poly, &extent)?.map(|least| (lo, extent.plus_constant((-least).max(0)))))
}

/// Adds what a constraint says of an iname: `lo <= iname`, `iname <= last`.
fn collect_bounds(
    poly: &Polyhedral,
    iname: InameId,
    c: &isl::Constraint,
    lows: &mut Vec<Affine>,
    highs: &mut Vec<Affine>,
) {
    let Some(e) = poly.to_affine(&c.expr) else { return };
    let both = match c.kind {
        isl::ConstraintKind::Zero => vec![e.clone(), e.times(-1)],
        isl::ConstraintKind::NonNegative => vec![e],
    };
    for e in both {
        let a = e.coefficient(&Atom::Iname(iname));
        let rest = e.minus(&Affine::iname(iname).times(a));
        if !is_parametric(&poly.kernel, &rest) {
            continue;
        }
        // a*i + r >= 0: i >= -floor(r / a), or i <= floor(r / -a)
        if a > 0 {
            lows.push(rest.floor_div(a).times(-1));
        } else if a < 0 {
            highs.push(rest.floor_div(-a));
        }
    }
}

fn is_parametric(kernel: &Kernel, e: &Affine) -> bool {
    let mut only = true;
    e.for_each_symbol(&mut |atom| match atom {
        Atom::Var(v) => only &= kernel.vars[*v].kind == VarKind::Param,
        Atom::Iname(_) => only = false,
        Atom::Floor(..) => {}
    });
    only
}

/// The tightest constant that is a bound, else the first bound.
fn best(
    mut candidates: Vec<Affine>,
    is_bound: impl Fn(&Affine) -> Result<bool, isl::IslError>,
    tighter: impl Fn(i64, i64) -> bool,
) -> Result<Option<Affine>, isl::IslError> {
    candidates.sort();
    candidates.dedup();
    let mut found: Option<Affine> = None;
    for candidate in candidates {
        if !is_bound(&candidate)? {
            continue;
        }
        let replaces = match (&found, candidate.as_constant()) {
            (None, _) => true,
            (Some(old), Some(new)) => old.as_constant().is_none_or(|old| tighter(new, old)),
            (Some(_), None) => false,
        };
        if replaces {
            found = Some(candidate);
        }
    }
    Ok(found)
}

/// The least value of an expression of the parameters, given the assumptions and that no array has
/// a negative extent; `None` if there is none.
///
/// # Errors
/// A failure of isl.
pub fn smallest(poly: &Polyhedral, e: &Affine) -> Result<Option<i64>, isl::IslError> {
    let Some(value) = poly.affine(e, Side::Source) else { return Ok(None) };
    let mut all: Vec<_> = vec![isl::Constraint::zero(isl::Affine::name(EXTENT).add_scaled(-1, &value))];
    for extent in poly.kernel.vars.values().flat_map(|v| &v.shape) {
        all.extend(poly.affine(extent, Side::Source).map(isl::Constraint::non_negative));
    }
    let disjuncts: Disjuncts = poly.in_context(vec![all]);
    let set = isl::Set::from_disjuncts(&isl::SetSpace::new(&[EXTENT], &poly.params), &disjuncts)?;
    if set.is_empty()? { Ok(Some(0)) } else { Ok(set.bounds(EXTENT)?.0) }
}
