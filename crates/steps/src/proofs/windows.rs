//! The part of an array that some statements touch, as an argument: axis by axis.

use super::extent::{parametric_extent, with_outer_inames};
use kingpost_analysis::polyhedral::{Polyhedral, Side, difference};
use kingpost_ir::{Access, Affine, Atom, Expr, InameId, VarId};
use kingpost_isl as isl;

/// A name that no iname has: `#` cannot stand in names.
const VALUE: &str = "#value";

/// An axis of an array as one of an argument.
#[derive(Clone, Debug)]
pub enum ArgAxis {
    /// Always the same index while the statements run: the argument lacks the axis.
    Fixed,
    /// Indices from `start` on; `start` does not depend on the loops of the statements.
    Window {
        /// The first index.
        start: Affine,
        /// How many.
        extent: Affine,
    },
    /// The axis as it is.
    Whole {
        /// How many indices.
        extent: Affine,
    },
}

impl ArgAxis {
    /// The extent of the argument's axis, in the caller's terms, if it has the axis.
    pub fn extent(&self) -> Option<&Affine> {
        match self {
            Self::Fixed => None,
            Self::Window { extent, .. } | Self::Whole { extent } => Some(extent),
        }
    }

    /// The argument's index for an index of the array, in the caller's terms.
    pub fn index(&self, e: &Expr) -> Option<Expr> {
        match self {
            Self::Fixed => None,
            Self::Window { start, .. } => {
                Some(e.as_affine().map_or_else(|| e.clone(), |e| Expr::from_affine(&e.minus(start))))
            }
            Self::Whole { .. } => Some(e.clone()),
        }
    }
}

/// How an array that statements with the loops `inside` access becomes an argument.
///
/// # Errors
/// A failure of isl.
pub fn axes_of(
    poly: &Polyhedral,
    inside: &[InameId],
    var: VarId,
    accesses: &[&Access],
) -> Result<Vec<ArgAxis>, isl::IslError> {
    let shape = &poly.kernel.vars[var].shape;
    let axes = shape.iter().enumerate().map(|(axis, extent)| {
        let window = window(poly, inside, accesses, axis)?;
        Ok(window.unwrap_or_else(|| ArgAxis::Whole { extent: extent.clone() }))
    });
    let axes: Vec<ArgAxis> = axes.collect::<Result<_, isl::IslError>>()?;
    // An axis that values index is passed whole, and then all are: the same axis of both stands at
    // the same place.
    let by_value = accesses.iter().any(|a| a.index.iter().any(|e| e.as_affine().is_none()));
    if by_value {
        return Ok(shape.iter().map(|extent| ArgAxis::Whole { extent: extent.clone() }).collect());
    }
    Ok(axes)
}

fn window(
    poly: &Polyhedral,
    inside: &[InameId],
    accesses: &[&Access],
    axis: usize,
) -> Result<Option<ArgAxis>, isl::IslError> {
    let indices: Option<Vec<Affine>> = accesses.iter().map(|a| a.index.get(axis)?.as_affine()).collect();
    let Some(indices) = indices else { return Ok(None) };
    let split: Vec<(Affine, Affine)> = indices.iter().map(|e| e.split(&|i| inside.contains(&i))).collect();
    let Some((_, start)) = split.first() else { return Ok(None) };
    // what is left of an index besides the start: a function of the loops inside and a constant
    let mut rest = Vec::with_capacity(split.len());
    for (inner, outer) in &split {
        match outer.minus(start).as_constant() {
            Some(c) => rest.push(inner.plus_constant(c)),
            None => return Ok(None),
        }
    }
    if rest.iter().all(|e| e.as_constant() == Some(0)) {
        return Ok(Some(ArgAxis::Fixed));
    }
    if let Some((lo, hi)) = constant_span(poly, &rest)? {
        let (start, extent) = (start.plus_constant(lo), Affine::constant(hi - lo + 1));
        return Ok(Some(ArgAxis::Window { start, extent }));
    }
    let Some(iname) = rest[0].as_iname().filter(|_| rest.iter().all(|e| *e == rest[0])) else {
        return Ok(None);
    };
    let extent = parametric_extent(poly, iname)?;
    Ok(extent.map(|(lo, extent)| ArgAxis::Window { start: start.plus(&lo), extent }))
}

/// Constants between which all values lie, wherever the loops run.
fn constant_span(poly: &Polyhedral, values: &[Affine]) -> Result<Option<(i64, i64)>, isl::IslError> {
    let (mut lo, mut hi) = (i64::MAX, i64::MIN);
    for value in values {
        let (Some(low), Some(high)) = span(poly, value)? else { return Ok(None) };
        (lo, hi) = (lo.min(low), hi.max(high));
    }
    Ok((lo <= hi).then_some((lo, hi)))
}

fn span(poly: &Polyhedral, value: &Affine) -> Result<(Option<i64>, Option<i64>), isl::IslError> {
    if let Some(c) = value.as_constant() {
        return Ok((Some(c), Some(c)));
    }
    let mut inames = Vec::new();
    value.for_each_symbol(&mut |atom| {
        if let Atom::Iname(i) = atom {
            inames.push(*i);
        }
    });
    let Some(by_name) = poly.affine(value, Side::Source) else { return Ok((None, None)) };
    let all = with_outer_inames(&poly.kernel, &inames);
    let mut dims = poly.names(&all, Side::Source);
    dims.push(VALUE.to_owned());
    let (disjuncts, _) = poly.domains(&all, Side::Source);
    let equal = isl::Constraint::zero(difference(&isl::Affine::name(VALUE), &by_name));
    let disjuncts = kingpost_analysis::polyhedral::cross(&poly.in_context(disjuncts), &[vec![equal]]);
    let set = isl::Set::from_disjuncts(&isl::SetSpace::new(&dims, &poly.params), &disjuncts)?;
    if set.is_empty()? { Ok((None, None)) } else { set.bounds(VALUE) }
}
