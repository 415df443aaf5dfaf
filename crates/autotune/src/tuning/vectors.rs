//! Mappings for a processor: cells in the lanes of its vectors.

use super::Candidate;
use crate::kernel_work;
use kingpost_forms::CellKernel;
use kingpost_forms::program::{CellProgram, ElementResult};
use kingpost_forms::tabulated::IntegralType;
use kingpost_ir::{Kernel, VarKind};
use kingpost_runtime::DeviceInfo;
use kingpost_strategies::{Combinator, Mapping};
use kingpost_strategies::{
    ConstantCells, FactorisedCells, FewestOperations, LoopLanes, Objective, PointTiles, SingleCell,
};
use std::collections::BTreeMap;

/// How many times fewer operations the [fewest](HostVectors::fewest) have to be for that mapping to be
/// the default for the matrices of cells: its sums are longer chains of loads, and tiles of points run
/// more operations in a cycle. See `results/cpu/luporini_2017.md`.
const FEWER: f64 = 1.5;

/// Nodes of the expressions of a kernel up to which the [fewest](HostVectors::fewest) operations are
/// counted for a default. Sums of products are written out for that. Sums of matrices of elasticity
/// (1,491 nodes) take seconds in a build that is not optimised, those of hyperelasticity (4,173) minutes.
const COUNTED_NODES: usize = 4000;

/// What the vectors of a processor hold.
///
/// A vector of a mapping is one of the processor: GCC keeps wider ones in memory. On AVX2, four cells
/// of Helmholtz matrices of degree 2 with one function take 0.25 of the time of eight, of matrices of
/// elasticity 0.28 (AMD EPYC with AVX2, GCC 12, one core, 2026-11-25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostVectors {
    /// 64-bit reals of a vector, and so cells of a group.
    pub lanes: u64,
    /// Half of its vector registers, sums of a tile of points.
    pub sums: u64,
    /// The cache of a core, bytes: what tables of sums may occupy.
    pub memory: u64,
}

impl HostVectors {
    /// The vectors of a device; AVX-512 where it does not say.
    #[must_use]
    pub fn of(device: &DeviceInfo) -> Self {
        let bytes = if device.vector_bytes == 0 { 64 } else { device.vector_bytes };
        // AVX-512 and NEON have 32 registers, AVX2 and SSE 16
        let sums = if bytes >= 64 || device.arch == "aarch64" { 16 } else { 8 };
        let memory = match device.core_cache_bytes {
            0 => FewestOperations::MEMORY,
            known => known,
        };
        Self { lanes: (bytes / 8).clamp(2, 8), sums, memory }
    }

    /// Tiles of quadrature points. Tables are part of the source, so that compilers know their entries.
    #[must_use]
    pub fn tiles(&self) -> Mapping {
        Mapping::from(PointTiles { cells: self.lanes, sums: self.sums })
    }

    /// The same for kernels that have no cell program: those of texts without the tags of one.
    #[must_use]
    pub fn of_any(&self) -> Mapping {
        Mapping::from(SingleCell { cells: self.lanes })
    }

    /// The same with the sums of tensor products axis by axis: the Laplace action of Q1 on hexahedra
    /// takes 0.66 of the time of tiles of points, of Q3 0.30, and no form on quadrilaterals more than
    /// 1.1 (AMD EPYC with AVX-512, one core, 2026-11-22).
    #[must_use]
    pub fn factorised(&self) -> Mapping {
        Mapping::from(FactorisedCells { cells: self.lanes })
    }

