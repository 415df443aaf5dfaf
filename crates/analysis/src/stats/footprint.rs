//! Distinct elements that accesses touch.
//!
//! The image of the loops under affine indices is written as constraints on the axes alone: by
//! inverting the indices where they are mixed-radix numbers of the inames (`x[32*o + i, j]`), by
//! isl's projection otherwise. The union of the images is then counted.

use super::collect::Image;
use super::count::{components, count};
use super::error::StatsError;
use super::formula::{Formula, Region};
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::Constraint;
use kingpost_ir::ids::{Id, InameId};
use std::collections::{BTreeMap, BTreeSet};

/// isl operations spent on one projection before the whole array is taken instead.
const ISL_LIMIT: u64 = 2_000_000;

/// Disjuncts a projection may start from.
const MAX_DISJUNCTS: usize = 256;

/// Number of distinct elements; `false` if it is only an upper bound.
pub(super) fn distinct(
    name: &str,
    shape: &[usize],
    images: &[&Image],
    inames: usize,
) -> Result<(u64, bool), StatsError> {
    let mut region = Region::default();
    for (axis, extent) in shape.iter().enumerate() {
        region.push(axis_dim(inames, axis), 0, *extent as i128 - 1);
    }
    let mut known = BTreeSet::new();
    let (mut exact, mut unknown) = (true, 0_u64);
    for image in images {
        exact &= image.context.exact;
        match image.elements.get_or_init(|| elements(image, inames)) {
            Some(set) => {
                known.insert(set.simplify(&region));
            }
            None => {
                exact = false;
                unknown = unknown.saturating_add(image.context.count);
            }
        }
    }
    let size = shape.iter().try_fold(1_u64, |n, e| n.checked_mul(*e as u64)).ok_or(StatsError::Overflow)?;
    let touched = count(&Formula::any(known), &region, &format!("the footprint of `{name}`"));
    match touched {
        Ok(n) => {
            let n = u64::try_from(n).map_err(|_| StatsError::Overflow)?;
            Ok((n.saturating_add(unknown).min(size), exact))
        }
        // too intricate a set: the whole array is an upper bound
        Err(StatsError::Budget { .. }) => Ok((size, false)),
        Err(other) => Err(other),
    }
}

fn axis_dim(inames: usize, axis: usize) -> InameId {
    InameId::from_index(inames + axis)
}

/// The elements as constraints on the axes; `None` if neither way finds them.
fn elements(image: &Image, inames: usize) -> Option<Formula> {
    let index = image.index.as_ref()?;
    invert(image, index, inames).or_else(|| project(image, index, inames))
}

/// `axis == index` for every axis, and the points of the context.
fn relation(image: &Image, index: &[Affine], inames: usize) -> Formula {
    let axes = index
        .iter()
        .enumerate()
        .map(|(axis, e)| Formula::Atom(Constraint::equal(&Affine::iname(axis_dim(inames, axis)), e)));
    let points = [image.context.formula.clone(), image.context.region.formula()];
    Formula::all(points.into_iter().chain(axes))
}

fn invert(image: &Image, index: &[Affine], inames: usize) -> Option<Formula> {
    let region = &image.context.region;
    let mut solved: BTreeMap<InameId, Affine> = BTreeMap::new();
    for (axis, e) in index.iter().enumerate() {
        digits(e, &Affine::iname(axis_dim(inames, axis)), region, &mut solved)?;
    }
    let replace = |atom: &Atom| match atom {
        Atom::Iname(i) => solved.get(i).cloned(),
        Atom::Var(_) | Atom::Floor(..) => None,
    };
    let formula = relation(image, index, inames).substitute(&replace);
    // what is left of the inames must not be linked with an axis; the context has points, so such
    // constraints hold somewhere for every element
    let mut kept = Vec::new();
    for (dims, parts) in components(formula.into_conjuncts()) {
        let is_axis = |d: &InameId| d.index() >= inames;
        if dims.iter().all(is_axis) {
            kept.extend(parts);
        } else if dims.iter().any(is_axis) {
            return None;
        }
    }
    Some(Formula::all(kept))
}

/// Solves `value = e` for the inames of `e` that are not solved yet, if their terms do not overlap:
/// each coefficient is larger than what the smaller ones add up to.
fn digits(e: &Affine, value: &Affine, region: &Region, solved: &mut BTreeMap<InameId, Affine>) -> Option<()> {
    let mut rest = value.plus_constant(e.constant_term().checked_neg()?);
    let mut terms = Vec::new();
    for (atom, c) in e.terms() {
        let Atom::Iname(i) = atom else { return None };
        match solved.get(i) {
            Some(known) => rest = rest.minus(&known.times(*c)),
            None => terms.push((*i, *c)),
        }
    }
    terms.sort_by_key(|(_, c)| c.unsigned_abs());
    while let Some((iname, c)) = terms.pop() {
        let (lo, hi) = span(&terms, region);
        if hi - lo >= i128::from(c).abs() {
            return None;
        }
        // rest = c x + small with lo <= small < lo + |c|
        let shifted = rest.plus_constant(i64::try_from(-lo).ok()?);
        let quotient = match c > 0 {
            true => shifted.floor_div(c),
            false => shifted.floor_div(c.checked_neg()?).times(-1),
        };
        rest = rest.minus(&quotient.times(c));
        solved.insert(iname, quotient);
    }
    Some(())
}

