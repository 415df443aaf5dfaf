//! What is known of the number of iterations of a loop, for all parameters.

use crate::obligation::Obligation;
use crate::proofs::bounds::CONSTANT_BOUNDS;
use crate::proofs::extent::with_outer_inames;
use crate::refusal::Refusal;
use crate::tree::{body_of, insns_of};
use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::{Polyhedral, Side, cross, smallest_point};
use kingpost_ir::{Affine, Constraint, GuardedRange, InameId, VarKind};
use kingpost_isl as isl;

/// Whether a loop has an iteration wherever it is entered.
///
/// Formula: with `o` the loops around, `{ o } <= { o : exists i in domain(iname) }`.
///
/// # Errors
/// A failure of isl.
pub fn never_empty(analysis: &Analysis, iname: InameId) -> Result<bool, Refusal> {
    let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
    let inside = insns_of(body_of(kernel, iname)?);
    let around = inside.first().map_or(&[][..], |insn| poly.loops(*insn));
    let around: Vec<_> = around.iter().copied().take_while(|l| *l != iname).collect();
    have_values(poly, &around, &[iname])
}

/// Whether some inames together have a value at every point of the loops and reductions around.
///
/// Formula: with `o` those around, `{ o } <= { o : exists i in domain(inames) }`.
///
/// # Errors
/// A failure of isl.
pub fn have_values(poly: &Polyhedral, around: &[InameId], inames: &[InameId]) -> Result<bool, Refusal> {
    let (inner, exact) = poly.domains(inames, Side::Source);
    if !exact {
        return Ok(false);
    }
    let outer = poly.in_context(poly.domains(around, Side::Source).0);
    let dims = poly.names(around, Side::Source);
    let reached = isl::Set::from_disjuncts(&isl::SetSpace::new(&dims, &poly.params), &outer)?;
    let names = poly.names(inames, Side::Source);
    let all = [dims, names.clone()].concat();
    let points = isl::Set::from_disjuncts(&isl::SetSpace::new(&all, &poly.params), &cross(&outer, &inner))?;
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    Ok(reached.is_subset(&points.project_out(&names)?)?)
}

/// The values of a loop, which say whether it is empty, unless it never is.
///
/// # Errors
/// `condition` if the loop may be empty and is no range, or a failure of isl.
pub fn runs_if(
    analysis: &Analysis,
    iname: InameId,
    condition: Obligation,
) -> Result<Option<GuardedRange>, Refusal> {
    if never_empty(analysis, iname)? {
        return Ok(None);
    }
    let kernel = analysis.kernel();
    let range = kernel.inames[iname].domain.as_guarded_range(iname);
    condition.require(range.is_some(), || {
        format!(
            "the loop `{}` may be empty, and its bounds are no simple condition; assume that it is not",
            kernel.inames[iname].name
        )
    })?;
    Ok(range)
}

/// Whether a condition holds in every iteration of the loops.
pub fn always(poly: &Polyhedral, loops: &[InameId], condition: &Constraint) -> Result<bool, Refusal> {
    let Some(condition) = poly.constraint(condition, Side::Source) else { return Ok(false) };
    let space = isl::SetSpace::new(&poly.names(loops, Side::Source), &poly.params);
    let all = poly.in_context(poly.domains(loops, Side::Source).0);
    let all = isl::Set::from_disjuncts(&space, &all)?;
    Ok(all.is_subset(&isl::Set::from_constraints(&space, &[condition])?)?)
}

/// The range `lo..hi` of a loop, in the context of the loops around it, of its guard and of what is
/// assumed.
pub struct RangeOf<'a, 'k> {
    /// What is known of the kernel.
    pub analysis: &'a Analysis<'k>,
    /// The loop.
    pub iname: InameId,
    /// Its range.
    pub range: GuardedRange,
}

impl RangeOf<'_, '_> {
    /// Loops and parameters at which `lo..hi` is not empty and has a length that `factor` does not
    /// divide, as `(name, value)`, and that length.
    ///
    /// Formula: the smallest point of
    /// `{ (params, outer) : guard, lo < hi, (hi - lo) mod factor >= 1 }`.
    ///
    /// # Errors
    /// [`Refusal::Argument`] if the bounds are read from memory, or a failure of isl.
    pub fn indivisible(&self, factor: i64) -> Result<Option<(isl::Point, i64)>, Refusal> {
        let length = self.range.length();
        if length.as_constant().is_some_and(|n| n <= 0 || n % factor == 0) {
            return Ok(None);
        }
        let rest = length.modulo(factor);
        let one = Affine::constant(1);
        let point =
            self.point(&[Constraint::lt(&self.range.lo, &self.range.hi), Constraint::le(&one, &rest)])?;
        let Some(point) = point else { return Ok(None) };
        let poly = self.analysis.polyhedral();
        let value = |name: &str| point.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        let found = poly.affine(&length, Side::Source).and_then(|e| e.evaluate(&value));
        // parameters that the length does not depend on would only distract
        let mentioned = poly.affine(&length, Side::Source);
        let matters = |name: &str| mentioned.as_ref().is_some_and(|e| e.mentions(name));
        let point: isl::Point = point.into_iter().filter(|(name, _)| matters(name)).collect();
        Ok(found.map(|n| (point, n)))
    }

    /// Whether `hi < lo` may happen: then `hi - lo` is no number of iterations.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn may_run_backward(&self) -> Result<bool, Refusal> {
        let backward = Constraint::lt(&self.range.hi, &self.range.lo);
        if let Some(holds) = backward.as_constant() {
            return Ok(holds);
        }
        Ok(self.analysis.polyhedral().constraint(&backward, Side::Source).is_none()
            || self.point(&[backward])?.is_some())
    }

    /// The smallest point of the parameters and of the loops that the bounds mention where the
    /// guard, as far as it is known, and all of this holds.
    fn point(&self, conditions: &[Constraint]) -> Result<Option<isl::Point>, Refusal> {
        let (kernel, poly) = (self.analysis.kernel(), self.analysis.polyhedral());
        let mut outer = with_outer_inames(kernel, &[self.iname]);
        outer.retain(|l| *l != self.iname);
        let mut all = Vec::with_capacity(conditions.len());
        for c in conditions {
            all.push(CONSTANT_BOUNDS.known(poly.constraint(c, Side::Source), || {
                let domain = kernel.show_domain(self.iname, &kernel.inames[self.iname].domain);
                format!(
                    "the bounds of `{domain}` are read from memory, so that nothing is known of its length; split \
                     with the tail strategy guard"
                )
            })?);
        }
        all.extend(self.range.guard.iter().filter_map(|c| poly.constraint(c, Side::Source)));
        // a launch with an argument of negative extent is refused
        let arguments = kernel.vars.values().filter(|v| matches!(v.kind, VarKind::Argument(_)));
        let extents = arguments.flat_map(|v| &v.shape).filter_map(|e| poly.affine(e, Side::Source));
        all.extend(extents.map(isl::Constraint::non_negative));
        let (domain, _) = poly.domains(&outer, Side::Source);
        let space = isl::SetSpace::new(&poly.names(&outer, Side::Source), &poly.params);
        let set = isl::Set::from_disjuncts(&space, &cross(&poly.in_context(domain), &[all]))?;
        Ok(smallest_point(kernel, &set)?)
    }
}
