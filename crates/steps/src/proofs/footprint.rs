//! The box that holds every element some accesses touch in one iteration of the loops around.

use super::attained;
use crate::obligation::Obligation;
use crate::refusal::Refusal;
use kingpost_analysis::deps::AccessSite;
use kingpost_analysis::polyhedral::{Disjuncts, Polyhedral, Side, cross, difference};
use kingpost_ir::{Affine, Atom, Constraint, InameId};
use kingpost_isl as isl;

/// A temporary for a region has a constant shape.
pub const CONSTANT_BOX: Obligation =
    Obligation::new("constant_box", "the box around the accesses of an iteration has constant extents");

/// Most lower corners that are tried along one axis.
const MAX_CORNERS: usize = 32;
/// A name that no iname has: `#` cannot stand in names.
const OFFSET: &str = "#";

/// Along one axis: the indices `lower <= index < lower + extent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The smallest index, in terms of the loops around and of symbols.
    pub lower: Affine,
    /// A constant number of indices.
    pub extent: i64,
}

/// The smallest span found along one axis; `None` if no access ever happens.
///
/// Formula: with `x` the loops around and `y` those inside, a lower corner `c(x)` such that `{ f(x,
/// y) - c(x) : (x, y) in the domain }` has constant bounds over all reads `f`. Corners are the
/// indices with every loop inside at zero or at one of its lower bounds.
///
/// # Errors
/// [`Refusal::Argument`] if the extent is not a constant; a failure of isl.
pub fn span(
    poly: &Polyhedral,
    sites: &[&AccessSite],
    axis: usize,
    around: usize,
) -> Result<Option<Span>, Refusal> {
    let mut some = false;
    let mut corners = Vec::new();
    let mut live = Vec::new();
    for site in sites {
        if !attained::has_point(poly, &loops_of(poly, site, around))
            && offsets(poly, site, axis, around, &Affine::default())?.is_empty()?
        {
            continue;
        }
        some = true;
        live.push(*site);
        if let Some(index) = &site.index[axis] {
            add_corners(poly, index.clone(), &inner(poly, site, around), &mut corners);
        }
    }
    if !some {
        return Ok(None);
    }
    let mut best: Option<Span> = None;
    for corner in &corners {
        let Some((low, high)) = bounds(poly, &live, axis, around, corner)? else { continue };
        let Some(extent) = high.checked_sub(low).and_then(|e| e.checked_add(1)) else { continue };
        if best.as_ref().is_none_or(|b| extent < b.extent) {
            best = Some(Span { lower: corner.plus_constant(low), extent });
        }
    }
    let best = CONSTANT_BOX.known(best, || {
        let name = &poly.kernel.vars[sites[0].access.var].name;
        let what = if sites.iter().any(|s| s.writes()) { "accesses" } else { "reads" };
        format!(
            "the {what} of `{name}` along axis {axis} span no constant number of elements; split the loops inside \
             by constants, or fix the parameters"
        )
    })?;
    Ok(Some(best))
}

