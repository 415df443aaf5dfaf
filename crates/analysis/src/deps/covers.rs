//! Whether a write has defined what an access touches, decided without isl in the common cases.
//!
//! A write such as `t[4*round + item] = ..` sweeps the axes of a temporary by loops of its own:
//! along each axis one loop, or two that are the digits of the index. The instance that wrote the
//! element is then known.

use crate::deps::access::AccessSite;
use crate::deps::agree::bounds;
use crate::polyhedral::Polyhedral;
use crate::polyhedral::bounds_of;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::Constraint;
use kingpost_ir::ids::InameId;

/// The values of the write's own loops at the instance that wrote the element.
struct Instance<'a, 'k> {
    poly: &'a Polyhedral<'k>,
    values: Vec<Value>,
}

/// The value of a loop of the write in terms of the loops around the access.
struct Value {
    iname: InameId,
    value: Affine,
    /// Smallest and largest value, as far as constant bounds tell.
    range: Option<(i128, i128)>,
}

/// Whether every element that `site` touches is written by `write` in the same iteration of the
/// loops `common`.
///
/// Formula: along an axis both indices are one function of the common loops, or `w = s` or
/// `k*w + v = s` with `0 <= v < k`, so that `w` is `s` or `floor(s/k)`, and `v` is `s mod k`. That
/// instance of the write exists if the constraints on its loops, with these values put in, are
/// among those on the loops of the access, or follow from constant bounds. A loop of one iteration
/// is its value.
pub fn covers_box(poly: &Polyhedral, write: &AccessSite, site: &AccessSite, common: &[InameId]) -> bool {
    let own = &poly.loops(write.insn)[common.len()..];
    let mut instance = Instance { poly, values: Vec::new() };
    let mut equal = Vec::with_capacity(write.index.len());
    for (w, s) in write.index.iter().zip(site.index.iter()) {
        let (Some(w), Some(s)) = (w, s) else { return false };
        equal.push((poly.settled(w), poly.settled(s)));
    }
    join_digits(poly, &mut equal);
    for (w, s) in equal {
        let same = w == s && !own.iter().any(|l| w.mentions(*l));
        if !same && instance.solve(own, &w, &s).is_none() {
            return false;
        }
    }
    for l in own {
        if instance.value(*l).is_none() {
            // it sweeps no axis: any value will do
            let (Some(lo), Some(hi)) = bounds_of(poly, *l, &[(Atom::Iname(*l), 1)]) else { return false };
            let range = (lo <= hi).then_some((lo.into(), lo.into()));
            instance.values.push(Value { iname: *l, value: Affine::constant(lo), range });
        }
    }
    let around = || poly.loops(site.insn).iter().chain(&site.reduction);
    let known = |c: &Constraint| around().any(|l| poly.settled_domain(*l).contains(c));
    own.iter().all(|l| {
        let domain = poly.kernel.inames[*l].domain.as_conjunction();
        domain.is_some_and(|all| all.iter().all(|c| instance.holds(c, &known)))
    })
}

/// Makes one equation of two that say what quotient and remainder of a flat position are.
///
/// Formula: from `floor(p/k) = x` and `p mod k = y` follows `p = k*x + y`, and the other way round
/// if `0 <= y < k`.
fn join_digits(poly: &Polyhedral, equal: &mut Vec<(Affine, Affine)>) {
    let digits = |(high, x): &(Affine, Affine), (low, y): &(Affine, Affine)| {
        let quotients = low.terms().iter().filter(|(atom, c)| matches!(atom, Atom::Floor(..)) && *c < -1);
        let k = quotients.map(|(_, c)| c.saturating_neg()).next()?;
        let position = high.times(k).plus(low);
        let (lo, hi) = range_of(poly, y)?;
        let fits = lo >= 0 && hi < i128::from(k) && position.in_bounds();
        let split = position.floor_div(k) == *high && position.modulo(k) == *low;
        (fits && split).then(|| (position, x.times(k).plus(y)))
    };
    for a in (0..equal.len()).rev() {
        let found = (0..equal.len()).find_map(|b| Some((b, digits(&equal[a], &equal[b])?)));
        if let Some((b, position)) = found {
            equal[a] = position;
            equal.remove(b);
            return;
        }
    }
}

