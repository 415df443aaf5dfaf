//! A box of an array that a temporary stands for, and the loops over its elements.

use crate::error::Cause;
use crate::flat::Sizes;
use crate::lookup;
use crate::proofs::attained;
use crate::proofs::footprint::{Span, certain_elements, element_names, span};
use purlin_ir::deps::AccessSite;
use purlin_ir::polyhedral::{Polyhedral, Side, cross, difference};
use purlin_ir::{Affine, AxisTag, Constraint, Domain, Expr, Iname, InameId, InsnId, Kernel, VarId};
use purlin_isl as isl;

/// The box of elements that some accesses touch in one iteration of the loops around.
#[derive(Debug)]
pub(crate) struct Tile {
    pub(crate) axes: Vec<Axis>,
}

/// An axis of the box.
#[derive(Debug)]
pub(crate) struct Axis {
    pub(crate) span: Span,
    /// Whether elements below and beyond the array must be left out.
    guard: [bool; 2],
    /// Elements of the array.
    shape: Affine,
    /// Whether the temporary has it.
    pub(crate) kept: bool,
}

/// Loops over the elements of a box, outer first, and the offset in the box along each axis.
#[derive(Default)]
pub(crate) struct Loops {
    pub(crate) inames: Vec<InameId>,
    pub(crate) offsets: Vec<Affine>,
}

impl Tile {
    /// The box around what affine accesses of `var` touch in one iteration of `around`.
    ///
    /// # Errors
    /// Loops that are empty, extents that are no constants, more than 2^31 elements; a failure of isl.
    pub(crate) fn around(
        poly: &Polyhedral,
        var: VarId,
        sites: &[&AccessSite],
        around: &[InameId],
    ) -> Result<Self, Cause> {
        let variable = &poly.kernel.vars[var];
        let mut axes = Vec::with_capacity(variable.shape.len());
        for (axis, shape) in variable.shape.iter().enumerate() {
            let Some(span) = span(poly, sites, axis, around.len())? else {
                let verb = if sites.iter().any(|s| s.writes()) { "touch" } else { "read" };
                return Err(Cause::Argument(format!(
                    "the loops that {verb} `{}` are empty; nothing is copied",
                    variable.name
                )));
            };
            let last = span.lower.plus_constant(span.extent - 1);
            let below = reachable(poly, around, &Constraint::lt(&span.lower, &Affine::default()))?;
            let beyond = reachable(poly, around, &Constraint::le(shape, &last))?;
            let guard = [below, beyond];
            let kept = span.extent > 1 || guard != [false; 2];
            axes.push(Axis { span, guard, shape: shape.clone(), kept });
        }
        let elements = axes.iter().try_fold(1_i64, |n, a| n.checked_mul(a.span.extent));
        match elements {
            Some(n) if n <= 1 << 31 => Ok(Self { axes }),
            _ => Err(Cause::Argument(
                "the box has more than 2^31 elements; prefetch in a loop further inside".into(),
            )),
        }
    }

