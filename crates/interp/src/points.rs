//! The values a loop takes, in ascending order, without storing them.

use super::node::{Condition, Form};
use kingpost_ir::ids::InameId;

/// A number of a domain left 64 bits (or a sub-expression 128).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Why there is no next value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// See [`TooLarge`].
    TooLarge,
    /// More values than allowed were passed over.
    Steps,
}

impl From<TooLarge> for Stop {
    fn from(TooLarge: TooLarge) -> Self {
        Self::TooLarge
    }
}

impl Form {
    /// The value at a point; `var` reads a scalar.
    pub(crate) fn eval<E: From<TooLarge>>(
        &self,
        iname: &dyn Fn(InameId) -> i64,
        var: &mut dyn FnMut(kingpost_ir::ids::VarId) -> Result<i64, E>,
    ) -> Result<i128, E> {
        let mut sum = self.constant; // at most some terms of 2^63 * 2^40
        for (i, c) in &self.inames {
            sum += i128::from(iname(*i)) * i128::from(*c); // 2^63 * 2^40 a term: no overflow
        }
        for (v, c) in &self.vars {
            sum += i128::from(var(*v)?) * i128::from(*c);
        }
        for (numerator, divisor, c) in &self.floors {
            let quotient = numerator.eval(iname, var)?.div_euclid(i128::from(*divisor));
            let term = quotient.checked_mul(i128::from(*c)).ok_or(TooLarge)?;
            sum = sum.checked_add(term).ok_or(TooLarge)?;
        }
        Ok(sum)
    }

    fn mentions_inames(&self) -> bool {
        !self.inames.is_empty() || self.floors.iter().any(|(numerator, ..)| numerator.mentions_inames())
    }
}

impl Condition {
    /// What it says of all values alike; none where they matter, or a number is too large.
    pub(crate) fn at_all_values(&self) -> Option<bool> {
        let value = self.form.eval::<TooLarge>(&|_| 0, &mut |_| Err(TooLarge)).ok();
        value.filter(|_| !self.form.mentions_inames()).map(|v| self.allows(v))
    }

    fn allows(&self, value: i128) -> bool {
        if self.equal { value == 0 } else { value >= 0 }
    }
}

/// One conjunction at the entry of its loop.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) lo: i64,
    pub(crate) hi: i64,
    /// What mentions the iname inside a floor; everything else has its value of the entry.
    pub(crate) checks: Vec<Condition>,
}

impl Span {
    fn holds(&self, value: i64) -> Result<bool, TooLarge> {
        for check in &self.checks {
            let v = check.form.eval::<TooLarge>(&|_| value, &mut |_| Err(TooLarge))?;
            if !check.allows(v) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn contains(&self, value: i64) -> Result<bool, TooLarge> {
        Ok(self.lo <= value && value <= self.hi && self.holds(value)?)
    }
}

/// The values of a loop in ascending order.
#[derive(Clone, Debug)]
pub(crate) struct Points {
    next: Option<i64>,
    hi: i64,
    /// Empty when every value up to `hi` belongs to the domain.
    spans: Vec<Span>,
}

impl Points {
    pub(crate) fn new(mut spans: Vec<Span>) -> Self {
        spans.retain(|s| s.lo <= s.hi);
        let next = spans.iter().map(|s| s.lo).min();
        let hi = spans.iter().map(|s| s.hi).max().unwrap_or(i64::MIN);
        if let [only] = spans.as_slice()
            && only.checks.is_empty()
        {
            spans.clear();
        }
        Self { next, hi, spans }
    }

    /// Every value from `lo` to `hi`.
    pub(crate) fn dense(lo: i64, hi: i64) -> Self {
        Self { next: (lo <= hi).then_some(lo), hi, spans: Vec::new() }
    }

    /// The next value; it passes over at most `most` values that the domain does not hold.
    #[inline]
    pub(crate) fn advance(&mut self, most: u64) -> Result<Option<i64>, Stop> {
        let Some(value) = self.next else { return Ok(None) };
        if self.spans.is_empty() {
            self.next = if value < self.hi { Some(value + 1) } else { None };
            return Ok(Some(value));
        }
        self.advance_in_spans(value, most)
    }

    fn advance_in_spans(&mut self, mut value: i64, mut most: u64) -> Result<Option<i64>, Stop> {
        loop {
            for span in &self.spans {
                if span.contains(value)? {
                    self.next = value.checked_add(1).filter(|v| *v <= self.hi);
                    return Ok(Some(value));
                }
            }
            // over a gap to the next value that some interval holds
            let Some(least) = value.checked_add(1) else { break };
            let starts = self.spans.iter().filter(|s| s.hi >= least).map(|s| s.lo.max(least));
            let Some(candidate) = starts.min() else { break };
            most = most.checked_sub(1).ok_or(Stop::Steps)?;
            value = candidate;
        }
        self.next = None;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kingpost_ir::ids::Id;

    fn all(mut points: Points) -> Vec<i64> {
        let mut found = Vec::new();
        while let Ok(Some(v)) = points.advance(u64::MAX) {
            found.push(v);
        }
        found
    }

    #[test]
    fn overlapping_spans_give_each_value_once() {
        let span = |lo, hi| Span { lo, hi, checks: Vec::new() };
        assert_eq!(all(Points::new(vec![span(5, 7), span(-1, 1), span(6, 9)])), [-1, 0, 1, 5, 6, 7, 8, 9]);
        assert!(all(Points::new(vec![span(3, 2)])).is_empty());
        assert_eq!(all(Points::dense(i64::MAX - 1, i64::MAX)), [i64::MAX - 1, i64::MAX]);
    }

    #[test]
    fn checks_apply_to_their_span_only() {
        let i = InameId::from_index(0);
        // i - 2 floor(i/2) == 0
        let half = Form { inames: vec![(i, 1)], ..Form::default() };
        let form = Form { inames: vec![(i, 1)], floors: vec![(half, 2, -2)], ..Form::default() };
        let even = Span { lo: 0, hi: 6, checks: vec![Condition { equal: true, form }] };
        let tail = Span { lo: 5, hi: 7, checks: Vec::new() };
        assert_eq!(all(Points::new(vec![even.clone(), tail])), [0, 2, 4, 5, 6, 7]);
        let mut points = Points::new(vec![even]);
        assert_eq!(
            [points.advance(0), points.advance(0), points.advance(1)],
            [Ok(Some(0)), Err(Stop::Steps), Ok(Some(2))]
        );
    }
}
