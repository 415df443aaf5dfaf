//! A pair of instances found without isl: small values are tried one by one.
//!
//! A barrier is needed where pairs exist, and where they do some have small numbers. What is found
//! satisfies every constraint; what is not found may exist.

use super::pairs::{Decider, Differences, Pairs};
use super::{Column, Linear, Range, Row, Sign};

/// Values that all symbols have at once, the first that the assumptions allow.
const SYMBOLS: [i64; 3] = [4096, 64, 1];

/// Values of a loop that are tried, from its first one.
const VALUES: i128 = 4;

/// Values that are tried in all: a tenth of what isl takes for such a question.
const TRIALS: usize = 400;

/// Which values a linear expression is of.
#[derive(Clone, Copy)]
enum End {
    Source,
    Sink,
}

/// `sink - source + constant` is zero, or not negative, where an end is there.
struct Condition<'p> {
    ends: [Option<&'p Linear>; 2],
    /// Factor of the difference, 1 or -1.
    factor: i64,
    constant: i64,
    is_zero: bool,
}

impl<'p> Condition<'p> {
    fn row(row: &'p Row, end: End) -> Self {
        let value = Some(&row.value);
        let (ends, factor) = match end {
            End::Source => ([value, None], -1),
            End::Sink => ([None, value], 1),
        };
        Self { ends, factor, constant: 0, is_zero: row.is_zero }
    }

    fn signed(sign: Sign, source: &'p Linear, sink: &'p Linear) -> Self {
        let (factor, constant, is_zero) = match sign {
            Sign::Zero => (1, 0, true),
            Sign::Positive => (1, -1, false),
            Sign::Negative => (-1, -1, false),
        };
        Self { ends: [Some(source), Some(sink)], factor, constant, is_zero }
    }

    fn holds(&self, point: &Point) -> bool {
        let value = |end: usize| match self.ends[end] {
            Some(value) => value.at(&point.loops[end], point.symbol),
            None => Some(0),
        };
        let sum = || {
            let difference = value(1)?.checked_sub(value(0)?)?;
            difference.checked_mul(self.factor)?.checked_add(self.constant)
        };
        sum().is_some_and(|sum| if self.is_zero { sum == 0 } else { sum >= 0 })
    }
}

/// Values of all loops and symbols.
struct Point {
    loops: [Vec<i64>; 2],
    symbol: i64,
}

impl Linear {
    /// The value where the loops have these values and all symbols have one.
    pub(super) fn at(&self, loops: &[i64], symbol: i64) -> Option<i64> {
        let mut sum = self.constant;
        for (column, factor) in &self.terms {
            let value = match column {
                Column::Loop(k) => *loops.get(*k)?,
                Column::Symbol(_) => symbol,
                Column::Floor(numerator, d) => numerator.at(loops, symbol)?.checked_div_euclid(*d)?,
            };
            sum = sum.checked_add(value.checked_mul(*factor)?)?;
        }
        Some(sum)
    }

    /// The place of the last loop that is mentioned, by the place of each; 0 if there is none.
    fn last(&self, places: &[usize]) -> usize {
        let of = |(column, _): &(Column, i64)| match column {
            Column::Loop(k) => places.get(*k).map_or(usize::MAX, |place| place + 1),
            Column::Symbol(_) => 0,
            Column::Floor(numerator, _) => numerator.last(places),
        };
        self.terms.iter().map(of).max().unwrap_or(0)
    }
}

/// Whether a search finds a pair that `decider` decides and at which all these differences have
/// these signs.
pub(super) fn is_found(
    pairs: &Pairs,
    ranges: &[Vec<Range>; 2],
    decider: Decider,
    differences: &Differences,
) -> bool {
    let depths = [pairs.ends[0].depth(), pairs.ends[1].depth()];
    let values: Vec<Linear> = (0..pairs.common).map(Linear::of_loop).collect();
    let mut all: Vec<Condition<'_>> = Vec::new();
    for (end, side) in pairs.ends.iter().zip([End::Source, End::Sink]) {
        let Some(rows) = end.rows() else { return false };
        all.extend(rows.map(|row| Condition::row(row, side)));
    }
    all.extend(pairs.same.iter().map(|(x, y)| Condition::signed(Sign::Zero, x, y)));
    all.extend(pairs.signs(decider).map(|(l, sign)| Condition::signed(sign, &values[l], &values[l])));
    all.extend(differences.iter().map(|(sign, x, y)| Condition::signed(*sign, x, y)));
    let assumed = pairs.symbols.assumed();
    all.extend(assumed.iter().map(|row| Condition::row(row, End::Sink)));

    // loops of both ends alternately, so that what they have in common comes first
    let longest = depths[0].max(depths[1]);
    let order = (0..longest).flat_map(|k| [(0, k), (1, k)]).filter(|(end, k)| *k < depths[*end]);
    let order: Vec<(usize, usize)> = order.collect();
    let mut places = depths.map(|depth| vec![0; depth]);
    order.iter().enumerate().for_each(|(place, (end, k))| places[*end][*k] = place);
    let mut conditions: Vec<Vec<Condition<'_>>> = order.iter().map(|_| Vec::new()).collect();
    let mut of_symbols = Vec::new();
    for condition in all {
        let last = |end: usize| condition.ends[end].map_or(0, |value| value.last(&places[end]));
        match last(0).max(last(1)) {
            0 => of_symbols.push(condition),
            place => match conditions.get_mut(place - 1) {
                Some(there) => there.push(condition),
                None => return false,
            },
        }
    }
    let mut point = Point { loops: depths.map(|depth| vec![0; depth]), symbol: 0 };
    let allowed = SYMBOLS.into_iter().find(|symbol| {
        point.symbol = *symbol;
        of_symbols.iter().all(|c| c.holds(&point))
    });
    allowed.is_some() && Search { order, conditions, ranges, trials: TRIALS }.goes_on(0, &mut point)
}

/// A search loop by loop.
struct Search<'p> {
    /// The loops, each by its end and its number there.
    order: Vec<(usize, usize)>,
    /// What must hold as soon as a loop of this order has its value.
    conditions: Vec<Vec<Condition<'p>>>,
    ranges: &'p [Vec<Range>; 2],
    /// How many values may still be tried.
    trials: usize,
}

impl Search<'_> {
    /// Whether values of the loops from this one on are found.
    fn goes_on(&mut self, place: usize, point: &mut Point) -> bool {
        let Some((end, k)) = self.order.get(place).copied() else { return true };
        let Range { lo, hi } = self.ranges[end][k];
        let first = lo.unwrap_or_else(|| hi.map_or(0, |hi| hi.min(0)));
        let last = hi.map_or(first + VALUES - 1, |hi| hi.min(first + VALUES - 1));
        for value in first..=last {
            let (Some(left), Ok(value)) = (self.trials.checked_sub(1), i64::try_from(value)) else {
                return false;
            };
            self.trials = left;
            point.loops[end][k] = value;
            if self.conditions[place].iter().all(|c| c.holds(point)) && self.goes_on(place + 1, point) {
                return true;
            }
        }
        false
    }
}