/// Smallest and largest value, as far as constant bounds tell.
fn range_of(poly: &Polyhedral, e: &Affine) -> Option<(i128, i128)> {
    let (lo, hi) = bounds(poly, &e.terms().to_vec())?;
    let constant = i128::from(e.constant_term());
    Some((lo + constant, hi + constant))
}

/// An expression with the values of quotients put in that constant bounds tell.
fn without_known_quotients(poly: &Polyhedral, e: &Affine) -> Affine {
    let value = |atom: &Atom| {
        let Atom::Floor(n, d) = atom else { return Affine::from(atom) };
        let ends = range_of(poly, n).map(|(lo, hi)| (lo.div_euclid((*d).into()), hi.div_euclid((*d).into())));
        let only = ends.filter(|(lo, hi)| lo == hi).and_then(|(lo, _)| i64::try_from(lo).ok());
        only.map_or_else(|| Affine::from(atom), Affine::constant)
    };
    let terms = e.terms().iter().map(|(atom, c)| value(atom).times(*c));
    terms.fold(Affine::constant(e.constant_term()), |sum, term| sum.plus(&term))
}

impl Instance<'_, '_> {
    fn value(&self, l: InameId) -> Option<&Value> {
        self.values.iter().find(|v| v.iname == l)
    }

    /// Finds the values of the loops in the index `w` that give `s`.
    fn solve(&mut self, own: &[InameId], w: &Affine, s: &Affine) -> Option<()> {
        let s = s.plus_constant(w.constant_term().checked_neg()?);
        let range = range_of(self.poly, &s);
        let own = |atom: &Atom| match atom {
            Atom::Iname(i) if own.contains(i) && self.value(*i).is_none() => Some(*i),
            Atom::Iname(_) | Atom::Var(_) | Atom::Floor(..) => None,
        };
        match w.terms() {
            [(only, 1)] => {
                let only = own(only)?;
                self.values.push(Value { iname: only, value: s, range });
            }
            [(a, c), (b, d)] => {
                let (high, k, low) = if *d == 1 { (a, *c, b) } else { (b, *d, a) };
                if k < 2 || (*c != 1 && *d != 1) {
                    return None;
                }
                let (high, low) = (own(high)?, own(low)?);
                let quotient = |x: i128| x.div_euclid(k.into());
                let range = range.map(|(lo, hi)| (quotient(lo), quotient(hi)));
                let digit = Some((0, i128::from(k) - 1));
                self.values.push(Value { iname: high, value: s.floor_div(k), range });
                self.values.push(Value { iname: low, value: s.modulo(k), range: digit });
            }
            _ => return None,
        }
        Some(())
    }

    /// Whether a constraint on the write's loops holds at the instance, wherever the access runs,
    /// where `known` accepts the constraints on its loops.
    fn holds(&self, c: &Constraint, known: &dyn Fn(&Constraint) -> bool) -> bool {
        if let Constraint::NonNegative(e) = c
            && self.least(e).is_some_and(|least| least >= 0)
        {
            return true;
        }
        let put_in = |atom: &Atom| match atom {
            Atom::Iname(i) => self.value(*i).map(|v| v.value.clone()),
            Atom::Var(_) | Atom::Floor(..) => None,
        };
        let c = match self.poly.settled_constraint(&c.substitute(&put_in)) {
            Constraint::Zero(e) => Constraint::Zero(without_known_quotients(self.poly, &e)),
            Constraint::NonNegative(e) => Constraint::NonNegative(without_known_quotients(self.poly, &e)),
        };
        let c = c.normalised();
        let by_bounds = || match &c {
            Constraint::NonNegative(e) => range_of(self.poly, e).is_some_and(|(lo, _)| lo >= 0),
            Constraint::Zero(_) => false,
        };
        c.as_constant().unwrap_or_else(|| by_bounds() || known(&c))
    }

