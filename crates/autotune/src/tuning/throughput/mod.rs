//! What a mapping of a form asks of a device, predicted from its generated code.
//!
//! The code of some groups of a launch is [walked](kingpost_codegen::traffic) with the maps of a mesh;
//! what they ask for on average is scaled to the launch that is timed. A [model](ThroughputModel)
//! makes seconds of it. Neither compiles or runs anything.

mod launches;
mod model;
#[cfg(test)]
mod tests;

pub use launches::predicted;
pub use model::{ThroughputModel, Verdict};

use super::{CaseMesh, FormCase};
use crate::tuning::transform_with_setup;
use crate::{Candidate, Refusal, Stage};
use kingpost_codegen::plan::HostExprError;
use kingpost_codegen::traffic::{GlobalAccesses, Integers, Traffic, traffic};
use kingpost_codegen::{ArgKind, Code, LaunchPlan, Options, PlacedKernel, Target};
use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;
use kingpost_interp::Memory;
use kingpost_run::{Problem, set_up_maps};
use kingpost_strategies::Mapping;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Bytes of a sector of global memory.
const SECTOR: f64 = 32.0;

/// Work-items of a sub-group of what was counted before they were said.
const fn of_32() -> u64 {
    32
}

/// What a launch asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Demand {
    /// Of all groups together, except for what is said of a work-item or a group.
    pub traffic: Traffic,
    /// Work-groups.
    pub groups: f64,
    /// Bytes of local memory of a group.
    pub local_bytes: u64,
    /// Work-items of a sub-group, in which instructions are counted.
    #[serde(default = "of_32")]
    pub sub_group: u64,
    /// Groups for which the kernel asks for registers, if it does.
    pub resident_groups: Option<u32>,
    /// Bytes that memory moves at least: of each array what groups touch, and not more than it has.
    pub memory_bytes: f64,
}

impl Demand {
    /// Matrix instructions of a work-item, in those of 16 by 8 by 8 and of 16 by 16 by 4, which take as
    /// many operations: one with half the terms, or of as many operations at half the rate, counts half.
    #[must_use]
    pub fn matrix_instructions(&self) -> f64 {
        let part = |name: &str| {
            if name.starts_with("mfma_16x16x4_f64") {
                return Some(1.0);
            }
            let rest = name.strip_prefix("mma_m16n8k")?;
            Some(rest.split('_').next()?.parse::<f64>().ok()? / 8.0)
        };
        self.traffic.calls.iter().map(|(name, n)| n * part(name).unwrap_or(0.0)).sum()
    }
}

/// Small meshes and the mesh that is timed, on which code is walked.
pub struct SampleMeshes<'c> {
    case: &'c FormCase,
    target: Target,
    /// For code that does not depend on the mesh.
    small: OnceLock<Option<Problem>>,
    /// For lists, whose room is that of this mesh.
    measured: OnceLock<Option<Problem>>,
}

/// The integers of a problem.
struct Maps {
    params: BTreeMap<String, i64>,
    arrays: BTreeMap<String, Vec<i64>>,
}

impl Maps {
    fn of(memory: &Memory) -> Self {
        let integers = memory.values().iter().filter(|(_, value)| value.ty().is_exact());
        let arrays = integers.filter_map(|(name, value)| Some((name.clone(), value.to_i64()?))).collect();
        Self { params: memory.params().clone(), arrays }
    }
}

impl Integers for Maps {
    fn param(&self, name: &str) -> Option<i64> {
        self.params.get(name).copied()
    }

    fn entry(&self, array: &str, offset: i64) -> Option<i64> {
        self.arrays.get(array)?.get(usize::try_from(offset).ok()?).copied()
    }
}

impl<'c> SampleMeshes<'c> {
    /// Meshes for a case, with code for a target.
    #[must_use]
    pub fn new(case: &'c FormCase, target: Target) -> Self {
        Self { case, target, small: OnceLock::new(), measured: OnceLock::new() }
    }

    fn problem(&self, mapping: &Mapping) -> Option<&Problem> {
        // maps and coordinates do not depend on the seed
        if mapping.needs().setup || matches!(self.case.mesh, CaseMesh::Given { .. }) {
            let made = || self.case.problem_to_measure(0).ok();
            return self.measured.get_or_init(made).as_ref();
        }
        let made = || {
            let divisions = match self.case.lowered.cell {
                CellShape::Interval => 32_768,
                CellShape::Triangle | CellShape::Quadrilateral => 128,
                CellShape::Tetrahedron => 18,
                CellShape::Hexahedron => 32,
                CellShape::Prism => 24,
                CellShape::Pyramid => 18,
            };
            let mesh = Mesh::unit(self.case.lowered.cell, divisions).ok()?;
            Problem::in_order(self.case.lowered.clone(), mesh, self.case.order(), 0).ok()
        };
        self.small.get_or_init(made).as_ref()
    }

    /// What a mapping of the case asks for.
    ///
    /// # Errors
    /// Which stage refused, and why.
    pub fn demand(&self, mapping: &Mapping) -> Result<Demand, Refusal> {
        let refused = |e: &dyn std::fmt::Display| Refusal::new(Stage::Generate, e);
        let problem = self.problem(mapping).ok_or_else(|| refused(&"no mesh to walk the code on"))?;
        let (kernel, _, definitions) = transform_with_setup(&self.case.lowered, mapping)?;
        let mut memory = problem.memory.clone();
        set_up_maps(&definitions, &mut memory).map_err(|e| refused(&e))?;
        let placed = PlacedKernel::new(&kernel).map_err(|e| refused(&e))?;
        let made = placed.program_and_codes(self.target, &Options::default());
        let (program, codes) = made.map_err(|e| refused(&e))?;
        let [code] = codes.as_slice() else { return Err(refused(&"a form takes several launches")) };
        let cells = self.case.workload.size as f64 / problem.mesh.n_cells() as f64;
        let along = |grid: [i64; 3]| vec![[grid[0] / 3, 0, 0], [2 * grid[0] / 3, 0, 0]];
        Demand::of(code, &program.plan, &Maps::of(&memory), cells, &along).map_err(|e| refused(&e))
    }
}

