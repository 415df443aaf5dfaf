//! A box of an array that a temporary stands for.

use crate::proofs::attained;
use crate::proofs::footprint::{
    CONSTANT_BOX, Span, certain_elements, element_names, possible_elements, span,
};
use crate::refusal::Refusal;
use crate::staging::{BOX_NOT_EMPTY, BOX_SIZE};
use kingpost_analysis::deps::AccessSite;
use kingpost_analysis::polyhedral::{Disjuncts, Polyhedral, Side, cross, difference};
use kingpost_ir::{AddressSpace, Affine, Constraint, Expr, InameId, VarId};
use kingpost_isl as isl;

/// How far a box may reach.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits<'a> {
    /// Extents of the array; without them it ends nowhere.
    pub shape: Option<&'a [Affine]>,
    /// Whether it may have all of an axis whose extent is no constant.
    pub whole_axes: bool,
}

impl<'a> Limits<'a> {
    /// The limits of an array of this shape.
    pub fn of(shape: &'a [Affine]) -> Self {
        Self { shape: Some(shape), whole_axes: false }
    }

    /// The limits of a box in this memory: global memory holds all of an axis.
    #[must_use]
    pub fn in_memory(self, space: AddressSpace) -> Self {
        Self { whole_axes: space == AddressSpace::Global, ..self }
    }
}

/// The box of elements that some accesses touch in one iteration of the loops around.
#[derive(Debug)]
pub struct Tile {
    /// Its axes.
    pub axes: Vec<Axis>,
    /// What its elements satisfy besides, by the names of the loops around and of
    /// [`element_names`].
    pub conditions: Disjuncts,
}

/// An axis of the box.
#[derive(Debug)]
pub struct Axis {
    /// The smallest index, in terms of the loops around and of symbols.
    lower: Affine,
    /// Number of indices: a constant, or all of an axis of the array.
    pub extent: Affine,
    /// Whether elements below and beyond the array must be left out.
    guard: [bool; 2],
    /// Elements of the array, if it ends anywhere.
    shape: Option<Affine>,
    /// Whether the temporary has it.
    pub kept: bool,
}

impl Tile {
    /// The box around what accesses of `var` touch in one iteration of `around`, with all of an axis
    /// along which an index is not affine.
    ///
    /// # Errors
    /// Loops that are empty, extents that are no constants, more than 2^31 elements; a failure of
    /// isl.
    pub fn around(
        poly: &Polyhedral,
        var: VarId,
        sites: &[&AccessSite],
        around: &[InameId],
        limits: Limits<'_>,
    ) -> Result<Self, Refusal> {
        let mut axes = Vec::new();
        for axis in 0..poly.kernel.vars[var].shape.len() {
            let known = sites.iter().all(|s| s.index.get(axis).is_some_and(Option::is_some));
            let span = if known {
                span(poly, sites, axis, around.len())
                    .and_then(|found| BOX_NOT_EMPTY.find(found, || nothing(poly, var, sites)))
            } else {
                whole(poly, var, axis)
            };
            let shape = limits.shape.and_then(|s| s.get(axis));
            axes.push(match (span, shape) {
                (Ok(span), shape) => Axis::new(poly, around, span, shape)?,
                (Err(refused), Some(all))
                    if limits.whole_axes && refused.obligation() == Some(CONSTANT_BOX) =>
                {
                    Axis::all(all)
                }
                (Err(refused), _) => return Err(refused),
            });
        }
        let elements = axes.iter().filter_map(|a| a.extent.as_constant()).try_fold(1_i64, i64::checked_mul);
        BOX_SIZE.require(elements.is_some_and(|n| n <= 1 << 31), || {
            "the box has more than 2^31 elements; prefetch in a loop further inside".into()
        })?;
        Ok(Self { axes, conditions: vec![Vec::new()] })
    }

    /// Leaves out what the accesses, as far as indices, bounds and conditions are affine, do not
    /// touch.
    ///
    /// # Errors
    /// Nothing that is touched; a failure of isl.
    pub fn narrow(
        mut self,
        poly: &Polyhedral,
        var: VarId,
        sites: &[&AccessSite],
        around: &[InameId],
    ) -> Result<Self, Refusal> {
        let inside = self.set(poly, around)?;
        let touched = possible_elements(poly, sites, around, self.axes.len())?;
        BOX_NOT_EMPTY.require(!touched.intersect(&inside)?.is_empty()?, || nothing(poly, var, sites))?;
        self.conditions = touched.gist(&inside)?.coalesce()?.remove_redundancies()?.disjuncts()?;
        Ok(self)
    }

    /// `{ (L, e) : e in the temporary }`, with the loops around in their domains.
    fn set(&self, poly: &Polyhedral, around: &[InameId]) -> Result<isl::Set, Refusal> {
        let names = element_names(self.axes.len());
        let inside: Vec<_> =
            self.axes.iter().zip(&names).flat_map(|(axis, name)| axis.bounds(poly, name)).collect();
        let (domain, _) = poly.domains(around, Side::Source);
        let mut dims = poly.names(around, Side::Source);
        dims.extend(names);
        let space = isl::SetSpace::new(&dims, &poly.params);
        let all = cross(&cross(&poly.in_context(domain), &[inside]), &self.conditions);
        Ok(isl::Set::from_disjuncts(&space, &all)?)
    }