    /// A lower bound of an expression at the instance.
    fn least(&self, e: &Affine) -> Option<i128> {
        let mut least = i128::from(e.constant_term());
        for (atom, c) in e.terms() {
            let Atom::Iname(i) = atom else { return None };
            let (lo, hi) = match self.value(*i) {
                Some(known) => known.range?,
                None => match bounds_of(self.poly, *i, &[(atom.clone(), 1)]) {
                    (Some(lo), Some(hi)) => (lo.into(), hi.into()),
                    _ => return None,
                },
            };
            least += i128::from(*c) * if *c < 0 { hi } else { lo };
        }
        Some(least)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::deps::access_sites;
    use kingpost_ir::ids::Id;

    /// Whether the write of `t` covers its read, both below `for o in 0..n`.
    fn covered(loops: &str, written: &str, read_loops: &str, read: &str) -> bool {
        let nest = |loops: &str, statement: &str| {
            let depth = loops.lines().count() + 1;
            let lines = loops.lines().enumerate().map(|(k, l)| format!("{:1$}{l}\n", "", 2 * (k + 1)));
            lines.collect::<String>() + &format!("{:1$}{statement}\n", "", 2 * depth)
        };
        let shape = vec!["40"; written.split(", ").count()].join(", ");
        let text = format!(
            "kernel k\nparam n: i32\narg y: f64[n] out\ntemp t: f64[{shape}] private\n\nfor o in 0..n\n{}{}",
            nest(loops, &format!("s: t[{written}] = 1.0")),
            nest(read_loops, &format!("r: y[o] = t[{read}]"))
        );
        let kernel = kingpost_ir::text::parse(&text).unwrap();
        let poly = Polyhedral::new(&kernel);
        let sites = &access_sites(&poly)[kernel.var("t").unwrap().index()];
        covers_box(&poly, &sites[0], &sites[1], poly.common_loops(sites[0].insn, sites[1].insn))
    }

    #[test]
    fn a_loop_covers_a_loop_inside_its_bounds() {
        assert!(covered("for i in 0..8", "i", "for j in 0..8", "j"));
        assert!(covered("for i in 0..8", "i", "for j in 2..5", "j"));
        assert!(covered("for i in 0..8", "i + 2", "for j in 3..9", "j + 1"));
        assert!(covered("for i in 0..8", "i", "for j in 0..4", "2*j + 1"));
        assert!(!covered("for i in 0..8", "i", "for j in 0..9", "j"));
        assert!(!covered("for i in 0..8", "i", "for j in 0..8", "j + 1"));
        assert!(!covered("for i in 0..8", "2*i", "for j in 0..8", "j"));
        let gap = "for i where (i >= 0 and i < 3) or (i >= 4 and i < 8)";
        assert!(!covered(gap, "i", "for j in 0..8", "j"));
    }

    #[test]
    fn loops_with_the_same_bounds_cover_each_other() {
        assert!(covered("for i in 0..min(8, n - 8*o)", "i", "for j in 0..min(8, n - 8*o)", "j"));
        assert!(covered("for i in 0..min(8, n - 8*o)", "i", "for j in 0..min(4, n - 8*o)", "j"));
        assert!(!covered("for i in 0..min(8, n - 8*o)", "i", "for j in 0..8", "j"));
        assert!(!covered("for i in 0..min(8, n - 8*o - 1)", "i", "for j in 0..min(8, n - 8*o)", "j"));
    }

    #[test]
    fn loops_of_one_iteration_are_their_value() {
        assert!(covered("for i in 0..1\nfor k in 0..8", "8*i + k", "for j in 0..8", "j"));
        assert!(covered("for i in 0..8", "i", "for k in 2..3\nfor j in 0..4", "j + 2*k"));
        assert!(!covered("for i in 0..8", "i", "for k in 2..4\nfor j in 0..4", "j + 2*k"));
        let rest = "for i in 0..1\nfor k in 0..min(8, n - 8*o - i)";
        assert!(covered(rest, "i + k", "for j in 0..min(8, n - 8*o)", "j"));
        assert!(!covered(&rest.replace("0..1", "1..2"), "k", "for j in 0..min(8, n - 8*o)", "j"));
    }

    #[test]
    fn an_axis_of_common_loops_has_one_element() {
        assert!(covered(
            "for i in 0..8",
            "3 + floor_div(o,64), i",
            "for j in 0..8",
            "3 + floor_div(o,64), j"
        ));
        assert!(!covered(
            "for i in 0..8",
            "o - 64*floor_div(o,64), i",
            "for j in 0..8",
            "floor_div(o,64), j"
        ));
        assert!(!covered("for i in 0..8", "i, i", "for j in 0..8", "o - 8*floor_div(o,8), j"));
    }

    #[test]
    fn flat_positions_cover_a_box() {
        let tile = "for i in 0..2\nfor k in 0..min(32, 40 - 32*i)";
        let position = "32*i + k";
        let index = |k: u32| format!("floor_div({position},{k}), ({position}) mod {k}");
        assert!(covered(tile, &index(7), "for j in 0..5\nfor l in 0..7", "j, l"));
        assert!(!covered(tile, &index(7), "for j in 0..6\nfor l in 0..7", "j, l"));
        assert!(covered(tile, &index(8), "for j in 0..5\nfor l in 0..8", "j, l"));
        assert!(covered(tile, &index(8), "for a in 0..2\nfor b in 0..2\nfor j in 1..8", "2*a + b, j"));
        assert!(!covered(tile, &index(8), "for j in 0..6\nfor l in 0..8", "j, l"));
        assert!(!covered(tile, &index(8), "for j in 0..4\nfor l in 0..9", "j, l"));
        assert!(!covered(tile, &index(8), "for j in 0..5\nfor l in 0..8", "l, j"));
        let cut = "for p where p >= 0 and p < 40 and 8*floor_div(p,8) - p + n - 8*o > 0";
        let cut_index = "floor_div(p,8), p mod 8";
        assert!(covered(cut, cut_index, "for i in 0..5\nfor j in 0..min(8, n - 8*o)", "i, j"));
        assert!(!covered(cut, cut_index, "for i in 0..5\nfor j in 0..min(8, n - 7*o)", "i, j"));
    }

    #[test]
    fn two_digits_cover_a_loop() {
        let digits = "for i in 0..3\n  for k in 0..min(4, 11 - 4*i)";
        let flat = |loops: &str| loops.replace("\n  ", "\n");
        assert!(covered(&flat(digits), "4*i + k", "for j in 0..11", "j"));
        assert!(!covered(&flat(digits), "4*i + k", "for j in 0..12", "j"));
        assert!(!covered(&flat(digits), "5*i + k", "for j in 0..11", "j"));
        assert!(!covered(&flat(digits), "3*i + k", "for j in 0..11", "j"));
        assert!(covered("for i in 0..3\nfor k in 0..4", "i + 3*k", "for j in 0..12", "j"));
        assert!(!covered("for i in 0..2\nfor k in 0..4", "i + 3*k", "for j in 0..12", "j"));
        assert!(!covered("for i in 0..3\nfor k in 0..4", "4*i + k", "for j in -1..12", "j"));
        assert!(!covered("for i in 0..5\nfor k in 0..7", "2*i + 3*k", "for j in 0..12", "j"));
    }

    #[test]
    fn a_loop_covers_one_axis() {
        assert!(covered("for i in 0..8\nfor k in 0..8", "i, k", "for j in 0..8", "j, j"));
        assert!(!covered("for i in 0..8", "i, i", "for j in 0..8\nfor l in 0..8", "j, l"));
    }

    #[test]
    fn loops_that_sweep_nothing_must_run() {
        assert!(covered("for i in 0..3\nfor k in 0..4", "i", "for j in 0..3", "j"));
        assert!(!covered("for i in 0..3\nfor k in 0..n", "i", "for j in 0..3", "j"));
        assert!(!covered("for i in 0..3\nfor k in 0..min(2, n - i)", "i", "for j in 0..3", "j"));
    }
}