/// Least and greatest value of a sum over a box.
fn span(terms: &[(InameId, i64)], region: &Region) -> (i128, i128) {
    terms.iter().fold((0, 0), |(lo, hi), (iname, c)| {
        let (a, b) = region.get(*iname);
        let (a, b) = (a * i128::from(*c), b * i128::from(*c));
        (lo + a.min(b), hi + a.max(b))
    })
}

fn project(image: &Image, index: &[Affine], inames: usize) -> Option<Formula> {
    let points = kingpost_isl::with_operation_limit(ISL_LIMIT, || projected(image, index, inames));
    let disjuncts = points.ok().flatten()?;
    Some(Formula::of_disjuncts(&disjuncts))
}

type Disjuncts = Vec<Vec<Constraint>>;

fn projected(
    image: &Image,
    index: &[Affine],
    inames: usize,
) -> Result<Option<Disjuncts>, kingpost_isl::IslError> {
    let loops: Vec<InameId> = image.context.region.bounds().iter().map(|(d, ..)| *d).collect();
    let axes: Vec<InameId> = (0..index.len()).map(|axis| axis_dim(inames, axis)).collect();
    let names: Vec<String> = loops.iter().chain(&axes).map(|d| dim_name(*d)).collect();
    let space = kingpost_isl::SetSpace::new(&names, &[] as &[&str]);
    let mut pairs = Vec::new();
    let relation = relation(image, index, inames);
    if number_of_disjuncts(&relation) > MAX_DISJUNCTS {
        return Ok(None);
    }
    for disjunct in disjuncts_of(&relation) {
        pairs.push(disjunct.iter().map(to_isl).collect::<Vec<_>>());
    }
    let hidden: Vec<String> = loops.iter().map(|d| dim_name(*d)).collect();
    let hidden: Vec<&str> = hidden.iter().map(String::as_str).collect();
    let image = kingpost_isl::Set::from_disjuncts(&space, &pairs)?.project_out(&hidden)?;
    let sets = image.disjuncts()?;
    Ok(sets.iter().map(|d| d.iter().map(from_isl).collect()).collect())
}

/// Length of the disjunctive normal form.
fn number_of_disjuncts(formula: &Formula) -> usize {
    match formula {
        Formula::Atom(_) => 1,
        Formula::Any(parts) => parts.iter().fold(0, |n, p| n.saturating_add(number_of_disjuncts(p))),
        Formula::All(parts) => parts.iter().fold(1, |n, p| n.saturating_mul(number_of_disjuncts(p))),
    }
}

/// Disjunctive normal form.
fn disjuncts_of(formula: &Formula) -> Disjuncts {
    match formula {
        Formula::Atom(c) => vec![vec![c.clone()]],
        Formula::Any(parts) => parts.iter().flat_map(disjuncts_of).collect(),
        Formula::All(parts) => parts.iter().fold(vec![Vec::new()], |sum, part| {
            let part = disjuncts_of(part);
            let both = |a: &Vec<Constraint>| {
                let a = a.clone();
                part.iter().map(move |b| a.iter().chain(b).cloned().collect()).collect::<Vec<_>>()
            };
            sum.iter().flat_map(both).collect()
        }),
    }
}

fn dim_name(dim: InameId) -> String {
    format!("d{}", dim.index())
}

fn to_isl(c: &Constraint) -> kingpost_isl::Constraint {
    match c {
        Constraint::Zero(e) => kingpost_isl::Constraint::zero(affine_to_isl(e)),
        Constraint::NonNegative(e) => kingpost_isl::Constraint::non_negative(affine_to_isl(e)),
    }
}

fn affine_to_isl(e: &Affine) -> kingpost_isl::Affine {
    let mut result = kingpost_isl::Affine::constant(e.constant_term());
    for (atom, c) in e.terms() {
        result = match atom {
            Atom::Iname(i) => result.plus(*c, dim_name(*i)),
            Atom::Floor(numerator, d) => result.add_scaled(*c, &affine_to_isl(numerator).floor_div(*d)),
            // contexts hold no variables: their bounds are at fixed parameters
            Atom::Var(_) => result,
        };
    }
    result
}

fn from_isl(c: &kingpost_isl::Constraint) -> Option<Constraint> {
    let zero = Affine::default();
    let e = affine_from_isl(&c.expr)?;
    Some(match c.kind {
        kingpost_isl::ConstraintKind::Zero => Constraint::equal(&e, &zero),
        kingpost_isl::ConstraintKind::NonNegative => Constraint::le(&zero, &e),
    })
}

fn affine_from_isl(e: &kingpost_isl::Affine) -> Option<Affine> {
    let mut sum = Affine::constant(e.constant);
    for (name, c) in &e.terms {
        let dim = name.strip_prefix('d')?.parse().ok()?;
        sum = sum.plus(&Affine::iname(InameId::from_index(dim)).times(*c));
    }
    for (div, c) in &e.divs {
        if div.denominator < 1 {
            return None;
        }
        sum = sum.plus(&affine_from_isl(&div.numerator)?.floor_div(div.denominator).times(*c));
    }
    Some(sum)
}
