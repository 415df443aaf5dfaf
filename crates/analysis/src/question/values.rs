//! The values that expressions take together where an instruction runs, one by one.

use super::{Column, Instances, Linear, Row};
use std::collections::BTreeSet;

/// Most points that are looked at: the loops around an access of local memory take no more.
const POINTS: i128 = 1 << 17;

/// What these expressions are at every point, and perhaps more: constraints on other loops or on
/// symbols are left out. `None` if the loops that they mention have no constant bounds, or too many
/// points.
pub(crate) fn values(instances: &Instances, of: &[Linear]) -> Option<BTreeSet<Vec<i64>>> {
    let mentioned = |k: usize| of.iter().any(|e| e.mentions(k));
    let loops: Vec<usize> = (0..instances.depth()).filter(|k| mentioned(*k)).collect();
    let all = instances.ranges();
    let ranges = loops.iter().map(|k| Some((all.get(*k)?.lo?, all.get(*k)?.hi?)));
    let ranges: Vec<(i128, i128)> = ranges.collect::<Option<_>>()?;
    let points = ranges.iter().try_fold(1_i128, |n, (lo, hi)| n.checked_mul((hi - lo + 1).max(0)))?;
    let is_constant = of.iter().all(|e| e.is_within(&loops));
    if points > POINTS || !is_constant {
        return None;
    }
    let rows: Vec<&Row> = instances.certain_rows().filter(|row| row.value.is_within(&loops)).collect();
    let mut found = BTreeSet::new();
    let mut point = vec![0; instances.depth()];
    for k in 0..points {
        let mut rest = k;
        for (place, (lo, hi)) in loops.iter().zip(&ranges) {
            let length = hi - lo + 1;
            point[*place] = i64::try_from(lo + rest % length).ok()?;
            rest /= length;
        }
        let at = |e: &Linear| e.at(&point, 0);
        let holds = |row: &&Row| at(&row.value).is_none_or(|v| if row.is_zero { v == 0 } else { v >= 0 });
        if rows.iter().all(holds) {
            found.insert(of.iter().map(at).collect::<Option<Vec<i64>>>()?);
        }
    }
    Some(found)
}

impl Linear {
    fn mentions(&self, k: usize) -> bool {
        self.terms.iter().any(|(column, _)| match column {
            Column::Loop(l) => *l == k,
            Column::Symbol(_) => false,
            Column::Floor(numerator, _) => numerator.mentions(k),
        })
    }

    /// Whether it mentions no symbol and no loop but these.
    fn is_within(&self, loops: &[usize]) -> bool {
        self.terms.iter().all(|(column, _)| match column {
            Column::Loop(l) => loops.contains(l),
            Column::Symbol(_) => false,
            Column::Floor(numerator, _) => numerator.is_within(loops),
        })
    }
}
