//! The 70 operator actions of document 000 on a device: checked, timed, beside the published times.

use crate::{
    KernelWork, LoadError, Loaded, Problem, ProblemError, Random, RelativeError, Strategy, device_model,
    kernel_work,
};
use purlin_codegen::{CodegenError, Options, generate};
use purlin_forms::form::Inputs;
use purlin_forms::lowering::ArgumentRole;
use purlin_forms::mesh::{Mesh, MeshError};
use purlin_forms::quadrature::QuadratureScheme;
use purlin_forms::{numbering::Numbering, reference};
use purlin_ir::interp::Value;
use purlin_ir::stats::StatsError;
use purlin_kernels::Operator;
use purlin_runtime::{Ceilings, Device, TimingOptions};
use purlin_transforms::RecipeError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// One operator action: an operator on Lagrange elements of a degree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The operator.
    pub operator: Operator,
    /// 2 or 3.
    pub dim: usize,
    /// Polynomial degree.
    pub degree: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}D.P{}", self.operator, self.dim, self.degree)
    }
}

impl Case {
    /// The 70 actions of document 000, section 6.2: five operators, triangles P1 to P8, tetrahedra P1 to P6.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let sizes = (1..=8).map(|p| (2, p)).chain((1..=6).map(|p| (3, p)));
        let cases = sizes.flat_map(|(dim, degree)| {
            Operator::ALL.into_iter().map(move |operator| Self { operator, dim, degree })
        });
        cases.collect()
    }

    /// Subdivisions per side of the meshes on which the times for the H200 NVL were published.
    #[must_use]
    pub fn published_subdivisions(&self) -> usize {
        if self.dim == 2 { 1280 } else { 56 }
    }

    /// The unit square or cube with `n` subdivisions per side.
    ///
    /// # Errors
    /// Too many vertices for 32 bits.
    pub fn mesh(&self, n: usize) -> Result<Mesh, MeshError> {
        if self.dim == 2 { Mesh::unit_square(n) } else { Mesh::unit_cube(n) }
    }
}

/// Why a case could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The mesh.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The form, its inputs or its reference.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The recipe was refused.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// No code.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
    /// No launch.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// No statistics.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// The published figures cannot be read.
    #[error("the published figures cannot be read in line {line}: {text}")]
    Published {
        /// Line, from 1.
        line: usize,
        /// Its text.
        text: String,
    },
}

/// One row of the results: a case on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the operator.
    pub operator: String,
    /// 2 or 3.
    pub dim: usize,
    /// Polynomial degree.
    pub degree: usize,
    /// Strategy that made the kernel.
    pub strategy: String,
    /// Cells of the mesh.
    pub n_cells: usize,
    /// Degrees of freedom of the result, components counted.
    pub n_dofs: usize,
    /// Largest relative error on a small mesh, against the reference everywhere.
    pub error_small: f64,
    /// Largest relative error on the measured mesh, against the reference at random degrees of freedom.
    pub error_sampled: f64,
    /// Timed runs after warm-up.
    pub runs: usize,
    /// Median of the runs, device events, seconds.
    pub median_s: f64,
    /// Fastest run, seconds.
    pub min_s: f64,
    /// Slowest run, seconds.
    pub max_s: f64,
    /// Operations of the untransformed kernel over the median, GFLOP/s.
    pub gflops: f64,
    /// Degrees of freedom over the median, GDoF/s.
    pub gdofs: f64,
    /// Part of document 000's roofline (equation 47) with this device's measured ceilings.
    pub of_document_roofline: f64,
    /// Part of the roofline of DRAM and FP64 peak alone.
    pub of_true_roofline: f64,
    /// Published time on an H200 NVL at 1785 MHz, seconds; 0 on any other than the published mesh.
    pub published_s: f64,
    /// Hash of the kernel that ran.
    pub kernel_hash: String,
    /// Name of the device.
    pub device: String,
    /// Driver of the device.
    pub driver: String,
    /// Highest clock of the device, MHz.
    pub clock_mhz: u32,
    /// Seconds since 1970 at the end of the measurement.
    pub unix_s: u64,
}

/// How a case is measured.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// How kernels are mapped.
    pub strategy: Strategy,
    /// Subdivisions per side of the measured mesh; the published ones if absent.
    pub subdivisions: Option<usize>,
    /// Degrees of freedom checked on the measured mesh.
    pub samples: usize,
    /// Warm-up and runs.
    pub timing: TimingOptions,
    /// Seed of inputs and samples.
    pub seed: u64,
}