/// Smallest and largest offset of the accesses from a corner, over everything.
fn bounds(
    poly: &Polyhedral,
    sites: &[&AccessSite],
    axis: usize,
    around: usize,
    corner: &Affine,
) -> Result<Option<(i64, i64)>, Refusal> {
    let mut all: Option<(i64, i64)> = None;
    for site in sites {
        let offset = site.index[axis].as_ref().map(|f| f.minus(corner));
        let decided = offset.and_then(|e| attained::bounds(poly, &e, &loops_of(poly, site, around)));
        let found = match decided {
            Some((low, high)) => (Some(low), Some(high)),
            None => offsets(poly, site, axis, around, corner)?.bounds(OFFSET)?,
        };
        let (Some(low), Some(high)) = found else { return Ok(None) };
        all = Some(all.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
    }
    Ok(all)
}

/// `{ f - corner }` with all loops.
fn offsets(
    poly: &Polyhedral,
    site: &AccessSite,
    axis: usize,
    around: usize,
    corner: &Affine,
) -> Result<isl::Set, Refusal> {
    let loops = loops_of(poly, site, around);
    let index = site.index[axis].as_ref().and_then(|f| poly.affine(&f.minus(corner), Side::Source));
    let offset = index.map(|f| isl::Constraint::zero(difference(&isl::Affine::name(OFFSET), &f)));
    let (domain, _) = poly.domains(&loops, Side::Source);
    let all = cross(&poly.in_context(domain), &[offset.into_iter().collect()]);
    let mut dims = poly.names(&loops, Side::Source);
    dims.push(OFFSET.to_owned());
    Ok(isl::Set::from_disjuncts(&isl::SetSpace::new(&dims, &poly.params), &all)?)
}

/// All loops of an access, outer first, reductions last.
fn loops_of(poly: &Polyhedral, site: &AccessSite, around: usize) -> Vec<InameId> {
    let mut loops = poly.loops(site.insn)[..around].to_vec();
    loops.extend(inner(poly, site, around));
    loops
}

/// The loops between those around and an access, outer first, reductions last.
fn inner(poly: &Polyhedral, site: &AccessSite, around: usize) -> Vec<InameId> {
    let mut inner = poly.loops(site.insn)[around..].to_vec();
    inner.extend(&site.reduction);
    inner
}

/// Adds the values of an index with every loop inside at zero or at a lower bound.
fn add_corners(poly: &Polyhedral, index: Affine, inner: &[InameId], found: &mut Vec<Affine>) {
    if found.len() >= MAX_CORNERS {
        return;
    }
    let Some((last, outer)) = inner.split_last() else {
        if !found.contains(&index) && poly.affine(&index, Side::Source).is_some() {
            found.push(index);
        }
        return;
    };
    if !index.mentions(*last) {
        return add_corners(poly, index, outer, found);
    }
    let mut starts = vec![Affine::default()];
    for c in poly.kernel.inames[*last].domain.disjuncts().iter().flatten() {
        let Constraint::NonNegative(e) = c else { continue };
        let rest = e.minus(&Affine::iname(*last).times(e.coefficient(&Atom::Iname(*last))));
        if e.coefficient(&Atom::Iname(*last)) == 1 && !rest.mentions(*last) {
            starts.push(rest.times(-1));
        }
    }
    for start in starts {
        let replace = |a: &Atom| (*a == Atom::Iname(*last)).then(|| start.clone());
        add_corners(poly, index.substitute(&replace), outer, found);
    }
}

/// Names of the axes of an element.
pub fn element_names(rank: usize) -> Vec<String> {
    (0..rank).map(|k| format!("#{k}")).collect()
}

/// The elements that accesses surely touch in every iteration of the loops around them, as a set
/// over those loops and the axes ([`element_names`]): accesses under a condition or with inexact
/// bounds do not count.
///
/// # Errors
/// A failure of isl.
pub(crate) fn certain_elements(
    poly: &Polyhedral,
    sites: &[&AccessSite],
    around: &[InameId],
    rank: usize,
) -> Result<isl::Set, Refusal> {
    elements(poly, sites, around, rank, &|site, loops| {
        let (domain, exact) = poly.domains(loops, Side::Source);
        (exact && site.is_affine() && !is_conditional(poly, site)).then_some(domain)
    })
}

/// The elements that accesses may touch, likewise: conditions that are not affine count as true,
/// and so do those after which a part of the condition reads.
///
/// # Errors
/// A failure of isl.
pub(crate) fn possible_elements(
    poly: &Polyhedral,
    sites: &[&AccessSite],
    around: &[InameId],
    rank: usize,
) -> Result<isl::Set, Refusal> {
    elements(poly, sites, around, rank, &|site, _| {
        let (instances, _) = poly.instances_under(site.insn, site.conditions, Side::Source);
        Some(cross(&instances, &poly.domains(&site.reduction, Side::Source).0))
    })
}

/// `{ (x, f(x, y)) : (x, y) in the domain of a site }` for all sites that have one.
fn elements(
    poly: &Polyhedral,
    sites: &[&AccessSite],
    around: &[InameId],
    rank: usize,
    domain: &dyn Fn(&AccessSite, &[InameId]) -> Option<Disjuncts>,
) -> Result<isl::Set, Refusal> {
    let axes = element_names(rank);
    let mut dims = poly.names(around, Side::Source);
    dims.extend(axes.iter().cloned());
    let mut all = isl::Set::empty(&isl::SetSpace::new(&dims, &poly.params))?;
    for site in sites {
        let inner = inner(poly, site, around.len());
        let mut loops = around.to_vec();
        loops.extend(&inner);
        let Some(domain) = domain(site, &loops) else { continue };
        let index = site.index.iter().zip(&axes).filter_map(|(f, axis)| {
            let f = poly.affine(f.as_ref()?, Side::Source)?;
            Some(isl::Constraint::zero(difference(&isl::Affine::name(axis.clone()), &f)))
        });
        let index: Disjuncts = vec![index.collect()];
        let names = poly.names(&inner, Side::Source);
        let mut with_inner = dims.clone();
        with_inner.extend(names.iter().cloned());
        let space = isl::SetSpace::new(&with_inner, &poly.params);
        let set = isl::Set::from_disjuncts(&space, &cross(&poly.in_context(domain), &index))?;
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let set = if names.is_empty() { set } else { set.project_out(&names)? };
        all = all.union(&set)?;
    }
    Ok(all)
}

/// Whether an access may not happen although its loops run: its instruction has a condition
/// somewhere.
fn is_conditional(poly: &Polyhedral, site: &AccessSite) -> bool {
    use kingpost_ir::{BinaryOp, Expr};
    let insn = &poly.kernel.insns[site.insn];
    let chooses = |e: &Expr| {
        matches!(e, Expr::Select(..) | Expr::Binary(BinaryOp::And | BinaryOp::Or, ..) | Expr::Rule(..))
    };
    insn.predicate.is_some()
        || !site.writes() && insn.lhs.index.iter().chain([&insn.rhs]).any(|e| e.any(&mut |e| chooses(e)))
}