    /// What suits facets, of which a mesh has few: one at a time. Each reads tables of its own number, so
    /// that cells in lanes gather them, and GCC takes 3.8 s for that code and 0.2 s for this one.
    ///
    /// Vectors stay as they are: upwind fluxes of DG2 on tetrahedra take 0.72 of the time in lanes,
    /// penalties 0.88, an impedance in N1curl 0.97. Matrices of several results, or between two
    /// sides, have sums enough for tiles of points: upwind fluxes take 0.47 of the time in lanes,
    /// penalties of DG1 0.82, of DG2 on triangles 0.74. Matrices of one side whose columns fill a
    /// vector have, too: masses of P2 and P3 take 0.81 and 0.57, boundary terms of Nitsche 0.70 of
    /// P2 and 0.04 of P3, whose sums in lanes leave the cache. Shorter rows take 1.14 to 1.2, and
    /// columns of components, which are apart, 1.5 to 1.7: they stay in lanes (one core with
    /// AVX-512, GCC 12, 2026-11-28).
    #[must_use]
    pub fn facets(&self, form: &dyn CellKernel) -> Option<Mapping> {
        let program = form.program().ok().filter(|program| !program.shares_tables)?;
        let mut matrices = program.results.iter().filter(|result| result.columns.is_some());
        let (first, has_sides) = (matrices.next(), form.over() == Some(IntegralType::InteriorFacet));
        match (first, matrices.next()) {
            _ if program.results.is_empty() => None,
            (None, _) => Some(ConstantCells { cells: 1 }.into()),
            (Some(only), None) if !has_sides && !self.columns_fill_vectors(&program, only) => None,
            (Some(_), _) => Some(PointTiles { cells: 1, sums: 2 * self.sums }.into()),
        }
    }

    /// Whether the columns of a matrix of cells lie side by side, and are a vector at least.
    fn columns_fill_vectors(&self, program: &CellProgram, matrix: &ElementResult) -> bool {
        let mut products = program.blocks.iter().flat_map(|block| &block.products);
        // a loop over all rows is one over a scalar function, whose columns are all of the matrix
        products.all(|products| products.count == matrix.count)
            && matrix.columns.is_some_and(|columns| columns.unsigned_abs() >= self.lanes)
    }

    /// The fewest operations a cell, with tiles of the points that are left.
    #[must_use]
    pub fn fewest(&self, objective: Objective) -> Mapping {
        FewestOperations { memory: self.memory, objective }.before(self.tiles())
    }

    /// The fewest operations, where they are many times fewer for the matrices of cells.
    #[must_use]
    pub fn fewest_if_worthwhile(&self, form: &dyn CellKernel) -> Option<Mapping> {
        if !has_matrices(form) || nodes(form.kernel()) > COUNTED_NODES {
            return None;
        }
        let fewest = self.fewest(Objective::Operations);
        let flops = |mapping: &Mapping| Some(operations(&mapping.apply(form).ok()?.0, self.lanes)? as f64);
        let is_worthwhile = flops(&self.tiles())? >= FEWER * flops(&fewest)?;
        is_worthwhile.then_some(fewest)
    }

    /// What is tried on a processor besides what is tried on every device: cells in lanes, more and
    /// fewer sums; for matrices of cells the fewest operations by either objective, and loops over
    /// columns in lanes.
    #[must_use]
    pub fn candidates(&self, form: &dyn CellKernel) -> Vec<Candidate> {
        if form.program().is_err() {
            return Vec::new();
        }
        let tiles = |sums| Mapping::from(PointTiles { cells: self.lanes, sums });
        let mut mappings = vec![self.tiles(), tiles(2 * self.sums), tiles(self.sums / 2)];
        if has_matrices(form) {
            mappings.push(self.fewest(Objective::Operations));
            mappings.push(self.fewest(Objective::OperationsAndMisses));
            mappings.push(Mapping::from(LoopLanes { lanes: self.lanes }));
        }
        mappings.into_iter().map(Candidate::unranked).collect()
    }
}

/// Whether a result is a matrix of each cell.
fn has_matrices(form: &dyn CellKernel) -> bool {
    form.program().is_ok_and(|program| program.results.iter().any(|result| result.columns.is_some()))
}

/// Nodes of the expressions of a kernel.
fn nodes(kernel: &Kernel) -> usize {
    let mut count = 0;
    for insn in kernel.insns.values() {
        insn.rhs.for_each(&mut |_| count += 1);
    }
    count
}

/// Operations of a group of cells; none where they cannot be counted.
fn operations(kernel: &Kernel, cells: u64) -> Option<u64> {
    let params = kernel.vars.values().filter(|v| v.kind == VarKind::Param);
    let params: BTreeMap<String, i64> = params.map(|v| (v.name.clone(), cells as i64)).collect();
    kernel_work(kernel, &params).ok().map(|work| work.flops)
}
