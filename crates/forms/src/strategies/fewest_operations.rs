//! The fewest operations a cell: sums over quadrature points in advance where that takes fewer.

use super::sharing::eliminate_sharing;
use super::{StrategyError, applied};
use crate::program::CellProgram;
use purlin_ir::{Kernel, VarKind};
use purlin_transforms::primitives::{MirrorTriangle, PreEvaluateLoop, RemoveUnusedVars, SumMoments};
use purlin_transforms::schedule::Loop;
use purlin_transforms::{Recipe, Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

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

/// A choice of quadrature loops whose sums are evaluated in advance, and what it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Bipartition {
    /// The loops that are evaluated in advance.
    pub loops: Vec<String>,
    /// The steps that take products of tables out of the others.
    pub moments: Vec<SumMoments>,
    /// Operations of a cell.
    pub operations: u64,
    /// Tables that are read, bytes.
    pub bytes: u64,
    /// The objective; infinite where tables exceed the threshold.
    pub cost: f64,
}

impl fmt::Display for Bipartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.loops.as_slice() {
            [] => write!(f, "all loops keep their points")?,
            loops => write!(f, "in advance {}", loops.join(", "))?,
        }
        for step in &self.moments {
            write!(f, ", {step}")?;
        }
        write!(f, ": {} operations, tables of {} bytes", self.operations, self.bytes)?;
        if self.cost.is_infinite() { write!(f, ", above the threshold") } else { Ok(()) }
    }
}

/// Evaluates the sums of those quadrature loops in advance for which the objective is smaller then,
/// and eliminates the sharing of what is left.
///
/// Of a symmetric matrix, one triangle is computed. A set of loops is chosen among all sets (the
/// bipartitions of Luporini et al. 2017, Algorithm 3, by quadrature loops in place of monomials).
/// Beyond the document, the other loops sum moments of the factors that change with the point, where
/// this takes fewer operations. Operations are counted on the kernels themselves.
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
    let (kernel, recipe) = applied(kernel, |s| {
        mirror(s, program);
        // step 4
        let all = tried(s, program, args)?.into_iter();
        if let Some((_, best)) = all.reduce(|a, b| if b.0.cost < a.0.cost { b } else { a }) {
            *s = best;
        }
        // step 5
        let _ = s.apply(RemoveUnusedVars {}); // refused where all are used
        Ok(())
    })?;
    let (eliminated, more, _) = eliminate_sharing(&kernel)?;
    // mappings that read roles do so of what had them
    match CellProgram::read(&kernel).is_err() || CellProgram::read(&eliminated).is_ok() {
        true => Ok((eliminated, recipe.followed_by(more))),
        false => Ok((kernel, recipe)),
    }
}

/// Computes one triangle of each symmetric matrix.
fn mirror(s: &mut Schedule, program: &CellProgram) {
    for result in program.results.iter().filter(|r| r.columns.is_some()) {
        // refused where the matrix is not symmetric
        let _ = s.apply(MirrorTriangle::new(result.array.name()));
    }
}

/// The sets of loops that [`fewest_operations`] chooses from, in the order in which they are tried.
///
/// # Errors
/// A step that is refused.
///
/// # Source
/// Luporini et al. 2017, §4.1, Algorithm 3, steps 1 to 3.
pub fn bipartitions(
    kernel: &Kernel,
    program: &CellProgram,
    args: &FewestOperations,
) -> Result<Vec<Bipartition>, StrategyError> {
    let mut found = Vec::new();
    applied(kernel, |s| {
        mirror(s, program);
        found = tried(s, program, args)?.into_iter().map(|(choice, _)| choice).collect();
        Ok(())
    })?;
    Ok(found)
}

/// All bipartitions, and the kernels that they make.
fn tried(
    s: &Schedule,
    program: &CellProgram,
    args: &FewestOperations,
) -> Result<Vec<(Bipartition, Schedule)>, TransformError> {
    // step 1: what may be evaluated in advance
    let quads: Vec<&Loop> = program.blocks.iter().map(|b| &b.quad).collect();
    let possible = quads.into_iter().filter(|quad| s.clone().make(PreEvaluateLoop::new(*quad)).is_ok());
    let possible: Vec<&Loop> = possible.take(MAX_LOOPS).collect();
    // steps 2 and 3
    let mut all = Vec::new();
    for chosen in 0..1_u32 << possible.len() {
        let mut made = s.clone();
        let mut loops = Vec::new();
        for (_, quad) in possible.iter().enumerate().filter(|(k, _)| chosen >> k & 1 == 1) {
            made.make(PreEvaluateLoop::new(*quad))?;
            loops.push(format!("`{}`", quad.name()));
        }
        let with_moments = moments(&made, program);
        let (operations, bytes, cost) = cost(s, &made, args);
        let moments = Vec::new();
        all.push((Bipartition { loops: loops.clone(), moments, operations, bytes, cost }, made));
        if let Some((moments, made)) = with_moments {
            let (operations, bytes, cost) = self::cost(s, &made, args);
            all.push((Bipartition { loops, moments, operations, bytes, cost }, made));
        }
    }
    Ok(all)
}

/// The kernel with moments in the place of products of tables, wherever that takes fewer operations,
/// and the steps; none where it never does.
fn moments(s: &Schedule, program: &CellProgram) -> Option<(Vec<SumMoments>, Schedule)> {
    let (mut steps, mut best) = (Vec::new(), s.clone());
    let mut least = operations(s);
    for quad in program.blocks.iter().map(|b| b.quad.name()).filter(|q| s.kernel().iname(q).is_some()) {
        for step in SumMoments::possible(s.kernel(), quad) {
            let mut tried = best.clone();
            if tried.make(step.clone()).is_ok() && operations(&tried) < least {
                least = operations(&tried);
                best = tried;
                steps.push(step);
            }
        }
    }
    (!steps.is_empty()).then_some((steps, best))
}

/// Most quadrature loops of which all sets are tried; what comes behind keeps its points.
const MAX_LOOPS: usize = 6;

/// Operations of a kernel for one cell; as many as there can be where they cannot be counted.
fn operations(s: &Schedule) -> u64 {
    let params = s.kernel().vars.values().filter(|v| v.kind == VarKind::Param);
    let params: BTreeMap<String, i64> = params.map(|v| (v.name.clone(), 1)).collect();
    s.analysis().statistics(&params).map_or(u64::MAX, |counted| counted.flops())
}

/// Operations, bytes of tables, and the objective of a kernel, for one cell; what exceeds the
/// threshold is never best, unless it is the kernel as it was.
fn cost(before: &Schedule, s: &Schedule, args: &FewestOperations) -> (u64, u64, f64) {
    let (operations, bytes) = (operations(s), table_bytes(s.kernel()));
    let exceeds = bytes > args.memory && s.recipe().steps.len() > before.recipe().steps.len();
    let misses = match args.objective {
        _ if !exceeds => 0.0,
        Objective::Operations => f64::INFINITY,
        Objective::OperationsAndMisses => OPERATIONS_PER_BYTE * bytes as f64,
    };
    (operations, bytes, operations as f64 + misses)
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
