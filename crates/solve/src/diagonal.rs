//! Diagonal matrices: Jacobi's preconditioner.

use crate::texts::{compiled, text};
use crate::{Call, CsrOperator, Operator, Queue, SolveError};
use kingpost_runtime::{Buffer, Device, Executable, buffer_of};

/// A diagonal matrix.
pub struct Diagonal {
    n: usize,
    multiply: Executable,
    values: Buffer,
}

impl Diagonal {
    /// The identity.
    ///
    /// # Errors
    /// No memory, a device that refuses the kernel.
    pub fn identity(device: &dyn Device, n: usize) -> Result<Self, SolveError> {
        let values = buffer_of(device, &vec![1.0; n])?;
        Ok(Self { n, multiply: compiled(device, text!("multiply_diagonal"))?, values })
    }

    /// The inverse of a matrix's diagonal becomes this one.
    #[must_use]
    pub fn invert<'a>(&'a self, matrix: &'a CsrOperator) -> Call<'a> {
        matrix.invert_diagonal(&self.values)
    }

    /// The entries, f64 `[n]`.
    #[must_use]
    pub const fn values(&self) -> &Buffer {
        &self.values
    }
}

impl Operator for Diagonal {
    fn size(&self) -> usize {
        self.n
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        queue.push(Call::of(&self.multiply, &[("n", self.n)], &[("d", &self.values), ("x", x), ("y", y)]));
    }
}