/// Checks and times a case: on a small mesh against the reference everywhere, on the measured mesh at
/// random degrees of freedom; quadrature as in the document.
///
/// # Errors
/// Anything that keeps the case from running. A wrong result is no error: see [`Record::error_small`].
pub fn measure(
    device: &dyn Device,
    ceilings: &Ceilings,
    case: Case,
    options: &MeasureOptions,
) -> Result<Record, MeasureError> {
    let small = problem(case, if case.dim == 2 { 3 } else { 2 }, options.seed)?;
    let (kernel, _) = options.strategy.apply(&small.lowered.kernel)?;
    let program = generate(&kernel, device.info().backend.target(), &Options::default())?;
    let loaded = Loaded::new(device, &program, &small.memory)?;
    loaded.launch().map_err(LoadError::from)?;
    let error_small = small.relative_error(&loaded.f64s(small.output())?)?;
    drop((loaded, small));

    let n = options.subdivisions.unwrap_or_else(|| case.published_subdivisions());
    let large = problem(case, n, options.seed.wrapping_add(1))?;
    let loaded = Loaded::new(device, &program, &large.memory)?;
    loaded.launch().map_err(LoadError::from)?;
    let result = loaded.f64s(large.output())?;
    let error_sampled = sampled_error(&large, &result, options)?;
    drop(result);
    let timing = loaded.time(&options.timing).map_err(LoadError::from)?;
    let work = kernel_work(&large.lowered.kernel, large.memory.params())?;
    let info = device.info();
    let rate = work.flops as f64 / timing.median_s;
    let (document, true_roof) = rooflines(ceilings, work);
    Ok(Record {
        operator: case.operator.to_string(),
        dim: case.dim,
        degree: case.degree,
        strategy: options.strategy.to_string(),
        n_cells: large.mesh.n_cells(),
        n_dofs: large.n_dofs,
        error_small: error_small.max,
        error_sampled,
        runs: timing.runs,
        median_s: timing.median_s,
        min_s: timing.min_s,
        max_s: timing.max_s,
        gflops: rate / 1e9,
        gdofs: large.n_dofs as f64 / timing.median_s / 1e9,
        of_document_roofline: rate / document,
        of_true_roofline: rate / true_roof,
        published_s: if n == case.published_subdivisions() { published(case)?.unwrap_or(0.0) } else { 0.0 },
        kernel_hash: kernel.content_hash(),
        device: info.name.clone(),
        driver: info.driver.clone(),
        clock_mhz: info.clock_mhz,
        unix_s: std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs()),
    })
}

fn problem(case: Case, n: usize, seed: u64) -> Result<Problem, MeasureError> {
    let scheme = Some(QuadratureScheme::Document);
    Ok(Problem::operator(case.operator, case.degree, scheme, case.mesh(n)?, seed)?)
}

fn rooflines(ceilings: &Ceilings, work: KernelWork) -> (f64, f64) {
    let model = device_model(ceilings);
    (model.document_roofline(&work.into()), model.true_roofline(&work.into()))
}

