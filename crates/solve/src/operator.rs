//! What solvers multiply by.

use crate::texts::{compiled, text};
use crate::{Call, Constraints, DeviceForm, Queue, SolveError};
use purlin_runtime::{Buffer, Device, Executable};

/// A square linear operator on vectors of a device.
pub trait Operator {
    /// Rows and columns.
    fn size(&self) -> usize;

    /// Appends what computes `y = A x`. What `y` held is lost; `x` is as before in the end.
    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>);
}

/// The action of a bilinear form, applied without a matrix: rows and columns of prescribed unknowns
/// are those of the identity.
pub struct FormOperator<'s> {
    n: usize,
    form: &'s DeviceForm,
    constraints: &'s Constraints,
    unknown: &'s Buffer,
    clear: Executable,
}

impl<'s> FormOperator<'s> {
    /// A form of two given arrays: the unknown it is linearised at, and what it is applied to.
    ///
    /// # Errors
    /// A device that refuses the kernels.
    pub fn new(
        device: &dyn Device,
        n: usize,
        form: &'s DeviceForm,
        constraints: &'s Constraints,
        unknown: &'s Buffer,
    ) -> Result<Self, SolveError> {
        Ok(Self { n, form, constraints, unknown, clear: compiled(device, text!("clear"))? })
    }
}

impl Operator for FormOperator<'_> {
    fn size(&self) -> usize {
        self.n
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        queue.extend([self.constraints.keep(x), self.constraints.clear(x)]);
        queue.push(Call::of(&self.clear, &[("n", self.n)], &[("v", y)]));
        self.form.add_to(&[self.unknown, x], y, queue);
        queue.extend([self.constraints.put_back(x), self.constraints.put_back(y)]);
    }
}
