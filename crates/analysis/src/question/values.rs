//! The values that expressions take together where an instruction runs, one by one.

use super::{Column, Instances, Linear, Pairs, Row};
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
        let mut holds = true;
        for row in &rows {
            let value = at(&row.value)?;
            holds &= if row.is_zero { value == 0 } else { value >= 0 };
        }
        if holds {
            found.insert(of.iter().map(at).collect::<Option<Vec<i64>>>()?);
        }
    }
    Some(found)
}

impl Pairs {
    /// Values at the source and at the sink that are equal exactly where a pair is in one iteration
    /// of the loops around both, so that a sink is in a pair if [`values`] of the source has what it
    /// has. `None` if constraints at the source do not tell that.
    pub(super) fn as_written(&self) -> Option<(Vec<Linear>, Vec<Linear>)> {
        let [source, sink] = &self.ends;
        if !self.span.textual || sink.reductions > 0 {
            return None;
        }
        let (mut written, mut read): (Vec<Linear>, Vec<Linear>) = self.same.iter().cloned().unzip();
        let agrees = |k: usize| self.orders(k);
        let tied: Vec<usize> = (0..self.common)
            .filter(|k| agrees(*k) && written.iter().chain(&read).any(|e| e.mentions(*k)))
            .collect();
        for values in [&mut written, &mut read] {
            values.extend(tied.iter().map(|k| Linear::of_loop(*k)));
        }
        let ranges = source.ranges();
        let is_counted = |k: usize| written.iter().any(|e| e.mentions(k));
        let is_told = |row: &Row| {
            let loops: Vec<usize> = (0..source.depth()).filter(|k| row.value.mentions(*k)).collect();
            // what holds of a loop around both holds at the source, too
            if loops.iter().all(|k| agrees(*k)) && sink.certain_rows().any(|other| other == row) {
                return true;
            }
            match (loops.as_slice(), row.value.terms.as_slice()) {
                // another loop, which has a value
                ([k], [(Column::Loop(_), _)]) if !agrees(*k) && !is_counted(*k) => {
                    ranges[*k].lo.zip(ranges[*k].hi).is_some_and(|(lo, hi)| lo <= hi)
                }
                _ => !loops.is_empty() && loops.iter().all(|k| is_counted(*k)) && row.value.is_within(&loops),
            }
        };
        source.rows()?.all(is_told).then_some((written, read))
    }
}

impl Linear {
    /// Whether it has a quotient.
    pub(super) fn divides(&self) -> bool {
        self.terms.iter().any(|(column, _)| matches!(column, Column::Floor(..)))
    }

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
