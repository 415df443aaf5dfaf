//! Single precision in cells, double precision around them.

use crate::strategy::mapping::Mapping;
use crate::strategy::{Arguments, Combinator, Stopped, Work};
use kingpost_forms::program::stage;
use kingpost_ir::{AddressSpace, Kernel, ScalarType, VarId, VarKind};
use kingpost_primitives::primitives::{Precision, SetPrecision};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Another mapping, with tables and what is computed of functions in `f32`; vectors, coordinates
/// and the geometry of cells stay `f64`, and so do sums over cells.
///
/// Differences of coordinates lose no digits so. A result is within some `1e-7` of what it would be
/// with all terms of its sums positive: enough for preconditioners, smoothers, and inner solves of
/// iterative refinement.
///
/// # Errors
/// A step that was refused: matrix instructions take operands of `f64`.
///
/// # Source
/// Higham & Mary 2022.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixedPrecision {}

impl fmt::Display for MixedPrecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("single precision inside")
    }
}

impl Arguments for MixedPrecision {
    const NAME: &'static str = "mixed_precision";
    const SUMMARY: &'static str =
        "Tables and functions in f32, vectors and geometry in f64: results to 6 digits.";
}

impl Combinator for MixedPrecision {
    fn apply(&self, on: &mut Work<'_>, then: &Mapping) -> Result<(), Stopped> {
        // last: steps before it compare tables to more digits than are left
        on.hand_on(then)?;
        let vars = single(on.schedule().kernel());
        Ok(on.schedule().apply(SetPrecision::new(vars, Precision::F32)).map(drop)?)
    }

    fn is_over_modes(&self, then: &Mapping) -> bool {
        then.is_over_modes()
    }

    fn show(&self, then: &Mapping, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{then}, {self}")
    }
}

/// Tables and temporaries of functions, and what these take of the geometry.
fn single(kernel: &Kernel) -> Vec<String> {
    let held = |v: &VarId| {
        let var = &kernel.vars[*v];
        let is_held = match var.kind {
            VarKind::Table(_) => true,
            VarKind::Temporary => var.space != AddressSpace::Global,
            VarKind::Param | VarKind::Argument(_) => false,
        };
        is_held && var.ty == ScalarType::F64
    };
    let geometry: BTreeSet<VarId> = kernel
        .insns
        .values()
        .filter(|insn| insn.tags.contains(stage::GEOMETRY))
        .map(|insn| insn.lhs.var)
        .collect();
    let read = |insn: &kingpost_ir::Insn| insn.reads().iter().map(|a| a.var).collect::<BTreeSet<_>>();
    // what the geometry is computed of, back to the coordinates
    let mut shape = geometry.clone();
    loop {
        let known = shape.len();
        for insn in kernel.insns.values().filter(|insn| shape.contains(&insn.lhs.var)).collect::<Vec<_>>() {
            shape.extend(read(insn).into_iter().filter(held));
        }
        if shape.len() == known {
            break;
        }
    }
    let of_functions = kernel.insns.values().filter(|insn| !shape.contains(&insn.lhs.var));
    let mut found: BTreeSet<VarId> = BTreeSet::new();
    for insn in of_functions {
        found.extend(Some(insn.lhs.var).filter(held));
        found.extend(
            read(insn).into_iter().filter(held).filter(|v| !shape.contains(v) || geometry.contains(v)),
        );
    }
    // variables that share a buffer have one type
    let storages: BTreeSet<&String> = found.iter().filter_map(|v| kernel.vars[*v].storage.as_ref()).collect();
    let sharers =
        kernel.vars.iter().filter(|(_, var)| var.storage.as_ref().is_some_and(|s| storages.contains(s)));
    let all: BTreeSet<VarId> = found.iter().copied().chain(sharers.map(|(v, _)| v)).collect();
    all.into_iter().map(|v| kernel.vars[v].name.clone()).collect()
}
