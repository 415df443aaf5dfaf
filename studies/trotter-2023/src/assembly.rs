//! Checks and times the assembly of the matrix of Poisson's equation.

use crate::candidates::lowered;
use crate::record::Assembled;
use crate::{Order, Source};
use kingpost::codegen::{CodegenError, Options, generate};
use kingpost::forms::MappingError;
use kingpost::forms::element::CellShape;
use kingpost::forms::form::{FormError, Inputs, action, coefficient};
use kingpost::forms::lowering::{LoweringOptions, MatrixResult, MeshForm, NumberedMesh};
use kingpost::forms::mesh::{Mesh, MeshError};
use kingpost::forms::numbering::{NumberingError, NumberingOrder};
use kingpost::forms::reference;
use kingpost::forms::sparse::CsrPattern;
use kingpost::forms::strategies::SingleCell;
use kingpost::kernels::BoundaryValueProblem;
use kingpost::runtime::{Buffer, Device, RuntimeError, Timing, TimingOptions, buffer_of, download_values};
use kingpost::solve::{
    Arrays, AssemblyStrategy, Call, CsrOperator, DeviceForm, FormPrograms, MatrixAssembly, Operator, Queue,
    SolveError, run,
};
use kingpost::{CsrMatrix, Mapping, Random};
use std::fmt;
use std::time::Instant;

/// Largest difference that passes: sums of a dozen products over two dozen cells.
pub const TOLERANCE: f64 = 1e-12;
const PROBLEM: BoundaryValueProblem = BoundaryValueProblem::Poisson;
const ORDER: NumberingOrder = NumberingOrder::OF_MATRICES;

/// Why there is no time.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The form has no kernel.
    #[error(transparent)]
    Form(#[from] FormError),
    /// No mesh.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// No numbering of the degrees of freedom.
    #[error(transparent)]
    Numbering(#[from] NumberingError),
    /// The device refuses.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The matrix cannot be set up.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// The kernel is not for the mapping.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// There is no code.
    #[error(transparent)]
    Code(#[from] CodegenError),
    /// A wrong result.
    #[error("{what} is off by {error:.1e} of the largest number, needed {needed:.0e}")]
    Wrong {
        /// What was compared.
        what: &'static str,
        /// The difference.
        error: f64,
        /// The largest one that passes.
        needed: f64,
    },
}

/// A mesh with what assemblies share.
pub struct Prepared {
    mesh: Mesh,
    degree: usize,
    source: Source,
    order: Order,
    /// Entry by entry, if the mesh is small.
    reference: Option<Vec<Vec<f64>>>,
    x: Vec<f64>,
    /// The action of the form on `x` without a matrix.
    product: Vec<f64>,
    pattern: Vec<CsrPattern>,
    pattern_s: f64,
}

fn largest_difference<'n>(pairs: impl Iterator<Item = (&'n f64, &'n f64)>) -> f64 {
    let (mut largest, mut off) = (0.0_f64, 0.0_f64);
    for (found, expected) in pairs {
        largest = largest.max(expected.abs());
        let d = (found - expected).abs();
        off = off.max(if d.is_nan() { f64::INFINITY } else { d });
    }
    off / largest
}

/// What adds the action of the form on a vector.
fn action_form(degree: usize) -> Result<MeshForm, FormError> {
    let space = PROBLEM.space(CellShape::Tetrahedron, degree);
    let form = action(PROBLEM.tangent(&space), coefficient("du", &space));
    Ok(MeshForm::new(&form, &LoweringOptions::new("action"))?.in_order(ORDER))
}

/// The action of the form on a vector, on a device, without a matrix.
fn product(device: &dyn Device, mesh: &Mesh, degree: usize, x: &[f64]) -> Result<Vec<f64>, MeasureError> {
    let cells = Mapping::from(SingleCell { cells: 32 });
    let programs = FormPrograms::compile(device, action_form(degree)?, &|_| vec![cells.clone()])?;
    let inputs = Inputs::new().in_order(ORDER).field("du", x.to_vec()).of(programs.form().form());
    let form = DeviceForm::new(device, &programs, mesh, &inputs, &[], &["du"], &mut Arrays::default())?;
    let at = buffer_of(device, x)?;
    let y = buffer_of(device, &vec![0.0; x.len()])?;
    let mut calls = Vec::new();
    form.add_to(&[&at], &y, &mut calls);
    run(device, &calls)?;
    Ok(download_values(device, &y)?)
}

/// All columns of the matrix by an evaluation that shares no code with kernels.
fn columns(mesh: &Mesh, degree: usize, n: usize) -> Result<Vec<Vec<f64>>, MeasureError> {
    let form = action_form(degree)?;
    let column = |j: usize| {
        let mut unit = vec![0.0; n];
        unit[j] = 1.0;
        Ok(reference::action(
            form.form(),
            mesh,
            &Inputs::new().in_order(ORDER).field("du", unit).of(form.form()),
        )?)
    };
    (0..n).map(column).collect()
}

impl Prepared {
    /// The mesh of a source in an order; with the matrix by the reference if it is to be compared entry by
    /// entry.
    ///
    /// # Errors
    /// A device that refuses the action.
    pub fn new(
        device: &dyn Device,
        (source, mesh, order): (&Source, &Mesh, Order),
        degree: usize,
        entry_by_entry: bool,
        seed: u64,
    ) -> Result<Self, MeasureError> {
        let mesh = order.of(mesh.clone(), seed)?;
        let start = Instant::now();
        let pattern = lowered(PROBLEM, degree, MatrixResult::Sparse)?.patterns(&mesh)?;
        let pattern_s = start.elapsed().as_secs_f64();
        let n = pattern.first().map_or(0, |p| p.row_starts.len() - 1);
        let x = Random::new(seed).numbers(n);
        let product = product(device, &mesh, degree, &x)?;
        let reference = if entry_by_entry { Some(columns(&mesh, degree, n)?) } else { None };
        let source = source.clone();
        Ok(Self { mesh, degree, source, order, reference, x, product, pattern, pattern_s })
    }

    /// A uniform mesh of a given number of divisions a side, as [`Prepared::new`] takes it.
    ///
    /// # Errors
    /// No such mesh; as [`Prepared::new`].
    pub fn cube(
        device: &dyn Device,
        divisions: usize,
        degree: usize,
        entry_by_entry: bool,
        seed: u64,
    ) -> Result<Self, MeasureError> {
        let mesh = Mesh::unit_cube(divisions)?;
        Self::new(device, (&Source::Cube(divisions), &mesh, Order::Made), degree, entry_by_entry, seed)
    }

    fn unknowns(&self) -> usize {
        self.x.len()
    }

    /// The mesh.
    #[must_use]
    pub const fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// The patterns of the matrix, one a kernel.
    #[must_use]
    pub fn patterns(&self) -> &[CsrPattern] {
        &self.pattern
    }

    /// Divisions of a side; zero of a mesh from a file.
    #[must_use]
    pub const fn divisions(&self) -> usize {
        self.source.divisions()
    }
}

impl fmt::Display for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}, {}", self.degree, self.source)?;
        if self.order.is_made() { Ok(()) } else { write!(f, ", {} order", self.order) }
    }
}

