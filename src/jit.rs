//! A form as a function of meshes and inputs, in one call.

use crate::tuning::known::{Known, Sought, first, for_device, mapped, trials};
use crate::{LoadError, Loaded, laid_out};
use purlin_autotune::{DatabaseError, Refusal};
use purlin_codegen::{Options, Program};
use purlin_forms::form::{Form, FormError, Inputs};
use purlin_forms::lowering::{LoweringOptions, MeshForm};
use purlin_forms::mesh::Mesh;
use purlin_ir::Kernel;
use purlin_runtime::{Device, Executable, RuntimeError};

/// Why a form could not be compiled or applied.
#[derive(Debug, thiserror::Error)]
pub enum JitError {
    /// The form is wrong, or does not fit the mesh or the inputs.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The mapping was refused.
    #[error(transparent)]
    Mapping(#[from] Refusal),
    /// The trials of `purlin tune` could not be read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The device or its compiler refused.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The arguments could not be loaded, or the result not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// A linear form that is compiled for a device.
pub struct Jit<'d> {
    device: &'d dyn Device,
    form: MeshForm,
    known: Known,
    kernel: Kernel,
    program: Program,
    executable: Executable,
}

/// Compiles a linear form on any spaces for a device, by the best mapping that is
/// [known](crate::tuning::known) for the device: of the trials of `purlin tune` in the working
/// directory, of what is shipped, or of the cost model.
///
/// ```
/// use purlin::forms::element::CellShape;
/// use purlin::forms::form::*;
/// use purlin::forms::mesh::Mesh;
///
/// let space = FunctionSpace::scalar(CellShape::Triangle, 1);
/// let (u, v) = (coefficient("u", &space), test(&space));
/// let mass = 2 * &u * v * dx();
///
/// let device = purlin::runtime::open("c")?;
/// let mass = purlin::jit(&mass, &*device)?;
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
/// # Errors
/// A form that cannot be lowered ([`MeshForm::new`]), trials that cannot be read, and what the
/// device or its compiler refuses.
pub fn jit<'d>(form: &Form, device: &'d dyn Device) -> Result<Jit<'d>, JitError> {
    let form = MeshForm::new(form, &LoweringOptions::new("form"))?;
    let sought = Sought { case: None, dim: form.tabulated().cell.dim() };
    let candidates = for_device(form.kernel(), sought, device, &trials(None)?);
    let attempt = |known: &Known| -> Result<_, JitError> {
        let (kernel, _, program) = mapped(form.kernel(), &known.mapping, device.info(), &Options::default())?;
        let executable = device.compile(&program)?;
        Ok((kernel, program, executable))
    };
    let (known, (kernel, program, executable)) = first(candidates, attempt)?;
    Ok(Jit { device, form, known, kernel, program, executable })
}

impl Jit<'_> {
    /// The result on a mesh: one number for each degree of freedom of the test function's space.
    ///
    /// # Shapes and units
    /// Inputs and result are as [`MeshForm::bind`] says.
    ///
    /// # Errors
    /// As [`MeshForm::bind`]: names that the form does not have, inputs that are missing or of
    /// another length, a mesh of other cells. What the device refuses.
    pub fn apply(&self, mesh: &Mesh, inputs: &Inputs) -> Result<Vec<f64>, JitError> {
        let memory = self.form.bind(mesh, inputs)?;
        let memory = laid_out(&self.kernel, &memory);
        let loaded = Loaded::compiled(self.device, self.executable.clone(), &memory)?;
        loaded.launch()?;
        Ok(loaded.f64s(self.form.output())?)
    }

    /// The lowered form.
    #[must_use]
    pub const fn form(&self) -> &MeshForm {
        &self.form
    }

    /// How the form is mapped to the device, and where that is known from.
    #[must_use]
    pub const fn mapping(&self) -> &Known {
        &self.known
    }

    /// The source of the program.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.program.source
    }
}
