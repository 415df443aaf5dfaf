//! Bounds of one iname from its domain: what limits it, what guards its loop, what guards its body.

use kingpost_ir::{Affine, Atom, Constraint, Domain, InameId, VarId};

/// One disjunct of a domain, seen from its iname.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    /// The iname is at least each of these.
    pub(crate) lower: Vec<Affine>,
    /// The iname is below each of these.
    pub(crate) upper: Vec<Affine>,
    /// The iname has just this value.
    pub(crate) exact: Option<Affine>,
    /// The iname is `residue` modulo `step`.
    pub(crate) stride: Option<(i64, i64)>,
    /// Constraints without the iname.
    pub(crate) outer: Vec<Constraint>,
    /// Constraints with the iname that bounds cannot say.
    pub(crate) inner: Vec<Constraint>,
    /// All constraints.
    pub(crate) all: Vec<Constraint>,
}

/// The bounds of each disjunct, after `resolve` of its constraints.
pub(crate) fn of_domain(
    domain: &Domain,
    iname: InameId,
    resolve: &dyn Fn(&Constraint) -> Constraint,
) -> Vec<Bounds> {
    let mut result = Vec::new();
    for disjunct in domain.disjuncts() {
        let mut bounds = Bounds::default();
        let mut possible = true;
        for c in disjunct {
            let c = resolve(c);
            match c.as_constant() {
                Some(true) => {}
                Some(false) => possible = false,
                None => bounds.add(c, iname),
            }
        }
        if possible {
            result.push(bounds);
        }
    }
    result
}

impl Bounds {
    fn add(&mut self, c: Constraint, iname: InameId) {
        self.all.push(c.clone());
        let e = c.expr();
        let a = e.coefficient(&Atom::Iname(iname));
        let rest = e.minus(&Affine::iname(iname).times(a));
        if rest.mentions(iname) {
            match stride(&c, iname).filter(|_| self.stride.is_none()) {
                Some(stride) => self.stride = Some(stride),
                None => self.inner.push(c),
            }
            return;
        }
        match (&c, a) {
            (_, 0) => self.outer.push(c),
            (Constraint::Zero(_), 1 | -1) if self.exact.is_none() => self.exact = Some(rest.times(-a)),
            (Constraint::Zero(_), _) => {
                self.add_inequality(a, &rest);
                self.add_inequality(-a, &rest.times(-1));
                self.inner.push(c);
            }
            (Constraint::NonNegative(_), _) => self.add_inequality(a, &rest),
        }
    }

    /// `a*i + rest >= 0`.
    fn add_inequality(&mut self, a: i64, rest: &Affine) {
        let (list, bound) = if a > 0 {
            // i >= ceil(-rest/a) = floor((-rest + a - 1)/a)
            (&mut self.lower, rest.times(-1).plus_constant(a - 1).floor_div(a))
        } else {
            // i <= floor(rest/-a)
            (&mut self.upper, rest.floor_div(-a).plus_constant(1))
        };
        if !list.contains(&bound) {
            list.push(bound);
        }
    }
}

/// `Some((step, residue))` if the constraint says `iname = residue (mod step)` with constants.
fn stride(c: &Constraint, iname: InameId) -> Option<(i64, i64)> {
    let Constraint::Zero(e) = c else { return None };
    let ([(Atom::Iname(i), a), (Atom::Floor(n, d), b)] | [(Atom::Floor(n, d), b), (Atom::Iname(i), a)]) =
        e.terms()
    else {
        return None;
    };
    let k = n.minus(&Affine::iname(iname)).as_constant()?;
    // i - d*floor((i + k)/d) + e0 = 0, that is (i + k) mod d = k - e0
    if *i != iname || a.abs() != 1 || *b != -a * d {
        return None;
    }
    let e0 = e.constant_term() * a;
    (0..*d).contains(&(k - e0)).then(|| (*d, (-e0).rem_euclid(*d)))
}

/// The bounds, if all of them are constants.
pub(crate) fn constants(lists: &[Vec<Affine>]) -> Option<Vec<Vec<i64>>> {
    lists.iter().map(|l| l.iter().map(Affine::as_constant).collect()).collect()
}

/// Whether an expression mentions one of these variables.
pub(crate) fn mentions_any(e: &Affine, vars: &[VarId]) -> bool {
    e.any_symbol(&mut |a| matches!(a, Atom::Var(v) if vars.contains(v)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kingpost_ir::Id;

    #[test]
    fn strides_are_recognised() {
        let id = InameId::from_index(0);
        let i = Affine::iname(id);
        for d in 2..5 {
            for r in 0..d {
                let c = Constraint::equal(&i.modulo(d), &Affine::constant(r));
                let bounds = of_domain(&Domain::conjunction([c]), id, &Constraint::clone);
                assert_eq!(bounds[0].stride, Some((d, r)), "i mod {d} = {r}");
            }
        }
    }

    #[test]
    fn divided_bounds_round_inwards() {
        let id = InameId::from_index(0);
        let i = Affine::iname(id);
        // 1 <= 3 i <= 10
        let domain = Domain::conjunction([
            Constraint::le(&Affine::constant(1), &i.times(3)),
            Constraint::le(&i.times(3), &Affine::constant(10)),
        ]);
        let bounds = of_domain(&domain, id, &Constraint::clone);
        assert_eq!(bounds[0].lower, [Affine::constant(1)]);
        assert_eq!(bounds[0].upper, [Affine::constant(4)]);
    }
}
