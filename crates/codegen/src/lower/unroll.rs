//! Loops that are written out, one iteration after the other.

use super::loops::{Form, Shape};
use super::{Lower, UNROLL_LIMIT};
use crate::bounds::constants;
use crate::error::CodegenError;
use kingpost_ir::{Affine, InameId};

impl Lower<'_> {
    /// The loop written out: its values if its length is a constant, else all values between the
    /// constants it stays within, each with a guard.
    pub(super) fn unrolled(
        &self,
        iname: InameId,
        mut shape: Shape,
        single: bool,
    ) -> Result<Shape, CodegenError> {
        let Form::Counted { lower, upper, stride } = &shape.form else { return Ok(shape) };
        if let Some((lo, length)) = self.constant_length(iname, &shape.form)? {
            shape.form = Form::Values((0..length).map(|k| lo.plus_constant(k)).collect());
            return Ok(shape);
        }
        let (step, residue) = stride.unwrap_or((1, 0));
        let (lo, hi) = match (constants(lower), constants(upper)) {
            (Some(lo), Some(hi)) => (
                lo.iter().filter_map(|l| l.iter().max()).min().copied().unwrap_or(0),
                hi.iter().filter_map(|l| l.iter().min()).max().copied().unwrap_or(0),
            ),
            _ => {
                // bounds that fit 32 bits are not sharpened by what is known
                let least = |l: &Affine| self.env.range_by_facts(l).lo;
                let most = |u: &Affine| self.env.range_by_facts(u).hi;
                let lo = lower.iter().filter_map(|l| l.iter().map(least).max()).min();
                let hi = upper.iter().filter_map(|l| l.iter().map(most).min()).max();
                let ends = lo.zip(hi).map(|(lo, hi)| (lo.max(shape.range.lo), (hi - 1).min(shape.range.hi)));
                let constants = ends.map(|(lo, last)| (i64::try_from(lo), i64::try_from(last)));
                let Some((Ok(lo), Ok(last))) = constants else {
                    return Err(self.no_constants(iname, lower, upper));
                };
                if single {
                    shape.inner = vec![shape.facts.clone()];
                }
                (lo, last.saturating_add(1))
            }
        };
        let values: Vec<i64> = (lo..hi
            .min(lo.saturating_add(UNROLL_LIMIT.saturating_mul(step)).saturating_add(1)))
            .filter(|v| v.rem_euclid(step) == residue)
            .collect();
        if values.len() as i64 > UNROLL_LIMIT {
            return match constants(lower).and(constants(upper)) {
                Some(_) => Err(self.refuse_unrolling(iname, format!("{}", hi.saturating_sub(lo)))),
                None => Err(self.no_constants(iname, lower, upper)),
            };
        }
        shape.form = Form::Values(values.into_iter().map(Affine::constant).collect());
        Ok(shape)
    }

    /// First value and number of values of a loop that runs from `lo` to `lo + length`; around a
    /// barrier all work-items have the same first one.
    fn constant_length(&self, iname: InameId, form: &Form) -> Result<Option<(Affine, i64)>, CodegenError> {
        let Form::Counted { lower, upper, stride: None } = form else { return Ok(None) };
        let ([lower], [upper]) = (lower.as_slice(), upper.as_slice()) else { return Ok(None) };
        let ([lo], [hi]) = (lower.as_slice(), upper.as_slice()) else { return Ok(None) };
        let Some(length) = hi.minus(lo).as_constant() else { return Ok(None) };
        if self.barriers.holds(iname) && !self.is_uniform(lo) {
            return Ok(None);
        }
        if length > UNROLL_LIMIT {
            return Err(self.refuse_unrolling(iname, format!("{length}")));
        }
        Ok(Some((lo.clone(), length)))
    }

    fn no_constants(&self, iname: InameId, lower: &[Vec<Affine>], upper: &[Vec<Affine>]) -> CodegenError {
        let show = |l: &[Vec<Affine>]| {
            l.iter().flatten().map(|e| crate::axes::show(self.kernel, e)).collect::<Vec<_>>().join(", ")
        };
        self.refuse_unrolling(iname, format!("from {} to {}", show(lower), show(upper)))
    }

    fn refuse_unrolling(&self, iname: InameId, found: String) -> CodegenError {
        let iname = self.kernel.inames[iname].name.clone();
        CodegenError::UnrollNotConstant { iname, found, limit: UNROLL_LIMIT }
    }
}
