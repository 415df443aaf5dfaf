//! Variables whose values do not live from one iteration of the surrounding loops to another.

use crate::answers::Answers;
use crate::deps::access::{AccessSite, Mode};
use crate::deps::covers::covers_box;
use crate::polyhedral::Polyhedral;
use crate::question::{Covered, Footprint, Index, Linear};
use kingpost_ir::affine::Affine;
use kingpost_ir::ids::InameId;
use kingpost_isl as isl;

/// The loops around all accesses, if every iteration of them starts with a certain write of all
/// elements it touches.
///
/// Formula: with `C` the common loops and `W` the first access,
/// `{ [C, e] : e touched in C }  subset of  { [C, e] : e written by W in C }`.
///
/// Overwriting counts as touching: were `e` assigned later in `C` only, two iterations could clash
/// on it without `W` between them. What is touched may be taken too large, what is written may not:
/// hence a certain write.
pub fn confining_loops(
    poly: &Polyhedral,
    sites: &[AccessSite],
    answers: &Answers,
) -> Result<Option<Vec<InameId>>, isl::IslError> {
    let Some(first) = sites.first() else { return Ok(None) };
    let common = common_loops(poly, sites);
    // an iteration of the common loops that an access runs in is one that the write runs in
    if !is_certain_inside(poly, first, common.len()) {
        return Ok(None);
    }
    // The first write must be finished before anything else touches the variable: it and the next
    // access part ways directly below the common loops.
    let alone = |s: &AccessSite| poly.common_loops(first.insn, s.insn).len() == common.len();
    if sites[1..].iter().any(|s| s.insn == first.insn || !alone(s)) {
        return Ok(None);
    }
    if sites[1..].iter().all(|s| covers_syntactically(poly, first, s, &common)) {
        return Ok(Some(common));
    }
    if sites[1..].iter().all(|s| covers_box(poly, first, s, &common)) {
        return Ok(Some(common));
    }
    for site in &sites[1..] {
        let index = reached_index(poly, site);
        let (Some(written), Some(index)) = (known_index(poly, first), index) else { return Ok(None) };
        let footprint = |s: &AccessSite, index| Footprint {
            at: poly.instances_of(s.insn, s.conditions, &s.reduction),
            index,
        };
        let covered = answers.covered.answer(&Covered {
            common: common.len(),
            written: footprint(first, written),
            touched: footprint(site, index),
            symbols: poly.symbols().clone(),
        })?;
        if !covered {
            return Ok(None);
        }
    }
    Ok(Some(common))
}

fn common_loops(poly: &Polyhedral, sites: &[AccessSite]) -> Vec<InameId> {
    let mut common = poly.loops(sites[0].insn).to_vec();
    for site in sites {
        common.truncate(poly.common_loops(sites[0].insn, site.insn).len().min(common.len()));
    }
    common
}

/// Whether the write happens at every point of its loops where its condition holds, which is known, on a known
/// element.
pub fn is_certain_write(poly: &Polyhedral, site: &AccessSite) -> bool {
    is_known_write(poly, site, 0) && poly.is_condition_known(site.insn)
}

/// Whether the write happens, in each iteration of its outer loops that there is, at every point of
/// its loops from this depth on, on a known element.
fn is_certain_inside(poly: &Polyhedral, site: &AccessSite, depth: usize) -> bool {
    is_known_write(poly, site, depth) && poly.kernel.insns[site.insn].predicate.is_none()
}

/// Whether it assigns to a known element, and so are the values of its loops from this depth on.
fn is_known_write(poly: &Polyhedral, site: &AccessSite, depth: usize) -> bool {
    site.mode == Mode::Assign
        && site.is_affine()
        && poly.loops(site.insn)[depth..].iter().all(|l| poly.is_known(*l))
}

/// Whether both touch the same element in an iteration of `common`, which the write, directly in
/// `common`, has then just defined.
fn covers_syntactically(
    poly: &Polyhedral,
    write: &AccessSite,
    site: &AccessSite,
    common: &[InameId],
) -> bool {
    poly.loops(write.insn) == common && write.index == site.index && site.is_affine()
}

/// The index of an access along each axis; `None` if one is not known.
fn known_index(poly: &Polyhedral, site: &AccessSite) -> Option<Vec<Index>> {
    let scope = [poly.loops(site.insn), &site.reduction].concat();
    let at = |index: &Option<Affine>| Linear::of(index.as_ref()?, &scope, &|v| poly.symbol(v)).map(Index::At);
    site.index.iter().map(at).collect()
}

/// The elements that an access may reach: all along an axis whose index is not known.
fn reached_index(poly: &Polyhedral, site: &AccessSite) -> Option<Vec<Index>> {
    let scope = [poly.loops(site.insn), &site.reduction].concat();
    let symbol = |v| poly.symbol(v);
    let shape = &poly.kernel.vars[site.access.var].shape;
    let along = |(index, extent): (&Option<Affine>, &Affine)| match index {
        Some(index) => Linear::of(index, &scope, &symbol).map(Index::At),
        None => Some(Linear::of(extent, &[], &symbol).map_or(Index::Any, Index::Below)),
    };
    site.index.iter().zip(shape).map(along).collect()
}

/// Whether different iterations of `common` touch different elements because every one of these
/// loops alone is an index.
pub fn is_injective_on(common: &[InameId], site: &AccessSite) -> bool {
    common.iter().all(|l| site.index.iter().flatten().any(|i| i.as_iname() == Some(*l)))
}
