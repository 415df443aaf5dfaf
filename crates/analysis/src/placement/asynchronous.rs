//! Calls whose code runs asynchronously until a completion: which of their accesses a completion
//! must follow.
//!
//! Formula: with `A` the instructions of such calls, `T` what a call [touches
//! later](kingpost_ir::calls::touched_later) and `D` the flow, anti and output dependences through
//! `T` from `A`, a completion by the work-item of the source stands between the ends of every pair
//! of `D`, and then a barrier where the sink is another work-item.
//!
//! Work-items hold accumulators of a call in registers. Calls of one callee on the same ones are
//! done in order, so that pairs of such calls are no pairs of `D`.
//!
//! Code may access memory through a *proxy*. Each pair whose sink does and whose source does not is
//! listed, too.
//!
//! Calls that were made some iterations before may be complete while later ones are not. With `o`
//! the loops around the carrier `t` of a barrier that have one value at both ends of its pairs,
//! these are at least `min { t(sink) - t(source) : o equal, t(source) < t(sink) }` iterations
//! apart.

use crate::Analysis;
use crate::deps::Dependence;
use crate::placement::barriers::Barrier;
use crate::placement::refusal::PlacementError;
use crate::polyhedral::{equal_values, step};
use kingpost_ir::Domain;
use kingpost_ir::affine::Atom;
use kingpost_ir::calls::{Accumulator, Callee, proxies, read_together, touched_later, written_together};
use kingpost_ir::ids::{CalleeId, InameId, InsnId, VarId};
use kingpost_ir::kernel::{AddressSpace, AxisTag};
use kingpost_isl as isl;
use std::collections::{BTreeMap, BTreeSet};

/// What calls that complete later touch until then, and what work-items read together.
#[derive(Default)]
pub(super) struct Later {
    touched: BTreeSet<(InsnId, VarId)>,
    together: BTreeMap<(InsnId, VarId), u8>,
    /// What code accesses through proxies, each with the statement that ends what ordinary
    /// statements do.
    proxies: BTreeSet<(InsnId, VarId, String)>,
    /// For each accumulator of an instruction's call, the number of the call among those that are
    /// the same or have no accumulator in common.
    in_order: BTreeMap<(InsnId, VarId), usize>,
}