/// A matrix on a device and what assembles it.
struct OnDevice {
    programs: FormPrograms,
    form: MatrixAssembly,
    matrix: CsrOperator,
    setup_s: f64,
}

impl OnDevice {
    fn new(
        device: &dyn Device,
        on: &Prepared,
        strategy: AssemblyStrategy,
        mapping: &Mapping,
    ) -> Result<Self, MeasureError> {
        let [first, ..] = &on.pattern[..] else {
            return Err(FormError::Bug("a bilinear form without a pattern".into()).into());
        };
        let of_pattern = lowered(PROBLEM, on.degree, MatrixResult::Sparse)?;
        let matrix = strategy.matrix_of(&of_pattern, &NumberedMesh::new(&on.mesh), first)?;
        let form = lowered(PROBLEM, on.degree, matrix)?;
        let programs = FormPrograms::compile(device, form, &|_| vec![mapping.clone()])?;
        let start = Instant::now();
        let inputs = Inputs::new().in_order(ORDER).of(programs.form().form());
        let arrays = &mut Arrays::default();
        let refused = |e: kingpost::forms::sparse::PatternError| FormError::Discretisation(e.to_string());
        let half: Vec<CsrPattern> = match strategy {
            AssemblyStrategy::SymmetricHalf => {
                on.pattern.iter().map(|p| p.clone().upper().map_err(refused)).collect::<Result<_, _>>()?
            }
            AssemblyStrategy::Partial
            | AssemblyStrategy::Full
            | AssemblyStrategy::LookupTable
            | AssemblyStrategy::Coloured
            | AssemblyStrategy::Rowwise
            | AssemblyStrategy::OwnedRows(_) => Vec::new(),
        };
        let patterns = if half.is_empty() { &on.pattern } else { &half };
        let form = MatrixAssembly::new(device, &programs, &on.mesh, &inputs, patterns, &[], arrays)?;
        let [pattern, ..] = &patterns[..] else {
            return Err(FormError::Bug("a bilinear form without a pattern".into()).into());
        };
        let matrix = CsrOperator::new(device, pattern)?;
        let setup_s = on.pattern_s + start.elapsed().as_secs_f64();
        Ok(Self { programs, form, matrix, setup_s })
    }

