//! Calls whose code runs asynchronously until a completion: which of their accesses a completion must
//! follow.
//!
//! Formula: with `A` the instructions of such calls, `T` what a call
//! [touches later](kingpost_ir::calls::touched_later) and `D` the flow, anti and output dependences
//! through `T` from `A`, a completion by the work-item of the source stands between the ends of every
//! pair of `D`, and then a barrier where the sink is another work-item.
//!
//! Calls that were made some iterations before may be complete while later ones are not. With `o` the
//! loops around the carrier `t` of a barrier that have one value at both ends of its pairs, these are at
//! least `min { t(sink) - t(source) : o equal, t(source) < t(sink) }` iterations apart.

use crate::Analysis;
use crate::deps::Dependence;
use crate::placement::barriers::Barrier;
use crate::placement::refusal::PlacementError;
use crate::polyhedral::{equal_values, step};
use kingpost_ir::Domain;
use kingpost_ir::affine::Atom;
use kingpost_ir::calls::{read_together, touched_later};
use kingpost_ir::ids::{InameId, InsnId, VarId};
use kingpost_ir::kernel::{AddressSpace, AxisTag};
use kingpost_isl as isl;
use std::collections::{BTreeMap, BTreeSet};

/// What calls that complete later touch until then, and what work-items read together.
#[derive(Default)]
pub(super) struct Later {
    touched: BTreeSet<(InsnId, VarId)>,
    together: BTreeMap<(InsnId, VarId), u8>,
}

impl Later {
    pub(super) fn of(analysis: &Analysis) -> Result<Self, PlacementError> {
        let kernel = analysis.kernel();
        let mut found = Self::default();
        if !kernel.callees.values().any(|c| c.is_asynchronous() || c.is_collective()) {
            return Ok(found);
        }
        for call in kernel.calls().map_err(PlacementError::Calls)? {
            let callee = &kernel.callees[call.callee];
            let insns = || call.binding.insns.iter().copied();
            for var in touched_later(callee, &call.binding).into_iter().filter(|_| callee.is_asynchronous()) {
                found.touched.extend(insns().map(|insn| (insn, var)));
            }
            for var in read_together(callee, &call.binding) {
                found.together.extend(insns().map(|insn| ((insn, var), callee.axes_together())));
            }
        }
        Ok(found)
    }

    /// Whether anything completes later.
    pub(super) fn any(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Whether a completion must follow what an instruction does with a variable.
    pub(super) fn completes(&self, insn: InsnId, var: VarId) -> bool {
        self.touched.contains(&(insn, var))
    }

    /// Whether any work-item along an axis may read what an instruction reads of a variable: code that takes
    /// its address reads it in another way than the meaning says.
    pub(super) fn reads_for_others(&self, d: &Dependence, axis: u8) -> bool {
        let along = |insn| self.together.get(&(insn, d.var)).is_some_and(|axes| axis < *axes);
        along(d.source) || along(d.sink)
    }
}

impl Analysis<'_> {
    /// How many iterations of its carrier are at least between the ends of a barrier, up to `most`; 1 if
    /// that is not known. An iteration is one value of the loop.
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
        let mut pairs = Vec::new();
        for d in self.dependences_of(&|v| v == barrier.var)? {
            if d.source == barrier.source && d.sink == barrier.sink {
                pairs.push(d.relation()?);
            }
        }
        if pairs.is_empty() {
            return Ok(1);
        }
        for apart in 1..most {
            let advance = step(poly, carrier);
            let mut near = equal_values(poly, &equal);
            near.push(isl::Constraint::non_negative(advance.clone().offset(-1)));
            near.push(isl::Constraint::non_negative(isl::Affine::constant(apart).add_scaled(-1, &advance)));
            for pairs in &pairs {
                if !pairs.intersect(&isl::Map::from_constraints(&pairs.space()?, &near)?)?.is_empty()? {
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