impl Demand {
    /// What a launch asks for by its code, from some of its groups: `cells` launches of these sizes.
    fn of(
        code: &Code,
        plan: &LaunchPlan,
        maps: &Maps,
        cells: f64,
        sampled: &dyn Fn([i64; 3]) -> Vec<[i64; 3]>,
    ) -> Result<Self, HostExprError> {
        let mut grid = [1; 3];
        for (extent, expression) in grid.iter_mut().zip(&plan.grid) {
            *extent = expression.eval(&maps.params)?;
        }
        let sampled: Vec<Traffic> =
            sampled(grid).into_iter().map(|group| traffic(code, group, maps)).collect();
        let groups = grid.iter().map(|extent| (*extent).max(0)).product::<i64>() as f64;
        let traffic = scaled(&sampled, groups * cells / sampled.len() as f64);
        let memory_bytes = plan.args.iter().filter_map(|arg| match &arg.kind {
            ArgKind::Buffer { len, .. } => {
                let all = len.eval(&maps.params).ok()? as f64 * arg.ty.bytes() as f64 * cells;
                Some(all.min(SECTOR * traffic.arrays.get(&arg.name)?))
            }
            ArgKind::Param | ArgKind::Scalar | ArgKind::Table(_) | ArgKind::Scratch { .. } => None,
        });
        let memory_bytes = memory_bytes.sum();
        Ok(Self {
            traffic,
            groups: groups * cells,
            local_bytes: code.local_bytes,
            sub_group: code.sub_group.width().into(),
            resident_groups: code.function.resident_groups,
            memory_bytes,
        })
    }
}

/// What mappings of a case ask for in code for a target, each with the refusal of those that cannot be
/// generated.
#[must_use]
pub fn demands(case: &FormCase, mappings: &[Mapping], target: Target) -> Vec<Result<Demand, Refusal>> {
    let meshes = SampleMeshes::new(case, target);
    mappings.par_iter().map(|mapping| meshes.demand(mapping)).collect()
}

/// Candidates in the order of predicted times, each with its place and its time; those that spill come
/// after all others, and those of which nothing is predicted last, in the order that they had.
#[must_use]
pub fn by_prediction(
    candidates: Vec<Candidate<Mapping>>,
    case: &FormCase,
    model: &ThroughputModel<'_>,
) -> Vec<Candidate<Mapping>> {
    let mappings: Vec<Mapping> = candidates.iter().map(|c| c.parameters.clone()).collect();
    let verdicts =
        demands(case, &mappings, model.target()).into_iter().map(|d| d.ok().map(|d| model.verdict(&d)));
    let mut judged: Vec<(Option<Verdict>, Candidate<Mapping>)> = verdicts.zip(candidates).collect();
    judged.sort_by(|(a, _), (b, _)| match (a, b) {
        (Some(a), Some(b)) => a.order(b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    let placed = (1..).zip(judged).map(|(rank, (verdict, candidate))| match verdict {
        Some(v) => Candidate { rank: Some(rank), predicted_s: Some(v.seconds), ..candidate },
        None => candidate,
    });
    placed.collect()
}

/// The sum of groups, times a factor; what is said of a work-item or a group is the largest.
fn scaled(groups: &[Traffic], factor: f64) -> Traffic {
    let sum = |f: &dyn Fn(&Traffic) -> f64| groups.iter().map(f).sum::<f64>() * factor;
    let global = |f: &dyn Fn(&Traffic) -> GlobalAccesses| GlobalAccesses {
        instructions: sum(&|t| f(t).instructions),
        sectors: sum(&|t| f(t).sectors),
        distinct: sum(&|t| f(t).distinct),
        elements: sum(&|t| f(t).elements),
    };
    let mut calls: BTreeMap<String, f64> = BTreeMap::new();
    let mut arrays: BTreeMap<String, f64> = BTreeMap::new();
    for t in groups {
        for (name, times) in &t.calls {
            *calls.entry(name.clone()).or_default() += times * factor;
        }
        for (name, sectors) in &t.arrays {
            *arrays.entry(name.clone()).or_default() += sectors * factor;
        }
    }
    Traffic {
        arithmetic: sum(&|t| t.arithmetic),
        functions: sum(&|t| t.functions),
        integer: sum(&|t| t.integer),
        calls,
        arrays,
        reads: global(&|t| t.reads),
        writes: global(&|t| t.writes),
        reductions: global(&|t| t.reductions),
        local_instructions: sum(&|t| t.local_instructions),
        local_wavefronts: sum(&|t| t.local_wavefronts),
        local_atomics: sum(&|t| t.local_atomics),
        local_rounds: sum(&|t| t.local_rounds),
        constant_reads: sum(&|t| t.constant_reads),
        stack: sum(&|t| t.stack),
        indexed: sum(&|t| t.indexed),
        code: groups.iter().map(|t| t.code).max().unwrap_or(0),
        literals: sum(&|t| t.literals),
        barriers: sum(&|t| t.barriers),
        live_words: groups.iter().map(|t| t.live_words).max().unwrap_or(0),
        array_words: groups.iter().map(|t| t.array_words).max().unwrap_or(0),
        sub_groups: groups.iter().map(|t| t.sub_groups).max().unwrap_or(0),
        complete: groups.iter().all(|t| t.complete),
    }
}
