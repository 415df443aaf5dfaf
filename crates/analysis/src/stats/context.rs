//! The points for which something is evaluated: loops, reduction loops, conditions.

use super::count::count;
use super::counting::{Context, Counting};
use super::error::StatsError;
use super::formula::{Bound, Formula, Region};
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::{Constraint, Domain};
use kingpost_ir::ids::{Id, InameId, VarId};
use kingpost_ir::kernel::Kernel;

/// A kernel at fixed parameters, by variable.
pub(super) struct Setting<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) params: Vec<Option<i64>>,
}

impl Setting<'_> {
    /// The value of a parameter.
    pub(super) fn fixed(&self, atom: &Atom) -> Option<Affine> {
        match atom {
            Atom::Var(v) => self.params[v.index()].map(Affine::constant),
            Atom::Iname(_) | Atom::Floor(..) => None,
        }
    }

    /// The domain with parameters as numbers.
    fn domain(&self, iname: InameId) -> Result<Domain, StatsError> {
        let this = &self.kernel.inames[iname];
        let domain = this.domain.substitute(&|atom| self.fixed(atom));
        let mut unknown = None;
        domain.for_each_symbol(&mut |atom| {
            if let Atom::Var(v) = atom {
                unknown = Some(self.kernel.vars[*v].name.clone());
            }
        });
        // arithmetic on affine values saturates
        let saturated = |c: &Constraint| c.expr().constant_term().unsigned_abs() >= 1 << 62;
        if domain.disjuncts().iter().flatten().any(saturated) {
            return Err(StatsError::Overflow);
        }
        match unknown {
            Some(var) => Err(StatsError::DataDependent { iname: this.name.clone(), var }),
            None => Ok(domain),
        }
    }

    fn context(&self, region: Region, formula: Formula, exact: bool) -> Result<Context, StatsError> {
        let name = |(dim, ..): &(InameId, i128, i128)| format!("`{}`", self.kernel.inames[*dim].name);
        let names: Vec<_> = region.bounds().iter().map(name).collect();
        let points = match region.is_empty() {
            true => 0,
            false => count(&formula, &region, &names.join(", "))?,
        };
        let count = u64::try_from(points).map_err(|_| StatsError::Overflow)?;
        Ok(Context { region, formula, exact, count })
    }

    /// Bounds of an iname over all values of the loops around it.
    fn hull(&self, iname: InameId, domain: &Domain, region: &Region) -> Result<(i128, i128), StatsError> {
        let mut hull = (0, -1);
        if region.is_empty() {
            return Ok(hull);
        }
        for disjunct in domain.disjuncts() {
            let (lo, hi) = bounds(disjunct, iname, region);
            let missing = |missing| {
                let iname = self.kernel.inames[iname].name.clone();
                StatsError::Unbounded { iname, missing }
            };
            let (lo, hi) = (lo.ok_or_else(|| missing("lower"))?, hi.ok_or_else(|| missing("upper"))?);
            if lo <= hi {
                hull = if hull.0 > hull.1 { (lo, hi) } else { (hull.0.min(lo), hull.1.max(hi)) };
            }
        }
        Ok(hull)
    }
}

impl Counting for Setting<'_> {
    type Count = u64;

    fn kernel(&self) -> &Kernel {
        self.kernel
    }

    fn is_symbol(&self, _: VarId) -> bool {
        false
    }

    fn enter(&self, outer: &Context, inames: &[InameId]) -> Result<Context, StatsError> {
        let mut region = outer.region.clone();
        let mut parts = vec![outer.formula.clone()];
        for iname in inames {
            let domain = self.domain(*iname)?;
            let (lo, hi) = self.hull(*iname, &domain, &region)?;
            region.push(*iname, lo, hi);
            parts.push(Formula::of_domain(&domain));
        }
        self.context(region, Formula::all(parts), outer.exact)
    }

    fn restrict(&self, outer: &Context, condition: &Bound) -> Result<Context, StatsError> {
        let (set, exact) = condition;
        let exact = *exact && outer.exact;
        if *set == Formula::TRUE {
            return Ok(Context { exact, ..outer.clone() });
        }
        let formula = Formula::all([outer.formula.clone(), set.clone()]);
        self.context(outer.region.clone(), formula, exact)
    }
}

/// Bounds that a conjunction gives an iname.
fn bounds(disjunct: &[Constraint], iname: InameId, region: &Region) -> (Option<i128>, Option<i128>) {
    let (mut lo, mut hi) = (None, None);
    for c in disjunct {
        let (least, most) = region.implied(c, iname);
        lo = lo.max(least);
        hi = match (hi, most) {
            (Some(a), Some(b)) => Some(std::cmp::min::<i128>(a, b)),
            (a, b) => a.or(b),
        };
    }
    (lo, hi)
}
