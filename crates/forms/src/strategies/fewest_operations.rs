//! The fewest operations a cell: sums over quadrature points in advance where that takes fewer.

use super::{StrategyError, applied};
use crate::program::CellProgram;
use purlin_ir::{Kernel, VarKind};
use purlin_transforms::primitives::{PreEvaluateLoop, RemoveUnusedVars};
use purlin_transforms::schedule::Loop;
use purlin_transforms::{Recipe, Schedule};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Arguments of [`fewest_operations`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FewestOperations {
    /// What the tables of sums may occupy in all, bytes (the threshold `T_H` of Constraint 2).
    pub memory: u64,
    /// What is minimised.
    pub objective: Objective,
}

/// What [`fewest_operations`] minimises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Operations; tables stay below the threshold (Luporini et al. 2017, §4.1).
    #[default]
    Operations,
    /// Operations and cache misses: where tables exceed the threshold, each of their bytes costs as
    /// much as [`OPERATIONS_PER_BYTE`] operations.
    OperationsAndMisses,
}

/// Operations that take as long as a byte of a table that a cell reads from the next level of
/// cache: 16 operations a cycle (two fused multiply-adds of four lanes) and 32 bytes a cycle, what a
/// core of recent x86 processors does at best.
pub const OPERATIONS_PER_BYTE: f64 = 0.5;

/// Evaluates the sums of those quadrature loops in advance for which the objective is smaller then.
///
/// A set of loops is chosen among all sets (the bipartitions of Luporini et al. 2017, Algorithm 3,
/// by quadrature loops in place of monomials); operations are counted on the kernels themselves.
///
/// # Errors
/// A step that is refused; no refusal is one where a loop keeps its points.
///
/// # Source
/// Luporini et al. 2017, §3.3, §3.4 and §4.1.
pub fn fewest_operations(
    kernel: &Kernel,
    program: &CellProgram,
    args: &FewestOperations,
) -> Result<(Kernel, Recipe), StrategyError> {
    applied(kernel, |s| {
        // Algorithm 3, step 1: what may be evaluated in advance, and pays by itself
        let quads: Vec<&Loop> = program.blocks.iter().map(|b| &b.quad).collect();
        let possible = quads.into_iter().filter(|quad| s.clone().make(PreEvaluateLoop::new(*quad)).is_ok());
        let possible: Vec<&Loop> = possible.take(MAX_LOOPS).collect();
        // steps 2 to 4: all bipartitions, and the one that minimises the objective
        let mut best = (cost(s, args), s.clone());
        for chosen in 1..1_u32 << possible.len() {
            let mut tried = s.clone();
            for (_, quad) in possible.iter().enumerate().filter(|(k, _)| chosen >> k & 1 == 1) {
                tried.make(PreEvaluateLoop::new(*quad))?;
            }
            let cost = cost(&tried, args);
            if cost < best.0 {
                best = (cost, tried);
            }
        }
        // step 5
        *s = best.1;
        if !s.recipe().steps.is_empty() {
            s.apply(RemoveUnusedVars {})?;
        }
        Ok(())
    })
}

/// Most quadrature loops of which all sets are tried; what comes behind keeps its points.
const MAX_LOOPS: usize = 6;

/// The objective of a kernel, for one cell; what exceeds the threshold is never best.
fn cost(s: &Schedule, args: &FewestOperations) -> f64 {
    let params = s.kernel().vars.values().filter(|v| v.kind == VarKind::Param);
    let params: BTreeMap<String, i64> = params.map(|v| (v.name.clone(), 1)).collect();
    let Ok(counted) = s.analysis().statistics(&params) else { return f64::INFINITY };
    let bytes = table_bytes(s.kernel());
    let exceeds = bytes > args.memory && !s.recipe().steps.is_empty();
    counted.flops() as f64
        + match args.objective {
            _ if !exceeds => 0.0,
            Objective::Operations => f64::INFINITY,
            Objective::OperationsAndMisses => OPERATIONS_PER_BYTE * bytes as f64,
        }
}

/// Bytes of the tables that some instruction reads.
fn table_bytes(kernel: &Kernel) -> u64 {
    let is_read = |id| kernel.insns.values().any(|insn| insn.reads().iter().any(|a| a.var == id));
    let tables = kernel.vars.iter().filter(|(id, v)| matches!(v.kind, VarKind::Table(_)) && is_read(*id));
    let entries = tables.map(|(_, v)| {
        let entries: i64 = v.shape.iter().map(|e| e.as_constant().unwrap_or(1)).product();
        entries.unsigned_abs() * v.ty.bytes()
    });
    entries.sum()
}
