//! A form as a function of meshes and inputs, in one call.

use crate::tuning::known::{Known, Sought, first, for_device, mapped, trials, without_setup};
use crate::{DatabaseError, Refusal};
use kingpost_codegen::{Options, Program};
use kingpost_fem::mesh::Mesh;
use kingpost_fem::sparse::CsrPattern;
use kingpost_forms::form::{Form, FormError, Inputs};
use kingpost_forms::lowering::{LoweredKernel, LoweringOptions, MatrixResult, MeshForm};
use kingpost_ir::Kernel;
use kingpost_primitives::Recipe;
use kingpost_run::{CsrMatrix, LoadError, Loaded, laid_out};
use kingpost_runtime::{Device, Executable, RuntimeError};

/// Why a form could not be compiled or applied.
#[derive(Debug, thiserror::Error)]
pub enum JitError {
    /// The form is wrong, or does not fit the mesh or the inputs.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The mapping was refused.
    #[error(transparent)]
    Mapping(#[from] Refusal),
    /// The trials of `kingpost tune` could not be read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The device or its compiler refused.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The arguments could not be loaded, or the result not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A result of another kind than the call gives.
    #[error("`{call}`: found {found}, needed {needed}")]
    Result {
        /// The call.
        call: &'static str,
        /// What the form gives.
        found: String,
        /// What would have been accepted, and what to call instead.
        needed: &'static str,
    },
}

/// A form that is compiled for a device.
pub struct Jit<'d> {
    device: &'d dyn Device,
    form: MeshForm,
    /// Of the kernels of the form.
    compiled: Vec<Compiled>,
}

/// A kernel of a form on a device.
pub struct Compiled {
    /// How it is mapped to the device, and where that is known from.
    pub mapping: Known,
    /// The steps from the kernel of the form ([`MeshForm::kernels`]) to the one that is compiled.
    pub recipe: Recipe,
    /// The kernel once it is mapped.
    pub kernel: Kernel,
    /// Source and launch plan.
    pub program: Program,
    executable: Executable,
}

/// Compiles a functional, a linear or a bilinear form on any spaces for a device, by the best mapping that is
/// [known](crate::tuning::known) for the device: of the trials of `kingpost tune` in the working
/// directory, of what is shipped, or of the cost model.
///
/// ```
/// use kingpost_fem::element::CellShape;
/// use kingpost_forms::form::*;
/// use kingpost_fem::mesh::Mesh;
///
/// let space = FunctionSpace::scalar(CellShape::Triangle, 1);
/// let (u, v) = (coefficient("u", &space), test(&space));
/// let mass = 2 * &u * v * dx();
///
/// let device = kingpost_runtime::open("c")?;
/// let mass = kingpost_autotune::jit(&mass, &*device)?;
/// let mesh = Mesh::unit_square(4)?;
/// let ones = vec![1.0; mesh.n_vertices()];
/// let y = mass.apply(&mesh, &Inputs::new().field("u", ones.clone()))?;
/// assert!((y.iter().sum::<f64>() - 2.0).abs() < 1e-14); // twice the area
///
/// let misspelt = mass.apply(&mesh, &Inputs::new().field("U", ones));
/// assert!(misspelt.unwrap_err().to_string().contains("the form has coefficients `u`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A bilinear form, of cells and facets, is [assembled](Jit::assemble) to a sparse matrix:
///
/// ```
/// use kingpost_fem::element::CellShape;
/// use kingpost_forms::form::*;
/// use kingpost_fem::mesh::Mesh;
///
/// // Poisson's equation by interior penalty (Arnold et al. 2002)
/// let cell = CellShape::Triangle;
/// let space = FunctionSpace::discontinuous(cell, 1);
/// let (u, v, n) = (trial(&space), test(&space), facet_normal(cell));
/// let inside = inner(grad(&u), grad(&v)) * dx();
/// let between = (40 * inner(jump_along(&u, &n), jump_along(&v, &n))
///     - inner(avg(grad(&u)), jump_along(&v, &n))
///     - inner(jump_along(&u, &n), avg(grad(&v))))
///     * dS();
///
/// let device = kingpost_runtime::open("c")?;
/// let mesh = Mesh::unit_square(4)?;
/// let matrix = kingpost_autotune::jit(&(inside + between), &*device)?.assemble(&mesh, &Inputs::new())?;
/// assert_eq!(matrix.n_rows(), 3 * mesh.n_cells());
/// let of_constants = matrix.multiply(&vec![1.0; matrix.n_columns]);
/// assert!(of_constants.iter().all(|x| x.abs() < 1e-13)); // they have no slope and no jump
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A form that cannot be lowered ([`MeshForm::new`]), trials that cannot be read, and what the
/// device or its compiler refuses.
pub fn jit<'d>(form: &Form, device: &'d dyn Device) -> Result<Jit<'d>, JitError> {
    jit_with(form, &LoweringOptions::new("form"), device)
}

