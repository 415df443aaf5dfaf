//! The kernels on vectors of an iteration of conjugate gradients.

use kingpost::codegen::{CodegenError, generate};
use kingpost::ir::text::{ParseErrors, parse};
use kingpost::prelude::{Options, Schedule};
use kingpost::runtime::{Device, Executable, RuntimeError};
use kingpost::transforms::steps;
use kingpost::transforms::{RecipeSyntaxError, TransformError};

/// Why there are no kernels.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    /// A text is no kernel.
    #[error("bug of the study: {0}")]
    Kernel(#[from] ParseErrors),
    /// A text is no recipe.
    #[error("bug of the study: {0}")]
    Recipe(#[from] RecipeSyntaxError),
    /// A step is refused.
    #[error("bug of the study: {0}")]
    Step(#[from] TransformError),
    /// A kernel has no code.
    #[error("bug of the study: {0}")]
    Code(#[from] CodegenError),
    /// The device refuses.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// The kernels of iteration `k`, a parameter. `rr[k]` is the square of the residual before it,
/// `pq[k]` that of its direction in the norm of the operator. Each sum has an element of its own that
/// starts at zero, so that nothing has to be cleared between iterations but `q`.
pub struct Vectors {
    /// `sums[k] += v·w`.
    pub dot: Executable,
    /// `r -= (rr[k]/pq[k]) q` and `rr[k + 1] += r·r`.
    pub residual: Executable,
    /// `x += (rr[k]/pq[k]) p`, `p = r + (rr[k + 1]/rr[k]) p` and `q = 0`.
    pub direction: Executable,
}

impl Vectors {
    /// Compiles them.
    ///
    /// # Errors
    /// A device that refuses them.
    pub fn new(device: &dyn Device) -> Result<Self, VectorsError> {
        let of = |kernel: &str, recipe: &str| compiled(device, kernel, recipe);
        Ok(Self {
            dot: of(include_str!("vectors/dot.kingpost"), include_str!("vectors/dot.json"))?,
            residual: of(include_str!("vectors/residual.kingpost"), include_str!("vectors/residual.json"))?,
            direction: of(
                include_str!("vectors/direction.kingpost"),
                include_str!("vectors/direction.json"),
            )?,
        })
    }
}

fn compiled(device: &dyn Device, kernel: &str, recipe: &str) -> Result<Executable, VectorsError> {
    let kernel = parse(kernel)?;
    let recipe = steps().recipe(recipe)?;
    let mut schedule = Schedule::of(&kernel);
    schedule.replay(&recipe)?;
    let program = generate(schedule.kernel(), device.info().backend.target(), &Options::default())?;
    Ok(device.compile(&program)?)
}