/// Largest error at random degrees of freedom, relative to the largest reference value among them.
///
/// The cells around the chosen degrees of freedom are a mesh of their own; the reference on it has the
/// right values there, because nothing else contributes to them.
fn sampled_error(problem: &Problem, result: &[f64], options: &MeasureOptions) -> Result<f64, MeasureError> {
    let degree = problem.lowered.test.degree();
    let map = problem.lowered.arguments.iter().find(|a| a.role == ArgumentRole::DofMap { degree });
    let Some(Value::I32(dofs)) = map.and_then(|a| problem.memory.get(&a.name)) else { return Ok(f64::NAN) };
    let components = problem.lowered.test.components();
    let n_nodes = problem.n_dofs / components;
    let mut random = Random::new(options.seed ^ 0x5eed);
    let mut chosen: Vec<_> = (0..options.samples).map(|_| random.below(n_nodes as u64) as i32).collect();
    chosen.sort_unstable();
    let per_cell = dofs.len() / problem.mesh.n_cells();
    let around: Vec<usize> = dofs
        .chunks_exact(per_cell)
        .enumerate()
        .filter(|(_, cell)| cell.iter().any(|d| chosen.binary_search(d).is_ok()))
        .map(|(c, _)| c)
        .collect();
    let part = part_of(&problem.mesh, &around)?;
    let numbering = Numbering::new(&part, degree).map_err(ProblemError::from)?;
    // Vertices keep their order, so the k-th degree of freedom of a cell is the same in both meshes.
    let mut whole = vec![0_usize; numbering.n_dofs()];
    for (local, c) in around.iter().enumerate() {
        for (d, w) in numbering.cell(local).iter().zip(&dofs[c * per_cell..]) {
            whole[*d as usize] = *w as usize;
        }
    }
    let mut inputs = Inputs::new();
    for argument in &problem.lowered.arguments {
        if let ArgumentRole::Coefficient(coefficient) = &argument.role
            && let Some(Value::F64(values)) = problem.memory.get(&argument.name)
        {
            let m = coefficient.space.components();
            let restricted = whole.iter().flat_map(|w| values[w * m..(w + 1) * m].iter().copied());
            inputs = inputs.field(&coefficient.name, restricted.collect::<Vec<_>>());
        }
    }
    let expected = reference::action(&problem.lowered.form, &part, &inputs).map_err(ProblemError::from)?;
    let (mut found, mut wanted) = (Vec::new(), Vec::new());
    for (local, w) in whole.iter().enumerate() {
        if chosen.binary_search(&(*w as i32)).is_ok() {
            found.extend_from_slice(&result[w * components..(w + 1) * components]);
            wanted.extend_from_slice(&expected[local * components..(local + 1) * components]);
        }
    }
    Ok(RelativeError::between(&found, &wanted).max)
}

/// The mesh of some cells, with their vertices in the same order.
fn part_of(mesh: &Mesh, cells: &[usize]) -> Result<Mesh, MeshError> {
    let dim = mesh.shape().dim();
    let mut vertices: Vec<u32> = cells.iter().flat_map(|c| mesh.cell(*c).iter().copied()).collect();
    vertices.sort_unstable();
    vertices.dedup();
    let new: BTreeMap<u32, u32> = vertices.iter().enumerate().map(|(k, v)| (*v, k as u32)).collect();
    let coordinates = vertices.iter().flat_map(|v| mesh.vertex(*v)[..dim].to_vec()).collect();
    let cells = cells.iter().flat_map(|c| mesh.cell(*c).iter().map(|v| new[v]).collect::<Vec<_>>()).collect();
    Mesh::new(mesh.shape(), coordinates, cells, None)
}

/// The published time of a case on an H200 NVL, seconds.
///
/// # Errors
/// A row that is not of the table's form.
pub fn published(case: Case) -> Result<Option<f64>, MeasureError> {
    let text = include_str!("../results/published_actions.csv");
    let wanted = [case.operator.to_string(), case.dim.to_string(), case.degree.to_string()];
    for (k, row) in text.lines().enumerate().filter(|(_, row)| !row.starts_with('#')) {
        let fields: Vec<_> = row.split(',').collect();
        if fields.len() < 8 {
            return Err(MeasureError::Published { line: k + 1, text: row.into() });
        }
        if fields[..3].iter().zip(&wanted).all(|(a, b)| a.eq_ignore_ascii_case(b)) {
            let micros: f64 =
                fields[7].parse().map_err(|_| MeasureError::Published { line: k + 1, text: row.into() })?;
            return Ok(Some(micros * 1e-6));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_published_time() {
        let cases = Case::all();
        assert_eq!(cases.len(), 70);
        for case in cases {
            assert!(published(case).is_ok_and(|t| t.is_some_and(|t| t > 1e-6)), "{case}");
        }
    }

    #[test]
    fn a_few_cells_of_a_mesh_have_the_right_reference() -> Result<(), Box<dyn std::error::Error>> {
        for (dim, degree, operator) in [(2, 4, Operator::Elasticity), (3, 4, Operator::Helmholtz)] {
            let case = Case { operator, dim, degree };
            let problem = problem(case, 3, Random::fresh_seed())?;
            let options = MeasureOptions {
                strategy: Strategy::None,
                subdivisions: None,
                samples: 5,
                timing: TimingOptions::default(),
                seed: Random::fresh_seed(),
            };
            let mut exact = problem.reference()?;
            // 1e-13: two orders of summation of the same few cells in f64
            assert!(sampled_error(&problem, &exact, &options)? < 1e-13);
            exact.iter_mut().for_each(|x| *x *= 1.0 + 1e-6);
            assert!(sampled_error(&problem, &exact, &options)? > 1e-7);
        }
        Ok(())
    }
}
