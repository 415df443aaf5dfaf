//! Where the indices of an axis start.

use crate::polyhedral::is_symbol;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::Constraint;
use kingpost_ir::ids::{InameId, VarId};
use kingpost_ir::kernel::{Kernel, VarKind};

/// The lowest constant where an axis starts: its indices from there up to the loop's values do nothing.
const LOWEST: i64 = -4096;

/// The value of an iname at index 0 of its axis: the lower bound of a range, where it is the same in a
/// whole launch. Otherwise 0 (the loops inside a block that a split makes start there), or a lower bound
/// where the values may be negative: indices are not. Code generation counts the same way.
pub fn index_origin(kernel: &Kernel, iname: InameId) -> Affine {
    let domain = &kernel.inames[iname].domain;
    let is_uniform = |e: &Affine| {
        !e.any_symbol(&mut |atom| match atom {
            Atom::Iname(l) => !kernel.is_of_host(*l),
            Atom::Var(v) => kernel.vars[*v].kind != VarKind::Param,
            Atom::Floor(..) => false,
        })
    };
    if let Some(range) = domain.as_guarded_range(iname).filter(|range| is_uniform(&range.lo)) {
        return range.lo;
    }
    match extreme_of(kernel, iname, false) {
        Some(0..) => Affine::default(),
        Some(least @ LOWEST..) => Affine::constant(least),
        Some(_) | None => {
            let lower = |c: &Constraint| {
                let bound = c.expr().coefficient(&Atom::Iname(iname)) == 1;
                let bound = bound.then(|| Affine::iname(iname).minus(c.expr()));
                bound.filter(|e| is_uniform(e) && !e.mentions(iname))
            };
            domain.as_conjunction().and_then(|all| all.iter().find_map(lower)).unwrap_or_default() // default: 0
        }
    }
}

/// A constant that no value of a loop is above, or below.
fn extreme_of(kernel: &Kernel, iname: InameId, upper: bool) -> Option<i64> {
    let sign = if upper { -1 } else { 1 };
    let in_conjunction = |constraints: &Vec<Constraint>| {
        // a*i + rest >= 0: i >= -floor(rest/a), or i <= floor(rest/-a)
        let bound = |(e, flip): (&Affine, i64)| {
            let e = e.times(flip);
            let a = e.coefficient(&Atom::Iname(iname));
            let rest = e.minus(&Affine::iname(iname).times(a));
            (a * sign > 0 && !rest.mentions(iname)).then_some(())?;
            Some(-sign * extreme(kernel, &rest, true)?.div_euclid(a.abs()))
        };
        let both = |c: &Constraint| matches!(c, Constraint::Zero(_));
        let all = constraints
            .iter()
            .flat_map(|c| [Some((c.expr(), 1)), both(c).then_some((c.expr(), -1))].into_iter().flatten());
        let bounds = all.filter_map(bound);
        if upper { bounds.min() } else { bounds.max() }
    };
    let each = kernel.inames[iname].domain.disjuncts().iter().map(in_conjunction);
    let each = each.collect::<Option<Vec<_>>>()?.into_iter();
    if upper { each.max() } else { each.min() }
}

/// A constant that no value of an expression is above, or below.
fn extreme(kernel: &Kernel, e: &Affine, upper: bool) -> Option<i64> {
    e.terms().iter().try_fold(e.constant_term(), |sum, (atom, c)| {
        let upper = upper == (*c > 0);
        let value = match atom {
            Atom::Var(v) => extreme_of_symbol(kernel, *v, upper)?,
            Atom::Iname(l) => extreme_of(kernel, *l, upper)?,
            // floor is monotone
            Atom::Floor(e, d) => extreme(kernel, e, upper)?.div_euclid(*d),
        };
        sum.checked_add(c.checked_mul(value)?)
    })
}

/// What the assumptions on a symbol alone say.
fn extreme_of_symbol(kernel: &Kernel, var: VarId, upper: bool) -> Option<i64> {
    let atom = Atom::Var(var);
    let bound = |c: &Constraint| {
        let (a, rest) = (c.expr().coefficient(&atom), c.expr().constant_term());
        let alone = c.expr().terms().len() == 1 && is_symbol(kernel, var);
        let sign = if upper { -1 } else { 1 };
        let towards = a * sign > 0 || a != 0 && matches!(c, Constraint::Zero(_));
        (alone && towards).then(|| -sign * (rest * (a * sign).signum()).div_euclid(a.abs()))
    };
    let known = kernel.known_of_parameters();
    let bounds = known.iter().filter_map(bound);
    if upper { bounds.min() } else { bounds.max() }
}
