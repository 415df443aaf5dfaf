//! Sums: those in expressions become loops, and those of innermost loops are added up in lanes.

use crate::draft::{Draft, Tried, refusable};
use crate::program::{Part, Reader};
use kingpost_algebra::primitives::FactorUpdate;
use kingpost_ir::{AxisTag, Expr, InameId, InsnId, VarId};
use kingpost_transforms::primitives::{
    ExpandArray, InterchangeInames, RealiseReduction, RealiseScan, SplitIname, SplitLives, Tag, Tail,
};
use std::collections::BTreeSet;

/// Vectors of a long sum, an addition to each of which waits for the one before: gcc keeps no more than two in
/// registers.
const VECTORS: f64 = 2.0;

/// Additions to each lane of these from which on a sum is long: in the end, lanes are added one after the other.
const LONG: f64 = 16.0;

impl Draft<'_> {
    /// Makes loops of the sums in expressions, which other ideas know nothing of: running totals where a range
    /// grows by one with the loop around, else updates of the result itself where that is legal.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn realise_sums(&mut self) -> Tried {
        let mut refused = BTreeSet::new();
        while let Some((insn, iname)) = self.sum_in_expression(&refused) {
            let step = RealiseReduction::new(&iname);
            let done = refusable(self.make(RealiseScan::new(insn)))?.is_ok()
                || refusable(self.make(step.clone().in_place()))?.is_ok()
                || refusable(self.make(step))?.is_ok();
            if !done {
                refused.insert(iname);
            }
        }
        self.cycles = self.predicted();
        Ok(())
    }

    /// An instruction with a reduction, and the first loop of that.
    fn sum_in_expression(&self, but: &BTreeSet<String>) -> Option<(String, String)> {
        let kernel = self.kernel();
        kernel.insns.values().find_map(|insn| {
            let mut found = None;
            insn.rhs.for_each(&mut |e| {
                if let Expr::Reduce(reduction) = e
                    && let Some(iname) = reduction.inames.first()
                    && !but.contains(&kernel.inames[*iname].name)
                {
                    found.get_or_insert_with(|| kernel.inames[*iname].name.clone());
                }
            });
            found.map(|iname| (insn.name.clone(), iname))
        })
    }

    /// Lets innermost loops add up in lanes. Results are equal up to the order of the terms.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn sum_in_lanes(&mut self) -> Tried {
        for nest in self.innermost() {
            let Some(inner) = nest.last() else { continue };
            let sums = self.sums_of(inner);
            if sums.is_empty() {
                continue;
            }
            self.consider(&format!("sums over `{inner}` in lanes"), |d| d.lanes_of(inner, &sums))?;
        }
        Ok(())
    }

    /// The updates in a loop of elements that it does not move.
    fn sums_of(&self, inner: &str) -> Vec<String> {
        let kernel = self.kernel();
        let Some(iname) = kernel.iname(inner) else { return Vec::new() };
        let is_sum = |s: &InsnId| {
            let insn = &kernel.insns[*s];
            insn.update_op().is_some() && !insn.lhs.index.iter().any(|e| e.mentions(iname))
        };
        self.insns(inner).into_iter().filter(is_sum).map(|s| kernel.insns[s].name.clone()).collect()
    }

    fn lanes_of(&mut self, inner: &str, sums: &[String]) -> Tried {
        let written = sums.iter().filter_map(|sum| self.written_by(sum));
        let bytes = written.map(|v| self.kernel().vars[v].ty.bytes()).max().unwrap_or(8) as f64;
        let lanes = self.machine.vector_bytes / bytes;
        let parts = Reader::new(self.kernel(), self.params).parts();
        let trips = self.kernel().iname(inner).and_then(|iname| trips_of(&parts, iname));
        let is_long = trips.is_some_and(|trips| trips >= LONG * VECTORS * lanes);
        let width = if is_long { VECTORS * lanes } else { lanes } as i64;
        let [turn, lane] = self.make(SplitIname::new(inner, width).with_tail(Tail::Peel))?;
        self.keep_in_lanes(turn.name(), lane.name(), sums)?;
        self.make(InterchangeInames::new(turn.name(), lane.name()))?;
        for sum in sums {
            let derived = |name: &str| vec![format!("{name}_init"), format!("{name}_sum")];
            let part = self.schedule.fresh_with(&format!("{sum}_part"), derived);
            self.make(FactorUpdate::new(sum, [lane.name()]).into_temporary(part))?;
        }
        let made = self.distribute(lane.name(), vec![turn.name().to_owned()])?;
        let lane = made.first().map_or(lane.name(), String::as_str);
        self.make(InterchangeInames::new(lane, turn.name()))?;
        self.make(Tag::new(lane, AxisTag::Vector))
    }

    /// Gives each lane the temporaries that an iteration computes for itself.
    fn keep_in_lanes(&mut self, turn: &str, lane: &str, sums: &[String]) -> Tried {
        let added: Vec<VarId> = sums.iter().filter_map(|sum| self.written_by(sum)).collect();
        for var in self.temporaries_in(lane) {
            if self.kernel().var(&var).is_some_and(|v| added.contains(&v)) {
                continue;
            }
            let own = match self.is_used_outside(&var, turn) {
                true => {
                    self.make(SplitLives::new(turn, turn).of([&var]))?.first().map(|v| v.name().to_owned())
                }
                false => None,
            };
            self.make(ExpandArray::new(own.unwrap_or(var), [lane]))?;
        }
        Ok(())
    }

    fn written_by(&self, insn: &str) -> Option<VarId> {
        let kernel = self.kernel();
        kernel.insn(insn).map(|insn| kernel.insns[insn].lhs.var)
    }
}

/// The mean number of iterations of a loop.
fn trips_of(parts: &[Part], iname: InameId) -> Option<f64> {
    parts.iter().find_map(|part| match part {
        Part::Insn(_) => None,
        Part::Loop(level, _) if level.iname == iname => Some(level.trips),
        Part::Loop(_, body) => trips_of(body, iname),
    })
}