    /// Whether accesses surely touch all that the temporary holds.
    ///
    /// Formula: `{ (L, e) : e in the temporary }` is a subset of
    /// `{ (L, e) : e is surely touched }`.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn is_filled_by(
        &self,
        poly: &Polyhedral,
        sites: &[&AccessSite],
        around: &[InameId],
    ) -> Result<bool, Refusal> {
        let touched = certain_elements(poly, sites, around, self.axes.len())?;
        Ok(self.set(poly, around)?.is_subset(&touched)?)
    }

    /// Shape of the temporary.
    pub fn shape(&self) -> Vec<Affine> {
        self.axes.iter().filter(|a| a.kept).map(|a| a.extent.clone()).collect()
    }

    /// Index in the temporary of an element of the array.
    pub fn index(&self, of_array: &[Expr]) -> Vec<Expr> {
        let shift = |(index, axis): (&Expr, &Axis)| {
            let shifted = index.as_affine().map(|i| Expr::from_affine(&i.minus(&axis.lower)));
            let of_whole = || (axis.lower == Affine::default()).then(|| index.clone());
            shifted.or_else(of_whole).unwrap_or_else(|| index.clone() - Expr::from_affine(&axis.lower))
        };
        of_array.iter().zip(&self.axes).filter(|(_, a)| a.kept).map(shift).collect()
    }

    /// Index in the temporary of the element at these offsets.
    pub(crate) fn temporary_at(&self, offsets: &[Affine]) -> Vec<Expr> {
        let kept = self.axes.iter().zip(offsets).filter(|(a, _)| a.kept);
        kept.map(|(_, d)| Expr::from_affine(d)).collect()
    }

    /// Index in the array of the element at these offsets.
    pub(crate) fn array_at(&self, offsets: &[Affine]) -> Vec<Expr> {
        self.element_at(offsets).iter().map(Expr::from_affine).collect()
    }

    /// The same as affine expressions.
    pub(crate) fn element_at(&self, offsets: &[Affine]) -> Vec<Affine> {
        self.axes.iter().zip(offsets).map(|(a, d)| a.lower.plus(d)).collect()
    }
}

impl Axis {
    fn new(
        poly: &Polyhedral,
        around: &[InameId],
        span: Span,
        shape: Option<&Affine>,
    ) -> Result<Self, Refusal> {
        let guard = match shape {
            None => [false; 2],
            Some(shape) => {
                let last = span.lower.plus_constant(span.extent - 1);
                [
                    reachable(poly, around, &Constraint::lt(&span.lower, &Affine::default()))?,
                    reachable(poly, around, &Constraint::le(shape, &last))?,
                ]
            }
        };
        let kept = span.extent > 1 || guard != [false; 2];
        let extent = Affine::constant(span.extent);
        Ok(Self { lower: span.lower, extent, guard, shape: shape.cloned(), kept })
    }

    /// All of an axis of the array.
    fn all(extent: &Affine) -> Self {
        let lower = Affine::default();
        Self { lower, extent: extent.clone(), guard: [false; 2], shape: Some(extent.clone()), kept: true }
    }

    /// What an offset in the box satisfies for its element to be in the array.
    pub fn guards(&self, offset: &Affine) -> Vec<Constraint> {
        let index = self.lower.plus(offset);
        let below = self.guard[0].then(|| Constraint::le(&Affine::default(), &index));
        let beyond = self.shape.as_ref().filter(|_| self.guard[1]).map(|n| Constraint::lt(&index, n));
        below.into_iter().chain(beyond).collect()
    }

    /// The same of the element itself, called `name`, and that it is in the box.
    fn bounds(&self, poly: &Polyhedral, name: &str) -> Vec<isl::Constraint> {
        let e = isl::Affine::name(name);
        let mut bounds = Vec::new();
        let last = self.extent.plus_constant(-1);
        if let (Some(lower), Some(last)) =
            (poly.affine(&self.lower, Side::Source), poly.affine(&last, Side::Source))
        {
            let offset = difference(&e, &lower);
            bounds.push(isl::Constraint::non_negative(difference(&last, &offset)));
            bounds.push(isl::Constraint::non_negative(offset));
        }
        if self.guard[0] {
            bounds.push(isl::Constraint::non_negative(e.clone()));
        }
        let extent = self.shape.as_ref().filter(|_| self.guard[1]);
        if let Some(extent) = extent.and_then(|n| poly.affine(n, Side::Source)) {
            bounds.push(isl::Constraint::non_negative(difference(&extent, &e).offset(-1)));
        }
        bounds
    }
}

/// Whether some iteration of the loops satisfies a constraint.
fn reachable(poly: &Polyhedral, around: &[InameId], outside: &Constraint) -> Result<bool, Refusal> {
    if let Some(decided) = attained::reachable(poly, around, outside) {
        return Ok(decided);
    }
    let Some(outside) = poly.constraint(outside, Side::Source) else { return Ok(true) };
    let (domain, _) = poly.domains(around, Side::Source);
    let all = cross(&poly.in_context(domain), &[vec![outside]]);
    let dims = poly.names(around, Side::Source);
    Ok(!isl::Set::from_disjuncts(&isl::SetSpace::new(&dims, &poly.params), &all)?.is_empty()?)
}

/// All of an axis.
fn whole(poly: &Polyhedral, var: VarId, axis: usize) -> Result<Span, Refusal> {
    let var = &poly.kernel.vars[var];
    let extent = CONSTANT_BOX.find(var.shape.get(axis).and_then(Affine::as_constant), || {
        format!(
            "data says which elements of `{}` are touched along axis {axis}, whose extent is no constant; fix the \
             parameters in it",
            var.name
        )
    })?;
    Ok(Span { lower: Affine::default(), extent })
}

fn nothing(poly: &Polyhedral, var: VarId, sites: &[&AccessSite]) -> String {
    let verb = if sites.iter().any(|s| s.writes()) { "touch" } else { "read" };
    let name = &poly.kernel.vars[var].name;
    format!("the loops that {verb} `{name}` are empty; nothing is copied")
}
