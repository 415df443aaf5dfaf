//! Small systems of linear equations over the integers.

use crate::affine::gcd;

/// An equation `sum coefficients[k] * x[k] = value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Equation {
    pub(super) coefficients: Vec<i64>,
    pub(super) value: i64,
}

/// The solution of a system with `unknowns` unknowns; those that no equation fixes are 0. `None` if
/// there is no solution in integers, or if numbers grow beyond 64 bits on the way.
pub(super) fn solve(mut equations: Vec<Equation>, unknowns: usize) -> Option<Vec<i64>> {
    let mut pivots: Vec<(usize, usize)> = Vec::new(); // unknown and row
    let mut row = 0;
    for unknown in 0..unknowns {
        let Some(k) = (row..equations.len()).find(|k| equations[*k].coefficients[unknown] != 0) else {
            continue;
        };
        equations.swap(row, k);
        let pivot = equations[row].clone();
        for (k, equation) in equations.iter_mut().enumerate() {
            if k != row && equation.coefficients[unknown] != 0 {
                eliminate(equation, &pivot, unknown)?;
            }
        }
        pivots.push((unknown, row));
        row += 1;
    }
    if equations[row..].iter().any(|e| e.value != 0) {
        return None;
    }
    let mut solution = vec![0; unknowns];
    for (unknown, row) in pivots {
        let Equation { coefficients, value } = &equations[row];
        if value % coefficients[unknown] != 0 {
            return None;
        }
        solution[unknown] = value / coefficients[unknown];
    }
    Some(solution)
}

/// Takes a multiple of `pivot` from a multiple of `equation`, so that the unknown is gone.
fn eliminate(equation: &mut Equation, pivot: &Equation, unknown: usize) -> Option<()> {
    let (a, b) = (pivot.coefficients[unknown], equation.coefficients[unknown]);
    let g = gcd(a, b).max(1);
    let (p, q) = (a / g, b / g);
    let combine = |e: i64, of_pivot: i64| e.checked_mul(p)?.checked_sub(of_pivot.checked_mul(q)?);
    for (c, of_pivot) in equation.coefficients.iter_mut().zip(&pivot.coefficients) {
        *c = combine(*c, *of_pivot)?;
    }
    equation.value = combine(equation.value, pivot.value)?;
    let common = equation.coefficients.iter().fold(equation.value.checked_abs()?, |g, c| gcd(g, *c));
    if common > 1 {
        equation.coefficients.iter_mut().for_each(|c| *c /= common);
        equation.value /= common;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(rows: &[(&[i64], i64)]) -> Option<Vec<i64>> {
        let unknowns = rows.first().map_or(0, |(c, _)| c.len());
        let equations = rows.iter().map(|(c, value)| Equation { coefficients: c.to_vec(), value: *value });
        solve(equations.collect(), unknowns)
    }

    #[test]
    fn unique_free_contradictory_and_fractional() {
        assert_eq!(system(&[(&[1, 1], 5), (&[1, -1], 1)]), Some(vec![3, 2]));
        assert_eq!(system(&[(&[0, 2], 6)]), Some(vec![0, 3]));
        assert_eq!(system(&[(&[2, 4], 8), (&[1, 2], 4)]), Some(vec![4, 0]));
        assert_eq!(system(&[(&[1, 2], 4), (&[1, 2], 5)]), None);
        assert_eq!(system(&[(&[2], 3)]), None);
        assert_eq!(system(&[(&[0], 1)]), None);
    }
}
