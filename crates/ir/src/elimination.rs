//! Fourier–Motzkin elimination over the rationals: a proof that a conjunction has no point.

use crate::affine::{Affine, Atom, gcd};

/// Above this number of inequalities the question is given up: the answer is then "not proved".
const LIMIT: usize = 96;

/// Whether `e >= 0` follows from `known[k] >= 0` for all k. `false` means that no proof was found.
pub fn implied(known: &[Affine], e: &Affine) -> bool {
    let negated = e.times(-1).plus_constant(-1);
    let mut system: Vec<Affine> = connected(known, &negated);
    system.push(negated);
    infeasible(system)
}

/// The inequalities that share atoms with `e`, directly or through others.
fn connected(known: &[Affine], e: &Affine) -> Vec<Affine> {
    let mut atoms: Vec<&Atom> = e.terms().iter().map(|(a, _)| a).collect();
    let mut taken = vec![false; known.len()];
    loop {
        let before = atoms.len();
        for (k, f) in known.iter().enumerate() {
            if !taken[k] && f.terms().iter().any(|(a, _)| atoms.contains(&a)) {
                taken[k] = true;
                for (a, _) in f.terms() {
                    if !atoms.contains(&a) {
                        atoms.push(a);
                    }
                }
            }
        }
        if atoms.len() == before {
            break;
        }
    }
    known.iter().zip(taken).filter(|(_, t)| *t).map(|(f, _)| f.clone()).collect()
}

fn infeasible(mut system: Vec<Affine>) -> bool {
    loop {
        system = system.into_iter().map(tightened).collect();
        system.sort();
        system.dedup();
        if system.iter().any(|f| f.as_constant().is_some_and(|c| c < 0)) {
            return true;
        }
        system.retain(|f| f.as_constant().is_none());
        let Some(atom) = cheapest(&system) else { return false };
        let (mut lower, mut upper, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for f in system {
            match f.coefficient(&atom) {
                0 => rest.push(f),
                c if c > 0 => lower.push((f, c)),
                c => upper.push((f, -c)),
            }
        }
        if rest.len() + lower.len() * upper.len() > LIMIT {
            return false;
        }
        for (l, a) in &lower {
            for (u, b) in &upper {
                let sum = l.times(*b).plus(&u.times(*a));
                if !sum.in_bounds() {
                    return false; // arithmetic saturates beyond this
                }
                rest.push(sum);
            }
        }
        system = rest;
    }
}

/// Divides by the common factor, the constant rounded down: no integer point is lost.
fn tightened(f: Affine) -> Affine {
    let common = f.terms().iter().fold(0, |g, (_, c)| gcd(g, *c));
    if common <= 1 { f } else { f.divided(common) }
}

/// The atom whose elimination makes the fewest inequalities.
fn cheapest(system: &[Affine]) -> Option<Atom> {
    let mut atoms: Vec<(&Atom, usize, usize)> = Vec::new();
    for (a, c) in system.iter().flat_map(|f| f.terms()) {
        let k = atoms.iter().position(|(b, _, _)| *b == a).unwrap_or_else(|| {
            atoms.push((a, 0, 0));
            atoms.len() - 1
        });
        if *c > 0 {
            atoms[k].1 += 1;
        } else {
            atoms[k].2 += 1;
        }
    }
    atoms.into_iter().min_by_key(|(_, l, u)| l * u).map(|(a, _, _)| a.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Id, InameId};

    fn i(k: usize) -> Affine {
        Affine::iname(InameId::from_index(k))
    }

    #[test]
    fn chains_of_inequalities_are_followed() {
        // i < j, j < k, k <= 5  =>  i <= 3
        let known = [
            i(1).minus(&i(0)).plus_constant(-1),
            i(2).minus(&i(1)).plus_constant(-1),
            i(2).times(-1).plus_constant(5),
        ];
        assert!(implied(&known, &i(0).times(-1).plus_constant(3)));
        assert!(!implied(&known, &i(0).times(-1).plus_constant(2)));
    }

    #[test]
    fn integer_rounding_counts() {
        // 2 i >= 1  =>  i >= 1
        assert!(implied(&[i(0).times(2).plus_constant(-1)], &i(0).plus_constant(-1)));
    }
}