    fn calls(&self) -> Vec<Call<'_>> {
        let mut calls = Vec::new();
        self.form.assemble(&[], self.matrix.values(), &mut calls);
        calls
    }

    /// The differences of entries and of a product from what they must be.
    fn errors(&self, device: &dyn Device, on: &Prepared) -> Result<(f64, f64), MeasureError> {
        // again over what is there
        run(device, &self.calls())?;
        run(device, &self.calls())?;
        let x: Buffer = buffer_of(device, &on.x)?;
        let y = device.allocate(8 * on.unknowns() as u64)?;
        let mut queue = Queue::new();
        self.matrix.apply(&x, &y, &mut queue);
        queue.run(device)?;
        let found: Vec<f64> = download_values(device, &y)?;
        let product = largest_difference(found.iter().zip(&on.product));
        let Some(reference) = &on.reference else { return Ok((0.0, product)) };
        let pattern = &on.pattern[0];
        let is_half = self.matrix.n_entries() < pattern.columns.len();
        let (row_starts, columns) = match is_half {
            true => pattern.upper_rows(),
            false => (pattern.row_starts.clone(), pattern.columns.clone()),
        };
        let values = download_values(device, self.matrix.values())?;
        let matrix = CsrMatrix { n_columns: on.unknowns(), row_starts, columns, values };
        let mut dense = vec![vec![0.0; on.unknowns()]; on.unknowns()];
        for (i, (column, value)) in
            (0..on.unknowns()).flat_map(|i| matrix.row(i).map(move |entry| (i, entry)))
        {
            dense[i][column] = value;
            if is_half {
                dense[column][i] = value;
            }
        }
        let expected = (0..on.unknowns()).flat_map(|i| reference.iter().map(move |column| &column[i]));
        Ok((largest_difference(dense.iter().flatten().zip(expected)), product))
    }
}

fn check(what: &'static str, error: f64) -> Result<(), MeasureError> {
    if error <= TOLERANCE { Ok(()) } else { Err(MeasureError::Wrong { what, error, needed: TOLERANCE }) }
}

/// BLAKE3 hash of the source of the form's kernels.
fn source(device: &dyn Device, form: &MeshForm, mapping: &Mapping) -> Result<String, MeasureError> {
    let mut source = String::new();
    for kernel in form.kernels() {
        let (kernel, _) = mapping.apply(kernel)?;
        source += &generate(&kernel, device.info().backend.target(), &Options::default())?.source;
    }
    Ok(blake3::hash(source.as_bytes()).to_hex().to_string())
}

/// Compares an assembly on a small mesh entry by entry, on a large one by a product, and times it there.
///
/// # Errors
/// A mapping that the kernel or the device cannot take, no memory, a wrong result.
pub fn measure(
    device: &dyn Device,
    small: &Prepared,
    large: &Prepared,
    strategy: AssemblyStrategy,
    mapping: &Mapping,
) -> Result<Assembled, MeasureError> {
    let (error, of_small) = OnDevice::new(device, small, strategy, mapping)?.errors(device, small)?;
    check("an entry of a small matrix", error)?;
    check("a product with a small matrix", of_small)?;
    let assembly = OnDevice::new(device, large, strategy, mapping)?;
    let (_, product_error) = assembly.errors(device, large)?;
    check("a product with the matrix", product_error)?;
    let calls = assembly.calls();
    let options = TimingOptions { warm_up: 2, min_runs: 9, min_seconds: 0.0, max_runs: 9 };
    let timing = Timing::sample(&options, || run(device, &calls))?;
    let (x, mut product) = (buffer_of(device, &large.x)?, Queue::new());
    let y = device.allocate(8 * large.unknowns() as u64)?;
    assembly.matrix.apply(&x, &y, &mut product);
    let resources: Vec<String> =
        assembly.programs.executables().filter_map(|e| e.resources()).map(ToString::to_string).collect();
    Ok(Assembled {
        divisions: large.source.divisions(),
        file: large.source.file(),
        cells: large.source.file().map(|_| large.mesh.n_cells()),
        order: large.order,
        degree: large.degree,
        unknowns: large.unknowns(),
        entries: assembly.matrix.n_entries(),
        strategy: strategy.to_string(),
        mapping: mapping.clone(),
        device: device.info().into(),
        source: source(device, assembly.programs.form(), mapping)?,
        resources: (!resources.is_empty()).then(|| resources.join("; ")),
        median_s: timing.median_s,
        min_s: timing.min_s,
        max_s: timing.max_s,
        runs: timing.runs,
        bytes: calls.iter().map(Call::bytes).sum(),
        error,
        product_error,
        product_s: Some(Timing::sample(&options, || product.run(device))?.median_s),
        setup_s: assembly.setup_s,
    })
}