/// The same with options: quadrature rules, or the degree of curved cells.
///
/// ```
/// use kingpost_fem::element::{CellShape, ElementFamily, FiniteElement, LagrangeVariant};
/// use kingpost_forms::form::*;
/// use kingpost_forms::lowering::LoweringOptions;
/// use kingpost_fem::mesh::Mesh;
///
/// // a triangle whose side from (1, 0) to (0, 1) bends outwards
/// let corners = vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.0];
/// let nodes = [&corners[..], &[0.75, 0.75, 0.0, 0.5, 0.5, 0.0]].concat();
/// let element = FiniteElement::new(
///     CellShape::Triangle,
///     ElementFamily::Lagrange(LagrangeVariant::Equispaced),
///     2,
/// )?;
/// let mesh = Mesh::new(CellShape::Triangle, corners, vec![0, 1, 2], None)?;
/// let mesh = mesh.with_nodes(element, nodes, (0..6).collect())?;
///
/// let area = test(&FunctionSpace::discontinuous(CellShape::Triangle, 0)) * dx();
/// let options = LoweringOptions::new("area").with_geometry_degree(mesh.geometry_degree());
/// let device = kingpost_runtime::open("c")?;
/// let area = kingpost_autotune::jit_with(&area, &options, &*device)?.apply(&mesh, &Inputs::new())?;
/// // 1/2, and 2/3 of the chord, the square root of 2, times the height of the bend
/// assert!((area[0] - (0.5 + 1.0 / 3.0)).abs() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`jit`].
pub fn jit_with<'d>(
    form: &Form,
    options: &LoweringOptions,
    device: &'d dyn Device,
) -> Result<Jit<'d>, JitError> {
    let form = MeshForm::new(form, options)?;
    let trials = trials(None)?;
    let dim = form.tabulated().cell.dim();
    let compile = |lowered: &LoweredKernel| {
        let candidates = for_device(lowered, Sought { case: None, dim }, device, &trials);
        // every call may come with another mesh
        let candidates = without_setup(candidates);
        let attempt = |known: &Known| -> Result<_, JitError> {
            let (kernel, recipe, program) =
                mapped(lowered, &known.mapping, device.info(), &Options::default())?;
            let executable = device.compile(&program)?;
            Ok((kernel, recipe, program, executable))
        };
        let (mapping, (kernel, recipe, program, executable)) = first(candidates, attempt)?;
        Ok(Compiled { mapping, recipe, kernel, program, executable })
    };
    let compiled = form.kernels().iter().map(compile).collect::<Result<_, JitError>>()?;
    Ok(Jit { device, form, compiled })
}