impl Later {
    pub(super) fn of(analysis: &Analysis) -> Result<Self, PlacementError> {
        let kernel = analysis.kernel();
        let mut found = Self::default();
        let by_proxy = |c: &Callee| c.code.iter().any(|code| code.proxy.is_some());
        if !kernel.callees.values().any(|c| c.is_asynchronous() || c.is_collective() || by_proxy(c)) {
            return Ok(found);
        }
        let calls = kernel.calls().map_err(PlacementError::Calls)?;
        let mut accumulators: Vec<(CalleeId, Accumulator<'_>)> = Vec::new();
        for call in &calls {
            let callee = &kernel.callees[call.callee];
            let insns = || call.binding.insns.iter().copied();
            for var in touched_later(callee, &call.binding).into_iter().filter(|_| callee.is_asynchronous()) {
                found.touched.extend(insns().map(|insn| (insn, var)));
            }
            for var in read_together(callee, &call.binding) {
                found.together.extend(insns().map(|insn| ((insn, var), callee.axes_together())));
            }
            for (var, fence) in proxies(callee, &call.binding) {
                found.proxies.extend(insns().map(|insn| (insn, var, fence.clone())));
            }
            for var in written_together(callee, &call.binding) {
                match kernel.vars[var].space {
                    AddressSpace::Global | AddressSpace::Local => {
                        found.together.extend(insns().map(|insn| ((insn, var), callee.axes_together())));
                    }
                    // registers of the work-item itself
                    AddressSpace::Private
                    | AddressSpace::SubGroup
                    | AddressSpace::Constant
                    | AddressSpace::Literal => {}
                }
            }
            for own in Accumulator::of(callee, &call.binding) {
                let like = |(callee, other): &(CalleeId, Accumulator<'_>)| {
                    *callee == call.callee && own.is_same_or_apart(other)
                };
                let place = accumulators.iter().position(like).unwrap_or(accumulators.len());
                found.in_order.extend(insns().map(|insn| ((insn, own.window.var), place)));
                if place == accumulators.len() {
                    accumulators.push((call.callee, own));
                }
            }
        }
        Ok(found)
    }

    /// Whether anything completes later, or goes through a proxy.
    pub(super) fn any(&self) -> bool {
        !self.touched.is_empty() || !self.proxies.is_empty()
    }

    /// Whether a statement must stand between the ends of a dependence, also of one work-item.
    pub(super) fn separates(&self, d: &Dependence) -> bool {
        let fences = |insn| self.proxies.iter().filter(move |(i, var, _)| (*i, *var) == (insn, d.var));
        let through_proxy = |fence: &String| fences(d.source).any(|(_, _, of_source)| of_source == fence);
        self.completes(d) || fences(d.sink).any(|(_, _, fence)| !through_proxy(fence))
    }

    /// Whether a completion must stand between the ends of a dependence.
    fn completes(&self, d: &Dependence) -> bool {
        let place = |insn| self.in_order.get(&(insn, d.var));
        let in_order = place(d.source).is_some() && place(d.source) == place(d.sink);
        self.touched.contains(&(d.source, d.var)) && !in_order
    }

    /// Whether a call completes later that touches a variable.
    pub(super) fn touches(&self, var: VarId) -> bool {
        self.touched.iter().any(|(_, other)| *other == var)
    }

    /// Whether any work-item along an axis may read what an instruction reads of a variable: code
    /// that takes its address reads it in another way than the meaning says.
    pub(super) fn reads_for_others(&self, d: &Dependence, axis: u8) -> bool {
        let along = |insn| self.together.get(&(insn, d.var)).is_some_and(|axes| axis < *axes);
        along(d.source) || along(d.sink)
    }
}

impl Analysis<'_> {
    /// How many iterations of its carrier are at least between the ends of a barrier, up to `most`;
    /// 1 if that is not known. An iteration is one value of the loop.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn iterations_apart(&self, barrier: &Barrier, most: i64) -> Result<i64, isl::IslError> {
        let (poly, kernel) = (self.polyhedral(), self.expanded());
        let var = &kernel.vars[barrier.var];
        let Some(carrier) = barrier.carrier.filter(|l| is_range(&kernel.inames[*l].domain, *l)) else {
            return Ok(1);
        };
        // pairs of arrays that share a buffer are no dependences
        if var.storage.is_some() {
            return Ok(1);
        }
        let loops = poly.common_loops(barrier.source, barrier.sink);
        let outer = loops.iter().take_while(|l| **l != carrier);
        let equal: Vec<InameId> = outer
            .filter(|l| match kernel.inames[**l].tag {
                AxisTag::Local(_) => false,
                AxisTag::Group(_) => var.space != AddressSpace::Global,
                AxisTag::Sequential
                | AxisTag::Unrolled
                | AxisTag::Rolled
                | AxisTag::Vector
                | AxisTag::Launch => true,
            })
            .copied()
            .collect();
        let all = self.dependences_of(&|v| v == barrier.var)?;
        let pairs = || all.iter().filter(|d| d.source == barrier.source && d.sink == barrier.sink);
        if pairs().next().is_none() {
            return Ok(1);
        }
        for apart in 1..most {
            let advance = step(poly, carrier);
            let mut near = equal_values(poly, &equal);
            near.push(isl::Constraint::non_negative(advance.clone().offset(-1)));
            near.push(isl::Constraint::non_negative(isl::Affine::constant(apart).add_scaled(-1, &advance)));
            for d in pairs() {
                if !d.relation_where(&[near.clone()])?.is_empty()? {
                    return Ok(apart);
                }
            }
        }
        Ok(most)
    }
}

/// Whether a loop takes every integer between bounds.
fn is_range(domain: &Domain, l: InameId) -> bool {
    let strided =
        |(atom, _): &(Atom, i64)| matches!(atom, Atom::Floor(numerator, _) if numerator.mentions(l));
    domain.as_conjunction().is_some_and(|all| !all.iter().any(|c| c.expr().terms().iter().any(strided)))
}