    /// Whether the accesses surely touch every element of the box that is in the array.
    ///
    /// Formula: `{ (L, e) : e in the box and in the array }` is a subset of `{ (L, e) : e is surely touched }`.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn is_filled_by(
        &self,
        poly: &Polyhedral,
        sites: &[&AccessSite],
        around: &[InameId],
    ) -> Result<bool, Cause> {
        let names = element_names(self.axes.len());
        let mut inside = Vec::new();
        for (axis, name) in self.axes.iter().zip(&names) {
            let e = isl::Affine::name(name.clone());
            let affine = |a: &Affine| poly.affine(a, Side::Source);
            let (Some(lower), Some(extent)) = (affine(&axis.span.lower), affine(&axis.shape)) else {
                continue;
            };
            let offset = difference(&e, &lower);
            let last = isl::Affine::constant(axis.span.extent - 1);
            inside.push(isl::Constraint::non_negative(difference(&last, &offset)));
            inside.push(isl::Constraint::non_negative(offset));
            if axis.guard[0] {
                inside.push(isl::Constraint::non_negative(e.clone()));
            }
            if axis.guard[1] {
                inside.push(isl::Constraint::non_negative(difference(&extent, &e).offset(-1)));
            }
        }
        let (domain, _) = poly.domains(around, Side::Source);
        let mut dims = poly.names(around, Side::Source);
        dims.extend(names);
        let space = isl::SetSpace::new(&dims, &poly.params);
        let whole = isl::Set::from_disjuncts(&space, &cross(&poly.in_context(domain), &[inside]))?;
        Ok(whole.is_subset(&certain_elements(poly, sites, around, self.axes.len())?)?)
    }

    /// Shape of the temporary.
    pub(crate) fn shape(&self) -> Vec<Affine> {
        self.axes.iter().filter(|a| a.kept).map(|a| Affine::constant(a.span.extent)).collect()
    }

    /// Index in the temporary of an element of the array.
    pub(crate) fn index(&self, of_array: &[Expr]) -> Vec<Expr> {
        let shift = |(index, axis): (&Expr, &Axis)| {
            let shifted = index.as_affine().map(|i| Expr::from_affine(&i.minus(&axis.span.lower)));
            shifted.unwrap_or_else(|| index.clone() - Expr::from_affine(&axis.span.lower))
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
        self.axes.iter().zip(offsets).map(|(a, d)| Expr::from_affine(&a.span.lower.plus(d))).collect()
    }

    /// One loop for each axis that is kept, with the given names or `{stem}_0`, `{stem}_1`, …
    ///
    /// # Errors
    /// A number of names that does not fit, or a name that is taken.
    pub(crate) fn box_loops(
        &self,
        kernel: &mut Kernel,
        names: &[String],
        stem: &str,
    ) -> Result<Loops, Cause> {
        let kept = self.axes.iter().filter(|a| a.kept).count();
        if !names.is_empty() && names.len() != kept {
            return Err(Cause::Argument(format!(
                "the copy has {kept} loops, found {} names; give one for each axis of the box with more than one \
                 element",
                names.len()
            )));
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
            let mut bounds = within(&d, axis.span.extent);
            bounds.extend(axis.guards(&d));
            kernel.inames[iname].domain = Domain::conjunction(bounds);
            loops.inames.push(iname);
            loops.offsets.push(d);
        }
        Ok(loops)
    }

    /// Rounds of a work-group over the elements of the box in row-major order, by loops `{stem}_o`, `{stem}_l0`, …
    ///
    /// # Errors
    /// A name that is taken.
    pub(crate) fn flat_loops(
        &self,
        kernel: &mut Kernel,
        work_items: &[i64],
        stem: &str,
    ) -> Result<Loops, Cause> {
        let length: i64 = self.axes.iter().map(|a| a.span.extent).product();
        let group: i64 = work_items.iter().product();
        let rounds = (length - 1).div_euclid(group) + 1;
        let mut loops = Loops::default();
        let mut position = Affine::default();
        if rounds > 1 {
            let iname = new_iname(kernel, format!("{stem}_o"), AxisTag::Sequential)?;
            kernel.inames[iname].domain = Domain::conjunction(within(&Affine::iname(iname), rounds));
            position = Affine::iname(iname).times(group);
            loops.inames.push(iname);
        }
        let mut stride = group;
        let mut innermost = Vec::new();
        for (k, size) in (0_u8..3).zip(work_items).collect::<Vec<_>>().into_iter().rev() {
            stride /= size;
            let iname = new_iname(kernel, format!("{stem}_l{k}"), AxisTag::Local(k))?;
            innermost = within(&Affine::iname(iname), *size);
            kernel.inames[iname].domain = Domain::conjunction(innermost.clone());
            position = position.plus(&Affine::iname(iname).times(stride));
            loops.inames.push(iname);
        }
        if length % group != 0 {
            innermost.push(Constraint::lt(&position, &Affine::constant(length)));
        }
        let sizes = Sizes::of(kernel, &loops.inames);
        let mut size = length;
        for axis in &self.axes {
            let whole = size;
            size /= axis.span.extent;
            // the first axis needs no remainder: the position is below the length
            let offset = sizes.quotient(&position, size);
            let offset = if whole == length { offset } else { sizes.remainder(&offset, axis.span.extent) };
            innermost.extend(axis.guards(&offset));
            loops.offsets.push(offset);
        }
        if let Some(last) = loops.inames.last() {
            kernel.inames[*last].domain = Domain::conjunction(innermost);
        }
        Ok(loops)
    }
}

impl Axis {
    fn guards(&self, offset: &Affine) -> Vec<Constraint> {
        let index = self.span.lower.plus(offset);
        let below = self.guard[0].then(|| Constraint::le(&Affine::default(), &index));
        let beyond = self.guard[1].then(|| Constraint::lt(&index, &self.shape));
        below.into_iter().chain(beyond).collect()
    }
}

/// Whether some iteration of the loops satisfies a constraint.
fn reachable(poly: &Polyhedral, around: &[InameId], outside: &Constraint) -> Result<bool, Cause> {
    if let Some(decided) = attained::reachable(poly, around, outside) {
        return Ok(decided);
    }
    let Some(outside) = poly.constraint(outside, Side::Source) else { return Ok(true) };
    let (domain, _) = poly.domains(around, Side::Source);
    let all = cross(&poly.in_context(domain), &[vec![outside]]);
    let dims = poly.names(around, Side::Source);
    Ok(!isl::Set::from_disjuncts(&isl::SetSpace::new(&dims, &poly.params), &all)?.is_empty()?)
}

fn within(d: &Affine, extent: i64) -> Vec<Constraint> {
    vec![Constraint::le(&Affine::default(), d), Constraint::lt(d, &Affine::constant(extent))]
}

fn new_iname(kernel: &mut Kernel, name: String, tag: AxisTag) -> Result<InameId, Cause> {
    lookup::free(kernel, &name)?;
    Ok(kernel.inames.push(Iname { name, domain: Domain::universe(), tag }))
}

/// Checks the work-items that are to share a flat loop.
///
/// # Errors
/// [`Cause::Argument`] with what a group has.
pub(crate) fn check_work_items(work_items: &[i64]) -> Result<(), Cause> {
    if work_items.len() <= 3 && work_items.iter().all(|n| (1..=1 << 20).contains(n)) {
        return Ok(());
    }
    Err(Cause::Argument(
        "a group has one to three sizes, each from 1 to 2^20; give the work-items along l.0, l.1, l.2".into(),
    ))
}

/// The first rule an instruction uses whose body, expanded, reads the variable.
pub(crate) fn rule_that_reads(kernel: &Kernel, insn: InsnId, var: VarId) -> Option<String> {
    let insn = &kernel.insns[insn];
    let mut found = None;
    for e in insn.lhs.index.iter().chain([&insn.rhs]).chain(&insn.predicate) {
        e.for_each(&mut |e| {
            let Expr::Rule(rule, _) = e else { return };
            kernel.expand_rules(&kernel.rules[*rule].body).for_each(&mut |inner| {
                if matches!(inner, Expr::Load(a) if a.var == var) {
                    found.get_or_insert_with(|| kernel.rules[*rule].name.clone());
                }
            });
        });
    }
    found
}