impl Jit<'_> {
    /// The result on a mesh: one number for each degree of freedom of the test function's space, of a
    /// functional one number. Of a bilinear form, as the options say, the diagonal of its matrix or
    /// the matrices of cells (or facets), `[entities, rows, columns]`; for the sparse matrix see
    /// [`Jit::assemble`].
    ///
    /// # Shapes and units
    /// Inputs and result are as [`MeshForm::bind`] says.
    ///
    /// # Errors
    /// As [`MeshForm::bind`]: names that the form does not have, inputs that are missing or of
    /// another length, a mesh of other cells. What the device refuses. [`JitError::Result`] of a
    /// sparse matrix, or of matrices of several kinds of entities.
    pub fn apply(&self, mesh: &Mesh, inputs: &Inputs) -> Result<Vec<f64>, JitError> {
        let kernels = self.form.kernels();
        let is_local = |k: &LoweredKernel| k.matrix == MatrixResult::Cells;
        let refuse = |found: String, needed| Err(JitError::Result { call: "apply", found, needed });
        if self.form.is_sparse() {
            let needed = "a result that is one array; call `assemble`, or ask for `MatrixResult::Cells`";
            return refuse("a bilinear form whose result is a sparse matrix".into(), needed);
        }
        if self.form.tabulated().rank == 2 && kernels.len() > 1 && kernels.iter().any(is_local) {
            let found = format!("matrices of {} kinds of entities", kernels.len());
            return refuse(found, "one kind; take the integrals over each as a form of their own");
        }
        self.sum(mesh, inputs, &[])
    }

    /// The matrix of a bilinear form on a mesh, a row for each degree of freedom of the test
    /// function and a column for each of the trial function.
    ///
    /// # Shapes and units
    /// Inputs are as [`MeshForm::bind`] says. Degrees of freedom of `n` components each are the rows
    /// `n*dof` to `n*dof + n - 1`.
    ///
    /// # Errors
    /// As [`Jit::apply`]; [`JitError::Result`] of a form that is not bilinear, or was compiled for
    /// another result.
    pub fn assemble(&self, mesh: &Mesh, inputs: &Inputs) -> Result<CsrMatrix, JitError> {
        if !self.form.is_sparse() {
            let found = match self.form.tabulated().rank {
                0 => "a functional",
                1 => "a linear form",
                _ => "a bilinear form that was compiled for another result",
            };
            let needed = "a bilinear form whose result is `MatrixResult::Sparse`; call `apply`";
            return Err(JitError::Result { call: "assemble", found: found.into(), needed });
        }
        let patterns = self.form.patterns(mesh)?;
        let values = self.sum(mesh, inputs, &patterns)?;
        let [row_starts, columns] = match patterns.into_iter().next() {
            Some(pattern) => [pattern.row_starts, pattern.columns],
            None => [vec![0], Vec::new()],
        };
        let n_columns = self.form.n_columns(mesh)?;
        Ok(CsrMatrix { n_columns, row_starts, columns, values })
    }

    /// What all kernels add up to.
    fn sum(&self, mesh: &Mesh, inputs: &Inputs, patterns: &[CsrPattern]) -> Result<Vec<f64>, JitError> {
        let mut result: Option<Vec<f64>> = None;
        for (place, compiled) in self.compiled.iter().enumerate() {
            let mut memory = self.form.bind_to(place, mesh, inputs, patterns)?;
            let output = self.form.output(place);
            if let Some(sum) = result.take() {
                memory.set(output, sum);
            }
            let memory = laid_out(&compiled.kernel, &memory);
            let loaded = Loaded::compiled(self.device, compiled.executable.clone(), &memory)?;
            loaded.launch()?;
            result = Some(loaded.f64s(output)?);
        }
        Ok(result.unwrap_or_default())
    }

    /// The lowered form.
    #[must_use]
    pub const fn form(&self) -> &MeshForm {
        &self.form
    }

    /// Its kernels on the device: one for the integrals over the same part of the mesh.
    #[must_use]
    pub fn kernels(&self) -> &[Compiled] {
        &self.compiled
    }
}
